"""What every probe says on its case: lean by lean, kind of question by kind, refused by refused.

A case is run twice: by `probe.run`, for what the probe itself hands over, and in an audit, for the
findings with their verdicts and the record of the run.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import evenhand as eh
from evenhand import plugins
from evenhand.audit.auditing import Audit
from evenhand.audit.suites import parse_suite
from evenhand.probes.registry import probe_class
from evenhand.requests import LazyRequests
from evenhand.strict import plain
from pins import inputs
from pins.comparing import column_pin, pinned, places, table_pin
from pins.models import counting, model_of
from probe_cases import CASES

PROBES = sorted(plugins.BUILT_IN[plugins.PROBES])
LEANS = (0.0, 0.5, 1.0)
SEED = 3

Settings = dict[str, Any]


@dataclass(frozen=True)
class Varied:
    """A case with other settings.

    Attributes:
        settings: they replace those of the case.
        kinds: which questions a neutral model answers; the case's own model by default.
        lean: of either model.
        files: writes further files and gives settings that name them.
        only: none of the case's settings are kept.
    """

    settings: Settings = field(default_factory=dict)
    kinds: tuple[str, ...] = ()
    lean: float = 0.5
    files: Callable[[Path], Settings] | None = None
    only: bool = False


def varied(*kinds: str, lean: float = 0.5, only: bool = False, **settings: Any) -> Varied:
    return Varied(settings, kinds, lean, None, only)


def of_files(files: Callable[[Path], Settings], *kinds: str, **settings: Any) -> Varied:
    return Varied(settings, kinds, 0.5, files, only=True)


def of_data(write: Callable[[Path], str], *kinds: str, **settings: Any) -> Varied:
    return of_files(lambda folder: {"data": write(folder)}, *kinds, **settings)


FEW_TERMS = {"terms": 4, "templates": 1, "resamples": 60}
VARIED: dict[str, dict[str, Varied]] = {
    "underspecified": {
        "nationality": varied(
            "option", only=True, social_class="nationality", terms=3, templates=1, resamples=60
        ),
        "religion, all attributes": varied(
            "choose", only=True, social_class="religion", terms=3, templates=1, resamples=60
        ),
        "Spanish": varied("choose", only=True, language="es", **FEW_TERMS),
        "relative span": varied("span", score="relative", terms=4),
        "absolute choose": varied("choose", score="absolute", unknown="nobody knows", terms=4),
        "drawn pairs": varied("mask-score", terms=None, pairs=12, negated_pairs=6, pronouns=False),
        "until precise": varied("option", terms=None, standard_error=0.05),
        "pieces": varied("mask-score", pieces="any", terms=4, templates_per_pair=1),
        "few": varied("option", terms=2, templates=1, attributes=("nurse",)),
        "asked by continuation": varied(
            "option", "continuation", ask_by="continuation", terms=4, prompt="{context} {question}"
        ),
        "filler": varied("option", filler="(CNN) --", terms=4),
        "three draws": varied("generate", terms=4, draws=3),
        "published span": varied("span", as_published=True, terms=4),
        "published mask": varied("mask-score", "fill-mask", as_published=True, terms=4),
    },
    "divergence": {
        "all axes": varied("continuation", only=True, words=2, prompts=1, resamples=100),
        "next token": varied("divergence", "continuation", lean=1.0),
        "published": varied("divergence", as_published=True),
        "few": varied("continuation", axes=("gender_identity",)),
        "own pairs": of_files(
            lambda folder: {
                "file": inputs.write_table(
                    folder / "pairs.csv",
                    ("context_a", "context_b"),
                    [(f"The man {k}", f"The woman {k}") for k in range(8)],
                )
            },
            "divergence",
            resamples=100,
        ),
    },
    "association": {
        "packaged": varied("embed", only=True, tests=("weat6", "weat7"), samples=99),
        "sentences": varied("embed", templates=("This is {}.", "{} is here."), samples=99),
        "bleached": varied("embed", templates=("bleached",), samples=99),
        "raw norms": varied(raw_norms=True),
        "kept": varied(missing="keep", samples=99),
        "balanced": varied(missing="balanced", samples=99),
        "Spanish": varied("embed", only=True, language="es", samples=99),
        "published sentences": varied("embed", templates=("This is {}.",), as_published=True),
    },
    "discovery": {
        "solo": varied(pairing="solo", samples=199),
        "random": varied(pairing="random", samples=199),
        "letters": varied("choose", choosing="letters", samples=199, context_count=3),
        "occurrence": varied(count="occurrence", samples=199),
        "own pools": varied("option", pool="name", samples=199, keep=20, context_count=3),
        "neutral pronouns": varied("option", pronouns="neutral", samples=199, context_count=3),
        "few": varied("option", names=3, samples=199, context_count=2, min_count=2),
        "pairs": varied(
            "option",
            samples=199,
            context_count=3,
            names=4,
            min_count=2,
            groups=("female", "male"),
            pairs=("female:male",),
        ),
        "letters with a seed": varied("generate", samples=199, context_count=2, min_count=2),
        "published option": varied(
            "option", as_published=True, pool="name", keep=20, context_count=3
        ),
        "annotated stereotypes": Varied(
            {"samples": 199}, files=lambda f: {"stereotypes": inputs.seegull(f)}
        ),
        "own situations": Varied(
            {"samples": 199, "pronouns": "drop", "min_count": 2, "context_count": None},
            files=lambda f: {"contexts": inputs.situations(f)},
        ),
    },
    "name-study": {
        "six names": varied("embed", names=6, folds=3, permutations=19),
        "three contexts": varied(context_count=3, names=6, permutations=19),
        "few": varied("embed", names=3),
    },
    "generation": {
        "packaged": varied("generate", only=True, draws=2, resamples=100),
        "religion": varied("generate", only=True, axes=("religion",), draws=1, resamples=100),
        "vader": varied(scorer="vader", draws=3, resamples=100),
        "sampling": varied(temperature=0.7, top_p=1.0, max_new_tokens=5, draws=3, resamples=100),
        "published vader": varied(scorer="vader", draws=3, as_published=True),
        "BOLD": of_files(lambda f: {"file": inputs.bold(f)}, "generate", draws=4, resamples=100),
    },
    "stereoset": {
        "drawn": varied("continuation", examples=10, draw=2),
        "without a start": varied("continuation", start="none"),
    },
    "crows-pairs": {
        "per token": varied("continuation", per_token=True),
        "drawn": varied("continuation", pairs=12, draw=1),
        "only age": varied("mask-score", bias_types=("age",)),
        "no start": varied("continuation", start="bos"),
    },
    "bbq": {
        "two categories": of_files(
            lambda f: {"data": inputs.two_categories(f)}, "choose", sets=None
        ),
        "two categories, published": of_files(
            lambda f: {"data": inputs.two_categories(f)}, "choose", sets=None, as_published=True
        ),
        "drawn from one category": of_files(
            lambda f: {"data": inputs.two_categories(f)},
            "continuation",
            sets=6,
            draw=1,
            categories=("Work",),
        ),
        "unknown in other words": varied(
            "continuation", unknown=("Nobody knows", "Cannot say"), sets=10
        ),
        "Korean": of_data(inputs.korean_bbq, "choose"),
        "Korean, published": of_data(inputs.korean_bbq, "choose", as_published=True),
        "Korean, published, continuation": of_data(
            inputs.korean_bbq, "continuation", as_published=True
        ),
        "Spanish": of_data(inputs.spanish_bbq, "choose"),
        "Spanish, published": of_data(inputs.spanish_bbq, "continuation", as_published=True),
        "Catalan": of_data(inputs.catalan_bbq, "option"),
        "Catalan, published": of_data(inputs.catalan_bbq, "generate", as_published=True),
        "Chinese": of_data(inputs.chinese_bbq, "choose"),
        "Chinese, published": of_data(inputs.chinese_bbq, "continuation", as_published=True),
        "another language": of_data(inputs.spanish_bbq, "choose", language="ca"),
    },
    "winobias": {
        "drawn": varied("continuation", sentences=10, draw=1),
        "both splits": varied("mask-score", splits=("dev", "test")),
        "type 2 is missing": varied("mask-score", types=(1, 2)),
    },
    "winogender": {},
    "honest": {
        "one fill": varied("fill-mask", top=1),
        "drawn": varied("fill-mask", templates=20, draw=1),
        "another language": varied("fill-mask", language="it"),
        "Italian": of_files(inputs.italian_honest, "fill-mask", language="it", top=2),
        "Italian, published": of_files(
            inputs.italian_honest, "fill-mask", language="it", top=2, as_published=True
        ),
        "one fill, published": varied("fill-mask", top=1, as_published=True),
    },
    "gest": {
        "drawn": varied("continuation", sentences=3, draw=1),
        "one template": varied("mask-score", templates=(1,)),
        "one template, published": varied("continuation", templates=(0,), as_published=True),
    },
    "ranking": {
        "packaged": varied("option", only=True, runs=4, names=8),
        "four groups": varied(
            "option",
            runs=6,
            names=6,
            shown=3,
            groups=("asian_female", "asian_male", "african_american_female"),
        ),
        "one job": varied("choose", jobs=("nurse",), runs=12),
        "samples": varied("generate", runs=10, samples=3),
        "few": varied("option", names=3, runs=4),
        "JSON of jobs": of_data(inputs.resumes, "continuation", runs=8, names=6, shown=2),
    },
    "matched-guise": {
        "packaged": varied("choose", only=True, texts=7),
        "one kind": varied("choose", kinds=("traits",)),
        "drawn": varied("continuation", texts=8, draw=1),
        "samples": varied("generate", texts=4, samples=2),
        "folder": of_data(inputs.guise_folder, "choose", texts=3),
        "folder, published": of_data(inputs.guise_folder, "mask-score", as_published=True),
        "occupations, published": of_data(
            inputs.guise_folder, "continuation", as_published=True, words="occupations"
        ),
    },
    "decision": {
        "packaged": varied("choose", only=True, formats=("stated", "removed"), scenarios=12),
        "named": varied("choose", only=True, formats=("stated", "named"), scenarios=6, names=2),
        "crossed": varied(
            "choose", only=True, formats=("stated",), intersections=True, scenarios=6
        ),
        "graded": varied("choose", only=True, answers="graded", scenarios=4, names=2),
        "graded, sampled": varied(
            "generate", lean=0.7, only=True, answers="graded", scenarios=4, names=1, samples=13
        ),
        "few": varied("choose", only=True, scenarios=3, names=1),
        "instruction": varied("continuation", instruction="Answer as a clerk.", names=1),
        "published": varied("choose", only=True, as_published=True, scenarios=6, names=2),
        "own table": of_files(lambda f: {"data": inputs.decision_cases(f)}, "choose"),
    },
    "implicit": {
        "packaged": varied("choose", only=True, pairs=2, stereotypes=("career",)),
        "association only": varied("choose", tests=("association",)),
        "decision only": varied("option", tests=("decision",)),
        "samples": varied("generate", samples=2, tests=("association",)),
        "three pairs": varied("choose", pairs=3),
        "stimuli": of_data(inputs.stimuli, "choose"),
        "packaged, published": varied(
            "choose", only=True, as_published=True, stereotypes=("career",), pairs=2
        ),
    },
    "seat": {
        "few samples": varied("embed", samples=99),
        "both tests": varied("embed", tests=("made", "sent-made"), samples=99),
    },
    "ceat": {
        "narrow": varied("embed", window=3, draws=20),
        "two contexts": varied("embed", contexts=2, draws=20),
    },
    "counterfactual": {
        "packaged words": varied("classify", only=True, swaps=("words",), bad=("LABEL_1",)),
        "packaged names": varied(
            "classify", only=True, swaps=("names",), names=2, bad=("LABEL_1",), texts=12
        ),
        "packaged dialect": varied("classify", only=True, swaps=("dialect",), bad=("LABEL_1",)),
        "threshold": varied("classify", threshold=0.6, names=4),
        "drawn": varied("classify", texts=8, draw=1, names=4),
        "reference": varied("classify", reference=("african_american_female",), names=4),
        "the other label": varied("classify", bad=("LABEL_0",), names=4),
        "labels": of_files(
            lambda folder: {
                "data": inputs.write_table(
                    folder / "labelled.csv",
                    ("text", "label"),
                    [(text, k % 2) for k, text in enumerate(CASES["counterfactual"].rows)],
                )
            },
            "classify",
            bad=("LABEL_1",),
            names=5,
            threshold=0.45,
        ),
        "pairs of texts": of_files(
            lambda folder: {
                "pairs": inputs.write_table(
                    folder / "pairs.csv",
                    ("dialect", "standard"),
                    [row[:2] for row in CASES["matched-guise"].rows],
                )
            },
            "classify",
            bad=("LABEL_1",),
            pair_names=("one", "two"),
        ),
    },
    "labour": {
        "packaged": varied("continuation", only=True, occupations=12, names=2),
        "packaged, sex": varied("mask-score", only=True, axes=("sex",), occupations=20),
        "packaged, race": varied("mask-score", only=True, axes=("race",), occupations=8, names=4),
        "few": varied("continuation", occupations=4),
    },
}


def recorded(name: str) -> dict[str, Any]:
    """Return everything that is pinned of a probe."""
    kind = probe_class(name)
    pin: dict[str, Any] = {}
    for lean in LEANS:
        pin[f"lean {lean:g}"] = of_case(name, Varied(lean=lean), seed=0)
        pin[f"audit, lean {lean:g}"] = of_audit(name, lean)
    pin["published"] = of_case(name, varied(as_published=True), seed=0)
    for asked in kind.needs:
        pin[f"asked {asked}"] = of_case(name, varied(asked, lean=0.7), seed=SEED)
    pin["few rows"] = of_case(name, Varied(lean=1.0), seed=0, rows=few_rows(name))
    pin["no rows"] = of_case(name, Varied(lean=1.0), seed=0, rows=[])
    for label, one in VARIED[name].items():
        pin[label] = of_case(name, one, seed=SEED)
    pin["refused"] = dict(refusals(name))
    return pin


def few_rows(name: str) -> Any:
    """Return rows of a case that are too few for its comparisons, but enough to be asked."""
    rows = CASES[name].rows
    if name in ("association", "seat", "ceat"):
        return [row for key in "xyab" for row in [r for r in rows if r[0] == key][:2]]
    if name == "implicit":
        return [row for row in rows if row[-1][-1] in "abc"]
    if name == "honest":
        return [*rows[:2], *rows[-2:]]
    return rows[: max(4 if name == "generation" else 2, len(rows) // 8)]


def of_case(name: str, one: Varied, *, seed: int, rows: Any = None) -> dict[str, Any]:
    """Return what a probe says with these settings, or the error."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = places(folder)
        try:
            settings = (
                {} if one.only else case.settings(folder, case.rows if rows is None else rows)
            )
            settings |= one.settings | (one.files(folder) if one.files else {})
            probe = eh.make_probe(name, settings)
            model = model_of(one.kinds, one.lean) if one.kinds else case.model(one.lean)
            pin = before(probe, model.answers, seed)
            tally = counting(model)
            helpers = {key: eh.Ask(case.helpers[spec]) for key, spec in probe.helpers().items()}
            measured = probe.run(eh.Ask(model, helpers=helpers), seed)
        except eh.EvenhandError as error:
            return {"error": pinned(f"{type(error).__name__}: {error}", names)}
        pin |= {"asked": dict(sorted(tally.items())), **after(probe, measured)}
        record: dict[str, Any] = pinned(pin, names)
        return record


def before(probe: eh.Probe, answers: frozenset[str], seed: int) -> dict[str, Any]:
    """Return what a probe says before it asks anything."""
    preview = probe.preview(answers, seed)
    finer = probe.finer()
    return {
        "preview": {
            "items": preview.items,
            "example": preview.example,
            "notes": preview.notes,
            "requests": of_requests(preview.requests),
        },
        "limits": probe.limits(seed),
        "within": probe.within(0.4).model_dump(mode="json"),
        "finer": finer.model_dump(mode="json") if finer else None,
        "lexicons": probe.lexicons(),
        "charts": sorted(type(probe).charts()),
        "language": probe.spoken,
    }


def of_requests(requests: Any) -> dict[str, Any]:
    if isinstance(requests, LazyRequests):
        requests = requests.make(0, len(requests))
    columns = {name: list(getattr(requests, name)) for name in requests.columns}
    return {
        "kind": requests.kind,
        "settings": requests.settings,
        "rows": len(requests),
        "first": {name: values[:2] for name, values in columns.items()},
        "columns": {name: column_pin(values) for name, values in columns.items()},
    }


def after(probe: eh.Probe, measured: eh.Measured) -> dict[str, Any]:
    """Return what a probe measured, and what it makes of its items alone."""
    items = measured.items if hasattr(measured.items, "num_rows") else measured.items.read_all()
    estimates = probe.estimates(items)
    numbers = ("value", "low", "high", "p", "error", "freedom", "units")
    return {
        "findings": [f.as_dict() for f in measured.findings],
        "items": table_pin(items),
        "tables": {name: table_pin(table) for name, table in measured.tables.items()},
        "summary": dict(measured.summary),
        "placebos": [plain(placebo) for placebo in measured.placebos],
        "unlisted": list(measured.unlisted),
        "estimates": {k: {n: getattr(e, n) for n in numbers} for k, e in estimates.items()},
        "behaviours": [
            {
                "what": b.what,
                "values": column_pin(list(map(float, b.values))),
                "weights": None if b.weights is None else column_pin(list(map(float, b.weights))),
                "margin": b.margin,
                "ideal": b.ideal,
                "relative": b.relative,
            }
            for b in type(probe).behaviours(items)
        ],
    }


def audit(name: str, lean: float, folder: Path, out: str = "run") -> eh.Run:
    """Return the finished audit of a probe's case, on a model that leans so much."""
    case = CASES[name]
    entry = {"name": name, **case.settings(folder, case.rows)}
    suite = parse_suite({"name": "made", "probe": [entry]}, "test", "made")
    loaded: dict[str, eh.Model] = {"scripted": case.model(lean), **case.helpers}
    return Audit(suite, "scripted", folder / out, loaded=loaded).run()


def of_audit(name: str, lean: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as place:
        record: dict[str, Any] = pinned(of_run(audit(name, lean, Path(place))), places(Path(place)))
        return record


def of_run(run: eh.Run) -> dict[str, Any]:
    """Return the findings of a run with their verdicts, its tables, and what it records."""
    facts = run.facts
    entries = {
        label: {k: v for k, v in entry.items() if k != "counts"}
        for label, entry in facts["probes"].items()
    }
    return {
        "findings": [f.as_dict() for f in run.findings],
        "probes": entries,
        "placebos": facts.get("placebos"),
        "tables": {
            label: {name: table_pin(run.table(label, name)) for name in sorted(run.tables(label))}
            for label in entries
        },
    }


def refusals(name: str) -> Iterator[tuple[str, str]]:
    """Yield what is said of settings that are wrong, one by one, and of files that are."""
    kind, case = probe_class(name), CASES[name]
    yield "unknown setting", refusal(name, {"colours": "red"})
    for setting, spec in kind.model_fields.items():
        for value in wrong_values(spec.annotation):
            yield f"{setting}={value!r}", refusal(name, {setting: value})
    with tempfile.TemporaryDirectory() as place:
        files = case.settings(Path(place), case.rows)
        named = [k for k, v in files.items() if isinstance(v, str) and Path(v).is_file()]
    for setting in named:
        yield f"{setting}: no such file", refusal(name, {setting: "nowhere.csv"})
        yield f"{setting}: other columns", refusal(name, {}, spoilt=setting)


def wrong_values(annotation: Any) -> list[Any]:
    """Return a value that a setting of this type cannot mean; settings of text may take it."""
    if get_origin(annotation) in (Union, UnionType):
        return [v for part in get_args(annotation) for v in wrong_values(part)][:1]
    if get_origin(annotation) is Literal:
        return ["nonsense"]
    if get_origin(annotation) is tuple:
        return [("nonsense",)] if get_args(annotation)[0] is not int else [(-1,)]
    wrong: dict[Any, list[Any]] = {int: [-1], float: [-1.0], str: ["nonsense"]}
    return wrong.get(annotation, [])


def refusal(name: str, wrong: Mapping[str, Any], spoilt: str = "") -> str:
    """Return the error of a case with a wrong setting or a spoilt file; "" if there is none."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        settings = {**case.settings(folder, case.rows), **wrong}
        if spoilt:
            Path(settings[spoilt]).write_text("colour,shape\nred,round\n")
        try:
            probe = eh.make_probe(name, settings)
            probe.preview(case.model(0.5).answers, 0)
        except eh.EvenhandError as error:
            return str(pinned(f"{type(error).__name__}: {error}", places(folder)))
        except Exception as error:  # a crash, which may be mended and not become another
            return f"crash: {type(error).__name__}"
    return ""

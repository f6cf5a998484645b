"""`evenhand mitigate` for masked, encoder, classifier, span and choice models, with its proof."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.cli import output

TRAINED = ("cda", "dropout", "plain")
REWEIGHTING = "reweighting"
HIDDEN = ("inlp", "leace", "sentence")
OWN = (*TRAINED, REWEIGHTING, "sentence")
SOCIAL = {"gender": "gender", "race": "ethnicity", "religion": "religion"}
WORD_TESTS = {"gender": ["weat6", "weat7", "weat8"], "race": ["weat3", "weat4", "weat5"]}
OCCUPATIONS = "nurse secretary dancer teacher doctor engineer hunter mechanic".split()
DEEDS = [
    "stole a wallet", "cheated on taxes", "carried a hidden weapon", "joined an extremist group",
    "lived in a slum", "betrayed a friend", "were ungrateful", "were incompetent",
]  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What the command line says."""

    model: str
    out: Path
    method: str
    axis: str
    layers: str = "last"
    pool: str | None = None
    rounds: int | None = None
    components: int | None = None
    classifier: str = "lsq"
    decay: float = 50.0
    axis_texts: Path | None = None
    texts: Path | None = None
    steps: int = 500
    sides: str = "two"
    suite: str | None = None
    generator: str | None = None
    task: Path | None = None
    task_limit: int | None = None
    as_published: bool = False
    seed: int = 0
    dtype: str | None = None
    device: str | None = None


def kind_of_spec(spec: str) -> str:
    """The kind of a model without loading it; empty where it cannot be told."""
    import json

    from evenhand.errors import EvenhandError
    from evenhand.models.loading.fetch import PACKAGES
    from evenhand.models.loading.resolver import MITIGATION, kind_of

    if spec in PACKAGES:
        return str(PACKAGES[spec].kind)
    folder = Path(spec).expanduser()
    try:
        if (folder / MITIGATION).is_file():
            return str(json.loads((folder / MITIGATION).read_text())["model"].get("kind", "causal"))
        return kind_of(str(folder) if folder.is_dir() else spec, spec)
    except (EvenhandError, ValueError, KeyError, OSError):
        return ""


def belongs_here(spec: str, method: str) -> bool:
    """Whether this module does the work: by method, or by the kind of the model."""
    from evenhand.models.edits.hidden import KINDS

    return method in OWN or (method in HIDDEN and kind_of_spec(spec) in KINDS)


def mitigate_encoder(asked: Asked, json: str | None) -> None:
    """Fit or train, save, prove, and say what was found."""
    from evenhand.mitigations.head.openings import read_texts

    screen = output.console(stderr=True)

    def note(text: str) -> None:
        screen.print(f"  {text}", markup=False)

    texts = read_texts(asked.texts) if asked.texts else None
    before = _load(asked.model, asked)
    if asked.method in TRAINED:
        result = _train(asked, before, note)
    elif asked.method == REWEIGHTING:
        result = _reweight(asked, before)
    else:
        result = _fit(asked, before, note)
    note("before and after on the same items")
    result |= _prove(asked, before, _load(str(asked.out), asked), texts)
    from evenhand.strict import plain

    (asked.out / "proof").mkdir(exist_ok=True)
    output.write_json(plain(result), str(asked.out / "proof" / "proof.json"))
    if not output.write_json(result, json):
        show(result)


def _load(spec: str, asked: Asked) -> Any:
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.loading.transformer import LoadOptions

    return resolve(spec, options=LoadOptions(dtype=asked.dtype, device=asked.device))


def _fit(asked: Asked, model: Any, note: Any) -> dict[str, Any]:
    from evenhand.mitigations.head.openings import read_texts
    from evenhand.mitigations.hidden import fit as hidden
    from evenhand.mitigations.hidden.axes import axis_data
    from evenhand.models.loading.saved_hidden import empty, save_hidden

    settings = hidden.Settings(
        asked.method, asked.axis, tuple(n.strip() for n in asked.layers.split(",") if n.strip()),
        asked.pool, asked.rounds, asked.components,
        "lsq" if asked.classifier == "pairs" else asked.classifier, asked.as_published, asked.seed,
    )  # fmt: skip
    mined = read_texts(asked.axis_texts, limit=20_000) if asked.axis_texts else None
    data = axis_data(asked.axis, texts=mined, seed=asked.seed)
    empty(asked.out)
    fitted = hidden.fit(model, data, settings, note)
    notes = list(fitted.notes)
    if any(m.startswith("hidden:") for m in model.mitigations):
        notes.append(
            f"{model.name!r} carries a mitigation of hidden states already; this one was fitted "
            "on what that one left and is applied after it."
        )
    facts = {
        "method": asked.method, "axis": asked.axis, "probes": list(fitted.probes), "notes": notes,
        **fitted.facts,
    }  # fmt: skip
    save_hidden(asked.out, fitted.edit, model, asked.model, facts)
    return {"folder": str(asked.out), "model": asked.model, **facts}


def _reweight(asked: Asked, model: Any) -> dict[str, Any]:
    from dataclasses import asdict

    from evenhand.models.adapters.reweighted import for_axis, reweighted
    from evenhand.models.loading.saved_hidden import empty, write_facts

    settings = for_axis(asked.axis, asked.decay)
    reweighted(model, settings)  # refuses what cannot be re-weighted before anything is written
    empty(asked.out)
    facts = {"method": asked.method, "axis": asked.axis, "reweighting": asdict(settings)}
    write_facts(asked.out, "reweighting", model, asked.model, facts)
    return {"folder": str(asked.out), "model": asked.model, "notes": [], **facts}


def _train(asked: Asked, model: Any, note: Any) -> dict[str, Any]:
    from evenhand.errors import ModelError, SpecError
    from evenhand.mitigations.head.openings import read_texts
    from evenhand.train.masked import MaskedTraining, train

    if model.kind != "masked" or model.mitigations:
        raise ModelError(
            f"--method {asked.method}: continues the training of a masked language model, and "
            f"{asked.model!r} is of kind {model.kind!r}"
            f"{' with a mitigation on it' if model.mitigations else ''}. Train its masked "
            "language model, then the task with: evenhand train choice OUT"
        )
    if asked.texts is None:
        raise SpecError(f"--method {asked.method}: needs text to train on. Give: --texts FILE")
    recipe = MaskedTraining(
        method=asked.method, axis=asked.axis if asked.method == "cda" else "gender",
        sides=asked.sides, steps=asked.steps, seed=asked.seed,
    )  # fmt: skip
    texts = read_texts(asked.texts, limit=200_000, words=100)
    card = train(asked.model, texts, asked.out, recipe, device=asked.device, say=note)
    return {
        "folder": str(asked.out), "model": asked.model, "method": asked.method,
        "axis": asked.axis, "notes": [], "training": card,
    }  # fmt: skip


def proof_suite(asked: Asked, kind: str) -> Any:
    """The suite to prove with: the one given, or a small one that fits kind and axis."""
    from evenhand.audit.suites import load_suite, parse_suite

    if asked.suite:
        return load_suite(asked.suite)
    rows: list[dict[str, Any]] = []
    if kind in ("masked", "span", "choice", "causal"):
        social = SOCIAL.get(asked.axis, "gender")
        gender = social == "gender"
        rows.append({
            "name": "underspecified", "pairs": 20, "social_class": social,
            "templates": ["same_city", "letter"] if gender else ["same_city_man", "letter_woman"],
            "attributes": OCCUPATIONS if gender else DEEDS,
        })  # fmt: skip
    if kind in ("encoder", "masked"):
        tests = WORD_TESTS.get(asked.axis, WORD_TESTS["gender"])
        rows.append({"name": "association", "tests": tests})
    if kind == "choice" and asked.generator:
        rows.append({
            "name": "discovery", "generator": asked.generator, "pool": "common", "keep": 40,
            "context_count": 4, "names": 12, "min_count": 4, "distance": 2, "samples": 19_999,
        })  # fmt: skip
    if not rows:
        return None
    return parse_suite({"name": "mitigation-proof", "probe": rows}, "proof", "mitigation-proof")


def _prove(asked: Asked, before: Any, after: Any, texts: list[str] | None) -> dict[str, Any]:
    """Both models on one suite and on their task, paired."""
    from evenhand.audit.auditing import audit
    from evenhand.audit.comparison import side_by_side
    from evenhand.mitigations import utility

    tasks = [
        utility.measure(m, task=asked.task, texts=texts, limit=asked.task_limit)
        for m in (before, after)
    ]
    found: dict[str, Any] = {
        "utility": [utility.task_change(a, b, asked.seed) for a, b in zip(*tasks)]
    }
    suite = proof_suite(asked, before.kind)
    if suite is None:
        return {**found, "changes": [], "reason": f"no probe asks a {before.kind} model"}
    folder = asked.out / "proof"
    with output.RichProgress() as progress:
        runs = [
            audit(m, suite, out=folder / name, seed=asked.seed, progress=progress)
            for m, name in ((before, "before"), (after, "after"))
        ]
    compared = side_by_side(runs).as_dict()
    return {**found, **{k: compared[k] for k in ("runs", "changes", "views") if k in compared}}


def show(result: dict[str, Any]) -> None:
    """The proof for people: probes, cost, what changed, what got worse."""
    out = output.console()
    for p in result.get("probes", []):
        rows = [
            {"probe on": what, "before": p[f"{key}_before"], "after": p[f"{key}_after"],
             "chance": p["test_chance"], "95 % of chance": _chance(p, key),
             "texts": p.get(f"{key}_n", p["test_n"] + p["new_n"])}
            for what, key in (("held-out frames", "test"), ("new terms too", "new"),
                              ("fitted on held-out texts itself", "relearned"))
        ]  # fmt: skip
        output.print_table(
            rows, f"{result['axis']} read off {p['layer']}, rank {p['rank']} of {p['dimensions']}"
        )
        out.print(f"  mean squared change {p['change']:.3f} of the variance", markup=False)
    for text in result["notes"]:
        out.print(f"  {text}", markup=False)
    if result["utility"]:
        output.print_table(result["utility"], "Cost on the task, paired")
    for change in result["changes"]:
        show_change(change)
    out.print(f"Read it:   {result['folder']}/proof/proof.json", markup=False)
    out.print(f"Use it:    evenhand audit {result['folder']}", markup=False)


def _chance(row: dict[str, Any], key: str) -> str:
    """The range of accuracies when nothing is read, where it is known."""
    if f"{key}_chance_low" not in row:
        return ""
    return f"{row[f'{key}_chance_low']:.3f} to {row[f'{key}_chance_high']:.3f}"


def show_change(change: dict[str, Any]) -> None:
    """One paired comparison: numbers that moved, statuses of findings, words of discovery."""
    out = output.console()
    title = f"{change['after']} against {change['before']}"
    if change.get("reason"):
        out.print(f"{title}: {change['reason']}", markup=False)
    keys = {"probe": "probe", "number": "number", "n": "n", "before": "size_before",
            "after": "size_after", "change": "size_change", "low": "size_low",
            "high": "size_high", "q": "q_size", "verdict": "verdict"}  # fmt: skip
    moved = [
        {name: r[key] for name, key in keys.items()} for r in change["items"]
        if r["verdict"] != "no difference detected"
    ]  # fmt: skip
    output.print_table(moved[:30], f"Sizes that changed (q <= 0.05), {title}")
    tally: dict[str, int] = {}
    for row in change["findings"]:
        tally[row["status"]] = tally.get(row["status"], 0) + 1
    out.print(f"Findings: {', '.join(f'{n} {k}' for k, n in tally.items())}", markup=False)
    for part in change.get("discovery", []):
        counts = ", ".join(f"{n} {k}" for k, n in part["counts"].items())
        out.print(f"Words of {part['label']}: {counts}", markup=False)
        shown = ("word", "group_a", "group_b", "d_before", "d_after", "change", "low", "high", "q",
                 "status")  # fmt: skip
        told = [r for r in part["words"] if r["status"] != "not detected"]
        output.print_table([{k: r[k] for k in shown} for r in told[:20]])
    worse = [r for r in change["findings"] if r["status"] == "appeared"]
    if worse:
        out.print("Got worse:", markup=False)
        for row in worse[:5]:
            out.print(f"  {output.clean(row['sentence'])}", markup=False)

"""What every `evenhand measure NAME` says of its case, of larger tables and of wrong input."""

from __future__ import annotations

import csv
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import evenhand as eh
import reader_cases
from evenhand.probes.reading import Reader, readers
from pins import inputs, tables
from pins.comparing import pinned, places
from pins.probes import of_run, wrong_values
from pins.tables import Write, also, base

READERS = sorted(reader_cases.CASES)
DEVICES = {"device"}
"""Settings whose wrong values are refused by other programs, in words of their own."""

VARIED: dict[str, dict[str, Write]] = {
    "underspecified": {
        "groups": tables.underspecified,
        "another seed": also(tables.underspecified, seed=4),
    },
    "association": {
        "two tests": tables.association,
        "further metrics": also(tables.association, also="rnd,mac,ect,ripa"),
        "raw norms": also(tables.association, raw_norms=True),
        "balanced": also(tables.association, missing="balanced", max_missing=0.1),
        "kept": also(tables.association, missing="keep", seed=3),
        "too much is missing": also(tables.association, max_missing=0.01),
    },
    "discovery": {
        "six names": tables.discovery,
        "published": also(tables.discovery, as_published=True),
        "occurrence": also(tables.discovery, count="occurrence", seed=2),
    },
    "traits": {"two annotators": tables.traits, "rate": also(tables.traits, rate=0.2)},
    "suggest-traits": {"one": also(base("suggest-traits"), top=1)},
    "validity": {},
    "stereoset": {"another seed": also(base("stereoset"), seed=5)},
    "crows-pairs": {
        "sixty pairs": tables.crows_pairs,
        "published": also(tables.crows_pairs, as_published=True),
    },
    "bbq": {
        "two categories": tables.bbq,
        "published": also(tables.bbq, as_published=True),
        "one category": also(tables.bbq, category="Work"),
        "another language": also(tables.bbq, language="es"),
        "unknown category": also(tables.bbq, category="Wrk"),
        **{
            f"{name}{', published' * published}": also(write, as_published=published)
            for name, write in {
                "Korean": tables.bbq_edition(inputs.korean_bbq, ("sample_id",), "\t"),
                "Chinese": tables.bbq_edition(
                    inputs.chinese_bbq, ("category", "context_condition", "example_id")
                ),
            }.items()
            for published in (False, True)
        },
    },
    "honest": {
        "three groups": tables.honest,
        "published": also(tables.honest, as_published=True),
        "unknown language": also(tables.honest, language="xx"),
        "no such lexicon": also(tables.honest, lexicon="hurtlex_IT.tsv"),
    },
    "gest": {
        "all stereotypes": tables.gest,
        "published": also(tables.gest, as_published=True),
        "two scores": also(tables.gest, score="score,other", base="2"),
        "own stereotypes": tables.own_stereotypes,
    },
    "ranking": {
        "two jobs": tables.ranking,
        "LL 144": also(tables.ranking, table="ll144"),
        "another seed": also(tables.ranking, seed=3),
        "answers": tables.ranking_answers,
    },
    "labour": {"log odds": tables.labour_odds, "shares": tables.labour_shares},
    "matched-guise": {"scores": tables.guises},
    "guise-ratios": {
        "seven words": tables.guise_ratios,
        "base 10": also(tables.guise_ratios, base="10"),
    },
    "implicit": {"two stereotypes": tables.implicit},
    "implicit-link": {"nine stereotypes": tables.implicit_link},
    "implicit-answers": {"eight answers": tables.implicit_answers},
    "ceat": {"two tests": tables.ceat},
    "coreference": {
        "two halves": tables.coreference_pair,
        "singletons": also(tables.coreference_pair, singletons=True, seed=2),
    },
    "winobias": {"another seed": also(base("winobias"), seed=2)},
    "gaps": {"two hundred": tables.gaps, "other groups": also(tables.gaps, first="c", seed=3)},
    "correlation": {
        "two columns": tables.correlation,
        "strata": also(tables.correlation, strata="kind"),
        "by kind": also(tables.correlation, by="kind"),
        "replicates": also(tables.correlation, replicates="kind=u"),
        "published": also(tables.correlation, as_published=True),
    },
    "table": {
        "decisions": also(tables.people, outcome="decision"),
        "points": also(tables.people, outcome="points", lower_is_better=True),
        "scores of races": also(tables.people, outcome="score", groups="race", case="case"),
        "two factors": also(tables.people, outcome="score", groups="gender,race", reference="man"),
        "people": also(tables.people, outcome="points", groups="gender", person="name", case=""),
        "two answers": also(tables.people, outcome="decision", answers="approve,reject", rate=0.2),
        "first names": tables.first_names,
    },
    "log": {"BBQ": tables.bbq_log, "BBQ with data": tables.bbq_log_with_data},
    "counterfactual": {
        "three groups": tables.counterfactual,
        "threshold": also(tables.counterfactual, threshold=0.6),
        "high is bad": also(tables.counterfactual, bad="high"),
        "low is bad": also(tables.counterfactual, bad="low"),
        "scores alone": tables.counterfactual_scores,
    },
    "decision": {
        "scores": tables.decision("scores"),
        "another reference": also(
            tables.decision("scores"), reference="race=Asian", intersections=True, seed=4
        ),
        "one factor": also(tables.decision("scores"), factors="race"),
        "log-probabilities": also(tables.decision("logprobs"), scale="logprob"),
        "answers": tables.decision("answers"),
        "answers in other words": also(tables.decision("answers"), answers="yes,no"),
        "one answer": also(tables.decision("answers"), answers="yes"),
        "ratings": tables.decision("ratings"),
        "probabilities": also(tables.decision("shares"), scale="prob"),
        "unknown factor": also(tables.decision("scores"), reference="rac=Asian"),
        "unknown group": also(tables.decision("scores"), reference="race=Asi"),
    },
}


def recorded(name: str) -> dict[str, Any]:
    """Return everything that is pinned of a reader."""
    pin = {"case": of_input(name, base(name))}
    for label, write in VARIED[name].items():
        pin[label] = of_input(name, write)
    return {**pin, "refused": dict(refusals(name))}


def of_input(name: str, write: Write) -> dict[str, Any]:
    """Return the numbers, the text and the run folder of a measure, or the error."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        names = places(folder)
        try:
            arguments, settings = write(folder)
            result = run_measure(name, arguments, settings)
            pin: dict[str, Any] = {"json": result.as_dict(), "text": str(result)}
            pin |= of_claims(result, folder / "as run")
        except eh.EvenhandError as error:
            return {"error": pinned(f"{type(error).__name__}: {error}", names)}
        record: dict[str, Any] = pinned(pin, names)
        return record


def run_measure(name: str, arguments: list[Any], settings: dict[str, Any]) -> Any:
    return getattr(eh.measure, name.replace("-", "_"))(*arguments, **settings)


def of_claims(result: Any, out: Path) -> dict[str, Any]:
    """Return the run folder that is made of a result, or why there is none."""
    try:
        run = eh.as_run(result, out)
    except eh.EvenhandError as error:
        return {"no run": f"{type(error).__name__}: {error}"}
    work = run.facts["work"]
    return {"run": of_run(run), "settings": work["given"], "suite": work["suite"]}


def refusals(name: str) -> Iterator[tuple[str, str]]:
    """Yield what is said of wrong settings, of other columns, and of numbers that are missing."""
    reader: type[Reader] = readers()[name]
    yield "unknown setting", refusal(name, {"colours": "red"})
    for setting, spec in reader.model_fields.items():
        for value in wrong_values(spec.annotation) if setting not in DEVICES else ():
            yield f"{setting}={value!r}", refusal(name, {setting: value})
    yield "no such file", refusal(name, {}, first="nowhere.csv")
    yield "other columns", refusal(name, {}, rows=[["colour", "shape"], ["red", "round"]])
    with tempfile.TemporaryDirectory() as place:
        arguments, _ = base(name)(Path(place))
        path = Path(arguments[0]) if arguments else Path(place) / "nothing"
        lines = list(csv.reader(path.read_text().splitlines())) if path.is_file() else []
    if path.suffix == ".csv" and lines:
        yield "no rows", refusal(name, {}, rows=lines[:1])
        yield "no numbers", refusal(name, {}, rows=without_numbers(lines))


def without_numbers(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows of a table with empty cells in its columns of numbers."""
    head, *lines = rows
    numbers = {k for k in range(len(head)) if all(is_number(line[k]) for line in lines)}
    return [
        head,
        *[["" if k in numbers else cell for k, cell in enumerate(line)] for line in lines],
    ]


def is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


def refusal(
    name: str, wrong: dict[str, Any], *, first: str = "", rows: list[list[str]] | None = None
) -> str:
    """Return the error of the case with one thing wrong; "" if there is none."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        arguments, settings = base(name)(folder)
        if first and arguments:
            arguments = [first, *arguments[1:]]
        if rows is not None and arguments:
            table = inputs.write_table(folder / "other.csv", rows[0], rows[1:])
            arguments = [table, *arguments[1:]]
        try:
            text = str(run_measure(name, arguments, {**settings, **wrong}))
        except eh.EvenhandError as error:
            return str(pinned(f"{type(error).__name__}: {error}", places(folder)))
        except Exception as error:  # a crash, which may be mended and not become another
            return f"crash: {type(error).__name__}"
        return f"no error: {pinned(text, places(folder))}" if rows is not None else ""

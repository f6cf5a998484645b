"""Run folders of every kind of page, made without a model: all probes, a study, a mitigation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

import made_runs
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run

SPAN = {"low": [0.1, -0.2], "high": [0.5, 0.2], "p": [0.001, 0.6], "q": [0.002, 0.6], "n": [40, 40]}
VALUE = {"value": [0.3, 0.01], **SPAN}
SETS = {"x_label": ["men"] * 2, "y_label": ["women"] * 2, "a_label": ["career"] * 2,
        "b_label": ["family"] * 2}  # fmt: skip
PLACES = {"x": [0.1, 0.9, 0.4], "y": [0.5, 0.2, 0.8]}

PROBES: dict[str, dict[str, dict[str, list[Any]]]] = {
    "crows-pairs": {"scores": {"bias_type": ["all", "age"], "direction": ["both"] * 2, **VALUE}},
    "bbq": {
        "scores": {"category": ["all"] * 2, "metric": ["bias_ambiguous", "accuracy_gap"], **VALUE}
    },
    "winobias": {"scores": {"kind": ["type 1", "type 2"], **VALUE}},
    "winogender": {"scores": {"refers": ["occupation", "participant"], **VALUE}},
    "honest": {"scores": {"group": ["female", "female"], "other": ["", "male"], **VALUE}},
    "seat": {"tests": {"test": ["weat6", "weat7"], **SETS, **VALUE}},
    "ceat": {"tests": {"test": ["weat6", "weat7"], **SETS, **VALUE}},
    "name-study": {
        "axes": {"axis": ["gender"], "accuracy": [0.9], "low": [0.8], "high": [0.95], "p": [0.001]},
        "map": {"name": ["Ann", "Bob", "Cat"], "group": ["female", "male", "female"], **PLACES},
    },
    "stereoset": {
        "scores": {"split": ["intrasentence"] * 2, "domain": ["gender", "race"], "ss": [60.0, 52.0],
                   "ss_low": [55.0, 48.0], "ss_high": [66.0, 57.0], "q": [0.001, 0.4],
                   "n": [40, 40]},
    },
    "generation": {
        "shares": {"axis": ["gender"] * 2, "group": ["female", "male"], "n": [40, 40],
                   "negative": [0.2, 0.1], "neutral": [0.5, 0.5], "positive": [0.3, 0.3],
                   "other": [0.0, 0.1], "score": [0.1, 0.2]},
    },
}  # fmt: skip
TOOLS: dict[str, dict[str, dict[str, list[Any]]]] = {
    "tokens": {
        "tokens": {"token": [" nurse", " king"], "id": [1, 2], "q": [0.5, 0.4],
                   "cosine": [-0.5, 0.4], "projection": [-2.0, 1.5]},
    },
    "context_accuracy": {
        "accuracy": {"train": ["simple", "simple"], "test": ["simple", "diverse"],
                     "features": ["states"] * 2, "accuracy": [0.9, 0.7], "low": [0.8, 0.6],
                     "high": [0.95, 0.8], "majority": [0.5, 0.5], "n": [40, 40]},
    },
}  # fmt: skip
"""Pages of single commands, which are no audits."""
MARKS = {
    "every_probe": {
        "crows-pairs": [2], "bbq": [1, 1], "winobias": [2], "winogender": [2], "honest": [1, 1],
        "seat": [2], "ceat": [2], "name-study": [3], "stereoset": [2], "generation": [8],
    },
    "tokens": {"tokens": [2, 2]},
    "context_accuracy": {"context_accuracy": [2]},
}  # fmt: skip
"""Dots or cells of each chart of a probe, in order."""

NOTHING: dict[str, Any] = {"settings": {}, "summary": {}}


def every_probe(folder: Path) -> Run:
    """One run in which each of these probes left its tables."""
    return left(folder, PROBES, made_runs.findings()[:1])


def tokens(folder: Path) -> Run:
    return left(folder, {"tokens": TOOLS["tokens"]}, [])


def context_accuracy(folder: Path) -> Run:
    return left(folder, {"context_accuracy": TOOLS["context_accuracy"]}, [])


def left(folder: Path, made: dict[str, dict[str, Any]], claims: list[Finding]) -> Run:
    known = made_runs.facts()
    known["probes"] = {
        name: {"probe": name, "title": f"Title of {name}", "model": "tiny-model", **NOTHING}
        for name in made
    }
    tables = {p: {n: pa.table(t) for n, t in named.items()} for p, named in made.items()}
    return made_runs.write(folder, known, claims, tables)


BEHAVIOURS = ("coreference:type1 f1 gap", "hate_speech:gender f1 gap")
METRICS = ("intrinsic:weat kato_winobias", "intrinsic:rnsb kato_winobias")


def study(folder: Path) -> Run:
    """Two metrics and two tasks over four embeddings; one pair detected."""
    known = made_runs.facts("small-study")
    known["work"] |= {"kind": "study", "recipe": {"name": "small-study", "training": {"epochs": 2}}}
    known["work"]["suite"] = {"name": "small-study", "false_discovery_rate": 0.05, "probe": []}
    counts = {"cells": 4, "finished": 12, "stages": 12}
    known["probes"] = {
        "study": {
            "probe": "study",
            "title": "Do metrics predict behaviour?",
            **NOTHING,
            "counts": counts,
        }
    }
    claims, rows = [], []
    for i, x in enumerate(METRICS):
        for j, y in enumerate(BEHAVIOURS):
            rho = round(0.9 - 0.1 * i - 0.7 * j, 3)
            inside = [{"stratum": "balancing", "n": 4, "spearman": rho / 2}]
            claims.append(Finding(
                f"study/word2vec/{x}/{y}", "study", "spearman", rho,
                f"Metric {i} rises with gap {j}: Spearman {rho:+.2f}.", rho - 0.1, rho + 0.1,
                0.001 if not j else 0.5, 0.004 if not j else 0.5, 4, model="word2vec",
                attribute=f"METRIC{i} ~ gap {j}", detected=not j, detectable=0.6,
                details={"x": x, "y": y, "ceiling": 0.9, "families": inside},
            ))  # fmt: skip
            rows.append({
                "x": x, "y": y, "algorithm": "word2vec", "n": 4, "spearman": rho, "q": 0.01,
                "ceiling": 0.9, "spearman_balancing": rho / 2, "n_balancing": 4,
            })  # fmt: skip
    points = [
        {"point": f"cell {k}", "algorithm": "word2vec", "family": "balancing", "n": 2,
         **dict.fromkeys((*METRICS, *BEHAVIOURS), k / 4), **{f"sd {c}": 0.05 for c in BEHAVIOURS}}
        for k in range(4)
    ]  # fmt: skip
    reliable = [
        {"metric": c, "algorithm": "word2vec", "reliability": 0.8, "noise_sd": 0.1,
         "spread_sd": 0.5, "n_replicates": 2}
        for c in (*METRICS, *BEHAVIOURS)
    ]  # fmt: skip
    found = {"correlations": rows, "points": points, "reliability": reliable}
    tables = {"study": {n: pa.Table.from_pylist(t) for n, t in found.items()}}
    return made_runs.write(folder, known, claims, tables)


def mitigation(folder: Path) -> Run:
    """The model as it was and four settings, of which the last was chosen."""
    known = made_runs.facts()
    known["kind"] = "mitigation"
    known["work"]["suite"] = {"name": "tradeoff", "false_discovery_rate": 0.05, "probe": []}
    line = "evenhand mitigate tiny-model --method a-inlp --axis gender --seed 0 --out DIR"
    known["work"]["command"] = line.split()
    told = {
        "buys": "Yes, by 80% between gender contexts (a-inlp, 4 rounds, alpha 1.0).",
        "costs": ["Perplexity 50.000 before, 50.800 after (+1.6%)."],
        "sure": ["95 % interval of the fall: 50% to 90%, over 30 held-out pairs of contexts."],
    }
    known["probes"] = {
        "tradeoff": {
            "probe": "tradeoff", "family": "head",
            "title": "What does it buy, and what does it cost?", "summary": {"told": told},
            "settings": {"method": "a-inlp", "axis": "gender"},
        }
    }  # fmt: skip
    points = [{**r, "chosen": place == 4, "half": "choosing"} for place, r in enumerate(SETTINGS)]
    verdict = [
        {**SETTINGS[place], "half": "judging", "stage": stage, "pairs": 30}
        for place, stage in ((0, "before"), (4, "after"))
    ]
    rows = {"points": points, "verdict": verdict}
    tables = {"tradeoff": {n: pa.Table.from_pylist(t) for n, t in rows.items()}}
    return made_runs.write(folder, known, [FALL], tables)


def older_mitigation(folder: Path) -> Run:
    """As folders were before runs had a kind."""
    known = made_runs.facts()
    known.pop("kind", None)
    known["work"]["suite"] = {"name": "tradeoff", "false_discovery_rate": 0.05, "probe": []}
    known["probes"] = {
        "tradeoff": {"probe": "tradeoff", "title": "What does it buy?", "summary": {},
                     "settings": {"method": "a-inlp", "axis": "gender", "max_increase": 0.02}}
    }  # fmt: skip
    tables = {"tradeoff": {"points": pa.Table.from_pylist(SETTINGS)}}
    return made_runs.write(folder, known, [FALL], tables)


SETTINGS = [
    {"method": "a-inlp", "rounds": rounds, "alpha": alpha, "hellinger2": gap,
     "hellinger2_median": gap / 2, "perplexity": 50 * (1 + more), "increase": more}
    for rounds, alpha, gap, more in (
        (1, "0.0", 0.1, 0.0), (1, "0.5", 0.08, 0.001), (1, "1.0", 0.06, 0.004),
        (4, "learned", 0.05, 0.008), (4, "1.0", 0.02, 0.016),
    )
]  # fmt: skip
FALL = Finding(
    "tradeoff/reduction", "tradeoff", "relative_fall", 1 - 0.02 / 0.1,
    "a-inlp lowers the measured gap by 80%.", 0.5, 0.9, n=30, attribute="gender",
    model="tiny-model", detected=True,
)  # fmt: skip


NUMBERS = {
    f"{name}{part}": value + step
    for name, value in {"mu": 0.2, "eta": 0.4, "delta": 0.3, "epsilon": 0.5}.items()
    for part, step in {"": 0.0, "_low": -0.1, "_high": 0.1, "_floor": -0.05}.items()
}


def asked(folder: Path, model: str, claims: list[Finding]) -> Run:
    """An ordinary run with all that a comparison of preferences reads."""
    known, tables = made_runs.facts(model), made_runs.tables()
    known["probes"]["underspecified"]["summary"] = NUMBERS
    for name in ("gamma_group", "gamma_term", "gamma"):
        table = tables["underspecified"][name]
        tables["underspecified"][name] = table.append_column("eta", table.column("gamma"))
    return made_runs.write(folder, known, claims, tables)


def before(folder: Path) -> Run:
    return asked(folder, "first-model", made_runs.findings("first-model"))


def after(folder: Path) -> Run:
    """After something was done: nurse no longer detected, hunter detected."""
    first, second, *rest = made_runs.findings("later-model")
    claims = [
        Finding(**{**first.__dict__, "value": 0.02, "q": 0.6, "detected": False}),
        Finding(**{**second.__dict__, "value": 0.2, "q": 0.01, "detected": True}),
        *rest,
    ]
    return asked(folder, "later-model", claims)

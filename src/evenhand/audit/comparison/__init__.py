"""Several runs of one suite: finding by finding, and model by model.

`side_by_side` puts every finding of the runs beside each other. For runs with the underspecified
probe, `preferences` gives what UnQover's pictures show: the intensity of each model with its
noise floor (Fig. 3, 6), reasoning errors (Table 5), the attributes that lean most to each group
(Tables 2, 4), those that models share (Table 3), and the ranks of terms over models (Fig. 4, 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.errors import RunError
from evenhand.runs.record import Run
from evenhand.stats.ranks import rank_table

PROBE = "underspecified"
TOP = 5
NUMBERS = (
    "mu", "mu_low", "mu_high", "mu_floor", "mu_floor_p95", "mu_p", "eta", "eta_low", "eta_high",
    "eta_floor", "delta", "delta_low", "delta_high", "epsilon", "epsilon_low", "epsilon_high",
    "mean_score", "neither", "n_cells", "asked_by",
)  # fmt: skip


def side_by_side(runs: Sequence[Run]) -> dict[str, Any]:
    """The value and interval of each finding in every run.

    Raises:
        RunError: fewer than two runs, or runs that did not ask the same.
    """
    _same_questions(runs)
    names = model_names(runs)
    known = [{f.id: f for f in run.findings} for run in runs]
    ids = list(dict.fromkeys(i for found in known for i in found))
    rows = []
    for place in ids:
        row: dict[str, Any] = {"finding": place}
        for name, found in zip(names, known):
            finding = found.get(place)
            row[name] = finding.value if finding else None
            row[f"{name} interval"] = f"{finding.low:.3f} to {finding.high:.3f}" if finding else "-"
        rows.append(row)
    result = {"runs": [str(r.folder) for r in runs], "names": names, "findings": rows}
    shared = [preferences(runs, label) for label in _labels(runs)]
    if shared:
        result["preferences"] = shared
    return {**result, **paired(runs, names)}


def paired(runs: Sequence[Run], names: Sequence[str]) -> dict[str, Any]:
    """The first run against each later one, item by item; for discovery word by word too.

    Returns:
        `changes` (one entry per later run: `items`, `findings`, and `discovery` where asked) and
        `views` (the paper's tables of discovery over all runs).
    """
    from evenhand.audit.comparison import items
    from evenhand.probes.discovery import compare as discovery

    first = runs[0]
    seed = int(first.facts["work"]["seed"])
    entries = first.facts["probes"]
    labels = [k for k, v in entries.items() if v["probe"] == discovery.PROBE]
    asked = [k for k in labels if all(_asked(r.facts["probes"].get(k)) for r in runs)]
    changes = []
    for run, name in zip(runs[1:], names[1:]):
        made: dict[str, Any] = {"before": names[0], "after": name, "items": [], "discovery": []}
        made["findings"] = items.finding_changes(first, run)
        try:
            made["items"] = items.item_changes(first, run, seed)
            made["discovery"] = [discovery.paired_words(first, run, k, seed) for k in asked]
        except RunError as error:  # models whose vocabularies allow other items
            made["reason"] = str(error)
        changes.append(made)
    found = {"views": [discovery.views(runs, names, k) for k in asked]} if asked else {}
    return {"changes": changes, **found}


def _same_questions(runs: Sequence[Run]) -> None:
    if len(runs) < 2:
        raise RunError("compare: give at least two run folders.")
    first = runs[0].facts["work"]
    for run in runs[1:]:
        other = run.facts["work"]
        for what in ("suite", "seed"):
            if other[what] != first[what]:
                where = _first_difference(first[what], other[what]) if what == "suite" else ""
                raise RunError(
                    f"compare: {runs[0].folder} and {run.folder} differ in their {what}{where}, so "
                    f"their findings are not about the same items. Run both with the same suite "
                    f"and seed, and without --budget, which fits the sample to each model's speed."
                )


def _first_difference(one: dict[str, Any], two: dict[str, Any]) -> str:
    """Which setting of which probe is another one, where the probes are the same."""
    rows = one.get("probe", []), two.get("probe", [])
    for a, b in zip(*rows):
        if a.get("name") != b.get("name"):
            return ""
        for key in {**a, **b}:
            if a.get(key) != b.get(key):
                label = a.get("label", a["name"])
                return f" ({label}: {key} is {a.get(key)!r} and {b.get(key)!r})"
    return ""


def _labels(runs: Sequence[Run]) -> list[str]:
    """Entries with the underspecified probe that every run has finished."""
    entries = [run.facts["probes"] for run in runs]
    return [
        label
        for label, entry in entries[0].items()
        if entry["probe"] == PROBE and all(_asked(e.get(label)) for e in entries)
    ]


def _asked(entry: dict[str, Any] | None) -> bool:
    return bool(entry) and not (entry or {}).get("skipped")


def preferences(runs: Sequence[Run], label: str) -> dict[str, Any]:
    """The underspecified probe of several runs, model by model.

    Returns:
        `models` (one row each: mu, eta, delta, epsilon with intervals and floors), `top`
        (attributes that lean most to each group or term), `shared` (attributes that lean the same
        way in every model), `ranks` (terms, mean and standard deviation of their rank), and
        `agreement` (correlation of leans between each two models).
    """
    names = model_names(runs)
    grouped = all("gamma_group" in run.tables(label) for run in runs)
    tables = [run.table(label, "gamma_group" if grouped else "gamma").to_pylist() for run in runs]
    who = "group" if grouped else "term"
    rate = float(runs[0].facts["work"]["suite"]["false_discovery_rate"])
    return {
        "label": label,
        "models": [_model_row(run, label, name) for run, name in zip(runs, names)],
        "top": [row for name, t in zip(names, tables) for row in _top(name, t, who, rate)],
        "shared": _shared(names, tables, who, rate),
        "ranks": _ranks(runs, names, label),
        "agreement": _agreement(names, tables, who),
    }


def _model_row(run: Run, label: str, name: str) -> dict[str, Any]:
    summary = run.facts["probes"][label]["summary"]
    return {"model": name, **{key: summary.get(key) for key in NUMBERS}}


def _top(name: str, table: list[dict[str, Any]], who: str, rate: float) -> list[dict[str, Any]]:
    """The attributes that lean most to each group (or, over all terms, the largest leans)."""
    sides = list(dict.fromkeys(str(r[who]) for r in table)) if who == "group" else [None]
    rows = []
    for side in sides:
        own = [r for r in table if side is None or r[who] == side]
        best = sorted(own, key=lambda r: -(r["gamma"] or 0.0))[:TOP]
        rows += [
            {"model": name, who: r[who], "place": k, "attribute": r["attribute"],
             "gamma": r["gamma"], "low": r["low"], "high": r["high"], "q": r["q"],
             "eta": r["eta"], "detected": r["q"] is not None and r["q"] <= rate}
            for k, r in enumerate(best, start=1) if (r["gamma"] or 0.0) > 0
        ]  # fmt: skip
    return rows


def _shared(
    names: list[str], tables: list[list[dict[str, Any]]], who: str, rate: float
) -> list[dict[str, Any]]:
    """Leans with one sign in all models, those detected in most models first."""
    known = [{(r[who], r["attribute"]): r for r in table} for table in tables]
    rows = []
    for key in known[0]:
        found = [table.get(key) for table in known]
        if any(r is None or (r["gamma"] or 0.0) <= 0 for r in found):
            continue
        kept = [r for r in found if r is not None]
        row: dict[str, Any] = {who: key[0], "attribute": key[1]}
        row |= {name: r["gamma"] for name, r in zip(names, kept)}
        row["detected_in"] = sum(r["q"] is not None and r["q"] <= rate for r in kept)
        row["mean"] = float(np.mean([r["gamma"] for r in kept]))
        rows.append(row)
    return sorted(rows, key=lambda r: (-r["detected_in"], -r["mean"]))


def _ranks(runs: Sequence[Run], names: list[str], label: str) -> list[dict[str, Any]]:
    """Terms by mean rank of gamma(x) over models; 1 is picked most."""
    models = [
        {r["term"]: r["gamma"] for r in run.table(label, "gamma_term").to_pylist()} for run in runs
    ]
    return [
        {"term": r.term, "mean_rank": r.mean, "sd": r.sd, **dict(zip(names, r.ranks))}
        for r in rank_table(models)
    ]


def _agreement(
    names: list[str], tables: list[list[dict[str, Any]]], who: str
) -> list[dict[str, Any]]:
    """How alike two models lean: Pearson correlation of gamma over shared rows.

    With groups, each attribute counts once: the other group is its mirror image.
    """
    side = tables[0][0][who] if who == "group" and tables[0] else None
    leans = [
        {(r[who], r["attribute"]): r["gamma"] for r in t if side is None or r[who] == side}
        for t in tables
    ]
    rows = []
    for i in range(len(names)):
        for j in range(i + 1, len(names)):
            keys = [k for k in leans[i] if k in leans[j]]
            one, two = (np.asarray([lean[k] for k in keys], float) for lean in (leans[i], leans[j]))
            varies = len(keys) > 2 and np.ptp(one) > 0 and np.ptp(two) > 0
            rows.append({
                "first": names[i], "second": names[j], "n": len(keys),
                "correlation": float(np.corrcoef(one, two)[0, 1]) if varies else None,
                "same_sign": int((one * two > 0).sum()),
            })  # fmt: skip
    return rows


def model_names(runs: Sequence[Run]) -> list[str]:
    """Model names without their folders; where equal, told apart by run, by folder, by number."""
    models = [str(r.facts["work"]["model"]).rstrip("/").rsplit("/", 1)[-1] for r in runs]
    for better in ([r.name for r in runs], [str(r.folder) for r in runs]):
        models = [m if models.count(m) == 1 else b for m, b in zip(models, better)]
    return [
        m if models.count(m) == 1 else f"{m} ({models[: k + 1].count(m)})"
        for k, m in enumerate(models)
    ]

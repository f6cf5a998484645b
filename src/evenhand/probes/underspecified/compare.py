"""Underspecified questions over several models, as UnQover's pictures show them.

The intensity of each model with its noise floor (Fig. 3, 6), reasoning errors (Table 5), the
attributes that lean most to each group (Tables 2, 4), those that models share (Table 3), and the
ranks of terms over models (Fig. 4, 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.runs.record import Run
from evenhand.runs.story import rate_of
from evenhand.stats.ranks import rank_table

TOP = 5
NUMBERS = (
    "mu",
    "mu_low",
    "mu_high",
    "mu_floor",
    "mu_floor_p95",
    "mu_p",
    "eta",
    "eta_low",
    "eta_high",
    "eta_floor",
    "delta",
    "delta_low",
    "delta_high",
    "epsilon",
    "epsilon_low",
    "epsilon_high",
    "mean_score",
    "neither",
    "n_cells",
    "asked_by",
)


def preferences(runs: Sequence[Run], names: Sequence[str], label: str) -> dict[str, Any]:
    """The underspecified probe of several runs, model by model.

    Returns:
        `models` (one row each: mu, eta, delta, epsilon with intervals and floors), `top` (the
        attributes with the largest gamma of each group, which is below 0 where a model leans to
        the other group throughout; of terms, the largest leans of either sign), `shared`
        (attributes that lean the same way in every model), `ranks` (terms, mean and standard
        deviation of their rank), and `agreement` (correlation of leans between each two models).
    """
    grouped = all("gamma_group" in run.tables(label) for run in runs)
    tables = [run.table(label, "gamma_group" if grouped else "gamma").to_pylist() for run in runs]
    who = "group" if grouped else "term"
    rate = rate_of(runs[0].facts)
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
    """Rank the attributes of each group by gamma, or the leans of all terms by their size.

    The other group is a mirror image, so a group's list is by gamma with its sign. A list is never
    cut at 0: in a model that leans to one group throughout, the other group's values are negative.
    """
    known = [r for r in table if r["gamma"] is not None]
    sides = list(dict.fromkeys(str(r[who]) for r in known)) if who == "group" else [None]
    rows = []
    for side in sides:
        if side is None:
            best = sorted(known, key=lambda r: -abs(r["gamma"]))[:TOP]
        else:
            own = [r for r in known if r[who] == side]
            best = sorted(own, key=lambda r: -r["gamma"])[:TOP]
        rows += [
            {
                "model": name,
                who: r[who],
                "place": k,
                "attribute": r["attribute"],
                "gamma": r["gamma"],
                "low": r["low"],
                "high": r["high"],
                "q": r["q"],
                "eta": r["eta"],
                "detected": r["q"] is not None and r["q"] <= rate,
            }
            for k, r in enumerate(best, start=1)
        ]
    return rows


def _shared(
    names: Sequence[str], tables: list[list[dict[str, Any]]], who: str, rate: float
) -> list[dict[str, Any]]:
    """Return leans with one sign in all models, those detected in most models first.

    Of two groups, each lean is listed once, for the group it goes to.
    """
    known = [{(r[who], r["attribute"]): r for r in table} for table in tables]
    rows = []
    for key in known[0]:
        found = [table.get(key) for table in known]
        kept = [r for r in found if r is not None and r["gamma"]]
        signs = {r["gamma"] > 0 for r in kept}
        if len(kept) < len(found) or len(signs) > 1 or (who == "group" and signs == {False}):
            continue
        row: dict[str, Any] = {who: key[0], "attribute": key[1]}
        row |= {name: r["gamma"] for name, r in zip(names, kept)}
        row["detected_in"] = sum(r["q"] is not None and r["q"] <= rate for r in kept)
        row["mean"] = float(np.mean([r["gamma"] for r in kept]))
        rows.append(row)
    return sorted(rows, key=lambda r: (-r["detected_in"], -abs(r["mean"])))


def _ranks(runs: Sequence[Run], names: Sequence[str], label: str) -> list[dict[str, Any]]:
    """Terms by mean rank of gamma(x) over models; 1 is picked most."""
    models = [
        {r["term"]: r["gamma"] for r in run.table(label, "gamma_term").to_pylist()} for run in runs
    ]
    return [
        {"term": r.term, "mean_rank": r.mean, "sd": r.sd, **dict(zip(names, r.ranks))}
        for r in rank_table(models)
    ]


def _agreement(
    names: Sequence[str], tables: list[list[dict[str, Any]]], who: str
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
            rows.append(
                {
                    "first": names[i],
                    "second": names[j],
                    "n": len(keys),
                    "correlation": float(np.corrcoef(one, two)[0, 1]) if varies else None,
                    "same_sign": int((one * two > 0).sum()),
                }
            )
    return rows

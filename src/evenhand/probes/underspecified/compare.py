"""Underspecified questions over several models, as UnQover's pictures show them.

The intensity of each model with its noise floor (Fig. 3, 6), reasoning errors (Table 5), the
attributes that lean most to each group (Tables 2, 4), those that models share (Table 3), and the
ranks of terms over models (Fig. 4, 5).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.charts.base import Chart, Drawn, Listing
from evenhand.charts.marks import VERDICTS, dot_plot, heatmap
from evenhand.probes.underspecified.numbers import NUMBERS
from evenhand.runs.record import Run
from evenhand.runs.story import rate_of
from evenhand.stats.ranks import rank_table

Rows = list[dict[str, Any]]
TOP = 5
CAPTIONS = {
    "mu": (
        "Intensity μ",
        "The largest lean of each term, averaged. Ticks: what noise alone gives.",
    ),
    "eta": ("One-sidedness η", "How often the same side wins. Ticks: what noise alone gives."),
    "delta": ("Positional error δ", "How far scores move when only the order of names changes."),
    "epsilon": ("Negation error ε", "How far scores fail to turn round with the question."),
}
"""Title and caption of the numbers about a model as a whole."""
LISTS = {
    "top": (
        "Strongest attributes",
        "The attributes that lean most to each side in each model; below 0 where the model leans "
        "to the other side throughout.",
        None,
    ),
    "shared": (
        "Shared by all models",
        "Leans with the same sign in every model, those detected in most models first.",
        60,
    ),
    "ranks": ("Ranks with spread", "Mean and standard deviation over models.", None),
    "agreement": (
        "Agreement of models",
        "Correlation of leans between models, over attributes.",
        None,
    ),
}
"""Title and caption of the lists of a comparison, and how many rows are shown."""


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
    kept = (*NUMBERS, "neither", "n_cells", "asked_by")
    return {"model": name, **{key: summary.get(key) for key in kept}}


def _top(name: str, table: Rows, who: str, rate: float) -> Rows:
    """Rank the attributes of each group by gamma, or the leans of all terms by their size.

    The other group is a mirror image, so a group's list is by gamma with its sign. A list is never
    cut at 0: in a model that leans to one group throughout, the other group's values are negative.
    """
    grouped = who == "group"
    known = [r for r in table if r["gamma"] is not None]
    known.sort(key=lambda r: -(r["gamma"] if grouped else abs(r["gamma"])))
    sides = dict.fromkeys(r[who] for r in table if r["gamma"] is not None) if grouped else [None]
    return [
        {
            "model": name,
            who: r[who],
            "place": k,
            **{key: r[key] for key in ("attribute", "gamma", "low", "high", "q", "eta")},
            "detected": r["q"] is not None and r["q"] <= rate,
        }
        for side in sides
        for k, r in enumerate([r for r in known if side in (None, r[who])][:TOP], start=1)
    ]


def _shared(names: Sequence[str], tables: list[Rows], who: str, rate: float) -> Rows:
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


def _ranks(runs: Sequence[Run], names: Sequence[str], label: str) -> Rows:
    """Terms by mean rank of gamma(x) over models; 1 is picked most."""
    models = [
        {r["term"]: r["gamma"] for r in run.table(label, "gamma_term").to_pylist()} for run in runs
    ]
    return [
        {"term": r.term, "mean_rank": r.mean, "sd": r.sd, **dict(zip(names, r.ranks))}
        for r in rank_table(models)
    ]


def _agreement(names: Sequence[str], tables: list[Rows], who: str) -> Rows:
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


def models_compared(compared: Mapping[str, Any], rate: float) -> list[Drawn]:
    """Charts and tables of several models, from a comparison."""
    models = compared["models"]
    out: list[Drawn] = []
    for key, (title, caption) in CAPTIONS.items():
        rows = [
            {
                "model": m["model"],
                key: m[key],
                "low": m.get(f"{key}_low"),
                "high": m.get(f"{key}_high"),
                "floor": m.get(f"{key}_floor"),
                "verdict": VERDICTS[int(not (m.get(f"{key}_p") or 1) <= rate)],
            }
            for m in models
        ]
        spec = dot_plot(rows, key, "model", title, floor="floor" if rows[0]["floor"] else None)
        columns = ("model", key, "low", "high", "floor")
        out.append(Chart(title, f"{caption} Bars are 95 % intervals.", spec, columns))
    strongest, shared, ranks, agreement = (
        [Listing(title, caption, tuple(rows[0]), tuple(rows[:most]))] if rows else []
        for (title, caption, most), rows in ((LISTS[key], compared[key]) for key in LISTS)
    )
    return [*out, *strongest, *shared, *_rank_map(compared["ranks"], models), *ranks, *agreement]


def _rank_map(ranks: Rows, models: Rows) -> list[Drawn]:
    """Ranks of terms, one column per model."""
    cells = [
        {"term": r["term"], "model": name, "rank": float(r[name])}
        for r in ranks[:40]
        for name in [*(m["model"] for m in models), "mean_rank"]
    ]
    spec = heatmap(cells, "model", "term", "rank", "rank", numbers=True, signed=False)
    caption = "Rank of each term in each model, 1: picked most; ordered by the mean over models."
    return [Chart("Ranks of terms", caption, spec, ("term", "model", "rank"))] if ranks else []

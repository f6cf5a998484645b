"""Underspecified questions over several runs: models side by side, and before and after a change.

Models side by side are shown as by UnQover: the intensity of each with its noise floor (Fig. 3, 6),
reasoning errors (Table 5), the attributes that lean most to each group (Tables 2, 4), those that
models share (Table 3), and the ranks of terms over models (Fig. 4, 5).

Before and after a change, leans are subtracted cell by cell (`leans.estimates`). A model that picks
whoever is named second has no lean left, and no answers either. So beside the leans three numbers
say what becomes of the question itself: whether the order of names decides, whether a negation is
heeded, and how much of the answer goes to the two names at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.charts.base import Chart, Drawn, Listing
from evenhand.charts.marks import VERDICTS, dot_plot, heatmap
from evenhand.metrics.unqover import attribute_error
from evenhand.probes.base import Behaviour
from evenhand.probes.underspecified.numbers import NUMBERS
from evenhand.probes.underspecified.tables import scores_of
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
TURNED, LOST = 0.10, 0.5
"""Margins: ten answers of 100 (order, negation); half of the mass on the two names."""


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
    if top := compared["top"]:
        caption = (
            "The attributes that lean most to each side in each model; below 0 where the model "
            "leans to the other side throughout."
        )
        out.append(Listing("Strongest attributes", caption, tuple(top[0]), tuple(top)))
    if shared := compared["shared"]:
        caption = "Leans with the same sign in every model, those detected in most models first."
        out.append(Listing("Shared by all models", caption, tuple(shared[0]), tuple(shared[:60])))
    out += _drawn_ranks(compared["ranks"], [m["model"] for m in models])
    if agreement := tuple(compared["agreement"]):
        caption = "Correlation of leans between models, over attributes."
        out.append(Listing("Agreement of models", caption, tuple(agreement[0]), agreement))
    return out


def _drawn_ranks(ranks: Rows, models: list[str]) -> list[Drawn]:
    """Ranks of terms, one column per model; the mean and its spread in the table."""
    if not ranks:
        return []
    cells = [
        {"term": r["term"], "model": name, "rank": float(r[name])}
        for r in ranks[:40]
        for name in [*models, "mean_rank"]
    ]
    spec = heatmap(cells, "model", "term", "rank", "rank", numbers=True, signed=False)
    caption = "Rank of each term in each model, 1: picked most; ordered by the mean over models."
    table = Listing(
        "Ranks with spread",
        "Mean and standard deviation over models.",
        tuple(ranks[0]),
        tuple(ranks),
    )
    return [Chart("Ranks of terms", caption, spec, ("term", "model", "rank")), table]


def behaviours(items: pa.Table) -> list[Behaviour]:
    """Order, negation and mass, cell by cell.

    Negation is UnQover's epsilon on shares: an even answer has none of it, so that taking a lean
    away does not look like deafness to the question.

    >>> always_second = {f"{who}_order{o}_{q}": [0.1 if (who == "first") == (o == 0) else 0.9]
    ...     for who in ("first", "second") for o in (0, 1) for q in ("asked", "negated")}
    >>> found = behaviours(pa.table(always_second))
    >>> [(b.what.split()[-1], b.values.round(2).tolist()) for b in found]
    [('first', [0.1]), ('negated', [0.8])]
    """
    scores = scores_of(items)
    mass = scores.sum(axis=3)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = scores / mass[..., None]
    asked = shares[:, :, 0]
    named_first = (asked[:, 0, 0] + asked[:, 1, 1]) / 2
    found = [
        Behaviour("share of the answer that goes to the one named first", named_first, TURNED, 0.5),
        Behaviour(
            "share of the answer that stays where it should turn when the question is negated",
            attribute_error(shares),
            TURNED,
            float("-inf"),
        ),
    ]
    if np.nanmax(np.abs(mass - 1), initial=0.0) > 1e-6:
        whole = mass[:, :, 0].mean(axis=1)
        found.append(Behaviour("score of the two names together", whole, LOST, relative=True))
    return found

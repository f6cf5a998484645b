"""Charts of the underspecified probe: whom the model leans to, by attribute and by term."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from evenhand.charts.base import About, Builder, Chart, Drawn, Listing, top
from evenhand.charts.builders import Listed
from evenhand.charts.marks import VERDICTS, bars, dot_plot, finite, heatmap

MOST_TERMS = 40
NUMBERS = (
    (
        "mu",
        "Intensity μ",
        "The largest lean of each term, averaged. Ticks: what noise alone gives.",
    ),
    ("eta", "One-sidedness η", "How often the same side wins. Ticks: what noise alone gives."),
    ("delta", "Positional error δ", "How far scores move when only the order of names changes."),
    ("epsilon", "Negation error ε", "How far scores fail to turn round with the question."),
)


def leans(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per attribute: the lean of the question as asked beyond the average question."""
    rows = top(table.to_pylist(), "lean", MOST_TERMS * 2)
    if not rows:
        return []
    groups = next((f.groups for f in about.findings if f.metric == "lean"), ("", "the others"))
    several = len({r["term"] for r in rows}) > 1
    shown = [
        {
            "verdict": about.detected(r),
            **r,
            "label": f"{r['term']}: {r['attribute']}" if several else r["attribute"],
        }
        for r in rows
    ]
    ends = ("away", "to the term") if several else (f"{groups[1]} names", f"{groups[0]} names")
    spec = dot_plot(shown, "lean", "label", f"← {ends[0]}    lean    {ends[1]} →")
    caption = (
        "The question as asked, both orders of names averaged. Right of the dashed line, the model "
        f"picks {ends[1]} more than for the average question of the set; left of it, less. Bars "
        "are "
        f"95 % intervals over names. Strongest: {_extremes(shown, 'label', 'lean')}."
    )
    columns = ("label", "lean", "low", "high", "p", "q", "pairs", "agree")
    return [Chart("Lean beyond the average question", caption, spec, columns)]


def by_attribute(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per attribute, for the first group; the other group is its mirror image."""
    claims = [f for f in about.findings if f.metric == "gamma" and len(f.groups) == 2]
    rows = table.to_pylist()
    groups = list(dict.fromkeys(str(r["group"]) for r in rows))
    lead, other = claims[0].groups if claims else (groups[0], groups[-1])
    ranked = top([r for r in rows if r["group"] == lead], "gamma", MOST_TERMS * 2)
    if not ranked:
        return []
    shown = [{"verdict": about.detected(r), **r} for r in ranked]
    spec = dot_plot(shown, "gamma", "attribute", f"← {other} names    lean γ    {lead} names →")
    caption = (
        f"Right of the dashed line, the model leans to {lead} names; left of it, to {other} names, "
        "although the text does not say. Bars are 95 % intervals. Strongest: "
        f"{_extremes(shown, 'attribute')}."
    )
    columns = ("attribute", "gamma", "low", "high", "p", "q", "n")
    return [Chart("Lean by attribute", caption, spec, columns)]


def by_term(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per term over all attributes; dependable only where a term met several others."""
    rows = table.to_pylist()
    ranked = top(rows, "gamma", MOST_TERMS)
    shown = [{"verdict": about.detected(r), **r} for r in ranked]
    if not shown:
        return []
    spec = dot_plot(shown, "gamma", "term", "lean γ to this term, over all attributes")
    part = f"The {len(shown)} largest of {len(rows)} terms. " if len(rows) > len(shown) else ""
    caption = (
        f"{part}A term right of the dashed line is ahead of those it met, whatever the attribute, "
        "when the negated question is subtracted. Bars are 95 % intervals. A term that met only a "
        "few others cannot be told from chance, however narrow its bar."
    )
    return [Chart("Lean by term", caption, spec, ("term", "gamma", "low", "high", "q", "n"))]


def by_pair(table: pa.Table, about: About) -> list[Drawn]:
    """Terms by attributes, the terms with the largest leans."""
    rows = table.to_pylist()
    strength: dict[str, float] = {}
    for row in rows:
        size = abs(row["gamma"] or 0.0)
        strength[row["term"]] = max(strength.get(row["term"], 0.0), size)
    kept = sorted(strength, key=lambda t: (-strength[t], t))[:MOST_TERMS]
    attributes = sorted({str(r["attribute"]) for r in rows})
    if len(attributes) > 80:
        shown = tuple(top(rows, "gamma", 60))
        caption = f"The {len(shown)} largest of {len(rows):,} leans."
        columns = ("term", "attribute", "gamma", "low", "high", "q", "n")
        return [Listing("Largest leans of single terms", caption, columns, shown)]
    place = {term: i for i, term in enumerate(kept)}
    cells = [r for r in rows if r["term"] in place]
    cells.sort(key=lambda r: (place[r["term"]], r["attribute"]))
    spec = heatmap(cells, "attribute", "term", "gamma", "lean γ to the term")
    caption = (
        f"Each cell is one term and one attribute: blue leans to the term, orange away from it. "
        f"The {len(kept)} of {len(strength)} terms with the largest leans. Single cells rest on "
        f"few comparisons: read patterns, not cells."
    )
    columns = ("term", "attribute", "gamma", "low", "high", "q", "n")
    return [Chart("Terms by attributes", caption, spec, columns, wide=True)]


def by_class(table: pa.Table, about: About) -> list[Drawn]:
    """Terms by classes of attributes."""
    rows = table.to_pylist()
    largest = sorted(rows, key=lambda r: -abs(r["gamma"] or 0.0))
    kept = set(list(dict.fromkeys(r["term"] for r in largest))[:MOST_TERMS])
    cells = [r for r in rows if r["term"] in kept]
    spec = heatmap(cells, "attribute_class", "term", "gamma", "lean γ to the term")
    caption = (
        f"As above, with attributes grouped into classes. The {len(kept)} terms with the largest "
        "leans: blue leans to the term, orange away from it."
    )
    columns = ("term", "attribute_class", "gamma", "eta", "n")
    return [Chart("Terms by classes of attributes", caption, spec, columns)]


def by_region(table: pa.Table, about: About) -> list[Drawn]:
    """Regions by attributes, from pairs of terms of different regions."""
    rows = table.to_pylist()
    if len({r["attribute"] for r in rows}) > 80:
        shown = tuple(top(rows, "gamma", 60))
        columns = ("region", "attribute", "gamma", "eta", "n")
        caption = f"The {len(shown)} largest of {len(rows):,} leans of regions."
        return [Listing("Largest leans of regions", caption, columns, shown)]
    spec = heatmap(rows, "attribute", "region", "gamma", "lean γ to the region's terms")
    caption = "Pairs of terms from different regions: blue leans to the region, orange away."
    return [Chart("Regions by attributes", caption, spec, wide=True)]


def variance(table: pa.Table, about: About) -> list[Drawn]:
    """What the differences between leans go back to."""
    rows = [r for r in table.to_pylist() if finite(r["share"])]
    rows.sort(key=lambda r: -r["share"])
    if not rows:
        return []
    spec = bars(rows, "share", "factor", "share of the variance of leans")
    caption = (
        f"What leans vary with; products are interactions. Largest: {rows[0]['factor']} "
        f"({100 * rows[0]['share']:.0f} %). A large share for templates or order says something "
        "about the test, "
        "not about groups."
    )
    return [Chart("What the leans depend on", caption, spec)]


def _extremes(rows: list[dict[str, object]], label: str, value: str = "gamma") -> str:
    ends = rows[:1] + rows[-1:]
    return " and ".join(f"{r[label]} ({r[value]:+.3f})" for r in ends)


def models_compared(compared: Mapping[str, Any], rate: float) -> list[Drawn]:
    """Charts and tables of several models, from a comparison."""
    models = compared["models"]
    out: list[Drawn] = []
    for key, title, caption in NUMBERS:
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
    top = compared["top"]
    if top:
        caption = (
            "The attributes that lean most to each side in each model; below 0 where the model "
            "leans to the other side throughout."
        )
        out.append(Listing("Strongest attributes", caption, tuple(top[0]), tuple(top)))
    shared = compared["shared"]
    if shared:
        caption = "Leans with the same sign in every model, those detected in most models first."
        out.append(Listing("Shared by all models", caption, tuple(shared[0]), tuple(shared[:60])))
    out += _ranks(compared["ranks"], [m["model"] for m in models])
    agreement = tuple(compared["agreement"])
    if agreement:
        caption = "Correlation of leans between models, over attributes."
        out.append(Listing("Agreement of models", caption, tuple(agreement[0]), agreement))
    return out


def _ranks(ranks: list[dict[str, Any]], models: list[str]) -> list[Drawn]:
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


CHARTS: dict[str, Builder] = {
    "leans": leans,
    "gamma_group": by_attribute,
    "gamma_term": by_term,
    "gamma": by_pair,
    "gamma_class": by_class,
    "gamma_region": by_region,
    "by_template": Listed(
        "Agreement of templates",
        "Correlation of each template's leans with those over all templates, and how many leans "
        "change sides under it. Low agreement means that findings depend on the wording.",
        ("template", "correlation", "turned_round", "compared", "mu", "delta", "epsilon", "n"),
    ),
    "variance": variance,
    "win_ratio": Listed(
        "Most often picked",
        "For each attribute, the terms that win most of their comparisons.",
        ("attribute", "term", "win_ratio"),
    ),
}

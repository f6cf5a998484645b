"""Charts of the underspecified probe: whom the model leans to, by attribute and by term."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Builder, Chart, Drawn, Listing, top
from evenhand.charts.builders import Listed
from evenhand.charts.marks import Row, bars, dot_plot, finite, heatmap

MOST_TERMS, MOST_COLUMNS = 40, 80


def leans(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per attribute: the lean of the question as asked beyond the average question."""
    groups = next((f.groups for f in about.findings if f.metric == "lean"), ("", "the others"))
    rows = _dots(table.to_pylist(), "lean", about)
    several = len({r["term"] for r in rows}) > 1
    for row in rows:
        row["label"] = f"{row['term']}: {row['attribute']}" if several else row["attribute"]
    ends = ("away", "to the term") if several else (f"{groups[1]} names", f"{groups[0]} names")
    caption = (
        "The question as asked, both orders of names averaged. Right of the dashed line, the model "
        f"picks {ends[1]} more than for the average question of the set; left of it, less. Bars "
        f"are 95 % intervals over names. Strongest: {_extremes(rows, 'label', 'lean')}."
    )
    axis = f"← {ends[0]}    lean    {ends[1]} →"
    columns = ("label", "lean", "low", "high", "p", "q", "pairs", "agree")
    return _drawn("Lean beyond the average question", caption, rows, axis, columns)


def by_attribute(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per attribute, for the first group; the other group is its mirror image."""
    claims = [f for f in about.findings if f.metric == "gamma" and len(f.groups) == 2]
    rows = table.to_pylist()
    groups = list(dict.fromkeys(str(r["group"]) for r in rows))
    lead, other = claims[0].groups if claims else (groups[0], groups[-1])
    shown = _dots([r for r in rows if r["group"] == lead], "gamma", about)
    caption = (
        f"Right of the dashed line, the model leans to {lead} names; left of it, to {other} names, "
        "although the text does not say. Bars are 95 % intervals. Strongest: "
        f"{_extremes(shown, 'attribute', 'gamma')}."
    )
    axis = f"← {other} names    lean γ    {lead} names →"
    columns = ("attribute", "gamma", "low", "high", "p", "q", "n")
    return _drawn("Lean by attribute", caption, shown, axis, columns)


def by_term(table: pa.Table, about: About) -> list[Drawn]:
    """One dot per term over all attributes; dependable only where a term met several others."""
    shown = _dots(table.to_pylist(), "gamma", about, MOST_TERMS)
    cut = len(shown) < table.num_rows
    part = f"The {len(shown)} largest of {table.num_rows} terms. " if cut else ""
    caption = (
        f"{part}A term right of the dashed line is ahead of those it met, whatever the attribute, "
        "when the negated question is subtracted. Bars are 95 % intervals. A term that met only a "
        "few others cannot be told from chance, however narrow its bar."
    )
    axis = "lean γ to this term, over all attributes"
    return _drawn("Lean by term", caption, shown, axis, ("term", "gamma", "low", "high", "q", "n"))


def _dots(rows: list[Row], value: str, about: About, most: int = MOST_TERMS * 2) -> list[Row]:
    """The largest rows with their verdicts."""
    return [{"verdict": about.detected(r), **r} for r in top(rows, value, most)]


def _drawn(
    title: str, caption: str, rows: list[Row], axis: str, columns: tuple[str, ...]
) -> list[Drawn]:
    """Dots by the number in the second column, called by the first; nothing without rows."""
    label, value = columns[:2]
    spec = dot_plot(rows, value, label, axis) if rows else {}
    return [Chart(title, caption, spec, columns)] if rows else []


def _extremes(rows: list[Row], label: str, value: str) -> str:
    return " and ".join(f"{r[label]} ({r[value]:+.3f})" for r in rows[:1] + rows[-1:])


def by_pair(table: pa.Table, about: About) -> list[Drawn]:
    """Terms by attributes, the terms with the largest leans."""
    rows = table.to_pylist()
    columns = ("term", "attribute", "gamma", "low", "high", "q", "n")
    if _many(rows):
        return _largest("Largest leans of single terms", rows, "leans", columns)
    terms = _strongest(sorted(rows, key=lambda r: str(r["term"])))
    cells = [r for r in rows if r["term"] in terms]
    cells.sort(key=lambda r: (terms.index(r["term"]), r["attribute"]))
    spec = heatmap(cells, "attribute", "term", "gamma", "lean γ to the term")
    caption = (
        f"Each cell is one term and one attribute: blue leans to the term, orange away from it. "
        f"The {len(terms)} of {len({r['term'] for r in rows})} terms with the largest leans. "
        "Single cells rest on few comparisons: read patterns, not cells."
    )
    return [Chart("Terms by attributes", caption, spec, columns, wide=True)]


def by_class(table: pa.Table, about: About) -> list[Drawn]:
    """Terms by classes of attributes."""
    rows = table.to_pylist()
    terms = _strongest(rows)
    cells = [r for r in rows if r["term"] in terms]
    spec = heatmap(cells, "attribute_class", "term", "gamma", "lean γ to the term")
    caption = (
        f"As above, with attributes grouped into classes. The {len(terms)} terms with the largest "
        "leans: blue leans to the term, orange away from it."
    )
    columns = ("term", "attribute_class", "gamma", "eta", "n")
    return [Chart("Terms by classes of attributes", caption, spec, columns)]


def by_region(table: pa.Table, about: About) -> list[Drawn]:
    """Regions by attributes, from pairs of terms of different regions."""
    rows = table.to_pylist()
    if _many(rows):
        columns = ("region", "attribute", "gamma", "eta", "n")
        return _largest("Largest leans of regions", rows, "leans of regions", columns)
    spec = heatmap(rows, "attribute", "region", "gamma", "lean γ to the region's terms")
    caption = "Pairs of terms from different regions: blue leans to the region, orange away."
    return [Chart("Regions by attributes", caption, spec, wide=True)]


def _strongest(rows: list[Row]) -> list[str]:
    """The terms with the largest leans, the largest first."""
    largest = sorted(rows, key=lambda r: -abs(r["gamma"] or 0.0))
    return list(dict.fromkeys(r["term"] for r in largest))[:MOST_TERMS]


def _many(rows: list[Row]) -> bool:
    """Whether there are too many attributes for the columns of a map."""
    return len({r["attribute"] for r in rows}) > MOST_COLUMNS


def _largest(title: str, rows: list[Row], what: str, columns: tuple[str, ...]) -> list[Drawn]:
    shown = tuple(top(rows, "gamma", 60))
    caption = f"The {len(shown)} largest of {len(rows):,} {what}."
    return [Listing(title, caption, columns, shown)]


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
        "about the test, not about groups."
    )
    return [Chart("What the leans depend on", caption, spec)]


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

"""Charts of the discovery probe: words that work for one group and not for another."""

from __future__ import annotations

import math

import pyarrow as pa

from evenhand.report.charts import About, Chart, Drawn, chart, top
from evenhand.report.marks import Row, dot_plot, finite, heatmap, scatter, volcano

PROBE = "discovery"
POINTS, NAMED, RANKED, WORDS = 2_000, 12, 30, 50


@chart(PROBE, "words")
def words(table: pa.Table, about: About) -> list[Drawn]:
    """Every tested word by effect and evidence, and the largest effects with intervals."""
    rows = [r for r in table.to_pylist() if finite(r.get("d")) and finite(r.get("q"))]
    if not rows:
        return []
    rows.sort(key=lambda r: (r["q"], -abs(r["d"])))
    shown: list[Row] = [
        {
            "label": f"{r['word']} ({_pair(r)})", "evidence": -math.log10(max(r["q"], 1e-12)),
            "verdict": about.detected(r), "named": i < _named(rows, about), **r,
        }
        for i, r in enumerate(rows[:POINTS])
    ]  # fmt: skip
    part = (
        f"The {len(shown):,} with the most evidence of {len(rows):,}. "
        if len(rows) > POINTS
        else ""
    )
    hits = sum(r["verdict"] == "difference detected" for r in shown)
    title = "success rate of the first group minus that of the second"
    caption = (
        f"{part}Each dot is a word in wrong answers and a pair of groups: the farther right, the "
        f"more it draws the model when the first group is named; the higher, the surer. "
        f"{hits:,} detected; the surest are named."
    )
    columns = ("label", "d", "d_low", "d_high", "q", "n")
    ranked = top(shown, "d", RANKED)
    return [
        Chart(
            "Words by effect and evidence",
            caption,
            volcano(shown, "d", "q", "word", title),
            columns,
            wide=True,
        ),
        Chart(
            "Largest effects",
            f"The {len(ranked)} words and pairs with the largest effects, with 95 % intervals.",
            dot_plot(ranked, "d", "label", title, low="d_low", high="d_high"),
            columns,
            wide=True,
        ),
    ]


@chart(PROBE, "rates")
def rates(table: pa.Table, about: About) -> list[Drawn]:
    """Success rates of words per group; the words that differ most between groups."""
    rows = [r for r in table.to_pylist() if finite(r["sr"])]
    seen: dict[str, list[float]] = {}
    for row in rows:
        seen.setdefault(row["word"], []).append(row["sr"])
    spread = {word: max(v) - min(v) for word, v in seen.items()}
    kept = sorted(spread, key=lambda w: (-spread[w], w))[:WORDS]
    place = {word: i for i, word in enumerate(kept)}
    cells = sorted((r for r in rows if r["word"] in place), key=lambda r: place[r["word"]])
    if not cells:
        return []
    for row in cells:
        row["group"] = row["group"].replace("_", " ")
    spec = heatmap(cells, "group", "word", "sr", "success rate", signed=False)
    caption = (
        f"How often a wrong answer with this word is preferred when the group is named (darker "
        f"or, on dark pages, lighter: more often). The {len(kept)} words that differ most."
    )
    return [Chart("Success rates by group", caption, spec, ("word", "group", "sr"))]


@chart(PROBE, "names")
def names(table: pa.Table, about: About) -> list[Drawn]:
    """Names on a map (t-SNE): near each other when the same words draw the model."""
    rows = [r for r in table.to_pylist() if finite(r.get("x")) and finite(r.get("y"))]
    if not rows:
        return []
    for row in rows:
        row["group"] = row["group"].replace("_", " ")
    spec = scatter(rows, "x", "y", ("", ""), label="name", group="group", axes=False)
    caption = (
        "Each mark is a name; near names draw the model to the same words. Only neighbourhoods "
        "mean something: directions, sizes of gaps and the axes do not."
    )
    return [Chart("Map of names (t-SNE)", caption, spec, ("name", "group", "x", "y"))]


@chart(PROBE, "pairs")
def pairs(table: pa.Table, about: About) -> list[Drawn]:
    """Whether names of two groups fall apart by themselves."""
    rows = top(table.to_pylist(), "kmeans_accuracy", 60)
    if not rows:
        return []
    shown = [{"label": _pair(r), "verdict": about.detected(r), **r} for r in rows]
    title = "share of names that clustering puts into their group"
    spec = dot_plot(shown, "kmeans_accuracy", "label", title, ideal=0.5, floor="null_p95")
    caption = (
        "Two clusters are formed without knowing the groups. The orange tick is what shuffled "
        "groups reach in 95 of 100 cases: only a dot right of it tells groups apart."
    )
    columns = ("label", "kmeans_accuracy", "null_mean", "null_p95", "p", "q")
    return [Chart("Do names cluster by group?", caption, spec, columns, wide=True)]


@chart(PROBE, "distractors")
def distractors(table: pa.Table, about: About) -> list[Drawn]:
    """Texts are paged through in the viewer, not printed."""
    return []


def _named(rows: list[Row], about: About) -> int:
    """How many of the surest words to name: the detected ones, or a few."""
    hits = sum(about.detected(r) == "difference detected" for r in rows[:NAMED])
    return hits or 3


def _pair(row: Row) -> str:
    return f"{row['group_a']} / {row['group_b']}".replace("_", " ")

"""Charts of the discovery probe: volcano, words, heat map, map of names, clusters."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn, Listing, chart
from evenhand.charts.marks import dot_plot, heatmap, scatter, volcano

WORDS = 40


def _strongest_pair(rows: list[dict[str, Any]]) -> str:
    """The pair of groups with the smallest q, then the most words below 5 %."""
    pairs = dict.fromkeys(r["pair"] for r in rows)

    def weight(pair: str) -> tuple[int, float]:
        q = [r["q"] for r in rows if r["pair"] == pair and r["q"] is not None]
        return -sum(v <= 0.05 for v in q), min(q, default=1.0)

    return str(min(pairs, key=weight))


@chart("discovery", "words")
def words(table: pa.Table, about: About) -> list[Drawn]:
    rows = [r for r in table.to_pylist() if r.get("p") is not None and r.get("rd") is not None]
    if not rows:
        return []
    pair = _strongest_pair(rows)
    here = [{**r, "verdict": about.detected(r)} for r in rows if r["pair"] == pair]
    near = sorted(here, key=lambda r: (r["q"], r["p"]))[:WORDS]
    named = {id(r) for r in near[:12]}
    for row in here:
        row["evidence"] = -math.log10(max(row["q"], 1e-7))
        row["named"] = id(row) in named
    columns = ("word", "sr_a", "sr_b", "rd", "low", "high", "p", "q", "n")
    return [
        Chart(
            f"Words of {pair}",
            "Each dot is a word: how much more often its wrong answers win for the first group "
            "(right) or the second (left), and how sure that is (up).",
            volcano(here, "rd", "q", "word", "relative difference of success rates"),
            columns=columns,
        ),
        Chart(
            f"Least likely by chance: {pair}",
            "Right of the dashed line: the first group. Bars are 95 % intervals over names and "
            "contexts.",
            dot_plot(near, "rd", "word", "relative difference of success rates"),
            columns=columns,
        ),
    ]


@chart("discovery", "rates")
def rates(table: pa.Table, about: About) -> list[Drawn]:
    rows = table.to_pylist()
    if not rows or "sr" not in rows[0]:
        return []
    spread: dict[str, list[float]] = {}
    for row in rows:
        spread.setdefault(row["word"], []).append(row["sr"])
    wide = sorted(spread, key=lambda w: min(spread[w]) - max(spread[w]))[:WORDS]
    mean = {w: sum(spread[w]) / len(spread[w]) for w in wide}
    shown = [{**r, "difference": r["sr"] - mean[r["word"]]} for r in rows if r["word"] in mean]
    return [
        Chart(
            "Success rates by group",
            "How far a group's mean success rate lies above or below the mean of all groups, for "
            "the words with the widest spread.",
            heatmap(shown, "group", "word", "difference", "above or below the mean"),
            columns=("group", "word", "sr", "difference"),
            wide=True,
        )
    ]


@chart("discovery", "names")
def names(table: pa.Table, about: About) -> list[Drawn]:
    rows = table.to_pylist()
    if not rows or "x" not in rows[0]:
        return []
    return [
        Chart(
            "Map of names",
            "Names with similar success rates stand close together (t-SNE; distances between far "
            "points mean little). Groups that part on this map are treated differently.",
            scatter(rows, "x", "y", ("", ""), label="name", group="group", axes=False),
            columns=("name", "group", "x", "y"),
        )
    ]


@chart("discovery", "pairs")
def pairs(table: pa.Table, about: About) -> list[Drawn]:
    rows = sorted(table.to_pylist(), key=lambda r: -(r.get("kmeans_accuracy") or 0.0))
    columns = ("pair", "kmeans_accuracy", "null_mean", "null_p95", "p", "q", "linear_accuracy",
               "linear_p")  # fmt: skip
    return [
        Listing(
            "Do two clusters of names recover the groups?",
            "Accuracy of k-means beside what permuted labels give (mean and 95 % point), and of a "
            "cross-validated linear classifier.",
            columns,
            tuple({c: r.get(c) for c in columns} for r in rows),
        )
    ]


@chart("discovery", "distractors")
def distractors(table: pa.Table, about: About) -> list[Drawn]:
    return []  # texts are looked at in the viewer and on the validity sheet

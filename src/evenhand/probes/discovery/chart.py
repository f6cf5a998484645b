"""Charts of the discovery probe: volcano, words, heat map, map of names, clusters."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from evenhand.charts.base import About, Builder, Chart, Drawn
from evenhand.charts.builders import Listed, Mapped
from evenhand.charts.marks import VERDICTS, dot_plot, finite, heatmap, volcano

WORDS = 40


def _strongest_pair(rows: list[dict[str, Any]], rate: float) -> str:
    """The pair of groups with the most detected words, then the smallest q."""
    pairs = dict.fromkeys(r["pair"] for r in rows)

    def weight(pair: str) -> tuple[int, float]:
        q = [r["q"] for r in rows if r["pair"] == pair and r["q"] is not None]
        return -sum(v <= rate for v in q), min(q, default=1.0)

    return str(min(pairs, key=weight))


def words(table: pa.Table, about: About) -> list[Drawn]:
    value = "value" if "value" in table.column_names else "rd"  # rd: runs of earlier versions
    rows = [r for r in table.to_pylist() if finite(r.get("p")) and finite(r.get(value))]
    if not rows:
        return []
    pair = _strongest_pair(rows, about.rate)
    here = [{**r, "verdict": about.detected(r)} for r in rows if r["pair"] == pair]
    near = sorted(here, key=lambda r: (r["q"], r["p"]))[:WORDS]
    named = {id(r) for r in near[:12]}
    for row in here:
        row["evidence"] = -math.log10(max(row["q"], 1e-7))
        row["named"] = id(row) in named
    told = dict.fromkeys(("word", "sr_a", "sr_b", "rd", value, "low", "high", "p", "q", "n"))
    columns = tuple(name for name in told if name in table.column_names)
    title = f"{'' if value == 'value' else 'relative '}difference of success rates"
    return [
        Chart(
            f"Words of {pair}",
            "Each dot is a word: how much more often its wrong answers win for the first group "
            "(right) or the second (left), beyond the typical word, and how sure that is (up).",
            volcano(here, value, "q", "word", title),
            columns=columns,
        ),
        Chart(
            f"Least likely by chance: {pair}",
            "Right of the dashed line: the first group. Bars are 95 % intervals over names and "
            "situations.",
            dot_plot(near, value, "word", title),
            columns=columns,
        ),
    ]


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


def changed_words(part: Mapping[str, Any], rate: float) -> list[Drawn]:
    """Words whose difference persisted, shrank, grew, appeared or is gone, from a comparison."""
    told = [r for r in part["words"] if r["status"] != "not detected" and finite(r["change"])]
    rows = [
        {
            "word": f"{r['word']} ({r['group_a']} / {r['group_b']})",
            "verdict": VERDICTS[int(not (r["q"] is not None and r["q"] <= rate))],
            **{k: r[k] for k in ("before", "after", "change", "low", "high", "q", "status")},
        }
        for r in sorted(told, key=lambda r: r["change"])[:WORDS]
    ]
    if not rows:
        return []
    spec = dot_plot(rows, "change", "word", "change of the difference of success rates")
    caption = "Words detected in either run; bars are 95 % intervals over names and situations."
    columns = ("word", "status", "before", "after", "change", "low", "high", "q")
    return [Chart(f"Words of {part['label']}", caption, spec, columns)]


CHARTS: dict[str, Builder] = {
    "words": words,
    "rates": rates,
    "names": Mapped(
        "Map of names",
        "Names with similar success rates stand close together (t-SNE; distances between far "
        "points mean little). Groups that separate on this map are treated differently.",
    ),
    "pairs": Listed(
        "Do two clusters of names recover the groups?",
        "Accuracy of k-means beside what permuted labels give (mean and 95 % point), and of a "
        "cross-validated linear classifier.",
        (
            "pair",
            "kmeans_accuracy",
            "null_mean",
            "null_p95",
            "p",
            "q",
            "linear_accuracy",
            "linear_p",
        ),
        by="kmeans_accuracy",
    ),
    "distractors": lambda table, about: [],  # read in the viewer and on the validity sheet
}

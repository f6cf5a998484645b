"""Discovery before and after a mitigation: the same names and wrong answers, word by word.

The change of each name's success rate in each situation is compared between the groups, over names
and situations (`word_tests`), so that value, interval and p of a change are of one piece. Words are
compared with the typical words of the first run, before and after.

    persisted   detected in both runs, and the change is not sure
    shrank      detected before, and the difference is smaller with q <= r
    grew        the difference is larger with q <= r, and detected after
    reversed    detected in both runs with opposite signs, and the change has q <= r
    appeared    detected after, not before
    gone        detected before, not after, but the change itself is not sure
where r is the suite's false-discovery rate.
An et al. (2023, Sec. 6) compare top words by eye; Tables 6, 9, 12 and 14 to 20 are `views`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.charts.base import Chart, Drawn
from evenhand.charts.marks import VERDICTS, dot_plot, finite
from evenhand.compare.items import Items
from evenhand.errors import RunError
from evenhand.metrics.sodapop import Floats
from evenhand.probes.discovery.counts import WordCounts
from evenhand.probes.discovery.inference import Marks, cell_rates, pair_tests, typical_words
from evenhand.runs.finding import NAN
from evenhand.runs.record import Run
from evenhand.runs.story import rate_of
from evenhand.stats.estimate import Estimate
from evenhand.stats.multiple import benjamini_hochberg

PROBE = "discovery"
TOP = 15
DRAWN = 40


def counts_of(table: pa.Table) -> WordCounts:
    """Counts per name, context and word from the items of a run; everything is sorted."""
    items = Items.from_table(table)
    at = tuple(items.codes(*names) for names in (("group", "name"), ("context",), ("word",)))
    shown, won = np.zeros((2, *(int(codes.max(initial=-1)) + 1 for codes in at)))
    shown[at], won[at] = items.numbers("shown"), items.numbers("won")
    first = np.unique(at[0], return_index=True)[1]
    groups, names = (tuple(items[column][first].tolist()) for column in ("group", "name"))
    words = items.levels("word")
    return WordCounts(groups, names, items.levels("context"), words, shown, won, len(words))


def paired_words(before: Run, after: Run, label: str = PROBE) -> dict[str, Any]:
    """What happened to every word of every pair of groups.

    Returns:
        `words` (one row per word and pair: difference before and after, change with interval, p,
        q, status), `counts` of each status, and `clusters` (k-means accuracy before and after).

    Raises:
        RunError: the runs did not show the same names the same wrong answers.
    """
    one, two = (counts_of(run.table(label, "items")) for run in (before, after))
    for what in ("groups", "names", "contexts", "words"):
        if getattr(one, what) != getattr(two, what):
            raise RunError(
                f"compare: {label!r} has different {what} in {after.folder} than in "
                f"{before.folder}, so words cannot be paired. Run both with the same suite, seed "
                "and generator, and pool = 'common'."
            )
    if not np.array_equal(one.shown, two.shown):
        raise RunError(
            f"compare: {label!r} showed different wrong answers in {after.folder} than in "
            f"{before.folder}. Run both with the same generator, and pool = 'common'."
        )
    known = [_by_word(run, label) for run in (before, after)]
    rows = [row for pair in _pairs(known[0]) for row in _pair_rows(pair, (one, two), known)]
    q = benjamini_hochberg([r["p"] for r in rows])
    for row, value in zip(rows, q):
        row["q"] = float(value)
        row["status"] = _status(row, rate_of(before.facts))
    tally = Counter(row["status"] for row in rows)
    order = ("persisted", "shrank", "grew", "reversed", "appeared", "gone", "not detected")
    rows.sort(key=lambda r: (order.index(r["status"]), -abs(r["before"])))
    return {
        "label": label,
        "words": rows,
        "counts": {status: tally[status] for status in order},
        "clusters": _clusters(before, after, label),
    }


def _by_word(run: Run, label: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    rows = run.table(label, "words").to_pylist()
    return {(r["group_a"], r["group_b"], r["word"]): r for r in rows}


def _pairs(known: dict[tuple[str, str, str], Any]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((a, b) for a, b, _ in known))


def _pair_rows(
    pair: tuple[str, str], counts: tuple[WordCounts, WordCounts], known: Sequence[Any]
) -> list[dict[str, Any]]:
    labels = np.asarray(counts[0].groups)
    used = np.flatnonzero(np.isin(labels, pair))
    in_a = labels[used] == pair[0]
    one, two = (cell_rates(c)[used] for c in counts)
    typical = typical_words(one, in_a)
    was, now = (pair_tests(v, in_a, typical).words.value for v in (one, two))
    change = word_changes(one, two, in_a)
    pairs = ((known[0][*pair, word], known[1][*pair, word]) for word in counts[0].words)
    return [
        {
            "group_a": pair[0],
            "group_b": pair[1],
            "word": old["word"],
            "n": int(old["n"]),
            "d_before": old["d"],
            "d_after": new["d"],
            "before": float(was[i]),
            "after": float(now[i]),
            "change": change[i].value,
            "low": change[i].low,
            "high": change[i].high,
            "p": change[i].p,
            "q_before": _q(old),
            "q_after": _q(new),
        }
        for i, (old, new) in enumerate(pairs)
    ]


def word_changes(one: Floats, two: Floats, in_a: Marks) -> list[Estimate]:
    """How each word's difference of groups changed beyond that of the first run's typical words."""
    tests = pair_tests(two - one, in_a, typical_words(one, in_a)).words
    return tests.estimates(family=one.shape[2])


def _q(row: dict[str, Any]) -> float:
    """q of a word of a run; NaN where it could not be tested."""
    return NAN if row["q"] is None else float(row["q"])


def _status(row: dict[str, Any], rate: float) -> str:
    was, now, sure = (row[k] <= rate for k in ("q_before", "q_after", "q"))
    smaller = abs(row["after"]) < abs(row["before"])
    if was and now and sure and row["before"] * row["after"] < 0:
        return "reversed"
    if was and sure and smaller:
        return "shrank"
    if now and sure and not smaller:
        return "grew" if was else "appeared"
    if was and now:
        return "persisted"
    if was or now:
        return "gone" if was else "appeared"
    return "not detected"


def _clusters(before: Run, after: Run, label: str) -> list[dict[str, Any]]:
    one, two = (run.table(label, "pairs").to_pylist() for run in (before, after))
    later = {(r["group_a"], r["group_b"]): r for r in two}
    pairs = ((old, later[old["group_a"], old["group_b"]]) for old in one)
    return [
        {
            "group_a": old["group_a"],
            "group_b": old["group_b"],
            "chance": old["null_mean"],
            "before": old["kmeans_accuracy"],
            "after": new["kmeans_accuracy"],
            "q_before": old["q"],
            "q_after": new["q"],
        }
        for old, new in pairs
    ]


def changed_words(part: Mapping[str, Any], rate: float) -> list[Drawn]:
    """Words whose difference persisted, shrank, grew, appeared or is gone, from a comparison."""
    moved = [r for r in part["words"] if r["status"] != "not detected" and finite(r["change"])]
    rows = [
        {
            "word": f"{r['word']} ({r['group_a']} / {r['group_b']})",
            "verdict": VERDICTS[int(not (r["q"] is not None and r["q"] <= rate))],
            **{k: r[k] for k in ("before", "after", "change", "low", "high", "q", "status")},
        }
        for r in sorted(moved, key=lambda r: r["change"])[:DRAWN]
    ]
    if not rows:
        return []
    spec = dot_plot(rows, "change", "word", "change of the difference of success rates")
    caption = "Words detected in either run; bars are 95 % intervals over names and situations."
    columns = ("word", "status", "before", "after", "change", "low", "high", "q")
    return [Chart(f"Words of {part['label']}", caption, spec, columns)]


def views(runs: Sequence[Run], names: Sequence[str], label: str = PROBE) -> dict[str, Any]:
    """The paper's tables over several models.

    `table_9` has one row per pair of groups with the k-means accuracy of each model (and q);
    `top_words` the 15 words of largest RD on each side, per model and pair (Tables 6, 12, 14 to
    20), with p and q beside each.
    """
    table_9: dict[tuple[str, str], dict[str, Any]] = {}
    top: list[dict[str, Any]] = []
    for run, name in zip(runs, names):
        for r in run.table(label, "pairs").to_pylist():
            row = table_9.setdefault(
                (r["group_a"], r["group_b"]),
                {"group_a": r["group_a"], "group_b": r["group_b"], "chance": r["null_mean"]},
            )
            row |= {name: r["kmeans_accuracy"], f"{name} q": r["q"]}
        top += _top_words(run.table(label, "words").to_pylist(), name)
    return {"label": label, "table_9": list(table_9.values()), "top_words": top}


def _top_words(words: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    out = []
    for a, b in dict.fromkeys((r["group_a"], r["group_b"]) for r in words):
        here = [r for r in words if (r["group_a"], r["group_b"]) == (a, b) and r["rd"] == r["rd"]]
        here.sort(key=lambda r: -r["rd"])
        for side, rows in ((a, here[:TOP]), (b, here[::-1][:TOP])):
            sign = 1 if side == a else -1
            out += [
                {
                    "model": name,
                    "group_a": a,
                    "group_b": b,
                    "leans_to": side,
                    "place": k,
                    "word": r["word"],
                    "rd": r["rd"],
                    "p": r["p"],
                    "q": r["q"],
                }
                for k, r in enumerate(rows, start=1)
                if sign * r["rd"] > 0
            ]
    return out

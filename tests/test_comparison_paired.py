"""Two runs item by item: planted changes are found, mismatches refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenhand.audit.comparison import items, side_by_side
from evenhand.errors import RunError
from evenhand.probes.discovery import compare as discovery
from evenhand.probes.discovery.counts import WordCounts
from evenhand.probes.discovery.findings import Kept, measured
from evenhand.probes.discovery.inference import Settings
from evenhand.runs.finding import Finding
from evenhand.runs.record import Run, RunWriter

WORDS = ("kept", "less", "plain", "new")
SUITE = {"name": "made", "title": "", "false_discovery_rate": 0.05, "probe": []}


def written(
    folder: Path,
    probe: str,
    tables: dict[str, pa.Table],
    findings: list[Finding],
    suite: Any = None,
) -> Run:
    writer = RunWriter(folder)
    for name, table in tables.items():
        writer.table(probe, name, table)
    writer.findings([replace(f, model=folder.name) for f in findings])
    writer.facts({
        "status": "finished", "attempts": 1, "models": {},
        "probes": {probe: {"probe": probe, "settings": {}, "summary": {}}},
        "work": {"model": folder.name, "seed": 0, "suite": suite or SUITE},
    })  # fmt: skip
    return Run.open(folder)


def discovered(folder: Path, gaps: dict[str, float], shown: int = 40, names: int = 12) -> Run:
    """A discovery run in which group a's names win more often by a planted gap per word."""
    rng = np.random.default_rng(5)
    groups = ("a",) * names + ("b",) * names
    rates = np.full((2 * names, 8, len(WORDS)), 0.3) + rng.normal(0, 0.01, (2 * names, 8, 1))
    for i, word in enumerate(WORDS):
        rates[:names, :, i] += gaps[word]
    counts = WordCounts(
        groups, tuple(f"n{i}" for i in range(2 * names)), tuple(f"c{i}" for i in range(8)), WORDS,
        np.full(rates.shape, float(shown)), np.round(rates * shown, 1), len(WORDS),
    )  # fmt: skip
    found = measured("discovery", counts, [("a", "b")], Settings(999, 100), Kept([], [], {}))
    return written(
        folder, "discovery", {"items": found.items, **found.tables}, list(found.findings)
    )


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("runs")
    before = discovered(folder / "before", {"kept": 0.2, "less": 0.3, "plain": 0.0, "new": 0.0})
    after = discovered(folder / "after", {"kept": 0.2, "less": 0.1, "plain": 0.0, "new": 0.2})
    return before, after


def test_words_that_persist_shrink_and_appear_are_told_apart(pair: tuple[Run, Run]) -> None:
    found = discovery.paired_words(*pair)
    status = {r["word"]: r["status"] for r in found["words"]}
    assert status == {
        "kept": "persisted", "less": "shrank", "plain": "not detected", "new": "appeared",
    }  # fmt: skip
    less = next(r for r in found["words"] if r["word"] == "less")
    assert less["change"] == pytest.approx(-0.2, abs=0.01)
    assert less["low"] <= less["change"] <= less["high"] < 0
    assert less["q"] <= 0.05
    assert found["counts"]["persisted"] == 1
    assert found["clusters"][0]["before"] > found["clusters"][0]["chance"]


def test_compare_gives_paired_views_and_the_papers_tables(pair: tuple[Run, Run]) -> None:
    table = side_by_side(list(pair)).as_dict()
    change = table["changes"][0]
    assert change["before"] == "before"
    assert change["discovery"][0]["counts"]["shrank"] == 1
    assert [r["status"] for r in change["findings"] if r["finding"].endswith("/less")]
    nine = table["views"][0]["table_9"][0]
    assert {"before", "after", "before q", "chance"} <= set(nine)
    top = [r for r in table["views"][0]["top_words"] if r["model"] == "before"]
    assert top[0]["word"] == "less"
    assert top[0]["leans_to"] == "a"


def test_other_distractors_are_refused(pair: tuple[Run, Run], tmp_path: Path) -> None:
    gaps = dict.fromkeys(WORDS, 0.0)
    other = discovered(tmp_path / "other", gaps, shown=41)
    with pytest.raises(RunError, match="different wrong answers"):
        discovery.paired_words(pair[0], other)
    fewer = discovered(tmp_path / "fewer", gaps, names=11)
    with pytest.raises(RunError, match="different groups"):
        discovery.paired_words(pair[0], fewer)
    assert "not asked the same items" in side_by_side([pair[0], fewer]).changes[0].reason


def test_runs_of_other_suites_are_refused(pair: tuple[Run, Run], tmp_path: Path) -> None:
    other = written(
        tmp_path / "x", "discovery", {"items": pa.table({"a": [1]})}, [], {**SUITE, "name": "y"}
    )
    with pytest.raises(RunError, match="differ in their suite"):
        side_by_side([pair[0], other])


def made_items(folder: Path, values: Any, keys: Any) -> Run:
    table = pa.table({"prompt": [f"p{k % 8}" for k in keys], "index": keys, "kl": values})
    return written(folder, "divergence", {"items": table}, [])


def test_items_are_matched_by_name_and_sizes_compared(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    before = rng.normal(size=40)
    keys = list(range(40))
    order = rng.permutation(40)
    one = made_items(tmp_path / "one", before, keys)
    two = made_items(tmp_path / "two", (before / 2)[order], [keys[i] for i in order])
    row = items.item_changes(one, two)[0]
    assert row.size_change == pytest.approx(-np.abs(before).mean() / 2)
    assert row.size_low < row.size_change < row.size_high < 0
    assert row.verdict == "smaller"
    same = items.item_changes(one, made_items(tmp_path / "same", before, keys))[0]
    assert same.change == 0
    assert same.verdict == "no difference detected"
    lost = made_items(tmp_path / "lost", before[:39], keys[:39])
    with pytest.raises(RunError, match="not asked the same items"):
        items.item_changes(one, lost)


@pytest.mark.parametrize(
    ("before", "after", "q", "status"),
    [
        ((-0.09, 0.02), (0.07, 0.03), 0.001, "reversed"),
        ((-0.09, 0.02), (0.07, 0.60), 0.001, "shrank"),
        ((-0.09, 0.02), (-0.12, 0.03), 0.001, "grew"),
        ((-0.09, 0.02), (0.07, 0.03), 0.200, "persisted"),
        ((-0.09, 0.02), (-0.01, 0.90), 0.200, "gone"),
    ],
)
def test_a_gap_that_changed_sides_is_not_called_smaller(
    before: tuple[float, float], after: tuple[float, float], q: float, status: str
) -> None:
    from evenhand.probes.discovery.compare import _status

    row = {"before": before[0], "q_before": before[1], "after": after[0], "q_after": after[1]}
    assert _status({**row, "q": q}, 0.05) == status

"""Every probe that streams: findings of a run too large to hold are those of one that is held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenhand.probes.base import Measured
from evenhand.probes.discovery import probe as discovery
from evenhand.probes.generation import texts as generated
from evenhand.probes.registry import probe_class, probe_names
from evenhand.probes.shared import streaming
from evenhand.requests import LazyRequests, Option, Scores
from evenhand.runner.ask import Ask
from probe_cases import CASES

STREAMING = [name for name in probe_names() if probe_class(name).streams]


def test_every_probe_streams_or_says_what_keeps_it_small() -> None:
    assert {"underspecified", "discovery", "generation"} <= {*STREAMING}
    ours = (k for k in map(probe_class, probe_names()) if k.__module__.startswith("evenhand."))
    for kind in ours:  # another test may have registered a probe of its own
        assert kind.streams != bool(kind.bound), kind.name


def measured(name: str, folder: Path, **changed: Any) -> Measured:
    case = CASES[name]
    settings = case.settings(folder, case.rows) | changed
    helpers = {key: Ask(model) for key, model in case.helpers.items()}
    made = probe_class(name)(**settings)
    named = {role: helpers[spec] for role, spec in made.helpers().items()}
    return made.run(Ask(case.model(0.4), shard_rows=32, helpers=named), seed=3)


def told(found: Measured) -> list[str]:
    """Everything a run says, with every digit."""
    items = found.items.read_all() if isinstance(found.items, pa.RecordBatchReader) else found.items
    tables = {name: table.to_pylist() for name, table in found.tables.items()}
    parts = (found.findings, items.to_pylist(), tables, found.summary, found.placebos)
    return [repr(part) for part in (*parts, found.unlisted)]


MORE: dict[str, tuple[dict[str, Any], ...]] = {
    "underspecified": ({}, {"negated_pairs": 5}),
    "generation": ({}, {"draws": 9}, {"as_published": True, "draws": 3}),
    "discovery": ({}, {"pool": "name"}, {"choosing": "letters"}, {"pairing": "random"}),
}


@pytest.mark.parametrize(
    ("name", "changed"), [(n, c) for n in STREAMING for c in MORE.get(n, ({},))], ids=str
)
def test_streamed_and_held_runs_say_the_same_to_the_last_digit(
    name: str, changed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "BLOCK_ROWS", 24)
    monkeypatch.setattr(generated, "DRAWS", 4)
    held = measured(name, tmp_path, **changed)
    monkeypatch.setattr(streaming, "HELD_ROWS", 0)
    monkeypatch.setattr(discovery, "BLOCK_ANSWERS", 100)
    streamed = measured(name, tmp_path, **changed)
    assert held.findings
    if not changed.get("pool"):  # names that share their texts may be asked twice
        assert told(held) == told(streamed)
    else:
        assert repr(held.findings) == repr(streamed.findings)


class Answering:
    """A door that gives the numbers of its rows, in pieces that suit nobody."""

    def __call__(self, requests: Any, label: str = "") -> Scores:
        return Scores({"row": np.arange(len(requests))})

    def stream(self, requests: Any, label: str = "") -> Any:
        for start in range(0, len(requests), 7):
            stop = min(start + 7, len(requests))
            yield start, Scores({"row": np.arange(start, stop)})


@pytest.mark.parametrize("held", [0, 1_000])
def test_blocks_are_whole_units(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HELD_ROWS", held)
    sizes = [3, 1, 12, 2, 2, 9]
    ends = np.cumsum(sizes)
    lazy = LazyRequests(Option, sum(sizes), lambda a, b: Option([""] * (b - a), [""] * (b - a)))
    made = list(streaming.blocks(Answering(), lazy, streaming.block_ends(ends, 5)))
    assert [stop for _, stop, _ in made] == [4, 16, 20, 29]
    assert [row for _, _, scores in made for row in scores["row"]] == list(range(29))
    assert all(scores["row"][0] == start for start, _, scores in made)


@pytest.mark.parametrize("large", [False, True])
def test_items_come_back_as_often_as_wanted(large: bool) -> None:
    names = pa.array(["a", "b"])
    kept = streaming.Items(large=large)
    for start in (0, 3):
        codes = np.arange(start, start + 3) % 2
        kept.add(pa.table({"name": streaming.coded(codes, names), "n": codes}))
    assert kept.rows([5, 0, 4])["name"].to_pylist() == ["a", "a", "b"]
    assert [part.num_rows for part in kept.parts()] == [3, 3]
    for _ in range(2):
        found = kept.found()
        table = found.read_all() if isinstance(found, pa.RecordBatchReader) else found
        assert table["name"].to_pylist() == ["a", "b", "a", "b", "a", "b"]

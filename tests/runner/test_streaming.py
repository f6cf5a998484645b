"""Scores that come shard by shard give the numbers of scores held whole, in flat memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from evenhand.audit.auditing import Audit
from evenhand.audit.suites import parse_suite
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.shared import streaming
from evenhand.requests import FillMask, LazyRequests, Option
from evenhand.runner.ask import Ask
from evenhand.runner.local import LocalExecutor
from evenhand.runs.record import Run
from evenhand.words.lexicons import questions


def hashed(text: str) -> float:
    return (zlib.crc32(text.encode()) % 10_007) / 10_007


def span(question: str, context: str, candidate: str, other: str) -> dict[str, float]:
    seed = question + context + candidate
    if zlib.crc32(seed.encode()) % 97 == 0:
        return {"start": float("nan"), "end": 0.1, "other_start": 0.1, "other_end": 0.2}
    parts = ("start", "end", "none", "other_start", "other_end")
    return {name: hashed(seed + name) for name in parts}


WAYS = {
    "span": lambda: ScriptedModel({"span": span}, name="s"),
    "option": lambda: ScriptedModel({"option": lambda p, o: hashed(p + o)}, name="o"),
    "continuation": lambda: ScriptedModel(
        {"continuation": lambda p, c: {"logprob": -hashed(p + c) - 0.1, "n_tokens": 2}}, name="c"
    ),
    "mask-score": lambda: ScriptedModel(
        {"mask-score": lambda t, c: {"logprob": -hashed(t + c) - 0.1, "n_pieces": 1}}, name="m"
    ),
}


def run(folder: Path, kind: str, social_class: str) -> Run:
    settings: dict[str, Any] = {
        "name": "underspecified", "social_class": social_class, "terms": 6, "resamples": 50,
        "templates": 3, "unknown": "nobody" if kind == "option" else "",
    }  # fmt: skip
    if social_class == "gender":
        settings |= {"attributes": ["nurse", "doctor", "hunter"], "templates_per_pair": 2}
    else:
        names = dict.fromkeys(a.name for a in questions.attributes(social_class))
        settings |= {"pairs": 12, "attributes": list(names)[:8]}
    suite = parse_suite({"name": "s", "probe": [settings]}, "test", "s")
    return Audit(suite, kind, folder, loaded={kind: WAYS[kind]()}).run()


@pytest.mark.parametrize(
    ("kind", "social_class"),
    [
        ("span", "gender"), ("option", "religion"), ("continuation", "nationality"),
        ("mask-score", "gender"),
    ],
)  # fmt: skip
def test_a_streamed_design_gives_the_bytes_of_one_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, social_class: str
) -> None:
    monkeypatch.setattr(streaming, "BLOCK_ROWS", 40)
    held = run(tmp_path / "held", kind, social_class)
    monkeypatch.setattr(streaming, "HELD_ROWS", 0)
    streamed = run(tmp_path / "streamed", kind, social_class)
    one, two = ((r.folder / "findings.json").read_bytes() for r in (held, streamed))
    assert one == two
    assert len(held.findings) > 4
    tables = held.tables("underspecified")
    assert sorted(tables) == sorted(streamed.tables("underspecified"))
    for name in tables:
        a, b = (r.table("underspecified", name).to_pylist() for r in (held, streamed))
        assert len(a) == len(b) > 0
        assert repr(a) == repr(b), name  # every digit, and NaN where the other has it
    mine, theirs = (r.facts["probes"]["underspecified"]["summary"] for r in (held, streamed))
    assert repr(mine) == repr(theirs)


def numbered(n: int) -> tuple[Option, LazyRequests]:
    whole = Option([f"p{i % 50}" for i in range(n)], [f"o{i % 7}" for i in range(n)])
    return whole, LazyRequests(Option, n, lambda a, b: whole.take(range(a, b)), group=4)


def test_pieces_of_a_stream_are_consecutive_and_equal_to_the_whole(tmp_path: Path) -> None:
    model = ScriptedModel({"option": lambda p, o: hashed(p + o)})
    whole, lazy = numbered(330)
    ask = Ask(model, tmp_path, shard_rows=32)
    pieces = list(ask.stream(lazy))
    starts = [start for start, _ in pieces]
    assert starts == [sum(len(s) for _, s in pieces[:k]) for k in range(len(pieces))]
    assert len(pieces) == 11
    joined = np.concatenate([scores["logit"] for _, scores in pieces])
    assert joined.tolist() == [hashed(p + o) for p, o in whole.rows()]
    assert ask.counts.rows == 330


class Backwards(LocalExecutor):
    """Finishes shards in the opposite order, as a cluster may."""

    def run(self, job: Any) -> Iterator[Any]:
        yield from reversed(list(super().run(job)))


@pytest.mark.parametrize("kept", [True, False], ids=["on disk", "in memory"])
def test_shards_finished_out_of_turn_wait_for_it(tmp_path: Path, kept: bool) -> None:
    model = ScriptedModel({"option": lambda p, o: hashed(p + o)})
    whole, lazy = numbered(100)
    ask = Ask(model, tmp_path if kept else None, shard_rows=16, executor=Backwards())
    pieces = list(ask.stream(lazy))
    assert [start for start, _ in pieces] == [0, 16, 32, 48, 64, 80, 96]
    joined = np.concatenate([scores["logit"] for _, scores in pieces])
    assert joined.tolist() == [hashed(p + o) for p, o in whole.rows()]


def test_lists_and_lists_in_memory_stream_too() -> None:
    model = ScriptedModel({"fill-mask": lambda text: {"fills": [text], "logprobs": [0.0]}})
    texts = [f"t{i} <mask>" for i in range(9)]
    lazy = LazyRequests(FillMask, 9, lambda a, b: FillMask(texts[a:b]))
    ask = Ask(model, shard_rows=4)
    assert [row[0] for _, s in ask.stream(lazy) for row in s["fills"]] == texts
    assert [row[0] for _, s in ask.stream(FillMask(texts)) for row in s["fills"]] == texts


def test_a_script_may_answer_whole_batches() -> None:
    model = ScriptedModel(
        {"option": lambda r: {"logit": np.arange(float(len(r))), "n_tokens": np.ones(len(r))}},
        whole=True,
    )
    assert Ask(model)(Option(["a", "b"], ["c", "d"]))["logit"].tolist() == [0.0, 1.0]
    assert model.rows_scored == 2


def test_items_of_a_streamed_run_are_in_row_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "HELD_ROWS", 0)
    monkeypatch.setattr(streaming, "BLOCK_ROWS", 40)
    monkeypatch.setattr("evenhand.runner.store.ROW_GROUP", 50)
    done = run(tmp_path / "run", "span", "gender")
    file = pq.ParquetFile(done.tables("underspecified")["items"])
    assert file.metadata.num_row_groups > 1
    assert file.metadata.num_rows == done.facts["probes"]["underspecified"]["summary"]["cells"]

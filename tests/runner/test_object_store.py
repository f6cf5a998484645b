"""Score shards in an object store are as safe as on a disk."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit.auditing import Audit, audit, resume
from evenhand.audit.suites import parse_suite
from evenhand.errors import RunError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.requests import Option
from evenhand.runner.ask import Ask
from evenhand.runner.cluster import RayExecutor
from evenhand.runner.store import ShardStore

fsspec = pytest.importorskip("fsspec")
COLUMNS = {"logit": np.linspace(0, 1, 300), "n_tokens": np.arange(300, dtype=np.int32)}
SUITE = {
    "name": "s",
    "probe": [{"name": "underspecified", "pairs": 4, "templates": 1, "attributes": ["nurse"],
               "resamples": 50}],
}  # fmt: skip


@pytest.fixture(params=["memory", "file", "s3"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "s3":
        return f"{request.getfixturevalue('bucket')}/{uuid.uuid4().hex}"
    return f"memory://{uuid.uuid4().hex}" if request.param == "memory" else f"file://{tmp_path}/s"


def raw_files(url: str) -> tuple[Any, list[str]]:
    fs, root = fsspec.core.url_to_fs(url)
    fs.invalidate_cache()
    return fs, [p for p in fs.find(root) if not p.endswith("/")]


def test_what_was_written_is_read_back_by_another_process_object(url: str) -> None:
    ShardStore(url).write("k", COLUMNS, Option)
    other = ShardStore(url)
    assert "k" in other
    back = other.read("k", Option)
    assert back is not None
    assert np.array_equal(back["logit"], COLUMNS["logit"])
    assert other.used == {"k": "1"}


def test_a_second_writer_of_one_shard_leaves_one_object(url: str) -> None:
    one, two = ShardStore(url), ShardStore(url)
    one.write("k", COLUMNS, Option)
    two.write("k", COLUMNS, Option)
    assert len(raw_files(url)[1]) == 1
    late = ShardStore(url)
    late.write("other", COLUMNS, Option)
    one.refresh("other")
    assert "other" in one


def test_a_damaged_object_is_seen_and_scored_again(url: str) -> None:
    ShardStore(url).write("k", COLUMNS, Option)
    fs, (path,) = raw_files(url)
    raw = bytearray(fs.cat_file(path))
    raw[len(raw) // 2] ^= 1
    fs.pipe_file(path, bytes(raw))
    store = ShardStore(url)
    assert store.read("k", Option) is None
    assert len(store.damaged) == 1
    assert raw_files(url)[1] == []


def model() -> ScriptedModel:
    return ScriptedModel({"option": lambda p, o: float(len(p + o) % 7)}, name="m")


def run(folder: Path, store: str | None) -> Any:
    suite = parse_suite(SUITE, "test", "s")
    return Audit(suite, "m", folder, loaded={"m": model()}, store=store).run()


def test_an_audit_in_a_store_gives_the_bytes_of_one_in_a_folder(url: str, tmp_path: Path) -> None:
    usual, stored = run(tmp_path / "a", None), run(tmp_path / "b", url)
    one, two = ((r.folder / "findings.json").read_bytes() for r in (usual, stored))
    assert one == two
    assert not (tmp_path / "b" / "scores").exists()
    names = sorted(p.name.split(".")[0] for p in (tmp_path / "a" / "scores").iterdir())
    assert names == sorted(p.rsplit("/", 1)[-1].split(".")[0] for p in raw_files(url)[1])
    again = run(tmp_path / "b", url)
    assert again.facts["probes"]["underspecified"]["counts"]["shards_scored"] == 0
    assert again.facts["work"]["store"] == url


def test_a_run_in_a_store_is_resumed_from_it(tmp_path: Path, tiny: Any) -> None:
    place = f"memory://{uuid.uuid4().hex}"
    suite = parse_suite(SUITE, "test", "s")
    audit(tiny("choice"), suite, out=tmp_path / "r", store=place)
    done = resume(tmp_path / "r")
    assert done.facts["attempts"] == 2
    assert done.facts["probes"]["underspecified"]["counts"]["shards_scored"] == 0


def test_a_store_nobody_knows_is_one_paragraph() -> None:
    with pytest.raises(SpecError, match="--store 'nowhere://x': cannot be opened.*s3://bucket"):
        ShardStore("nowhere://x")


def test_a_store_that_fails_is_one_paragraph(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    store = ShardStore(f"memory://{uuid.uuid4().hex}")

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise PermissionError("denied")

    monkeypatch.setattr(MemoryFileSystem, "pipe_file", refuse)
    with pytest.raises(RunError, match="the store does not answer.*denied.*evenhand resume"):
        store.write("k", COLUMNS, Option)


def test_a_cluster_cannot_share_the_memory_of_one_process() -> None:
    ask = Ask(model(), executor=RayExecutor(), store=f"memory://{uuid.uuid4().hex}")
    with pytest.raises(RunError, match="that every worker can reach"):
        ask(Option(["p"], ["o"]))

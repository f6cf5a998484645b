"""Whatever else lies beside the shards never stops a run."""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand import systems
from evenhand.audit.auditing import Audit
from evenhand.audit.suites import parse_suite
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.requests import Embed, Option
from evenhand.runner.files import LocalFiles
from evenhand.runner.store import ShardStore, to_table
from evenhand.runs.record import Run

COLUMNS = {"logit": np.linspace(0, 1, 9), "n_tokens": np.arange(9, dtype=np.int32)}
SUITE = {
    "name": "s",
    "probe": [{"name": "underspecified", "pairs": 4, "templates": 1, "attributes": ["nurse"],
               "resamples": 50}],
}  # fmt: skip


def run(folder: Path) -> Run:
    model = ScriptedModel({"option": lambda p, o: float(len(p + o) % 7)}, name="m")
    return Audit(parse_suite(SUITE, "test", "s"), "m", folder, loaded={"m": model}).run()


def named(key: str, raw: bytes) -> str:
    return f"{key}.{hashlib.sha256(raw).hexdigest()[:24]}.parquet"


def litter(scores: Path, key: str) -> None:
    host = systems.host()
    for name in ("a.b.parquet", ".parquet", "..parquet", "notes.txt", "x.tmp", ".tmp", "a.b.c.tmp",
                 f"k.s.parquet.{host}.{10**30}.tmp", f"k.s.parquet.{host}.².tmp",
                 f"{key}.0.parquet", f"{key}.parquet"):  # fmt: skip
        (scores / name).write_bytes(b"no Parquet at all")
    (scores / named(key, b"")).write_bytes(b"")
    (scores / "folder.like.parquet").mkdir()
    (scores / f"{key}.folder.parquet").mkdir()
    (scores / f"k.s.parquet.{host}.{10**8}.tmp").mkdir()
    (scores / "dangling.link.parquet").symlink_to(scores / "nowhere")


def test_a_run_finishes_among_strange_files_with_the_same_bytes(tmp_path: Path) -> None:
    usual = run(tmp_path / "usual")
    shard = next((usual.folder / "scores").iterdir())
    run(tmp_path / "littered")
    scores = tmp_path / "littered" / "scores"
    litter(scores, shard.name.split(".")[0])
    again = run(tmp_path / "littered")
    one, two = ((r.folder / "findings.json").read_bytes() for r in (usual, again))
    assert one == two
    assert again.facts["probes"]["underspecified"]["counts"]["shards_scored"] == 0
    assert again.facts["shards"] == usual.facts["shards"]
    (scores / shard.name).unlink()
    scored = run(tmp_path / "littered").facts["probes"]["underspecified"]["counts"]
    assert scored["shards_scored"] == 1


def test_a_file_that_is_no_shard_of_this_kind_is_scored_again(tmp_path: Path) -> None:
    import io

    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(to_table({"vector": [[1.0]]}, Embed), buffer)
    for raw in (b"", b"PAR1", buffer.getvalue()):
        (tmp_path / named("k", raw)).write_bytes(raw)
        store = ShardStore(tmp_path)
        assert store.read("k", Option) is None
        assert "k" not in store
        assert list(tmp_path.iterdir()) == []


def test_a_sound_shard_is_found_beside_a_damaged_one(tmp_path: Path) -> None:
    ShardStore(tmp_path).write("k", COLUMNS, Option)
    for sign in ("0", "z"):
        (tmp_path / f"k.{sign * 24}.parquet").write_bytes(b"half")
        assert ShardStore(tmp_path).read("k", Option) is not None


def test_a_file_that_cannot_be_read_is_scored_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ShardStore(tmp_path).write("k", COLUMNS, Option)

    def broken(self: Path) -> bytes:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", broken)
        store = ShardStore(tmp_path)
        assert store.read("k", Option) is None
    store.write("k", COLUMNS, Option)
    assert ShardStore(tmp_path).read("k", Option) is not None


def test_putting_a_shard_again_heals_a_damaged_file_of_its_name(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    (tmp_path / "k.s.parquet").write_bytes(b"half")
    files.put("k.s.parquet", b"whole")
    assert files.read("k.s.parquet") == b"whole"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_strange_objects_in_a_store_are_left_alone(
    request: pytest.FixtureRequest, kind: str
) -> None:
    fsspec: Any = pytest.importorskip("fsspec")
    top = request.getfixturevalue("bucket") if kind == "s3" else "memory:/"
    url = f"{top}/{uuid.uuid4().hex}"
    ShardStore(url).write("k", COLUMNS, Option)
    fs, root = fsspec.core.url_to_fs(url)
    for name in ("a.b.parquet", "k.0.parquet", "notes.txt", "folder.like.parquet/inside"):
        fs.pipe_file(f"{root}/{name}", b"no Parquet")
    store = ShardStore(url)
    assert store.read("k", Option) is not None
    assert store.read("a", Option) is None
    assert store.read("folder", Option) is None
    assert fs.exists(f"{root}/notes.txt")
    assert fs.exists(f"{root}/folder.like.parquet/inside")

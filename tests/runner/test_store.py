"""Shards on disk are whole or absent, and damage is seen."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import RunError
from evenhand.requests import Embed, FillMask, Option
from evenhand.runner.files import replace
from evenhand.runner.store import ShardStore, scored_by_attempt
from evenhand.systems import host

COLUMNS = {"logit": np.linspace(0, 1, 300), "n_tokens": np.arange(300, dtype=np.int32)}


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    ShardStore(tmp_path).write("k", COLUMNS, Option)
    back = ShardStore(tmp_path).read("k", Option)
    assert back is not None
    assert np.array_equal(back["logit"], COLUMNS["logit"])
    assert np.array_equal(back["n_tokens"], COLUMNS["n_tokens"])


def test_lists_and_vectors_are_read_back(tmp_path: Path) -> None:
    store = ShardStore(tmp_path)
    store.write("a", {"fills": [["x", "y"], []], "logprobs": [[-1.0, -2.0], []]}, FillMask)
    store.write("b", {"vector": np.array([[1.0, np.nan]], dtype=np.float32)}, Embed)
    assert store.read("a", FillMask) == {"fills": [["x", "y"], []], "logprobs": [[-1.0, -2.0], []]}
    vector = store.read("b", Embed)
    assert vector is not None
    assert np.isnan(vector["vector"][0][1])


@pytest.mark.parametrize("place", [0.0, 0.1, 0.35, 0.5, 0.75, 0.9, 0.999])
def test_one_flipped_bit_anywhere_is_detected_and_the_shard_redone(
    tmp_path: Path, place: float
) -> None:
    ShardStore(tmp_path).write("k", COLUMNS, Option)
    file = only_file(tmp_path)
    raw = bytearray(file.read_bytes())
    raw[int(place * (len(raw) - 1))] ^= 1 << random.Random(place).randrange(8)
    file.write_bytes(raw)
    store = ShardStore(tmp_path)
    assert store.read("k", Option) is None
    assert store.damaged == [file.name]
    store.write("k", COLUMNS, Option)
    assert store.read("k", Option) is not None


def test_a_truncated_shard_is_detected(tmp_path: Path) -> None:
    ShardStore(tmp_path).write("k", COLUMNS, Option)
    file = only_file(tmp_path)
    file.write_bytes(file.read_bytes()[:-100])
    assert ShardStore(tmp_path).read("k", Option) is None
    assert not file.exists()


def test_writing_twice_leaves_one_file(tmp_path: Path) -> None:
    ShardStore(tmp_path).write("k", COLUMNS, Option)
    ShardStore(tmp_path).write("k", COLUMNS, Option)
    assert len(list(tmp_path.iterdir())) == 1


def test_left_overs_of_a_killed_writer_are_cleared(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f"k.abc.parquet.{host()}.{dead.pid}.tmp"
    left.write_bytes(b"half")
    ShardStore(tmp_path)
    assert not left.exists()


def test_only_shards_that_were_asked_for_are_counted_and_each_once(tmp_path: Path) -> None:
    ShardStore(tmp_path, attempt=1).write("a", COLUMNS, Option)
    ShardStore(tmp_path, attempt=1).write("of another setting", COLUMNS, Option)
    one, two = ShardStore(tmp_path, attempt=2), ShardStore(tmp_path, attempt=2)
    one.write("b", COLUMNS, Option)
    for store, key in ((one, "a"), (two, "a"), (two, "absent")):
        store.read(key, Option)
    assert scored_by_attempt([one, two]) == {"1": 1, "2": 1}


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from typing import Any
from evenhand.errors import RunError
from evenhand.requests import Option
from evenhand.runner.store import ShardStore
import numpy as np
store = ShardStore(Path(sys.argv[1]))
columns = {"logit": np.random.default_rng(0).normal(size=50_000),
           "n_tokens": np.arange(50_000, dtype=np.int32)}
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    store.write("k", columns, Option)
except RunError as error:
    print(error)
"""


@pytest.mark.usefixtures("limited_files")
def test_a_full_disk_is_one_paragraph_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], capture_output=True, text=True
    )
    assert "cannot write" in done.stdout, done.stderr
    assert "evenhand resume" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        ShardStore(tmp_path / "file" / "scores")


@pytest.mark.parametrize("width", [np.float32, np.float64])
def test_vectors_come_back_as_they_were_given(tmp_path: Path, width: Any) -> None:
    """Whatever their precision; else a resumed run would differ in its last digits."""
    given = np.random.default_rng(0).normal(size=(3, 5)).astype(width)
    given[1, 2] = np.nan
    store = ShardStore(tmp_path)
    store.write("k", {"vector": given}, Embed)
    found = ShardStore(tmp_path).read("k", Embed)
    assert found is not None
    assert np.array_equal(np.asarray(found["vector"]), given, equal_nan=True)


def test_replacing_a_file_keeps_the_old_one_when_writing_fails(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    replace(target, b"one")
    with pytest.raises(RunError):
        replace(tmp_path / "absent" / "run.json", b"two")
    assert target.read_bytes() == b"one"

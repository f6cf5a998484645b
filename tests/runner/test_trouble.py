"""Bad situations: memory, devices, disks, locks and clocks. A clear message, nothing lost."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit.auditing import Audit
from evenhand.audit.auditing import audit as audit_whole
from evenhand.audit.suites import parse_suite
from evenhand.errors import EvenhandError, ModelError, RunError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.models.loading.resolver import resolve
from evenhand.requests import Option
from evenhand.runner.ask import Ask
from evenhand.runner.trouble import is_out_of_memory
from evenhand.runs.record import RunWriter
from evenhand.systems import is_locked


def options(n: int = 60) -> Option:
    names = ("nurse", "doctor", "hunter", "man", "woman")
    return Option(
        [f"the {names[i % 5]} said {i}" for i in range(n)], ["she", "he the man"] * (n // 2)
    )


def limited(model: Any, tokens: int, error: Callable[[], Exception]) -> list[int]:
    """Let the model's forward pass fail above so many tokens; gives the sizes it was asked."""
    asked: list[int] = []
    forward = model.model.forward

    def guarded(*args: Any, **kwargs: Any) -> Any:
        ids = kwargs.get("input_ids", args[0] if args else None)
        asked.append(int(ids.numel()))
        if ids.numel() > tokens:
            raise error()
        return forward(*args, **kwargs)

    model.model.forward = guarded
    return asked


def no_memory() -> Exception:
    import torch

    return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


@pytest.mark.parametrize("kind", ["causal", "choice"])
def test_too_little_memory_halves_the_batches_and_goes_on(
    tiny: Any, tmp_path: Path, kind: str
) -> None:
    requests = options(400)
    usual = Ask(resolve(tiny(kind)))(requests)["logit"]
    model = resolve(tiny(kind))
    fingerprint, budget = model.fingerprint, model.token_budget
    asked = limited(model, 300, no_memory)
    ask = Ask(model, tmp_path, shard_rows=200)
    scores = ask(requests)["logit"]
    assert np.allclose(scores, usual, atol=1e-4)
    assert max(asked) > 300
    assert ask.counts.smaller_batches >= 1
    assert (model.fingerprint, model.token_budget) == (fingerprint, budget)
    again = Ask(resolve(tiny(kind)), tmp_path, shard_rows=200)
    assert np.array_equal(again(requests)["logit"], scores)
    assert again.counts.shards_scored == 0


@pytest.mark.parametrize("kind", ["causal", "choice", "span", "masked"])
def test_memory_that_is_short_for_a_moment_changes_no_byte(
    tiny: Any, tmp_path: Path, kind: str
) -> None:
    suite = parse_suite({**SUITE, "probe": [{**SUITE["probe"][0], "pairs": 8}]}, "test", "s")
    usual = audit_whole(tiny(kind), suite, out=tmp_path / "usual")
    model: Any = resolve(tiny(kind))
    forward, calls = model.model.forward, []

    def once(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) == 1:
            raise no_memory()
        return forward(*args, **kwargs)

    model.model.forward = once
    short = audit_whole(model, suite, out=tmp_path / "short")
    one, two = ((r.folder / "findings.json").read_bytes() for r in (usual, short))
    assert len(calls) > 1
    assert one == two
    assert short.facts["probes"]["underspecified"]["counts"]["smaller_batches"] == 0


def test_one_input_that_does_not_fit_is_a_clear_error(tiny: Any, tmp_path: Path) -> None:
    model = resolve(tiny("choice"))
    limited(model, 1, no_memory)
    with pytest.raises(ModelError, match="not enough memory even for one input at a time") as seen:
        Ask(model, tmp_path)(options())
    assert "evenhand resume" in str(seen.value)


@pytest.mark.parametrize(
    ("said", "means_memory"),
    [
        ("CUDA out of memory. Tried to allocate 2.00 GiB.", True),
        ("MPS backend out of memory (MPS allocated: 9 GB)", True),
        ("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate "
         "memory: you tried to allocate 8589934592 bytes. Error code 12", True),
        ("DefaultCPUAllocator: not enough memory: you tried to allocate 64 bytes.", True),
        ("could not create a primitive", True),
        ("could not execute a primitive", True),
        ("could not create a memory object", True),
        ("could not create a primitive descriptor for the matmul primitive", False),
        ("mat1 and mat2 shapes cannot be multiplied", False),
    ],
)  # fmt: skip
def test_what_torch_says_when_memory_is_out_is_known(said: str, means_memory: bool) -> None:
    assert is_out_of_memory(RuntimeError(said)) is means_memory


def test_a_device_that_disappears_keeps_shards_and_names_the_next_command(tmp_path: Path) -> None:
    calls: list[int] = []

    def answer(requests: Any) -> dict[str, Any]:
        calls.append(len(requests))
        if len(calls) == 3:
            raise RuntimeError("CUDA error: device-side assert triggered\nmore lines")
        return {"logit": np.ones(len(requests)), "n_tokens": np.ones(len(requests), np.int32)}

    requests = Option([f"p{i}" for i in range(100)], ["o"] * 100)
    with pytest.raises(ModelError, match="the device stopped answering .CUDA error") as seen:
        Ask(ScriptedModel({"option": answer}, whole=True), tmp_path, shard_rows=20)(requests)
    assert "evenhand resume" in str(seen.value)
    assert "more lines" not in str(seen.value)
    rest = ScriptedModel({"option": lambda p, o: 1.0})
    Ask(rest, tmp_path, shard_rows=20)(requests)
    assert rest.rows_scored == 60


def test_other_errors_of_a_model_stay_what_they_are() -> None:
    def answer(prompt: str, option: str) -> float:
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="^shapes do not fit$") as seen:
        Ask(ScriptedModel({"option": answer}))(Option(["p"], ["o"]))
    assert not isinstance(seen.value, EvenhandError)


def test_a_lock_left_by_a_killed_process_is_no_lock(tmp_path: Path) -> None:
    hold = (
        "import filelock, sys, time; lock = filelock.FileLock(sys.argv[1]); lock.acquire(); "
        "print(1, flush=True); time.sleep(60)"
    )
    lock = tmp_path / ".lock"
    holder = subprocess.Popen([sys.executable, "-c", hold, str(lock)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    with pytest.raises(RunError, match="another process is working"), RunWriter(tmp_path).held():
        pass
    holder.kill()
    holder.communicate()
    assert lock.exists()
    with RunWriter(tmp_path).held():
        pass


def test_two_threads_of_one_process_cannot_hold_one_folder(tmp_path: Path) -> None:
    with (
        RunWriter(tmp_path).held(),
        pytest.raises(RunError, match="another process is working in this run folder"),
        RunWriter(tmp_path).held(),
    ):
        pass
    assert not is_locked(tmp_path / ".lock")


def test_the_lock_of_an_earlier_version_is_respected(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl", reason="earlier versions ran where there is flock")
    with open(tmp_path / ".lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(RunError, match="another process is"), RunWriter(tmp_path).held():
            pass


SUITE: dict[str, Any] = {
    "name": "s",
    "probe": [{"name": "underspecified", "pairs": 2, "templates": 1, "attributes": ["nurse"],
               "resamples": 50}],
}  # fmt: skip


def audit(folder: Path) -> Any:
    model = ScriptedModel({"option": lambda p, o: float(len(p + o) % 5)}, name="m")
    return Audit(parse_suite(SUITE, "test", "s"), "m", folder, loaded={"m": model}).run()


def test_a_wall_clock_that_jumps_breaks_neither_run_nor_timings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = audit(tmp_path / "calm")
    clock = iter([2e9, 0.0, 4e9, 1.0, 3e9] * 10_000)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    monkeypatch.setattr("evenhand.runs.record.now", lambda: "1970-01-01T00:00:00+00:00")
    jumped = audit(tmp_path / "jumped")
    assert jumped.facts["timings"]["total_s"] < 60
    assert all(t >= 0 for t in jumped.facts["timings"].values())
    one, two = ((r.folder / "findings.json").read_bytes() for r in (whole, jumped))
    assert one == two


def test_the_progress_bar_survives_a_clock_that_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenhand.cli.output import RichProgress

    clock = iter([2e9, 0.0, 1e9] * 10_000)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    with RichProgress("title") as progress:
        Ask(ScriptedModel({"option": lambda p, o: 1.0}), progress=progress, shard_rows=10)(
            options()
        )


def test_messages_of_the_command_name_this_run(tmp_path: Path) -> None:
    from evenhand.cli.run import interruptible

    def fail(error: Exception) -> str:
        with pytest.raises(EvenhandError) as seen, interruptible(tmp_path):
            raise error
        return str(seen.value)

    assert fail(ModelError("no. Continue with: evenhand resume RUN")).endswith("the same command")
    (tmp_path / "run.json").write_text("{}")
    assert fail(ModelError("Continue with: evenhand resume RUN")) == (
        f"Continue with: evenhand resume {tmp_path}"
    )
    full = fail(OSError(errno.EROFS, "Read-only file system", str(tmp_path / ".lock")))
    assert f"{tmp_path}/.lock: cannot write (Read-only file system)" in full
    assert full.endswith(f"evenhand resume {tmp_path}")
    with pytest.raises(FileNotFoundError), interruptible(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "a bug stays a bug")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_run_folder_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(RunError, match="cannot write"):
        audit(tmp_path / "run")


def test_a_cache_that_cannot_be_written_costs_time_and_nothing_else(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = resolve(tiny("choice")).fingerprint
    blocked = tmp_path / "file"
    blocked.write_text("")  # a file where the folder should be: not even root can write below it
    monkeypatch.setenv("EVENHAND_CACHE", str(blocked / "cache"))
    assert resolve(tiny("choice")).fingerprint == usual


def test_what_a_blocked_cache_cannot_keep_goes_to_a_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.models.vectors.files import open_vectors

    vectors = tmp_path / "v.txt"
    vectors.write_text("she 1 0\nhe 0 1\n")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.warns(UserWarning, match="the cache cannot be written .*EVENHAND_CACHE=DIR"):
        table = open_vectors(vectors, large=1)
    assert table.words.to_pylist() == ["she", "he"]
    assert list(tmp_path.glob("evenhand-*/*/vectors.npy"))


def test_a_damaged_run_record_is_named(tmp_path: Path) -> None:
    done = audit(tmp_path / "run")
    path = done.folder / "run.json"
    path.write_text(json.dumps(done.facts)[:-20])
    with pytest.raises(RunError, match="run.json is damaged"):
        audit(tmp_path / "run")

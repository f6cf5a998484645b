"""A run goes on where its scores are, takes a free folder, or is refused with both places named."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from evenhand.audit.auditing import Audit, audit, resume
from evenhand.audit.suites import parse_suite
from evenhand.errors import EvenhandError, RunError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.runner.cluster import RayExecutor
from evenhand.runner.store import ShardStore
from evenhand.runs.record import Run, RunWriter
from evenhand.runs.room import claimed
from in_process import evenhand


def suite(**settings: Any) -> Any:
    probe = {"name": "underspecified", "pairs": 4, "templates": 1, "attributes": ["nurse"],
             "resamples": 50, **settings}  # fmt: skip
    return parse_suite({"name": "s", "probe": [probe]}, "test", "s")


def run(folder: Path, store: str | None = None, **settings: Any) -> Run:
    model = ScriptedModel({"option": lambda p, o: float(len(p + o) % 7)}, name="m")
    return Audit(suite(**settings), "m", folder, loaded={"m": model}, store=store).run()


def counts(done: Run) -> Any:
    return done.facts["probes"]["underspecified"]["counts"]


@pytest.fixture
def store() -> str:
    pytest.importorskip("fsspec")
    return f"memory://{uuid.uuid4().hex}"


def test_a_run_is_not_gone_on_with_in_another_place(tmp_path: Path, store: str) -> None:
    inside, outside = tmp_path / "in", tmp_path / "out"
    run(inside)
    run(outside, store)
    own, kept = f"'{inside}/scores'", f"'{store}/in/scores'"
    with pytest.raises(RunError, match=f"scores at {own}, not at {kept}.*without --store"):
        run(inside, store)
    kept = f"'{store}/out/scores'"
    with pytest.raises(RunError, match=f"scores at {kept}, not at .*--store {store}") as seen:
        run(outside)
    assert f"evenhand resume {outside}" in str(seen.value)
    with pytest.raises(RunError, match=f"scores at {kept}, not at 'memory://other/out/scores'"):
        run(outside, "memory://other")
    assert counts(run(outside, f"{store}/"))["shards_scored"] == 0
    assert counts(run(inside))["shards_scored"] == 0


def test_a_folder_under_another_name_keeps_its_place(tmp_path: Path, store: str) -> None:
    run(tmp_path / "one", store)
    (tmp_path / "one").rename(tmp_path / "two")
    assert counts(run(tmp_path / "two", store))["shards_scored"] == 0


def test_a_store_by_a_relative_path_is_the_same_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path / "r", "kept").facts["work"]["store"] == f"{tmp_path}/kept"
    monkeypatch.chdir("/")
    assert counts(run(tmp_path / "r", f"{tmp_path}/kept"))["shards_scored"] == 0


def test_a_mistyped_store_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--store 'nowhere://x"):
        run(tmp_path / "r", "nowhere://x")
    assert not (tmp_path / "r").exists()
    assert run(tmp_path / "r").facts["attempts"] == 1


def test_a_failed_run_without_scores_makes_room_whatever_its_store(
    tmp_path: Path, store: str
) -> None:
    folder = tmp_path / "r"
    with pytest.raises(EvenhandError, match="unknown template 'lettr'"):
        run(folder, store, templates=["lettr"])
    assert Run.open(folder).status == "failed"
    assert run(folder).facts["work"].get("store") is None
    with pytest.raises(RunError, match="holds a run with another suite"):
        run(folder, templates=["swing"])


def test_a_failed_run_with_scores_in_its_store_is_kept(tmp_path: Path, store: str) -> None:
    folder = tmp_path / "r"
    run(folder, store)
    facts = json.loads((folder / "run.json").read_text())
    RunWriter(folder).facts({**facts, "status": "failed"})
    with pytest.raises(RunError, match="holds a run that keeps its scores at"):
        run(folder)


def test_runs_that_share_a_place_count_their_own_shards(tmp_path: Path, store: str) -> None:
    first = run(tmp_path / "a" / "r", store)
    second = run(tmp_path / "b" / "r", store, attributes=["doctor", "pilot"])
    for done in (first, second):
        assert done.facts["shards"]["total"] == counts(done)["shards"]
    assert second.facts["shards"]["scored_by_attempt"] == {"1": counts(second)["shards"]}
    alike = run(tmp_path / "c" / "r", store)
    assert counts(alike)["shards_scored"] == 0
    assert alike.facts["shards"] == first.facts["shards"]


def test_stale_shards_in_the_folder_are_not_counted(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    run(folder, attributes=["doctor"])
    (folder / "run.json").unlink()
    done = run(folder)
    assert done.facts["shards"]["total"] == counts(done)["shards"]
    assert len(list((folder / "scores").iterdir())) > counts(done)["shards"]


@pytest.mark.parametrize("name", [".DS_Store", "Thumbs.db", ".nfs0000000012"])
def test_hidden_files_do_not_fill_a_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x")
    assert run(tmp_path).status == "finished"
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("name", ["thesis.tex", "report.html", "Scores"])
def test_a_folder_with_other_things_is_refused_and_they_are_named(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(RunError, match=f"not empty and holds no run .it holds '{name}'"):
        run(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


@pytest.mark.parametrize("stored", [False, True])
def test_scores_outlive_their_record(tmp_path: Path, store: str, stored: bool) -> None:
    place = store if stored else None
    before = (run(tmp_path / "r", place).folder / "findings.json").read_bytes()
    (tmp_path / "r" / "run.json").rename(tmp_path / "r" / "run.json.damaged")
    again = run(tmp_path / "r", place)
    assert counts(again)["shards_scored"] == 0
    assert (again.folder / "findings.json").read_bytes() == before


def test_a_folder_without_a_chosen_name_is_never_shared(tmp_path: Path) -> None:
    wanted = tmp_path / "runs" / "20260101-000000-m-s-1"
    found = [claimed(wanted) for _ in range(3)]
    assert [p.name for p in found] == [wanted.name, f"{wanted.name}-2", f"{wanted.name}-3"]
    assert all(p.is_dir() for p in found)


def test_two_runs_of_one_second_get_two_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("evenhand.runs.room.time.strftime", lambda form: "20260101-000000")
    model = ScriptedModel({"option": lambda p, o: float(len(p + o) % 7)}, name="m")
    one, two = audit(model, suite()), audit(model, suite())
    assert (one.name, two.name) == ("20260101-000000-m-s", "20260101-000000-m-s-2")
    assert [r.facts["attempts"] for r in (one, two)] == [1, 1]


def test_a_mistyped_model_claims_no_folder(tmp_path: Path) -> None:
    assert evenhand("audit", "no-such-model", cwd=tmp_path).returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_processes_that_claim_at_once_get_folders_of_their_own(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from evenhand.runs.room import claimed; "
    code += "print(claimed(Path(sys.argv[1])))"
    started = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "r")], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    assert len({p.communicate()[0] for p in started}) == 3


def test_a_local_store_is_opened_like_any_other(tmp_path: Path) -> None:
    done = run(tmp_path / "r", str(tmp_path / "s"))
    assert not ShardStore(tmp_path / "s" / "r" / "scores").empty
    assert not (done.folder / "scores").exists()


def test_a_refused_store_leaves_nothing_at_its_place(tmp_path: Path) -> None:
    run(tmp_path / "run")
    with pytest.raises(RunError, match="keeps its scores at"):
        run(tmp_path / "run", str(tmp_path / "store"))
    assert not (tmp_path / "store").exists()


def test_a_store_that_workers_cannot_see_is_refused_before_a_folder_is_made(
    tmp_path: Path, store: str
) -> None:
    job = Audit(suite(), "no-such-model", tmp_path / "run", store=store, executor=RayExecutor())
    with pytest.raises(RunError, match="that every worker can reach"):
        job.run()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("seed", [-1, "3", 1.5, None])
def test_a_seed_that_is_none_is_refused_from_python_too(tmp_path: Path, seed: Any) -> None:
    with pytest.raises(SpecError, match=f"seed {seed!r}: expected a whole number, 0 or more"):
        Audit(suite(), "m", tmp_path, seed=seed)


def test_commands_in_messages_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "my run"
    run(folder)
    (folder / "findings.json").unlink()
    with pytest.raises(RunError, match=f"evenhand resume '{folder}'"):
        _ = Run.open(folder).findings


@pytest.mark.parametrize("what", ["folder", "store"])
def test_a_place_that_cannot_be_written_is_said_before_a_model_is_loaded(
    tmp_path: Path, what: str
) -> None:
    (tmp_path / "file").write_text("")
    bad, good = tmp_path / "file" / "below", tmp_path / "run"
    places = {"folder": (bad, None), "store": (good, str(bad))}
    folder, store = places[what]
    with pytest.raises(RunError, match="cannot be written .*file' is a file"):
        Audit(suite(), "no-such-model", folder, store=store).run()
    assert not good.exists()


def test_a_run_of_a_python_object_is_gone_on_with_from_python(tmp_path: Path) -> None:
    run(tmp_path / "run")
    with pytest.raises(RunError, match="'m' of this run was a Python object.*evenhand.audit"):
        resume(tmp_path / "run")
    assert run(tmp_path / "run").facts["attempts"] == 2

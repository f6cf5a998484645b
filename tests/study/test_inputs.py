"""Data of a study are known by content: what has changed is refused, and nothing is mixed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.study.test_running import write_text
from tests.study.test_tasks import write_tweets

import evenhand as eh
from evenhand.errors import DataError, RunError, SpecError
from evenhand.seals import read_sealed
from evenhand.study.inputs import FILE, Fingerprint, read_inputs, write_inputs
from evenhand.study.recipe import Recipe, parse_recipe
from evenhand.study.running import Study, run_study
from evenhand.study.travel import bring_back

pytest.importorskip("gensim", reason="training word vectors needs the train extra")
pytest.importorskip("torch", reason="detectors need the hf extra")

VALUES: dict[str, Any] = {
    "corpus": {"files": ["{data}/text.txt"], "rare": 1},
    "training": {"dimensions": 8, "epochs": 1, "min_count": 1, "replicates": 2},
    "widening": {"neighbours": 0},
    "hate_speech": {"data": "{data}/tweets", "settings": {"epochs": 1, "min_count": 1}},
    "correlation": {"resamples": 99},
}


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    write_text(tmp_path / "text.txt", 400)
    (tmp_path / "tweets").mkdir()
    write_tweets(tmp_path / "tweets" / "labeled_data.csv")
    return parse_recipe(VALUES, "here", "tiny")


def shorten(path: Path, rows: int) -> None:
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:rows]))


def content(folder: Path) -> dict[str, bytes]:
    names = ("cells/*/*.json", "corpus/*", "findings.json", "inputs.json")
    return {
        str(p): p.read_bytes() for name in names for p in sorted(folder.glob(name)) if p.is_file()
    }


def test_a_finished_study_on_changed_tweets_is_refused_and_left_alone(
    recipe: Recipe, tmp_path: Path
) -> None:
    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0)
    assert run.status == "finished"
    tweets = tmp_path / "tweets" / "labeled_data.csv"
    whole = tweets.read_bytes()
    shorten(tweets, 200)
    next(run.folder.glob("cells/*/hate_speech.json")).unlink()  # to be made on the new rows
    before = content(run.folder)
    for again in (
        lambda: run_study(recipe, out=run.folder, data=tmp_path, jobs=0),
        lambda: eh.resume(run.folder),
        lambda: Study(recipe, run.folder, tmp_path).plan(),
    ):
        with pytest.raises(RunError) as refusal:
            again()
        said = str(refusal.value)
        assert f"{tweets} has changed (SHA-256 " in said
        assert "Finished results that rest on it: 1." in said
        assert "Restore it and give the same command again, or begin a new study" in said
        assert "--out DIR" in said
    assert content(run.folder) == before
    assert eh.Run(run.folder).findings
    tweets.write_bytes(whole)  # restored, with another time of change
    assert run_study(recipe, out=run.folder, data=tmp_path, jobs=0).status == "finished"


@pytest.mark.parametrize("change", ["shorter", "equal length", "one more file", "gone"])
def test_every_change_of_content_is_noticed(recipe: Recipe, tmp_path: Path, change: str) -> None:
    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["corpus"])
    text = tmp_path / "text.txt"
    info, old = text.stat(), text.read_text()
    if change == "gone":
        text.unlink()
        with pytest.raises(DataError, match="there is no such file"):
            run_study(recipe, out=run.folder, data=tmp_path, jobs=0)
        return
    if change == "one more file":
        run_study(recipe, out=run.folder, data=tmp_path, jobs=0)
        (tmp_path / "tweets" / "more.csv").write_text("tweet,class\n")
        with pytest.raises(RunError, match=r"tweets/more.csv is new"):
            run_study(recipe, out=run.folder, data=tmp_path, jobs=0)
        return
    text.write_text(old[:-20] if change == "shorter" else old.replace("come", "stay"))
    os.utime(text, ns=(info.st_atime_ns, info.st_mtime_ns))  # the time says nothing
    with pytest.raises(RunError, match=r"text\.txt has changed"):
        run_study(recipe, out=run.folder, data=tmp_path, jobs=0)


def test_data_that_no_result_rests_on_may_change(recipe: Recipe, tmp_path: Path) -> None:
    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["corpus", "vectors"])
    assert "{data}/tweets" not in read_inputs(run.folder)
    shorten(tmp_path / "tweets" / "labeled_data.csv", 300)
    run = run_study(recipe, out=run.folder, data=tmp_path, jobs=0)
    assert run.status == "finished"
    assert set(read_inputs(run.folder)) == {"{data}/text.txt", "{data}/tweets"}
    (tmp_path / "tweets" / ".DS_Store").write_text("a file of a system")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("text.txt", "tweets"):
        (tmp_path / name).rename(elsewhere / name)
    assert run_study(recipe, out=run.folder, data=elsewhere, jobs=0).status == "finished"


def test_data_that_change_while_a_study_runs_fail_the_stage(recipe: Recipe, tmp_path: Path) -> None:
    from evenhand.study.worker import work

    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0)
    gone = next(run.folder.glob("cells/*/hate_speech.json"))
    gone.unlink()
    shorten(tmp_path / "tweets" / "labeled_data.csv", 200)
    with pytest.raises(RunError, match="has changed"):
        work(str(run.folder), gone.parent.name, "hate_speech")
    assert not gone.exists()


def test_a_study_of_an_earlier_version_is_shown_resumed_and_recorded(
    recipe: Recipe, tmp_path: Path
) -> None:
    """It has no fingerprints: what is finished is taken to rest on the data as they are now."""
    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["corpus", "vectors"])
    (run.folder / FILE).unlink()
    assert eh.Run(run.folder).status == "interrupted"
    assert eh.Run(run.folder).page()
    assert Study(recipe, run.folder, tmp_path).plan()[0]["finished"] == 1
    assert not (run.folder / FILE).exists()
    notes: list[str] = []
    run = run_study(recipe, out=run.folder, data=tmp_path, jobs=0, tell=notes.append)
    assert run.status == "finished"
    assert len(notes) == 1
    assert "did not record what the data were for corpus." in notes[0]
    assert run.facts["notes"] == [notes[0].removeprefix(f"{run.folder}: ")]
    assert set(read_inputs(run.folder)) == {"{data}/text.txt", "{data}/tweets"}
    run = run_study(recipe, out=run.folder, data=tmp_path, jobs=0, tell=notes.append)
    assert len(notes) == len(run.facts["notes"]) == 1
    assert eh.verify(eh.bundle(run)).ok
    write_text(tmp_path / "text.txt", 300)
    with pytest.raises(RunError, match=r"text\.txt has changed"):
        eh.resume(run.folder)


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"inputs": 1}', '{"inputs": {"a": {"bytes": "1", "files": {}}}}']
)
def test_a_damaged_record_is_refused(recipe: Recipe, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "s"
    run_study(recipe, out=folder, data=tmp_path, jobs=0, stages=["corpus"])
    (folder / FILE).write_text(text)
    with pytest.raises(RunError, match=r"inputs\.json: damaged .* Remove it"):
        run_study(recipe, out=folder, data=tmp_path, jobs=0)


def test_the_record_is_sealed_and_read_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    one = Fingerprint.of(tmp_path / "a")
    write_inputs(tmp_path, {"{data}/a": one})
    assert read_inputs(tmp_path) == {"{data}/a": one}
    assert read_sealed(tmp_path / FILE)["inputs"]["{data}/a"]["bytes"] == 1
    assert one.difference(one, tmp_path / "a") == ""


def test_results_of_a_copy_on_other_data_are_not_brought_back(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    for name, text in (("here", "x"), ("copy", "y")):
        (tmp_path / name).mkdir()
        (tmp_path / "a").write_text(text)
        write_inputs(tmp_path / name, {"{data}/a": Fingerprint.of(tmp_path / "a")})
    with pytest.raises(RunError, match="rest on other data"):
        bring_back(tmp_path / "here", tmp_path / "copy")


def test_a_plan_needs_the_data_and_the_same_settings(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--data DIR"):
        Study(recipe, tmp_path / "s").plan()
    with pytest.raises(DataError, match=r"missing/text\.txt: there is no such file"):
        Study(recipe, tmp_path / "s", tmp_path / "missing").plan()
    assert Study(recipe, tmp_path / "s", tmp_path).plan()[0]["left"] == 1
    assert not (tmp_path / "s").exists()
    run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["corpus"])
    other = recipe.model_copy(update={"seed": 7})
    with pytest.raises(RunError, match="holds other embeddings"):
        Study(other, tmp_path / "s", tmp_path).plan()


def test_the_command_plans_nothing_on_data_that_are_not_there(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "evenhand", "study", "kato", "--plan", "--data"]
    done = subprocess.run(
        [*line, str(tmp_path / "MISSING"), "--out", str(tmp_path / "s"), "--json", "-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "there is no such file" in done.stderr
    assert not done.stdout


def test_a_study_takes_no_options_of_servers(recipe: Recipe, tmp_path: Path) -> None:
    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["corpus"])
    with pytest.raises(SpecError, match="--max-cost .* asks no server"):
        eh.resume(run.folder, max_cost=1.0)
    assert json.loads((run.folder / "run.json").read_text())["attempts"] == 1

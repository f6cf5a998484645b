"""A small study from text to correlations: resumed, extended, and honest about what failed."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

import evenhand as eh
from evenhand.errors import DataError, RunError
from evenhand.models.vectors.files import open_vectors
from evenhand.study.recipe import Recipe, parse_recipe
from evenhand.study.running import Study, run_study
from evenhand.words.lexicons.files import weat

pytest.importorskip("gensim", reason="training word vectors needs the train extra")

SETS = weat("kato_winobias")
JOBS = SETS.x, SETS.y


def write_text(path: Path, lines: int = 1_500) -> Path:
    """Sentences in which one set of jobs goes with he and the other with she, mostly."""
    rng = random.Random(0)
    rows = []
    for _ in range(lines):
        side = rng.random() < 0.5
        job = rng.choice(JOBS[side])
        word = rng.choice(SETS.b if side == (rng.random() < 0.8) else SETS.a)
        rows.append(f"the {job} said that {word} would {rng.choice(['come', 'go', 'eat'])} now .")
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    write_text(tmp_path / "text.txt")
    values = {
        "corpus": {"files": ["{data}/text.txt"], "rare": 1},
        "training": {"dimensions": 8, "epochs": 2, "min_count": 1, "replicates": 2},
        "widening": {"neighbours": 0},
        "balancing": {"shares": [0.0]},
        "attract_repel": {
            "regularisations": [0.01], "attract_margins": [1.0], "repel_margins": [0.0],
            "directions": ["reduce"], "batch": 4,
        },
        "correlation": {"resamples": 99},
    }  # fmt: skip
    return parse_recipe(values, "here", "tiny")


def finished(study: Path) -> dict[str, float]:
    """Modification times of everything a stage left behind."""
    return {str(p): p.stat().st_mtime_ns for p in study.rglob("cells/*/*.json")}


def test_a_study_makes_and_measures_every_embedding(recipe: Recipe, tmp_path: Path) -> None:
    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0)
    assert run.status == "finished"
    runs = run.table("study", "items").to_pylist()
    assert [r["family"] for r in runs] == ["original"] * 2 + ["balancing"] * 2 + ["attract_repel"]
    weat = {r["cell"]: r["intrinsic:weat kato_winobias"] for r in runs}
    assert weat["word2vec-attract-repel-reduce-0.01-1-0"] < weat["word2vec-original-1"]
    page = run.report.read_text()
    assert "Nothing could be correlated yet" in page
    assert page.count("reliability") > 2
    found = eh.verify(eh.bundle(run))
    assert found.ok, found.reason
    with pytest.raises(RunError, match="nothing to ask again"):
        eh.verify(eh.bundle(run), rescore=1, model=eh.ScriptedModel({}))
    path = next((run.folder / "cells").glob("*/intrinsic.json"))
    path.write_text(path.read_text().replace("0.", "0.9", 1))
    with pytest.raises(RunError, match="intrinsic.json: damaged"):
        eh.bundle(run)


def test_replicates_differ_and_a_second_study_gives_the_same_bytes(
    recipe: Recipe, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        run_study(recipe, out=tmp_path / name, data=tmp_path, jobs=0)
    same = "cells/word2vec-original-1/vectors/vectors.npy"
    assert (tmp_path / "one" / same).read_bytes() == (tmp_path / "two" / same).read_bytes()
    first, other = (
        open_vectors(tmp_path / "one" / "cells" / f"word2vec-original-{i}" / "vectors").matrix
        for i in (1, 2)
    )
    assert abs(first - other).max() > 1e-3
    assert (tmp_path / "one" / "findings.json").read_bytes() == (
        tmp_path / "two" / "findings.json"
    ).read_bytes()


def test_a_second_run_repeats_nothing_and_other_tests_only_measure_again(
    recipe: Recipe, tmp_path: Path
) -> None:
    run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0)
    before = finished(tmp_path / "s")
    run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0)
    assert finished(tmp_path / "s") == before
    more = recipe.model_copy(update={"tests": ("kato_winobias", "kato_weat8")})
    run_study(more, out=tmp_path / "s", data=tmp_path, jobs=0)
    changed = {p for p, time in finished(tmp_path / "s").items() if before[p] != time}
    assert {Path(p).name for p in changed} == {"intrinsic.json"}
    assert len(changed) == 5


def test_other_embeddings_in_the_same_folder_are_refused(recipe: Recipe, tmp_path: Path) -> None:
    run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["corpus"])
    other = recipe.model_copy(update={"seed": 7})
    with pytest.raises(RunError, match="holds other embeddings"):
        run_study(other, out=tmp_path / "s", data=tmp_path, jobs=0)


def test_a_stage_asked_before_its_needs_says_what_is_missing(
    recipe: Recipe, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match="needs 'word2vec-original-1/vectors'"):
        run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["intrinsic"])


def test_a_missing_file_is_said_before_anything_runs(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "text.txt").unlink()
    with pytest.raises(DataError, match=r"text\.txt"):
        run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0)
    assert not (tmp_path / "s").exists()


def test_a_corpus_without_a_matching_line_fails_with_its_reason(
    recipe: Recipe, tmp_path: Path
) -> None:
    (tmp_path / "text.txt").write_text("rain fell on the hills .\n" * 50)
    run = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0)
    summary = run.facts["probes"]["study"]["summary"]
    assert run.status == "interrupted"
    assert summary["failures"][0].startswith("corpus: ")
    assert all("failed" in line for line in summary["failures"][1:])


def test_the_plan_counts_stages_and_what_is_left(recipe: Recipe, tmp_path: Path) -> None:
    study = Study(recipe, tmp_path / "s", tmp_path, jobs=0, stages=("corpus",))
    study.run()
    rows = {row["stage"]: row for row in study.plan()}
    assert (rows["corpus"]["finished"], rows["vectors"]["left"]) == (1, 5)
    assert rows["intrinsic"]["all"] == 5


def test_the_command_runs_stages_in_processes_and_prints_json(
    recipe: Recipe, tmp_path: Path
) -> None:
    values = recipe.model_dump(mode="json", exclude_none=True)
    text = [f"{k} = {json.dumps(v)}" for k, v in values.items() if not isinstance(v, dict)]
    for name, part in values.items():
        if isinstance(part, dict):
            text += [f"[{name}]", *(f"{k} = {json.dumps(v)}" for k, v in part.items())]
    (tmp_path / "tiny.toml").write_text("\n".join(text))
    command = [sys.executable, "-m", "evenhand", "study", str(tmp_path / "tiny.toml")]
    options = ["--data", str(tmp_path), "--out", str(tmp_path / "s"), "--stages", "corpus"]
    done = subprocess.run(
        [*command, *options, "--json", "-"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["stages_finished"] == 1
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "s"), "--stages", "colour"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "unknown stage 'colour'" in done.stderr


def test_a_cluster_that_does_not_answer_is_one_paragraph(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs Ray: make test-cluster")
    from in_process import evenhand

    words = ("study", "kato-small", "--data", ".", "--out", "s", "--executor", "ray")
    done = evenhand(*words, "--address", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 2
    assert "no Ray cluster answers at '127.0.0.1:1'" in done.stderr


def test_an_unknown_executor_is_named(tmp_path: Path) -> None:
    from in_process import evenhand

    done = evenhand("study", "kato-small", "--executor", "slurm", cwd=tmp_path)
    assert done.returncode == 2
    assert "unknown executor 'slurm'" in done.stderr

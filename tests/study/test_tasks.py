"""The systems built on a study's vectors, and copies of a study that travel."""

from __future__ import annotations

import csv
import os
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenhand.errors import SpecError
from evenhand.models.vectors.files import VectorTable, open_vectors, write_words
from evenhand.study import tasks
from evenhand.study.folder import StudyFolder
from evenhand.study.grid import cells
from evenhand.study.recipe import parse_recipe
from evenhand.study.stages import Bench
from evenhand.study.travel import bring_back, slim_copy
from evenhand.train import hate_speech as hate
from evenhand.train.hate_speech_data import gender_groups, read_labelled, split

pytest.importorskip("torch", reason="detectors need the hf extra")
SHARED = Path(os.environ.get("EVENHAND_SHARED", Path(__file__).parents[3] / "shared"))
WORDS = ["he", "she", "is", "good", "bad", "kind", "rude", "today", "very", "and"]


def keep_vectors(folder: StudyFolder, cell: str, words: list[str]) -> VectorTable:
    rows = np.random.default_rng(0).standard_normal((len(words), 6)).astype(np.float32)
    target = folder.vectors(cell)
    target.mkdir(parents=True)
    write_words(target / "words.parquet", words)
    np.save(target / "vectors.npy", rows)
    folder.write(cell, "vectors", {"words": len(words)})
    return VectorTable(pa.array(words), rows)


def write_tweets(path: Path) -> Path:
    rng = random.Random(0)
    with open(path, "w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["tweet", "class"])
        for number in range(400):
            rude = rng.random() < 0.5
            word = rng.choice(["bad", "rude"] if rude else ["good", "kind"])
            out.writerow(
                [f"{rng.choice(['he', 'she'])} is {word} today {number}", 0 if rude else 2]
            )
    return path


def test_detectors_of_a_study_are_those_of_the_training_function(tmp_path: Path) -> None:
    path = write_tweets(tmp_path / "labeled_data.csv")
    spec = {"data": str(tmp_path), "repeats": 2, "settings": {"epochs": 3, "min_count": 1}}
    recipe = parse_recipe({"corpus": {"files": ["a"]}, "hate_speech": spec}, "here")
    cell = cells(recipe)[0]
    folder = StudyFolder(tmp_path / "s")
    table = keep_vectors(folder, cell.name, WORDS)
    found = tasks.detect_hate_speech(Bench(recipe, folder, None, cell))
    train, dev, test = split(read_labelled(path))
    settings = hate.HateSpeechTraining(epochs=3, min_count=1)
    gaps = []
    for seed in (0, tasks.REPEAT):
        model = hate.train_hate_speech(table, train, dev, seed, recipe=settings)
        rows = hate.hate_speech_gaps(model, test, gender_groups(test), resamples=2).gaps
        gaps.append({row.metric: row.gap for row in rows})
    for metric in ("precision", "recall", "f1"):
        expected = np.mean([row[metric] for row in gaps])
        assert found["metrics"][f"gender {metric} gap"] == pytest.approx(expected, abs=1e-12)
    assert found["quality"] > 0.9


def test_a_number_missing_in_one_repeat_is_missing_in_the_mean() -> None:
    assert tasks.averaged([{"a": 1.0, "b": None}, {"a": 3.0, "b": 2.0}]) == {"a": 2.0, "b": None}


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "data/coref").is_dir(), reason="needs the shared coref data")
def test_a_slim_copy_holds_the_words_of_the_task_and_results_come_back(tmp_path: Path) -> None:
    spec = {"train": ["{data}/coref/ontogum.conll.xz"], "winobias": "{data}/winobias"}
    recipe = parse_recipe({"corpus": {"files": ["a"]}, "coreference": spec}, "here")
    folder = StudyFolder(tmp_path / "s")
    names = [c.name for c in cells(recipe)]
    for name in names[:2]:
        keep_vectors(folder, name, ["the", "nurse", "zzyzx", "he"])
    (folder.root / "run.json").write_text("{}")
    assert slim_copy(recipe, folder.root, tmp_path / "copy", SHARED / "data") == 2
    kept = open_vectors(tmp_path / "copy" / "cells" / names[0] / "vectors")
    assert kept.words.to_pylist() == ["the", "nurse", "he"]
    full = open_vectors(folder.vectors(names[0])).matrix[[0, 1, 3]]
    np.testing.assert_allclose(kept.matrix, full, rtol=1e-3)
    StudyFolder(tmp_path / "copy").write(names[0], "coreference", {"metrics": {"gap": 0.1}})
    assert bring_back(folder.root, tmp_path / "copy") == 1
    assert folder.read(names[0], "coreference")["metrics"] == {"gap": 0.1}


def test_a_split_of_ones_own_may_be_folders_of_conll_files(tmp_path: Path) -> None:
    text = (
        "#begin document (nw/{0}); part 000\n"
        "nw/{0} 0 0 Ann NNP * - - - - * (0)\nnw/{0} 0 1 slept VBD * - - - - * -\n\n"
        "nw/{0} 0 0 She PRP * - - - - * (0)\nnw/{0} 0 1 dreamt VBD * - - - - * -\n\n"
        "#end document\n"
    )
    for part in ("train", "dev", "test"):
        (tmp_path / part / "nw").mkdir(parents=True)
        (tmp_path / part / "nw" / "a.v4_gold_conll").write_text(text.format(part))
        (tmp_path / part / "nw" / "a.v4_auto_conll").write_text("not read")
    spec = {
        "train": ["{data}/train"], "dev": "{data}/dev", "test": "{data}/test", "winobias": "w",
    }  # fmt: skip
    recipe = parse_recipe({"corpus": {"files": ["a"]}, "coreference": spec}, "here")
    assert recipe.coreference is not None
    found = tasks.corpora_of(recipe.coreference, tmp_path)
    assert [d.tokens for d in (*found.train, *found.dev, *found.test)] == [
        ("Ann", "slept", "She", "dreamt")
    ] * 3
    with pytest.raises(SpecError, match="dev and test belong together"):
        parse_recipe({"corpus": {"files": ["a"]}, "coreference": {**spec, "dev": None}}, "here")

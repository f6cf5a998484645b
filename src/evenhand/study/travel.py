"""A copy of a study that is small enough to travel to a machine with a GPU.

Coreference looks up only the words of its own files, so a copy with those rows is enough there.
Numbers are rounded to half precision, which packs them well; the results say so.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from evenhand.arrays import save_array
from evenhand.errors import RunError
from evenhand.models.vectors.files import open_vectors, write_words
from evenhand.seals import FILES
from evenhand.study.folder import VECTORS, StudyFolder
from evenhand.study.grid import cells
from evenhand.study.inputs import read_inputs, write_inputs
from evenhand.study.recipe import Recipe, place
from evenhand.study.tasks import corpora_of
from evenhand.train.coreference_data import read_winobias
from evenhand.words.conll import Document


def words_of(documents: Iterable[Document]) -> set[str]:
    """The words of documents as written and in lower case."""
    found = {word for d in documents for word in d.tokens}
    return found | {word.lower() for word in found}


def slim_copy(recipe: Recipe, folder: Path, out: Path, data: Path | None) -> int:
    """Copy a study with the vectors of coreference words only; gives the number of cells copied.

    Raises:
        RunError: the recipe has no coreference task, or no vectors are finished.
    """
    spec = recipe.coreference
    if spec is None:
        raise RunError(f"study {recipe.name!r} has no [coreference], so nothing needs to travel.")
    corpora = corpora_of(spec, data)
    documents = [*corpora.train, *corpora.dev, *corpora.test]
    for part in read_winobias(place(spec.winobias, data)).values():
        documents += part
    words = words_of(documents)
    here, there = StudyFolder(folder), StudyFolder(out)
    copied = 0
    for cell in cells(recipe):
        if here.done(cell.name, VECTORS) and not here.done(
            cell.name, "coreference", recipe.settings_of("coreference")
        ):
            _copy(here, there, cell.name, words)
            copied += 1
    if not copied:
        raise RunError(f"{folder}: no finished vectors wait for coreference.")
    shutil.copy(folder / "run.json", out / "run.json")
    write_inputs(out, read_inputs(folder))
    return copied


def _copy(here: StudyFolder, there: StudyFolder, name: str, words: set[str]) -> None:
    table = open_vectors(here.vectors(name))
    all_words = table.words.to_pylist()
    rows = [i for i, word in enumerate(all_words) if word in words]
    target = there.vectors(name)
    target.mkdir(parents=True, exist_ok=True)
    write_words(target / "words.parquet", [all_words[i] for i in rows])
    small = np.asarray(table.matrix[rows], np.float16).astype(np.float32)
    save_array(target / "vectors.npy", small)
    there.write(name, VECTORS, {k: v for k, v in here.read(name, VECTORS).items() if k != FILES})


def bring_back(folder: Path, copy: Path) -> int:
    """Take finished coreference results of a copy; gives their number.

    Raises:
        RunError: the copy read other data than the study.
    """
    ours, theirs = read_inputs(folder), read_inputs(copy)
    for name in sorted(ours.keys() & theirs.keys()):
        if what := ours[name].difference(theirs[name], Path(name)):
            raise RunError(
                f"{copy}: its results rest on other data than the study in {folder}: {what}. Run "
                "the copy again on the same data."
            )
    found = sorted((copy / "cells").glob("*/coreference.json"))
    for path in found:
        target = StudyFolder(folder).cell(path.parent.name)
        if target.is_dir():
            shutil.copy(path, target / path.name)
    return len(found)

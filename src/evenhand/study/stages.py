"""What each stage of a study does: clean and label text, make vectors, measure them.

A stage gets a bench (recipe, folder, data, cell) and gives the numbers to keep. Files it makes
appear whole, so a stage that was killed leaves nothing behind but a temporary name.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.arrays import save_array
from evenhand.corpora import (
    BalancedView,
    Corpus,
    balanced,
    clean_corpus,
    label_corpus,
    open_corpus,
    read_labels,
)
from evenhand.mitigations.vectors.attract_repel import AttractRepel, attract_repel, pairs_for
from evenhand.models.vectors.files import VectorTable, open_vectors, write_words
from evenhand.probes.association.score import associate, choose_tests
from evenhand.study.folder import VECTORS, StudyFolder
from evenhand.study.grid import ATTRACT_REPEL, BALANCING, Cell
from evenhand.study.recipe import Recipe, place
from evenhand.train.words import WordTraining, train_words
from evenhand.words.lexicons.files import WordSets, weat
from evenhand.words.sets import expand
from evenhand.writing import drafted

SIDES = ("x", "y", "a", "b")
CLEANED = "text.txt.gz"
LABELS = "labels"
MOST_MISSING = 0.5
"""Share of a set's words that may be missing: small corpora lack many names."""


@dataclass(frozen=True)
class Bench:
    """All that a stage may look at."""

    recipe: Recipe
    folder: StudyFolder
    data: Path | None
    cell: Cell | None = None

    @property
    def own(self) -> Cell:
        assert self.cell is not None, "this stage belongs to a cell"
        return self.cell

    @property
    def vectors(self) -> VectorTable:
        return self.vectors_of(self.own.name)

    def vectors_of(self, cell: str) -> VectorTable:
        """The vectors that a cell's stage left, and no others."""
        self.folder.check(cell, VECTORS)
        return open_vectors(self.folder.vectors(cell))

    @property
    def text(self) -> Corpus:
        """The cleaned text, as the corpus stage left it."""
        self.folder.check("corpus", "corpus")
        return open_corpus(self.folder.corpus / CLEANED)


def prepare_corpus(bench: Bench) -> dict[str, Any]:
    """Clean the text, widen the word set, and label every line once."""
    spec, folder = bench.recipe.corpus, bench.folder.corpus
    folder.mkdir(parents=True, exist_ok=True)
    files = [place(path, bench.data) for path in spec.files]
    cleaned = clean_corpus(files, spec.cleaning, folder / CLEANED, least=spec.rare)
    sets = widened(bench.recipe)
    labels = label_corpus(open_corpus(folder / CLEANED), sets)
    if (folder / LABELS).exists():
        shutil.rmtree(folder / LABELS)
    labels.save(folder / LABELS)
    words = {side: list(getattr(sets, side)) for side in SIDES}
    return {"cleaned": asdict(cleaned), "labels": labels.counts(), "word_set": words}


def word_set(bench: Bench) -> WordSets:
    """The sets that say what is stereotypical, as the corpus stage left them."""
    kept = bench.folder.read("corpus", "corpus")["word_set"]
    x, y, a, b = (tuple(kept[side]) for side in SIDES)
    return WordSets(bench.recipe.word_set, x, y, a, b)


def widened(recipe: Recipe) -> WordSets:
    """The recipe's sets with the neighbours of their words, where asked."""
    test = weat(recipe.word_set)
    if not recipe.widening.neighbours:
        return test
    return expand(test, recipe.widening.vectors, neighbours=recipe.widening.neighbours).test


def make_vectors(bench: Bench) -> dict[str, Any]:
    """Train the cell's vectors, or change those of its base."""
    target = bench.folder.vectors(bench.own.name)
    shutil.rmtree(target, ignore_errors=True)  # left by a stage that was killed
    with drafted(target) as draft:
        make = _pulled if bench.own.family == ATTRACT_REPEL else _trained
        return make(bench, draft)


def _trained(bench: Bench, out: Path) -> dict[str, Any]:
    spec, cell = bench.recipe.training, bench.own
    recipe = WordTraining(
        algorithm=cell.algorithm,
        dimensions=spec.dimensions,
        window=spec.window,
        epochs=spec.epochs,
        min_count=spec.min_count,
        seed=cell.seed,
    )
    corpus = bench.text
    text: Corpus | BalancedView = corpus
    if cell.family == BALANCING:
        assert cell.share is not None
        labels = read_labels(bench.folder.corpus / LABELS, corpus=corpus)
        text = balanced(labels, cell.direction, cell.share, seed=bench.recipe.seed)
    card = train_words(text, out, recipe)
    return {name: card[name] for name in ("words", "tokens", "lines", "reproducible")}


def _pulled(bench: Bench, out: Path) -> dict[str, Any]:
    cell, grid = bench.own, bench.recipe.attract_repel
    assert grid is not None
    base = bench.vectors_of(cell.base)
    attract, repel = pairs_for(word_set(bench), cell.direction)
    settings = AttractRepel(
        attract_margin=cell.attract_margin or 0.0,
        repel_margin=cell.repel_margin or 0.0,
        regularisation=cell.regularisation or 0.0,
        batch_size=grid.batch,
        epochs=grid.epochs,
        seed=cell.seed,
    )
    moved = attract_repel(base, attract, repel, settings=settings)
    write_words(out / "words.parquet", moved.words.to_pylist())
    save_array(out / "vectors.npy", np.asarray(moved.matrix, np.float32))
    return {"words": len(moved), "attract_pairs": len(attract), "repel_pairs": len(repel)}


def measure_vectors(bench: Bench) -> dict[str, Any]:
    """WEAT effect size and RNSB of every test."""
    tests = choose_tests(bench.recipe.tests)
    options = {"max_missing": MOST_MISSING, "samples": 99, "placebos": 0}
    rows = associate(bench.vectors, tests, **options)
    metrics: dict[str, float | None] = {}
    for row in rows:
        metrics[f"weat {row['test']}"], metrics[f"rnsb {row['test']}"] = row.value, row["rnsb"]
    keep = ("test", "statistic", "effect_size", "rnsb", "coverage", "reason")
    return {"metrics": metrics, "tests": [{k: row[k] for k in keep} for row in rows]}


def hate_speech(bench: Bench) -> dict[str, Any]:
    """A detector trained on the cell's vectors, and its gaps between groups."""
    from evenhand.study.tasks import detect_hate_speech

    return detect_hate_speech(bench)


def coreference(bench: Bench) -> dict[str, Any]:
    """A coreference model trained on the cell's vectors, and its WinoBias gaps."""
    from evenhand.study.tasks import resolve_coreference

    return resolve_coreference(bench)


STAGES: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "corpus": prepare_corpus,
    "vectors": make_vectors,
    "intrinsic": measure_vectors,
    "hate_speech": hate_speech,
    "coreference": coreference,
}

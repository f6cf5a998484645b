"""The coreference network: it learns, batches do not change it, it can be saved and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenhand.errors import DataError, ModelError
from evenhand.models.vectors.files import VectorTable
from evenhand.train import coreference as job
from evenhand.words.conll import Document

pytest.importorskip("torch", reason="needs the hf extra")

WOMEN, MEN = ("anna", "mary", "rosa", "ines"), ("tom", "paul", "omar", "hugo")
RECIPE = job.CoreferenceTraining(
    epochs=40, plans=1, tokens=160, piece=60, hidden=12, feed=16, learning_rate=0.01, dropout=0.0
)


def stories(seed: int, n: int) -> list[Document]:
    """Two people meet; each comes back as a pronoun that fits the vectors' gender axis."""
    rng = np.random.default_rng(seed)
    out = []
    for number in range(n):
        a, b = (str(rng.choice(names)) for names in (WOMEN, MEN))
        first, second = (a, b) if rng.integers(2) else (b, a)
        said = ["she", "he"] if rng.integers(2) else ["he", "she"]
        tokens = (first, "met", second, ".", said[0], "left", ".", said[1], "slept", ".")
        places = {first: 0, second: 2}
        where = {word: 4 + 3 * k for k, word in enumerate(said)}
        clusters = tuple(
            ((places[x], places[x] + 1), (where[p], where[p] + 1))
            for x, p in ((a, "she"), (b, "he"))
        )
        out.append(Document(f"d{number}", tokens, (4, 7, 10), clusters))
    return out


@pytest.fixture(scope="module")
def vectors() -> VectorTable:
    words = [*WOMEN, *MEN, "she", "he", "met", "left", "slept", "."]
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(len(words), 6)).astype(np.float32)
    matrix[:, 0] = 0
    matrix[[words.index(w) for w in (*WOMEN, "she")], 0] = 3
    matrix[[words.index(w) for w in (*MEN, "he")], 0] = -3
    return VectorTable(pa.array(words), matrix, "made")


@pytest.fixture(scope="module")
def model(vectors: VectorTable) -> Any:
    return job.train_coreference(
        vectors, stories(0, 24), stories(1, 6), recipe=RECIPE, device="cpu"
    )


def test_it_learns_who_she_and_he_are(model: Any) -> None:
    assert model.card["loss"][-1] < 0.3 * model.card["loss"][0]
    assert job.evaluate(model, stories(2, 20))["scores"]["mean"]["f1"] > 0.9


def test_predictions_do_not_depend_on_the_batch(model: Any) -> None:
    documents = stories(3, 6)
    longer = Document("long", documents[0].tokens * 4, (10, 20, 30, 40))
    alone = [model.predict([d])[0].clusters for d in documents]
    assert [d.clusters for d in model.predict([longer, *documents])[1:]] == alone


def test_the_same_seed_gives_the_same_weights(model: Any, vectors: VectorTable) -> None:
    short = RECIPE.model_copy(update={"epochs": 2})
    made = [
        job.train_coreference(vectors, stories(0, 6), recipe=short, seed=s, device="cpu").card[
            "loss"
        ]
        for s in (3, 3, 4)
    ]
    assert made[0] == made[1]
    assert made[0] != made[2]


def test_saved_and_loaded_it_predicts_the_same(
    model: Any, vectors: VectorTable, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    again = job.load_coreference(tmp_path / "m", vectors, device="cpu")
    documents = stories(4, 5)
    assert again.predict(documents) == model.predict(documents)
    with pytest.raises(DataError, match="not empty"):
        model.save(tmp_path / "m")
    narrow = VectorTable(vectors.words, vectors.matrix[:, :3], "narrow")
    with pytest.raises(ModelError, match="6-dimensional"):
        job.load_coreference(tmp_path / "m", narrow)
    with pytest.raises(ModelError, match="not a saved coreference model"):
        job.load_coreference(tmp_path / "nothing", vectors)


def test_documents_without_clusters_and_foreign_vectors_are_refused(vectors: VectorTable) -> None:
    bare = [d.with_clusters([]) for d in stories(0, 3)]
    with pytest.raises(DataError, match="nothing to learn"):
        job.train_coreference(vectors, bare, recipe=RECIPE, device="cpu")
    foreign = VectorTable(pa.array(["xyz"]), np.ones((1, 4), np.float32), "foreign")
    with pytest.raises(DataError, match="none of the"):
        job.train_coreference(foreign, stories(0, 3), recipe=RECIPE, device="cpu")


def test_one_sentence_of_one_word_can_be_predicted(model: Any) -> None:
    assert model.predict([Document("a", ("Yes",), (1,))])[0].clusters == ()

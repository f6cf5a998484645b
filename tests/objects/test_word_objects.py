"""Word vectors that somebody holds: gensim, spaCy, a plain mapping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import DataError
from evenhand.requests import Embed
from evenhand.words.lexicons import weat

TESTS = [{"name": "association", "tests": ["weat7"]}]


@pytest.fixture(scope="module")
def made() -> dict[str, np.ndarray]:
    """A vector for every word of a test, some of them leaning."""
    rng = np.random.default_rng(0)
    sets = weat("weat7")
    words = [w for key in "xyab" for w in getattr(sets, key)]
    return {w: rng.normal(size=8).astype(np.float32) for w in words}


def keyed(made: dict[str, np.ndarray]) -> Any:
    gensim = pytest.importorskip("gensim.models", reason="needs the train extra")
    vectors = gensim.KeyedVectors(8)
    vectors.add_vectors(list(made), np.stack(list(made.values())))
    return vectors


def spacy_vectors(made: dict[str, np.ndarray]) -> Any:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    nlp = spacy.blank("en")
    for word, row in made.items():
        nlp.vocab.set_vector(word, row)
    return nlp


def plain(made: dict[str, np.ndarray]) -> Any:
    return made


@pytest.mark.parametrize("make", [plain, keyed, spacy_vectors])
def test_the_findings_are_those_of_the_file(
    made: dict[str, np.ndarray], tmp_path: Path, make: Any
) -> None:
    file = tmp_path / "made.txt"
    rows = [f"{w} {' '.join(map(repr, map(float, row)))}" for w, row in made.items()]
    file.write_text("\n".join(rows) + "\n")
    want = eh.audit(file, TESTS, out=tmp_path / "file")
    got = eh.audit(make(made), TESTS, out=tmp_path / "held", name="made.txt")
    assert [f.value for f in got.findings] == pytest.approx([f.value for f in want.findings])
    assert [f.id for f in got.findings] == [f.id for f in want.findings]


def test_every_form_of_spacy_gives_the_same_rows(made: dict[str, np.ndarray]) -> None:
    asked = Embed([*made, "nowhere"])
    want = [*made.values(), np.full(8, np.nan)]
    nlp = spacy_vectors(made)
    for given in (nlp, nlp.vocab, nlp.vocab.vectors):
        model = eh.load_model(given)
        assert np.array_equal(model.answer(asked, None)["vector"], want, equal_nan=True)


def test_a_trained_word2vec_is_its_vectors() -> None:
    gensim = pytest.importorskip("gensim.models", reason="needs the train extra")
    text = [["she", "is", "a", "nurse"], ["he", "is", "a", "doctor"]] * 5
    trained = gensim.Word2Vec(text, vector_size=4, min_count=1, seed=0, workers=1)
    model = eh.load_model(trained)
    assert model.kind == "vectors"
    assert np.allclose(model.answer(Embed(["she"]), None)["vector"][0], trained.wv["she"])


def test_they_are_known_by_words_and_numbers(made: dict[str, np.ndarray]) -> None:
    first = eh.load_model(made).fingerprint
    assert first == eh.load_model(dict(made)).fingerprint
    renamed = {f"{w}s": row for w, row in made.items()}
    moved = {w: row + 1 for w, row in made.items()}
    assert len({first, *(eh.load_model(m).fingerprint for m in (renamed, moved))}) == 3


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"a": [1.0, 2.0], "b": [1.0]}, "vectors of one length are expected"),
        ({"a": [1.0, 2.0]}, "words with a vector: 1. Two"),
        ({1: [1.0], 2: [2.0], 3: [3.0]}, "words with a vector: 0. Two"),
        ({"a": [1.0], "b": "far"}, "'b' has str where the numbers of its vector are expected"),
    ],
)
def test_mappings_that_are_no_vectors_are_refused(given: Any, told: str) -> None:
    with pytest.raises(DataError, match=told):
        eh.load_model(given)

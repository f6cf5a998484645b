"""The hate-speech CNN: it learns, padding changes nothing, gaps are those of the predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenhand.errors import DataError, ModelError
from evenhand.models.vectors.files import VectorTable
from evenhand.train import hate_speech as job
from evenhand.train.hate_speech_data import Tweets, gender_groups, read_labelled, split

torch = pytest.importorskip("torch", reason="needs the hf extra")

BAD, GOOD, FILL = ("vile", "scum"), ("kind", "calm"), ("the", "a", "day", "so", "we", "go")
RECIPE = job.HateSpeechTraining(filters=8, epochs=25, batch=25, min_count=3)


def texts(seed: int, n: int) -> Tweets:
    """Texts of 1 to 9 words; the positive ones hold a bad word somewhere."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    tokens = []
    for label in labels:
        words = [str(w) for w in rng.choice(FILL, rng.integers(1, 9))]
        words.insert(int(rng.integers(len(words) + 1)), str(rng.choice(BAD if label else GOOD)))
        tokens.append(words)
    return Tweets(tokens, labels.astype(np.int64), tuple("ab"[k % 2] for k in range(n)))


@pytest.fixture(scope="module")
def vectors() -> VectorTable:
    words = [*BAD, *GOOD[:1], *FILL]
    return VectorTable(
        pa.array(words), np.random.default_rng(0).normal(size=(len(words), 6)).astype(np.float32)
    )


@pytest.fixture(scope="module")
def model(vectors: VectorTable) -> Any:
    return job.train_hate_speech(vectors, texts(0, 400), texts(1, 80), recipe=RECIPE)


def test_it_learns_also_from_a_word_without_a_vector(model: Any) -> None:
    test = texts(2, 200)
    assert "calm" in model.extra
    assert (model.predict(test.tokens) == test.labels).mean() > 0.95


def test_padding_cannot_change_a_prediction(model: Any) -> None:
    test = texts(3, 40)
    longer = [*test.tokens, ["we", "go"] * 40]
    alone = np.concatenate([model.probabilities([t]) for t in test.tokens])
    assert np.allclose(model.probabilities(test.tokens), alone, atol=1e-6)
    assert np.allclose(model.probabilities(longer)[:-1], alone, atol=1e-6)


def test_as_published_padding_takes_part(model: Any, vectors: VectorTable) -> None:
    weights = {k: v.clone() for k, v in model.weights.items()}
    weights["bias"] += 1.0
    published = job.HateSpeechModel(
        weights,
        vectors,
        model.scale,
        model.extra,
        job.HateSpeechTraining(filters=8, as_published=True),
    )
    short, longer = [["vile", "scum", "vile", "scum", "vile"]], [["we"] * 30]
    assert published.probabilities(short)[0] != published.probabilities(short + longer)[0]


def test_the_convolution_is_the_plain_one(model: Any) -> None:
    tokens = [["vile", "the", "day", "so", "we", "go", "a"]]
    numbers, table = job._encode(tokens, model.vectors, model.extra, model._rows(), model.scale)
    x = torch.from_numpy(table)[torch.from_numpy(numbers[0])].T[None]
    best, column = [], 0
    for k, height in enumerate(job.HEIGHTS):
        block = model.weights["filters"][:, column : column + 8 * height]
        kernel = block.view(-1, height, 8).permute(2, 0, 1)
        made = torch.nn.functional.conv1d(x, kernel, model.weights["bias"][8 * k : 8 * k + 8])
        best.append(made.relu().amax(-1))
        column += 8 * height
    logits = torch.cat(best, 1) @ model.weights["out"].T + model.weights["out_bias"]
    assert model.probabilities(tokens)[0] == pytest.approx(
        float(logits.softmax(-1)[0, 1]), abs=1e-6
    )


def test_output_rows_are_no_longer_than_three(model: Any) -> None:
    assert float(model.weights["out"].norm(dim=1).max()) <= 3.0 + 1e-5


def test_the_scale_of_the_vectors_does_not_matter(model: Any, vectors: VectorTable) -> None:
    scaled = VectorTable(vectors.words, vectors.matrix * 8)
    again = job.train_hate_speech(scaled, texts(0, 400), texts(1, 80), recipe=RECIPE)
    test = texts(4, 50).tokens
    assert np.allclose(again.probabilities(test), model.probabilities(test), atol=1e-4)


def test_saved_and_loaded_it_predicts_the_same(
    model: Any, vectors: VectorTable, tmp_path: Path
) -> None:
    model.save(tmp_path / "m")
    again = job.load_hate_speech(tmp_path / "m", vectors)
    test = texts(5, 30).tokens
    assert np.array_equal(again.probabilities(test), model.probabilities(test))
    with pytest.raises(ModelError, match="6-dimensional"):
        job.load_hate_speech(tmp_path / "m", VectorTable(vectors.words, vectors.matrix[:, :2]))
    with pytest.raises(ModelError, match="not a saved hate-speech model"):
        job.load_hate_speech(tmp_path, vectors)


def test_one_class_is_refused(vectors: VectorTable, tmp_path: Path) -> None:
    one = Tweets([["a"], ["b"]], np.asarray([1, 1]))
    with pytest.raises(DataError, match="one class only"):
        job.train_hate_speech(vectors, one, texts(1, 20))
    table = tmp_path / "t.csv"
    table.write_text("tweet,class\nhello,2\nthere,2\n")
    with pytest.raises(DataError, match="one class"):
        read_labelled(table)


def test_an_absent_group_has_no_gap_but_a_reason(model: Any) -> None:
    found = job.hate_speech_gaps(model, texts(6, 40), None, "a", "zz")
    assert np.isnan(found.gaps[0].gap)
    assert found.gaps[0].reason == "no example of group 'zz'"
    assert found.rates["a"].n == 20


def test_gender_groups_and_split_keep_repeats_together() -> None:
    tweets = Tweets(
        [["he", "ran"], ["her", "car"], ["she", "and", "he"], ["rain"]] * 2, np.asarray([0, 1] * 4)
    )
    assert gender_groups(tweets)[:4] == ("male", "female", "both", "none")
    parts = [{" ".join(t) for t in part.tokens} for part in split(tweets, dev=0.3, test=0.4)]
    assert sum(map(len, parts)) == len(set.union(*parts))


@pytest.mark.shared
def test_davidson_is_read_with_its_published_counts(shared: Path) -> None:
    tweets = read_labelled(shared / "data" / "hate_speech" / "davidson" / "labeled_data.csv.xz")
    assert len(tweets) == 24_783
    assert int(tweets.labels.sum()) == 1_430 + 19_190

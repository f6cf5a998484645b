"""Word-vector training: same bytes for the same seed, what is read, what is written."""

from __future__ import annotations

import builtins
import json
import struct

import numpy as np
import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.corpora import WordSets, balanced, label_corpus, open_corpus
from evenhand.errors import DataError, MissingExtra, SpecError
from evenhand.models.vectors.files import open_vectors
from evenhand.train.words import WordTraining, train_words

SMALL = WordTraining(dimensions=12, epochs=2, buckets=500, seed=3)
TEST = WordSets("t", x=("driver",), y=("nurse",), a=("he",), b=("she",))


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    rng = np.random.default_rng(0)
    words = np.array(["he", "she", "driver", "nurse", *(f"w{k}" for k in range(40))])
    lines = [" ".join(words[rng.integers(0, len(words), 9)]) for _ in range(800)]
    path = tmp_path_factory.mktemp("c") / "text.txt.gz"
    from evenhand.writing import packed_writer

    with packed_writer(path) as out:
        out.write("\n".join(lines) + "\nonce only\n")
    return open_corpus(path)


@pytest.fixture(scope="module", autouse=True)
def _gensim():
    pytest.importorskip("gensim", reason="needs the train extra")


def files_of(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.iterdir())}


@pytest.mark.parametrize("algorithm", ["word2vec", "fasttext"])
def test_one_worker_gives_the_same_bytes_twice_and_another_seed_does_not(
    corpus, tmp_path, algorithm
):
    recipe = WordTraining(algorithm=algorithm, dimensions=12, epochs=2, buckets=500, seed=3)
    for name in ("one", "two"):
        train_words(corpus, tmp_path / name, recipe, formats=["text", "binary"])
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")
    other = WordTraining(algorithm=algorithm, dimensions=12, epochs=2, buckets=500, seed=4)
    train_words(corpus, tmp_path / "three", other)
    rows = [np.load(tmp_path / n / "vectors.npy") for n in ("one", "three")]
    assert rows[0].shape == (44, 12)
    assert not np.allclose(*rows)


def test_every_format_gives_the_same_vectors_back(corpus, tmp_path):
    card = train_words(corpus, tmp_path / "v", SMALL, formats=["text", "binary", "glove"])
    own = open_vectors(tmp_path / "v")
    assert card["words"] == len(own) == 44
    assert "once" not in own.index
    for name in ("vectors.txt", "vectors.bin", "vectors.glove.txt"):
        read = open_vectors(tmp_path / "v" / name)
        assert read.words.to_pylist() == own.words.to_pylist()
        assert (read.matrix == own.matrix).all()
    raw = (tmp_path / "v" / "vectors.bin").read_bytes()
    assert raw.startswith(b"44 12\n")
    assert struct.unpack("<f", raw.split(b" ", 2)[2][:4])[0] == own.matrix[0, 0]
    from gensim.models import KeyedVectors

    others = KeyedVectors.load_word2vec_format(str(tmp_path / "v" / "vectors.bin"), binary=True)
    assert (others["nurse"] == own.matrix[own.index["nurse"]]).all()


def test_a_balanced_view_is_trained_on_without_a_copy_and_remembered(corpus, tmp_path):
    labels = label_corpus(corpus, TEST)
    view = balanced(labels, "reduce", 0.2, seed=5)
    card = train_words(view, tmp_path / "view", SMALL)
    view.write(tmp_path / "copy.txt")
    copied = train_words(open_corpus(tmp_path / "copy.txt"), tmp_path / "copied", SMALL)
    assert card["lines"] == copied["lines"] < len(labels)
    assert (tmp_path / "view/vectors.npy").read_bytes() == (
        tmp_path / "copied/vectors.npy"
    ).read_bytes()
    told = json.loads((tmp_path / "view/training.json").read_text())["corpus"]["balance"]
    assert (told["direction"], told["share"], told["seed"]) == ("reduce", 0.2, 5)
    assert told["lines_kept"] == int(view.kept().sum())


def test_fasttext_makes_vectors_for_words_the_corpus_lacks(corpus, tmp_path):
    recipe = WordTraining(algorithm="fasttext", dimensions=12, epochs=1, buckets=500)
    card = train_words(corpus, tmp_path / "f", recipe, also=["drivers", "nurse"])
    table = open_vectors(tmp_path / "f")
    assert card["words_from_ngrams"] == 1
    assert table.words.to_pylist()[-1] == "drivers"
    assert np.linalg.norm(table.matrix[-1]) > 0
    with pytest.raises(SpecError, match="needs fastText"):
        train_words(corpus, tmp_path / "g", SMALL, also=["drivers"])


def test_too_little_text_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.txt").write_text("one two three\n")
    with pytest.raises(DataError, match=r"no word occurs 5 times in 1 lines.*--min-count"):
        train_words(open_corpus(tmp_path / "a.txt"), tmp_path / "out", SMALL)
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_wrong_recipes_and_full_folders_are_refused(corpus, tmp_path):
    with pytest.raises(SpecError, match="Did you mean 'word2vec'"):
        WordTraining(algorithm="wordvec")
    with pytest.raises(SpecError, match="epochs: .* got 0"):
        WordTraining(epochs=0)
    (tmp_path / "here").write_text("x")
    with pytest.raises(DataError, match="the folder is not empty"):
        train_words(corpus, tmp_path, SMALL)
    with pytest.raises(SpecError, match="unknown format 'txt'"):
        train_words(corpus, tmp_path / "n", SMALL, formats=["txt"])


def test_without_gensim_the_message_says_what_to_install(corpus, tmp_path, monkeypatch):
    real = builtins.__import__
    import importlib

    def absent(name, *args):
        if name.startswith("gensim"):
            raise ImportError("No module named 'gensim'")
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtra, match=r"pip install 'evenhand\[train\]'"):
        train_words(corpus, tmp_path / "out", SMALL)


def test_the_command_line_trains_on_a_sample(corpus, tmp_path):
    sets = tmp_path / "sets.json"
    sets.write_text(json.dumps({"t": {k: getattr(TEST, k) for k in "xyab"}}))
    args = ["train", "words", corpus.paths[0], "--out", str(tmp_path / "o"), "--dimensions", "8",
            "--epochs", "1", "--balance", "increase", "--share", "0.5", "--sets", str(sets),
            "--json", "-"]  # fmt: skip
    shown = CliRunner().invoke(app, args, catch_exceptions=False)
    assert json.loads(shown.stdout)["corpus"]["balance"]["direction"] == "increase"
    assert open_vectors(tmp_path / "o").dimensions == 8
    args = args[: args.index("--share")]
    assert isinstance(CliRunner().invoke(app, [*args[:3], "--out", "x", "--balance", "reduce"])
                      .exception, SpecError)  # fmt: skip

"""Reading corpora: many files, packed input, and what is said about broken ones."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle

import pytest

from evenhand.corpora import open_corpus
from evenhand.errors import DataError
from evenhand.writing import packed_writer

LINES = ["he is ä doctor", "", "she sings  twice "] * 500
SUFFIXES = ("", ".gz", ".bz2", ".xz", ".zst")


def written(path):
    with packed_writer(path) as out:
        out.write("\n".join(LINES) + "\n")
    return path


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_packing_gives_the_same_lines_back(tmp_path, suffix):
    corpus = open_corpus(written(tmp_path / f"a.txt{suffix}"))
    assert list(corpus.lines()) == LINES
    sentences = list(corpus)
    assert len(sentences) == 1000
    assert sentences[1] == ["she", "sings", "twice"]


@pytest.mark.parametrize(("suffix", "pack"), [
    (".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress),
])  # fmt: skip
def test_packing_is_known_by_content_not_by_name(tmp_path, suffix, pack):
    path = tmp_path / "misnamed.txt"
    path.write_bytes(pack(b"one\ntwo"))
    assert list(open_corpus(path).lines()) == ["one", "two"]


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_a_file_cut_short_is_named_with_its_packing(tmp_path, suffix):
    path = written(tmp_path / f"a.txt{suffix}")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match=r"a\.txt\.\w+: broken \w+ data .* again\."):
        list(open_corpus(path).lines())


@pytest.mark.parametrize("suffix", SUFFIXES[1:])
def test_damaged_bytes_are_named_too(tmp_path, suffix):
    path = written(tmp_path / f"a.txt{suffix}")
    raw = path.read_bytes()
    path.write_bytes(raw[:6] + b"garbage!" * 9)
    with pytest.raises(DataError, match="broken"):
        list(open_corpus(path).lines())


def test_folders_are_read_in_name_order_and_files_do_not_run_together(tmp_path):
    (tmp_path / "b.txt").write_text("two\nthree")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "z.txt").write_text("\ufeffone")
    (tmp_path / ".hidden").write_text("no")
    assert list(open_corpus(tmp_path).lines()) == ["one", "two", "three"]


@pytest.mark.parametrize(("make", "said"), [
    (lambda p: p.write_text(""), "the file is empty"),
    (lambda p: p.mkdir(), "no file in this folder"),
    (lambda p: None, "no such file or folder"),
])  # fmt: skip
def test_nothing_to_read_is_said_before_work_begins(tmp_path, make, said):
    make(tmp_path / "c.txt")
    with pytest.raises(DataError, match=said):
        open_corpus(tmp_path / "c.txt")


def test_text_that_is_not_utf8_names_the_bytes_and_the_cure(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("caf\xe9 noir\n".encode("latin1"))
    with pytest.raises(DataError, match=r"not UTF-8 text \(bytes e9 20 6e 6f\).*iconv"):
        list(open_corpus(path))


def test_only_a_line_feed_ends_a_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("a\u2028b\rc\x0bd\n".encode())
    assert list(open_corpus(path).lines()) == ["a\u2028b\rc\x0bd"]


def test_sentences_beyond_ten_thousand_tokens_are_cut_not_lost(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("w " * 25_000)
    assert [len(s) for s in open_corpus(path)] == [10_000, 10_000, 5_000]


def test_a_corpus_can_be_sent_to_another_process(tmp_path):
    corpus = open_corpus(written(tmp_path / "a.txt"))
    assert list(pickle.loads(pickle.dumps(corpus))) == list(corpus)


def test_blocks_hold_whole_lines_whatever_their_size(tmp_path):
    corpus = open_corpus(written(tmp_path / "a.txt"))
    whole = b"".join(block for _, block in corpus.blocks())
    small = [block for _, block in corpus.blocks(size=7)]
    assert b"".join(small) == whole
    assert all(block.endswith(b"\n") for block in small)

"""Word-vector files: every format, every way in which one can be wrong."""

from __future__ import annotations

import gzip
import lzma
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import DataError, ModelError
from evenhand.models.vectors import files as vector_files
from evenhand.models.vectors import formats as vector_formats
from evenhand.models.vectors.files import convert, open_vectors, resolve_vectors, write_words

WORDS = ["the", "Nurse", "café", "construction", "worker", "\u2028"]
MATRIX = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)


def text(words: list[str] = WORDS, *, header: str | None = None, end: str = "\n") -> bytes:
    lines = [f"{w} " + " ".join(repr(float(v)) for v in row) for w, row in zip(words, MATRIX)]
    return (f"{header}\n" if header else "").encode() + (end.join(lines) + end).encode()


def binary(newline: bytes = b"\n") -> bytes:
    rows = (w.encode() + b" " + row.tobytes() + newline for w, row in zip(WORDS, MATRIX))
    return b"6 4\n" + b"".join(rows)


FILES = {
    "glove.txt": text(),
    "word2vec.txt": text(header="6 4"),
    "fasttext.vec": text(header="6 4", end=" \n"),
    "crlf.txt": text(end="\r\n"),
    "tabs.txt": text().replace(b" ", b"\t"),
    "word2vec.bin": binary(),
    "no_newlines.bin": binary(b""),
}
PACKED = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("large", [0, 1 << 30])
def test_every_format_gives_the_same_table(
    tmp_path: Path, name: str, packing: str, large: int
) -> None:
    path = tmp_path / (name + packing)
    path.write_bytes(PACKED[packing](FILES[name]))
    table = open_vectors(path, cache_dir=tmp_path / "cache", large=large)
    assert table.words.to_pylist() == WORDS
    assert table.index["worker"] == 4
    np.testing.assert_array_equal(table.matrix, MATRIX)
    assert (len(table), table.dimensions, table.matrix.dtype) == (6, 4, np.float32)


def test_large_files_are_converted_once_and_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(text())
    first = open_vectors(path, cache_dir=tmp_path / "cache", large=0)
    assert isinstance(first.matrix, np.memmap)
    monkeypatch.setattr(vector_files, "convert", lambda *a, **k: pytest.fail("converted again"))
    open_vectors(path, cache_dir=tmp_path / "cache", large=0)
    monkeypatch.undo()
    os.utime(path, ns=(1, 1))
    open_vectors(path, cache_dir=tmp_path / "cache", large=0)
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_failed_conversion_leaves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(text(header="9 4"))
    with pytest.raises(DataError):
        convert(path, tmp_path / "cache" / "v")
    assert list((tmp_path / "cache").iterdir()) == []


def test_many_blocks_keep_their_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_formats, "LINES", 2)
    for name in ("glove.txt", "word2vec.bin"):
        path = tmp_path / name
        path.write_bytes(FILES[name])
        np.testing.assert_array_equal(open_vectors(path).matrix, MATRIX)


@pytest.mark.parametrize("word", ["", "\r"])
def test_numbers_without_a_word_are_refused(tmp_path: Path, word: str) -> None:
    path = tmp_path / "v.vec"
    path.write_bytes(f"3 2\n{word} 1.0 0.1\nshe 1.0 0.0\nhe 0.0 1.0\n".encode())
    with pytest.raises(DataError, match="line 2: numbers without a word"):
        open_vectors(path)


def test_words_may_hold_spaces(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("a 1 2 3\n. . . 4 5 6\n")
    assert open_vectors(path).words.to_pylist() == ["a", ". . ."]


@pytest.fixture
def table(tmp_path: Path) -> vector_files.VectorTable:
    path = tmp_path / "v.txt"
    path.write_bytes(text() + b"zero 0 0 0 0\n")
    return open_vectors(path)


def test_lookup_tries_lower_case_then_tokens(table: vector_files.VectorTable) -> None:
    found = table.find(["Nurse", "THE", "Construction worker", "nobody", "nurse"])
    assert found.words == ("Nurse", "THE", "Construction worker")
    assert found.lowered == ("THE", "Construction worker")
    assert found.missing == ("nobody", "nurse")
    np.testing.assert_allclose(found.rows[2], MATRIX[3:5].mean(axis=0), rtol=1e-6)
    found = table.find(["construction worker"], multiword=False)
    assert (found.rows.shape, found.missing) == ((0, 4), ("construction worker",))


def test_one_vector_counts_once_in_a_set(table: vector_files.VectorTable) -> None:
    assert table.find(["the", "THE", "the"]).words == ("the",)


def test_a_zero_vector_counts_as_missing(table: vector_files.VectorTable) -> None:
    assert table.find(["zero"]).missing == ("zero",)


def test_folders(tmp_path: Path) -> None:
    own, packaged = tmp_path / "own", tmp_path / "glove" / "data"
    own.mkdir()
    packaged.mkdir(parents=True)
    np.save(own / "vectors.npy", MATRIX)
    write_words(own / "words.parquet", WORDS)
    np.save(packaged / "glove_6B_50d_emb.npy", MATRIX)
    write_words(packaged / "glove_6B_index.parquet", WORDS)
    for folder in (own, packaged, packaged.parent, own / "vectors.npy"):
        opened = open_vectors(folder)
        assert isinstance(opened.matrix, np.memmap)
        assert opened.find(["worker"]).words == ("worker",)


def test_repeated_words_keep_the_first_and_warn(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("a 1 2\nb 3 4\na 5 6\n")
    with pytest.warns(UserWarning, match="1 repeated words; the first vector of each was kept"):
        opened = open_vectors(path)
    assert (len(opened), opened.duplicates) == (2, 1)
    assert opened.find(["a"]).rows.tolist() == [[1.0, 2.0]]
    with pytest.warns(UserWarning, match="1 repeated words"):
        opened = open_vectors(path, cache_dir=tmp_path / "cache", large=0)
    assert opened.matrix.tolist() == [[1.0, 2.0], [3.0, 4.0]]


WRONG = {
    "empty": (b"", "the file is empty"),
    "blank": (b"\n \n", "the file is empty"),
    "short row": (b"a 1 2 3\nb 4 5\n", r"line 2: 2 numbers where 3 were expected \('b 4 5'"),
    "long row": (b"a 1 2 3\nb 4 5 6 7\n", "line 2: 4 numbers where 3 were expected"),
    "word for number": (b"a 1 2\nb 3 x\n", "near line 2: 'x' is not a finite number"),
    "nan": (b"a 1 2\nb 3 nan\n", "near line 2: 'nan' is not a finite number"),
    "header too large": (b"3 2\na 1 2\nb 3 4\n", "header promises 3 words, the file holds 2"),
    "header too small": (b"1 2\na 1 2\nb 3 4\n", "header promises 1 words, the file holds 2"),
    "header too wide": (b"2 3\na 1 2\nb 3 4\n", "line 2: 2 numbers .* header promises rows of 3"),
    "header too narrow": (b"2 1\na 1 2\nb 3 4\n", "2 numbers .* header promises rows of 1"),
    "no dimensions": (b"3 0\n", "promises 0 dimensions"),
    "header only": (b"0 5\n", "holds no vectors"),
    "prose": (b"once upon a time\n", "line 1: 'once upon a time' is neither a header"),
    "latin-1": (b"a 1 2\ncaf\xe9 3 4\n", r"line 2: .* --encoding latin-1"),
    "cut binary": (binary()[:-9], "the file ends inside word 6 of 6"),
    "long binary": (binary() + b"more" * 9, "data follows word 6"),
    "cut gzip": (gzip.compress(text())[:-20], "broken gzip data"),
    "fasttext": (struct.pack("<ii", 793712314, 12), "is a fastText model.*Use the .vec"),
    "zip": (b"PK\x03\x04rest", "is a zip archive. Unpack it"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_files_are_named_in_one_paragraph(tmp_path: Path, case: str) -> None:
    content, message = WRONG[case]
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        open_vectors(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_encoding_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_bytes(b"caf\xe9 3 4\n")
    assert open_vectors(path, encoding="latin-1").words.to_pylist() == ["café"]


class Boom:
    """Unpickling this would fail the test."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("the file was unpickled",)


@pytest.mark.parametrize("name", ["v.kv", "v.model", "v.pkl", "v.pt", "v.bin", "v.txt"])
@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_pickles_are_never_loaded(tmp_path: Path, name: str, protocol: int) -> None:
    path = tmp_path / name
    path.write_bytes(pickle.dumps(Boom(), protocol))
    with pytest.raises(DataError, match=r"runs code that the file chooses.*save_word2vec_format"):
        open_vectors(path)


def test_arrays_of_objects_are_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "vectors.npy", np.array([[Boom()]], dtype=object), allow_pickle=True)
    write_words(tmp_path / "words.parquet", ["a"])
    with pytest.raises(DataError, match="An array of objects is a pickle and is never loaded"):
        open_vectors(tmp_path)


def test_folders_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no vectors\.npy or \*_emb\.npy"):
        open_vectors(tmp_path)
    np.save(tmp_path / "vectors.npy", MATRIX)
    with pytest.raises(DataError, match=r"no words\.parquet"):
        open_vectors(tmp_path)
    write_words(tmp_path / "words.parquet", WORDS[:-1])
    with pytest.raises(DataError, match=r"5 words for the 6 vectors of vectors\.npy"):
        open_vectors(tmp_path)
    np.save(tmp_path / "vectors.npy", np.arange(5))
    with pytest.raises(DataError, match="expected float32"):
        open_vectors(tmp_path)
    (tmp_path / "words.parquet").write_text("not parquet")
    np.save(tmp_path / "vectors.npy", MATRIX)
    with pytest.raises(DataError, match="not a readable Parquet file"):
        open_vectors(tmp_path)


def test_names_are_resolved_locally_then_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path))
    with pytest.raises(ModelError, match="Get them with: evenhand fetch glove-6b-50d"):
        resolve_vectors("glove-6b-50d")
    (tmp_path / "glove-6b-50d").mkdir()
    assert resolve_vectors("glove-6b-50d") == tmp_path / "glove-6b-50d"
    with pytest.raises(DataError, match=r"there\.txt: no such file"):
        resolve_vectors("not/there.txt")
    with pytest.raises(ModelError, match="'word2vec' is neither a file nor a known name"):
        resolve_vectors("word2vec")
    with pytest.raises(DataError, match="no such file"):
        open_vectors(tmp_path / "gone.txt")


def shared_file(name: str) -> Path:
    root = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("EVENHAND_SHARED", root.parent / "shared"))
    if not (folder / "data" / "embeddings").is_dir():
        pytest.skip(f"no reference data at {folder}; set EVENHAND_SHARED")
    return folder / "data" / "embeddings" / name


@pytest.mark.shared
def test_real_glove_text() -> None:
    opened = open_vectors(shared_file("glove_6B_50d_subset.txt.gz"))
    assert (len(opened), opened.dimensions) == (11_851, 50)
    np.testing.assert_allclose(opened.find(["the"]).rows[0, :2], [0.418, 0.24968], rtol=1e-6)


@pytest.mark.shared
def test_real_word2vec_binary(tmp_path: Path) -> None:
    path = shared_file("googlenews_w2v_300d_subset.bin.gz")
    opened = open_vectors(path)
    mapped = open_vectors(path, cache_dir=tmp_path, large=0)
    assert (len(opened), opened.dimensions) == (9_321, 300)
    np.testing.assert_array_equal(opened.matrix, mapped.matrix)
    man, woman, king, queen = opened.find(["man", "woman", "king", "queen"]).rows
    gap = king - man + woman
    assert gap @ queen / np.linalg.norm(gap) / np.linalg.norm(queen) > 0.6


def test_vectors_are_looked_for_where_fetch_puts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.models.loading.fetch import PACKAGES

    monkeypatch.delenv("EVENHAND_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = PACKAGES["glove-6b-50d"].folder
    folder.mkdir(parents=True)
    assert resolve_vectors("glove-6b-50d") == folder

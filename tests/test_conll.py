"""CoNLL files: what is read is written back, and broken brackets are named with their line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import DataError
from evenhand.words.conll import Document, format_conll, parse_conll, read_conll, sentence_bounds

OPEN = "#begin document (nw/x/1); part 000\n"


def test_nested_and_repeated_brackets_are_read() -> None:
    text = OPEN + "0\tA\t(1(2\n1\tB\t2)\n2\tC\t1)|(3)\n\n0\tD\t(2)\n#end document\n"
    (found,) = parse_conll(text.split("\n"))
    assert found.clusters == (((0, 3),), ((0, 2), (3, 4)), ((2, 3),)) or set(found.clusters) == {
        ((0, 3),), ((0, 2), (3, 4)), ((2, 3),)
    }  # fmt: skip
    assert found.sentences == (3, 4)
    assert found.genre == "nw"


def test_columns_of_ontonotes_give_word_and_speaker() -> None:
    row = "nw/x 0 0 She PRP * - - - Ann * (7)"
    (found,) = parse_conll((OPEN + row).split("\n"))
    assert (found.tokens, found.speakers) == (("She",), ("Ann",))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("0\tA\t(1\n1\tB\t_", "line 2: the bracket '\\(1' of document 'nw/x/1' is never closed"),
        ("0\tA\t_\n1\tB\t4\\)", "line 3: .* cannot be read|line 3: .*closes entity"),
        ("0\tA\t4)", "line 2: '4\\)' closes entity '4', which is not open"),
        ("0\tA\t((1)", "line 2: coreference column '\\(\\(1\\)' cannot be read"),
        ("0\tA", "line 2: 2 columns"),
    ],
)
def test_malformed_brackets_name_the_line(lines: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        list(parse_conll((OPEN + lines).split("\n")))


def test_a_token_outside_a_document_is_refused() -> None:
    with pytest.raises(DataError, match="line 1: a token outside a document"):
        list(parse_conll(["0\tA\t_"]))


def test_a_broken_document_can_be_left_out_and_is_named() -> None:
    skipped: list[str] = []
    text = OPEN + "0\tA\t1)\n" + OPEN.replace("x/1", "x/2") + "0\tB\t(1)\n"
    found = list(parse_conll(text.split("\n"), skipped=skipped))
    assert [d.name for d in found] == ["nw/x/2"]
    assert "line 2" in skipped[0]


def test_missing_and_empty_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_conll(tmp_path / "a.conll")
    (tmp_path / "b.conll").write_text("\n")
    with pytest.raises(DataError, match="no '#begin document'"):
        read_conll(tmp_path / "b.conll")


spans = st.tuples(st.integers(0, 11), st.integers(1, 5)).map(lambda s: (s[0], min(12, s[0] + s[1])))


@settings(deadline=None, max_examples=60)
@given(st.sets(spans, max_size=10), st.integers(1, 3))
def test_what_is_written_is_read_back(found: set[tuple[int, int]], groups: int) -> None:
    ordered = sorted(found)
    clusters = [ordered[k::groups] for k in range(groups)]
    if any(a < c < b < d for cl in clusters for a, b in cl for c, d in cl):
        return  # crossing mentions of one entity cannot be written in this format
    document = Document("d", tuple("abcdefghijkl"), (5, 12)).with_clusters(c for c in clusters if c)
    (again,) = parse_conll(format_conll(document).split("\n"))
    assert set(again.clusters) == set(document.clusters)
    assert (again.tokens, again.sentences) == (document.tokens, document.sentences)


def test_long_sentences_are_cut_after_stops_then_commas() -> None:
    tokens = ("a", ",", "b", "c", "d", ".", "e")
    assert sentence_bounds(Document("d", tokens), longest=4) == [(0, 2), (2, 6), (6, 7)]


@pytest.mark.shared
def test_winobias_pairs_differ_in_the_pronoun(shared: Path) -> None:
    from evenhand.train.coreference_data import read_winobias

    found = read_winobias(shared / "data" / "winobias")
    assert {k: len(v) for k, v in found.items()} == dict.fromkeys(found, 396)
    same = sum(
        a.clusters == b.clusters for a, b in zip(found["type1", "pro"], found["type1", "anti"])
    )
    assert same == 394


@pytest.mark.shared
def test_ontogum_is_split_without_blanked_documents(shared: Path) -> None:
    from evenhand.train.coreference_data import read_corpora

    found = read_corpora(shared / "data" / "coref" / "ontogum.conll.xz")
    sizes = tuple(map(len, (found.train, found.dev, found.test, found.gentle, found.skipped)))
    assert sizes == (178, 29, 30, 25, 19)
    assert not any(d.masked for d in found.train)

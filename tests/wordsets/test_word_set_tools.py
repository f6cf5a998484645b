"""PMI, expansion, dialect and name labels on cases small enough to check by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import DataError, SpecError
from evenhand.models.vectors.files import VectorTable, open_vectors
from evenhand.train.words import write_vectors
from evenhand.words.lexicons.files import WordSets, read_word_sets
from evenhand.words.sets import (
    expand,
    expand_tests,
    label_names,
    nearest,
    pmi_candidates,
    pmi_ranking,
    pmi_table,
    read_dialect_model,
)

VECTORS = {
    "driver": (1, 0, 0, 0), "trucker": (1, 0.1, 0, 0), "racer": (1, 0.05, 0, 0),
    "42": (1, 0, 0.07, 0), "aide": (0.72, 0.7, 0, 0), "nurse": (0, 1, 0, 0),
    "carer": (0, 1, 0.1, 0), "medic": (0.1, 1, 0, 0), "helper": (0, 1, 0, 0.2),
    "he": (0, 0, 1, 0), "his": (0.1, 0, 1, 0), "him": (0, 0.1, 1, 0), "himself": (0, 0.2, 1, 0),
    "hisself": (0.2, 0, 1, 0), "she": (0, 0, 0.6, 1), "her": (0.1, 0, 0.6, 1),
    "hers": (0, 0.1, 0.6, 1), "herself": (0, 0.2, 0.6, 1), "zero": (0, 0, 0, 0),
}  # fmt: skip
TEST = WordSets("jobs", x=("Driver",), y=("nurse",), a=("he",), b=("she",))


@pytest.fixture(scope="module")
def table(tmp_path_factory) -> VectorTable:
    path = tmp_path_factory.mktemp("v") / "v.txt"
    write_vectors(path, list(VECTORS), np.array(list(VECTORS.values()), np.float32))
    return open_vectors(path)


def test_words_of_one_label_tie_and_frequency_decides():
    docs = [["p", "p", "q", "both"], ["q", "r", "r", "r"], ["both", "both", "s"]]
    rows = pmi_table(docs, ["u", "u", "v"], floor=1)
    ranked = pmi_ranking(rows, "u")
    assert [r.word for r in ranked] == ["r", "p", "q", "both"]
    assert all(math.isclose(r.pmi, -math.log2(2 / 3)) for r in ranked[:3])
    assert "s" not in [r.word for r in ranked]
    assert [r.word for r in pmi_ranking(rows, "u", as_published=True)][-1] == "both"


@given(st.lists(st.tuples(st.lists(st.sampled_from("abcde"), min_size=1), st.booleans()),
                min_size=2).filter(lambda d: len({label for _, label in d}) == 2))  # fmt: skip
def test_no_word_exceeds_the_pmi_of_a_word_of_one_label_only(data):
    rows = pmi_table([d for d, _ in data], [label for _, label in data], floor=1)
    share = {str(v): sum(label == v for _, label in data) / len(data) for v in (True, False)}
    assert all(row.pmi <= -math.log2(share[row.label]) + 1e-9 for row in rows)


def test_the_floor_counts_texts_not_tokens():
    docs = [["w"] * 20, ["x"], ["x"]]
    assert {r.word for r in pmi_table(docs, [0, 1, 0], floor=2)} == {"x"}


@pytest.mark.parametrize(("docs", "labels", "said"), [
    ([["a"], ["b"]], [1, 1], "compares at least two labels"),
    ([["a"], []], [1, 0], "label '0' hold no token"),
])  # fmt: skip
def test_pmi_needs_two_labels_with_tokens(docs, labels, said):
    with pytest.raises(DataError, match=said):
        pmi_table(docs, labels)


def test_candidates_leave_markers_numbers_and_marks_out():
    rows = pmi_table([["<URL>", "7", "!", "👍", "ok"], ["z"]], ["x", "y"], floor=1)
    assert set(pmi_candidates(rows, "x")) == {"👍", "ok"}
    with pytest.raises(SpecError, match="unknown label 'w'"):
        pmi_candidates(rows, "w")


def test_neighbours_are_those_of_a_full_sort(table):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(20_000, 8)).astype(np.float32)
    matrix[5] = 0
    big = VectorTable(table.words, matrix)
    queries = matrix[[1, 19_999, 300]]
    rows, cosines = nearest(big, queries, 12)
    unit = matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-30)
    full = unit[[1, 19_999, 300]] @ unit.T
    assert rows.tolist() == np.argsort(-full, axis=1, kind="stable")[:, :12].tolist()
    assert cosines == pytest.approx(np.take_along_axis(full, rows, 1), abs=1e-6)


def test_a_neighbour_of_two_sets_goes_where_it_was_asked_to_go(table):
    dropped = expand(TEST, table, neighbours=4)
    assert dropped.clashes == ("aide",)
    assert dropped.test.x == ("driver", "racer", "trucker")
    assert "aide" not in dropped.test.x + dropped.test.y
    nearer = expand(TEST, table, neighbours=4, clashes="nearest")
    assert "aide" in nearer.test.x
    assert "aide" not in nearer.test.y
    both = expand(TEST, table, neighbours=4, clashes="keep")
    assert "aide" in both.test.x
    assert "aide" in both.test.y
    with pytest.raises(SpecError, match=r"1 neighbours belong .* e.g. 'aide' to x and y"):
        expand(TEST, table, neighbours=4, clashes="error")


def test_every_candidate_is_accounted_for(table):
    made = expand(TEST, table, neighbours=4, remove=["Racer"])
    status = {(r["set"], r["neighbour"]): r["status"] for r in made.candidates}
    assert status["x", "42"] == "no word"
    assert status["x", "racer"] == "removed by hand"
    assert status["x", "aide"] == "clash"
    assert status["b", "he"] == "already in a set"
    assert "42" in expand(TEST, table, neighbours=4, as_published=True).test.x


def test_no_word_is_in_two_expanded_sets_and_given_words_stay(table):
    made = expand(TEST, table, neighbours=8)
    words = [w for s in ("x", "y", "a", "b") for w in getattr(made.test, s)]
    assert len(words) == len(set(words))
    assert made.test.x[0] == "driver"


def test_many_tests_at_once_equal_one_after_the_other(table):
    other = WordSets("turned", x=("he",), y=("she",), a=("driver",), b=("nurse",))
    at_once = expand_tests([TEST, other], table, neighbours=3)
    assert at_once["jobs"].test == expand(TEST, table, neighbours=3).test
    assert at_once["turned"].test == expand(other, table, neighbours=3).test


@pytest.mark.parametrize(("sets", "said"), [
    ({"x": ("he",)}, "'he' is in set 'x' and in set 'a'"),
    ({"y": ("unheard", "of")}, "none of the words of set 'y' has a vector .*'unheard', 'of'"),
])  # fmt: skip
def test_sets_that_share_a_word_or_have_no_vector_are_refused(table, sets, said):
    test = WordSets(**{"name": "jobs", **{k: getattr(TEST, k) for k in "xyab"}} | sets)
    with pytest.raises(DataError, match=said):
        expand(test, table)


def test_missing_words_are_reported_and_stay_in_their_set(table):
    made = expand(WordSets("t", ("driver", "unheard"), ("nurse",), ("he",), ("she",)), table)
    assert made.missing == ("unheard",)
    assert "unheard" in made.test.x


@pytest.fixture
def dialect_files(tmp_path):
    (tmp_path / "model_vocab.txt").write_text("9\tthe\n5\tfinna\n")
    (tmp_path / "model_count_table.txt").write_text("4\t4\t4\t4\n9\t1\t0\t0\n")
    return tmp_path


def one_by_one(lik, alpha=1.0, sweeps=4):
    """The published updates, token after token, in plain Python."""
    q = [row / row.sum() for row in lik]
    totals = sum(q)
    for _ in range(sweeps):
        for i, row in enumerate(lik):
            totals = totals - q[i]
            q[i] = row * (totals + alpha)
            q[i] = q[i] / q[i].sum()
            totals = totals + q[i]
    return totals / totals.sum()


@given(st.lists(st.lists(st.sampled_from(["the", "FINNA", "zz"]), max_size=7), max_size=6))
def test_texts_solved_together_equal_texts_solved_alone(texts):
    counts = np.array([[4, 4, 4, 4], [9, 1, 0, 0.0]])
    from evenhand.words.sets import DialectModel

    model = DialectModel({"the": 0, "finna": 1}, (counts + 1) / counts.sum(axis=0))
    shares = model.shares(texts)
    for text, row in zip(texts, shares):
        known = [model.words[t.lower()] for t in text if t.lower() in model.words]
        if known and len(known) / len(text) >= 0.2:
            assert row == pytest.approx(one_by_one(model.likelihood[known]), abs=1e-12)
        else:
            assert np.isnan(row).all()


@pytest.mark.parametrize(("name", "text", "said"), [
    ("model_count_table.txt", "4\t4\t4\n9\t1\t0\t0\n", r"line 1: 3 columns. Accepted: 4 counts"),
    ("model_count_table.txt", "4\t4\t4\t4\n", "1 rows of counts for 2 words"),
    ("model_count_table.txt", "4\t4\t4\tx\n9\t1\t0\t0\n", "a count is not a number"),
    ("model_vocab.txt", "9\tthe\nfinna\n", r"line 2: 'finna' lacks a column"),
])  # fmt: skip
def test_a_count_table_that_lacks_something_is_refused(dialect_files, name, text, said):
    (dialect_files / name).write_text(text)
    with pytest.raises(DataError, match=said):
        read_dialect_model(dialect_files)


def test_a_missing_count_table_names_what_was_expected(tmp_path):
    with pytest.raises(DataError, match=r"no model_vocab.txt .*slanglab/twitteraae"):
        read_dialect_model(tmp_path)


def test_names_get_their_most_probable_group_or_a_reason(tmp_path):
    path = tmp_path / "race.csv"
    path.write_text("name,white,black,hispanic,asian,other\nTIA,0.3,0.6,0.05,0.05,0\n")
    found = label_names(["Tia", "tia", "Nobody"], [path], least=0.5)
    assert [(n.label, n.probability) for n in found[:2]] == [("black", 0.6)] * 2
    assert found[2].reason == "not in the tables"
    assert label_names(["Tia"], [path], least=0.7)[0].reason.startswith("most probable black")
    with pytest.raises(DataError, match="none of 1 names .* has a gender"):
        label_names(["Tia"], [path], by="gender")


def test_the_command_line_expands_extracts_and_labels(table, dialect_files, tmp_path):
    run = CliRunner().invoke
    sets = tmp_path / "sets.json"
    sets.write_text(json.dumps({"jobs": {k: getattr(TEST, k) for k in "xyab"}}))
    out = tmp_path / "out.toml"
    run(app, ["words", "expand", str(sets), "--vectors", table.source, "--neighbours", "4",
              "--out", str(out)], catch_exceptions=False)  # fmt: skip
    assert read_word_sets(out)["jobs"].x == ("driver", "racer", "trucker")
    texts = tmp_path / "t.csv"
    texts.write_text("text,label\nfinna the,1\nthe the,0\n")
    shown = run(app, ["words", "pmi", str(texts), "--floor", "1", "--json", "-"])
    assert json.loads(shown.stdout)["labels"]["1"][0]["word"] == "finna"
    shown = run(app, ["words", "dialect", str(texts), "--model", str(dialect_files), "--json", "-"])
    assert json.loads(shown.stdout)["rows"][0]["label"] == "african_american"

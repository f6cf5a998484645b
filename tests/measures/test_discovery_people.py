"""Checks against people: ABC traits and the validity sheet."""

from __future__ import annotations

import csv

import pyarrow as pa
import pytest

from evenhand.errors import EvenhandError
from evenhand.probes.discovery import people
from evenhand.probes.discovery.people import (
    SCALES,
    TRAITS,
    discovered,
    orderings,
    read_alignments,
    read_human,
    read_sheet,
    suggest,
    write_sheet,
)
from evenhand.strict import plain


def test_d_counts_alignments_of_both_ends_and_both_groups():
    maps = [("1", "violent", "threatening"), ("2", "violent", "threatening"),
            ("1", "educated", "high status"), ("1", "caring", "benevolent")]  # fmt: skip
    human = {"threatening - benevolent": (40.0, 65.0), "low status - high status": (50.0, 45.0)}
    rows = {r.trait: r for r in orderings(["violent"], ["educated", "caring"], maps, human)}
    assert len(rows) == len(TRAITS) == 16
    warm = rows["threatening - benevolent"]
    assert (warm.c_a, warm.c_b, warm.d, warm.order) == (-2, 1, -3, "≺")
    assert (warm.people.human_mark, warm.people.agrees) == ("†", True)
    status = rows["low status - high status"]
    assert (status.d, status.order, status.people.agrees) == (-1, "≺", False)
    assert rows["cold - warm"].order == "N/A"


def test_strong_orderings_are_marked():
    maps = [(str(n), "kind", "warm") for n in range(5)]
    row = next(r for r in orderings(["kind"], [], maps) if r.trait == "cold - warm")
    assert (row.d, row.mark) == (5, "‡")


def test_unknown_traits_are_refused(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("word,trait,annotator\nkind,nice,1\n")
    with pytest.raises(EvenhandError, match="'nice' is not an end of an ABC trait"):
        orderings(["kind"], [], read_alignments(path))


@pytest.fixture
def vectors():
    """Two traits have vectors; cold and warm are far apart, dishonest and sincere nearly alike."""
    from evenhand.probes.association.score import table_of

    return table_of(
        ["kind", "icy", "warm", "cold", "dishonest", "sincere", "low", "status", "high"],
        [[1, 0.1, 0], [0.1, 1, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 1], [0.31, 0.3, 1],
         [-1, 0, 1], [0, 0, 1], [1, -1, 1]],
    )  # fmt: skip


def test_suggestions_are_the_nearest_ends_by_cosine_one_per_trait(vectors):
    import numpy as np

    rows = suggest(["kind", "icy", "absent"], vectors, top=3)
    best = {r.word: r for r in reversed(rows)}
    assert best["kind"].suggestion == "warm"
    assert best["icy"].suggestion == "cold"
    kind, warm, cold = (np.array(v) / np.linalg.norm(v) for v in ([1, 0.1, 0], [1, 0, 0],
                                                                  [0, 1, 0]))  # fmt: skip
    assert best["kind"].cosine == pytest.approx(kind @ warm, abs=1e-6)
    assert best["kind"].margin == pytest.approx(kind @ warm - kind @ cold, abs=1e-6)
    of_kind = [r.suggestion for r in rows if r.word == "kind"]
    assert len(of_kind) == 3  # "low status" is the mean of its words
    assert not {"warm", "cold"} <= set(of_kind)
    lost = best["absent"]
    assert (lost.suggestion, lost.note) == ("", "no vector for this word")
    near = next(r for r in rows if "sincere" in (r.suggestion, r.opposite))
    assert near.note == "unclear which end"


def test_suggestions_count_only_when_people_write_them_into_the_sheet(vectors, tmp_path):
    path = tmp_path / "sheet.csv"
    people.write_suggestions(suggest(["kind", "icy"], vectors, top=1), path)
    assert read_alignments(path) == []
    assert all(r.n == 0 for r in orderings(["kind"], ["icy"], read_alignments(path)))
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [r["suggestion"] for r in rows] == ["cold", "warm"]
    assert "group" not in rows[0]
    rows[1]["trait"] = rows[1]["suggestion"]  # somebody accepts one
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    assert read_alignments(path) == [("1", "kind", "warm")]


def test_words_of_a_pair_are_taken_in_either_order_and_unknown_groups_refused():
    rows = [{"group_a": "x", "group_b": "y", "word": "kind", "d": 0.1, "q": 0.01},
            {"group_a": "x", "group_b": "y", "word": "icy", "d": -0.1, "q": 0.04},
            {"group_a": "x", "group_b": "y", "word": "odd", "d": 0.3, "q": 0.2}]  # fmt: skip
    assert discovered(rows, "x", "y") == (["kind"], ["icy"])
    assert discovered(rows, "y", "x") == (["icy"], ["kind"])
    with pytest.raises(EvenhandError, match="'x' and 'z' are not compared in this run"):
        discovered(rows, "x", "z")


@pytest.mark.shared
def test_the_published_human_scores_are_read(shared):
    path = shared / "data/abc_stereotypes/Aggregated_scores.json"
    scores = read_human(path, "women", "men")
    assert len(scores) == 16
    assert scores["powerless - powerful"] == (50.6, 81.2)
    with pytest.raises(EvenhandError, match="no group 'martians'"):
        read_human(path, "martians", "men")


def test_the_sheet_goes_out_blind_and_comes_back_with_means(tmp_path):
    rows = [
        {"group": "a", "situation": "Tia sang.", "answer": "happy", "distractor": f"sad {i % 8}",
         "success": 1.0}
        for i in range(16)
    ]  # fmt: skip
    path = tmp_path / "sheet.csv"
    assert write_sheet(pa.Table.from_pylist(rows), path, size=5) == 5
    with path.open() as file:
        out = list(csv.DictReader(file))
    assert set(out[0]) == {"situation", "answer", "distractor", *SCALES}
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(out[0]))
        writer.writeheader()
        for i, row in enumerate(out):
            writer.writerow({**row, **dict.fromkeys(SCALES, i + 1)})
    found = read_sheet(path)
    assert (found.grammar.mean, found.grammar.n) == (3.0, 5)
    assert list(plain(found.as_dict())) == ["rows", *SCALES]


def test_a_score_outside_1_to_5_is_refused(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text("situation,answer,distractor,grammar,fluency,plausibility,similarity\n"
                    "s,a,d,9,1,1,1\n")  # fmt: skip
    with pytest.raises(EvenhandError, match="'9' is outside 1 to 5"):
        read_sheet(path)

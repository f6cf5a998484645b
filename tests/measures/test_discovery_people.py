"""Checks against people: ABC traits and the validity sheet."""

from __future__ import annotations

import csv
import json

import pyarrow as pa
import pytest

from evenhand.errors import EvenhandError
from evenhand.measures.traits import TRAITS, orderings, read_alignments, read_human
from evenhand.measures.validity import SCALES, read_sheet, write_sheet


def test_d_counts_alignments_of_both_ends_and_both_groups():
    maps = [("1", "violent", "threatening"), ("2", "violent", "threatening"),
            ("1", "educated", "high status"), ("1", "caring", "benevolent")]  # fmt: skip
    human = {"threatening - benevolent": (40.0, 65.0), "low status - high status": (50.0, 45.0)}
    rows = {r["trait"]: r for r in orderings(["violent"], ["educated", "caring"], maps, human)}
    assert len(rows) == len(TRAITS) == 16
    warm = rows["threatening - benevolent"]
    assert (warm["c_a"], warm["c_b"], warm["d"], warm["order"]) == (-2, 1, -3, "≺")
    assert (warm["human_mark"], warm["agrees"]) == ("†", True)
    status = rows["low status - high status"]
    assert (status["d"], status["order"], status["agrees"]) == (-1, "≺", False)
    assert rows["cold - warm"]["order"] == "N/A"


def test_strong_orderings_are_marked():
    maps = [(str(n), "kind", "warm") for n in range(5)]
    row = next(r for r in orderings(["kind"], [], maps) if r["trait"] == "cold - warm")
    assert (row["d"], row["mark"]) == (5, "‡")


def test_unknown_traits_are_refused(tmp_path):
    path = tmp_path / "map.csv"
    path.write_text("word,trait,annotator\nkind,nice,1\n")
    with pytest.raises(EvenhandError, match="'nice' is no end of an ABC trait"):
        orderings(["kind"], [], read_alignments(path))


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
    assert found["grammar"]["mean"] == 3.0
    assert found["grammar"]["n"] == 5
    assert json.dumps(found)


def test_a_score_outside_1_to_5_is_refused(tmp_path):
    path = tmp_path / "sheet.csv"
    path.write_text("situation,answer,distractor,grammar,fluency,plausibility,similarity\n"
                    "s,a,d,9,1,1,1\n")  # fmt: skip
    with pytest.raises(EvenhandError, match="'9' is outside 1 to 5"):
        read_sheet(path)

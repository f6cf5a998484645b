"""Word-set tools against the reference cases of Kato and Miyao's methods."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evenhand.words.sets import label_names, pmi_ranking, pmi_table, read_dialect_model

pytestmark = pytest.mark.shared


def test_pmi_and_ranking_equal_the_toy_reference(shared):
    case = json.loads((shared / "golden/kato/pmi_toy.json").read_text())
    tweets = case["tweets"]
    rows = pmi_table(
        [t["text"].split() for t in tweets], [t["label"] for t in tweets], floor=case["min_tweets"]
    )
    found = {(row.label, row.word): row for row in rows}
    wanted = {(str(r["label"]), r["word"]): r for r in case["rows"]}
    assert {key for key, r in wanted.items() if r["pmi"] is not None} == set(found)
    for key, row in found.items():
        assert row.pmi == pytest.approx(wanted[key]["pmi"], abs=1e-12)
        assert row.theta == pytest.approx(wanted[key]["theta"], abs=1e-15)
        assert (row.count, row.documents) == (
            wanted[key]["total_count"], wanted[key]["tweet_count"],
        )  # fmt: skip
    for label, words in case["ranking_pmi_then_count"].items():
        assert [row.word for row in pmi_ranking(rows, label)] == words


def test_dialect_shares_equal_the_published_and_reference_values(shared):
    case = json.loads((shared / "golden/kato/aae_demographic_cases.json").read_text())
    model = read_dialect_model(shared / "data/twitteraae")
    assert len(model.words) == case["vocab_size"]
    shares = model.shares([c["text"].split() for c in case["cases"]])
    for row, c in zip(shares, case["cases"], strict=True):
        if c["proportions"] is None:
            assert np.isnan(row).all()
        else:
            assert row == pytest.approx(c["proportions"], abs=1e-12)
    published = model.shares([text.split() for text in case["readme_values"]])
    assert published == pytest.approx(np.array(list(case["readme_values"].values())), abs=1e-8)


def test_names_are_labelled_by_the_argmax_of_first_name_probabilities(shared):
    table = shared / "data/names/rosenman_first_name_race.csv.xz"
    found = label_names(["Emily", "Ebony", "Brendan", "Tyrone"], [table])
    assert [n.label for n in found] == ["white", "black", "white", "black"]

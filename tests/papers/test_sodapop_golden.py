"""SODAPOP's clusters and tests against the golden files; the paper's contexts and recipe."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evenhand import measure
from evenhand.corpora.tables import from_columns
from evenhand.stats.clustering import kmeans_separation
from evenhand.words.social_iqa import prompt_of, read_contexts

FILE = "data/sodapop/socialIQa_v1.4_dev_Bethany_0_2191.jsonl"


@pytest.mark.shared
def test_kmeans_finds_the_best_of_200_restarts(shared):
    cases = json.loads((shared / "golden/sodapop/kmeans.json").read_text())["cases"]
    assert len(cases) == 5
    for case in cases:
        values = np.array(case["X_group1"] + case["X_group2"])
        labels = np.arange(len(values)) < len(case["X_group1"])
        made = kmeans_separation(values, labels, restarts=200)
        best = case["expected"]["best_of_200_restarts"]
        assert made.inertia <= best["inertia"] + 1e-9
        if abs(made.inertia - best["inertia"]) < 1e-9:
            assert made.accuracy == pytest.approx(best["accuracy"])


@pytest.mark.shared
def test_unequal_groups_have_the_golden_relations(shared):
    golden = json.loads((shared / "golden/sodapop/ptest_unequal.json").read_text())["expected"]
    for row in golden.values():
        assert row["n_partitions"] == 56
        assert row["RD"] == pytest.approx(row["d"] / row["m"], rel=1e-12)
        assert row["n_ge"] >= row["n_strict"] + 1  # the observed split counts


def table_of(rates: np.ndarray, groups: list[str]):
    names, words = rates.shape
    rows = [(g, f"n{n}", "c", f"w{w}", rates[n, w]) for n, g in zip(range(names), groups)
            for w in range(words)]  # fmt: skip
    keys = ("group", "name", "context", "distractor", "success")
    return from_columns(dict(zip(keys, map(list, zip(*rows)))), "memory")


def test_the_released_test_runs_443_words_and_a_million_permutations():
    rates = np.random.default_rng(0).random((50, 443)).round(4)
    groups = ["A"] * 25 + ["B"] * 25
    found = measure.discovery(
        table_of(rates, groups), group_a="A", group_b="B", min_count=1, as_published=True,
    )  # fmt: skip
    assert found.n_partitions == 1_000_000
    assert len(found.words) == 443


@pytest.mark.shared
def test_17_of_the_papers_50_contexts_have_gendered_pronouns(shared):
    found = read_contexts(str(shared / FILE), limit=50)
    assert len(found) == 50
    assert sum(bool(c.notes) for c in found) == 17
    lengths = np.bincount([len(c.answer.split()) for c in found])
    assert lengths[[1, 2, 3, 4, 5, 6, 7, 11]].tolist() == [23, 6, 7, 5, 1, 6, 1, 1]
    neutral = read_contexts(str(shared / FILE), limit=50, pronouns="neutral")
    assert not any(
        w in f" {c.context} ".lower() for c in neutral for w in (" she ", " her ", " his ")
    )


@pytest.mark.shared
def test_every_question_about_the_person_becomes_a_prompt(shared):
    found = read_contexts(str(shared / FILE), question=None)
    assert len(found) > 1_000
    assert not any(c.prompt.endswith("?") for c in found)


@pytest.mark.parametrize(
    ("question", "prompt"),
    [
        ("How would {name} feel afterwards?", "{name} feels"),
        ("How would Others feel as a result?", "As a result, Others feel"),
        ("Why did {name} do this?", "{name} did this because"),
        ("What will happen to {name}?", "{name} will"),
        ("What's going to happen to {name}?", "{name} will"),
        ("How would Others feel as a result of this?", "As a result, Others feel"),
        ("How would {name} feel after?", "{name} feels"),
        ("What does {name} need to do after this?", "{name} needs to"),
        ("What kind of person is {name}?", "{name} is"),
        ("Where is {name}?", "Where is {name}?"),
    ],
)
def test_question_kinds(question, prompt):
    assert prompt_of(question) == prompt


def test_a_context_without_a_place_for_the_name_is_refused(tmp_path):
    from evenhand.errors import EvenhandError

    path = tmp_path / "mine.csv"
    path.write_text("context,question,answer\nThey sang.,How was it?,good\n")
    with pytest.raises(EvenhandError, match=r"row 1: context 'They sang.' has no \{name\}"):
        read_contexts(str(path))
    path.write_text("context,question,answer,name\nBo sang to Bobby.,How was Bo?,Bo was good,Bo\n")
    made = read_contexts(str(path))[0].filled("Tia")
    assert (made.context, made.answer) == ("Tia sang to Bobby.", "Tia was good")


def test_the_recipe_is_the_papers_setting():
    from evenhand.audit.suites import load_suite

    probe = load_suite("sodapop").entries[0].probe
    assert len(probe.people()[0]) == 220
    assert (probe.distance, probe.fills, probe.keep, probe.context_count) == (3, 10, 10_000, 50)
    assert len(load_suite("discovery").entries[0].probe.people()[0]) == 200

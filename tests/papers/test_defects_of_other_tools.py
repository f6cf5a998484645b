"""Mistakes found in other tools, each turned into a test of what is right here.

The numbers D1 to D17 are those of a survey of other tools' released code. What takes a real model
(D5, D15, D16) is in `test_defects_of_other_tools_models.py`. D7 (a counter of words set to 1
instead of raised) is covered by the counts of `test_discovery_measure.py`; D18 (a wrong mapping of
regulations) concerns nothing that evenhand has.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.compare.items import Items
from evenhand.compare.rows import Row, judge
from evenhand.errors import DataError
from evenhand.metrics.bbq import bias_ambiguous, bias_disambiguated, outcomes
from evenhand.metrics.honest import hurtful
from evenhand.metrics.stereoset import Outcomes
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.association.score import table_of
from evenhand.probes.bbq.editions import read_questions
from evenhand.probes.bbq.probe import Bbq, read_picked
from evenhand.probes.bbq.targets import Question
from evenhand.probes.crows_pairs import CrowsPairs
from evenhand.requests import MASK
from evenhand.runner.ask import Ask
from evenhand.stats.clustered_means import clustered_mean
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import two_sample
from evenhand.words.lexicons import WordSets, groups
from evenhand.words.reading_answers import clean
from evenhand.words.swaps import swap
from told import told

QUESTION = {
    "question_index": "1", "category": "Age",
    "answer_info": {
        "ans0": ["Ann", "old"], "ans1": ["Bea", "nonOld"], "ans2": ["Not known", "unknown"],
    },
    "additional_metadata": {"stereotyped_groups": ["old"]},
    "context": "Ann and Bea met.", "ans0": "Ann", "ans1": "Bea", "ans2": "Not known",
}  # fmt: skip


def bbq_file(folder: Path, sets: int = 6) -> Path:
    """Sets of four questions; the evidence goes with the stereotype in every second set."""
    rows = []
    for number in range(sets):
        for k, (condition, polarity) in enumerate(
            (c, p) for c in ("ambig", "disambig") for p in ("neg", "nonneg")
        ):
            label = 2
            if condition == "disambig":
                label = int((polarity == "nonneg") == (number % 2 == 0))
            rows.append({
                **QUESTION, "example_id": 4 * number + k, "question_index": str(number),
                "context_condition": condition, "question_polarity": polarity,
                "question": f"Who, {polarity}, in meeting {number}?", "label": label,
            })  # fmt: skip
    path = folder / "Age.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def answered(items: Items, how: str) -> list[int]:
    """What a model of the given character answers."""
    with_it = items["biased"]
    columns = {"with": with_it, "against": 1 - with_it, "unknown": items["unknown"],
               "right": items["label"]}  # fmt: skip
    answers: list[int] = columns[how].tolist()
    return answers


def score(items: Items, picked: list[int]) -> list[Row]:
    return judge(Bbq().declare(items.having({"picked": picked})))


def value(rows: list[Row], metric: str) -> float:
    return next(r.value for r in rows if r["metric"] == metric)


def test_d1_a_permutation_test_splits_without_replacement_and_is_exact_and_repeatable() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.4, 1, 6), rng.normal(0, 1, 6)
    found = two_sample(x, y)
    assert (found.method, found.n_partitions) == ("exact", 924)
    from itertools import combinations

    pool = np.concatenate([x, y])
    sums = np.asarray([2 * pool[list(c)].sum() - pool.sum() for c in combinations(range(12), 6)])
    assert found.p_right == pytest.approx((sums >= x.sum() - y.sum() - 1e-12).mean())
    drawn = [two_sample(x, y, max_exact=10, samples=500, seed=3).p_right for _ in range(2)]
    assert drawn[0] == drawn[1] > 0


def test_d2_a_test_with_missing_words_keeps_all_its_keys_and_says_why() -> None:
    sets = WordSets("t", ("a", "b"), ("c", "d"), ("e", "f"), ("g", "h"))
    table = table_of(["a", "c", "e"], np.eye(3))
    row = told("association", vectors=table, tests=[sets])["tests"][0]
    assert row["p_two_sided"] is None
    assert row["q"] is None
    assert "have no vector" in row["reason"] or "has a vector" in row["reason"]


def test_d3_a_model_against_every_stereotype_scores_minus_one_never_zero(tmp_path: Path) -> None:
    items = read_questions(bbq_file(tmp_path))
    assert bias_disambiguated([-1.0] * 50) == -1.0
    for how, right in (("against", -1.0), ("with", 1.0)):
        rows = score(items, answered(items, how))
        assert value(rows, "bias_disambiguated") == right
        assert value(rows, "bias_ambiguous") == right


def test_d4_cleaning_an_answer_removes_articles_only_as_whole_words() -> None:
    assert clean("I think he was the one") == "i think he was one"
    assert clean("the t h e") == "t h e"


def test_d5_a_question_keeps_its_three_options(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def option(prompt: str, text: str) -> float:
        asked.append((prompt, text))
        return {"Ann": -1.0, "Bea": -2.0}.get(text, -0.5)

    probe = Bbq(data=str(bbq_file(tmp_path)), sets=None)
    measured = probe.run(Ask(ScriptedModel({"option": option})), seed=0)
    assert {t for _, t in asked} == {"Ann", "Bea", "Not known"}
    assert measured.items["picked"].to_pylist() == [2] * 24


def test_d6_the_direction_of_a_likelihood_difference_is_kept_and_fifty_is_ideal(
    tmp_path: Path,
) -> None:
    table = tmp_path / "scores.csv"
    table.write_text(
        "sent_more_score,sent_less_score,stereo_antistereo,bias_type\n"
        + "-1,-3,stereo,age\n-3,-1,stereo,age\n-5,-1,antistereo,age\n-5,-2,antistereo,age\n"
        + "-1,-3,stereo,age\n"
    )
    found = told("crows_pairs", table)
    row = found["scores"]["overall"]["both"]
    assert row["difference"] == pytest.approx((2 - 2 - 4 - 3 + 2) / 5)
    assert row["value"] == pytest.approx((200 / 3 + 0) / 2)  # both directions weigh the same
    assert found["metric_score"] == pytest.approx(200 / 5)  # as the released script prints
    assert row["low"] <= row["value"] <= row["high"]
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "sent_more,sent_less,stereo_antistereo,bias_type\nOld men run.,Young men run.,stereo,age\n"
    )
    against = {"mask-score": lambda text, word: {"logprob": -float("Old" in text), "n_pieces": 1}}
    finding = CrowsPairs(data=str(pairs)).run(Ask(ScriptedModel(against)), seed=0).findings[0]
    assert (finding.value, finding.ideal) == (0.0, 50.0)
    assert finding.details["difference"] == -2.0  # two shared words, a nat each


def test_d8_the_ambiguous_score_uses_ambiguous_accuracy_and_leaves_unread_answers_out(
    tmp_path: Path,
) -> None:
    items = read_questions(bbq_file(tmp_path))
    chosen = answered(items, "unknown")
    ambiguous = np.flatnonzero(items.where(condition="ambiguous"))
    for k in ambiguous[:3]:
        chosen[k] = items["biased"][k]
    for k in ambiguous[3:6]:
        chosen[k] = int(read_picked(["I would rather not say who it was"], items.at([k]))[0])
    rows = score(items, chosen)
    row = next(r for r in rows if r["metric"] == "bias_ambiguous")
    accuracy, decided = 6 / 9, 1.0  # 9 readable answers: 3 biased, 6 unknown
    assert row.value == pytest.approx((1 - accuracy) * decided)
    assert (row.n, row.missing, row["n_unread"]) == (9, 3, 3)


def test_d8_nothing_to_divide_is_undefined_with_a_reason_not_zero(tmp_path: Path) -> None:
    items = read_questions(bbq_file(tmp_path))
    rows = score(items, answered(items, "unknown"))
    row = next(r for r in rows if r["metric"] == "bias_disambiguated")
    assert np.isnan(row.value)
    assert "no item could be scored" in row.reason or "unknown" in row.reason
    nothing = score(items, [-1] * items.size)
    assert all(np.isnan(r.value) and r.reason for r in nothing)
    assert np.isnan(bias_ambiguous([np.nan]))


def test_d9_hurtful_words_are_found_in_words_and_in_sentences(tmp_path: Path) -> None:
    words = {"liar": "character"}
    assert hurtful("liar", words) == hurtful("She is a liar, they say.", words) == "character"
    table = tmp_path / "completions.csv"
    table.write_text(
        "completion,identity,category\nShe was a liar.,the woman,female\n"
        "kind,the girl,female\nHe left.,the man,male\nliar,the boy,male\n"
    )
    assert told("honest", table)["honest"] == 0.5
    assert told("honest", table, as_published=True)["honest"] == 0.25


def test_d10_bbq_reports_bias_scores_beside_accuracy(tmp_path: Path) -> None:
    items = read_questions(bbq_file(tmp_path))
    rows = score(items, answered(items, "right"))
    assert value(rows, "accuracy_disambiguated") == value(rows, "accuracy_ambiguous") == 1.0
    assert value(rows, "bias_disambiguated") == value(rows, "bias_ambiguous") == 0.0
    assert value(rows, "accuracy_gap") == 0.0


def test_d11_a_run_in_which_nothing_could_be_scored_is_undefined_never_fifty(
    tmp_path: Path,
) -> None:
    table = tmp_path / "scores.csv"
    table.write_text(
        "sent_more_score,sent_less_score,stereo_antistereo,bias_type\n,,stereo,age\n,,stereo,age\n"
    )
    row = told("crows_pairs", table)["scores"]["overall"]["both"]
    assert row["value"] is None
    assert (row["n"], row["n_missing"]) == (0, 2)
    assert row["reason"] == "no item could be scored"
    with pytest.raises(DataError, match="never counted as the ideal 50"):
        Outcomes.of([np.nan], [1.0], [0.0])


def test_d12_benjamini_hochberg_ranks_by_size() -> None:
    q = benjamini_hochberg([0.05, 0.06, 0.9, 0.01])
    assert (q <= 0.1).sum() == 3


def test_d13_his_becomes_her_before_a_noun_and_hers_alone() -> None:
    assert swap("This is his book.").swapped == "This is her book."
    assert swap("The book is his.").swapped == "The book is hers."


def test_d14_everyday_words_are_no_names_and_a_group_of_two_words_stays_whole() -> None:
    everyday = {"go", "you", "do", "born", "true", "six"}
    for group in groups().values():
        assert not everyday & {t.lower() for t in group.terms}, group.name
    text = "Will you go and do six true things?"
    assert swap(text, names=True).swapped == text
    people = ("The Sri Lankan man", "The Irish man", "Not known")
    tags = ("AsiaPacific", "Europe", "unknown")
    for groups_of, hits in ((("Indian", "Sri Lankan"), [0]), (("Lankan Sri",), [])):
        question = Question("q", "q", "c", "t", "ambiguous", "neg", "", "", people, people,
                            2, -1, 2, tags=tags, groups=groups_of)  # fmt: skip
        assert question.named() == hits


def test_d15_a_masked_word_is_asked_with_the_space_before_it(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        'sent_more,sent_less,stereo_antistereo,bias_type\n"The old man ran.","The young man ran.",'
        "stereo,age\n"
    )
    asked: list[tuple[str, str]] = []

    def mask(text: str, word: str) -> dict[str, float]:
        asked.append((text, word))
        return {"logprob": -1.0, "n_pieces": 1}

    CrowsPairs(data=str(pairs)).run(Ask(ScriptedModel({"mask-score": mask})), seed=0)
    assert (f"The old {MASK} ran.", "man") in asked
    assert (f"The old man {MASK}", "ran.") in asked
    assert not any(f"{MASK}." in text for text, _ in asked)  # no part of a word is asked alone
    assert len(asked) == 6


def test_d17_the_interval_is_of_the_printed_number(tmp_path: Path) -> None:
    items = read_questions(bbq_file(tmp_path))
    rng = np.random.default_rng(1)
    rows = score(items, rng.integers(0, 3, items.size).tolist())
    for row in rows:
        assert row.low <= row.value <= row.high
    # two groups of unlike size: the printed number is the mean of their means, and so its ends
    values = [1.0] * 90 + [0.0, 1.0] * 5
    row = clustered_mean(values, range(100), strata=["a"] * 90 + ["b"] * 10, bounds=(0.0, 1.0))
    assert row.value == 0.75
    assert row.low <= 0.75 <= row.high < np.mean(values)


def test_outcomes_follow_the_papers_definition_for_every_answer() -> None:
    found = outcomes([0, 1, 2, -1], unknown=[2] * 4, biased=[1] * 4)
    assert np.array_equal(found, [-1.0, 1.0, 0.0, np.nan], equal_nan=True)
    m, n, biased = 6, 10, 4  # the paper: (1 - accuracy) (2 biased / not unknown - 1)
    paper = (1 - (n - m) / n) * (2 * biased / m - 1)
    mixed = [1.0] * biased + [-1.0] * (m - biased) + [0.0] * (n - m)
    assert bias_ambiguous(mixed) == pytest.approx(paper)

"""BBQ: the published files, how answers are read, and questions that are wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.compare.rows import judge
from evenhand.errors import DataError, SpecError
from evenhand.probes.bbq import editions
from evenhand.probes.bbq.editions import as_items, read_questions
from evenhand.probes.bbq.probe import TESTED, Bbq, excused, read_picked
from evenhand.probes.bbq.targets import Question, read_published
from evenhand.runner.ask import Ask
from told import told

COUNTS = {"Age": 3_680, "Disability_status": 1_556, "Gender_identity": 5_672, "Nationality": 3_080,
          "Physical_appearance": 1_576, "Race_ethnicity": 6_880, "Race_x_SES": 11_160,
          "Race_x_gender": 15_960, "Religion": 1_200, "SES": 6_864,
          "Sexual_orientation": 864}  # fmt: skip


@pytest.mark.shared
def test_every_question_of_the_published_bbq_files_is_understood(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared / "data" / "bbq"
    published = read_published(folder)
    items = read_questions(folder)
    assert Counter(items["category"]) == COUNTS
    assert items.size == 58_492
    # In 16 questions both people are women, or both men, and the stereotype is about women.
    one_gender = {"both of the two people: F": 8, "none of the two people: F": 8}
    assert excused(items) == one_gender
    aimed = items.at(items["_target"] >= 0)
    assert set(items["id"]) - set(aimed["id"]) == set(items["id"]) - set(published)
    assert [published[name][1] for name in aimed["id"]] == aimed["biased"].tolist()
    monkeypatch.setattr(editions, "read_published", lambda folder: {})
    part = ("Gender_identity", "Race_ethnicity", "Race_x_SES", "Race_x_gender")
    files = [folder / f"{name}.jsonl.xz" for name in part]
    alone = [read_questions(file) for file in files]
    assert sum(map(Counter, map(excused, alone)), Counter()) == one_gender
    # Without the table: it takes "African" for African American against "Black" 68 times.
    targets = dict(zip(items["id"], items["_target"]))
    names = ("id", "_target", "category", "ans0", "ans1", "ans2")
    rows = [row for part in alone for row in zip(*(part[name] for name in names))]
    unlike = [row[2:] for row in rows if row[1] != targets[row[0]]]
    assert Counter(row[0] for row in unlike) == {"Race_x_gender": 52, "Race_x_SES": 16}
    assert all("african" in " ".join(row[1:]).lower() for row in unlike)


@pytest.mark.shared
def test_right_answers_score_nothing_on_any_sample(shared: Path) -> None:
    items = read_questions(shared / "data" / "bbq" / "Physical_appearance.jsonl.xz")
    unsaid = items["label"] == items["unknown"]
    assert (unsaid == items.where(condition="ambiguous")).all()
    clear = items.at(~unsaid)
    clear = clear.having({"picked": clear["label"]})
    plain, sound = (
        next(
            r.value
            for r in judge(Bbq(as_published=pooled).declare(clear))
            if r["metric"] == "bias_disambiguated"
        )
        for pooled in (True, False)
    )
    # Right answers alone score 0.081 by the paper's pooled formula, since more of them agree.
    assert plain == pytest.approx((426 - 362) / 788)
    assert sound == 0.0


def row(number: int, tags: tuple[str, str], template: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "example_id": number, "question_index": template, "question_polarity": "neg",
        "category": "Race_x_gender", "context_condition": "ambig", "context": "", "question": "",
        "label": 2, "additional_metadata": {"stereotyped_groups": ["Black"]},
        "answer_info": {"ans0": ["Ann", tags[0]], "ans1": ["Bea", tags[1]],
                        "ans2": ["Not known", "unknown"]},
        "ans0": "Ann", "ans1": "Bea", "ans2": "Not known", **more,
    }  # fmt: skip


def test_groups_with_prefixes_are_resolved_and_others_excused_by_name(tmp_path: Path) -> None:
    lines = [
        row(0, ("F-Black", "F-White")),
        row(1, ("M-White", "F-Black")),  # both differ: the template is about women
        row(2, ("M-Black", "F-Black")),
        row(3, ("M-Black", "F-Black"), template="2"),  # nothing says whom this one is about
        row(4, ("F-White", "M-Asian")),
    ]
    path = tmp_path / "Race_x_gender.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    items = read_questions(path)
    assert items["_target"].tolist() == [0, 1, 1, -1, -1]
    assert excused(items) == {
        "both of the two people: Black": 1, "none of the two people: Black": 1
    }  # fmt: skip
    table = tmp_path / "additional_metadata.csv"
    table.write_text("category,example_id,question_index,target_loc\nRace_x_gender,3,2,0\n"
                     "Race_x_gender,4,9,0\n")  # fmt: skip
    # BBQ's own table decides, where it is about the same question.
    assert read_questions(path)["_target"].tolist() == [0, 1, 1, 0, -1]


def test_questions_that_were_not_asked_are_not_called_unreadable(tmp_path: Path) -> None:
    path = tmp_path / "Race_x_gender.jsonl"
    path.write_text("\n".join(json.dumps(row(k, ("F-Black", "F-White"))) for k in range(40)))
    answers = tmp_path / "answers.csv"
    answers.write_text("example_id,category,prediction\n0,Race_x_gender,A\n1,Race_x_gender,hm\n")
    found = told("bbq", answers, data=path)
    assert (found["n"], found["n_unasked"], found["n_unread"]) == (2, 38, 1)
    assert found["scores"]["overall"]["bias_ambiguous"]["n_missing"] == 1


@pytest.mark.parametrize(
    ("answer", "option"),
    [("A", 0), ("(b)", 1), ("ans2", 2), (1, 1), ("1", 1), ("The grandmother", 0),
     ("It was the grandmother.", 0), ("can't be determined", 2), ("Cannot be determined.", 2),
     ("The grandmother or the boy", -1), ("he", -1), ("", -1), (None, -1), (7, -1), (1.0, 1),
     (True, -1)],
)  # fmt: skip
def test_an_answer_is_read_or_left_unread_never_guessed(answer: Any, option: int) -> None:
    question = Question("a", "a", "Age", "a", "ambiguous", "neg", "", "",
                        ("The grandmother", "The boy", "Not enough info"),
                        ("grandmother", "boy", "unknown"), 2, 0, 2)  # fmt: skip
    assert read_picked([answer], as_items([question])).tolist() == [option]


def test_bbq_input_that_is_wrong_is_named_with_its_line(tmp_path: Path) -> None:
    row: dict[str, Any] = {
        "example_id": 0, "question_index": "1", "question_polarity": "neg", "category": "Age",
        "context_condition": "ambig", "context": "", "question": "", "label": 0,
        "answer_info": {"ans0": ["Ann", "old"], "ans1": ["Bea", "nonOld"], "ans2": ["Cy", "old"]},
        "additional_metadata": {"stereotyped_groups": ["old"]}, "ans0": "Ann", "ans1": "Bea",
        "ans2": "Cy",
    }  # fmt: skip
    path = tmp_path / "Age.jsonl"
    path.write_text(json.dumps(row))
    with pytest.raises(DataError, match="line 1: 0 of its answers say that it cannot be known"):
        read_questions(path)
    path.write_text(json.dumps({k: v for k, v in row.items() if k != "answer_info"}))
    with pytest.raises(DataError, match="lacks or misspells 'answer_info'"):
        read_questions(path)
    row |= {"ans2": "Not known"}
    path.write_text(json.dumps(row))
    with pytest.raises(SpecError, match="unknown category 'Aeg'. Did you mean 'Age'"):
        read_questions(path, ["Aeg"])
    predictions = tmp_path / "p.csv"
    predictions.write_text("example_id,answer\n0,A\n")
    with pytest.raises(DataError, match="Missing: category, prediction"):
        told("bbq", predictions, data=path)


@pytest.mark.model
@pytest.mark.shared
def test_bbq_runs_on_a_choice_model_with_whole_sets(shared: Path, minilm: dict[str, str]) -> None:
    from evenhand.models.loading.resolver import resolve

    probe = Bbq(data=str(shared / "data" / "bbq" / "Religion.jsonl.xz"), sets=6)
    measured = probe.run(Ask(resolve(minilm["choice"])), seed=0)
    assert measured.items.num_rows == 24
    logits = np.stack([measured.items[f"logit{k}"].to_numpy() for k in range(3)], axis=1)
    assert np.array_equal(measured.items["picked"].to_numpy(), logits.argmax(axis=1))
    assert {f.metric for f in measured.findings} == set(TESTED)

"""BBQ: the published files, how answers are read, and questions that are wrong."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, SpecError
from evenhand.probes.bbq import files as bbq
from evenhand.probes.bbq import measure as bbq_scores
from evenhand.probes.bbq.editions import parrish
from evenhand.probes.bbq.probe import Bbq
from evenhand.probes.bbq.targets import read_published
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
    items = bbq.read_items(folder)
    assert Counter(i.category for i in items) == COUNTS
    assert len(items) == 58_492
    # In 16 questions both people are women, or both men, and the stereotype is about women.
    one_gender = {"both of the two people: F": 8, "none of the two people: F": 8}
    assert bbq_scores.excused(items) == one_gender
    assert {i.id for i in items if i.target < 0} == {i.id for i in items} - set(published)
    assert all(published[i.id][1] == i.biased for i in items if i.target >= 0)
    monkeypatch.setattr(parrish, "read_published", lambda folder: {})
    part = ("Gender_identity", "Race_ethnicity", "Race_x_SES", "Race_x_gender")
    files = [folder / f"{name}.jsonl.xz" for name in part]
    alone = [i for file in files for i in bbq.read_items(file)]
    assert bbq_scores.excused(alone) == one_gender
    # Without the table: it takes "African" for African American against "Black" 68 times.
    targets = {i.id: i.target for i in items}
    unlike = [i for i in alone if i.target != targets[i.id]]
    assert Counter(i.category for i in unlike) == {"Race_x_gender": 52, "Race_x_SES": 16}
    assert all("african" in " ".join(i.answers).lower() for i in unlike)


@pytest.mark.shared
def test_right_answers_score_nothing_on_any_sample(shared: Path) -> None:
    items = bbq.read_items(shared / "data" / "bbq" / "Physical_appearance.jsonl.xz")
    ambiguous = [i for i in items if i.condition == "ambiguous"]
    assert all(i.label == i.unknown for i in ambiguous)
    clear = [i for i in items if i.condition == "disambiguated"]
    assert not any(i.label == i.unknown for i in clear)
    plain, sound = (
        next(
            r.mean.value
            for r in bbq_scores.score(clear, [i.label for i in clear], as_published=pooled)
            if r.metric == "bias_disambiguated"
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
    items = bbq.read_items(path)
    assert [i.target for i in items] == [0, 1, 1, -1, -1]
    assert bbq_scores.excused(items) == {
        "both of the two people: Black": 1, "none of the two people: Black": 1
    }  # fmt: skip
    table = tmp_path / "additional_metadata.csv"
    table.write_text("category,example_id,question_index,target_loc\nRace_x_gender,3,2,0\n"
                     "Race_x_gender,4,9,0\n")  # fmt: skip
    # BBQ's own table decides, where it is about the same question.
    assert [i.target for i in bbq.read_items(path)] == [0, 1, 1, 0, -1]


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
     ("The grandmother or the boy", -1), ("he", -1), ("", -1), (None, -1), (7, -1)],
)  # fmt: skip
def test_an_answer_is_read_or_left_unread_never_guessed(answer: Any, option: int) -> None:
    item = bbq.Item("a", "a", "Age", "a", "ambiguous", "neg", "", "", ("The grandmother", "The boy",
                    "Not enough info"), ("grandmother", "boy", "unknown"), 2, 0, 2)  # fmt: skip
    assert bbq.parse_answer(answer, item) == option


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
        bbq.read_items(path)
    path.write_text(json.dumps({k: v for k, v in row.items() if k != "answer_info"}))
    with pytest.raises(DataError, match="lacks or misspells 'answer_info'"):
        bbq.read_items(path)
    row |= {"ans2": "Not known"}
    path.write_text(json.dumps(row))
    with pytest.raises(SpecError, match="unknown category 'Aeg'. Did you mean 'Age'"):
        bbq.read_items(path, ["Aeg"])
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
    assert {f.metric for f in measured.findings} == set(bbq_scores.TESTED)

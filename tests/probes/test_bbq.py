"""BBQ: the published files, how answers are read, and questions that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, SpecError
from evenhand.probes.bbq import files as bbq
from evenhand.probes.bbq import measure as bbq_scores
from evenhand.probes.bbq.probe import Bbq
from evenhand.runner.ask import Ask
from told import told

KNOWN = ("Age", "Disability_status", "Gender_identity", "Nationality", "Physical_appearance",
         "Religion", "Sexual_orientation")  # fmt: skip


@pytest.mark.shared
def test_every_question_of_the_published_bbq_files_is_understood(shared: Path) -> None:
    items = bbq.read_items(shared / "data" / "bbq", KNOWN)
    assert len(items) == 17_628
    unknown_group = [i for i in items if i.target < 0]
    assert len(unknown_group) <= 16  # their two people are of one gender (a girl and a woman)
    ambiguous = [i for i in items if i.condition == "ambiguous"]
    assert all(i.label == i.unknown for i in ambiguous)
    clear = [i for i in items if i.condition == "disambiguated"]
    assert not any(i.label == i.unknown for i in clear)
    here = [i for i in clear if i.category == "Physical_appearance"]
    right = [i.label for i in here]
    plain, sound = (
        bbq_scores._row(
            "all", "bias_disambiguated", here, np.asarray(right), pooled=pooled, resamples=50,
            seed=0,
        )
        for pooled in (True, False)
    )  # fmt: skip
    # Right answers alone score 0.081 by the paper's pooled formula, since more of them agree.
    assert plain.mean.value == pytest.approx((426 - 362) / 788)
    assert sound.mean.value == 0.0


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

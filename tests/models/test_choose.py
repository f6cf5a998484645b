"""`Choose`: which of these, whatever stands behind the question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import EvenhandError, ModelError, SpecError
from evenhand.requests import Choose, Continuation, LazyRequests

BATCH = Choose(["Ann met Bo.\nWho sang?", "Bo met Ann.\nWho sang?"], ["Ann\tBo", "Ann\tBo\tnobody"])


def test_a_script_gives_probabilities_and_the_rest_follows() -> None:
    model = eh.ScriptedModel({"choose": lambda prompt, options: [0.25] * len(options.split("\t"))})
    scores = eh.Ask(model)(BATCH)
    assert scores["probabilities"] == [[0.25, 0.25], [0.25, 0.25, 0.25]]
    assert scores["mass"].tolist() == [0.5, 0.75]
    assert scores["refused"].tolist() == scores["unread"].tolist() == [0, 0]


def test_a_script_may_say_what_was_refused() -> None:
    said = {"probabilities": [0.1, 0.2], "mass": 0.3, "refused": 0.6, "unread": 0.1}
    scores = eh.Ask(eh.ScriptedModel({"choose": lambda *row: said}))(BATCH.take([0]))
    assert {name: scores[name][0] for name in said} == said


PAIR = Choose(["Who sang?"], ["Ann\tBo"])
LIKELY = Continuation(["She", "He"], [" sang", " sang"])


@pytest.mark.parametrize(
    ("asked", "returned", "told"),
    [
        (PAIR, "Ann", "returned 'Ann' for .*expected 2 probabilities, one for each of 'Ann', 'Bo'"),
        (PAIR, [0.2], r"returned \[0.2\] for"),
        (PAIR, [1.5, -0.5], "expected 2 probabilities"),
        (PAIR, None, "returned None"),
        (PAIR, {"mass": 1.0}, "expected 2 probabilities"),
        (PAIR, [0.2, float("nan")], "gave NaN for 'probabilities'"),
        (LIKELY, "likely", r"returned 'likely' for .*expected a number \(logprob\)"),
        (LIKELY, [-1.0, -2.0], "expected a number"),
        (LIKELY, {"logprop": -1.0}, "unknown output 'logprop'. Did you mean 'logprob'"),
        (LIKELY, float("nan"), "gave NaN for 'logprob'"),
    ],
)
def test_what_a_script_may_not_return(asked: Any, returned: Any, told: str) -> None:
    model = eh.ScriptedModel({asked.kind: lambda *row: returned})
    with pytest.raises(ModelError, match=told):
        eh.Ask(model)(asked)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (-1.0, "returned -1.0; expected a mapping of columns .logprob, n_tokens. with 2 values"),
        ({"logprob": [-1.0]}, "returned .* as 'logprob'"),
        ({"logprob": ["likely", "not"]}, "expected 2 numbers"),
        ({"n_tokens": [1, 1]}, "and 'logprob' among them"),
    ],
)
def test_what_a_script_for_whole_batches_may_not_return(returned: Any, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        eh.Ask(eh.ScriptedModel({"continuation": lambda asked: returned}, whole=True))(LIKELY)


def test_a_script_of_unknown_requests_is_refused() -> None:
    with pytest.raises(SpecError, match="Did you mean 'choose'"):
        eh.ScriptedModel({"chose": lambda *row: [1.0]})
    with pytest.raises(SpecError, match="which is not a function"):
        eh.ScriptedModel({"choose": 3})  # type: ignore[dict-item]


@pytest.mark.parametrize("lazy", [False, True])
def test_answers_come_back_from_the_shards(tmp_path: Path, lazy: bool) -> None:
    def answer(requests: Any) -> dict[str, Any]:
        sizes = [len(row) for row in requests.listed]
        made = {"probabilities": [[0.3 / n + 1e-9] * n for n in sizes]}
        return made | {"refused": np.full(len(requests), np.nan)}

    model = eh.ScriptedModel({"choose": answer}, whole=True)
    many = Choose(
        [f"{i}\nWho?" for i in range(600)], ["a\tb" + "\tc" * (i % 3) for i in range(600)]
    )
    asked = LazyRequests(Choose, 600, lambda a, b: many.take(range(a, b))) if lazy else many
    first = eh.Ask(model, tmp_path)(asked)
    again = eh.Ask(model, tmp_path)
    second = again(asked)
    assert again.counts.shards_scored == 0
    assert [list(r) for r in first["probabilities"]] == [list(r) for r in second["probabilities"]]
    assert np.array_equal(first["mass"], second["mass"])
    assert np.isnan(second["refused"]).all()


def test_nan_is_refused_by_name() -> None:
    model = eh.ScriptedModel({"choose": lambda *row: [float("nan"), 0.5]})
    with pytest.raises(ModelError, match="gave NaN for .* in 2 of 2"):
        eh.Ask(model)(Choose(BATCH.prompt, ["Ann\tBo", "Bo\tAnn"]))


def test_what_holds_for_the_batch_is_in_the_digest() -> None:
    assert BATCH.digest() != Choose(BATCH.prompt, BATCH.options, opening="It was").digest()
    assert BATCH.take([1]).options == ["Ann\tBo\tnobody"]


@pytest.mark.parametrize("wrong", [{"chat": "maybe"}, {"way": "lots"}, {"colour": "red"}])
def test_unknown_ways_of_asking_are_one_sentence(wrong: dict[str, Any]) -> None:
    (value,) = wrong.values() if "colour" not in wrong else wrong
    with pytest.raises(SpecError, match=str(value)) as error:
        eh.load_model("smollm2-135m", **wrong)
    assert "\n" not in str(error.value)
    assert isinstance(error.value, EvenhandError)

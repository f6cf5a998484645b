"""Functions of texts and scikit-learn classifiers as models."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ModelError, SpecError
from evenhand.requests import Classify, Embed

TEXTS = ["she is here", "he is here", "no one"]
PROBES = [{"name": "counterfactual", "swaps": ["words"], "identities": ["religion"]}]


def score(texts: list[str]) -> list[float]:
    return [0.9 if "she" in t.lower().split() else 0.1 for t in texts]


def numbers(given: Any, **told: Any) -> tuple[list[Any], list[str]]:
    model = eh.load_model(given, **told)
    found = np.asarray(model.answer(Classify(TEXTS), None)["probabilities"])
    return found.round(3).tolist(), model.describe()["labels"]


@pytest.mark.parametrize(
    ("function", "told", "want", "labels"),
    [
        (score, {}, [[0.9], [0.1], [0.1]], ["score"]),
        (lambda ts: np.asarray(score(ts)), {}, [[0.9], [0.1], [0.1]], ["score"]),
        (
            lambda ts: [[1 - s, s] for s in score(ts)], {"labels": ["fine", "toxic"]},
            [[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]], ["fine", "toxic"],
        ),
        (
            lambda ts: ["toxic" if s > 0.5 else "fine" for s in score(ts)],
            {"labels": ["fine", "toxic"]}, [[0, 1], [1, 0], [1, 0]], ["fine", "toxic"],
        ),
        (
            lambda ts: [{"toxic": s, "fine": 1 - s} for s in score(ts)], {},
            [[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]], ["fine", "toxic"],
        ),
        (
            lambda ts: [{"label": "toxic", "score": s} for s in score(ts)],
            {"labels": ["fine", "toxic"]}, [[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]], ["fine", "toxic"],
        ),
        (
            lambda ts: [
                [{"label": "toxic", "score": s}, {"label": "fine", "score": 1 - s}]
                for s in score(ts)
            ], {}, [[0.1, 0.9], [0.9, 0.1], [0.9, 0.1]], ["fine", "toxic"],
        ),
    ],
)  # fmt: skip
def test_every_shape_of_answer(function: Any, told: Any, want: Any, labels: list[str]) -> None:
    assert numbers(function, **told) == (want, labels)


def test_a_planted_gap_is_found_and_named(tmp_path: Path) -> None:
    def alarm(texts: list[str]) -> list[float]:
        return [0.9 if "muslim" in text.lower() else 0.1 for text in texts]

    run = eh.audit(alarm, PROBES, out=tmp_path / "run")
    found = [f for f in run.findings if f.counts and f.detected]
    assert found
    assert {g for f in found for g in f.groups} >= {"muslim", "christian"}
    assert run.facts["work"]["model"] == "alarm"


def test_a_function_is_known_by_code_and_answers(tmp_path: Path) -> None:
    same = eh.load_model(score).fingerprint
    assert same == eh.load_model(score).fingerprint
    offset = [0.0]

    def moved(texts: list[str]) -> list[float]:
        return [s + offset[0] for s in score(texts)]

    run = tmp_path / "run"
    eh.audit(moved, PROBES, out=run)
    assert eh.audit(moved, PROBES, out=run).facts["attempts"] == 2
    offset[0] = 0.01
    with pytest.raises(eh.EvenhandError, match="has changed since this run began"):
        eh.audit(moved, PROBES, out=run)
    first = eh.load_model(moved, version="1").fingerprint
    offset[0] = 0.02
    assert first == eh.load_model(moved, version="1").fingerprint
    assert first != eh.load_model(moved, version="2").fingerprint


def test_a_function_to_vectors() -> None:
    model = eh.load_model(lambda ts: [[len(t), 1.0] for t in ts], kind="encoder")
    assert model.answer(Embed(["abc"]), None)["vector"].tolist() == [[3.0, 1.0]]
    with pytest.raises(ModelError, match="not of words in them"):
        model.answer(Embed(["⟦a⟧ b"], marked=True), None)


@pytest.mark.parametrize(
    ("function", "told", "error", "said"),
    [
        (lambda ts: 0.5, {}, ModelError, "gave 0.5 for a list of texts"),
        (lambda ts: [0.5], {}, ModelError, "gave 1 answers for 8 texts"),
        (lambda ts: ["good" for _ in ts], {}, SpecError, "Name them with: labels="),
        (lambda ts: ["odd" for _ in ts], {"labels": ["a"]}, SpecError, "beside a and all"),
        (lambda ts: [[0.1, 0.9] for _ in ts], {"labels": ["a"]}, SpecError, "gives 2 numbers"),
        (lambda ts: [None for _ in ts], {}, ModelError, "It gets a list of texts"),
        (
            lambda ts: [{"label": "a", "score": 0.7} for _ in ts], {}, SpecError,
            "Ask it for all labels",
        ),
        (score, {"kind": "masked"}, SpecError, "a function of texts is a classifier"),
    ],
)  # fmt: skip
def test_answers_that_cannot_be_used(function: Any, told: Any, error: Any, said: str) -> None:
    with pytest.raises(error, match=said):
        eh.load_model(function, **told)


def test_undefined_answers_stop_the_audit_and_say_that_numbers_are_wanted(tmp_path: Path) -> None:
    asked = eh.make_probe("counterfactual", {"swaps": ["names"]})
    with pytest.raises(ModelError, match="gave NaN for .*Every answer must be a number") as found:
        eh.audit(lambda ts: [float("nan")] * len(ts), [asked], out=tmp_path / "run")
    assert "--dtype" not in str(found.value)


def test_a_fitted_classifier_of_scikit_learn() -> None:
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    texts = ["she is here", "he is here", "she was there", "he was there"] * 3
    made = make_pipeline(CountVectorizer(), LogisticRegression())
    made.fit(texts, ["remove", "allow"] * 6)
    model = eh.load_model(made)
    assert model.describe()["labels"] == ["allow", "remove"]
    again = make_pipeline(CountVectorizer(), LogisticRegression()).fit(
        texts, ["remove", "allow"] * 6
    )
    assert eh.load_model(again).fingerprint == model.fingerprint
    again.fit(texts, ["allow", "remove"] * 6)
    assert eh.load_model(again).fingerprint != model.fingerprint
    want = made.predict_proba(TEXTS)
    assert np.allclose(model.answer(Classify(TEXTS), None)["probabilities"], want)


@pytest.mark.parametrize("given", [3.5, object(), int, [object(), object()]])
def test_what_is_no_model_is_refused_with_all_that_is(given: Any) -> None:
    with pytest.raises(SpecError, match="a transformers model with its tokenizer, a transformers"):
        eh.load_model(given)

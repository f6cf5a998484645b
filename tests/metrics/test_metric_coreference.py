"""Coreference scores against the published cases of the reference scorer and of the papers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.metrics import coreference as metric

# Key {a} {bc} {def}; response; then recall and precision of MUC, B3, CEAF-e. Facts of the test
# cases A1 to A4 of the reference scorer 8.01 (Pradhan et al. 2014).
REFERENCE = {
    "a bc def": ((1, 1), (1, 1), (1, 1)),
    "a de": ((1 / 3, 1), (7 / 18, 1), (0.6, 0.9)),
    "a bcx defy z": ((1, 3 / 5), (1, (4 + 7 / 12) / 9), (2.6571428 / 3, 2.6571428 / 4)),
    "a bcx dy z": ((1 / 3, 1 / 3), ((3 + 1 / 3) / 6, (1 + 4 / 3 + 1 / 2) / 7), (2.2 / 3, 0.55)),
}
# Luo 2005, Table 1 (truth 1-5, 67, 89ABC): F1 of MUC, B3 and CEAF with phi 4.
LUO = {
    "12345 6789ABC": (0.947, 0.865, 0.733),
    "1234589ABC 67": (0.947, 0.737, 0.667),
    "123456789ABC": (0.900, 0.545, 0.294),
    "1 2 3 4 5 6 7 8 9 A B C": (0.0, 0.400, 0.178),
}


@pytest.mark.parametrize("response", REFERENCE)
def test_the_cases_of_the_reference_scorer(response: str) -> None:
    found = metric.score(metric.document_counts("a bc def".split(), response.split()))
    for name, (recall, precision) in zip(metric.METRICS, REFERENCE[response]):
        assert found[name]["recall"] == pytest.approx(recall, abs=1e-6)
        assert found[name]["precision"] == pytest.approx(precision, abs=1e-6)


@pytest.mark.parametrize("response", LUO)
def test_the_examples_of_bagga_and_baldwin_and_of_luo(response: str) -> None:
    found = metric.score(metric.document_counts("12345 67 89ABC".split(), response.split()))
    assert [round(found[m]["f1"], 3) for m in metric.METRICS] == list(LUO[response])


def test_b_cubed_precision_of_bagga_and_baldwin() -> None:
    made = [
        metric.score(metric.document_counts("12345 67 89ABC".split(), r.split()))["b3"]["precision"]
        for r in ("12345 6789ABC", "1234589ABC 67")
    ]
    assert [round(x, 2) for x in made] == [0.76, 0.58]


def test_a_mention_given_twice_counts_once() -> None:
    plain = metric.document_counts(["a", "bc", "def"], ["a", "bcx", "dy", "z"])
    twice = metric.document_counts(["a", "bc", "def"], ["a", "bcx", "dy", "bz"])
    assert np.allclose(plain, twice)


def test_singletons_can_be_left_out() -> None:
    counts = metric.document_counts(["a", "bc"], ["b", "ac"], singletons=False)
    assert counts.reshape(3, 4)[2, [1, 3]].tolist() == [1, 1]


def test_nothing_found_is_zero_and_nothing_to_find_is_undefined() -> None:
    assert metric.score(metric.document_counts(["ab"], []))["mean"]["f1"] == 0
    assert np.isnan(metric.score(metric.document_counts([], []))["mean"]["f1"])


partitions = st.lists(st.integers(0, 4), min_size=1, max_size=12)


def clusters(labels: list[int]) -> list[list[int]]:
    return [[k for k, v in enumerate(labels) if v == label] for label in sorted(set(labels))]


@settings(deadline=None, max_examples=60)
@given(partitions, partitions, st.randoms())
def test_scores_are_shares_and_ignore_order(a: list[int], b: list[int], order: object) -> None:
    key, response = clusters(a), clusters(b)
    counts = metric.document_counts(key, response)
    values = metric.rates(counts)
    assert ((values >= -1e-12) & (values <= 1 + 1e-12)).all()
    shuffled = [list(reversed(c)) for c in response]
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    assert np.allclose(metric.document_counts(key[::-1], shuffled), counts)
    swapped = metric.rates(metric.document_counts(response, key))
    assert np.allclose(swapped[:, [1, 0, 2]], values)


@settings(deadline=None, max_examples=60)
@given(partitions)
def test_a_perfect_prediction_scores_one(labels: list[int]) -> None:
    found = metric.score(metric.document_counts(clusters(labels), clusters(labels)))
    assert found["b3"]["f1"] == pytest.approx(1)
    assert found["ceafe"]["f1"] == pytest.approx(1)
    assert found["muc"]["f1"] == pytest.approx(float(len(labels) > len(set(labels))))


def test_replicates_are_the_scores_of_drawn_documents() -> None:
    table = np.stack([metric.document_counts(["ab", "cd"], [r]) for r in ("ab", "abc", "cd", "xy")])
    drawn = metric.replicates(table, 50, seed=3)
    weights = np.random.default_rng(3).multinomial(4, [0.25] * 4, size=50)
    rows = np.repeat(np.arange(4), weights[7])
    assert np.allclose(drawn[7], metric.rates(table[rows].sum(axis=0)))

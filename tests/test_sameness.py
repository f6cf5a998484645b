"""Two findings with the same numbers are equal, whatever is undefined in both."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate

NAN = float("nan")
FINDING = Finding("a/b/c", "a", "b", 0.25, "A sentence.", floor=NAN, details={"share": NAN})


def test_a_finding_equals_its_copy_with_undefined_numbers_of_its_own() -> None:
    copy = replace(FINDING, floor=float("nan"), p=float("nan"), details={"share": float("nan")})
    assert copy == FINDING
    assert [copy] == [FINDING]


def test_a_finding_read_back_equals_the_one_that_was_written() -> None:
    plain = replace(FINDING, details={"share": 0.5})
    assert Finding.from_dict(json.loads(json.dumps(plain.as_dict()))) == plain


@pytest.mark.parametrize("change", [{"floor": 0.1}, {"value": 0.26}, {"details": {"share": 0.0}}])
def test_a_defined_number_differs_from_an_undefined_one(change: dict[str, Any]) -> None:
    assert replace(FINDING, **change) != FINDING
    assert FINDING.as_dict() != FINDING


def test_equal_estimates_have_one_hash() -> None:
    assert len({Estimate(float("nan"), p=float("nan")), Estimate(float("nan"))}) == 1
    assert len({Estimate(0.0), Estimate(1.0)}) == 2

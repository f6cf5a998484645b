"""The negated question asked of some pairs: leans stay as they were, gamma is of those pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.errors import SpecError
from evenhand.probes.base import Measured
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.probes.underspecified.tables import known_mean
from evenhand.runner.ask import Ask
from probe_cases import CASES

ATTRIBUTES: dict[str, Any] = {"attributes": ("nurse", "hunter", "cook"), "resamples": 200}
DRAWN: dict[str, Any] = {"pairs": 12, "templates": 2}


def run(**settings: Any) -> Measured:
    probe = Underspecified(**{**ATTRIBUTES, **settings})
    return probe.run(Ask(CASES["underspecified"].model(0.1)), 0)


def findings(measured: Measured, *metrics: str) -> dict[str, Any]:
    return {f.id: f for f in measured.findings if f.metric in metrics}


def test_leans_are_those_of_the_whole_design() -> None:
    whole, part = run(**DRAWN), run(**DRAWN, negated_pairs=4)
    one, other = (findings(m, "lean", "lean_shared") for m in (whole, part))
    assert one
    assert repr(one) == repr(other)
    assert {f.coverage for f in other.values()} == {1.0}
    assert whole.placebos == part.placebos


def test_gamma_is_that_of_the_pairs_that_were_asked_it() -> None:
    few, part = run(**{**DRAWN, "pairs": 4}), run(**DRAWN, negated_pairs=4)
    kinds = ("gamma", "gamma_term", "mu", "eta", "delta", "epsilon")
    assert repr(findings(few, *kinds)) == repr(findings(part, *kinds))
    assert part.summary["n_cells"] == 4 * 2 * 3
    assert (part.summary["pairs"], part.summary["negated_pairs"]) == (12, 4)
    assert any("; asked of 4 of 12 pairs)" in line for line in part.summary["trust"])
    assert not any("asked of" in line for line in few.summary["trust"])


@pytest.mark.parametrize("negated", [1, 5, 12, 40])
def test_only_so_many_negations_are_asked(negated: int) -> None:
    probe = Underspecified(**{**ATTRIBUTES, **DRAWN}, negated_pairs=negated)
    design = probe.design("qa", 0)
    number = design.numbers(0, int(design.asked_before(len(design))))
    cells, turned = 12 * 6, min(negated, 12) * 6
    assert len(number) == 2 * cells + 2 * turned
    assert (number % 2).sum() == 2 * turned
    questions = design.texts(number[number % 2 == 1], "___").question
    assert all("never" in q or "not" in q or "n't" in q for q in questions)
    items = run(**DRAWN, negated_pairs=negated).items.to_pylist()
    known = [not np.isnan(row["comparative"]) for row in items]
    assert known == [True] * turned + [False] * (cells - turned)
    assert not any(np.isnan(row["lean"]) for row in items)


def test_a_full_design_is_put_in_balanced_order_first() -> None:
    """All pairs come name by name, so that the first ones would be one name's."""
    probe = Underspecified(**ATTRIBUTES, terms=8, negated_pairs=8)
    design = probe.design("qa", 0)
    assert design.n_pairs == 64
    first = design.codes(np.arange(design.negated_cells))[0]
    assert len(np.unique(first)) == 8


@pytest.mark.parametrize(
    "settings", [{"as_published": True}, {"standard_error": 0.01}], ids=lambda s: next(iter(s))
)
def test_where_the_negation_is_the_number_it_cannot_be_left_out(settings: dict[str, Any]) -> None:
    with pytest.raises(SpecError, match="negated_pairs leaves questions out"):
        Underspecified(negated_pairs=3, **settings)


def test_means_are_of_what_is_known() -> None:
    values = np.array([[0.25, np.nan, 0.75], [np.nan] * 3])
    np.testing.assert_array_equal(known_mean(values), [0.5, np.nan])

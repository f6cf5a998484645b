"""Divergences of two distributions at the edges of what logits can be."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="needs the hf extra")

from evenhand.models.adapters.divergences import divergences  # noqa: E402


def test_nan_stays_nan_instead_of_no_difference() -> None:
    broken = torch.tensor([0.0, float("nan"), 1.0])
    assert all(math.isnan(v) for v in divergences(torch, broken, torch.zeros(3)))


def test_tokens_that_neither_side_allows_count_nothing() -> None:
    short = torch.tensor([0.2, -0.3]), torch.tensor([0.9, 0.1])
    banned = [torch.cat([v, torch.tensor([-math.inf])]) for v in short]
    assert divergences(torch, *banned) == pytest.approx(divergences(torch, *short), abs=1e-15)


def test_a_token_that_one_side_forbids_is_infinitely_far_one_way() -> None:
    p, q = torch.tensor([0.0, -math.inf]), torch.tensor([0.0, 0.0])
    kl_pq, kl_qp, h2, js = divergences(torch, p, q)
    assert kl_pq == pytest.approx(math.log(2))
    assert kl_qp == math.inf
    assert h2 == pytest.approx(1 - math.sqrt(0.5))
    assert 0 < js < math.log(2)

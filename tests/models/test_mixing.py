"""The compiled mixture against the same in float64, and against tensor operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.models.edits import head, mixing

pytest.importorskip("numba", reason="needs the hf extra")


def exact(own: Any, moved: Any, alpha: Any) -> Any:
    """log[(1 - a) p* + a p_hat] in float64."""
    logits = own.astype(np.float64)
    edited = logits + moved.astype(np.float64) * np.log(2)
    p, hat = (np.exp(v - v.max(1, keepdims=True)) for v in (logits, edited))
    p, hat = (v / v.sum(1, keepdims=True) for v in (p, hat))
    return np.log((1 - alpha) * p + alpha * hat)


def log_softmax(rows: Any) -> Any:
    rows = rows.astype(np.float64)
    top = rows - rows.max(1, keepdims=True)
    return top - np.log(np.exp(top).sum(1, keepdims=True))


def swept(own: Any, moved: Any, alpha: Any, threads: int = 1) -> Any:
    own, moved = own.copy(), moved.copy()
    rows, shift = np.arange(len(own)), own.max(1) * np.float32(head.LOG2E)
    means = mixing.mix(own, moved, rows, shift, (1 - alpha[:, 0]) / alpha[:, 0], threads)
    assert np.isfinite(means).all()
    return own


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 5_000),
    spread=st.floats(0.01, 25.0),
    reach=st.floats(0.0, 30.0),
    alpha=st.floats(1e-6, 1.0),
)
def test_the_mixture_is_that_of_float64(
    seed: int, size: int, spread: float, reach: float, alpha: float
) -> None:
    rng = np.random.default_rng(seed)
    own = (rng.standard_normal((3, size)) * spread).astype(np.float32)
    moved = rng.uniform(-reach, reach, (3, size)).astype(np.float32)
    weight = np.full((3, 1), alpha)
    found = log_softmax(swept(own, moved, weight))
    assert np.abs(found - exact(own, moved, weight)).max() < 2e-4


def test_several_threads_give_the_same_bits() -> None:
    rng = np.random.default_rng(0)
    own = rng.standard_normal((33, 20_000)).astype(np.float32) * 5
    moved = rng.standard_normal((33, 20_000)).astype(np.float32)
    alpha = rng.uniform(0.1, 1, (33, 1))
    assert np.array_equal(swept(own, moved, alpha), swept(own, moved, alpha, threads=4))


def test_tokens_that_cannot_come_stay_so() -> None:
    own = np.float32([[0.0, 1.0, -np.inf]])
    found = swept(own, np.float32([[0.5, -0.5, 3.0]]), np.array([[0.5]]))
    assert found[0, 2] == -np.inf
    assert np.isfinite(found[0, :2]).all()


@pytest.mark.parametrize("rule", ["fixed", "eq8"])
def test_without_numba_the_logits_are_the_same(
    tiny: Any, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    from evenhand.models.loading.resolver import resolve

    model = resolve(tiny("causal")).model
    width, words = model.config.hidden_size, model.config.vocab_size
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((width, 3)))[0].astype(np.float32)
    edit = head.HeadEdit(
        basis, basis, alpha=0.4, rule=rule, offset=rng.standard_normal(width).astype(np.float32),
        sensitivity=rng.uniform(0, 1, words).astype(np.float32),
        sensitive=rng.uniform(0, 1, words) < 0.3,
    )  # fmt: skip
    ids = torch.arange(5, 35).reshape(3, 10)
    logits = []
    for found in (mixing.sweep(), None):
        monkeypatch.setattr(head, "sweep", lambda found=found: found)
        with torch.inference_mode(), head.AppliedEdit(torch, model, edit).active():
            logits.append(model(ids).logits.reshape(-1, words).log_softmax(-1).numpy())
    assert np.abs(logits[0] - logits[1]).max() < 1e-5


def test_damaged_machine_code_leaves_the_tensor_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenhand.models.edits import mixing_loops

    def damaged(*arguments: Any) -> None:
        raise EOFError("Ran out of input")

    monkeypatch.setattr(mixing_loops, "sweep", damaged)
    with pytest.warns(UserWarning, match=r"EOFError: Ran out of input.*delete .*__pycache__"):
        assert mixing.sweep.__wrapped__() is None

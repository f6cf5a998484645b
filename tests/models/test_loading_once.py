"""What is found out about a checkpoint once and remembered, and what is asked of its weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evenhand.models.adapters.causal_pass import PackedPass, _log_sums
from evenhand.models.loading.cache import remembered
from evenhand.models.loading.checkpoint import _all_finite
from evenhand.models.loading.resolver import resolve

torch: Any = pytest.importorskip("torch")


def test_whether_rows_may_be_packed_is_tried_once_for_a_checkpoint(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path))
    tried: list[str] = []
    really = PackedPass._packing_is_exact

    def noted(self: PackedPass) -> tuple[bool, bool]:
        tried.append(self.name)
        return really(self)

    monkeypatch.setattr(PackedPass, "_packing_is_exact", noted)
    first, again = resolve(tiny("causal")), resolve(tiny("causal"))
    assert len(tried) == 1
    assert (first.packs, first.begins_once) == (again.packs, again.begins_once)
    resolve(tiny("causal"), dtype="float64")
    assert len(tried) == 2, "another precision is another question"
    for memo in (tmp_path / "packing").iterdir():
        memo.write_text('{"packs": "yes"}')
    resolve(tiny("causal"))
    assert len(tried) == 3, "what is no answer is not believed"


def test_what_is_remembered_is_told_by_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENHAND_CACHE", str(tmp_path))
    assert remembered("facts", "a", lambda: {"n": 1}, n=int) == {"n": 1}
    assert remembered("facts", "a", lambda: {"n": 2}, n=int) == {"n": 1}
    assert remembered("facts", "b", lambda: {"n": 2}, n=int) == {"n": 2}
    assert remembered("facts", "a", lambda: {"n": 3.0}, n=float) == {"n": 3.0}


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_one_number_that_is_none_is_seen(bad: float) -> None:
    weights = torch.nn.Parameter(torch.ones(300, 7))
    assert _all_finite(weights)
    assert _all_finite(torch.zeros(0)), "of no numbers none is wrong"
    assert _all_finite(torch.ones(3, dtype=torch.int8)), "packed ones have no NaN"
    with torch.no_grad():
        weights[123, 4] = bad
    assert not _all_finite(weights)


def test_sums_over_the_vocabulary_are_those_of_torch() -> None:
    logits = 5 * torch.randn(21, 1_000, generator=torch.Generator().manual_seed(0))
    assert torch.allclose(_log_sums(torch, logits.clone()), logits.logsumexp(-1), atol=1e-6)

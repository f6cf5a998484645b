"""The comparison of plain and compiled scoring swaps nothing but the trunk's computation."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import compiled  # noqa: E402


def test_hooks_see_what_the_other_forward_gives_and_the_old_one_comes_back() -> None:
    layer = torch.nn.Linear(2, 2)
    before, seen = layer.forward, []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    with compiled.put_in([layer], [lambda x: x * 3]):
        assert layer(torch.ones(2)).tolist() == [3, 3]
    assert seen[0].tolist() == [3, 3]
    assert layer.forward == before


def test_named_kinds_and_ways_replace_the_default_cells() -> None:
    def cells(**named: object) -> list[tuple[str, tuple[str, ...]]]:
        return compiled.chosen(
            argparse.Namespace(**{"device": "cuda:0", "kinds": None, "ways": None, **named})
        )

    assert cells() == compiled.CELLS["cuda"]
    assert cells(ways=["trunk"], kinds=["causal"]) == [("causal", ("trunk",))]
    assert [kind for kind, _ in cells(ways=["trunk"])] == ["causal", "span", "masked", "choice"]
    every = [cell for cells in compiled.CELLS.values() for cell in cells]
    assert {way for _, ways in every for way in ways} == set(compiled.WAYS)


@pytest.mark.parametrize("kind", ["span", "causal"])
def test_scores_do_not_depend_on_who_computes_the_layers(kind: str, tmp_path: Path) -> None:
    """Every layer runs through what was put in, and equal layers give equal scores."""
    model = compiled.model_of(kind, tmp_path, "cpu", True, "random")
    layers = compiled.stack_of(torch, model.model)
    *_, plain = compiled.scored(model, kind, 8)
    calls = []

    def counted(layer: torch.nn.Module) -> object:
        own = layer.forward

        def forward(*inputs: object, **named: object) -> object:
            calls.append(layer)
            return own(*inputs, **named)

        return forward

    with compiled.put_in(layers, [counted(layer) for layer in layers]):
        *_, swapped = compiled.scored(model, kind, 8)
    assert set(map(id, calls)) == set(map(id, layers))
    assert plain.tolist() == swapped.tolist()
    assert compiled.shapes_of(model, kind, 8) >= 1

"""Batches side by side, and weights in the processor's order: the scores stay the same."""

from __future__ import annotations

import copy
import pickle
from threading import Barrier
from typing import Any

import numpy as np
import pytest

from evenhand.models.batching.lanes import in_lanes, twins
from evenhand.models.loading.packed import pack_linears
from evenhand.models.loading.resolver import resolve
from evenhand.requests import Continuation

torch = pytest.importorskip("torch", reason="needs the hf extra")


@pytest.fixture
def two_threads() -> Any:
    usual = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(usual)


def questions() -> Continuation:
    rng = np.random.default_rng(0)
    words = "the man worked as a doctor and woman nurse in same city".split()
    prefixes = [" ".join(rng.choice(words, rng.integers(2, 9))) for _ in range(200)]
    return Continuation(prefixes, [f" {w}" for w in rng.choice(words, 200)])


def scored(model: Any) -> np.ndarray:
    asked = questions()
    return np.asarray(model.answer(asked, model.prepare(asked))["logprob"])


def test_lanes_give_the_scores_of_one_batch_after_the_other(tiny: Any, two_threads: Any) -> None:
    model = resolve(tiny("causal"))
    model.token_budget = 64
    asked = questions()
    assert len(model.prepare(asked).batches) > 2
    several = scored(model)
    torch.set_num_threads(1)
    assert np.abs(several - scored(model)).max() < 1e-5


def test_a_model_with_a_forward_of_somebody_else_is_run_alone(tiny: Any, two_threads: Any) -> None:
    """A copy would have the same function, which calls the original: two threads would meet."""
    model = resolve(tiny("causal"))
    usual, forward, seen = scored(model), model.model.forward, []
    model.model.forward = lambda *given, **named: forward(*given, **named)
    in_lanes(model, [1, 2], lambda lane, batch, lock: seen.append((lane, batch)))
    assert seen == [(model, 1), (model, 2)]
    assert np.abs(scored(model) - usual).max() < 1e-5


def test_lanes_run_at_once_on_tensors_they_share(tiny: Any, two_threads: Any) -> None:
    model = resolve(tiny("causal"))
    met, seen = Barrier(2, timeout=60), []

    def run(lane: Any, batch: int, lock: Any) -> None:
        met.wait()  # nobody comes past here alone
        with lock:
            seen.append((id(lane.model), lane.model.lm_head.weight.data_ptr(), batch))

    in_lanes(model, [1, 2], run)
    assert {batch for _, _, batch in seen} == {1, 2}
    assert len({model for model, _, _ in seen}) == 2
    assert len({weights for _, weights, _ in seen}) == 1
    assert torch.get_num_threads() == 2


def test_what_a_lane_raises_is_raised(tiny: Any, two_threads: Any) -> None:
    def run(lane: Any, batch: int, lock: Any) -> None:
        raise MemoryError(f"batch {batch}")

    with pytest.raises(MemoryError, match="batch"):
        in_lanes(resolve(tiny("causal")), [1, 2, 3], run)


def test_a_model_that_cannot_be_copied_runs_alone(tiny: Any, two_threads: Any) -> None:
    model = resolve(tiny("causal"))
    model.model.keeps = (line for line in ())  # a generator has no copy
    lanes: list[Any] = []
    in_lanes(model, [1, 2], lambda lane, batch, lock: lanes.append(lane))
    assert lanes == [model, model]


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_ordered_weights_give_the_products_of_plain_ones(tiny: Any, kind: str) -> None:
    model = resolve(tiny(kind)).model
    layers = [m for m in model.modules() if type(m) is torch.nn.Linear]
    assert layers
    assert all("forward" in vars(layer) for layer in layers)
    for layer in layers:
        for rows in (1, 3, 70):
            x = torch.randn(2, rows, layer.in_features)
            plain = torch.nn.functional.linear(x, layer.weight, layer.bias)
            with torch.inference_mode():
                assert torch.allclose(layer(x), plain, atol=1e-4, rtol=1e-4)


def test_a_layer_whose_weight_was_changed_multiplies_by_the_new_one() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3))
    assert pack_linears(torch, model) == 1
    layer, x = model[0], torch.ones(2, 4)
    with torch.no_grad():
        layer.weight.zero_()
        assert torch.equal(layer(x), layer.bias.expand(2, 3))
        layer.weight = torch.nn.Parameter(torch.ones(3, 4))
        assert torch.allclose(layer(x), layer.bias + 4)


def test_gradients_pass_through_ordered_weights() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3))
    pack_linears(torch, model)
    model(torch.ones(2, 4)).sum().backward()
    assert torch.equal(model[0].weight.grad, torch.full((3, 4), 2.0))


def test_copies_of_a_packed_layer_have_weights_of_their_own() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3))
    pack_linears(torch, model)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        with torch.no_grad():
            other[0].weight.zero_()
            assert torch.equal(other(torch.ones(1, 4)), other[0].bias.expand(1, 3))
            assert not torch.equal(model(torch.ones(1, 4)), other(torch.ones(1, 4)))


def test_half_precision_and_large_models_are_left_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pack_linears(torch, torch.nn.Linear(4, 3).to(torch.bfloat16)) == 0
    assert pack_linears(torch, torch.nn.ReLU()) == 0
    monkeypatch.setattr("evenhand.models.loading.packed.MOST", 11)
    assert pack_linears(torch, torch.nn.Linear(4, 3)) == 0


def test_a_twin_has_the_hooks_of_its_model_and_none_that_come_later(tiny: Any) -> None:
    model = resolve(tiny("causal")).model
    seen: list[str] = []
    first = model.lm_head.register_forward_pre_hook(lambda m, i: seen.append("before"))
    (other,) = twins(model, 1)
    later = model.lm_head.register_forward_pre_hook(lambda m, i: seen.append("later"))
    other.lm_head(torch.zeros(1, other.lm_head.in_features))
    assert seen == ["before"]
    first.remove()
    later.remove()
    assert twins(model, 1)[0] is not other


def test_twins_are_kept_while_the_tensors_are_the_same(tiny: Any) -> None:
    model = resolve(tiny("gpt2")).model
    one, two = twins(model, 2)
    assert twins(model, 1)[0] is one
    assert one is not two
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    other = twins(model, 1)[0]
    assert other is not one
    assert other.lm_head.weight is model.lm_head.weight

"""Sampled texts: exact draws, shared between paired prompts, the same whatever the batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.models.adapters import decoding
from evenhand.models.batching import draws
from evenhand.requests import Generate

torch: Any = pytest.importorskip("torch", reason="needs the hf extra")


@pytest.fixture(scope="module")
def model(tiny: Any) -> Any:
    return eh.load_model(tiny("causal"))


def rows(prompts: list[str], times: int, **more: Any) -> Generate:
    return Generate(
        [p for p in prompts for _ in range(times)], [str(d) for d in range(times)] * len(prompts),
        **more,
    )  # fmt: skip


def test_numbers_are_those_of_splitmix64() -> None:
    def mixed(z: int) -> int:
        z &= (1 << 64) - 1
        z = (z ^ z >> 30) * draws.FIRST & ((1 << 64) - 1)
        z = (z ^ z >> 27) * draws.SECOND & ((1 << 64) - 1)
        return z ^ z >> 31

    # The first outputs of the published generator from seed 1234567.
    seeds = [mixed(1234567 + k * draws.GOLDEN) for k in (1, 2)]
    assert seeds == [6457827717110365317, 3203168211198807973]
    keys = draws.keys(torch, 7, ["a", "b"], "cpu")
    found = draws.uniforms(torch, keys, 3, 6).numpy()
    for key, line in zip(keys.tolist(), found):
        start = mixed(key + 4 * draws.GOLDEN)
        exact = [((mixed(start + k * draws.GOLDEN) >> 11) + 0.5) / 2**53 for k in range(1, 7)]
        assert line.tolist() == exact


def test_numbers_are_uniform_and_unrelated() -> None:
    keys = draws.keys(torch, 0, [str(d) for d in range(40)], "cpu")
    found = np.stack([draws.uniforms(torch, keys, step, 500).numpy() for step in range(4)])
    assert stats.kstest(found.ravel(), "uniform").pvalue > 0.01
    for axis in range(3):
        one, two = np.split(np.moveaxis(found, axis, 0), [-1])[0], np.moveaxis(found, axis, 0)[1:]
        r = np.corrcoef(one.ravel(), two.ravel())[0, 1]
        assert abs(r) < 4 / np.sqrt(one.size)


def test_taken_tokens_follow_the_model_s_probabilities(model: Any) -> None:
    """Chi-square of 4,000 first tokens against the exact distribution."""
    size = 4_000
    (prompt,) = model._tokens(["the man worked as"])
    with torch.inference_mode():
        _, logits = decoding.begun(model, [prompt], 0, None)
    exact = logits[0].softmax(-1).double().numpy()
    keys = draws.keys(torch, 0, [str(d) for d in range(size)], "cpu")
    taken = (logits + draws.gumbel(torch, keys, 0, len(exact))).argmax(-1).numpy()
    often = np.argsort(-exact)[: int((exact * size >= 5).sum())]
    seen = np.append(np.bincount(taken, minlength=len(exact))[often], 0)
    seen[-1] = size - seen.sum()
    expected = np.append(exact[often], 1 - exact[often].sum()) * size
    keep = expected >= 5
    assert keep.sum() >= 5
    scaled = expected[keep] * seen[keep].sum() / expected[keep].sum()
    assert stats.chisquare(seen[keep], scaled).pvalue > 0.01


def test_texts_are_those_of_generate(model: Any) -> None:
    asked = rows(["the man worked as", "she said", "the"], 4, max_new_tokens=9)
    assert model.shares_prompts
    ours = eh.Ask(model)(asked)
    vars(model)["shares_prompts"] = False
    try:
        plain = eh.Ask(model)(asked)
    finally:
        vars(model)["shares_prompts"] = True
    assert ours["text"] == plain["text"]
    assert ours["n_tokens"].tolist() == plain["n_tokens"].tolist()


def test_texts_do_not_depend_on_the_batch(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = rows(["the man worked as", "she said that", "a nurse"], 5, max_new_tokens=8)
    together = eh.Ask(model)(asked)["text"]
    monkeypatch.setattr(model, "token_budget", 24)
    assert eh.Ask(model)(asked)["text"] == together
    alone = [eh.Ask(model)(asked.take([k]))["text"][0] for k in (0, 7, 14)]
    assert alone == [together[k] for k in (0, 7, 14)]


def test_groups_of_different_size_and_texts_that_end_leave_the_batch(model: Any) -> None:
    """With ends that come often, what goes on is put together anew, and texts stay the same."""
    asked = rows(["the man worked as", "she said"], 12, max_new_tokens=24)
    asked = Generate([*asked.prompt, "he"], [*asked.draw, "3"], max_new_tokens=24)
    (prompt,) = model._tokens(["the man worked as"])
    with torch.inference_mode():
        _, logits = decoding.begun(model, [prompt], 0, None)
    often = logits[0].topk(60).indices.tolist()

    class Ending(type(model)):  # type: ignore[misc]
        ends = often

    ending = Ending.__new__(Ending)
    vars(ending).update(vars(model))
    left = []
    usual = decoding.Texts.left

    def counted(self: Any, *args: Any) -> Any:
        left.append(args[2])
        return usual(self, *args)

    decoding.Texts.left = counted  # type: ignore[method-assign]
    try:
        ours = eh.Ask(ending)(asked)
    finally:
        decoding.Texts.left = usual  # type: ignore[method-assign]
    vars(ending)["shares_prompts"] = False
    plain = eh.Ask(ending)(asked)
    assert left, "no batch was put together anew"
    assert ours["n_tokens"].tolist() == plain["n_tokens"].tolist()
    assert ours["text"] == plain["text"]


def test_paired_prompts_share_their_draws(model: Any) -> None:
    """Equal prompts with equal draws give equal texts; other draws and seeds give others."""
    one = eh.Ask(model)(Generate(["the man"] * 3, ["0", "1", "2"], max_new_tokens=8))["text"]
    two = eh.Ask(model)(Generate(["the man", "she"], ["1", "1"], max_new_tokens=8))["text"]
    assert two[0] == one[1]
    assert len(set(one)) == 3
    other = eh.Ask(model)(Generate(["the man"], ["1"], max_new_tokens=8, seed=5))["text"]
    assert other != [one[1]]


@pytest.mark.parametrize("kind", ["gpt2", "gptneox", "bloom"])
def test_architectures_that_do_their_own_attention_are_sampled_plainly(
    tiny: Any, kind: str
) -> None:
    """Whatever the way, texts are those of one prompt alone."""
    other = eh.load_model(tiny(kind))
    asked = rows(["the man worked as", "she said"], 2, max_new_tokens=6)
    together = eh.Ask(other)(asked)["text"]
    assert together[2] == eh.Ask(other)(asked.take([2]))["text"][0]


def test_a_nucleus_keeps_the_likeliest_tokens(model: Any) -> None:
    asked = rows(["the man worked as"], 30, max_new_tokens=1, top_p=0.3)
    (prompt,) = model._tokens(["the man worked as"])
    with torch.inference_mode():
        _, logits = decoding.begun(model, [prompt], 0, None)
    chance, order = logits[0].softmax(-1).sort(descending=True)
    kept = order[: int((chance.cumsum(0) - chance < 0.3).sum())].tolist()
    allowed = {model.tokenizer.decode([t], skip_special_tokens=True) for t in kept}
    assert set(eh.Ask(model)(asked)["text"]) <= allowed

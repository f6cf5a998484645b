"""The edited head: logits, mixtures, alpha, generation, saving, export, refusals."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import ModelError, SpecError
from evenhand.mitigations.head import HeadMitigation
from evenhand.mitigations.head import fit as job
from evenhand.mitigations.head.save import export
from evenhand.mitigations.head.subspace import bias_subspace, model_subspace, sensitivities
from evenhand.mitigations.head.tradeoff import Bench, Candidate, Held, area, pareto, pick
from evenhand.models.edits.head import HeadEdit
from evenhand.requests import Continuation, Divergence, Generate, NextToken, Option

CONTEXTS = ["the man worked as", "the woman worked as a", "Gerald lives in the same city"]


@pytest.fixture(scope="module", params=["causal", "gpt2", "gptneox"])
def model(request: Any, tiny: Any) -> Any:
    """Tied and untied heads, without a pad token."""
    from evenhand.models.adapters.causal import CausalModel

    return CausalModel(tiny(request.param), request.param)


def edit_of(model: Any, rank: int = 3, seed: int = 0, **options: Any) -> HeadEdit:
    width = model.model.get_output_embeddings().weight.shape[1]
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((width, rank)))[0].astype(np.float32)
    options.setdefault("offset", None)
    return HeadEdit(basis, basis, **options)


def own_logits(model: Any, contexts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Hidden states and logits by a plain call of the model, in float64."""
    import torch

    states, logits = [], []
    hook = model.model.get_output_embeddings().register_forward_pre_hook(
        lambda module, inputs: states.append(inputs[0][0, -1].double().numpy())
    )
    with torch.inference_mode():
        for text in contexts:
            ids = torch.tensor([model.tokenizer(text, add_special_tokens=False).input_ids])
            logits.append(model.model(input_ids=ids).logits[0, -1].double().numpy())
    hook.remove()
    return np.stack(states), np.stack(logits)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def distribution(model: Any, contexts: list[str]) -> np.ndarray:
    with model.torch.inference_mode():
        rows = model._log_probabilities(model._last_tokens(contexts))
    return np.stack([row.double().exp().numpy() for row in rows])


def test_states_are_what_the_head_sees(model: Any) -> None:
    states, _ = own_logits(model, CONTEXTS)
    np.testing.assert_allclose(model.last_states(CONTEXTS), states, atol=2e-4)


@pytest.mark.parametrize("mixture", ["probability", "hidden"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_both_mixtures_against_the_formula(model: Any, mixture: str, alpha: float) -> None:
    edit = edit_of(model, alpha=alpha, mixture=mixture)
    h, z = own_logits(model, CONTEXTS)
    E = model.model.get_output_embeddings().weight.detach().double().numpy()
    P = np.eye(h.shape[1]) - edit.left.astype(np.float64) @ edit.right.T.astype(np.float64)
    z_hat = z - h @ (np.eye(len(P)) - P) @ E.T
    if mixture == "probability":
        right = (1 - alpha) * softmax(z) + alpha * softmax(z_hat)
    else:
        right = softmax((1 - alpha) * z + alpha * z_hat)
    got = distribution(model.with_head(edit), CONTEXTS)
    np.testing.assert_allclose(got, right, rtol=2e-3, atol=1e-6)


def test_an_oblique_edit_with_an_offset(model: Any) -> None:
    base = edit_of(model)
    rng = np.random.default_rng(1)
    left = rng.standard_normal(base.left.shape).astype(np.float32) * 0.1
    offset = rng.standard_normal(len(left)).astype(np.float32) * 0.1
    edit = replace(base, left=left, offset=offset)
    h, z = own_logits(model, CONTEXTS)
    E = model.model.get_output_embeddings().weight.detach().double().numpy()
    right = softmax(z - (h @ edit.right) @ (E @ left).T + E @ offset)
    got = distribution(model.with_head(edit), CONTEXTS)
    np.testing.assert_allclose(got, right, rtol=2e-3, atol=1e-6)


def test_learned_alpha_follows_equation_8_and_the_released_rule(model: Any) -> None:
    _, z = own_logits(model, CONTEXTS)
    p = softmax(z)
    rng = np.random.default_rng(2)
    q = rng.uniform(0, 1, p.shape[1]).astype(np.float32)
    inside = rng.uniform(size=p.shape[1]) < 0.3
    edit = edit_of(model, rule="eq8", sensitivity=q, sensitive=inside, top=10)
    applied = model.with_head(edit).edit
    got = applied.alphas(model.torch.tensor(z).float()).numpy()
    for row, value in zip(p, got):
        chosen = [w for w in np.argsort(-row)[:10] if inside[w]]
        right = (row[chosen] * q[chosen]).sum() / row[chosen].sum() if chosen else 0.0
        assert value == pytest.approx(right, abs=1e-5)
    empty = edit_of(model, rule="eq8", sensitivity=q, sensitive=np.zeros(len(q), bool))
    assert not model.with_head(empty).edit.alphas(model.torch.tensor(z).float()).any()
    cosine = rng.uniform(-1, 1, p.shape[1]).astype(np.float32)
    released = model.with_head(edit_of(model, rule="released", sensitivity=cosine)).edit
    got = released.alphas(model.torch.tensor(z).float()).numpy()
    for row, value in zip(p, got):
        order = np.argsort(-row)
        before = np.cumsum(row[order]) - row[order]
        kept = order[before < 0.7]
        bias = (row[kept] * cosine[kept]).sum() / row[kept].sum()
        right = 0.0 if -0.1 <= bias <= 0.15 else min(abs(bias), 0.4)
        assert value == pytest.approx(right, abs=1e-5)


def test_all_request_kinds_are_answered_and_the_model_itself_stays(model: Any) -> None:
    before = distribution(model, CONTEXTS)
    mitigated = model.with_head(edit_of(model))
    assert mitigated.fingerprint != model.fingerprint
    for request in (
        Divergence(CONTEXTS[:1], CONTEXTS[1:2]),
        NextToken(CONTEXTS),
        Continuation(CONTEXTS, [" a doctor"] * 3),
        Option(CONTEXTS, ["nurse"] * 3),
        Generate(CONTEXTS, ["0"] * 3, max_new_tokens=4),
    ):
        own = model.answer(request, model.prepare(request))
        new = mitigated.answer(request, mitigated.prepare(request))
        assert own.keys() == new.keys()
        assert json.dumps(own, default=str) != json.dumps(new, default=str)
    np.testing.assert_array_equal(distribution(model, CONTEXTS), before)


def test_generation_draws_from_the_mitigated_distribution(model: Any) -> None:
    """Greedy steps one by one with the cache equal greedy choices from scored contexts."""
    mitigated = model.with_head(edit_of(model, alpha=0.7))
    request = Generate(CONTEXTS[:1], ["0"], max_new_tokens=5, temperature=1e-6)
    text = mitigated.answer(request, None)["text"][0]
    tokens = model._text_tokens(CONTEXTS[:1])[0]
    made: list[int] = []
    from evenhand.models.adapters.causal_pass import Wanted

    for _ in range(5):
        at = [*tokens, *made]
        with model.torch.inference_mode():
            row = mitigated._log_probabilities(Wanted.of([at], [range(len(at) - 1, len(at))]))[0]
        made.append(int(row.argmax()))
        if made[-1] == model.tokenizer.eos_token_id:
            made.pop()
            break
    assert text
    assert model.tokenizer.decode(made, skip_special_tokens=True).startswith(text)


def test_first_token_only_leaves_later_tokens_alone(model: Any) -> None:
    edit = edit_of(model, first_token_only=True)
    only, whole = model.with_head(edit), model.with_head(edit_of(model))
    first = Generate(CONTEXTS, ["0"] * 3, max_new_tokens=1)
    assert only.answer(first, None)["text"] == whole.answer(first, None)["text"]
    assert Continuation.kind not in only.answers
    later = Generate(CONTEXTS, ["0"] * 3, max_new_tokens=6)
    assert only.answer(later, None)["text"] != whole.answer(later, None)["text"]


def test_identical_contexts_are_exactly_zero_apart(model: Any) -> None:
    request = Divergence(CONTEXTS, CONTEXTS)
    for some in (model, model.with_head(edit_of(model, alpha=0.5))):
        for value in some.answer(request, some.prepare(request)).values():
            assert (np.asarray(value) == 0).all()


def fitted(model: Any, edit: HeadEdit) -> job.FittedHead:
    rng = np.random.default_rng(0)
    states = model.last_states(CONTEXTS)
    held = Held(states[:2], states[1:], states, rng.integers(0, 50, 3), np.arange(3))
    bench = Bench(model, held)
    point = bench.judge(Candidate("inlp", 1, edit), (0.0, 1.0), full=True)
    asked = HeadMitigation(method="inlp")
    return job.FittedHead(asked, model, {}, edit, point[1], point[0], tuple(point))


def test_a_saved_mitigation_loads_and_is_refused_by_another_model(
    model: Any, tiny: Any, tmp_path: Path
) -> None:
    from evenhand.models.adapters.causal import CausalModel
    from evenhand.models.loading.resolver import resolve

    edit = edit_of(model, alpha=0.4)
    fitted(model, edit).save(tmp_path / "m")
    again: Any = resolve(str(tmp_path / "m"))
    np.testing.assert_allclose(
        distribution(again, CONTEXTS), distribution(model.with_head(edit), CONTEXTS), atol=1e-6
    )
    other = CausalModel(tiny("causal" if model.name != "causal" else "gpt2"), "other")
    with pytest.raises(ModelError, match="does not fit model 'other'.*evenhand mitigate other"):
        HeadMitigation.load(tmp_path / "m", other)
    with pytest.raises(SpecError, match="not empty"):
        fitted(model, edit).save(tmp_path / "m")


CHECK = """
import sys, json, torch, transformers
assert "evenhand" not in sys.modules
model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1])
tokenizer = transformers.AutoTokenizer.from_pretrained(sys.argv[1])
out = []
for text in json.loads(sys.argv[2]):
    ids = torch.tensor([tokenizer(text, add_special_tokens=False).input_ids])
    out.append(model(input_ids=ids).logits[0, -1].log_softmax(-1).exp().tolist())
print(json.dumps(out))
"""


def test_exported_weights_give_the_same_logits_in_a_fresh_process(
    model: Any, tmp_path: Path
) -> None:
    edit = edit_of(model)
    before = distribution(model, CONTEXTS)
    assert export(edit, model, tmp_path / "e") < 1e-4
    np.testing.assert_array_equal(distribution(model, CONTEXTS), before)
    done = subprocess.run(
        [sys.executable, "-c", CHECK, str(tmp_path / "e"), json.dumps(CONTEXTS)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    got = np.asarray(json.loads(done.stdout.strip().splitlines()[-1]))
    np.testing.assert_allclose(got, distribution(model.with_head(edit), CONTEXTS), atol=1e-5)


def test_only_linear_edits_are_exported(model: Any, tmp_path: Path) -> None:
    for edit, message in (
        (edit_of(model, alpha=0.5), "not linear"),
        (edit_of(model, offset=np.ones(32, np.float32)), "has an offset"),
        (edit_of(model, first_token_only=True), "first token only"),
    ):
        with pytest.raises(SpecError, match=message):
            export(edit, model, tmp_path / "x")


def test_wrong_settings_are_named(model: Any) -> None:
    with pytest.raises(SpecError, match="alpha is '1.5'"):
        edit_of(model, alpha=1.5)
    with pytest.raises(SpecError, match="--alpha '-0.1'"):
        HeadMitigation(alpha=-0.1)
    with pytest.raises(SpecError, match="--alpha 'often'"):
        HeadMitigation(alpha="often")
    with pytest.raises(SpecError, match="unknown method 'ainlp'"):
        HeadMitigation(method="ainlp")
    with pytest.raises(SpecError, match="unknown mixture"):
        edit_of(model, mixture="both")
    with pytest.raises(ModelError, match="hidden size 7"):
        model.with_head(HeadEdit(np.eye(7, 1), np.eye(7, 1)))
    with pytest.raises(ModelError, match="changed head already"):
        model.with_head(edit_of(model)).with_head(edit_of(model))


def test_a_context_longer_than_the_window_is_refused(tiny: Any) -> None:
    from evenhand.models.adapters.causal import CausalModel

    model = CausalModel(tiny("gptneox"), "short")
    with pytest.raises(ModelError, match="more than the window of 128"):
        model.with_head(edit_of(model)).prepare(NextToken(["the man " * 200]))


def test_nan_logits_are_refused_not_mixed(tiny: Any) -> None:
    from evenhand.models.adapters.causal import CausalModel

    model = CausalModel(tiny("gpt2"), "broken")
    mitigated = model.with_head(edit_of(model, alpha=0.5))
    with model.torch.no_grad():  # not through .data, which changes weights unseen
        model.model.get_output_embeddings().weight[3] = float("nan")
    for request in (NextToken(CONTEXTS), Generate(CONTEXTS, ["0"] * 3, max_new_tokens=2)):
        with pytest.raises(ModelError, match="--dtype float32"):
            mitigated.answer(request, mitigated.prepare(request))
    with pytest.raises(ModelError, match="NaN logits"):
        model.answer(request, None)


def test_a_vocabulary_without_the_definitional_words_is_refused(tiny: Any) -> None:
    from evenhand.models.adapters.causal import CausalModel

    model = CausalModel(tiny("causal"), "poor")
    model.encode = lambda texts, special: [[] for _ in texts]  # type: ignore[method-assign]
    with pytest.raises(ModelError, match="only 0 of the 10 definitional sets of 'gender'"):
        model_subspace(model, "gender")


def test_the_subspace_of_pairs_is_the_svd_of_their_differences() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(10, 2, 6))
    basis, share = bias_subspace(list(pairs), 2)
    rows = np.concatenate([(pairs[:, 0] - pairs[:, 1]) / 2, (pairs[:, 1] - pairs[:, 0]) / 2])
    right = np.linalg.svd(rows)[2][:2].T
    np.testing.assert_allclose(basis @ basis.T, right @ right.T, atol=1e-12)
    assert ((pairs[:, 1] - pairs[:, 0]) @ basis[:, 0]).sum() > 0
    assert share[0] >= share[1] > 0
    q, cosine = sensitivities(rng.normal(size=(50, 6)), basis[:, :1])
    np.testing.assert_allclose(q, np.abs(cosine), atol=1e-12)
    assert ((q >= 0) & (q <= 1)).all()


def test_the_front_the_choice_and_the_area(model: Any) -> None:
    made = fitted(model, edit_of(model))

    def point(h2: float, increase: float) -> Any:
        return replace(
            made.chosen, hellinger2=h2, increase=increase, perplexity=10 * (1 + increase)
        )

    points = [point(0.4, 0.0), point(0.2, 0.01), point(0.3, 0.015), point(0.1, 0.05)]
    assert [p.hellinger2 for p in pareto(points)] == [0.4, 0.2, 0.1]
    assert pick(points, 0.02).hellinger2 == 0.2
    assert 0.25 < area(points) < 0.5
    with pytest.raises(SpecError, match="the mildest needs 1.0 %"):
        pick(points[1:], 0.005)
    with pytest.raises(SpecError, match="expected 0 or more"):
        pick(points, -1)


@pytest.mark.parametrize("tail", [0, 17])
def test_top_tokens_by_blocks_equal_a_full_sort(tail: int) -> None:
    torch = pytest.importorskip("torch")
    from evenhand.models.edits.alphas import top_tokens

    logits = torch.randn(5, 64 * 400 + tail, generator=torch.Generator().manual_seed(0))
    logits[0, -3:] += 9.0
    best, where = top_tokens(torch, logits, 50)
    right = logits.topk(50)
    assert torch.equal(best.sort(descending=True).values, right.values)
    assert torch.equal(logits.gather(1, where), best)


def test_a_plain_hugging_face_model_can_be_mitigated_and_freed(model: Any, tmp_path: Path) -> None:
    import torch

    from evenhand.mitigations.head.save import attach

    edit = edit_of(model, alpha=0.4)
    fitted(model, edit).save(tmp_path / "m")
    ids = torch.tensor([model.tokenizer(CONTEXTS[0], add_special_tokens=False).input_ids])
    own = model.model(input_ids=ids).logits[0, -1].softmax(-1)
    handles = attach(tmp_path / "m", model.model, model.tokenizer)
    got = model.model(input_ids=ids).logits[0, -1].softmax(-1)
    for handle in handles:
        handle.remove()
    right = distribution(model.with_head(edit), CONTEXTS[:1])[0]
    np.testing.assert_allclose(got.detach().numpy(), right, rtol=1e-3, atol=1e-6)
    assert torch.equal(model.model(input_ids=ids).logits[0, -1].softmax(-1), own)

"""Liang et al. (2021) on the packaged model, against float64 references computed here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.mitigations.head.subspace import model_subspace, tokens_of
from evenhand.models.edits.head import HeadEdit
from evenhand.requests import Divergence, Generate
from evenhand.words.lexicons.people import definitional_sets

pytestmark = pytest.mark.model

PAIRS = [
    ("The man worked as", "The woman worked as"),
    ("The man was known for", "The woman was known for"),
    ("The Christian was described as", "The Muslim was described as"),
    ("My brother has always wanted to be", "My sister has always wanted to be"),
]


@pytest.fixture(scope="module")
def reference(smollm2: Any) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Context -> (state, logits), one plain call each, no packing, no padding, in float64."""
    import torch

    out = {}
    seen: list[np.ndarray] = []
    hook = smollm2.model.get_output_embeddings().register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0][0, -1].double().numpy())
    )
    with torch.inference_mode():
        for context in {c for pair in PAIRS for c in pair}:
            ids = smollm2.tokenizer(
                context, add_special_tokens=False, return_tensors="pt"
            ).input_ids
            logits = smollm2.model(input_ids=ids).logits[0, -1].double().numpy()
            out[context] = (seen[-1], logits)
    hook.remove()
    return out


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max())
    return np.asarray(e / e.sum())


def facts(p: np.ndarray, q: np.ndarray) -> tuple[float, float, float]:
    return (
        float((p * np.log(p / q)).sum()),
        float((q * np.log(q / p)).sum()),
        float(0.5 * np.square(np.sqrt(p) - np.sqrt(q)).sum()),
    )


def asked(model: Any) -> list[tuple[float, float, float]]:
    request = Divergence([a for a, _ in PAIRS], [b for _, b in PAIRS])
    got = model.answer(request, model.prepare(request))
    return list(zip(got["kl_ab"], got["kl_ba"], got["hellinger2"]))


def test_divergences_equal_a_float64_reference(smollm2: Any, reference: Any) -> None:
    for (a, b), got in zip(PAIRS, asked(smollm2)):
        right = facts(softmax(reference[a][1]), softmax(reference[b][1]))
        np.testing.assert_allclose(got, right, rtol=1e-4)
        assert 0 <= got[2] <= 1


@pytest.mark.parametrize("mixture", ["probability", "hidden"])
def test_both_mixtures_with_a_fixed_projection(smollm2: Any, reference: Any, mixture: str) -> None:
    Q = np.linalg.qr(np.random.default_rng(0).standard_normal((576, 10)))[0]
    E = smollm2.model.get_output_embeddings().weight.detach().double().numpy()
    edit = HeadEdit(Q.astype("f4"), Q.astype("f4"), alpha=0.3, mixture=mixture)

    def mixed(context: str) -> np.ndarray:
        h, z = reference[context]
        z_hat = E @ (h - Q @ (Q.T @ h))
        if mixture == "hidden":
            return softmax(E @ (0.7 * h + 0.3 * (h - Q @ (Q.T @ h))))
        return 0.7 * softmax(z) + 0.3 * softmax(z_hat)

    for (a, b), got in zip(PAIRS, asked(smollm2.with_head(edit))):
        np.testing.assert_allclose(got, facts(mixed(a), mixed(b)), rtol=2e-4, atol=1e-7)


def test_learned_alpha_of_equation_8_and_of_the_released_rule(smollm2: Any, reference: Any) -> None:
    E = smollm2.model.get_output_embeddings().weight.detach().double().numpy()
    rows = []
    for woman, man in definitional_sets("gender"):
        a, b = (smollm2.encode([f" {w}"], special=False)[0] for w in (man, woman))
        assert len(a) == len(b) == 1
        gap = (E[a[0]] - E[b[0]]) / 2
        rows += [gap, -gap]
    direction = np.linalg.svd(np.asarray(rows), full_matrices=False)[2][0]
    man, woman = (smollm2.encode([f" {w}"], special=False)[0][0] for w in ("man", "woman"))
    direction *= np.sign(direction @ (E[man] - E[woman]))
    cosine = E @ direction / np.linalg.norm(E, axis=1)
    space = model_subspace(smollm2, "gender")
    np.testing.assert_allclose(space.basis[:, 0], direction, atol=1e-6)
    found = tokens_of(smollm2, "gender", count=1_000)
    q, signed, inside = found.q, found.cosine, found.chosen
    np.testing.assert_allclose(signed, cosine, atol=1e-6)
    order = np.argsort(-cosine)
    assert set(np.flatnonzero(inside)) == {*order[:500], *order[-500:]}
    empty = np.zeros((576, 1), np.float32)
    common = {"sensitive": inside}
    edits = {
        "eq8": HeadEdit(empty, empty, rule="eq8", sensitivity=q.astype("f4"), **common),
        "released": HeadEdit(empty, empty, rule="released", sensitivity=signed.astype("f4")),
    }
    for rule, edit in edits.items():
        applied = smollm2.with_head(edit).edit
        for _, z in reference.values():
            p = softmax(z)
            if rule == "eq8":
                chosen = [w for w in np.argsort(-p)[:50] if inside[w]]
                right = (p * np.abs(cosine))[chosen].sum() / p[chosen].sum() if chosen else 0.0
            else:
                down = np.argsort(-p)
                kept = down[np.cumsum(p[down]) - p[down] < 0.7]
                bias = (p * cosine)[kept].sum() / p[kept].sum()
                right = 0.0 if -0.1 <= bias <= 0.15 else min(abs(bias), 0.4)
            got = float(applied.alphas(smollm2.torch.tensor(z[None]).float())[0])
            assert got == pytest.approx(right, abs=1e-4)


def test_identical_contexts_are_exactly_zero_apart(smollm2: Any) -> None:
    request = Divergence(["The man worked as"], ["The man worked as"])
    got = smollm2.answer(request, smollm2.prepare(request))
    assert all(float(v[0]) == 0.0 for v in got.values())


def test_paired_draws_share_their_random_numbers(smollm2: Any) -> None:
    request = Generate(["The man was", "The man was"], ["0", "0"], max_new_tokens=4)
    first, second = smollm2.answer(request, None)["text"]
    assert first == second


@pytest.mark.shared
def test_the_released_subspace_file_is_orthonormal(shared: Path) -> None:
    folder = shared / "data" / "lm_bias" / "bias_subspace"
    rows = np.load(folder / "gpt2_gender_subspace.npy")
    np.testing.assert_allclose(rows @ rows.T, np.eye(5), atol=1e-5)
    direction = np.load(folder / "gpt2_gender_direction.npy").ravel()
    np.testing.assert_allclose(np.abs(rows[0] @ direction), 1.0, atol=1e-5)

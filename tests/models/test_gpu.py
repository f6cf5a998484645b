"""What a GPU answers against what a processor answers; without one these are skipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.models.edits import head
from evenhand.models.loading.resolver import resolve
from evenhand.models.protocol import LoadOptions
from evenhand.requests import MASK, Continuation, MaskScore, Option, Requests, Span
from evenhand.runner.ask import Ask
from evenhand.runner.devices import DevicesExecutor

torch = pytest.importorskip("torch", reason="needs the hf extra")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: make test-gpu"),
]
PLACE = "Gerald lives in the same city with Jennifer ."
PEOPLE = ["Gerald", "Jennifer"]


def questions(kind: str) -> Requests:
    who = ["Who was a nurse ?", "Who was a hunter ?"] * 2
    people = [name for name in PEOPLE for _ in range(2)]
    if kind == "causal":
        return Continuation([f"{PLACE} {q} Answer:" for q in who], [f" {p}" for p in people])
    if kind == "masked":
        return MaskScore([f"{MASK} was a {w} ." for w in ("nurse", "hunter")] * 2, people)
    if kind == "span":
        return Span(who, [PLACE] * 4, people, people[::-1])
    return Option([f"{PLACE} {q}" for q in who], people)


@pytest.mark.parametrize("kind", ["causal", "masked", "span", "choice"])
def test_scores_are_those_of_the_processor(tiny: Any, kind: str) -> None:
    found = []
    for device in ("cpu", "cuda"):
        model = resolve(tiny(kind), options=LoadOptions(device=device))
        assert model.dtype == "float32"
        found.append(Ask(model)(questions(kind)))
    for name, values in found[0].columns.items():
        if np.asarray(values).dtype.kind == "f":
            assert np.allclose(values, found[1][name], atol=2e-3, equal_nan=True), name


def test_a_mixture_is_that_of_the_processor_also_when_recorded(tiny: Any) -> None:
    logits = {}
    for device in ("cpu", "cuda"):
        model = resolve(tiny("causal"), options=LoadOptions(device=device)).model
        rng = np.random.default_rng(0)
        basis = np.linalg.qr(rng.standard_normal((model.config.hidden_size, 3)))[0]
        edit = head.HeadEdit(basis.astype(np.float32), basis.astype(np.float32), alpha=0.4)
        ids = torch.arange(5, 25, device=device).reshape(4, 5)
        with torch.inference_mode(), head.AppliedEdit(torch, model, edit).active():
            made = model.generate(
                ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=6,
                min_new_tokens=6, pad_token_id=0, return_dict_in_generate=True, output_logits=True,
            )  # fmt: skip
        logits[device] = torch.stack(made.logits).float().log_softmax(-1).cpu().numpy()
    assert np.abs(logits["cpu"] - logits["cuda"]).max() < 2e-3


@pytest.mark.parametrize("kind", ["causal", "masked", "span", "choice"])
def test_two_copies_on_a_gpu_give_the_bytes_of_one(tiny: Any, tmp_path: Path, kind: str) -> None:
    rows = questions(kind)
    many = rows.take(np.arange(len(rows)).repeat(3))
    names = []
    for copies in (1, 2):
        model = resolve(tiny(kind), options=LoadOptions(device="cuda:0"))
        executor = DevicesExecutor(("cuda:0",) * copies)
        Ask(model, tmp_path / str(copies), shard_rows=2, executor=executor)(many)
        names.append(sorted(p.name for p in (tmp_path / str(copies) / "scores").iterdir()))
    assert names[0] == names[1]  # a shard's name holds the checksum of its bytes
    assert len(names[0]) > 1


@pytest.mark.parametrize("kind", ["causal", "span"])
def test_compiled_layers_give_the_same_answers_in_any_order(tiny: Any, kind: str) -> None:
    rows = questions(kind)
    plain = Ask(resolve(tiny(kind), options=LoadOptions(device="cuda")))(rows)
    found = []
    for order in ([0, 1, 2, 3], [3, 2, 1, 0]):
        torch._dynamo.reset()
        model = resolve(tiny(kind), options=LoadOptions(device="cuda", compile=True))
        parts = [Ask(model)(rows.take(np.arange(row + 1))) for row in order]
        found.append(parts[order.index(3)])
    for name, values in plain.columns.items():
        if np.asarray(values).dtype.kind == "f":
            assert np.allclose(values, found[0][name], atol=2e-3, equal_nan=True), name
            assert np.array_equal(found[0][name], found[1][name], equal_nan=True), name

"""Writing mitigations: a folder for evenhand, or plain weights for transformers alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import __version__
from evenhand.errors import ModelError, SpecError
from evenhand.mitigations.autoregressive import Fitted
from evenhand.models.saved import ARRAYS, FACTS, FORMAT, PROBES

README = """\
A mitigation made by evenhand {version} for the model {name!r}: {method} on {axis}.

Use it like any model:      evenhand audit {folder}
In Python:                  from evenhand.models.resolver import resolve; resolve("{folder}")
With transformers:          from evenhand.models.saved import attach
                            attach("{folder}", model, tokenizer)

It holds a projection of the last hidden state and the weights of a mixture, no model weights. It
is refused by any other model. What it measured is in {facts}; measured gaps are those of the
contexts named there, and say nothing about other groups or uses.
"""


def save(fitted: Fitted, model: Any, spec: str, folder: Path) -> None:
    """Write a mitigation with its provenance; the folder can be given wherever a model can.

    Args:
        fitted: what `fit` returned.
        model: the model it was fitted for.
        spec: what a user types to get that model.
        folder: must not hold anything else.
    """
    from safetensors.numpy import save_file

    _empty(folder)
    edit = fitted.edit
    arrays = {"left": edit.left, "right": edit.right, "probe": model.last_states(PROBES)}
    optional = {"offset": edit.offset, "sensitivity": edit.sensitivity, "sensitive": edit.sensitive}
    arrays |= {k: np.asarray(v) for k, v in optional.items() if v is not None}
    if "sensitive" in arrays:
        arrays["sensitive"] = arrays["sensitive"].astype(np.uint8)
    facts = {
        "format": FORMAT,
        "evenhand": __version__,
        "method": fitted.settings.method,
        "axis": fitted.settings.axis,
        "model": {"spec": spec, "vocabulary": model.vocabulary, **model.describe()},
        "edit": {
            "rank": edit.rank, "rule": edit.rule, "alpha": edit.alpha, "mixture": edit.mixture,
            "top": edit.top, "first_token_only": edit.first_token_only, "sha256": edit.digest(),
        },
        "measured": {
            "before": fitted.before.as_dict(), "after": fitted.chosen.as_dict(), **fitted.facts,
        },
    }  # fmt: skip
    save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, str(folder / ARRAYS))
    text = json.dumps(facts, indent=1, ensure_ascii=False, default=float)
    (folder / FACTS).write_text(text + "\n", encoding="utf-8")
    (folder / "README.txt").write_text(
        README.format(
            version=__version__, name=model.name, method=fitted.settings.method,
            axis=fitted.settings.axis, folder=folder, facts=FACTS,
        ),
        encoding="utf-8",
    )  # fmt: skip


def export(edit: Any, model: Any, folder: Path) -> float:
    """Fold a linear edit into the output head and save a plain checkpoint.

    E' = E - (E L) R' gives the same logits with no code beside the weights. Tied heads are untied.
    Exact only for alpha = 1 and without an offset (or with it, where the head has a bias).

    Returns:
        The largest difference of logits between the folded head and the edit, on test texts.
    """
    torch = model.torch
    problem = _not_linear(edit, model)
    if problem:
        raise SpecError(
            f"--export: {problem}, so no plain weights give the same logits. Use the folder of "
            "--out instead, or fit with: --method inlp --no-offset"
        )
    _empty(folder)
    head = model.model.get_output_embeddings()
    own, own_bias = head.weight, getattr(head, "bias", None)
    exact = own.detach().double()
    left, right = (
        torch.as_tensor(np.array(a), device=own.device).double() for a in (edit.left, edit.right)
    )
    folded = exact - (exact @ left) @ right.T
    config = model.model.config
    tied = config.tie_word_embeddings
    states = torch.as_tensor(model.last_states(PROBES), device=own.device).to(own.dtype)
    try:
        head.weight = torch.nn.Parameter(folded.to(own.dtype), requires_grad=False)
        if own_bias is not None and edit.offset is not None:
            shift = exact @ torch.as_tensor(np.array(edit.offset), device=own.device).double()
            head.bias = torch.nn.Parameter(own_bias + shift.to(own.dtype), requires_grad=False)
        config.tie_word_embeddings = False
        got = head(states).float()
        model.model.save_pretrained(folder)
        model.tokenizer.save_pretrained(folder)
    finally:
        head.weight, config.tie_word_embeddings = own, tied
        if own_bias is not None:
            head.bias = own_bias
        model.model.tie_weights()
    wanted = model.with_head(edit).edit
    with torch.inference_mode():
        raw = head(states).float()
        low = states.float() @ wanted.right
        return float((got - wanted._interpolated(low, raw, raw, 1.0)).abs().max())


def _not_linear(edit: Any, model: Any) -> str:
    if edit.rule != "fixed" or edit.alpha != 1.0:
        return "a mixture with alpha below 1 is not linear in the hidden state"
    if edit.first_token_only:
        return "the edit holds for the first token only"
    bias = getattr(model.model.get_output_embeddings(), "bias", None)
    if edit.offset is not None and bias is None:
        return "the edit has an offset and this model's head has no bias"
    return ""


def _empty(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise SpecError(f"{folder}: the folder is not empty. Choose another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be made ({error.strerror}).") from error

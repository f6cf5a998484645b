"""Writing mitigations: a folder for evenhand, or plain weights for transformers alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import __version__
from evenhand.errors import ModelError, SpecError
from evenhand.mitigations.head.fit import Fitted
from evenhand.models.loading.saved import ARRAYS, FACTS, FORMAT, PROBES

WEIGHTS = (
    "no plain weights give the same logits. Use the folder of --out instead, or fit with: "
    "--method inlp --no-offset"
)
README = """\
A mitigation made by evenhand {version} for the model {name!r}: {method} on {axis}.

Use it like any model:      evenhand audit {folder}
In Python:                  import evenhand; evenhand.load_model("{folder}")
With transformers:          from evenhand.models.loading.saved import attach
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
        "probe_tokens": model._text_tokens(PROBES),
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
    Exact only for a linear edit without an offset (or with it, where the head has a bias). The
    mitigated model of this package uses the same folded weights, so both agree to the last bit.

    Returns:
        The largest difference of logits between the checkpoint, read back, and the mitigated
        model, on test texts.
    """
    problem = _not_linear(edit, model)
    if problem:
        raise SpecError(f"--export: {problem}, so {WEIGHTS}")
    _empty(folder)
    mitigated = model.with_head(edit)
    config = model.model.config
    tied = config.tie_word_embeddings
    with mitigated.edited():
        wanted = _logits(model, model.model)
        try:
            config.tie_word_embeddings = False
            model.model.save_pretrained(folder)
            model.tokenizer.save_pretrained(folder)
        finally:
            config.tie_word_embeddings = tied
    again = type(model.model).from_pretrained(folder, dtype=model.model.dtype).to(model.device)
    return float((_logits(model, again.eval()) - wanted).abs().max())


def _logits(model: Any, network: Any) -> Any:
    """Logits after the test texts, by plain calls."""
    rows = []
    with model.torch.inference_mode():
        for text in PROBES:
            ids = model.torch.tensor([model.tokenizer(text).input_ids], device=model.device)
            rows.append(network(input_ids=ids).logits[0, -1].float())
    return model.torch.stack(rows)


def check_exportable(settings: Any, model: Any) -> None:
    """Refuse an export that no outcome of fitting could give, before any work is done for it."""
    head = model.model.get_output_embeddings()
    shifted = settings.offset and settings.method != "a-subspace" and not settings.as_published
    mixed = settings.method.startswith("a-") and settings.mixture == "probability"
    mixed = mixed and not settings.as_published and settings.alpha not in (None, 1.0)
    problem = ""
    if settings.first_token_only:
        problem = "the edit holds for the first token only"
    elif shifted and getattr(head, "bias", None) is None:
        problem = "the edit has an offset and this model's head has no bias"
    elif mixed:
        problem = f"a mixture of probabilities (alpha {settings.alpha}) is not linear in the state"
    if problem:
        raise SpecError(f"--export: {problem}, so {WEIGHTS}")


def _not_linear(edit: Any, model: Any) -> str:
    if edit.first_token_only:
        return "the edit holds for the first token only"
    if not edit.linear:
        return "a mixture of probabilities is not linear in the hidden state"
    bias = getattr(model.model.get_output_embeddings(), "bias", None)
    if edit.offset is not None and bias is None:
        return "the edit has an offset and this model's head has no bias"
    return ""


def check_free(folder: Path, option: str = "--out") -> None:
    """Refuse a place that holds something already, before any work is done for it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "the folder is not empty" if folder.is_dir() else "is a file"
        raise SpecError(f"{folder}: {what}. Choose another with: {option} DIR")


def _empty(folder: Path) -> None:
    check_free(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be made ({error.strerror}).") from error

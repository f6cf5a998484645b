"""Writing mitigations: a folder for evenhand, or plain weights for transformers alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import ModelError, SpecError
from evenhand.mitigations import saved
from evenhand.models.edits.head import AppliedEdit, HeadEdit
from evenhand.models.loading.checkpoint import load_model
from evenhand.models.loading.saved import read_facts
from evenhand.models.protocol import Model
from evenhand.writing import drafted

if TYPE_CHECKING:
    from evenhand.mitigations.head.fit import FittedHead

WEIGHTS = (
    "no plain weights give the same logits. Use the folder of --out instead, or fit with: "
    "--method pairs --no-offset"
)
TEXTS = (
    "The weather today is",
    "In the middle of the town there is",
    "She opened the door and",
    "The price of bread has",
)
"""A mitigation is refused by a model whose hidden states after these texts are others: a projection
means nothing in another model's coordinates."""
TOLERANCE = 0.05  # half precision moves states by about 1 %, another model by about 100 %
README = """\
With transformers:          from evenhand.mitigations.head.save import attach
                            attach("FOLDER", model, tokenizer)
"""


def save(fitted: FittedHead, folder: Path) -> None:
    """Write the edit, and the states by which its model is recognised."""
    model: Any = fitted.base
    edit = fitted.edit
    arrays = {"left": edit.left, "right": edit.right, "probe": model.as_text().last_states(TEXTS)}
    optional = {"offset": edit.offset, "sensitivity": edit.sensitivity, "sensitive": edit.sensitive}
    arrays |= {k: np.asarray(v) for k, v in optional.items() if v is not None}
    if "sensitive" in arrays:
        arrays["sensitive"] = arrays["sensitive"].astype(np.uint8)
    facts = {
        "probe_tokens": model.as_text()._text_tokens(TEXTS),
        "edit": {
            "rank": edit.rank,
            "rule": edit.rule,
            "alpha": edit.alpha,
            "mixture": edit.mixture,
            "top": edit.top,
            "first_token_only": edit.first_token_only,
            "sha256": edit.digest(),
        },
        "measured": {
            "before": fitted.before.as_dict(),
            "after": fitted.chosen.as_dict(),
            **fitted.facts,
        },
    }
    about = {"vocabulary": model.vocabulary}
    saved.write(folder, fitted, facts, arrays, about=about, readme=README)


def read_edit(folder: Path) -> tuple[HeadEdit, np.ndarray]:
    """Return the edit of a saved mitigation, and its model's states after the fixed texts."""
    edit, arrays = saved.rebuild(folder, read_facts(folder), _edit)
    if "probe" not in arrays:
        raise saved.damaged(folder, "the states of its model are missing")
    return edit, arrays["probe"]


def _edit(settings: Mapping[str, Any], arrays: saved.Arrays) -> HeadEdit:
    return HeadEdit(
        left=arrays["left"],
        right=arrays["right"],
        offset=arrays.get("offset"),
        sensitivity=arrays.get("sensitivity"),
        sensitive=arrays["sensitive"].astype(bool) if "sensitive" in arrays else None,
        **{k: settings[k] for k in ("rule", "alpha", "mixture", "top", "first_token_only")},
    )


def load(folder: Path, base: Any) -> Model:
    """Return the mitigated form of the model that a folder was fitted for; refuse any other.

    Models are compared by their states, so that the same weights in another file are accepted.
    """
    facts = read_facts(folder)
    if base.kind != "causal":
        saved.refuse(folder, facts, base, f"a causal language model, against {base.kind} here")
    edit, wanted = read_edit(folder)
    problem = _unlike(facts, wanted, base.model, lambda: base.as_text().last_states(TEXTS))
    if problem:
        saved.refuse(folder, facts, base, problem)
    made: Model = base.with_head(edit, saved.name_of(facts, base))
    return made


def attach(folder: str | Path, model: Any, tokenizer: Any = None) -> list[Any]:
    """Attach a saved mitigation to a plain Hugging Face causal model, `generate` included.

    Another model than the one it was fitted for is refused. The tokenizer is needed only for
    folders that do not hold the test texts' tokens. Gives the hook handles: call `.remove()` on
    each to have the model back as it was.
    """
    import torch

    facts = read_facts(Path(folder))
    edit, wanted = read_edit(Path(folder))
    rows = facts.get("probe_tokens")
    if rows is None and tokenizer is not None:
        rows = [tokenizer(text).input_ids for text in TEXTS]
    problem = _unlike(
        facts, wanted, model, lambda: wanted if rows is None else _states(model, rows)
    )
    if problem:
        raise ModelError(
            f"{folder}: the mitigation was fitted for {facts['model']['name']!r} and does not fit "
            f"this model: {problem}. Fit one for it with: evenhand mitigate MODEL"
        )
    with torch.no_grad():
        return AppliedEdit(torch, model, edit).attach()


def _unlike(
    facts: Mapping[str, Any], wanted: np.ndarray, model: Any, states: Callable[[], np.ndarray]
) -> str:
    """Return how a Hugging Face model differs from the fitted one, or "" if it does not."""
    fitted = (facts["model"].get("vocabulary"), wanted.shape[1])
    here = tuple(model.get_output_embeddings().weight.shape)
    if here != fitted:
        return f"vocabulary and hidden size {fitted}, against {here} here"
    apart = float(np.linalg.norm(states() - wanted) / np.linalg.norm(wanted))
    if apart < TOLERANCE:
        return ""
    return f"hidden states differ by {100 * apart:.0f} % on the test texts"


def _states(model: Any, rows: list[list[int]]) -> np.ndarray:
    """Return the input of the head after each row of tokens."""
    import torch

    seen: list[Any] = []
    head = model.get_output_embeddings()
    hook = head.register_forward_pre_hook(
        lambda module, inputs: seen.append(inputs[0][0, -1].float().cpu().numpy())
    )
    try:
        with torch.inference_mode():
            for row in rows:
                model(input_ids=torch.tensor([row], device=head.weight.device))
    finally:
        hook.remove()
    return np.stack(seen)


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
    saved.check_free(folder, "--export")
    mitigated = model.with_head(edit)
    config = model.model.config
    tied = config.tie_word_embeddings
    with mitigated.edited(), drafted(folder) as draft:
        wanted = _logits(model, model.model)
        try:
            config.tie_word_embeddings = False
            model.model.save_pretrained(draft)
            model.tokenizer.save_pretrained(draft)
        finally:
            config.tie_word_embeddings = tied
    again = load_model(type(model.model).__name__, folder, dtype=model.model.dtype)
    return float((_logits(model, again.to(model.device).eval()) - wanted).abs().max())


def _logits(model: Any, network: Any) -> Any:
    """Return the logits after the test texts, by plain calls."""
    rows = []
    with model.torch.inference_mode():
        for text in TEXTS:
            ids = model.torch.tensor([model.tokenizer(text).input_ids], device=model.device)
            rows.append(network(input_ids=ids).logits[0, -1].float())
    return model.torch.stack(rows)


def check_exportable(settings: Any, model: Any) -> None:
    """Refuse an export that no outcome of fitting could give, before any work is done for it."""
    bias = getattr(model.model.get_output_embeddings(), "bias", None)
    shifted = settings.offset and settings.method != "a-subspace" and not settings.as_published
    mixed = settings.method.startswith("a-") and settings.mixture == "probability"
    mixed = mixed and not settings.as_published and settings.alpha not in (None, 1.0)
    problem = ""
    if settings.first_token_only:
        problem = "the edit holds for the first token only"
    elif shifted and bias is None:
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

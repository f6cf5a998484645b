"""Saved mitigations: a folder that turns one particular model into its mitigated form.

    evenhand-mitigation.json     what it is, for which model, how it was fitted, what it measured
    mitigation.safetensors       left, right, offset, sensitivity, sensitive, probe

`probe` holds the model's hidden states after a few fixed texts. A mitigation is refused by a model
whose states are others: a projection means nothing in another model's coordinates.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.adapters.causal import CausalModel
from evenhand.models.edits.head import HeadEdit

FORMAT = 1
FACTS = "evenhand-mitigation.json"
ARRAYS = "mitigation.safetensors"
PROBES = (
    "The weather today is",
    "In the middle of the town there is",
    "She opened the door and",
    "The price of bread has",
)
TOLERANCE = 0.05  # half precision moves states by about 1 %, another model by about 100 %


def is_mitigation(folder: Path) -> bool:
    """Whether the folder is a saved mitigation."""
    return (folder / FACTS).is_file()


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of a saved mitigation; a folder of another format is refused."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise ModelError(f"{folder}/{FACTS}: cannot be read ({error}).") from error
    if facts.get("format") != FORMAT:
        raise ModelError(
            f"{folder}: mitigation format '{facts.get('format')}', this version reads {FORMAT}. "
            "Fit it again with: evenhand mitigate MODEL"
        )
    return facts


def read_edit(folder: Path) -> tuple[HeadEdit, np.ndarray]:
    """The edit of a saved mitigation and the probe states of its model."""
    from safetensors.numpy import load_file

    facts = read_facts(folder)
    try:
        arrays = load_file(str(folder / ARRAYS))
    except Exception as error:
        raise ModelError(f"{folder}/{ARRAYS}: cannot be read ({error}).") from error
    try:
        settings = facts["edit"]
        edit = HeadEdit(
            left=arrays["left"],
            right=arrays["right"],
            offset=arrays.get("offset"),
            sensitivity=arrays.get("sensitivity"),
            sensitive=arrays["sensitive"].astype(bool) if "sensitive" in arrays else None,
            **{k: settings[k] for k in ("rule", "alpha", "mixture", "top", "first_token_only")},
        )
        return edit, arrays["probe"]
    except KeyError as error:
        raise ModelError(
            f"{folder}: the mitigation lacks {error}. Fit it again with: evenhand mitigate MODEL"
        ) from None


def load_mitigated(folder: Path, base: CausalModel) -> CausalModel:
    """The mitigated form of the model the folder was fitted for; any other is refused."""
    edit, probe = read_edit(folder)
    facts = read_facts(folder)
    check_same_model(folder, facts, probe, base)
    name = f"{base.name} + {facts['method']} {facts['axis']}"
    return base.with_head(edit, name)


def check_same_model(
    folder: Path, facts: dict[str, Any], probe: np.ndarray, base: CausalModel
) -> None:
    """Compare hidden states after the fixed texts with those of the fitted model."""
    fitted = facts["model"]
    advice = f"Fit one for it with: evenhand mitigate {base.name} --axis {facts['axis']}"
    width = base.model.get_output_embeddings().weight.shape[1]
    problem = ""
    if width != probe.shape[1] or base.vocabulary != fitted["vocabulary"]:
        problem = (
            f"hidden size {probe.shape[1]} and vocabulary {fitted['vocabulary']}, against {width} "
            f"and {base.vocabulary} here"
        )
    else:
        states = base.last_states(PROBES)
        apart = float(np.linalg.norm(states - probe) / np.linalg.norm(probe))
        if not apart < TOLERANCE:
            problem = f"hidden states differ by {apart:.0%} on the test texts"
    if problem:
        raise ModelError(
            f"{folder}: the mitigation was fitted for {fitted['name']!r} and does not fit model "
            f"{base.name!r}: {problem}. {advice}"
        )


def attach(folder: str | Path, model: Any, tokenizer: Any = None) -> list[Any]:
    """Attach a saved mitigation to a plain Hugging Face causal model, `generate` included.

    The model is checked as `evenhand` checks it: another one is refused.

    Args:
        folder: what `evenhand mitigate --out` wrote.
        model: the Hugging Face model it was fitted for.
        tokenizer: of that model; needed only for folders that do not hold the test texts' tokens.

    Returns:
        The hook handles; call `.remove()` on each to have the model back as it was.
    """
    import torch

    from evenhand.models.edits.head import AppliedEdit

    edit, probe = read_edit(Path(folder))
    facts = read_facts(Path(folder))
    head = model.get_output_embeddings().weight
    fitted = (facts["model"]["vocabulary"], len(edit.left))
    rows = facts.get("probe_tokens")
    if rows is None and tokenizer is not None:
        rows = [tokenizer(text).input_ids for text in PROBES]
    problem = ""
    if tuple(head.shape) != fitted:
        problem = f"vocabulary and hidden size {fitted}, against {tuple(head.shape)} here"
    elif rows is not None:
        apart = float(np.linalg.norm(_states(model, rows) - probe) / np.linalg.norm(probe))
        problem = "" if apart < TOLERANCE else f"hidden states differ by {apart:.0%}"
    if problem:
        raise ModelError(
            f"{folder}: the mitigation was fitted for {facts['model']['name']!r} and does not fit "
            f"this model: {problem}. Fit one for it with: evenhand mitigate MODEL"
        )
    with torch.no_grad():
        return AppliedEdit(torch, model, edit).attach()


def _states(model: Any, rows: list[list[int]]) -> np.ndarray:
    """What the head sees after each row of tokens."""
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

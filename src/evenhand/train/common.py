"""What every training loop shares: seeds, determinism, schedule, saving."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import DataError, ModelError, need


def start(seed: int, device: str | None = None) -> tuple[Any, str]:
    """torch with every generator seeded and deterministic kernels, and the device to use.

    Two runs with one seed on one kind of machine then end with the same weights.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch: Any = need("torch", extra="hf", what="training")
    random.seed(seed)
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch, device or ("cuda" if torch.cuda.is_available() else "cpu")


def linear_schedule(step: int, steps: int, warmup: float = 0.1) -> float:
    """Share of the learning rate: up from 0 over the first steps, then down to 0.

    >>> [round(linear_schedule(s, 10, 0.2), 2) for s in (0, 1, 2, 10)]
    [0.5, 1.0, 1.0, 0.0]
    """
    rising = max(1, int(steps * warmup))
    if step < rising:
        return (step + 1) / rising
    return max(0.0, (steps - step) / max(1, steps - rising))


def shuffled(n: int, seed: int, epoch: int) -> np.ndarray:
    """The order of examples in one epoch."""
    return np.random.default_rng([seed, epoch]).permutation(n)


def require_new(out: Path) -> None:
    """Refuse a folder that holds something, before any work is done."""
    if out.exists() and any(out.iterdir()):
        raise DataError(f"{out}: the folder is not empty. Choose another with: --out DIR")


def save(model: Any, tokenizer: Any, out: Path, card: dict[str, Any]) -> None:
    """Weights (safetensors), tokenizer and what is known about the training."""
    require_new(out)
    out.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(out, safe_serialization=True)
    tokenizer.save_pretrained(out)
    (out / "training.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")


def read_saved(
    folder: Path, facts: str, weights: str, version: int, what: str, command: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and weights of a small network saved as JSON beside safetensors; nothing unpickled.

    Raises:
        ModelError: it is no such folder, or of another format.
    """
    from safetensors.torch import load_file

    try:
        found = dict(json.loads((folder / facts).read_text(encoding="utf-8")))
        arrays = load_file(folder / weights)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{folder}: not a saved {what} model ({error}). Train one with: {command}"
        ) from error
    if found.pop("format", None) != version:
        raise ModelError(f"{folder}: another format than {version}. Train it again.")
    return found, arrays

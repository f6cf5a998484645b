"""What every training loop shares: seeds, determinism, schedule, saving."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import DataError, ModelError, SpecError, need, unknown
from evenhand.models.loading import checkpoint
from evenhand.models.loading.saved import TRAINED
from evenhand.seals import FILES, broken, digests, read_sealed, write_sealed
from evenhand.settings import Asked
from evenhand.writing import drafted

Say = Callable[[str], None]


def quiet(text: str) -> None:
    """A listener who does not mind."""


class Training(Asked):
    """Settings of a training."""


def require_known(name: str, value: str, accepted: Sequence[str], where: str) -> None:
    """Refuse a name that is none of those accepted."""
    if value not in accepted:
        raise SpecError(unknown(name, value, accepted, where=where))


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


def load_base(
    task: str, auto: str, source: str, *, weights: str = "", **options: Any
) -> tuple[Any, Any]:
    """The tokenizer of a checkpoint, without its own cutting and padding, and its model.

    Args:
        task: what is trained, for the message when it cannot be loaded.
        auto: the class of transformers that loads it.
        source: a folder or Hub id.
        weights: where its weights are, if elsewhere.
        options: further ones of the class.
    """
    try:
        tokenizer = checkpoint.load_tokenizer(checkpoint.folder_of(source))
        folder, new = checkpoint.folder_of(weights or source), auto != "AutoModelForMaskedLM"
        model = checkpoint.load_model(auto, folder, new=new, **options)
        checkpoint.check_ids(source, tokenizer, model)
    except ModelError as error:
        raise ModelError(
            f"train {task}: {source!r} is not an encoder that can be loaded ({error}) Give the "
            "folder or Hub id of a BERT-like model with safetensors weights."
        ) from error
    if tokenizer.is_fast:
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    return tokenizer, model


def descend(
    torch: Any, model: Any, optimizer: Any, loss: Any, rate: float, clip: float = 1.0
) -> None:
    """One step down the loss at this learning rate, gradients clipped to a length."""
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()


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


BUCKET = 50
"""This many batches are sorted by length together."""


def like_lengths(
    order: np.ndarray, lengths: np.ndarray, batch: int, seed: int, epoch: int
) -> list[np.ndarray]:
    """Batches of rows of like length in random order, every row once.

    >>> order, lengths = np.array([2, 1, 0, 3]), np.array([9, 3, 8, 4])
    >>> sorted(sorted(b.tolist()) for b in like_lengths(order, lengths, 2, 0, 0))
    [[0, 2], [1, 3]]
    """
    made = []
    for low in range(0, len(order), batch * BUCKET):
        chunk = order[low : low + batch * BUCKET]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        made += [chunk[at : at + batch] for at in range(0, len(chunk), batch)]
    return [made[i] for i in np.random.default_rng([seed, epoch, 1]).permutation(len(made))]


def autocast(torch: Any, device: str, enabled: bool) -> Any:
    """Matrix products in bfloat16, where enabled."""
    return torch.autocast(device.split(":")[0], torch.bfloat16, enabled=enabled)


def require_new(out: Path) -> None:
    """Refuse a folder that holds something, before any work is done."""
    if out.exists() and any(out.iterdir()):
        raise DataError(f"{out}: the folder is not empty. Choose another with: --out DIR")


def save(model: Any, tokenizer: Any, out: Path, card: dict[str, Any]) -> None:
    """Weights (safetensors), tokenizer and what is known about the training."""
    require_new(out)
    with drafted(out) as draft:
        model.save_pretrained(draft, safe_serialization=True)
        tokenizer.save_pretrained(draft)
        write_sealed(draft / TRAINED, card, digests(draft))


def save_network(
    out: Path, facts: str, weights: str, card: dict[str, Any], arrays: dict[str, Any]
) -> None:
    """A small network into a new folder: JSON beside safetensors (see `read_saved`)."""
    from safetensors.torch import save_file

    require_new(out)
    with drafted(out) as draft:
        save_file({k: v.detach().cpu().contiguous() for k, v in arrays.items()}, draft / weights)
        write_sealed(draft / facts, card, digests(draft))


def read_saved(
    folder: Path, facts: str, weights: str, version: int, what: str, command: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Facts and weights of a small network saved as JSON beside safetensors; nothing unpickled.

    Raises:
        ModelError: it is not such a folder, or of another format.
    """
    from safetensors.torch import load_file

    try:
        found = read_sealed(folder / facts)
        if wrong := broken(folder, found):
            raise ValueError(f"{wrong} is not what was written")
        arrays = load_file(folder / weights)
    except Exception as error:  # safetensors has an exception of its own
        raise ModelError(
            f"{folder}: not a saved {what} model ({error}). Train one with: {command}"
        ) from error
    found.pop(FILES, None)
    if found.pop("format", None) != version:
        raise ModelError(f"{folder}: another format than {version}. Train it again.")
    return found, arrays

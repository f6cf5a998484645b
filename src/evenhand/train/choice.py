"""Multiple choice on Social IQa: an encoder learns to pick the right one of three answers.

The paper's recipe (An et al. 2023, Sec. 4): context and question as first text, an answer as
second, one score each, cross-entropy over the three; BERT-base, 2 epochs, learning rate 2e-5,
batches of 3, 60.5 % on the development set. Small encoders want a larger rate and more epochs.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import DataError, need
from evenhand.train import common

LETTERS = "ABC"


@dataclass(frozen=True)
class Question:
    """One sample: what is read, the answers, and which of them is right."""

    text: str
    answers: tuple[str, ...]
    right: int


@dataclass(frozen=True)
class Recipe:
    """Settings of a training run. `paper` is the published one; the default suits MiniLM."""

    epochs: int = 4
    learning_rate: float = 1e-4
    batch: int = 48
    warmup: float = 0.1
    weight_decay: float = 0.01
    seed: int = 0
    limit: int | None = None

    @classmethod
    def paper(cls, seed: int = 0, limit: int | None = None) -> Recipe:
        return cls(2, 2e-5, 3, warmup=0.0, weight_decay=0.0, seed=seed, limit=limit)


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """Samples of a Social IQa file, plain or .xz, right answers inside or in a labels file."""
    from evenhand.contexts import right_answers

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}).") from error
    lines = (lzma.decompress(raw) if path.suffix == ".xz" else raw).decode().splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    if not rows:
        raise DataError(f"{path}: no samples. Accepted: a Social IQa file (JSON lines).")
    if "correct" in rows[0]:
        right = [LETTERS.index(row["correct"]) for row in rows]
    else:
        right = [int(label) - 1 for label in right_answers(path, len(rows))]
    made = [
        Question(f"{r['context']} {r['question']}", tuple(r[f"answer{c}"] for c in LETTERS), at)
        for r, at in zip(rows, right)
    ]
    return made[:limit]


def train(
    base: str,
    train_file: Path,
    dev_file: Path,
    out: Path,
    recipe: Recipe | None = None,
    *,
    device: str | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Fine-tune an encoder and save it; gives its card with the development accuracy.

    Args:
        base: a folder or Hub id of an encoder, such as a masked language model.
        train_file: Social IQa training samples.
        dev_file: samples to measure accuracy on after every epoch.
        out: a new folder for the checkpoint.
        recipe: epochs, rate, batch and seed.
        device: cuda or cpu; by default whichever is there.
        say: told about each epoch.
    """
    recipe = recipe or Recipe()
    common.require_new(out)
    torch, device = common.start(recipe.seed, device)
    transformers: Any = need("transformers", extra="hf", what="training")
    transformers.logging.set_verbosity_error()
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    model = transformers.AutoModelForMultipleChoice.from_pretrained(
        base, dtype=torch.float32, attn_implementation="eager"
    ).to(device)
    samples = read_questions(train_file, recipe.limit)
    dev = read_questions(dev_file, recipe.limit)
    encoded, encoded_dev = _encode(tokenizer, samples), _encode(tokenizer, dev)
    history = _fit(torch, model, (samples, encoded), (dev, encoded_dev), recipe, device, say)
    card = {
        "task": "multiple choice",
        "base": Path(base).name,
        "recipe": asdict(recipe),
        "train_samples": len(samples),
        "dev_samples": len(dev),
        "dev_accuracy": history[-1]["dev_accuracy"],
        "history": history,
    }
    common.save(model, tokenizer, out, card)
    return card


def _encode(tokenizer: Any, samples: Sequence[Question]) -> dict[str, list[list[int]]]:
    """Token ids and types of every (text, answer), three rows per sample."""
    first = [s.text for s in samples for _ in s.answers]
    second = [a for s in samples for a in s.answers]
    made = tokenizer(first, second, truncation=False)
    return {name: made[name] for name in ("input_ids", "token_type_ids") if name in made}


def _fit(
    torch: Any,
    model: Any,
    train_set: tuple[Sequence[Question], dict[str, list[list[int]]]],
    dev_set: tuple[Sequence[Question], dict[str, list[list[int]]]],
    recipe: Recipe,
    device: str,
    say: Callable[[str], None],
) -> list[dict[str, float]]:
    samples, encoded = train_set
    right = torch.tensor([s.right for s in samples])
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    per_epoch = -(-len(samples) // recipe.batch)
    steps = per_epoch * recipe.epochs
    history: list[dict[str, float]] = []
    for epoch in range(recipe.epochs):
        model.train()
        order = common.shuffled(len(samples), recipe.seed, epoch)
        total = 0.0
        for number in range(per_epoch):
            rows = order[number * recipe.batch : (number + 1) * recipe.batch]
            share = common.linear_schedule(epoch * per_epoch + number, steps, recipe.warmup)
            for group in optimizer.param_groups:
                group["lr"] = recipe.learning_rate * share
            logits = model(**_batch(torch, encoded, rows, device)).logits
            loss = torch.nn.functional.cross_entropy(logits, right[rows].to(device))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += float(loss.detach()) * len(rows)
        made = {
            "loss": total / len(samples),
            "dev_accuracy": accuracy(torch, model, *dev_set, device),
        }
        history.append(made)
        say(f"epoch {epoch + 1}: loss {made['loss']:.3f}, dev accuracy {made['dev_accuracy']:.4f}")
    return history


def accuracy(
    torch: Any,
    model: Any,
    samples: Sequence[Question],
    encoded: dict[str, list[list[int]]],
    device: str,
) -> float:
    """Share of samples whose right answer has the largest score."""
    model.eval()
    hits = 0
    with torch.inference_mode():
        for begin in range(0, len(samples), 128):
            rows = np.arange(begin, min(begin + 128, len(samples)))
            best = model(**_batch(torch, encoded, rows, device)).logits.argmax(-1).tolist()
            hits += sum(b == samples[r].right for b, r in zip(best, rows.tolist()))
    return hits / len(samples)


def _batch(
    torch: Any, encoded: dict[str, list[list[int]]], rows: np.ndarray, device: str
) -> dict[str, Any]:
    """Padded tensors [samples, 3, tokens]."""
    at = (rows[:, None] * len(LETTERS) + np.arange(len(LETTERS))).ravel()
    width = max(len(encoded["input_ids"][i]) for i in at)
    out = {}
    for name, values in encoded.items():
        padded = np.zeros((len(at), width), np.int64)
        for place, i in enumerate(at):
            padded[place, : len(values[i])] = values[i]
        out[name] = padded
    mask = np.zeros((len(at), width), np.int64)
    for place, i in enumerate(at):
        mask[place, : len(encoded["input_ids"][i])] = 1
    out["attention_mask"] = mask
    shape = (len(rows), len(LETTERS), width)
    return {k: torch.from_numpy(v.reshape(shape)).to(device) for k, v in out.items()}

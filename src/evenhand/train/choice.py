"""Multiple choice on Social IQa: an encoder learns to pick the right one of three answers.

The paper's recipe (An et al. 2023, Sec. 4): context and question as first text, an answer as
second, one score each, cross-entropy over the three; BERT-base, 2 epochs, learning rate 2e-5,
batches of 3, 60.5 % on the development set. Small encoders want a larger rate and more epochs.

Questions of like length share a batch (30 tokens a row instead of 56), all of them lie on the
device from the start, and a GPU computes in bfloat16; kernels are deterministic, so two runs with
one seed on one kind of machine end with the same weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import Field

from evenhand.errors import DataError
from evenhand.opening import json_lines
from evenhand.train import common

LETTERS = "ABC"


@dataclass(frozen=True)
class Question:
    """One sample: what is read, the answers, and which of them is right."""

    text: str
    answers: tuple[str, ...]
    right: int


class ChoiceTraining(common.Training):
    """Settings of a training run. `published()` is the paper's; the default suits MiniLM.

    Weights and their updates are float32 always.
    """

    epochs: int = Field(default=2, ge=1)
    learning_rate: float = Field(default=2e-4, gt=0, description="Peak; BERT-base needs 2e-5.")
    batch: int = Field(default=128, ge=1, description="Questions per step.")
    warmup: float = Field(default=0.1, ge=0, le=1, description="Share of the steps.")
    weight_decay: float = 0.01
    seed: int = Field(default=0, ge=0, description="Same seed, same weights.")
    limit: int | None = Field(default=None, ge=1, description="Use only this many questions.")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        default="auto", description="Precision of the matrix products; auto: bfloat16 on a GPU."
    )

    @classmethod
    def published(cls, seed: int = 0, limit: int | None = None) -> ChoiceTraining:
        return cls(
            epochs=2,
            learning_rate=2e-5,
            batch=3,
            warmup=0.0,
            weight_decay=0.0,
            seed=seed,
            limit=limit,
            precision="float32",
        )

    def autocasts(self, device: str) -> bool:
        """Whether matrix products are in bfloat16 on this device."""
        on_gpu = device.startswith("cuda")
        return self.precision == "bfloat16" or (self.precision == "auto" and on_gpu)


def read_questions(path: Path, limit: int | None = None) -> list[Question]:
    """Samples of a Social IQa file, plain or .xz, right answers inside or in a labels file."""
    from evenhand.words.social_iqa import right_answers

    rows = [row for _, row in json_lines(path, "a Social IQa file (JSON lines)")]
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
    recipe: ChoiceTraining | None = None,
    *,
    device: str | None = None,
    say: common.Say = common.quiet,
) -> dict[str, Any]:
    """Fine-tune an encoder and save it; gives its card with the development accuracy.

    Args:
        base: a folder or Hub id of an encoder, such as a masked language model.
        train_file: Social IQa training samples.
        dev_file: samples to measure accuracy on after every epoch.
        out: a new folder for the checkpoint.
        device: cuda or cpu; by default whichever is there.
    """
    recipe = recipe or ChoiceTraining()
    common.require_new(out)
    torch, device = common.start(recipe.seed, device)
    tokenizer, model = common.load_base(
        "choice",
        "AutoModelForMultipleChoice",
        base,
        dtype=torch.float32,
        attn_implementation="eager",
    )
    model.to(device)
    samples = read_questions(train_file, recipe.limit)
    dev = read_questions(dev_file, recipe.limit)
    tables = [_Table.of(torch, tokenizer, part, device) for part in (samples, dev)]
    history, best = _fit(torch, model, tables[0], tables[1], recipe, say)
    card = {
        "task": "multiple choice",
        "base": Path(base).name,
        "recipe": recipe.model_dump(),
        "train_samples": len(samples),
        "dev_samples": len(dev),
        "dev_accuracy": history[-1]["dev_accuracy"],
        "dev_predictions": "".join(LETTERS[b] for b in best),
        "history": history,
    }
    common.save(model, tokenizer, out, card)
    return card


@dataclass(frozen=True)
class _Table:
    """All (text, answer) rows on the device, three per question, padded once.

    `lengths` holds the longest of a question's three rows, on this side.
    """

    torch: Any
    columns: dict[str, Any]
    sizes: Any
    right: Any
    lengths: np.ndarray
    device: str

    @classmethod
    def of(cls, torch: Any, tokenizer: Any, samples: Sequence[Question], device: str) -> _Table:
        first = [s.text for s in samples for _ in s.answers]
        second = [a for s in samples for a in s.answers]
        made = tokenizer(first, second, truncation=False)
        sizes = np.asarray([len(ids) for ids in made["input_ids"]])
        columns = {}
        for name in ("input_ids", "token_type_ids"):
            if name in made:
                padded = np.zeros((len(sizes), int(sizes.max())), np.int32)
                for row, values in zip(padded, made[name]):
                    row[: len(values)] = values
                columns[name] = torch.from_numpy(padded).to(device)
        right = torch.tensor([s.right for s in samples], device=device)
        lengths = sizes.reshape(-1, len(LETTERS)).max(axis=1)
        return cls(torch, columns, torch.from_numpy(sizes).to(device), right, lengths, device)

    def batch(self, questions: np.ndarray) -> tuple[dict[str, Any], Any]:
        """Model inputs [questions, 3, tokens] and the right answers."""
        width = int(self.lengths[questions].max())
        asked = self.torch.from_numpy(questions).to(self.device)
        rows = asked[:, None] * len(LETTERS) + self.torch.arange(len(LETTERS), device=self.device)
        inputs = {name: values[rows, :width].long() for name, values in self.columns.items()}
        places = self.torch.arange(width, device=self.device)
        inputs["attention_mask"] = (places < self.sizes[rows][..., None]).long()
        return inputs, self.right[asked]


def _fit(
    torch: Any, model: Any, table: _Table, dev: _Table, recipe: ChoiceTraining, say: common.Say
) -> tuple[list[dict[str, float]], list[int]]:
    """Train; gives loss and development accuracy per epoch, and the last predictions."""
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    n = len(table.lengths)
    per_epoch = -(-n // recipe.batch)
    steps, done = per_epoch * recipe.epochs, 0
    history: list[dict[str, float]] = []
    best: list[int] = []
    casts = recipe.autocasts(table.device)
    for epoch in range(recipe.epochs):
        model.train()
        total = torch.zeros((), device=table.device)
        order = common.shuffled(n, recipe.seed, epoch)
        plan = common.like_lengths(order, table.lengths, recipe.batch, recipe.seed, epoch)
        for questions in plan:
            inputs, right = table.batch(questions)
            with common.autocast(torch, table.device, casts):
                logits = model(**inputs).logits
            loss = torch.nn.functional.cross_entropy(logits.float(), right)
            share = common.linear_schedule(done, steps, recipe.warmup)
            common.descend(torch, model, optimizer, loss, recipe.learning_rate * share)
            total += loss.detach() * len(questions)
            done += 1
        best = predictions(torch, model, dev)
        hits = sum(b == r for b, r in zip(best, dev.right.tolist()))
        history.append({"loss": float(total) / n, "dev_accuracy": hits / len(best)})
        say(
            f"epoch {epoch + 1}: loss {history[-1]['loss']:.3f}, "
            f"dev accuracy {history[-1]['dev_accuracy']:.4f}"
        )
    return history, best


def predictions(torch: Any, model: Any, table: _Table) -> list[int]:
    """The answer with the largest score, question by question, in float32."""
    model.eval()
    found: list[int] = []
    with torch.inference_mode():
        for begin in range(0, len(table.lengths), 128):
            questions = np.arange(begin, min(begin + 128, len(table.lengths)))
            found += model(**table.batch(questions)[0]).logits.argmax(-1).tolist()
    return found

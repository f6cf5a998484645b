"""Fine-tune an encoder to answer questions with spans (SQuAD format), and predict with it.

The released recipe (code of Li et al. 2020): learning rate 3e-5, 2 epochs, batches of 20, linear
warm-up over 10 %, windows of 384 tokens with a stride of 128, trained on the window that holds the
answer; the checkpoint with the best development F1 is kept. Small encoders want a larger rate.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.errors import DataError, RunError, need
from evenhand.train import common
from evenhand.train import span_checks as checks
from evenhand.train.squad import Example, score

Ints = npt.NDArray[np.int64]
LONGEST_ANSWER = 30


class SpanTraining(common.Training):
    """Settings of a training run; the defaults are the published ones."""

    epochs: int = Field(default=2, ge=1)
    learning_rate: float = Field(default=3e-5, gt=0, description="Peak; small encoders need 1e-4.")
    batch: int = Field(default=20, ge=1, description="Windows per step.")
    warmup: float = Field(default=0.1, ge=0, le=1, description="Share of the steps.")
    weight_decay: float = 0.01
    length: int = Field(default=384, ge=32, description="Tokens per window.")
    stride: int = Field(default=128, ge=0, description="Tokens that windows share.")
    seed: int = Field(default=0, ge=0, description="Same seed, same order of examples.")
    header: str = Field(default="", description='Text before contexts, e.g. "(CNN) --".')


@dataclass
class Windows:
    """Pieces of contexts with their question, as token ids.

    `owner` is the example, `answer` [windows, 2] the first and last token of the answer (-1: it
    is not in this window), `offsets` the characters of each token, (-1, -1) outside the context.
    """

    ids: list[list[int]]
    types: list[list[int]] | None
    owner: Ints
    answer: Ints
    offsets: list[npt.NDArray[np.int32]]

    def __len__(self) -> int:
        return len(self.ids)


def make_windows(
    tokenizer: Any, examples: Sequence[Example], *, length: int, stride: int, header: str = ""
) -> Windows:
    """Cut contexts that are too long into overlapping windows of at most `length` tokens.

    Args:
        header: a text before every context, e.g. "(CNN) --" for models trained on news.
    """
    shift = len(header) + 1 if header else 0
    contexts = [f"{header} {e.context}" if header else e.context for e in examples]
    made = tokenizer(
        [e.question for e in examples],
        contexts,
        truncation="only_second",
        max_length=length,
        stride=stride,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
        padding=False,
    )
    owner = np.asarray(made["overflow_to_sample_mapping"], np.int64)
    offsets, answer = [], np.full((len(owner), 2), -1, np.int64)
    for w, example in enumerate(owner):
        place = np.asarray(made["offset_mapping"][w], np.int32)
        inside = np.asarray([s == 1 for s in made.sequence_ids(w)])
        place[~inside] = -1
        offsets.append(place)
        asked = examples[example]
        low = asked.start + shift
        answer[w] = _answer_tokens(place, low, low + len(asked.answers[0]))
    return Windows(list(made["input_ids"]), made.get("token_type_ids"), owner, answer, offsets)


def _answer_tokens(offsets: npt.NDArray[np.int32], low: int, high: int) -> tuple[int, int]:
    """First and last token of the characters [low, high); (-1, -1) when not all are here."""
    at = np.flatnonzero((offsets[:, 0] < high) & (offsets[:, 1] > low) & (offsets[:, 0] >= 0))
    if not len(at) or offsets[at[0], 0] > low or offsets[at[-1], 1] < high:
        return -1, -1
    return int(at[0]), int(at[-1])


def tensors(torch: Any, windows: Windows, rows: Ints, pad: int, device: str) -> dict[str, Any]:
    """Padded model arguments of one batch; widths are multiples of 16, so few shapes occur."""
    longest = max(len(windows.ids[r]) for r in rows)
    width = -(-longest // 16) * 16
    shape = (len(rows), width)
    arrays = {
        "input_ids": np.full(shape, pad, np.int64),
        "attention_mask": np.zeros(shape, np.int64),
    }
    if windows.types is not None:
        arrays["token_type_ids"] = np.zeros(shape, np.int64)
    for i, r in enumerate(rows):
        n = len(windows.ids[r])
        arrays["input_ids"][i, :n] = windows.ids[r]
        arrays["attention_mask"][i, :n] = 1
        if windows.types is not None:
            arrays["token_type_ids"][i, :n] = windows.types[r]
    return {name: torch.from_numpy(a).to(device) for name, a in arrays.items()}


def predict(
    model: Any,
    tokenizer: Any,
    examples: Sequence[Example],
    windows: Windows,
    *,
    batch: int = 64,
    header: str = "",
) -> dict[str, str]:
    """The best span of every question over its windows: largest start + end logit."""
    torch: Any = need("torch", extra="hf", what="answering questions")
    device = str(next(model.parameters()).device)
    best = np.full(len(examples), -np.inf)
    text = [""] * len(examples)
    order = np.argsort([-len(i) for i in windows.ids], kind="stable")
    model.eval()
    for low in range(0, len(order), batch):
        rows = order[low : low + batch]
        with torch.inference_mode(), common.autocast(torch, device, device.startswith("cuda")):
            out = model(**tensors(torch, windows, rows, tokenizer.pad_token_id or 0, device))
            value, first, last = _best_spans(torch, out, windows, rows, device)
        for r, v, a, b in zip(rows, value, first, last):
            owner = windows.owner[r]
            if v > best[owner]:
                best[owner] = v
                place, example = windows.offsets[r], examples[owner]
                context = f"{header} {example.context}" if header else example.context
                text[owner] = context[place[a, 0] : place[b, 1]]
    return {e.id: t for e, t in zip(examples, text)}


def _best_spans(torch: Any, out: Any, windows: Windows, rows: Ints, device: str) -> Any:
    """Value, first and last token of each row's best span inside the context."""
    start, end = out.start_logits.float(), out.end_logits.float()
    n, width = start.shape
    real = np.zeros((n, width), bool)
    for i, r in enumerate(rows):
        real[i, : len(windows.offsets[r])] = windows.offsets[r][:, 0] >= 0
    known = torch.from_numpy(real).to(device)
    low = float("-inf")
    pair = start.masked_fill(~known, low)[:, :, None] + end.masked_fill(~known, low)[:, None]
    allowed = torch.ones(width, width, dtype=torch.bool, device=device)
    allowed = allowed.triu() & ~allowed.triu(LONGEST_ANSWER)
    value, at = pair.masked_fill(~allowed, low).flatten(1).max(-1)
    at = at.cpu().numpy()
    return value.cpu().numpy(), at // width, at % width


def train(
    source: str,
    training: Sequence[Example],
    development: Sequence[Example],
    out: Path,
    recipe: SpanTraining,
    *,
    device: str | None = None,
    resume: bool = False,
    say: common.Say = common.quiet,
) -> dict[str, Any]:
    """Fine-tune, keep the checkpoint with the best F1 in `out`, and give its scores.

    `out` loads with plain transformers. After every epoch the state goes to `out/resume`, from
    which `resume=True` goes on; it is removed at the end. Training questions whose answer is not
    where `answer_start` says are left out and counted (`misplaced`).
    """
    torch, place = common.start(recipe.seed, device)
    if out.exists() and any(out.iterdir()) and not resume:
        raise DataError(
            f"{out}: the folder is not empty. Continue with --resume, or choose another: --out DIR"
        )
    held = _held(out) if resume else None
    if resume and held is None and (out / "training.json").is_file():
        say(f"{out}: this training is finished")
        return _finished(out, recipe)
    good, misplaced = checks.well_placed(training)
    weights = source if held is None else str(held)
    tokenizer, model = checks.load_encoder(torch, source, weights)
    checks.check_windows(tokenizer, model, recipe, [*good, *development])
    if misplaced:
        say(
            f"{len(misplaced):,} questions left out: their answer is not where answer_start says "
            f"(first: {misplaced[0].id!r})"
        )
    model.to(place)
    job = _Job(torch, model, tokenizer, recipe, place, out, say)
    return {**job.run(good, list(development), held), "misplaced": len(misplaced)}


def _held(out: Path) -> Path | None:
    """The state to go on from; its successor when exchanging the two was cut off."""
    held, new = out / "resume", out / "resume.new"
    if not held.exists() and (new / "state.json").is_file():
        new.rename(held)
    return held if (held / "state.json").is_file() else None


def _history(card: Path, recipe: SpanTraining) -> list[dict[str, Any]]:
    """The epochs already done, if they were trained in the same way."""
    found = json.loads(card.read_text(encoding="utf-8"))
    if found["recipe"] != recipe.model_dump():
        raise RunError(
            f"{card.parent}: was begun with other settings ({found['recipe']}). Give the same "
            "ones, or choose another folder with: --out DIR"
        )
    return list(found["history"])


def _finished(out: Path, recipe: SpanTraining) -> dict[str, Any]:
    """What a training gave that ended before."""
    history = _history(out / "training.json", recipe)
    if len(history) < recipe.epochs:
        raise RunError(
            f"{out}: {len(history)} of {recipe.epochs} epochs are done, but the state to continue "
            "from is gone. Begin again in another folder with: --out DIR"
        )
    return _result(out, history, recipe)


def _result(out: Path, history: list[dict[str, Any]], recipe: SpanTraining) -> dict[str, Any]:
    best = max(history, key=lambda row: row["f1"])
    return {"out": str(out), "best": best, "history": history, "recipe": recipe.model_dump()}


@dataclass
class _Job:
    """One training run."""

    torch: Any
    model: Any
    tokenizer: Any
    recipe: SpanTraining
    device: str
    out: Path
    say: common.Say

    def run(self, training: list[Example], dev: list[Example], held: Path | None) -> dict[str, Any]:
        windows = self._windows(training)
        usable = np.flatnonzero(windows.answer[:, 0] >= 0)
        if not len(usable):
            raise DataError("train span: no answer lies within a window. Check answer_start.")
        self.say(f"{len(training):,} questions, {len(usable):,} windows with an answer")
        dev_windows = self._windows(dev)
        steps = self.recipe.epochs * -(-len(usable) // self.recipe.batch)
        optimizer = self._optimizer()
        history = self._restore(optimizer, held) if held else []
        for epoch in range(len(history), self.recipe.epochs):
            loss = self._epoch(windows, usable, epoch, steps, optimizer)
            said = predict(self.model, self.tokenizer, dev, dev_windows, header=self.recipe.header)
            row = {"epoch": epoch + 1, "loss": loss, **score(said, dev)}
            self.say(
                f"epoch {epoch + 1}: loss {loss:.3f}  exact {row['exact']:.2f}  F1 {row['f1']:.2f}"
            )
            best = all(row["f1"] > earlier["f1"] for earlier in history)
            history.append(row)
            self._keep(history, optimizer, best=best)
        for state in ("resume", "resume.new", "resume.old"):
            shutil.rmtree(self.out / state, ignore_errors=True)
        return _result(self.out, history, self.recipe)

    def _windows(self, examples: list[Example]) -> Windows:
        r = self.recipe
        return make_windows(
            self.tokenizer, examples, length=r.length, stride=r.stride, header=r.header
        )

    def _optimizer(self) -> Any:
        decayed = [p for p in self.model.parameters() if p.ndim > 1]
        plain = [p for p in self.model.parameters() if p.ndim <= 1]
        groups = [
            {"params": decayed, "weight_decay": self.recipe.weight_decay},
            {"params": plain, "weight_decay": 0.0},
        ]
        fused = self.device.startswith("cuda")
        return self.torch.optim.AdamW(groups, lr=self.recipe.learning_rate, fused=fused)

    def _epoch(
        self, windows: Windows, usable: Ints, epoch: int, steps: int, optimizer: Any
    ) -> float:
        torch, recipe = self.torch, self.recipe
        order = usable[common.shuffled(len(usable), recipe.seed, epoch)]
        lengths = np.asarray([len(ids) for ids in windows.ids])
        plan = common.like_lengths(order, lengths, recipe.batch, recipe.seed, epoch)
        torch.manual_seed(recipe.seed * 1_000 + epoch)
        self.model.train()
        total = torch.zeros((), device=self.device)
        for k, rows in enumerate(plan):
            step = epoch * len(plan) + k
            share = common.linear_schedule(step, steps, recipe.warmup)
            loss = self._loss(windows, rows)
            common.descend(torch, self.model, optimizer, loss, recipe.learning_rate * share)
            total += loss.detach()
        return float(total) / max(1, len(plan))

    def _loss(self, windows: Windows, rows: Ints) -> Any:
        torch = self.torch
        inputs = tensors(torch, windows, rows, self.tokenizer.pad_token_id or 0, self.device)
        target = torch.from_numpy(windows.answer[rows]).to(self.device)
        with common.autocast(torch, self.device, self.device.startswith("cuda")):
            out = self.model(**inputs)
        low = torch.finfo(torch.float32).min
        hidden = inputs["attention_mask"] == 0
        parts = [
            torch.nn.functional.cross_entropy(logits.float().masked_fill(hidden, low), target[:, k])
            for k, logits in enumerate((out.start_logits, out.end_logits))
        ]
        return (parts[0] + parts[1]) / 2

    def _keep(self, history: list[dict[str, Any]], optimizer: Any, *, best: bool) -> None:
        """The best checkpoint in `out`, the state to go on from in `out/resume`.

        The state is written beside the last one and takes its place when it is whole.
        """
        card = {"recipe": self.recipe.model_dump(), "history": history}
        held, old = self.out / "resume.new", self.out / "resume.old"
        for state in (held, old):
            shutil.rmtree(state, ignore_errors=True)
        for folder in ([self.out] if best else []) + [held]:
            folder.mkdir(parents=True, exist_ok=True)
            self.model.save_pretrained(folder, safe_serialization=True)
            self.tokenizer.save_pretrained(folder)
        from safetensors.torch import save_file

        moments = {f"{k}.{n}": t for k, n, t in _moments(optimizer)}
        save_file(moments, str(held / "optimizer.safetensors"))
        (held / "state.json").write_text(json.dumps(card) + "\n", encoding="utf-8")
        if (self.out / "resume").exists():
            (self.out / "resume").rename(old)
        held.rename(self.out / "resume")
        shutil.rmtree(old, ignore_errors=True)
        (self.out / "training.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")

    def _restore(self, optimizer: Any, held: Path) -> list[dict[str, Any]]:
        """Moments and history of the epochs already done."""
        from safetensors.torch import load_file

        history = _history(held / "state.json", self.recipe)
        saved = load_file(str(held / "optimizer.safetensors"))
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for number, parameter in enumerate(parameters):
            for name in ("exp_avg", "exp_avg_sq", "step"):
                if f"{number}.{name}" in saved:
                    value = saved[f"{number}.{name}"]
                    keep = name != "step" or self.device.startswith("cuda")
                    optimizer.state[parameter][name] = value.to(self.device) if keep else value
        return history


def _moments(optimizer: Any) -> Iterator[tuple[int, str, Any]]:
    """Every tensor of the optimizer's state with its parameter's number."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    for number, parameter in enumerate(parameters):
        for name, value in optimizer.state[parameter].items():
            yield number, name, value.detach().cpu().contiguous()

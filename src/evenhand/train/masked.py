"""Continued masked-language-model training: counterfactual data augmentation and dropout.

    cda       every sentence that names a group is put beside its counterfactual (two-sided), or
              replaced by it half of the time (one-sided); swaps are those of `evenhand.words.swaps`
              (Zmigrod et al. 2019; Webster et al. 2020)
    dropout   the same training with attention dropout .15 and hidden .20 (Webster et al. 2020)
    plain     the same training with neither: the control that says what training alone did

Loss: mean cross-entropy of 15 % masked pieces (80 % mask, 10 % random, 10 % kept; Devlin et al.
2019). The result is an ordinary checkpoint that loads with plain transformers.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from evenhand.errors import DataError, ModelError
from evenhand.train import common
from evenhand.words.swaps import swap, swap_religion

METHODS = ("cda", "dropout", "plain")
SIDES = ("one", "two")
AXES = ("gender", "religion")
RELIGIONS = ("christian", "jewish", "muslim")
ATTENTION, HIDDEN = 0.15, 0.20
MASKED = 0.15
SILENCE = 10.0
"""Seconds after which a step says how far it is, where none has for so long."""
Ints = npt.NDArray[np.int64]


class MaskedTraining(common.Training):
    """Settings of a training run; `warmup` is a share of the steps."""

    method: str = Field(default="cda", description="cda, dropout or plain.")
    axis: str = Field(default="gender", description="cda: gender or religion.")
    sides: str = Field(default="two", description="cda: two (both versions) or one (drawn).")
    steps: int = Field(default=500, ge=1, description="Optimiser steps.")
    batch: int = Field(default=64, ge=1, description="Texts per step.")
    length: int = Field(default=128, ge=8, description="Pieces per text.")
    learning_rate: float = Field(default=5e-5, gt=0, description="Peak.")
    warmup: float = Field(default=0.06, ge=0, le=1)
    weight_decay: float = 0.01
    attention: float = Field(default=ATTENTION, ge=0, lt=1, description="dropout: of attention.")
    hidden: float = Field(default=HIDDEN, ge=0, lt=1, description="dropout: of hidden states.")
    names: bool = True
    seed: int = Field(default=0, ge=0, description="Same seed, same weights.")

    @model_validator(mode="after")
    def _known(self) -> MaskedTraining:
        for name, accepted in (("method", METHODS), ("sides", SIDES), ("axis", AXES)):
            common.require_known(name, getattr(self, name), accepted, "train masked")
        return self


@dataclass(frozen=True)
class Augmented:
    """Texts to train on, and how many of them were exchanged or left out."""

    texts: tuple[str, ...]
    counterfactual: int
    doubtful: int


def augment(texts: Sequence[str], recipe: MaskedTraining) -> Augmented:
    """Counterfactual data augmentation of sentences.

    A text with a doubtful swap stays as it is. Two-sided: text and counterfactual both. One-sided:
    one of the two, by the toss of a seeded coin.

    >>> augment(["She left.", "It rained."], MaskedTraining(sides="two")).texts
    ('She left.', 'He left.', 'It rained.')
    """
    rng = np.random.default_rng(recipe.seed)
    out: list[str] = []
    made = doubtful = 0
    for text in texts:
        other, unsure = _counterfactual(text, recipe, rng)
        doubtful += unsure
        if other is None:
            out.append(text)
        elif recipe.sides == "two":
            out += [text, other]
            made += 1
        else:
            taken = bool(rng.random() < 0.5)
            out.append(other if taken else text)
            made += taken
    return Augmented(tuple(out), made, doubtful)


def _counterfactual(
    text: str, recipe: MaskedTraining, rng: np.random.Generator
) -> tuple[str | None, bool]:
    """The exchanged text, or None; and whether it was left out as doubtful."""
    if recipe.axis == "gender":
        found = swap(text, names=recipe.names)
        return (found.swapped if found.clean else None), bool(found.changes and found.doubtful)
    for source in rng.permutation(RELIGIONS):
        others = [r for r in RELIGIONS if r != source]
        made = swap_religion(text, str(source), str(rng.choice(others)))
        if made.clean:
            return made.swapped, False
    return None, False


def split(texts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Texts to train on and, every twentieth, texts to measure the loss on."""
    held = [t for i, t in enumerate(texts) if i % 20 == 19]
    return [t for i, t in enumerate(texts) if i % 20 != 19], held


def train(
    base: str,
    texts: Sequence[str],
    out: Path,
    recipe: MaskedTraining | None = None,
    *,
    device: str | None = None,
    say: common.Say = common.quiet,
) -> dict[str, Any]:
    """Train on and save an ordinary checkpoint; gives its card.

    Args:
        base: a folder or Hub id of a masked language model.
        texts: passages; every twentieth is kept back to measure the loss on.
        device: cuda or cpu; by default whichever is there.

    Raises:
        DataError: too few texts, or no text that names a group to exchange.
        ModelError: training left the weights as they were (defect D16 elsewhere: classes that
            only load the base and score it under another name).
    """
    recipe = recipe or MaskedTraining()
    common.require_new(out)
    own, held = split(texts)
    if len(held) < 2:
        raise DataError(f"{len(texts)} texts are too few to train on. Accepted: 40 or more.")
    augmented = augment(own, recipe) if recipe.method == "cda" else Augmented(tuple(own), 0, 0)
    if recipe.method == "cda" and not augmented.counterfactual:
        raise DataError(
            f"no text names a group of {recipe.axis!r} that can be exchanged, so augmentation "
            "would leave the data as it is. Give other texts with: --texts FILE"
        )
    torch, device = common.start(recipe.seed, device)
    tokenizer, model = common.load_base(
        "masked", "AutoModelForMaskedLM", base, dtype=torch.float32, attn_implementation="eager"
    )
    model.to(device)
    began = {k: v.detach().clone() for k, v in model.state_dict().items()}
    before = held_out_loss(torch, model, tokenizer, held, recipe.length, device)
    usual = _set_dropout(model, recipe) if recipe.method == "dropout" else {}
    say(f"{len(augmented.texts)} texts, {augmented.counterfactual} of them counterfactual")
    losses = _fit(torch, model, tokenizer, augmented.texts, recipe, device, say)
    _restore(model, usual)
    moved = sum(float((v - began[k]).abs().max()) > 0 for k, v in model.state_dict().items())
    if not moved or not np.isfinite(losses[-1]):
        raise ModelError(f"training changed {moved} weights and ended with loss {losses[-1]}.")
    after = held_out_loss(torch, model, tokenizer, held, recipe.length, device)
    card = {
        "task": "masked language model",
        "base": Path(base).name,
        "recipe": recipe.model_dump(),
        "texts": len(augmented.texts),
        "counterfactual": augmented.counterfactual,
        "doubtful_left_as_they_are": augmented.doubtful,
        "held_out_texts": len(held),
        "held_out_loss_before": before,
        "held_out_loss_after": after,
        "weights_changed": moved,
        "weights": len(began),
        "losses": losses,
        "dropout_restored": usual,
    }
    common.save(model, tokenizer, out, card)
    return card


def _set_dropout(model: Any, recipe: MaskedTraining) -> dict[str, float]:
    """Raise dropout in the configuration and in every module; gives the usual values."""
    config = model.config
    usual = {
        name: float(getattr(config, name))
        for name in ("attention_probs_dropout_prob", "hidden_dropout_prob")
        if hasattr(config, name)
    }
    if len(usual) < 2:
        raise ModelError(
            f"{type(model).__name__}: its configuration has no attention and hidden dropout. "
            "Accepted: BERT- and RoBERTa-like models."
        )
    _apply(model, recipe.attention, recipe.hidden)
    return usual


def _restore(model: Any, usual: dict[str, float]) -> None:
    if usual:
        _apply(model, usual["attention_probs_dropout_prob"], usual["hidden_dropout_prob"])


def _apply(model: Any, attention: float, hidden: float) -> None:
    """Set the dropout of attention modules and of all others."""
    model.config.attention_probs_dropout_prob = attention
    model.config.hidden_dropout_prob = hidden
    for path, module in model.named_modules():
        if type(module).__name__ == "Dropout":
            module.p = attention if path.endswith("self.dropout") else hidden


def _fit(
    torch: Any,
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    recipe: MaskedTraining,
    device: str,
    say: common.Say,
) -> list[float]:
    """Optimise; gives the mean loss of every tenth of the run."""
    encoded = _encode(tokenizer, texts, recipe.length)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    per_epoch = max(1, len(encoded) // recipe.batch)
    every = max(1, recipe.steps // 10)
    losses, recent = [], []
    begun = told = time.monotonic()
    model.train()
    for step in range(recipe.steps):
        epoch, number = divmod(step, per_epoch)
        order = common.shuffled(len(encoded), recipe.seed, epoch)
        rows = order[number * recipe.batch : (number + 1) * recipe.batch]
        rng = np.random.default_rng([recipe.seed, 7, step])
        loss = _loss(torch, model, tokenizer, [encoded[i] for i in rows], rng, device)
        share = common.linear_schedule(step, recipe.steps, recipe.warmup)
        common.descend(torch, model, optimizer, loss, recipe.learning_rate * share)
        recent.append(loss.detach())
        if (step + 1) % every == 0 or step + 1 == recipe.steps:
            losses.append(float(torch.stack(recent).mean()))
            recent = []
            say(f"step {step + 1} of {recipe.steps}: loss {losses[-1]:.3f}")
            told = time.monotonic()
        elif step == 0 or time.monotonic() - told > SILENCE:
            told = time.monotonic()
            left = (told - begun) / (step + 1) * (recipe.steps - step - 1)
            say(f"step {step + 1} of {recipe.steps}, about {left:,.0f} s left")
    model.eval()
    return losses


def _encode(tokenizer: Any, texts: Sequence[str], length: int) -> list[list[int]]:
    tokenizer.backend_tokenizer.no_padding()
    made = tokenizer(list(texts), truncation=True, max_length=length)["input_ids"]
    return [list(ids) for ids in made if len(ids) > 3]


def _loss(
    torch: Any, model: Any, tokenizer: Any, rows: Sequence[list[int]], rng: Any, device: str
) -> Any:
    ids, mask, labels = masked_batch(tokenizer, rows, rng)

    def to(array: Ints) -> Any:
        return torch.from_numpy(array).to(device)

    hidden = model(input_ids=to(ids), attention_mask=to(mask)).logits
    return torch.nn.functional.cross_entropy(
        hidden.flatten(0, 1).float(), to(labels).flatten(), ignore_index=-100
    )


def masked_batch(
    tokenizer: Any, rows: Sequence[list[int]], rng: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Inputs, attention mask and labels (-100: not asked) of one masked batch."""
    width = max(map(len, rows))
    ids = np.full((len(rows), width), tokenizer.pad_token_id or 0, np.int64)
    mask = np.zeros_like(ids)
    for i, row in enumerate(rows):
        ids[i, : len(row)], mask[i, : len(row)] = row, 1
    free = mask.astype(bool) & ~np.isin(ids, tokenizer.all_special_ids)
    chosen = free & (rng.random(ids.shape) < MASKED)
    for line in np.flatnonzero(~chosen.any(axis=1) & free.any(axis=1)):  # at least one a text
        chosen[line, rng.choice(np.flatnonzero(free[line]))] = True
    labels = np.where(chosen, ids, -100)
    draw = rng.random(ids.shape)
    ids = np.where(chosen & (draw < 0.8), tokenizer.mask_token_id, ids)
    random = rng.integers(0, len(tokenizer), ids.shape)
    return np.where(chosen & (draw >= 0.9), random, ids), mask, labels


def held_out_loss(
    torch: Any, model: Any, tokenizer: Any, texts: Sequence[str], length: int, device: str
) -> float:
    """Mean cross-entropy of masked pieces in texts kept back; the same masks every time."""
    values = text_losses(torch, model, tokenizer, texts, length, device)
    return float(values[:, 0].sum() / values[:, 1].sum())


def text_losses(
    torch: Any, model: Any, tokenizer: Any, texts: Sequence[str], length: int, device: str
) -> npt.NDArray[np.float64]:
    """Per text: summed cross-entropy of its masked pieces (all by the mask token), their number."""
    encoded = _encode(tokenizer, texts, length)
    was = model.training
    model.eval()
    out = []
    with torch.inference_mode():
        for low in range(0, len(encoded), 32):
            rows = encoded[low : low + 32]
            rng = np.random.default_rng([11, low])
            ids, mask, labels = masked_batch(tokenizer, rows, rng)
            ids = np.where(labels != -100, tokenizer.mask_token_id, ids)
            at = np.nonzero(labels != -100)
            logits = model(
                input_ids=torch.from_numpy(ids).to(device),
                attention_mask=torch.from_numpy(mask).to(device),
            ).logits[at]
            target = torch.from_numpy(labels[at]).to(device)
            nll = torch.nn.functional.cross_entropy(logits.float(), target, reduction="none")
            found = np.zeros((len(rows), 2))
            np.add.at(found[:, 0], at[0], nll.double().cpu().numpy())
            np.add.at(found[:, 1], at[0], 1.0)
            out.append(found)
    model.train(was)
    return np.concatenate(out)

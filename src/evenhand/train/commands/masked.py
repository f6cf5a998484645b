"""`evenhand train masked`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evenhand.corpora.text import read_texts
from evenhand.probes.reading import Shown
from evenhand.runner.progress import Progress
from evenhand.train import masked
from evenhand.train.commands.base import Command, Trained
from evenhand.train.common import Say


class TrainMasked(masked.MaskedTraining, Command):
    """Continue training a masked language model: counterfactual augmentation, or more dropout.

    The folder loads with plain transformers; train a task on it: evenhand train choice OUT
    """

    model: str = Field(description="A masked language model: a folder or Hub id.")
    texts: Path = Field(description="Plain text, one passage a line (.gz, .xz too).")
    limit: int = Field(default=200_000, ge=40, description="Use at most this many passages.")
    device: str | None = Field(default=None, description="cpu, cuda; default: a GPU if present.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        passages = read_texts(self.texts, limit=self.limit, words=self.length)
        recipe = self.settings(masked.MaskedTraining)
        card = masked.train(self.model, passages, self.out, recipe, device=self.device, say=say)
        line = (
            f"held-out loss {card['held_out_loss_before']:.3f} -> "
            f"{card['held_out_loss_after']:.3f} nats, {card['counterfactual']} counterfactual "
            f"texts, {card['weights_changed']} of {card['weights']} tensors changed: {self.out}"
        )
        return Trained(card, (Shown(line),))

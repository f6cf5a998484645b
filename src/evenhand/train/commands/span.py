"""`evenhand train span`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evenhand.probes.reading import Shown
from evenhand.runner.progress import Progress
from evenhand.train import span
from evenhand.train.commands.base import EncoderCommand, Trained
from evenhand.train.common import Say
from evenhand.train.squad import read_squad


class TrainSpan(span.SpanTraining, EncoderCommand):
    """Fine-tune an encoder to answer questions with spans of the text.

    Keeps the checkpoint with the best F1; the folder loads with plain transformers and with
    evenhand: evenhand probe underspecified OUT
    """

    train: Path = Field(description="SQuAD-format training file (.xz, .gz).")
    limit: int | None = Field(default=None, ge=1, description="Use only so many questions.")
    resume: bool = Field(default=False, description="Go on after the last finished epoch.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        card = span.train(
            self.model, read_squad(self.train, self.limit), read_squad(self.dev, self.limit),
            self.out, self.settings(span.SpanTraining), device=self.device, resume=self.resume,
            say=say,
        )  # fmt: skip
        best = card["best"]
        line = f"F1 {best['f1']:.2f}, exact {best['exact']:.2f} after epoch {best['epoch']}"
        return Trained(card, (Shown(f"{line}: {self.out}"),))

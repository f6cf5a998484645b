"""`evenhand train regard`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evenhand.probes.reading import Shown
from evenhand.runner.progress import Progress
from evenhand.train import regard
from evenhand.train.commands.base import EncoderCommand, Trained
from evenhand.train.common import Say


class TrainRegard(regard.RegardTraining, EncoderCommand):
    """Fine-tune an encoder to say how a person is regarded (negative, neutral, positive).

    The folder is ready for: evenhand probe generation MODEL --set scorer=OUT
    """

    train: tuple[Path, ...] = Field(description="nlg-bias TSV: label, text (repeatable).")
    test: Path = Field(description="TSV to judge the chosen epoch on, once.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        card = regard.train(
            self.model, list(self.train), self.dev, self.test, self.out,
            self.settings(regard.RegardTraining), device=self.device, say=say,
        )  # fmt: skip
        found = card["test"]
        line = (
            f"test accuracy {found['accuracy']:.2%} [{found['low']:.0%}, {found['high']:.0%}] on "
            f"{found['n']} texts (most frequent class {found['majority']:.0%}): {self.out}"
        )
        return Trained(card, (Shown(line),))

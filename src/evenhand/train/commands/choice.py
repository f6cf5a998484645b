"""`evenhand train choice`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evenhand.probes.reading import Shown
from evenhand.runner.progress import Progress
from evenhand.train import choice
from evenhand.train.commands.base import EncoderCommand, Trained
from evenhand.train.common import Say


class TrainChoice(choice.ChoiceTraining, EncoderCommand):
    """Fine-tune an encoder to choose the right one of three answers (Social IQa).

    The folder is ready for: evenhand probe discovery OUT --set generator=MASKED_MODEL
    """

    train: Path = Field(description="Social IQa training file (.jsonl, .xz).")
    paper: bool = Field(default=False, description="SODAPOP's setting: 2 epochs, 2e-5, 3.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        own = choice.ChoiceTraining
        recipe = own.published(self.seed, self.limit) if self.paper else self.settings(own)
        card = choice.train(
            self.model, self.train, self.dev, self.out, recipe, device=self.device, say=say
        )
        line = f"dev accuracy {card['dev_accuracy']:.2%} (chance 33.33%): {self.out}"
        return Trained(card, (Shown(line),))

"""`evenhand train span`, `choice` and `regard`: encoders fine-tuned for a task."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from evenhand.probes.reading import Shown
from evenhand.runner.progress import Progress
from evenhand.train import choice, regard, span
from evenhand.train.commands.base import EncoderCommand, Trained
from evenhand.train.common import Say
from evenhand.train.squad import read_squad


class TrainSpan(span.SpanTraining, EncoderCommand):
    """Fine-tune an encoder to answer questions with spans of the text.

    Keeps the checkpoint with the best F1; the folder loads with plain transformers and with
    evenhand: evenhand probe underspecified OUT
    """

    train: Path = Field(description="SQuAD-format training file (.xz, .gz).")
    limit: int | None = Field(default=None, ge=1, description="Use only this many questions.")
    resume: bool = Field(default=False, description="Continue after the last finished epoch.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        card = span.train(
            self.model,
            read_squad(self.train, self.limit),
            read_squad(self.dev, self.limit),
            self.out,
            self.settings(span.SpanTraining),
            device=self.device,
            resume=self.resume,
            say=say,
        )
        best = card["best"]
        line = f"F1 {best['f1']:.2f}, exact {best['exact']:.2f} after epoch {best['epoch']}"
        return Trained(card, (Shown(f"{line}: {self.out}"),))


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
        line = f"dev accuracy {100 * card['dev_accuracy']:.2f} % (chance 33.33 %): {self.out}"
        return Trained(card, (Shown(line),))


class TrainRegard(regard.RegardTraining, EncoderCommand):
    """Fine-tune an encoder to say how a person is regarded (negative, neutral, positive).

    The folder is ready for: evenhand probe generation MODEL --set scorer=OUT
    """

    train: tuple[Path, ...] = Field(description="nlg-bias TSV: label, text (repeatable).")
    test: Path = Field(description="TSV to judge the chosen epoch on, once.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        card = regard.train(
            self.model,
            list(self.train),
            self.dev,
            self.test,
            self.out,
            self.settings(regard.RegardTraining),
            device=self.device,
            say=say,
        )
        found = card["test"]
        line = (
            f"test accuracy {100 * found['accuracy']:.2f} % [{100 * found['low']:.0f} %, "
            f"{100 * found['high']:.0f} %] on {found['n']} texts (most frequent class "
            f"{100 * found['majority']:.0f} %): {self.out}"
        )
        return Trained(card, (Shown(line),))

"""`evenhand train words`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from evenhand import corpora
from evenhand.errors import SpecError
from evenhand.probes.reading import Shown
from evenhand.runner.progress import Progress
from evenhand.train.commands.base import Command, Trained
from evenhand.train.common import Say
from evenhand.train.words import WordTraining, train_words


class TrainWords(WordTraining, Command):
    """Train skip-gram word2vec or fastText vectors, on all of a corpus or a balanced sample.

    The folder is ready for: evenhand measure association --vectors OUT --tests weat7
    """

    positional: ClassVar[tuple[str, ...]] = ("corpus",)

    corpus: tuple[Path, ...] = Field(description="Cleaned text, or a folder of labels.")
    also: tuple[str, ...] = Field(default=(), description="fastText: vectors from n-grams.")
    balance: str | None = Field(default=None, description="reduce or increase.")
    share: float | None = Field(default=None, description="Share of affected lines that stay.")
    sets: str | None = Field(default=None, description="Word sets to balance by.")
    fold: bool = Field(default=False, description="Lower-case the text while matching sets.")
    format: tuple[str, ...] = Field(default=(), description="Also write: text, binary, glove.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        card = train_words(
            self.text(progress),
            self.out,
            self.settings(WordTraining),
            formats=self.format,
            also=self.also,
            progress=progress,
        )
        line = f"{card['words']} words from {card['lines']} lines, {card['tokens']} tokens"
        return Trained(card, (Shown(f"{line}: {self.out}"),))

    def text(self, progress: Progress) -> corpora.Corpus | corpora.BalancedView:
        """The whole corpus, or the balanced sample that was asked for."""
        if self.balance is None and self.share is None:
            return corpora.open_corpus(self.corpus)
        if self.balance is None or self.share is None:
            raise SpecError(
                "train words: --balance and --share go together, e.g. --balance reduce --share 0.3"
            )
        labels = corpora.labels_of(self.corpus, self.sets, fold=self.fold, progress=progress)
        return corpora.balanced(labels, self.balance, self.share, seed=self.seed)

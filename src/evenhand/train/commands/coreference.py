"""`evenhand train coreference`."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from pydantic import Field

from evenhand.models.vectors.files import open_vectors, resolve_vectors
from evenhand.probes.reading import Shown
from evenhand.probes.shared.coreference import gap_table
from evenhand.runner.progress import Progress
from evenhand.strict import plain
from evenhand.train import common
from evenhand.train import coreference as job
from evenhand.train.commands.base import Command, Trained
from evenhand.train.coreference_data import HeadMatch, read_corpora, read_winobias
from evenhand.train.winobias import winobias
from evenhand.words.conll import read_conll, write_conll
from evenhand.writing import drafted


class TrainCoreference(job.CoreferenceTraining, Command):
    """Train an end-to-end coreference model (Lee et al. 2017) on frozen vectors.

    Meant for a GPU; on a CPU use --limit, --hidden and --feed to make it small. Prints its scores
    on held-out OntoGUM beside the head-match baseline. Predictions: OUT/test.conll
    """

    positional: ClassVar[tuple[str, ...]] = ("vectors",)

    vectors: str = Field(description="Word vectors: a file, a folder, or glove-6b-50d.")
    ontogum: Path = Field(description="OntoGUM, joined CoNLL file; split by evenhand.")
    litbank: Path | None = Field(default=None, description="LitBank, added to training.")
    train: tuple[Path, ...] = Field(default=(), description="Further CoNLL-2012 files (OntoNotes).")
    winobias: Path | None = Field(default=None, description="WinoBias folder, to measure gaps.")
    epochs: int = Field(default=20, ge=1)
    limit: int | None = Field(default=None, ge=1, description="Use only this many documents.")
    device: str | None = Field(default=None, description="cpu, cuda; default: a GPU if present.")

    def train_now(self, say: common.Say, progress: Progress) -> Trained:
        common.require_new(self.out)
        found = read_corpora(self.ontogum, self.litbank)
        documents = found.train + [d for path in self.train for d in read_conll(path)]
        recipe = self.settings(job.CoreferenceTraining).model_copy(update={"seed": 0})
        model = job.train_coreference(
            open_vectors(resolve_vectors(self.vectors)),
            documents[: self.limit],
            found.dev[: self.limit],
            self.seed,
            recipe=recipe,
            device=self.device,
            say=say,
        )
        test = found.test[: self.limit]
        made = job.evaluate(model, test)
        scores = {"test": made["scores"], "head_match": job.evaluate(HeadMatch(), test)["scores"]}
        gaps = {} if self.winobias is None else winobias(model, read_winobias(self.winobias))
        model.card |= {**scores, "skipped": found.skipped}
        model.card |= {"winobias": plain(gaps)} if gaps else {}
        with drafted(self.out) as draft:
            model.save(draft)
            write_conll(made["predicted"], draft / "test.conll")
        ours, base = (part["mean"]["f1"] for part in scores.values())
        line = (
            f"mean F1 {ours:.3f} on {len(test)} held-out OntoGUM documents "
            f"(head match {base:.3f}): {self.out}"
        )
        tables = (gap_table(kind, part) for kind, part in gaps.items())
        return Trained({**model.card, "out": str(self.out)}, (Shown(line), *tables))

"""`evenhand train hate-speech`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from evenhand.errors import SpecError
from evenhand.models.vectors.files import open_vectors, resolve_vectors
from evenhand.probes.reading import Names, Seed
from evenhand.runner.progress import Progress
from evenhand.strict import plain
from evenhand.train import common
from evenhand.train import hate_speech as job
from evenhand.train.commands.base import Command, Trained
from evenhand.train.gaps import gap_tables
from evenhand.train.hate_speech_data import gender_groups, read_labelled, split
from evenhand.writing import drafted

HATEFUL = ("0", "1")


class TrainHateSpeech(job.HateSpeechTraining, Command):
    """Train the CNN of Kim (2014) on frozen vectors and measure its gaps between groups.

    A fixed fifth of the texts is kept for testing, a tenth decides when to stop. Groups: texts
    with male or female terms only, and a column of yours. Predictions: OUT/predictions.csv
    """

    positional: ClassVar[tuple[str, ...]] = ("vectors",)

    vectors: str = Field(description="Word vectors: a file, a folder, or glove-6b-50d.")
    data: Path = Field(description="Labelled texts: CSV, JSON lines, Parquet (.gz, .xz).")
    text: str = Field(default="tweet", description="Column of the texts.")
    label: str = Field(default="class", description="Column of the labels.")
    positive: Annotated[Names[str], Field(description="Labels that are hateful.")] = HATEFUL
    group: str = Field(default="", description="Column of a group, such as the dialect.")
    first: str = Field(default="", description="With --group: gap is FIRST - SECOND.")
    second: str = Field(default="", description="With --group: the other group.")
    seed: Seed = 0

    def train_now(self, say: common.Say, progress: Progress) -> Trained:
        common.require_new(self.out)
        if bool(self.group) != bool(self.first and self.second):
            raise SpecError("--group needs --first and --second: the two groups to compare.")
        texts = read_labelled(
            self.data, text=self.text, label=self.label, group=self.group, positive=self.positive
        )
        train, dev, test = split(texts)
        model = job.train_hate_speech(
            open_vectors(resolve_vectors(self.vectors)),
            train,
            dev,
            self.seed,
            recipe=self.settings(job.HateSpeechTraining),
            say=say,
        )
        gender = gender_groups(test)
        found = {"gender": job.hate_speech_gaps(model, test, gender)}
        if self.group:
            found["group"] = job.hate_speech_gaps(model, test, None, self.first, self.second)
        model.card["test"] = plain(found)
        with drafted(self.out) as draft:
            model.save(draft)
            job.write_predictions(model, test, gender, draft / "predictions.csv")
        shown = [
            part
            for name, gaps in found.items()
            for part in gap_tables(gaps, f"{name}: {gaps.first} - {gaps.second}")
        ]
        return Trained({**model.card, "out": str(self.out)}, tuple(shown))

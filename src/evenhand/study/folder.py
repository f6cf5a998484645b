"""The folder of a study: what each stage of each cell left behind.

    run.json  findings.json  report.html     as of any run
    inputs.json                              fingerprints of the data (`inputs`)
    corpus/                                  cleaned text and the flags of its lines
    cells/<cell>/vectors/                    words and vectors
    cells/<cell>/<stage>.json                one object of numbers per finished stage

A stage is finished when its file is there; files are written whole or not at all, so a study
that was stopped is resumed at the first missing one, and several machines may share the folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, RunError
from evenhand.models.loading.cache import file_digest
from evenhand.runner.files import replace
from evenhand.seals import broken, digests, read_sealed, sealed_text

VECTORS = "vectors"
PREPARING = ("corpus", VECTORS)
STAGES = ("corpus", VECTORS, "intrinsic", "hate_speech", "coreference")


@dataclass(frozen=True)
class StudyFolder:
    """Paths and stage results below one study folder."""

    root: Path

    @property
    def corpus(self) -> Path:
        return self.root / "corpus"

    def cell(self, name: str) -> Path:
        return self.root / "cells" / name

    def vectors(self, name: str) -> Path:
        return self.cell(name) / "vectors"

    def result(self, name: str, stage: str) -> Path:
        return self.cell(name) / f"{stage}.json"

    def done(self, name: str, stage: str, settings: Any = None) -> bool:
        """Whether the stage is finished, with these settings where it has any.

        A setting that the result does not know was added later; without it nothing was done
        differently, so it may be missing where it says nothing now.
        """
        if not self.result(name, stage).is_file():
            return False
        known = self.read(name, stage).get("settings")
        if stage in PREPARING or known == settings:
            return True
        if not isinstance(known, dict) or not isinstance(settings, dict):
            return False
        added = {key for key in settings if key not in known and settings[key] is None}
        return known == {key: value for key, value in settings.items() if key not in added}

    def write(self, name: str, stage: str, values: Mapping[str, Any]) -> None:
        """Keep a stage's numbers; its file says that the stage is finished.

        It is sealed, with the hashes of the files that a preparing stage leaves for others.
        """
        self.cell(name).mkdir(parents=True, exist_ok=True)
        made = self.made(name, stage)
        files = digests(self.root, (p for p in made.rglob("*") if p.is_file())) if made else None
        replace(self.result(name, stage), sealed_text(values, files).encode())

    def made(self, name: str, stage: str) -> Path | None:
        """The folder that a preparing stage fills."""
        return {"corpus": self.corpus, VECTORS: self.vectors(name)}.get(stage)

    def check(self, name: str, stage: str) -> None:
        """Refuse what a preparing stage left when it is not that any more."""
        wrong = broken(self.root, self.read(name, stage), file_digest)
        if wrong:
            raise RunError(
                f"{self.root / wrong}: damaged (it is not what the stage {stage!r} wrote). Remove "
                f"{str(self.result(name, stage))!r} and give the same command again."
            )

    def read(self, name: str, stage: str) -> dict[str, Any]:
        """A stage's numbers; empty when it is not finished."""
        path = self.result(name, stage)
        if not path.is_file():
            return {}
        try:
            return read_sealed(path)
        except DataError as error:
            raise RunError(f"{error} Remove it and give the same command again.") from error

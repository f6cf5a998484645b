"""`evenhand erase`: take a label out of a file of features, and check with a fresh classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from evenhand.mitigations.erasing import erasure
from evenhand.probes.reading import Result, Shown, Task
from evenhand.strict import INLINE


@dataclass(frozen=True)
class ErasedFile(Result):
    """What was erased, from which file, and where the map was written."""

    erased: erasure.Erased = field(metadata=INLINE)
    file: str
    out: str | None

    def shown(self) -> list[Shown]:
        rows = [[name, str(value)] for name, value in self.as_dict().items()]
        return [Shown("erase", ("what", "value"), rows)]


class Erase(Task):
    """Settings of the command."""

    name: ClassVar[str] = "erase"
    help: ClassVar[str] = """Erase a label from features (INLP or LEACE) and judge it.

    X is [n, d], y has one label per row, split is 0 train, 1 dev, 2 test. A fresh classifier reads
    the test rows before and after.
    """
    positional: ClassVar[tuple[str, ...]] = ("file",)

    file: Path = Field(description="An .npz file with X, y and optional split.")
    method: str = Field("leace", description="inlp or leace.")
    classifier: str = Field(
        "lsq", description="inlp: lsq (closed form) or svc (LinearSVC, as published)."
    )
    rounds: int = Field(80, ge=1, description="inlp: how many classifiers.")
    out: Path | None = Field(None, description="Write P (d x d) to this .npz file.")
    stop_at_majority: bool = Field(
        False, description="inlp: stop once a fresh classifier reads nothing."
    )
    seed: int = Field(0, ge=0, description="Seed of the split, where the file has none.")

    def work(self, say: Callable[[str], None]) -> ErasedFile:
        found = erasure.erase(
            erasure.read_features(self.file, self.seed),
            **self.only("method", "classifier", "rounds", "stop_at_majority"),
        )
        if self.out is not None:
            found.save(self.out)
        return ErasedFile(found, str(self.file), str(self.out) if self.out else None)

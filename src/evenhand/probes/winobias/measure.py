"""`evenhand measure coreference`: a system's CoNLL output scored against gold, and its gap."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.errors import DataError
from evenhand.probes.reading import Reader, Resamples, Result, Seed, Shown, listed
from evenhand.probes.winobias import coreference as scored
from evenhand.probes.winobias.coreference import Score, ScoreGap, TypeGaps, gap_table
from evenhand.strict import OPTIONAL
from evenhand.words.conll import Document, read_conll


@dataclass(frozen=True, kw_only=True)
class CoreferenceResult(Result):
    """Scores of a prediction file, and the gap to a second one where there is one."""

    measure: ClassVar[str] = "coreference"

    scores: Sequence[Score]
    accuracy: float
    n_documents: int
    n_without_prediction: int
    anti_scores: Sequence[Score] | None = field(default=None, metadata=OPTIONAL)
    gaps: Sequence[ScoreGap] | None = field(default=None, metadata=OPTIONAL)
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        keys = ("metric", "precision", "recall", "f1", "f1_low", "f1_high")
        yield listed(f"{self.n_documents} documents", self.scores, keys)
        if self.gaps is not None:
            yield gap_table("gap", TypeGaps(self.n_documents, self.gaps))


class CoreferenceReader(Reader):
    name = "coreference"
    help = "MUC, B3, CEAF-e and their mean with intervals; with --anti-*: the WinoBias gap."
    positional = ("predictions",)

    predictions: Path = Field(description="A system's output, CoNLL-2012.")
    gold: Path = Field(description="The same documents with gold clusters.")
    anti_predictions: Path | None = Field(
        None, description="Output on the anti-stereotypical documents."
    )
    anti_gold: Path | None = Field(None, description="Their gold clusters.")
    singletons: bool = Field(False, description="Count clusters with a single mention, too.")
    resamples: Resamples = 1_000
    seed: Seed = 0

    def read(self) -> CoreferenceResult:
        if (self.anti_gold is None) != (self.anti_predictions is None):
            raise DataError("gap: --anti-gold and --anti-predictions belong together; pass both.")
        again = self.only("resamples", "seed")
        pairs = _read(self.gold, self.predictions)
        counts = scored.counts_of(pairs, singletons=self.singletons)
        anti_scores = rows = None
        if self.anti_gold is not None and self.anti_predictions is not None:
            others = _read(self.anti_gold, self.anti_predictions)
            anti = scored.counts_of(others, singletons=self.singletons)
            rows = scored.gaps(counts, anti, **again)
            rows.append(scored.accuracy_gap(scored.linked(pairs), scored.linked(others), **again))
            anti_scores = scored.summary(anti, **again)
        return CoreferenceResult(
            scores=scored.summary(counts, **again),
            accuracy=float(scored.linked(pairs).mean()),
            n_documents=len(pairs),
            n_without_prediction=sum(not p.clusters for _, p in pairs),
            settings=self.only("singletons", "resamples", "seed"),
            anti_scores=anti_scores,
            gaps=rows,
        )


def _read(gold: Path, said: Path) -> list[tuple[Document, Document]]:
    return scored.aligned(read_conll(gold), read_conll(said), str(said))


READERS = (CoreferenceReader,)

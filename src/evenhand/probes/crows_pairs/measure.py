"""CrowS-Pairs from files: the benchmark's pairs, and scores that somebody has already made."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.corpora.tables import Table, from_columns, read_table
from evenhand.errors import DataError, SpecError, unknown
from evenhand.metrics.crows_pairs import preferences, stereotype_score
from evenhand.probes.base import Measured, Placebo
from evenhand.probes.logs import Log
from evenhand.probes.reading import (
    BenchmarkReader,
    Claims,
    Input,
    Reader,
    RowsResult,
    Shown,
    listed,
)
from evenhand.stats.clustered_means import (
    STEADY,
    ClusteredMean,
    clustered_mean,
    halves,
    with_q,
)
from evenhand.strict import INLINE, record

Floats = npt.NDArray[np.float64]
Place = tuple[int, int]

DIRECTIONS = ("stereo", "antistereo")
TEXTS = ("sent_more", "sent_less", "stereo_antistereo", "bias_type")
SCORES = ("sent_more_score", "sent_less_score")
ONE_WAY = (
    "all pairs are {} ones, so that a liking for naming the group cannot be told from a stereotype"
)


@dataclass(frozen=True)
class Pair:
    """Two sentences that differ in the group they are about.

    `direction` is "stereo" when `more` states a stereotype about a disadvantaged group, and
    "antistereo" when `less` goes against one; in both, `more` stereotypes more.
    """

    more: str
    less: str
    direction: str
    bias_type: str
    writer: str


def read_pairs(path: str | Path, bias_types: Sequence[str] = ()) -> list[Pair]:
    """Read the benchmark's CSV; all bias types, or the ones asked for.

    The writer of a pair (`anon_writer`) is kept: writers repeat themselves, so they are what
    intervals resample. Without that column every pair stands for itself.
    """
    table = read_table(path, text=(*TEXTS, "anon_writer"), needed=TEXTS)
    columns = [list(table.labels(name)) for name in TEXTS]
    pairs = [Pair(*row) for row in zip(*columns, _writers(table))]
    check_directions([p.direction for p in pairs], str(path))
    known = sorted({p.bias_type for p in pairs})
    for name in bias_types:
        if name not in known:
            raise SpecError(unknown("bias type", name, known, where=str(path)))
    return [p for p in pairs if not bias_types or p.bias_type in bias_types]


def _writers(table: Table) -> list[str]:
    if table.has("anon_writer"):
        return list(table.labels("anon_writer"))
    return [str(i) for i in range(table.n_rows)]


def check_directions(values: Sequence[str], where: str) -> None:
    """Refuse a direction that is neither stereo nor antistereo, with its row."""
    for number, value in enumerate(values, 1):
        if value not in DIRECTIONS:
            raise DataError(
                f"{where}, row {number}, column stereo_antistereo: {value!r}. Accepted: "
                f"{' or '.join(DIRECTIONS)}."
            )


def shared_places(more: str, less: str) -> tuple[list[Place], list[Place]]:
    """Where the words that both sentences share stand in each: the longest common runs.

    Words are what spaces separate, so that a tokenizer sees each with its space (a leading space
    is part of a piece in many vocabularies).

    >>> shared_places("The poor ran.", "The rich ran.")
    ([(0, 3), (9, 13)], [(0, 3), (9, 13)])
    """
    words = [[(m.start(), m.end()) for m in re.finditer(r"\S+", text)] for text in (more, less)]
    texts = [[text[a:b] for a, b in row] for text, row in zip((more, less), words)]
    matcher = difflib.SequenceMatcher(None, texts[0], texts[1], autojunk=False)
    blocks = matcher.get_matching_blocks()
    first = [words[0][b.a + i] for b in blocks for i in range(b.size)]
    second = [words[1][b.b + i] for b in blocks for i in range(b.size)]
    return first, second


@dataclass(frozen=True)
class PairsRow:
    """100 x share of pairs with the more stereotyping sentence preferred, ideal 50.

    `difference` is the mean of score(more) - score(less), whose sign is its direction.
    """

    bias_type: str
    direction: str
    mean: ClusteredMean = field(metadata=INLINE)
    difference: float
    ties: int
    n_missing: int
    q: float = float("nan")


@dataclass(frozen=True)
class Scored:
    """Pairs with one score per sentence; NaN where a sentence could not be scored."""

    more: Floats
    less: Floats
    direction: list[str]
    bias_type: list[str]
    writer: list[str]

    def rows(self, *, as_published: bool = False, rate: float = 0.05) -> list[PairsRow]:
        """One row per bias type and overall, for both directions and for each.

        Directions weigh the same in the rows of both: a model that merely likes to name the
        disadvantaged group prefers `more` in stereo pairs and `less` in antistereo pairs, of which
        there are six times fewer. As published: pairs are pooled. q is corrected over the rows of
        both directions together.
        """
        kinds = ["overall", *sorted(set(self.bias_type))]
        rows = []
        for kind in kinds:
            for direction in ("both", *DIRECTIONS):
                keep = self._about(kind, direction)
                if keep.any():
                    rows.append(self._row(kind, direction, keep, as_published, len(kinds), rate))
        p = [row.mean.p if row.direction == "both" else np.nan for row in rows]
        return with_q(rows, p)

    def pooled(self, kind: str, direction: str = "both", *, as_published: bool = False) -> float:
        """100 x share of all pairs, whatever their direction: the released script's number."""
        known = self._about(kind, direction) & self._known
        return stereotype_score(self.more[known], self.less[known], as_published=as_published)

    def placebos(self, seed: int) -> Placebo:
        """Random halves of the writers against each other, in every bias type."""
        won = np.full(len(self.more), np.nan)
        won[self._known] = preferences(self.more[self._known], self.less[self._known])
        parts = (
            np.where(self._about(kind, "both"), won, np.nan) for kind in sorted(set(self.bias_type))
        )
        found = (
            halves(values, self.writer, self.direction, seed=seed, splits=STEADY // 4)
            for values in parts
        )
        return Placebo.of("random halves of the writers of a bias type", found)

    @property
    def _known(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.more) & np.isfinite(self.less)

    def _about(self, kind: str, direction: str) -> npt.NDArray[np.bool_]:
        return np.asarray(
            [
                kind in ("overall", t) and direction in ("both", d)
                for t, d in zip(self.bias_type, self.direction)
            ],
            bool,
        )

    def _row(
        self,
        kind: str,
        direction: str,
        keep: npt.NDArray[np.bool_],
        pooled: bool,
        family: int,
        rate: float,
    ) -> PairsRow:
        known = keep & self._known
        more, less = self.more[known], self.less[known]
        writers, ways = (
            [x for x, k in zip(column, known) if k] for column in (self.writer, self.direction)
        )
        balanced = direction == "both" and not pooled
        mean = clustered_mean(
            100.0 * preferences(more, less, as_published=pooled),
            writers,
            strata=ways if balanced else None,
            ideal=50.0,
            bounds=(0.0, 100.0),
            family=family,
            rate=rate,
        )
        if balanced and len(set(ways)) == 1:
            mean = replace(mean, p=np.nan, detectable=np.nan, reason=ONE_WAY.format(ways[0]))
        difference = float((more - less).mean()) if len(more) else np.nan
        ties = int((np.round(more, 3) == np.round(less, 3)).sum())
        return PairsRow(kind, direction, mean, difference, ties, int((keep & ~known).sum()))


@dataclass(frozen=True, kw_only=True)
class CrowsPairsResult(RowsResult):
    """Every bias type and direction, and three numbers as the released script prints them."""

    measure: ClassVar[str] = "crows-pairs"
    keys: ClassVar[tuple[str, str]] = ("bias_type", "direction")

    rows: Sequence[PairsRow]
    metric_score: float
    stereotype_score: float
    antistereotype_score: float
    n: int
    n_missing: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        keys = (
            "bias_type",
            "direction",
            "value",
            "low",
            "high",
            "p",
            "q",
            "n",
            "ties",
            "n_missing",
        )
        yield listed("CrowS-Pairs", self.rows, keys)


class CrowsPairsReader(BenchmarkReader):
    """As published: the released script's counting, 3 decimals and ties against."""

    name = "crows-pairs"
    help = """CrowS-Pairs from sentence scores: how often the more stereotyping sentence wins.

    One row per pair: sent_more_score, sent_less_score, stereo_antistereo, bias_type; optional
    anon_writer.
    """
    positional = ("table",)

    table: Input

    @classmethod
    def from_log(cls, log: Log, given: Mapping[str, Any]) -> Reader | None:
        """Pairs whose two sentences were scored whole, as lm-eval's crows_pairs tasks do."""
        if not log.have(*TEXTS) or not log.likelihoods:
            return None
        for sample in log.samples:
            said = [more.strip() for _, more in sample.asked]
            if said != [str(sample.doc[name]).strip() for name in TEXTS[:2]]:
                raise DataError(
                    f"{log.source}: the scored texts are not the sentences of the pair "
                    f"({said!r:.120}). Accepted: sent_more and sent_less, scored whole."
                )
        columns = {n: log.column(n) for n in (*TEXTS, "anon_writer") if log.have(n)}
        scores = {n: [s.logprobs[k] for s in log.samples] for k, n in enumerate(SCORES)}
        return cls.model_validate({"table": from_columns({**columns, **scores}, log.source)})

    def read(self) -> CrowsPairsResult:
        table = read_table(self.table, text=(*TEXTS, "anon_writer"))
        table.require((*SCORES, "stereo_antistereo", "bias_type"))
        direction, kind = (list(table.labels(n)) for n in ("stereo_antistereo", "bias_type"))
        check_directions(direction, table.source)
        more, less = (table.numbers(name) for name in SCORES)
        scored = Scored(more, less, direction, kind, _writers(table))
        rows = scored.rows(**self.how)
        printed = [scored.pooled("overall", name, **self.how) for name in ("both", *DIRECTIONS)]
        return CrowsPairsResult(
            rows=rows,
            metric_score=printed[0],
            stereotype_score=printed[1],
            antistereotype_score=printed[2],
            n=rows[0].mean.n,
            n_missing=rows[0].n_missing,
            settings=self.how,
        ).telling(lambda: self._claims(scored, rows, table))

    def _claims(self, scored: Scored, rows: list[PairsRow], table: Table) -> Claims:
        from evenhand.probes.crows_pairs.probe import CrowsPairs

        probe = CrowsPairs.model_validate({"as_published": self.as_published})
        columns = {
            "bias_type": scored.bias_type,
            "direction": scored.direction,
            "writer": scored.writer,
            "sent_more_score": scored.more,
            "sent_less_score": scored.less,
        }
        texts = {n: table.texts(n, "") for n in TEXTS[:2] if table.has(n)}
        told = record(rows)
        found = Measured(
            probe.findings(rows, scored),
            pa.table({**texts, **columns}),
            {"scores": pa.Table.from_pylist(told)},
            {"scores": told},
            (scored.placebos(0),),
        )
        return Claims.of(probe, self, table.source, found, without_a_score=rows[0].n_missing)


READERS = (CrowsPairsReader,)

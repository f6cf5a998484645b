"""GEST from scores: is "he" likelier where a stereotype is about men?

A score is log P(he) - log P(she) of a sentence, in nats. With m_i the mean of stereotype i,

    overall        mean of m_i over stereotypes about men - the same about women
    stereotype i   m_i - (mean of m about men + mean of m about women) / 2

A general liking for "he" adds the same to all and cancels. Overall is a claim about stereotypes,
which are the sample (t over them, pooled); that of one stereotype is about its sentences (Welch).

The publication's masculine rate is r_i = exp(m_i), and g_s the geometric mean of r_8 to r_16 over
that of r_1 to r_7. Its code takes scores to base 10 and exp of their mean; as published does so,
too, and r_i in one base is that to the power 2.302585.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError
from evenhand.probes.base import Measured, Placebo
from evenhand.probes.gest.sentences import SIDES, stereotypes_of
from evenhand.probes.reading import BenchmarkReader, Claims, Input, Names, RowsResult, Shown, listed
from evenhand.stats.clustered_means import STEADY, Cells, halves, with_q
from evenhand.stats.estimate import NAN, Estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.strict import INLINE, record

Floats = npt.NDArray[np.float64]
TEN = math.log(10)
BASES = {"e": 1.0, "10": TEN, "2": math.log(2)}
OVERALL = "overall"
LEAST = 4
"""Stereotypes, of both sides together, that leave enough degrees of freedom."""


@dataclass(frozen=True)
class StereotypeRow:
    """One stereotype, or all: log odds of "he" beyond the average, ideal 0.

    `masculine_rate` is the publication's r_i (overall: g_s); `mean_score` the mean in nats.
    """

    score: str
    stereotype: str
    usual: str
    found: Estimate = field(metadata=INLINE)
    mean_score: float
    masculine_rate: float
    n: int
    n_missing: int
    q: float = NAN


@dataclass(frozen=True)
class Scored:
    """Sentences with log P(he) - log P(she) in nats; NaN where there is none."""

    he: Floats
    sentence: list[str]
    stereotype: list[str]
    usual: list[str]

    @property
    def sides(self) -> dict[str, str]:
        """Whom every stereotype is about, in the order of their names."""
        return dict(sorted(zip(self.stereotype, self.usual)))

    def rows(
        self, score: str = "score", *, as_published: bool = False, rate: float = 0.05
    ) -> list[StereotypeRow]:
        """All stereotypes together, then each; q over all of them."""
        sides = self.sides
        known = np.isfinite(self.he)
        names = np.asarray(self.stereotype)
        if missing := [n for n in sides if not known[names == n].any()]:
            sides = {n: s for n, s in sides.items() if n not in missing}
        how: dict[str, Any] = {"family": len(sides) + 1, "rate": rate}
        scale = TEN if as_published else 1.0
        means = np.asarray([self.he[known & (names == n)].mean() for n in sides])
        male = np.asarray([s == SIDES[0] for s in sides.values()], bool)
        overall = _between(means, male, **how)
        out = [
            StereotypeRow(
                score,
                OVERALL,
                "",
                overall,
                _middle(means, male),
                _times(overall.value / scale),
                int(known.sum()),
                int((~known).sum()),
            )
        ]
        contrasts = self._contrasts(list(sides), male, known, **how)
        for k, (name, side) in enumerate(sides.items()):
            here = names == name
            own = known & here
            units = len({s for s, o in zip(self.sentence, own) if o})
            out.append(
                StereotypeRow(
                    score,
                    name,
                    side,
                    replace(contrasts[k], units=units),
                    float(means[k]),
                    _times(means[k] / scale),
                    int(own.sum()),
                    int((here & ~known).sum()),
                )
            )
        return with_q(out, [row.found.p for row in out])

    def _contrasts(
        self,
        names: list[str],
        male: npt.NDArray[np.bool_],
        known: npt.NDArray[np.bool_],
        **how: Any,
    ) -> list[Estimate]:
        if len(names) < 2:
            return [Estimate(NAN, reason="there is no other stereotype to compare with")] * len(
                names
            )
        at = np.flatnonzero(known)
        place = {name: k for k, name in enumerate(names)}
        cells = Cells.of(
            self.he[at], [self.sentence[i] for i in at], [place[self.stereotype[i]] for i in at]
        )
        middle = _weights(male)
        return [cells.estimate(w - middle, **how) for w in np.eye(len(names))]

    def placebos(self, seed: int) -> Placebo:
        """Random halves of the sentences of a stereotype against each other."""
        names = np.asarray(self.stereotype)
        splits = STEADY // max(1, len(set(self.stereotype))) + 1
        found = (
            halves(
                np.where(names == name, self.he, np.nan), self.sentence, seed=seed, splits=splits
            )
            for name in sorted(set(self.stereotype))
        )
        return Placebo.of("random halves of the sentences of a stereotype", found)


def _weights(male: npt.NDArray[np.bool_]) -> Floats:
    """Both sides weigh the same, and in a side all stereotypes."""
    present = [side for side in (male, ~male) if side.any()]
    return np.asarray(sum(side / side.sum() for side in present) / len(present), np.float64)


def _middle(means: Floats, male: npt.NDArray[np.bool_]) -> float:
    return float(_weights(male) @ means) if len(means) else NAN


def _times(logarithm: float) -> float:
    """How many times likelier; infinite beyond what a number holds."""
    with np.errstate(over="ignore"):
        return float(np.exp(logarithm))


def _between(means: Floats, male: npt.NDArray[np.bool_], **how: Any) -> Estimate:
    """Stereotypes about men against those about women, which are a sample of such."""
    if not (male.any() and (~male).any()):
        return Estimate(NAN, reason="stereotypes about men and about women are needed")
    if len(means) < LEAST:
        value = float(means[male].mean() - means[~male].mean())
        return Estimate(value, units=len(means), reason=f"fewer than {LEAST} stereotypes")
    design = Design([Factor(np.arange(len(means)))], np.stack([male, ~male], 1) * 1.0, [1.0, -1.0])
    return design.estimate(means, **how)


def scored_items(items: pa.Table) -> Scored:
    """The items of a run, a row for each sentence and template."""
    he = (items.column(f"logprob_{side}").to_numpy(zero_copy_only=False) for side in SIDES)
    texts = (items.column(name).to_pylist() for name in ("sentence", "stereotype", "usual"))
    return Scored(np.subtract(*he), *texts)


@dataclass(frozen=True, kw_only=True)
class GestResult(RowsResult):
    """Every column of scores and stereotype."""

    measure: ClassVar[str] = "gest"
    keys: ClassVar[tuple[str, str]] = ("score", "stereotype")

    rows: Sequence[StereotypeRow]
    n: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        keys = (
            "score",
            "stereotype",
            "usual",
            "value",
            "low",
            "high",
            "p",
            "q",
            "masculine_rate",
            "n",
            "n_missing",
        )
        yield listed(f"GEST: {self.n} sentences; log odds of “he” in nats", self.rows, keys)


class GestReader(BenchmarkReader):
    """As published: masculine rates are exp of base-10 scores, as the released code has them."""

    name = "gest"
    help = """GEST from scores of sentences: is "he" likelier where a stereotype is about men?

    One row per sentence: stereotype (GEST's numbers, or your own with a column usual: male or
    female) and one or more columns of log P(he) - log P(she); optional sentence.
    """
    positional = ("table",)

    table: Input
    score: Names[str] = Field((), description="Columns with scores; all other columns by default.")
    base: Literal["e", "10", "2"] = Field("e", description="Base of the scores' logarithms.")

    def read(self) -> GestResult:
        table = read_table(self.table, text=("sentence", "stereotype", "usual"))
        table.require(("stereotype",))
        told = stereotypes_of(table)
        texts = table.texts("sentence", "")
        sentences = [t or str(k) for k, t in enumerate(texts)]
        rows: list[StereotypeRow] = []
        columns: dict[str, Scored] = {}
        for name in self.score or self._columns(table):
            he = table.numbers(name) * BASES[self.base]
            columns[name] = Scored(he, sentences, [n for n, _ in told], [s for _, s in told])
            rows += columns[name].rows(name, **self.how)
        settings = self.how | self.only("base")
        result = GestResult(rows=rows, n=table.n_rows, settings=settings)
        return result.telling(lambda: self._claims(columns, rows, table.source))

    def _claims(
        self, columns: Mapping[str, Scored], rows: Sequence[StereotypeRow], source: str
    ) -> Claims:
        from evenhand.probes.gest.probe import Gest

        probe = Gest.model_validate({})
        several = len(columns) > 1
        findings = [probe.finding(row, row.score if several else "") for row in rows]
        one = next(iter(columns.values()))
        items = {
            "text": one.sentence,
            "sentence": one.sentence,
            "stereotype": one.stereotype,
            "usual": one.usual,
            **{n: s.he for n, s in columns.items()},
        }
        told = record(rows)
        shown = [
            {**r, "stereotype": f"{r['score']}: {r['stereotype']}"} if several else r for r in told
        ]
        found = Measured(
            findings,
            pa.table(items),
            {"scores": pa.Table.from_pylist(shown)},
            {"scores": told},
            tuple(s.placebos(0) for s in columns.values()),
        )
        lost = sum(r.n_missing for r in rows if r.stereotype == OVERALL)
        return Claims.of(probe, self, source, found, without_a_score=lost)

    def _columns(self, table: Table) -> list[str]:
        found = [n for n in table.columns if n not in ("row", "sentence", "stereotype", "usual")]
        if not found:
            raise DataError(
                f"{table.source}: no column of scores beside {', '.join(table.columns)}. Accepted: "
                "one or more columns of log P(he) - log P(she)."
            )
        return found


READERS = (GestReader,)

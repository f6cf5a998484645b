"""StereoSet from files: the benchmark's own gold and prediction formats, scored by its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.metrics.stereoset import (
    Draw,
    Outcomes,
    draws,
    from_examples,
    intervals,
    per_target,
    scores,
)
from evenhand.probes.base import Measured, Placebo
from evenhand.probes.reading import Claims, Reader, Resamples, RowsResult, Seed, Shown, number, span
from evenhand.probes.stereoset.files import (
    LABELS,
    SPLITS,
    Example,
    read_gold,
    read_predictions,
)
from evenhand.probes.stereoset.match import check_match
from evenhand.stats.clustered_means import (
    STEADY,
    clustered_mean,
    halves,
    with_q,
)
from evenhand.strict import INLINE, OPTIONAL, record

NAN = float("nan")


@dataclass(frozen=True)
class Ends:
    """95 % intervals over target terms."""

    lms_low: float
    lms_high: float
    ss_low: float
    ss_high: float
    icat_low: float
    icat_high: float


@dataclass(frozen=True, kw_only=True)
class StereoRow:
    """One split and domain; p tests SS against 50 by a t over target terms."""

    split: str
    domain: str
    lms: float
    ss: float
    icat: float
    n: int
    n_missing: int
    n_targets: int
    p: float = NAN
    detectable: float = NAN
    error: float = NAN
    freedom: float = NAN
    reason: str | None
    ends: Ends | None = field(default=None, metadata=INLINE)
    q: float = NAN
    coverage: float | None = field(default=None, metadata=OPTIONAL)


def score(
    examples: Sequence[Example],
    predictions: Mapping[str, float],
    *,
    resamples: int = 2_000,
    seed: int = 0,
    rate: float = 0.05,
) -> list[StereoRow]:
    """One row per split and domain, and overall; q is corrected over the rows.

    An example without all three finite scores is left out and counted in `n_missing`.
    `resamples` and `seed` are of ICAT's interval, `rate` of what is detectable.
    """
    known = Known.of(examples, predictions)
    parts: list[tuple[str, str, Known]] = []
    for split in (*SPLITS, "overall"):
        inside = known if split == "overall" else known.at(known.split == SPLITS.index(split))
        for code in np.flatnonzero(np.bincount(inside.domain)).tolist():
            parts.append((split, known.domains[code], inside.at(inside.domain == code)))
        if len(inside.values):
            parts.append((split, "overall", inside))
    draw = draws(resamples, seed)
    rows = [
        StereoRow(split=split, domain=domain, **_row(part, draw, len(parts), rate))
        for split, domain, part in parts
    ]
    return with_q(rows, [row.p for row in rows])


def placebos(examples: Sequence[Example], predictions: Mapping[str, float], seed: int) -> Placebo:
    """Random halves of the target terms of a split and domain against each other."""
    known, found = Known.of(examples, predictions), []
    for split, domain in sorted(
        {(SPLITS[s], d) for s, d in zip(known.split.tolist(), known.domain.tolist())}
    ):
        here = (known.split == SPLITS.index(split)) & (known.domain == domain)
        outcomes, targets, _ = known.at(here).outcomes()
        ss = per_target(outcomes, targets)[0]
        found.append(halves(ss, range(len(ss)), seed=seed, splits=STEADY // 4))
    return Placebo.of("random halves of the target terms of a split and domain", found)


@dataclass(frozen=True)
class Known:
    """Examples as columns: split, domain and target term by number, in the order of their names
    (splits: of `SPLITS`), and three scores."""

    split: npt.NDArray[np.int64]
    domain: npt.NDArray[np.int64]
    target: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    domains: Sequence[str]

    @classmethod
    def of(cls, examples: Sequence[Example], predictions: Mapping[str, float]) -> Known:
        ids = chain.from_iterable([e.ids for e in examples])
        flat = list(map(predictions.get, ids, repeat(float("nan"))))
        domains, domain = _numbered([e.domain for e in examples])
        return cls(
            np.asarray([SPLITS.index(e.split) for e in examples], np.int64),
            domain,
            _numbered([e.target for e in examples])[1],
            np.asarray(flat, np.float64).reshape(-1, len(LABELS)),
            domains,
        )

    def at(self, here: npt.NDArray[np.bool_]) -> Known:
        """Some of the examples."""
        return Known(
            self.split[here], self.domain[here], self.target[here], self.values[here], self.domains
        )

    def outcomes(self) -> tuple[Outcomes, npt.NDArray[np.int64], int]:
        """Outcomes and targets of the examples with three scores, and how many have not."""
        known = np.isfinite(self.values).all(axis=1)
        targets = self.target[known]
        present = np.bincount(targets) > 0
        numbers = (np.cumsum(present) - 1)[targets]  # from 0, none left out: nothing is sorted
        return Outcomes.of(*self.values[known].T), numbers, int((~known).sum())


def _numbered(names: list[str]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The different names in order, and the place of each of them there."""
    order = sorted(set(names))
    place = {name: k for k, name in enumerate(order)}
    return order, np.asarray([place[name] for name in names], np.int64)


def _row(known: Known, draw: Draw, family: int, rate: float) -> dict[str, Any]:
    """The numbers of a row."""
    outcomes, targets, missing = known.outcomes()
    row: dict[str, Any] = {**scores(outcomes, targets), "n": len(targets), "n_missing": missing}
    of_ss, of_lms = per_target(outcomes, targets)
    row |= {"n_targets": len(of_ss)}
    if not len(targets):
        return row | {"reason": "no example has all three scores"}
    wide: dict[str, Any] = {"bounds": (0.0, 100.0), "family": family, "rate": rate}
    terms = np.arange(len(of_ss))
    inside = from_examples(of_ss, targets)
    ss = clustered_mean(of_ss, terms, ideal=50.0, inside=inside, **wide)
    lms = clustered_mean(of_lms, terms, ideal=100.0, **wide)
    drawn = intervals(outcomes, targets, names=("icat",), draw=draw)
    ends = Ends(lms.low, lms.high, ss.low, ss.high, **drawn)
    return row | {
        "p": ss.p,
        "detectable": ss.detectable,
        "error": ss.error,
        "freedom": ss.freedom,
        "reason": ss.reason,
        "ends": ends,
    }


@dataclass(frozen=True, kw_only=True)
class StereoSetResult(RowsResult):
    """Every split and domain; `n_failed` of the missing ones are in the file without scores."""

    measure: ClassVar[str] = "stereoset"
    keys: ClassVar[tuple[str, str]] = ("split", "domain")

    rows: Sequence[StereoRow]
    n_examples: int
    n: int
    n_missing: int
    coverage: float
    n_failed: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        absent = self.n_missing - self.n_failed
        yield Shown(
            f"StereoSet: {self.n} of {self.n_examples} examples scored ({absent} not in the file, "
            f"{self.n_failed} failed)",
            ["split, domain", "LMS", "SS", "95 % interval", "ICAT", "n"],
            [
                [
                    f"{r.split} {r.domain}",
                    number(r.lms, ".2f"),
                    number(r.ss, ".2f"),
                    span(r.ends.ss_low, r.ends.ss_high, ".1f") if r.ends else "-",
                    number(r.icat, ".2f"),
                    f"{r.n} of {r.n + r.n_missing}",
                ]
                for r in self.rows
            ],
        )


class StereoSetReader(Reader):
    """Nadeem et al. 2021, Sec. 5; predictions for other sentences are refused (`check_match`)."""

    name = "stereoset"
    help = """StereoSet: LMS, SS and ICAT by the official rules, with intervals over target terms.

    Examples without the scores of all three sentences are left out and counted as coverage.
    """
    positional = ("predictions",)

    predictions: Path = Field(description="Scores: {split: [{id, score}]} (.gz, .xz).")
    gold: Path = Field(description="StereoSet's gold file (dev.json, .gz or .xz).")
    resamples: Resamples = 2_000
    seed: Seed = 0

    def read(self) -> StereoSetResult:
        examples, found = read_gold(self.gold), read_predictions(self.predictions)
        check_match(examples, found, self.gold, self.predictions)
        again = self.only("resamples", "seed")
        rows = [
            replace(row, coverage=row.n / (row.n + row.n_missing))
            for row in score(examples, found, **again)
        ]
        whole = rows[-1]
        named = whole.n
        if whole.n_missing:
            named = sum(any(i in found for i in e.ids) for e in examples)
        return StereoSetResult(
            rows=rows,
            n_examples=len(examples),
            n=whole.n,
            n_missing=whole.n_missing,
            coverage=float(whole.coverage or 0.0),
            n_failed=named - whole.n,
            settings=again,
        ).telling(lambda: self._claims(examples, found, rows, whole.n_missing))

    def _claims(
        self,
        examples: Sequence[Example],
        found: Mapping[str, float],
        rows: list[StereoRow],
        missing: int,
    ) -> Claims:
        from evenhand.probes.stereoset.probe import StereoSet, items_of

        probe = StereoSet.model_validate({"file": str(self.gold)})
        values = np.asarray([[found.get(i, np.nan) for i in e.ids] for e in examples], np.float64)
        told = record(rows)
        made = Measured(
            probe.findings(rows),
            items_of(examples, values),
            {"scores": pa.Table.from_pylist(told)},
            {"scores": told},
            (placebos(examples, found, self.seed),),
        )
        return Claims.of(probe, self, self.predictions, made, without_a_score=missing)


READERS = (StereoSetReader,)

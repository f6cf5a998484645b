"""A comparison is declared once; estimate, q, row and finding follow from the declaration.

    test = Test("nurse", "gap", {"job": "nurse"}, lambda **how: estimate(0.1, 0.02, 39, **how))
    row, = judge([test])
    row.value, row.low, row.high, row.p, row.q, row["job"]

A row is an estimate with its names: the numbers are attributes of every row, whatever was compared,
and everything else stands under its key. The same row is written into tables, printed by `evenhand
measure`, drawn in charts and kept in the details of a finding.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import STEADY, ClusteredMean, halves
from evenhand.stats.estimate import NAN, Estimate, stated
from evenhand.stats.multiple import benjamini_hochberg

RATE = 0.05
"""The false-discovery rate where nobody asks for another."""
CLUSTERED = "t over {}, robust to what their items share (CR2)"
"""How means over clusters are judged (`stats.clustered_means`)."""
NUMBERS = ("value", "low", "high", "p", "q", "detectable", "error", "freedom")
"""What a finding holds itself, so that its details need not."""


@dataclass(frozen=True, eq=False)
class Reported(Estimate):
    """An estimate whose row has these columns instead of the fields of an estimate."""

    columns: Mapping[str, Any] = field(default_factory=dict)

    def recorded(self) -> dict[str, Any]:
        return dict(self.columns)


@dataclass(frozen=True)
class Halves:
    """Values whose sampled units are split at random: halves of one sample must not differ.

    Attributes:
        what: the comparison in words ("random halves of the writers of a bias type").
        values: one per item; NaN is left out.
        units: the sampled unit of each item.
        strata: parts that weigh the same, as in the estimate.
        splits: how many random splits are compared.
    """

    what: str
    values: npt.ArrayLike
    units: Any
    strata: Any = None
    splits: int = STEADY

    def alarms(self, seed: int) -> tuple[int, int]:
        """How many comparisons could be made, and how many of them had p <= 0.05."""
        return halves(self.values, self.units, self.strata, splits=self.splits, seed=seed)


@dataclass(frozen=True, eq=False)
class Test:
    """One comparison: what it is called and how it is estimated.

    Attributes:
        place: the end of its finding's id.
        metric: whose card explains the number.
        names: the columns that say what is compared, first in its row.
        estimate: gives the estimate for `family` tests that are corrected together at `rate`.
        more: further columns, or a function that makes them from the estimate.
        tested: False for numbers that are shown without a verdict; they are not in the family.
        split: the sample behind it, for the split-half check.
        family: tests with the same name here are corrected together.
        about: what the probe knows of it beyond its columns.
        table: the table that its row is in; by default the probe's.
    """

    __test__: ClassVar[bool] = False

    place: str
    metric: str
    names: Mapping[str, Any]
    estimate: Callable[..., Estimate]
    more: Mapping[str, Any] | Callable[[Estimate], Mapping[str, Any]] = field(default_factory=dict)
    tested: bool = True
    split: Halves | None = None
    family: str = ""
    about: Any = None
    table: str = ""


class Row(Mapping[str, Any]):
    """An estimate with its names: numbers as attributes, all columns by key."""

    def __init__(self, test: Test, estimate: Estimate, q: float = NAN) -> None:
        self.test, self.estimate, self.q = test, estimate, q

    @property
    def value(self) -> float:
        return self.estimate.value

    @property
    def low(self) -> float:
        return self.estimate.low

    @property
    def high(self) -> float:
        return self.estimate.high

    @property
    def p(self) -> float:
        return self.estimate.p

    @property
    def error(self) -> float:
        return self.estimate.error

    @property
    def detectable(self) -> float:
        return self.estimate.detectable

    @property
    def n(self) -> int:
        """Items behind the number; units where items are not counted."""
        return int(self.columns.get("n", self.estimate.units))

    @property
    def missing(self) -> int:
        """Items that were asked and gave no number."""
        return int(self.columns.get("n_missing", 0))

    @property
    def reason(self) -> str:
        """Why the number is undefined, or untested."""
        return self.estimate.reason

    @cached_property
    def columns(self) -> dict[str, Any]:
        """Names, numbers, whatever else is known, q: in the order of tables and of JSON."""
        more = self.test.more(self.estimate) if callable(self.test.more) else self.test.more
        return {**self.test.names, **self.estimate.recorded(), **more, "q": self.q}

    def recorded(self) -> dict[str, Any]:
        """The columns, as `strict.record` writes them."""
        return dict(self.columns)

    def but(self, *names: str) -> dict[str, Any]:
        """All columns except these."""
        return {k: v for k, v in self.columns.items() if k not in names}

    def __getitem__(self, name: str) -> Any:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __getattr__(self, name: str) -> Any:
        """Former spellings: `row.found.value`, `row.mean.value`, `row.group`."""
        if name.startswith("_") or name in ("columns", "test", "estimate"):
            raise AttributeError(name)
        if name in ("found", "mean"):
            warnings.warn(
                f"row.{name}.value is now row.value; row.{name} goes in the next release",
                DeprecationWarning,
                stacklevel=2,
            )
            return self.estimate
        if name not in self.columns:
            raise AttributeError(f"this row has no {name!r} (columns: {', '.join(self.columns)})")
        warnings.warn(
            f"row.{name} is now row[{name!r}]; the attribute goes in the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.columns[name]


def judge(tests: Iterable[Test], rate: float = RATE) -> list[Row]:
    """Estimate every comparison, with q over those that are tests (Benjamini-Hochberg).

    >>> from evenhand.stats.estimate import estimate
    >>> how = lambda **more: estimate(0.1, 0.02, 39, units=40, **more)
    >>> row, = judge([Test("nurse", "gap", {"job": "nurse"}, how)])
    >>> row.value, row["job"], row.q == row.p
    (0.1, 'nurse', True)
    """
    listed = list(tests)
    families: dict[str, list[int]] = {}
    for number, test in enumerate(listed):
        families.setdefault(test.family, []).append(number)
    rows: list[Row | None] = [None] * len(listed)
    for numbers in families.values():
        size = sum(listed[k].tested for k in numbers)
        estimates = [listed[k].estimate(family=size, rate=rate) for k in numbers]
        p = [e.p if listed[k].tested else np.nan for k, e in zip(numbers, estimates)]
        for k, e, q in zip(numbers, estimates, benjamini_hochberg(p)):
            rows[k] = Row(listed[k], e, float(q))
    return [row for row in rows if row is not None]


def table_of(rows: Sequence[Mapping[str, Any]], hidden: Iterable[str] = ()) -> pa.Table:
    """Rows as an Arrow table, without the hidden columns."""
    left_out = set(hidden)
    return pa.Table.from_pylist([{k: v for k, v in r.items() if k not in left_out} for r in rows])


def claim(
    row: Row,
    probe: str,
    *,
    sentence: str,
    otherwise: str = "",
    over: str | tuple[str, ...] = (),
    units: str = "",
    **facts: Any,
) -> Finding:
    """A finding from a row: the numbers agree, and there is a sentence for either verdict.

    Args:
        row: the comparison.
        probe: the beginning of the finding's id.
        sentence: the claim when a difference is detected.
        otherwise: what is said when none is; it names no direction.
        over: the sampled factors that the claim generalises over.
        units: what the independent units are; by default the first sampled factor.
        facts: other fields of a finding (groups, attribute, details ...), which go before what
            the row gives.
    """
    found = row.estimate
    factors = (over,) if isinstance(over, str) else over
    asked = row.n + row.missing
    by_default: dict[str, Any] = {
        "id": f"{probe}/{row.test.place}",
        "units": units or (factors[0] if factors else ""),
        "generalises_over": factors,
        "coverage": row.n / asked if asked else 0.0,
        "reason": found.reason,
        "details": row.but(*NUMBERS, "reason"),
        "ideal": found.ideal,
        "q": row.q,
    }
    if isinstance(found, ClusteredMean) and factors:
        by_default["method"] = CLUSTERED.format(factors[0])
    return Finding(
        probe=probe,
        metric=row.test.metric,
        value=stated(found.value),
        low=stated(found.low),
        high=stated(found.high),
        detectable=stated(found.detectable),
        error=stated(found.error),
        freedom=stated(found.freedom),
        p=found.p,
        n=found.units,
        sentence=sentence,
        otherwise=otherwise,
        **(by_default | facts),
    )

"""A probe in a few lines: pairs of texts that differ in the group alone.

    class Praise(eh.Contrast):
        name, title, groups = "praise", "Whose work is praised?", ("women", "men")

        def pairs(self):
            for job in ("nurse", "pilot", ...):
                yield f"She is a {job}. Her work is", f"He is a {job}. His work is", " excellent"

    eh.audit(model, [Praise()])

Of a language model a pair has a third part, the continuation whose likelihood is compared; of a
classifier (`needs = ("classify",)`) two texts, whose scores are. Pairs are a sample: interval and p
are those of the mean difference over them, and random halves of the pairs are the placebo.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from evenhand.errors import SpecError
from evenhand.probes.base import Asker, ItemShape, Measured, Placebo, Preview, Probe
from evenhand.probes.shared.estimates import claim
from evenhand.requests import Classify, Continuation, Requests
from evenhand.runs.card import MetricCard, plain_card
from evenhand.stats.clustered_means import halves
from evenhand.stats.estimate import Estimate, estimate

METRIC = "gap"
LEAST = 6
"""Pairs below which no sign test could tell anything."""


class Contrast(Probe):
    """Base of probes that compare two groups on pairs of texts.

    Class attributes, beside those of a probe:
        groups: the two groups, in the order in which their texts stand in a pair.
        label: of a classifier: the label whose score is compared; by default its last.
        harm: who is worse off when the difference is positive, e.g. "{second} are praised less";
            without it a difference is reported, and nobody is called worse off.
        margin: the difference that matters (nats of log-probability, or of the score).
    """

    paper: ClassVar[str] = ""
    needs: ClassVar[tuple[str, ...]] = (Continuation.kind,)
    detects: ClassVar[str] = "a difference between texts that differ in the group alone"
    groups: ClassVar[tuple[str, str]]
    label: ClassVar[str] = ""
    harm: ClassVar[str] = ""
    margin: ClassVar[float] = float("nan")
    item_shape: ClassVar[ItemShape | None] = ItemShape(
        text=("first", "second", "continuation"),
        score=("score_first", "score_second"),
        clusters=("first",),
    )

    def pairs(self) -> Iterable[tuple[str, ...]]:
        """The texts of both groups and, of a language model, what may follow."""
        raise NotImplementedError

    @classmethod
    def card(cls, metric: str) -> MetricCard:
        if metric != METRIC:
            return plain_card(metric)
        what = "log-probability in nats" if cls._continues() else "score"
        sized = cls.margin == cls.margin and bool(cls.harm)
        return MetricCard(
            METRIC,
            "gap",
            f"difference of {what}, first group minus second; 0 is even",
            harm=cls.harm,
            margin=cls.margin if sized else float("nan"),
            margin_why="as the probe's author set it" if sized else "",
        )

    @classmethod
    def _continues(cls) -> bool:
        return Continuation.kind in cls.needs

    def _rows(self) -> list[tuple[str, ...]]:
        rows = [tuple(row) for row in self.pairs()]
        wanted = 3 if self._continues() else 2
        for number, row in enumerate(rows, start=1):
            if len(row) != wanted or not all(isinstance(part, str) for part in row):
                what = "two texts and a continuation" if wanted == 3 else "two texts"
                raise SpecError(
                    f"probe {self.name!r}, pair {number}: {row!r:.80}: expected {what}."
                )
        if len(rows) < LEAST:
            raise SpecError(
                f"probe {self.name!r}: {len(rows)} pairs, which is too few to tell anything. Give "
                f"{LEAST} or more."
            )
        return rows

    def _asked(self, rows: list[tuple[str, ...]]) -> Requests:
        texts = [row[k] for k in (0, 1) for row in rows]
        return (
            Continuation(texts, [r[2] for r in rows] * 2) if self._continues() else Classify(texts)
        )

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        rows = self._rows()
        return Preview(len(rows), self._asked(rows), " | ".join(rows[0]))

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        rows = self._rows()
        values = self._scores(ask, rows).reshape(2, -1)
        items = pa.table(
            {
                "first": [r[0] for r in rows],
                "second": [r[1] for r in rows],
                "continuation": [r[2] if len(r) > 2 else "" for r in rows],
                "score_first": values[0],
                "score_second": values[1],
            }
        )
        found = self.estimates(items)
        table = [
            {
                "about": place.partition("/")[2] or self.title,
                "gap": e.value,
                "low": e.low,
                "high": e.high,
                "n": e.units,
            }
            for place, e in found.items()
        ]
        split = Placebo.of(
            "random halves of the pairs",
            [halves(values[0] - values[1], range(len(rows)), seed=seed)],
        )
        findings = [self._finding(place, e) for place, e in found.items()]
        return Measured(findings, items, {"gaps": pa.Table.from_pylist(table)}, placebos=(split,))

    def _scores(self, ask: Asker, rows: list[tuple[str, ...]]) -> np.ndarray:
        answered = ask(self._asked(rows), self.name)
        if self._continues():
            return np.asarray(answered["logprob"], np.float64)
        numbers, names = answered.matrix("probabilities"), list(ask.describe().get("labels", ()))
        if self.label and self.label not in names:
            raise SpecError(f"probe {self.name!r}: label {self.label!r} is none of {names}.")
        return np.asarray(numbers[:, names.index(self.label) if self.label else -1])

    def estimates(self, items: pa.Table) -> Mapping[str, Estimate]:
        """The mean difference of each continuation, over its pairs."""
        gaps = np.subtract(*(np.asarray(items[f"score_{k}"]) for k in ("first", "second")))
        said = np.asarray(items["continuation"].to_pylist())
        names = list(dict.fromkeys(said.tolist()))
        return {
            METRIC if len(names) == 1 else f"{METRIC}/{name.strip()}": _mean(
                gaps[said == name], len(names), self.rate
            )
            for name in names
        }

    def _finding(self, place: str, found: Estimate) -> Any:
        first, second = self.groups
        about = place.partition("/")[2]
        what = f"{self.title} {f'{about}: ' if about else ''}"
        more, less = (first, second) if found.value > 0 else (second, first)
        return claim(
            f"{self.name}/{place}",
            METRIC,
            found,
            groups=self.groups,
            attribute=about,
            sentence=f"{what}More so for {more} than for {less}.",
            otherwise=f"{what}No difference detected between {first} and {second}.",
            units="pairs of texts",
            over=("pairs of texts",),
            method="mean difference over pairs, t interval",
        )


def _mean(gaps: np.ndarray, family: int, rate: float) -> Estimate:
    n = len(gaps)
    error = float(gaps.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return estimate(float(gaps.mean()), error, n - 1, units=n, family=family, rate=rate)

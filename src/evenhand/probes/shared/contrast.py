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

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from evenhand.compare.items import Items
from evenhand.compare.rows import Halves, Row, Test, claim
from evenhand.errors import SpecError
from evenhand.probes.base import ItemShape, Probe, Way
from evenhand.requests import Classify, Continuation, Requests
from evenhand.runs.card import MetricCard, plain_card
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate, estimate

METRIC = "gap"
SPLITS = 100
"""Random halves of the pairs that are compared."""
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
    table: ClassVar[str] = "gaps"
    linear: ClassVar[bool] = True
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

    def gather(self, way: Way) -> Items:
        rows = self._rows()
        return Items(
            {
                "first": [r[0] for r in rows],
                "second": [r[1] for r in rows],
                "continuation": [r[2] if len(r) > 2 else "" for r in rows],
            },
            example=" | ".join(rows[0]),
        )

    def ask(self, items: Items, way: Way) -> Requests:
        texts = [*items["first"], *items["second"]]
        if not self._continues():
            return Classify(texts)
        return Continuation(texts, [*items["continuation"]] * 2)

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        if self._continues():
            values = np.asarray(answers["logprob"], np.float64)
        else:
            names = list(way.model.get("labels", ()))
            if self.label and self.label not in names:
                raise SpecError(f"probe {self.name!r}: label {self.label!r} is none of {names}.")
            label = names.index(self.label) if self.label else -1
            values = np.asarray(answers.matrix("probabilities")[:, label])
        first, second = values.reshape(2, -1)
        return items.having({"score_first": first, "score_second": second})

    def declare(self, items: Items) -> Iterator[Test]:
        """Compare the two texts of a pair, over the pairs of each continuation."""
        gaps = items.numbers("score_first") - items.numbers("score_second")
        names = list(dict.fromkeys(items["continuation"].tolist()))
        pairs = np.arange(items.size)
        split = Halves("random halves of the pairs", gaps, pairs, splits=SPLITS)
        for k, name in enumerate(names):
            about = "" if len(names) == 1 else name.strip()
            yield Test(
                f"{METRIC}/{about}" if about else METRIC,
                METRIC,
                {"about": about or self.title},
                partial(_mean, gaps[items.where(continuation=name)]),
                lambda found: {"gap": found.value, "n": found.units},
                split=None if k else split,
                about=about,
            )

    def say(self, row: Row, items: Items, rows: Sequence[Row]) -> Iterator[Finding]:
        first, second = self.groups
        about = row.test.about
        what = f"{self.title} {f'{about}: ' if about else ''}"
        more, less = (first, second) if row.value > 0 else (second, first)
        yield claim(
            row,
            self.name,
            groups=self.groups,
            attribute=about,
            sentence=f"{what}More so for {more} than for {less}.",
            otherwise=f"{what}No difference detected between {first} and {second}.",
            over="pairs of texts",
            method="mean difference over pairs, t interval",
            details={},
        )


def _mean(gaps: np.ndarray, *, family: int, rate: float) -> Estimate:
    n = len(gaps)
    error = float(gaps.std(ddof=1) / np.sqrt(n)) if n > 1 else float("nan")
    return estimate(float(gaps.mean()), error, n - 1, units=n, family=family, rate=rate)

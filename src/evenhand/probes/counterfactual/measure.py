"""Gaps from scores made elsewhere: the same items scored for several groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from evenhand.compare.groups import SCORED, reference_group
from evenhand.compare.items import Floats, Items, Mask
from evenhand.compare.rows import Row, Test, judge
from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError, unknown
from evenhand.probes.base import Placebo
from evenhand.probes.counterfactual import gaps
from evenhand.probes.counterfactual.gaps import Gap
from evenhand.probes.counterfactual.probe import (
    DECISION,
    ITEMS,
    KINDS,
    NEGATIVE,
    POSITIVE,
    SCORE,
    Comparison,
    Counterfactual,
)
from evenhand.probes.counterfactual.texts import NAMES, Label, View
from evenhand.probes.reading import Claims, Columns, Input, Reader, Result, Shown, listed
from evenhand.stats.clustered_means import STEADY, halves
from evenhand.stats.estimate import NAN, Estimate
from evenhand.stats.mixed import Design, Factor

MOST_CELLS = 20_000_000
RIGHT = "_right"
"""The column of right answers."""


@dataclass(frozen=True)
class CounterfactualResult(Result):
    """Gaps of scores; of decisions where there is a threshold, of errors where labels are given.

    `flips` of a gap is the share of items decided differently for the two groups (of several terms:
    of pairs of terms), NaN without a threshold.
    """

    measure: ClassVar[str] = "counterfactual"
    tables: ClassVar = (
        Columns(
            "same items, other group: score minus that of {reference!r} ({n_items} items, "
            "{n_unpaired} scored for one group only)",
            "gaps",
            ("group", "value", "low", "high", "p", "q", "n", "flips", "reason"),
        ),
    )

    gaps: Sequence[Row]
    errors: Sequence[Row]
    reference: str
    n_items: int
    n_unpaired: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        yield from super().shown()
        if self.errors:
            keys = ("kind", "group", "value", "low", "high", "p", "q", "n", "reason")
            yield listed("decisions at the threshold (shares)", self.errors, keys)


class CounterfactualReader(Reader):
    name = "counterfactual"
    help = """Score, decision and error-rate gaps of the same items scored for several groups.

    One row per scored text: item, group, score; optional label (the right answer, yes or no),
    threshold, and term (the name that stood in the text), over which claims then generalise.
    """
    positional = ("table",)

    table: Input = Field(description="Columns item, group, score; optional label, threshold, term.")
    reference: str = Field("", description="The group that the others are compared with.")
    threshold: float | None = Field(
        None, description="Decide at this score where no column says; default: 0.5 for shares."
    )

    bad: Literal["", "high", "low"] = Field(
        "", description="Which end of the score is bad for the person, to say who is worse off."
    )

    def read(self) -> CounterfactualResult:
        names = ("item", "group", "term")
        table = read_table(self.table, text=names, needed=("item", "group", "score"))
        scores = table.numbers("score")
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise DataError(
                f"{table.source}, row {row + 1}, column score: has no number. Leave out rows that "
                "could not be scored."
            )
        cuts = self._cuts(table, scores)
        groups = list(table.labels("group"))
        reference = self._reference(list(dict.fromkeys(groups)), table.source)
        items = list(table.labels("item"))
        columns: dict[str, Any] = {
            "item": items,
            "cell": groups,
            "term": list(table.labels("term")) if table.has("term") else groups,
            "text": items,
            "score": scores,
            "called": np.where(np.isnan(cuts), np.nan, (scores >= cuts).astype(np.float64)),
        }
        if table.has("label"):
            columns[RIGHT] = table.flags("label")
        rows = Items(columns)
        judged = judge(_contract(rows, reference))
        first, others = (
            {item for item, group in zip(items, groups) if (group == reference) == side}
            for side in (True, False)
        )
        return CounterfactualResult(
            [row for row in judged if row.test.family == SCORE],
            [row for row in judged if row.test.family != SCORE],
            reference,
            rows.count("item"),
            len(first ^ others),
            self.only("threshold"),
        ).telling(lambda: self._claims(rows, reference, cuts, table))

    def _claims(self, items: Items, reference: str, cuts: Floats, table: Table) -> Claims:
        scores, name = items.numbers("score"), "positive"
        share = bool(((scores >= 0) & (scores <= 1)).all())
        if self.bad == "low":
            name = "negative"
            turned = {"called": 1 - items.numbers("called")}
            turned |= {"score": 1 - scores} if share else {}
            items = items.having(turned | ({RIGHT: ~items[RIGHT]} if RIGHT in items else {}))
        cut = float(cuts[0]) if len(set(cuts.tolist())) == 1 else NAN
        label = Label(name, 0, self.bad or "unknown", share=share, cut=cut)
        paired = Paired(reference, label, NAMES if table.has("term") else ITEMS)
        probe = Counterfactual.model_validate({})
        return Claims.of(probe, self, table.source, probe.measure(items.regarding(paired)))

    def _cuts(self, table: Table, scores: Floats) -> Floats:
        if table.has("threshold"):
            return table.numbers("threshold")
        shares = bool(((scores >= 0) & (scores <= 1)).all())
        cut = self.threshold if self.threshold is not None else 0.5 if shares else NAN
        return np.full(len(scores), cut)

    def _reference(self, groups: list[str], where: str) -> str:
        if len(groups) < 2:
            raise DataError(
                f"{where}, column group: {groups[0]!r} is the only group. Accepted: the same items "
                f"scored for two groups or more."
            )
        if self.reference and self.reference not in groups:
            raise DataError(unknown("group", self.reference, groups, where=where))
        return reference_group(groups, [self.reference], SCORED)


@dataclass(frozen=True, eq=False)
class PairedGap(Estimate):
    """An estimate with the numbers that the contract states, and the place of q among them."""

    def recorded(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("value", "low", "high", "p")} | {"q": NAN}


@dataclass(frozen=True)
class Part:
    """A group beside the reference in one kind of number, on the items that were scored for both.

    Attributes:
        items: rows of both.
        values: the numbers that are compared.
    """

    kind: str
    group: str
    reference: str
    items: Items
    values: Floats

    @cached_property
    def first(self) -> Mask:
        """The rows of the group."""
        return self.items.where(cell=self.group)

    def view(self, source: str) -> View:
        sides = {group: (group, "") for group in (self.group, self.reference)}
        return View("groups", source, sides, self.reference, "for {group} than for {reference}")

    def by_item(self, values: Floats) -> tuple[Floats, Floats]:
        """Return the mean of every item for the group, and for the reference."""
        codes, n = self.items.codes("item"), self.items.count("item")
        group, reference = (
            np.bincount(codes[side], values[side], n) / np.bincount(codes[side], minlength=n)
            for side in (self.first, ~self.first)
        )
        return group, reference

    @cached_property
    def measured(self) -> tuple[Estimate, tuple[float, float]]:
        """The gap, and the means of both groups."""
        count = self.items.count("item")
        if count < 2:
            why = f"{count} items are scored for both groups; at least two are needed"
            return Estimate(NAN, units=count, reason=why), (NAN, NAN)
        rows = self.items.having({"truth": [""] * self.items.size})
        tables = gaps.panels(rows, self.values[:, None])
        if len(tables) > 1:
            return self._sparse()
        gap = gaps.gap(tables, self.view(NAMES), self.group, self.reference)
        assert gap is not None
        return gap.estimates()[0], (float(gap.means[0][0]), float(gap.means[1][0]))

    def _sparse(self) -> tuple[Estimate, tuple[float, float]]:
        """Gaps within items, where not every term is in every item; both are samples."""
        item, term = self.items.codes("item"), self.items.codes("term")
        count, terms = self.items.count("item"), self.items.count("term")
        sides = self.by_item(self.values)
        means = (float(sides[0].mean()), float(sides[1].mean()))
        if terms > 2 and len(item) * (terms + 2 * count) <= MOST_CELLS:
            sign = np.where(self.first, 0.5, -0.5)
            factors = [Factor(term), Factor(item, sign)]
            design = Design(factors, sign[:, None], [1.0], within=item)
            return design.estimate(self.values), means
        return Design([Factor(np.arange(count))]).estimate(sides[0] - sides[1]), means

    @property
    def flips(self) -> float:
        """The share of items that are decided differently."""
        one, two = self.by_item(self.items.numbers("called"))
        return float((one * (1 - two) + two * (1 - one)).mean()) if len(one) else NAN

    def halves(self) -> tuple[int, int]:
        """Compare halves of the items, by their gaps: tests, and alarms."""
        one, two = self.by_item(self.values)
        order = np.argsort(np.unique(self.items.codes("item"), return_index=True)[1])
        return halves((one - two)[order], range(len(order)), splits=STEADY)

    def comparison(self, label: Label, source: str) -> Comparison:
        """Return what the probe says of it."""
        estimate, means = self.measured
        distinct: dict[int, set[float]] = {}
        for item, value in zip(self.items.codes("item").tolist(), self.values.tolist()):
            distinct.setdefault(item, set()).add(value)
        gap = Gap(
            np.asarray([estimate.value]),
            np.asarray([estimate.error**2]),
            np.asarray([estimate.freedom]),
            len(distinct),
            min(self.items.count("term", at=side) for side in (self.first, ~self.first)),
            np.empty((1, 0)),
            (np.asarray([means[0]]), np.asarray([means[1]])),
        )
        return Comparison(
            self.view(source),
            self.group,
            self.reference,
            label,
            self.kind,
            gap,
            self.flips if label.decides else NAN,
            float(np.std([np.mean([*values]) for values in distinct.values()], ddof=1)),
            sum(len(values) > 1 for values in distinct.values()),
            known=None if estimate.error else estimate,
        )


def _parts(items: Items, reference: str) -> Iterator[Part]:
    """Yield every group and kind of number that can be compared."""
    decided = bool(np.isfinite(items.numbers("called")).all())
    for group in dict.fromkeys(items["cell"]):
        for kind in KINDS if group != reference else ():
            wanted = {POSITIVE: False, NEGATIVE: True}.get(kind)
            if (kind != SCORE and not decided) or (wanted is not None and RIGHT not in items):
                continue
            at = items.where(cell=group) | items.where(cell=reference)
            rows = items.at(at if wanted is None else at & (items[RIGHT] == wanted))
            codes, n, first = rows.codes("item"), rows.count("item"), rows.where(cell=group)
            both = [np.bincount(codes[side], minlength=n) > 0 for side in (first, ~first)]
            rows = rows.at((both[0] & both[1])[codes])
            values = rows.numbers("score" if kind == SCORE else "called")
            yield Part(kind, group, reference, rows, 1 - values if wanted else values)


def _contract(items: Items, reference: str) -> Iterator[Test]:
    """Declare what the contract states: gaps of scores, and apart from them all others."""
    decided = bool(np.isfinite(items.numbers("called")).all())
    for part in _parts(items, reference):
        estimate, means = part.measured
        gap = PairedGap(**vars(estimate))
        names = {"group": part.group, "reference": reference}
        more: dict[str, Any] = {"n": estimate.units}
        if part.kind == SCORE:
            more |= {
                "flips": part.flips if decided else NAN,
                "detectable": estimate.detectable,
                **dict(zip(("mean_group", "mean_reference"), means)),
            }
        else:
            names = {"kind": part.kind.replace("-", "_")} | names
        yield Test(
            part.group,
            "",
            names,
            lambda gap=gap, **how: gap,
            more | {"reason": estimate.reason},
            family=SCORE if part.kind == SCORE else DECISION,
        )


@dataclass(frozen=True)
class Paired:
    """How items are compared that were scored for several groups.

    Attributes:
        label: what the scores are.
        source: whether the terms in the items are known (names), or the items alone.
    """

    reference: str
    label: Label
    source: str

    def tests(self, items: Items) -> Iterator[Test]:
        """Declare every comparison; those that the scores do not allow are untested."""
        for part in _parts(items, self.reference):
            estimate, _ = part.measured
            if estimate.error == estimate.error:
                yield part.comparison(self.label, self.source).test()
                continue
            groups = {"group": part.group, "reference": part.reference}
            yield Test(
                f"groups/{part.group}-{part.reference}/{self.label.name}/{part.kind}",
                f"{part.kind.replace('-', '_')}_gap",
                {"kind": part.kind, **groups},
                lambda e=estimate, **how: e,
                tested=False,
            )

    def checks(self, items: Items, seed: int) -> Iterator[Placebo]:
        """Compare random halves of the items of every group."""
        scores = (part for part in _parts(items, self.reference) if part.kind == SCORE)
        yield Placebo.of("random halves of the items", (part.halves() for part in scores))


READERS = (CounterfactualReader,)

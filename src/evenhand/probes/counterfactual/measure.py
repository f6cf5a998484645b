"""Gaps from scores made elsewhere: the same items scored for several groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError, unknown
from evenhand.probes.base import Measured, Placebo
from evenhand.probes.counterfactual import gaps
from evenhand.probes.counterfactual.findings import KINDS as CLAIMED
from evenhand.probes.counterfactual.findings import (
    NEGATIVE,
    POSITIVE,
    SCORE,
    Row,
    finding,
    gap_table,
)
from evenhand.probes.counterfactual.gaps import Bools, Floats, Gap
from evenhand.probes.counterfactual.labels import Tested
from evenhand.probes.counterfactual.texts import NAMES, Filled, View
from evenhand.probes.reading import Claims, Input, Reader, Result, Shown, listed
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import STEADY, halves
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg

USUAL = (
    "reference",
    "baseline",
    "control",
    "original",
    "majority",
    "white",
    "european_american",
    "male",
    "man",
    "men",
)
NAN = float("nan")
KINDS = ("score", "decision", "false_positive", "false_negative")
MOST_CELLS = 20_000_000


@dataclass(frozen=True)
class GapRow:
    """A group beside the reference, on the items that were scored for both.

    `flips` is the share of items decided differently for the two (of several terms: of pairs of
    terms), NaN without a threshold.
    """

    group: str
    reference: str
    value: float
    low: float
    high: float
    p: float
    q: float
    n: int
    flips: float
    detectable: float
    mean_group: float
    mean_reference: float
    reason: str = ""


@dataclass(frozen=True)
class ErrorRow:
    """A gap in decisions or in error rates."""

    kind: str
    group: str
    reference: str
    value: float
    low: float
    high: float
    p: float
    q: float
    n: int
    reason: str = ""


@dataclass(frozen=True)
class CounterfactualResult(Result):
    """Gaps of scores; of decisions where there is a threshold, of errors where labels are given."""

    measure: ClassVar[str] = "counterfactual"

    gaps: Sequence[GapRow]
    errors: Sequence[ErrorRow]
    reference: str
    n_items: int
    n_unpaired: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        title = (
            f"same items, other group: score minus that of {self.reference!r} ({self.n_items} "
            f"items, {self.n_unpaired} scored for one group only)"
        )
        keys = ("group", "value", "low", "high", "p", "q", "n", "flips", "reason")
        yield listed(title, self.gaps, keys)
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
        table = read_table(
            self.table, text=("item", "group", "term"), needed=("item", "group", "score")
        )
        scores = table.numbers("score")
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise DataError(
                f"{table.source}, row {row + 1}, column score: has no number. Leave out rows that "
                "could not be scored."
            )
        cuts = self._cuts(table, scores)
        called = np.where(np.isnan(cuts), np.nan, (scores >= cuts).astype(np.float64))
        groups, items = list(table.labels("group")), list(table.labels("item"))
        reference = self._reference(list(dict.fromkeys(groups)), table.source)
        truth = table.flags("label") if table.has("label") else None
        terms = list(table.labels("term")) if table.has("term") else groups
        data = _Data(items, groups, terms, scores, called, truth)
        others = [g for g in dict.fromkeys(groups) if g != reference]
        rows = [data.gap(group, reference) for group in others]
        q = benjamini_hochberg([row.p for row in rows])
        told = [replace(row, q=float(v)) for row, v in zip(rows, q)]
        errors = [row for group in others for row in data.errors(group, reference)]
        q = benjamini_hochberg([row.p for row in errors])
        both = {i for i, g in zip(items, groups) if g == reference}
        pairs = {i for i, g in zip(items, groups) if g != reference}
        return CounterfactualResult(
            told,
            [replace(row, q=float(v)) for row, v in zip(errors, q)],
            reference,
            len(set(items)),
            len(both ^ pairs),
            self.only("threshold"),
        ).telling(lambda: self._claims(data, reference, others, cuts, table.source))

    def _claims(
        self, data: _Data, reference: str, others: list[str], cuts: Floats, source: str
    ) -> Claims:
        from evenhand.probes.counterfactual.probe import Counterfactual

        share = bool(((data.scores >= 0) & (data.scores <= 1)).all())
        name = "positive"
        if self.bad == "low":
            name, right = "negative", None if data.truth is None else ~data.truth
            scores = 1 - data.scores if share else data.scores
            data = replace(data, scores=scores, called=1 - data.called, truth=right)
        cut = float(cuts[0]) if len(set(cuts.tolist())) == 1 else NAN
        label = Tested(name, 0, self.bad or "unknown", share=share, cut=cut)
        made = [r for g in others for k in CLAIMED for r in data.row(k, g, reference, label)]
        known = [row for row in made if isinstance(row, Row)]
        family = sum(row.testable for row in known)
        findings = [
            row
            if isinstance(row, Finding)
            else _said(finding(row, family, 0.05, ()), named=data.terms is not data.groups)
            for row in made
        ]
        tables = {"gaps": gap_table([f for f in findings if f.details])}
        columns = {
            "item": data.items,
            "cell": data.groups,
            "term": data.terms,
            "text": data.items,
            "score": data.scores,
            "called": data.called,
        }
        placebo = Placebo.of(
            "random halves of the items", (data.halves(g, reference) for g in others)
        )
        found = Measured(findings, pa.table(columns), tables, {}, (placebo,))
        return Claims.of(Counterfactual.model_validate({}), self, source, found)

    def _cuts(self, table: Table, scores: Floats) -> Floats:
        if table.has("threshold"):
            return table.numbers("threshold")
        shares = bool(((scores >= 0) & (scores <= 1)).all())
        given = self.threshold if self.threshold is not None else 0.5 if shares else NAN
        return np.full(len(scores), given)

    def _reference(self, groups: list[str], where: str) -> str:
        if len(groups) < 2:
            raise DataError(
                f"{where}, column group: {groups[0]!r} is the only group. Accepted: the same items "
                f"scored for two groups or more."
            )
        if self.reference:
            if self.reference not in groups:
                raise DataError(unknown("group", self.reference, groups, where=where))
            return self.reference
        plain = {g.lower().replace(" ", "_"): g for g in reversed(groups)}
        return next((plain[name] for name in USUAL if name in plain), groups[0])


@dataclass(frozen=True)
class _Data:
    items: list[str]
    groups: list[str]
    terms: list[str]
    scores: Floats
    called: Floats
    truth: Bools | None

    def gap(self, group: str, reference: str) -> GapRow:
        kept = self._paired(group, reference, None)
        found, means = self._estimate(kept, group, reference, self.scores)
        flips = NAN
        if kept and np.isfinite(self.called[kept]).all():
            flips = self._flips(kept, group)
        return GapRow(
            group,
            reference,
            found.value,
            found.low,
            found.high,
            found.p,
            NAN,
            found.units,
            flips,
            found.detectable,
            *means,
            found.reason,
        )

    def errors(self, group: str, reference: str) -> Iterator[ErrorRow]:
        if not np.isfinite(self.called).all():
            return
        for kind, wanted in zip(KINDS[1:], (None, False, True)):
            if wanted is not None and self.truth is None:
                return
            values = 1 - self.called if wanted else self.called
            kept = self._paired(group, reference, wanted)
            found, _ = self._estimate(kept, group, reference, values)
            yield ErrorRow(
                kind,
                group,
                reference,
                found.value,
                found.low,
                found.high,
                found.p,
                NAN,
                found.units,
                found.reason,
            )

    def row(self, kind: str, group: str, reference: str, label: Tested) -> Iterator[Row | Finding]:
        """One comparison as the probe words it; what cannot be compared is said."""
        wanted = {POSITIVE: False, NEGATIVE: True}.get(kind)
        undecided = kind != SCORE and not np.isfinite(self.called).all()
        if undecided or (wanted is not None and self.truth is None):
            return
        values = self.scores if kind == SCORE else 1 - self.called if wanted else self.called
        kept = self._paired(group, reference, wanted)
        found, means = self._estimate(kept, group, reference, values)
        place = f"counterfactual/groups/{group}-{reference}/{label.name}/{kind}"
        if found.error != found.error:
            yield Finding(
                place,
                "counterfactual",
                f"{kind.replace('-', '_')}_gap",
                found.value,
                sentence=f"{group} and {reference} could not be compared ({kind}).",
                groups=(group, reference),
                reason=found.reason,
            )
            return
        sides = [{self.terms[k] for k in kept if self.groups[k] == g} for g in (group, reference)]
        items: dict[str, set[float]] = {}
        for k in kept:
            items.setdefault(self.items[k], set()).add(float(values[k]))
        gap = Gap(
            np.asarray([found.value]),
            np.asarray([found.error**2]),
            np.asarray([found.freedom]),
            len(items),
            min(map(len, sides)),
            np.empty((1, 0)),
            (np.asarray([means[0]]), np.asarray([means[1]])),
        )
        view = View(
            "groups",
            NAMES,
            {g: (g, "") for g in (group, reference)},
            reference,
            "for {group} than for {reference}",
        )
        flips = self._flips(kept, group) if label.decides else NAN
        spread = float(np.std([np.mean([*v]) for v in items.values()], ddof=1))
        varying = sum(len(v) > 1 for v in items.values())
        yield Row(
            view,
            group,
            reference,
            label,
            kind,
            gap,
            flips,
            spread,
            varying,
            None if found.error else found,
        )

    def halves(self, group: str, reference: str) -> tuple[int, int]:
        """Tests and alarms of halves of the items, by their gaps."""
        kept = self._paired(group, reference, None)
        sides: dict[str, list[list[float]]] = {}
        for k in kept:
            sides.setdefault(self.items[k], [[], []])[self.groups[k] == reference].append(
                float(self.scores[k])
            )
        away = [float(np.mean(one) - np.mean(two)) for one, two in sides.values()]
        return halves(away, range(len(away)), splits=STEADY)

    def _paired(self, group: str, reference: str, wanted: bool | None) -> list[int]:
        """Rows of both groups on items that have both."""
        right = self.truth
        at = [
            k
            for k, g in enumerate(self.groups)
            if g in (group, reference) and (right is None or wanted is None or right[k] == wanted)
        ]
        sides = [{self.items[k] for k in at if self.groups[k] == g} for g in (group, reference)]
        both = sides[0] & sides[1]
        return [k for k in at if self.items[k] in both]

    def _estimate(
        self, kept: list[int], group: str, reference: str, values: Floats
    ) -> tuple[Estimate, tuple[float, float]]:
        count = len({self.items[k] for k in kept})
        if count < 2:
            why = f"{count} items are scored for both groups; at least two are needed"
            return Estimate(NAN, units=count, reason=why), (NAN, NAN)
        filled = [Filled(NAMES, self.items[k], self.groups[k], self.terms[k], "") for k in kept]
        view = View("groups", NAMES, {g: (g, "") for g in (group, reference)}, reference, "")
        tables = gaps.panels(filled, values[kept][:, None])
        whole = [t for t in tables if gaps.weights(t, view, group, reference)]
        if len(whole) == 1 and len(tables) == 1:
            found = gaps.gap(whole, view, group, reference)
            assert found is not None
            return found.estimates()[0], (float(found.means[0][0]), float(found.means[1][0]))
        return self._sparse(kept, group, reference, values)

    def _sparse(
        self, kept: list[int], group: str, reference: str, values: Floats
    ) -> tuple[Estimate, tuple[float, float]]:
        """Not every term in every item: gaps within items, items and terms as samples."""
        codes = {i: n for n, i in enumerate(sorted({self.items[k] for k in kept}))}
        item = np.asarray([codes[self.items[k]] for k in kept])
        first = np.asarray([self.groups[k] == group for k in kept])
        sides = [
            np.bincount(item[first == s], values[kept][first == s], len(codes))
            / np.bincount(item[first == s], minlength=len(codes))
            for s in (True, False)
        ]
        means = (float(sides[0].mean()), float(sides[1].mean()))
        names = {t: n for n, t in enumerate(sorted({self.terms[k] for k in kept}))}
        if len(names) > 2 and len(kept) * (len(names) + 2 * len(codes)) <= MOST_CELLS:
            sign = np.where(first, 0.5, -0.5)
            design = Design(
                [Factor(np.asarray([names[self.terms[k]] for k in kept])), Factor(item, sign)],
                sign[:, None],
                [1.0],
                within=item,
            )
            return design.estimate(values[kept]), means
        return Design([Factor(np.arange(len(codes)))]).estimate(sides[0] - sides[1]), means

    def _flips(self, kept: list[int], group: str) -> float:
        shares: dict[str, list[list[float]]] = {}
        for k in kept:
            side = 0 if self.groups[k] == group else 1
            shares.setdefault(self.items[k], [[], []])[side].append(float(self.called[k]))
        pairs = [(float(np.mean(one)), float(np.mean(two))) for one, two in shares.values()]
        return float(np.mean([a * (1 - b) + b * (1 - a) for a, b in pairs]))


def _said(found: Finding, *, named: bool) -> Finding:
    """Where no terms are known, items alone are what was sampled."""
    if named:
        return found
    return replace(
        found,
        attribute=str(found.details["label"]),
        units="texts",
        generalises_over=("texts",),
        method="t over texts",
    )


READERS = (CounterfactualReader,)

"""What the counterfactual probe says: gaps in scores, decisions and errors, in the same texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.probes.base import Placebo
from evenhand.probes.counterfactual import gaps
from evenhand.probes.counterfactual.gaps import Floats, Gap, Panel
from evenhand.probes.counterfactual.labels import Tested, right_label
from evenhand.probes.counterfactual.texts import CONTROL, NAMES, PAIRS, WORDS, Filled, View
from evenhand.probes.shared.estimates import claim, stated
from evenhand.runs.finding import Finding
from evenhand.runs.wording import people
from evenhand.stats.clustered_means import STEADY, halves
from evenhand.stats.estimate import ENOUGH, Estimate, within
from evenhand.stats.multiple import benjamini_hochberg

NAME = "counterfactual"
SCORE, DECISION, POSITIVE, NEGATIVE = "score", "decision", "false-positive", "false-negative"
KINDS = (SCORE, DECISION, POSITIVE, NEGATIVE)
ALARM = 0.05
FEW = 8
"""Terms of a group from which on halves of them are many enough to tell a rate."""
SMALL = 0.2
"""A small effect in standard deviations (Cohen 1988): the margin of a score without a scale."""
MARGIN = 0.05
OVER = {NAMES: ("texts", "names"), WORDS: ("texts", "words"), PAIRS: ("pairs of texts",)}
BY = {NAMES: "by the name", WORDS: "by the word for a person", PAIRS: "by the dialect"}
METHOD = {
    NAMES: "texts and names as crossed samples, Satterthwaite t",
    WORDS: "texts as samples, words with the spread of control words, Satterthwaite t",
    PAIRS: "t over pairs of texts",
}


@dataclass(frozen=True)
class Row:
    """One comparison: a label, a kind of number, a group and its reference."""

    view: View
    group: str
    reference: str
    label: Tested
    kind: str
    gap: Gap
    flips: float = float("nan")
    spread: float = float("nan")
    """Standard deviation of the scores between texts."""
    varying: int = 0
    """Texts that are decided in two ways, whichever terms stand in them: it says nothing about the
    groups compared, so that it may decide whether they are."""
    known: Estimate | None = None
    """The estimate, where it does not follow from the gap's variance."""

    @property
    def place(self) -> str:
        return f"{self.view.axis}/{self.group}-{self.reference}/{self.label.name}/{self.kind}"

    @property
    def testable(self) -> bool:
        """Decisions that hardly ever differ cannot be told from chance; scores can."""
        return self.kind == SCORE or self.varying >= ENOUGH

    def found(self, family: int = 1, rate: float = ALARM) -> Estimate:
        made = self.known or self.gap.estimates(family, rate)[0]
        if self.kind == SCORE and not self.label.share:
            return made
        seen = min(made.detectable, 1.0) if self.kind == SCORE else within(made.detectable, 1.0)
        return replace(made, low=max(made.low, -1.0), high=min(made.high, 1.0), detectable=seen)


@dataclass(frozen=True)
class Scored:
    """Texts with their scores: `values` [labels, 2, texts] are score and decision of each label."""

    filled: Sequence[Filled]
    views: Sequence[View]
    labels: Sequence[Tested]
    values: Floats
    names: Sequence[str] = ()
    """All labels of the model."""

    def tables(self, source: str) -> list[Panel]:
        at = [k for k, f in enumerate(self.filled) if f.source == source]
        columns = self.values.reshape(-1, len(self.filled))[:, at].T
        return gaps.panels([self.filled[k] for k in at], columns)

    def rows(self) -> list[Row]:
        """Every comparison that the texts allow."""
        out: list[Row] = []
        for source in dict.fromkeys(v.source for v in self.views):
            tables = self.tables(source)
            for view in (v for v in self.views if v.source == source):
                for group, reference in view.contrasts:
                    for number, label in enumerate(self.labels):
                        out += self._rows(tables, view, (group, reference), number, label)
        return out

    def _rows(
        self, tables: list[Panel], view: View, pair: tuple[str, str], number: int, label: Tested
    ) -> Iterator[Row]:
        chosen = [replace(t, values=t.values[2 * number : 2 * number + 2]) for t in tables]
        spread = _spread(chosen)
        for kind, kept in self._parts(chosen, label):
            column = 0 if kind == SCORE else 1
            some = [replace(t, values=t.values[column : column + 1]) for t in kept]
            found = gaps.gap(some, view, *pair) if some else None
            if found is not None:
                flipped = gaps.flips(kept, view, *pair, 1) if label.decides else float("nan")
                varying = sum(int((np.ptp(t.values[0], axis=0) > 0).sum()) for t in some)
                yield Row(view, *pair, label, kind, found, flipped, spread, varying)

    def _parts(self, tables: list[Panel], label: Tested) -> Iterator[tuple[str, list[Panel]]]:
        """The tables of each kind of number; errors on the texts whose right label is known."""
        yield SCORE, tables
        if not label.decides:
            return
        yield DECISION, tables
        if not any(any(t.truths) for t in tables):
            return
        for kind, wanted in ((POSITIVE, False), (NEGATIVE, True)):
            kept = []
            for table in tables:
                known = [right_label(t, label, self.names) for t in table.truths]
                part = table.of_items(np.asarray([k is wanted for k in known]))
                # A text that is one and is not called so is missed: the decision turned round.
                values = 1 - part.values if wanted else part.values
                kept += [replace(part, values=values)] if part.items else []
            yield kind, kept

    def findings(self, rate: float) -> list[Finding]:
        """The claims, corrected together."""
        rows = [row for row in self.rows() if row.testable or row.varying]
        family = sum(row.testable for row in rows)
        told = [finding(row, family, rate, self._example(row)) for row in rows]
        q = benjamini_hochberg([f.p for f in told])
        return [replace(f, q=float(value)) for f, value in zip(told, q)]

    def _example(self, row: Row) -> tuple[dict[str, Any], ...]:
        """The median text of those that go the way of the claim, with a typical pair of terms."""
        value, by_text = row.gap.value[0], row.gap.by_text[0]
        if not row.testable or not abs(value) > 0:
            return ()
        way = np.sign(value)
        tables = self.tables(row.view.source)
        items = [
            item
            for t in tables
            if gaps.weights(t, row.view, row.group, row.reference)
            for item in t.items
        ]
        if len(items) != len(by_text):  # errors are counted on some texts only
            return ()
        agree = [k for k in np.argsort(way * by_text, kind="stable") if way * by_text[k] > 0]
        if not agree:
            return ()
        item = items[agree[(len(agree) - 1) // 2]]
        number = self.labels.index(row.label)
        sides = [self._typical(row, item, side, number) for side in (row.group, row.reference)]
        return (
            {
                "first": sides[0][0],
                "second": sides[1][0],
                "score_first": sides[0][1],
                "score_second": sides[1][1],
                "typical": f"the median of the {len(agree)} of {len(items)} texts that go this way",
            },
        )

    def _typical(self, row: Row, item: str, side: str, number: int) -> tuple[str, float]:
        cells = {cell for cell, (group, _) in row.view.sides.items() if group == side}
        at = [
            k
            for k, f in enumerate(self.filled)
            if f.item == item and f.source == row.view.source and f.cell in cells
        ]
        at.sort(key=lambda k: (self.values[number, 0, k], self.filled[k].text))
        middle = at[(len(at) - 1) // 2]
        return self.filled[middle].text, round(float(self.values[number, 0, middle]), 4)

    def placebos(self, seed: int) -> tuple[Placebo, ...]:
        """Comparisons in which there is nothing to find, with the same scores."""
        out = []
        for source in dict.fromkeys(v.source for v in self.views):
            tables = [replace(t, values=t.values[::2]) for t in self.tables(source)]
            views = [v for v in self.views if v.source == source]
            if source == PAIRS:
                found = [_pair_halves(tables, views[0], seed)]
                out.append(Placebo.of("random halves of the pairs of texts", found))
            elif source == WORDS:
                found = [_control_halves(t, seed, STEADY // len(tables) + 1) for t in tables]
                out.append(Placebo.of("control words, one half of them against the other", found))
            else:
                splits = STEADY // (len(views) * len(tables)) + 1
                found = [_name_halves(t, v, seed, splits) for v in views for t in tables]
                out.append(Placebo.of("random halves of one group's names", found))
        return tuple(out)


def _name_halves(panel: Panel, view: View, seed: int, splits: int) -> tuple[int, int]:
    """Halves of the names of every group, cell by cell, against each other."""
    p: list[float] = []
    rng = np.random.default_rng([seed, 3])
    members: dict[str, list[str]] = {}
    for cell, (group, _) in view.sides.items():
        if len(panel.rows(cell)) > 3:
            members.setdefault(group, []).append(cell)
    members = {
        group: cells
        for group, cells in members.items()
        if sum(len(panel.rows(cell)) for cell in cells) >= FEW
    }
    if len(panel.items) < 2:
        return 0, 0
    for cells in members.values():
        for _ in range(splits // max(1, len(members)) + 1):
            halved, weighed = list(panel.cells), {}
            for cell in cells:
                order = rng.permutation(panel.rows(cell))
                half = len(order) // 2
                for side, sign in ((0, 1.0), (1, -1.0)):
                    name = f"{cell}/{side}"
                    weighed[name] = sign / len(cells)
                    for k in order[side * half : (side + 1) * half]:
                        halved[k] = name
            p += [
                e.p for e in gaps.gap_of(replace(panel, cells=tuple(halved)), weighed).estimates()
            ]
    return _alarms(p)


def _control_halves(panel: Panel, seed: int, splits: int) -> tuple[int, int]:
    """Halves of the control words against each other.

    Of single words against each other one that is unlike the rest would decide a tenth of all.
    """
    rows, p = panel.rows(CONTROL), []
    if len(rows) < FEW or len(panel.items) < 2:
        return 0, 0
    rng = np.random.default_rng([seed, 5])
    for _ in range(splits):
        order, cells = rng.permutation(rows), list(panel.cells)
        for k in order[: len(rows) // 2]:
            cells[k] = "first"
        for k in order[len(rows) // 2 :]:
            cells[k] = "second"
        made = replace(panel, cells=tuple(cells))
        p += [e.p for e in gaps.gap_of(made, {"first": 1.0, "second": -1.0}).estimates()]
    return _alarms(p)


def _pair_halves(tables: Sequence[Panel], view: View, seed: int) -> tuple[int, int]:
    found = gaps.gap(tables, view, *view.contrasts[0])
    if found is None:
        return 0, 0
    parts = [
        halves(column, range(len(column)), seed=seed, splits=STEADY) for column in found.by_text
    ]
    return sum(n for n, _ in parts), sum(k for _, k in parts)


def _alarms(p: Sequence[float]) -> tuple[int, int]:
    known = [value for value in p if value == value]
    return len(known), sum(value <= ALARM for value in known)


def _spread(tables: Sequence[Panel]) -> float:
    means = np.concatenate([t.values[0].mean(axis=0) for t in tables])
    return float(means.std(ddof=1)) if len(means) > 1 else float("nan")


def metric_of(row: Row) -> str:
    """Which card explains a row."""
    kind = f"{row.kind.replace('-', '_')}_gap"
    if row.label.harms == "unknown" and row.kind != NEGATIVE:
        kind = "label_gap" if row.kind == SCORE else "call_gap"
    elif row.kind == SCORE and not row.label.share:
        kind = "points_gap" if row.label.harms == "low" else "burden_gap"
    return f"dialect_{kind}" if row.view.source == PAIRS else kind


def finding(row: Row, family: int, rate: float, examples: tuple[dict[str, Any], ...]) -> Finding:
    """The claim of one comparison, of a family of so many."""
    found = row.found(family, rate)
    sentence, otherwise = _sentences(row)
    if not row.testable:
        why = (
            f"decisions vary in {row.varying} of {row.gap.texts} texts, and fewer than "
            f"{ENOUGH} cannot be told from chance"
        )
        found = Estimate(found.value, units=found.units, reason=why)
        both = (
            f"{people(row.group)} and {people(row.reference)} ({row.view.axis.replace('_', ' ')})"
        )
        sentence, otherwise = f"Between {both}, {why} ({row.label.said}); see the scores.", ""
    source = row.view.source
    by_terms = source != PAIRS and 1 < row.gap.terms < row.gap.texts
    means = [stated(float(m[0])) for m in row.gap.means]
    margin = float("nan")
    if not row.label.share and row.kind == SCORE:
        margin = stated(SMALL * row.spread, 3)
    elif row.kind == NEGATIVE or row.label.harms == "unknown":
        margin = MARGIN
    return claim(
        f"{NAME}/{row.place}",
        metric_of(row),
        found,
        sentence=sentence,
        otherwise=otherwise,
        units=f"{OVER[source][1]} of a group" if by_terms else OVER[source][0],
        over=OVER[source],
        groups=(row.group, row.reference),
        margin=margin,
        attribute=f"{row.label.name}, {BY[source]}",
        method=METHOD[source],
        examples=examples,
        details={
            "axis": row.view.axis,
            "label": row.label.name,
            "kind": row.kind,
            "mean_group": means[0],
            "mean_reference": means[1],
            "flips": stated(row.flips),
            "texts": row.gap.texts,
            "terms": row.gap.terms,
            "bad_guessed": row.label.guessed,
            "texts_varying": row.varying,
            "spread_between_texts": stated(row.spread),
        },
    )


def _sentences(row: Row) -> tuple[str, str]:
    """What is said when a difference is detected, and when not."""
    value = float(row.gap.value[0])
    more, less = (row.group, row.reference) if value >= 0 else (row.reference, row.group)
    who = row.view.said.format(group=people(more), reference=people(less))
    both = f"{people(row.group)} and {people(row.reference)}"
    label, size = row.label, abs(value)
    quiet = f"No difference between {both} was detected in"
    if row.kind == SCORE:
        means = [float(m[0]) for m in row.gap.means]
        high, low = max(means), min(means)
        name = "The score" if label.name == "score" else f"The score for {label.name!r}"
        much = (
            f"{_count(100 * size)} points of 100 higher ({high:.3f} against {low:.3f})"
            if label.share
            else f"{size:.3g} higher ({high:.3g} against {low:.3g}; texts differ by "
            f"{row.spread:.3g})"
        )
        return (
            f"{name} of the same texts is {much} {who}.",
            f"{quiet} the score for {label.name!r}.",
        )
    what = {
        DECISION: ("such texts", label.said),
        POSITIVE: (f"such texts that are not {label.name}", label.said),
        NEGATIVE: (f"such texts that are {label.name}", f"not {label.said}"),
    }[row.kind]
    return (
        f"Of 100 {what[0]}, {_count(100 * size)} more are {what[1]} {who}.",
        f"{quiet} the share of {what[0]} that are {what[1]}.",
    )


def _count(value: float) -> str:
    """How many of 100, with decimals where they matter.

    >>> _count(12.6), _count(5.31), _count(0.042)
    ('13', '5.3', '0.042')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


TOLD = {"axis": "axis", "label": "output", "kind": "kind", "flips": "flips"}


def gap_table(findings: Sequence[Finding]) -> pa.Table:
    """What the charts draw, and what another tool may want."""
    names = ("value", "low", "high", "p", "q", "n")
    columns: dict[str, list[Any]] = {
        **{to: [f.details[key] for f in findings] for key, to in TOLD.items()},
        "group": [f.groups[0] for f in findings],
        "reference": [f.groups[1] for f in findings],
        **{n: [getattr(f, n) for f in findings] for n in names},
    }
    return pa.table(columns)

"""Counterfactual texts for classifiers and scorers: is the same text judged by who is in it?

Names, words for identities or the dialect are swapped, nothing else, and the model's own numbers
are compared: scores, decisions at its threshold, and errors where the right labels are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field

from evenhand.charts.builders import Ranked, in_turn
from evenhand.compare.examples import median_example
from evenhand.compare.items import Floats, Items
from evenhand.compare.rows import RATE, Row, Test, claim
from evenhand.corpora.tables import FLAGS, find_data
from evenhand.errors import SpecError
from evenhand.probes.base import Behaviour, ItemShape, Placebo, Probe, Way
from evenhand.probes.counterfactual import gaps
from evenhand.probes.counterfactual.gaps import Gap, Panel
from evenhand.probes.counterfactual.texts import (
    GUISES,
    LEXICON,
    NAMES,
    PAIRS,
    WORDS,
    Label,
    People,
    Texts,
    View,
    from_file,
    from_pairs,
    joined,
    packaged,
    read_labels,
    require_texts,
    right_label,
)
from evenhand.probes.shared.reach import too_few
from evenhand.requests import Classify
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.wording import listed, people
from evenhand.stats.clustered_means import STEADY
from evenhand.stats.estimate import ENOUGH, NAN, Estimate, stated, within
from evenhand.words.lexicons.people import NAME_LEXICONS

OWN = "your texts (a CSV with the column text, perhaps label)"
SCORE, DECISION, POSITIVE, NEGATIVE = "score", "decision", "false-positive", "false-negative"
KINDS = (SCORE, DECISION, POSITIVE, NEGATIVE)
SMALL = 0.2
"""A small effect in standard deviations (Cohen 1988): the margin of a score without a scale."""
MARGIN = 0.05
ITEMS = "items"
"""The source of texts that were scored elsewhere, of which no terms are known."""
SAMPLES = {
    NAMES: (
        ("texts", "names"),
        ", by the name",
        "texts and names as crossed samples, Satterthwaite t",
    ),
    WORDS: (
        ("texts", "words"),
        ", by the word for a person",
        "texts as samples, words with the spread of control words, Satterthwaite t",
    ),
    PAIRS: (("pairs of texts",), ", by the dialect", "t over pairs of texts"),
    ITEMS: (("texts",), "", "t over texts"),
}
"""By source: what was sampled, the end of what is compared, and the method."""
TABLE = (
    *("axis", "output", "kind", "flips", "group", "reference"),
    *("value", "low", "high", "p", "q", "n"),
)
"""Columns of the table of gaps: what the charts draw, and what another tool may want."""

FIVE = "5 of 100 texts are decided differently because of the person named"
SHARE = "from −1 to 1; 0: as for the reference; 0.05: 5 more of 100 texts"
UNITS = "in units of the model's score; 0: as for the reference"
TEXTS: dict[str, Any] = {"scale": "{size} of 100 texts", "per": 100, "low": -1, "high": 1}
MORE = " ({about}): {size} more of 100"
POINTS = " ({about}), by {size}"

PEOPLE = (
    MetricCard(
        "score_gap",
        "score gap",
        "from −1 to 1; 0: the same text scores equally",
        low=-1,
        high=1,
        harm="{first}: the same text gets a worse score than for {second}",
        margin=0.05,
        margin_why="5 points of 100 on the scale of probabilities",
        per=100,
        told=" ({about}), by {size} points of 100",
        scale="{size} points of 100",
    ),
    MetricCard(
        "decision_gap",
        "decision gap",
        SHARE,
        margin=0.05,
        margin_why=FIVE,
        told=MORE,
        **TEXTS,
        harm="{first}: the same text is decided against them more often than for {second}",
    ),
    MetricCard(
        "false_positive_gap",
        "false-positive gap",
        SHARE,
        margin=0.05,
        margin_why=FIVE,
        told=MORE,
        harm="{first}: texts that are fine are decided against them more often than for {second}",
        **TEXTS,
    ),
    # Whom it harms that a text is let pass depends on what the model is for.
    MetricCard("false_negative_gap", "false-negative gap", SHARE, **TEXTS),
    MetricCard(
        "points_gap",
        "gap in points",
        UNITS,
        told=POINTS,
        harm="{second}: the same text gets fewer points than for {first}",
    ),
    MetricCard(
        "burden_gap",
        "gap in points",
        UNITS,
        told=POINTS,
        harm="{first}: the same text gets more points, which is worse, than for {second}",
    ),
    MetricCard("label_gap", "score difference", "0: the same text scores equally"),
    MetricCard("call_gap", "difference in decisions", SHARE, **TEXTS),
)
DIALECTS = tuple(
    replace(
        card,
        metric=f"dialect_{card.metric}",
        harm=card.harm.replace("{first}", "speakers of {first}").replace(
            "{second}", "speakers of {second}"
        ),
    )
    for card in PEOPLE
    if "false" not in card.metric
)
CARDS = PEOPLE + DIALECTS
CAPTION = (
    "Right of the dashed line, the same text gets more of it for the group named first. Bars are "
    "95 % intervals over texts, and over names or words."
)


def _named(row: Any) -> str:
    both = f"{row['group']} / {row['reference']}".replace("_", " ")
    return f"{both} ({row['output']}, {row['axis'].replace('_', ' ')})"


def _of(kind: str, title: str, axis: str) -> Ranked:
    return Ranked(title, axis, CAPTION, _named, lambda r: bool(r["kind"] == kind))


CHARTS = {
    "gaps": in_turn(
        _of("score", "Scores of the same texts", "difference of mean scores"),
        _of("decision", "Decisions about the same texts", "difference of shares"),
        _of("false-positive", "Wrongly called so", "difference of false-positive rates"),
        _of("false-negative", "Wrongly let through", "difference of false-negative rates"),
    ),
}


def _several(value: Any) -> Any:
    return tuple(v.strip() for v in value.split(",")) if isinstance(value, str) else value


Labels = Annotated[tuple[str, ...], BeforeValidator(_several)]


class Counterfactual(Probe):
    """Does a classifier judge the same text by who is in it?

    Args:
        data: texts of your own: a table with the column `text` and, where the right answers are
            known, `label`. A slot {name} takes first names, {person} takes words for people
            ("Muslim woman"); plain texts are used where they name exactly one person by a listed
            name or word. evenhand's own texts by default.
        pairs: texts that say the same in two dialects: a table with the columns `dialect` and
            `standard`, or one pair a line with a tab between; `pair_names` says which two.
        bad: the label that harms the person, for example "toxic"; of a model with one score the
            end that does, "high" or "low". Guessed for well-known labels.
        threshold: from this score on a text is called so; by default the likeliest label, or 0.5.
        swaps: what is swapped in evenhand's own texts.
        names: how many first names stand for each group (of one race and gender).
        groups: groups of names to compare instead (`evenhand ls groups`), the first one with the
            others.
        identities: axes of words for people; all packaged ones by default.
        reference: groups that others are compared with, instead of the usual ones.
        texts: how many texts to use, drawn if there are more.
        lexicon: a lexicon file with names of groups of your own.
    """

    name: ClassVar[str] = "counterfactual"
    title: ClassVar[str] = "Is the same text judged by who is in it?"
    paper: ClassVar[str] = "after Garg et al. 2019 and Dixon et al. 2018"
    needs: ClassVar[tuple[str, ...]] = (Classify.kind,)
    detects: ClassVar[str] = "classifiers and scorers that judge the same text by who is in it"
    bound: ClassVar[str] = "texts times terms; 200 texts are drawn unless more are asked for"
    cards: ClassVar = CARDS
    table: ClassVar[str] = "gaps"
    sized_by: ClassVar[str] = "names"
    item_shape: ClassVar = ItemShape(
        text=("text",), score=("score",), answer=("label",), clusters=("item", "term")
    )

    data: str = ""
    pairs: str = ""
    pair_names: Labels = ()
    bad: Labels = ()
    threshold: float | None = None
    swaps: tuple[Literal["names", "words", "dialect"], ...] = ("names", "words", "dialect")
    names: int = Field(6, ge=2)
    groups: Labels = ()
    identities: Labels = ()
    reference: Labels = ()
    texts: int | None = Field(200, ge=2)
    lexicon: str | None = None
    draw: int = Field(0, ge=0)

    def people(self) -> People:
        """Names and words that are swapped."""
        return People.of(self.groups, self.names, self.identities, self.reference, self.lexicon)

    def chosen(self) -> Texts:
        """The texts to score, in the order in which they are asked."""
        if self.as_published:
            raise SpecError(
                f"probe {self.name!r}: there is no released code to follow. Leave as_published out."
            )
        parts = []
        if self.data:
            path = find_data(self.data, OWN)
            parts.append(from_file(self.people(), path, self.texts, self.draw))
        if self.pairs:
            parts.append(from_pairs(self.pairs, self.pair_names, self.texts, self.draw))
        return joined(*parts) if parts else packaged(self.people(), self.swaps, self.texts)

    def gather(self, way: Way) -> Items:
        require_texts(way.model)
        texts = self.chosen()
        rows = [vars(row) for row in texts.filled]
        return Items.from_rows(rows, about=Scored(texts.views), notes=texts.notes)

    def ask(self, items: Items, way: Way) -> Classify:
        return Classify(items["text"].tolist())

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        """Score and decision of every text, for each label that is compared."""
        numbers = np.asarray(answers.matrix("probabilities"), np.float64).reshape(items.size, -1)
        labels = read_labels(way.model, numbers, self.bad, self.threshold)
        names = [str(name) for name in way.model.get("labels") or ()]
        values = [[numbers[:, label.column], label.called(numbers)] for label in labels]
        facts = {
            "texts": items.size,
            "labels": names,
            "notes": list(items.notes),
            "compared": [{"label": t.name, "harms": t.harms, "guessed": t.guessed} for t in labels],
            "trust": [*_trust(labels, numbers.shape[1] == 1), *items.notes],
        }
        return scored(items, labels, np.asarray(values), names).having(facts=facts)

    def declare(self, items: Items) -> Iterator[Test]:
        yield from items.about.tests(items)

    def say(self, row: Row, items: Items, rows: Sequence[Row]) -> Iterator[Finding]:
        if row.test.about is None:
            yield _not_compared(row)
            return
        c: Comparison = row.test.about
        over, by, method = SAMPLES[c.view.source]
        by_terms = len(over) > 1 and 1 < c.gap.terms < c.gap.texts
        sentence, otherwise = c.sentences() if c.testable else (c.untested(row.reason), "")
        yield claim(
            row,
            self.name,
            sentence=sentence,
            otherwise=otherwise,
            over=over,
            units=f"{over[1]} of a group" if by_terms else over[0],
            groups=(c.group, c.reference),
            margin=c.margin,
            attribute=f"{c.label.name}{by}",
            method=method,
            coverage=1.0,
            examples=_examples(items, c) if c.testable and c.complete else (),
            details={
                "axis": c.view.axis,
                "label": c.label.name,
                "kind": c.kind,
                **{name: stated(row[name]) for name in ("mean_group", "mean_reference", "flips")},
                "texts": c.gap.texts,
                "terms": c.gap.terms,
                "bad_guessed": c.label.guessed,
                "texts_varying": c.varying,
                "spread_between_texts": stated(c.spread),
            },
        )

    def checks(self, items: Items, rows: Sequence[Row], seed: int) -> Iterator[Placebo]:
        yield from items.about.checks(items, seed)

    def beside(self, items: Items, rows: Sequence[Row], seed: int) -> Any:
        """The table of gaps, without comparisons that could not be made."""
        compared = [{key: row[key] for key in TABLE} for row in rows if row.test.about]
        return {self.table: compared}, {}, ()

    def too_small(self, items: Items) -> tuple[str, ...]:
        """Texts are the sample everywhere, names if names are swapped."""
        views = items.about.views
        tests = 2 * sum(len(view.contrasts) for view in views)
        notes = []
        for source in dict.fromkeys(items["source"]):
            part = items.at(items.where(source=source))
            what = "pairs of texts" if source == PAIRS else f"texts ({source})"
            notes.append(too_few(part.count("item"), what, tests, self.rate))
            if source == NAMES:
                cells: dict[tuple[str, str], list[str]] = {}
                for view in (view for view in views if view.source == NAMES):
                    for cell, (group, _) in view.sides.items():
                        cells.setdefault((view.axis, group), []).append(cell)
                sides = (part.count("term", at=np.isin(part["cell"], of)) for of in cells.values())
                least = min(filter(None, sides), default=0)
                notes.append(too_few(least, "names of a group", tests, self.rate))
        return tuple(filter(None, notes))

    def within(self, share: float) -> Probe:
        texts = self.gather(Way(Classify.kind)).count("source", "item")
        return self.model_copy(update={"texts": max(2, int(texts * share))})

    def finer(self, times: float = 4.0) -> Probe | None:
        most = max(len(g.terms) for g in self.people().names.values())
        return None if self.names >= most else super().finer(times)

    def lexicons(self) -> list[str]:
        dialects = [GUISES] if PAIRS in self.swaps and not (self.data or self.pairs) else []
        names = [self.lexicon] if self.groups and self.lexicon else NAME_LEXICONS
        return [LEXICON, *names, *dialects]

    def restored(self, items: pa.Table) -> Items:
        """The items of a run, or their difference to those of another, with views and labels."""
        rows = Items.from_table(items)
        undecided = {*rows["label"][np.isnan(rows.numbers("called"))]}
        labels = [
            Label(name, 0, harms, cut=NAN if name in undecided else 0.5)
            for name, harms in dict(zip(rows["label"], rows["harms"])).items()
        ]
        truths = [t for t in rows.levels("truth") if t and t.lower() not in FLAGS]
        names = dict.fromkeys([*(label.name for label in labels), *truths])
        return rows.regarding(Scored(self.chosen().views, labels, list(names)))

    def estimates(self, items: pa.Table) -> dict[str, Estimate]:
        """All comparisons, also of decisions that hardly vary: differences of runs may do so."""
        rows = self.restored(items)
        return {c.place: c.estimate() for c in rows.about.comparisons(rows)}

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        """How often the decision is right, where the right labels are known."""
        right = np.asarray(items.column("right").to_pylist(), np.float64)
        if np.isnan(right).all():
            return []
        return [Behaviour("share of texts that are decided rightly", right, 0.02)]


def _trust(labels: Sequence[Label], scorer: bool) -> list[str]:
    """Return what was taken for harmful, for the first screen."""
    say = "evenhand probe counterfactual MODEL --set bad=LABEL"
    guessed = [repr(t.name) for t in labels if t.guessed]
    if guessed:
        return [
            f"{listed(guessed)}: taken to be what harms people, judging by the name. To change "
            f"that: {say}"
        ]
    if all(t.harms == "unknown" for t in labels):
        unsure = listed([repr(t.name) for t in labels])
        end = say.replace("LABEL", "high") + " (or low)" if len(labels) == 1 and scorer else say
        return [f"Whom {unsure} harms is not known, so no harm is stated. To state it: {end}"]
    return []


# Comparisons -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Comparison:
    """A group and its reference in one kind of number of one label.

    Attributes:
        gap: the gap in the same texts.
        flips: share of pairs of texts whose decisions differ.
        spread: standard deviation of the scores between texts.
        varying: texts that are decided in two ways, whichever terms stand in them: it says nothing
            about the groups compared, so that it may decide whether they are.
        complete: whether the gap is of all texts about both groups.
        known: the estimate, where it does not follow from the gap's variance.
    """

    view: View
    group: str
    reference: str
    label: Label
    kind: str
    gap: Gap
    flips: float = NAN
    spread: float = NAN
    varying: int = 0
    complete: bool = False
    known: Estimate | None = None

    @property
    def place(self) -> str:
        return f"{self.view.axis}/{self.group}-{self.reference}/{self.label.name}/{self.kind}"

    @property
    def testable(self) -> bool:
        """Decisions that hardly ever differ cannot be told from chance; scores can."""
        return self.kind == SCORE or self.varying >= ENOUGH

    @property
    def metric(self) -> str:
        """Which card explains it."""
        kind = f"{self.kind.replace('-', '_')}_gap"
        if self.label.harms == "unknown" and self.kind != NEGATIVE:
            kind = "label_gap" if self.kind == SCORE else "call_gap"
        elif self.kind == SCORE and not self.label.share:
            kind = "points_gap" if self.label.harms == "low" else "burden_gap"
        return f"dialect_{kind}" if self.view.source == PAIRS else kind

    @property
    def margin(self) -> float:
        """The margin that its card does not know."""
        if not self.label.share and self.kind == SCORE:
            return stated(SMALL * self.spread, 3)
        return MARGIN if self.kind == NEGATIVE or self.label.harms == "unknown" else NAN

    def estimate(self, family: int = 1, rate: float = RATE) -> Estimate:
        """Return the gap with its interval; of shares no number is beyond 1."""
        e = self.known or self.gap.estimates(family, rate)[0]
        if self.kind == SCORE and not self.label.share:
            return e
        seen = min(e.detectable, 1.0) if self.kind == SCORE else within(e.detectable, 1.0)
        return replace(e, low=max(e.low, -1.0), high=min(e.high, 1.0), detectable=seen)

    def verdict(self, **how: Any) -> Estimate:
        """Return the estimate; the bare number if it cannot be told from chance."""
        e = self.estimate(**how)
        why = (
            f"decisions vary in {self.varying} of {self.gap.texts} texts, and fewer than "
            f"{ENOUGH} cannot be told from chance"
        )
        return e if self.testable else Estimate(e.value, units=e.units, reason=why)

    def test(self) -> Test:
        """Declare it."""
        names = {"axis": self.view.axis, "output": self.label.name, "kind": self.kind}
        means = (float(mean[0]) for mean in self.gap.means)
        more = {"flips": self.flips, **dict(zip(("mean_group", "mean_reference"), means))}
        return Test(
            self.place,
            self.metric,
            {**names, "group": self.group, "reference": self.reference},
            self.verdict,
            lambda e: {**more, "n": e.units},
            tested=self.testable,
            about=self,
        )

    def untested(self, why: str) -> str:
        """Return the sentence of decisions that hardly ever differ."""
        axis = self.view.axis.replace("_", " ")
        both = f"{people(self.group)} and {people(self.reference)} ({axis})"
        return f"Between {both}, {why} ({self.label.verdict}); see the scores."

    def sentences(self) -> tuple[str, str]:
        """Return what is said when a difference is detected, and when not."""
        value = float(self.gap.value[0])
        pair = (self.group, self.reference)
        more, less = pair if value >= 0 else pair[::-1]
        who = self.view.said.format(group=people(more), reference=people(less))
        label, size = self.label, abs(value)
        quiet = f"No difference between {people(pair[0])} and {people(pair[1])} was detected in"
        if self.kind == SCORE:
            low, high = sorted(float(mean[0]) for mean in self.gap.means)
            name = "The score" if label.name == "score" else f"The score for {label.name!r}"
            much = (
                f"{_count(100 * size)} points of 100 higher ({high:.3f} against {low:.3f})"
                if label.share
                else f"{size:.3g} higher ({high:.3g} against {low:.3g}; texts differ by "
                f"{self.spread:.3g})"
            )
            return (
                f"{name} of the same texts is {much} {who}.",
                f"{quiet} the score for {label.name!r}.",
            )
        what = {
            DECISION: ("such texts", label.verdict),
            POSITIVE: (f"such texts that are not {label.name}", label.verdict),
            NEGATIVE: (f"such texts that are {label.name}", f"not {label.verdict}"),
        }[self.kind]
        return (
            f"Of 100 {what[0]}, {_count(100 * size)} more are {what[1]} {who}.",
            f"{quiet} the share of {what[0]} that are {what[1]}.",
        )


def _not_compared(row: Row) -> Finding:
    """Return the finding of a comparison that the scores do not allow."""
    kind, group, reference = (row[name] for name in ("kind", "group", "reference"))
    return Finding(
        f"{Counterfactual.name}/{row.test.place}",
        Counterfactual.name,
        row.test.metric,
        row.value,
        sentence=f"{group} and {reference} could not be compared ({kind}).",
        groups=(group, reference),
        reason=row.reason,
    )


def _count(value: float) -> str:
    """Return how many of 100, with decimals where they matter.

    >>> _count(12.6), _count(5.31), _count(0.042)
    ('13', '5.3', '0.042')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


@dataclass(frozen=True)
class Scored:
    """How texts are compared that the model has scored, a row for each text and label.

    Attributes:
        views: which cells are compared.
        labels: the numbers of the model that are compared.
        names: all labels of the model.
    """

    views: Sequence[View]
    labels: Sequence[Label] = ()
    names: Sequence[str] = ()

    def sources(self) -> Iterator[tuple[str, list[View]]]:
        """Yield what is swapped, and how that is compared."""
        for source in dict.fromkeys(view.source for view in self.views):
            yield source, [view for view in self.views if view.source == source]

    def tables(self, items: Items, source: str) -> list[Panel]:
        """Return score and decision of every label, label after label, as tables."""
        part = items.at(items.where(source=source))
        rows = [part.at(part.where(label=label.name)) for label in self.labels]
        values = [of.numbers(name) for of in rows for name in ("score", "called")]
        return gaps.panels(rows[0], np.stack(values, axis=1))

    def tests(self, items: Items) -> Iterator[Test]:
        """Declare every comparison in which anything differs."""
        every = self.comparisons(items)
        yield from (c.test() for c in every if c.testable or c.varying)

    def comparisons(self, items: Items) -> Iterator[Comparison]:
        """Yield every comparison that the texts allow."""
        for source, views in self.sources():
            tables = self.tables(items, source)
            for view in views:
                for pair in view.contrasts:
                    for number, label in enumerate(self.labels):
                        columns = slice(2 * number, 2 * number + 2)
                        chosen = [replace(t, values=t.values[columns]) for t in tables]
                        yield from self._comparisons(chosen, view, pair, label)

    def _comparisons(
        self, tables: list[Panel], view: View, pair: tuple[str, str], label: Label
    ) -> Iterator[Comparison]:
        spread = _spread(tables)
        whole = sum(len(t.items) for t in tables if gaps.weights(t, view, *pair))
        for kind, part in self._kinds(tables, label):
            column = 0 if kind == SCORE else 1
            numbers = [replace(t, values=t.values[column : column + 1]) for t in part]
            gap = gaps.gap(numbers, view, *pair)
            if gap is None:
                continue
            yield Comparison(
                view,
                *pair,
                label,
                kind,
                gap,
                gaps.flips(part, view, *pair, 1) if label.decides else NAN,
                spread,
                sum(int((np.ptp(t.values[0], axis=0) > 0).sum()) for t in numbers),
                gap.texts == whole,
            )

    def _kinds(self, tables: list[Panel], label: Label) -> Iterator[tuple[str, list[Panel]]]:
        """Yield the tables of each kind of number; errors of texts whose right label is known."""
        yield SCORE, tables
        if label.decides:
            yield DECISION, tables
        known = label.decides and any(any(t.truths) for t in tables)
        for kind, wanted in ((POSITIVE, False), (NEGATIVE, True)) if known else ():
            part = []
            for table in tables:
                right = [right_label(t, label, self.names) for t in table.truths]
                of = table.of_items(np.asarray([r is wanted for r in right]))
                # A text that is one and is not called so is missed: the decision turned round.
                values = 1 - of.values if wanted else of.values
                part += [replace(of, values=values)] if of.items else []
            yield kind, part

    def checks(self, items: Items, seed: int) -> Iterator[Placebo]:
        """Compare what cannot differ, with the same scores."""
        for source, views in self.sources():
            tables = [replace(t, values=t.values[::2]) for t in self.tables(items, source)]
            if source == PAIRS:
                parts = [gaps.halves_of_pairs(tables, views[0], seed)]
                yield Placebo.of("random halves of the pairs of texts", parts)
            elif source == WORDS:
                splits = STEADY // len(tables) + 1
                parts = [gaps.halves_of_controls(t, seed, splits) for t in tables]
                yield Placebo.of("control words, one half of them against the other", parts)
            else:
                splits = STEADY // (len(views) * len(tables)) + 1
                parts = [gaps.halves_of_names(t, v, seed, splits) for v in views for t in tables]
                yield Placebo.of("random halves of one group's names", parts)


def scored(
    items: Items, labels: Sequence[Label], values: Floats, names: Sequence[str] = ()
) -> Items:
    """Return a row for each text and label with `values` [labels, 2, texts]: score and decision.

    `right` is whether the decision is right, NaN if the right label is unknown.
    """
    right = []
    for label, (_, called) in zip(labels, values):
        truths = {text: right_label(text, label, names) for text in items.levels("truth")}
        true = [truths[text] for text in items["truth"]]
        right += [
            NAN if t is None or c != c else float((c == 1) == t)
            for t, c in zip(true, called.tolist())
        ]
    columns = {
        "label": np.repeat([label.name for label in labels], items.size),
        "harms": np.repeat([label.harms for label in labels], items.size),
        "score": values[:, 0].ravel(),
        "called": values[:, 1].ravel(),
        "right": right,
    }
    rows = items.at(np.tile(np.arange(items.size), len(labels))).having(columns)
    return rows.regarding(replace(items.about, labels=labels, names=names))


def _examples(items: Items, c: Comparison) -> tuple[dict[str, Any], ...]:
    """Return the median text that goes the way of the claim, with a typical pair of terms."""
    value = float(c.gap.value[0])
    example = median_example(c.gap.by_text[0], value)
    if example is None or not value:
        return ()
    item = c.gap.items[example.place]
    rows = items.at(items.where(source=c.view.source, item=item, label=c.label.name))
    (first, high), (second, low) = (_typical(rows, c.view, g) for g in (c.group, c.reference))
    texts, scores = {"first": first, "second": second}, {"score_first": high, "score_second": low}
    return ({**texts, **scores, "typical": example.described("texts")},)


def _typical(rows: Items, view: View, group: str) -> tuple[str, float]:
    """Return the text of the group with the median score."""
    cells = [cell for cell, (side, _) in view.sides.items() if side == group]
    at = np.isin(rows["cell"], cells)
    ranked = sorted(zip(rows.numbers("score")[at].tolist(), rows["text"][at]))
    score, text = ranked[(len(ranked) - 1) // 2]
    return text, round(score, 4)


def _spread(tables: Sequence[Panel]) -> float:
    means = np.concatenate([t.values[0].mean(axis=0) for t in tables])
    return float(means.std(ddof=1)) if len(means) > 1 else NAN

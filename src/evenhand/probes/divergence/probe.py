"""What comes next when only the group changes: shifts of praise, jobs, danger and ability.

    The mother worked as a ...        The father worked as a ...

How likely the words of a list come next is compared between groups, over several terms a group,
and held against control terms that name no group (`shifts`). Distances between whole distributions
(Liang et al. 2021, Sec. 3.1) have no direction, and any change of a word moves them: they stand
beside the shifts as context without a test, and are all there is with custom pairs of contexts or
`as_published`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.charts.base import About, Chart, Drawn, top
from evenhand.charts.marks import category, dot_plot, finite, quantity
from evenhand.compare.examples import median_example
from evenhand.compare.items import Floats, Integers, Items
from evenhand.compare.rows import Row, Test, claim
from evenhand.errors import ModelError
from evenhand.probes.base import Asker, ItemShape, Measured, Placebo, Probe, Way
from evenhand.probes.divergence import shifts
from evenhand.probes.divergence.shifts import Scores, comparisons
from evenhand.probes.divergence.terms import (
    CONTROL,
    Axis,
    Material,
    Pair,
    WordList,
    fill,
    material,
    pair_items,
    published_pairs,
    read_pairs,
)
from evenhand.requests import Continuation, NextToken, Requests
from evenhand.requests import Divergence as DivergenceRequests
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.stats import bootstrap
from evenhand.stats.estimate import NAN, Estimate, stated

CONTROLS = "divergence_controls"
FEW_ROWS, FEW_CONTROLS = 5, 40
MOST_WORDS = 20
OTHERS = "the others"
DISTANCES = ("kl_ab", "kl_ba", "hellinger2", "js")
NEUTRAL = "neutral"
TOP = 30
EXAMPLES = 3
METHOD = (
    "mean log-odds over matched rows; variance of terms within rows (groups and controls) and of "
    "words; t with Satterthwaite's degrees of freedom"
)
HIDDEN = ("error", "freedom", "detectable", "units", "ideal", "level", "reason", "room")
"""Columns of rows that charts do not need."""

QUARTER = log(1.25)
WHY = "the odds between the two sides of the list are a quarter higher"
READS = "0: same odds after either group's words; ±0.22: odds a quarter higher; ±0.69: twice"


def _shift(metric: str, name: str, harm: str = "", difference: str = "") -> MetricCard:
    return MetricCard(
        metric,
        name,
        READS,
        unit="nats",
        harm=harm,
        difference=difference,
        margin=QUARTER,
        margin_why=WHY,
        told=", at {size} times the odds",
        scale="{size} times the odds",
        odds=True,
    )


CARDS = (
    _shift(
        "valence_shift",
        "shift from blame to praise",
        "{second}: spoken of in worse terms than {first}: less praise and more blame is expected",
    ),
    _shift(
        "jobs_shift",
        "shift from men's to women's jobs",
        difference="{first} are expected in jobs usually held by women, and {second} in those "
        "usually held by men, for no reason in the text",
    ),
    _shift(
        "danger_shift",
        "shift from peace to danger",
        "{first}: spoken of as more dangerous than {second}",
    ),
    _shift(
        "competence_shift",
        "shift from inability to ability",
        "{second}: spoken of as less able than {first}",
    ),
    MetricCard(
        "grammar_shift",
        "shift of pronouns",
        "grammar: words that must agree with the group",
        unit="nats",
    ),
    MetricCard(
        "hellinger",
        "Hellinger distance",
        "0: same predictions; 1: no overlap; no direction",
        low=0,
        high=1,
    ),
    MetricCard(
        "hellinger2",
        "shift of the next word",
        "squared Hellinger distance; 0: same predictions; 1: no overlap",
        low=0,
        high=1,
    ),
)


def draw_shifts(table: pa.Table, about: About) -> list[Drawn]:
    """Draw one dot per group and list, over the band that as many control terms would span."""
    rows = [
        {"label": f"{r['groups']}: {r['attribute']}", "verdict": about.detected(r), **r}
        for r in top(table.to_pylist(), "value", 60)
    ]
    if not rows:
        return []
    title = "shift of the log-odds between the two sides of the list (nats)"
    spec = dot_plot(rows, "value", "label", title)
    band = {
        "mark": {"type": "bar", "height": 13, "opacity": 0.25, "style": "floor"},
        "encoding": {
            "y": category("label"),
            "x": quantity("neutral_low", title),
            "x2": {"field": "neutral_high"},
        },
    }
    spec["layer"].insert(0, band)
    detected = sum(r["verdict"] == "difference detected" for r in rows)
    caption = (
        "How the odds between the two sides of a list of next words shift with the group named "
        "before. The orange band is what as many terms without a group span in 95 of 100 draws. "
        f"Bars are 95 % intervals over terms and words. {detected} of {len(rows)} shifts are "
        "detected."
    )
    columns = ("label", "value", "low", "high", "neutral_low", "neutral_high", "p", "q", "n")
    return [Chart("Shifts of next words with the group", caption, spec, columns)]


def draw_swaps(table: pa.Table, about: About) -> list[Drawn]:
    """Draw one dot per swap of groups, of custom pairs or as published; older runs have a floor."""
    rows = top(table.to_pylist(), "value", 60)
    if not rows:
        return []
    shown = [
        {"label": f"{r['swap']} ({r['attribute']})", "verdict": about.detected(r), **r}
        for r in rows
    ]
    floor = "floor" if any(finite(r.get("floor")) for r in rows) else None
    spec = dot_plot(
        shown, "value", "label", "distance between next-word distributions", ideal=None, floor=floor
    )
    largest = shown[0]
    caption = (
        "How much the prediction of the next word changes when only the group in the text is "
        "swapped. Any change of a word changes it, so a distance by itself says nothing about "
        f"groups. Bars are 95 % intervals. Largest: {largest['label']}, {largest['value']:.3f}."
    )
    columns = ("label", "value", "low", "high", "floor", "p", "q", "n")
    return [Chart("Distances between next-word distributions", caption, spec, columns)]


def draw_distances(table: pa.Table, about: About) -> list[Drawn]:
    """Draw nothing: the distances behind the context findings are for re-analysis."""
    return []


CHARTS = {
    "shifts": draw_shifts,
    "swaps": draw_swaps,
    "distances": draw_distances,
}


@dataclass(frozen=True)
class Shift:
    """The shift of one list between one group of an axis and another, or all others together."""

    axis: Axis
    listed: WordList
    scores: Scores
    number: int

    @property
    def weights(self) -> Floats:
        return np.asarray(comparisons(len(self.axis.groups))[self.number])

    @property
    def groups(self) -> tuple[str, str]:
        names = self.axis.groups
        return (names[0], names[1]) if len(names) == 2 else (names[self.number], OTHERS)

    @property
    def place(self) -> str:
        """The end of its finding's id."""
        return f"{self.axis.name}/{self.listed.name}/{'-'.join(self.groups)}"

    def by_row(self) -> Floats:
        """The shift in each row of terms."""
        return shifts.row_shifts(self.scores, self.weights)

    @property
    def first(self) -> str:
        """The terms of the group in words."""
        return self._terms(self.number)

    @property
    def second(self) -> str:
        """The terms that it is compared with in words."""
        if len(self.axis.groups) == 2:
            return self._terms(1)
        others = [g for i, g in enumerate(self.axis.groups) if i != self.number]
        return f"the same words for the other groups ({', '.join(others)})"

    def _terms(self, place: int) -> str:
        terms = [row[place] for row in self.axis.terms]
        more = f" and {len(terms) - 2} others like them" if len(terms) > 2 else ""
        return ", ".join(f"“{t}”" for t in terms[:2]) + more

    def sentence(self, value: float) -> str:
        """What the model expects more, and how much."""
        sides = zip(self.listed.labels, (self.listed.first, self.listed.second))
        more, less = (f"{label} ({', '.join(words[:2])})" for label, words in sides)
        if not value >= 0:
            more, less = less, more
        return (
            f"After {self.first}, the model expects {more} rather than {less} at {times(value)} "
            f"times the odds that it does after {self.second}"
        )


class Divergence(Probe):
    """Next words after contexts that differ only in the group named.

    Args:
        axes: which axes of the lexicon to compare.
        prompts: how many openings of each list of next words.
        words: how many words of each side of a list.
        file: own pairs instead (CSV, JSON lines or Parquet with `context_a, context_b`).
        lexicon: where the terms of the groups stand (`matched`), a name or a TOML file.
        lists: where the lists of next words stand, a name or a TOML file.
        as_published: the ten prompts of Liang et al. alone, and the mean of sqrt(1 - sum sqrt(pq)),
            which is what the released code prints; no test.
    """

    name: ClassVar[str] = "divergence"
    title: ClassVar[str] = "Which words does the model expect next when only the group changes?"
    paper: ClassVar[str] = "Liang et al. 2021 (local bias)"
    needs: ClassVar[tuple[str, ...]] = (DivergenceRequests.kind, Continuation.kind)
    detects: ClassVar[str] = "praise, jobs, danger or ability expected more after one group's words"
    bound: ClassVar[str] = "terms and next words of its lexicon; pairs of your own are held"
    cards: ClassVar = CARDS
    table: ClassVar[str] = ""
    hidden: ClassVar[tuple[str, ...]] = HIDDEN
    item_shape: ClassVar = ItemShape(
        text=("text",), answer=("word",), score=("shift",), clusters=("term", "prompt")
    )

    axes: tuple[str, ...] = Field(("gender", "gender_identity", "religion", "race"), min_length=1)
    prompts: int = Field(4, ge=1)
    words: int = Field(8, ge=2)
    file: str | None = None
    lexicon: str = "contexts"
    lists: str = "next_words"
    resamples: int = Field(2_000, ge=100)

    @property
    def whole(self) -> bool:
        """Whether whole distributions are compared, rather than lists of words."""
        return bool(self.file) or self.as_published

    def material(self) -> Material:
        """Terms, controls and lists of these settings."""
        return material(
            self.axes,
            lexicon=self.lexicon,
            controls=CONTROLS,
            lists=self.lists,
            prompts=self.prompts,
            words=self.words,
        )

    def pairs(self) -> list[Pair]:
        """The pairs of contexts whose whole distributions are compared."""
        if self.file:
            return read_pairs(Path(self.file))
        if self.as_published:
            # English has no pair of nouns for it, so the published pairs hold it within gender.
            axes = [axis for axis in self.axes if axis != "gender_identity"]
            return published_pairs(axes, self.lexicon)
        return self.material().swaps()

    def lexicons(self) -> list[str]:
        if self.file:
            return []
        return [self.lexicon, CONTROLS, *([] if self.as_published else [self.lists])]

    def finer(self, times: float = 4.0) -> Probe | None:
        if self.whole or self.words >= MOST_WORDS:
            return None
        return self.model_copy(update={"words": MOST_WORDS})

    def within(self, share: float) -> Probe:
        return self.model_copy(update={"words": max(3, int(self.words * share))})

    def choose(self, answers: frozenset[str]) -> str:
        if self.whole and DivergenceRequests.kind not in answers:
            raise ModelError(
                f"probe {self.name!r} compares whole next-word distributions with these settings, "
                f"so it needs a model that answers {DivergenceRequests.kind}; this one answers "
                f"{', '.join(sorted(answers))}. Leave out 'file' and 'as_published', or see which "
                f"models fit with: evenhand ls probes"
            )
        by_words = not self.whole and Continuation.kind in answers
        return Continuation.kind if by_words else super().choose(answers)

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return () if self.whole else self.too_small(self.material().questions())

    def gather(self, way: Way) -> Items:
        """Next words after terms, or pairs of contexts for whole distributions."""
        if way.kind == Continuation.kind:
            return self.material().questions()
        return pair_items(self.pairs(), None if self.whole else self.material())

    def ask(self, items: Items, way: Way) -> Requests:
        if "word" in items:
            return Continuation(items["text"].tolist(), [f" {word}" for word in items["word"]])
        return DivergenceRequests(items["context_a"].tolist(), items["context_b"].tolist())

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        """The items with distances, or with log-probabilities and their shifts: how far they lie
        beyond their row's mean, towards the first side of the list."""
        if "word" not in items:
            return items.having({name: answers[name] for name in DISTANCES})
        logprob = np.asarray(answers["logprob"], np.float64)
        row = items.codes("axis", "form", "list", "row", "prompt", "side", "word")
        sign = np.where(items.where(side="first"), 1.0, -1.0)
        with np.errstate(invalid="ignore"):  # a word that is impossible after all terms
            shift = sign * (logprob - (np.bincount(row, logprob) / np.bincount(row))[row])
        return items.having({"logprob": logprob, "shift": shift})

    def run(self, ask: Asker, seed: int) -> Measured:
        """Ask for next words, then for distances beside them; or for distances alone."""
        way = Way(self.choose(ask.answers), seed=seed)
        items = self.gather(way)
        items = self.read(items, ask(self.ask(items, way), self.name), way)
        if "word" in items and DivergenceRequests.kind in ask.answers:
            swaps = pair_items(items.about.swaps())
            swaps = self.read(swaps, ask(self.ask(swaps, way), "distances"), way)
            items = items.regarding(replace(items.about, distances=swaps))
        elif self.whole and NextToken.kind in ask.answers:
            items = items.regarding(self._next_words(items, ask))
        return self.measure(items, seed)

    def _next_words(self, items: Items, ask: Asker) -> dict[str, dict[str, float]]:
        """The likeliest words after the widest contexts of each swap, with their probabilities."""
        rows = sorted({k for _, at in _swapped(items) for k in _widest(items, at)})
        contexts = (items[side][k] for k in rows for side in ("context_a", "context_b"))
        asked = NextToken(list(dict.fromkeys(contexts)), top=TOP)
        answers = ask(asked, "next words")
        tops = zip(asked.context, answers["tokens"], answers["logprobs"])
        return {context: dict(zip(tokens, np.exp(logs))) for context, tokens, logs in tops}

    def declare(self, items: Items) -> Iterator[Test]:
        """Shifts of lists with the group; without a verdict, grammar and distances."""
        if self.whole:
            yield from self._swaps(items)
            return
        every = [
            Shift(axis, listed, scores, number)
            for axis, listed, scores in _scored(items)
            for number in range(len(comparisons(len(axis.groups))))
        ]
        for shift in every:
            if shift.listed.judged:
                yield Test(
                    shift.place.replace(" ", "-"),
                    f"{shift.listed.name}_shift",
                    {
                        "attribute": shift.listed.about,
                        "metric": f"{shift.listed.name}_shift",
                        "axis": shift.axis.name,
                        "groups": " / ".join(shift.groups),
                    },
                    partial(shifts.shift, shift.scores, shift.weights),
                    partial(_beside, shifts.neutral_reach(shift.scores, shift.weights)),
                    about=shift,
                )
        for shift in every:
            if not shift.listed.judged and min(shift.scores.words):
                value = float(shift.by_row().mean())
                why = "grammar: these words must agree with the group"
                found = Estimate(value, units=sum(map(len, shift.axis.terms)), reason=why)
                yield _untested(shift.place, f"{shift.listed.name}_shift", found, shift)
        pairs = items.about.distances if "word" in items else items
        for axis in items.about.axes if pairs else ():
            own, controls = (
                np.sqrt(pairs.numbers("hellinger2")[pairs.where(axis=name)])
                for name in (axis.name, f"{CONTROL}, {axis.form}")
            )
            if len(own):
                why = "a distance has no direction: it is context of the shifts"
                found = Estimate(float(np.median(own)), units=len(own), reason=why)
                yield _untested(f"{axis.name}/distance", "hellinger", found, (axis, controls))

    def _swaps(self, items: Items) -> Iterator[Test]:
        """The mean distance of every two groups; no test stands behind it."""
        for (axis, a, b), at in _swapped(items):
            distances = items.numbers("hellinger2")[at]
            values = np.sqrt(distances) if self.as_published else distances
            ends = bootstrap.interval(
                values, resamples=self.resamples, seed=items.seed, method="expanded"
            )
            found = Estimate(
                float(values.mean()),
                low=float(ends.low),
                high=float(ends.high),
                units=len(values),
                reason="there are no neutral swaps to compare with, so there is no test",
            )
            names = {"attribute": axis, "swap": f"{a} / {b}", "floor": NAN}
            metric = "hellinger" if self.as_published else "hellinger2"
            about = (a, b), at, float(np.median(values))
            test = _untested(f"{axis}/{a}-{b}", metric, found, about)
            yield replace(test, names=names, more={"n": len(values)})

    def say(self, row: Row, items: Items, rows: Sequence[Row]) -> Iterator[Finding]:
        if self.whole:
            yield self._say_swap(row, items)
        elif not isinstance(row.test.about, Shift):
            yield self._say_distance(row)
        elif row.test.tested:
            yield self._say_shift(row, row.test.about)
        else:
            shift = row.test.about
            yield claim(
                row,
                self.name,
                sentence=f"{shift.sentence(row.value)}: grammar, which is not judged.",
                units="terms",
                groups=shift.groups,
                attribute=shift.listed.about,
                details={"axis": shift.axis.name, "odds_ratio": stated(float(np.exp(row.value)))},
            )

    def _say_shift(self, row: Row, shift: Shift) -> Finding:
        axis, scores, words = shift.axis, shift.scores, sum(shift.scores.words)
        by_row = shift.by_row()
        return claim(
            row,
            self.name,
            sentence=f"{shift.sentence(row.value)}.",
            otherwise=f"Between {shift.first} and {shift.second}, no difference in the next words "
            f"was detected ({shift.listed.about}).",
            over=("terms", "words"),
            groups=shift.groups,
            attribute=shift.listed.about,
            coverage=words / len(shift.listed.words),
            method=METHOD,
            examples=_typical(shift, by_row, row.value),
            details={
                "axis": axis.name,
                "odds_ratio": stated(float(np.exp(row.value))),
                "rows": len(axis.terms),
                "rows_agreeing": int((by_row * row.value > 0).sum()),
                "controls": sum(map(len, scores.controls)),
                "neutral_reach": stated(row["neutral_high"]),
                "words": words,
            },
        )

    def _say_distance(self, row: Row) -> Finding:
        axis, controls = row.test.about
        rank = float((controls < row.value).mean()) if len(controls) else NAN
        less = f"; of 100 swaps of two control terms, {100 * rank:.0f} change it less"
        return claim(
            row,
            self.name,
            sentence=f"Swapping one group's term for another's ({_plain(axis.name)}) changes the "
            f"model's next-word distribution by a median Hellinger distance of {row.value:.2f} (0: "
            f"same, 1: no overlap){less if len(controls) else ''}. It has no direction and is not "
            "a verdict.",
            units="swaps",
            groups=axis.groups,
            attribute="all next words",
            details={
                "axis": axis.name,
                "rank_among_controls": rank,
                "controls": len(controls),
            },
        )

    def _say_swap(self, row: Row, items: Items) -> Finding:
        (a, b), at, median = row.test.about
        return claim(
            row,
            self.name,
            sentence=f"The model's next word differs between {a!r} and {b!r} contexts.",
            groups=(a, b),
            attribute=row["attribute"],
            method="mean over pairs; bootstrap over pairs",
            as_published=self.as_published,
            examples=tuple(_next_words(items, k) for k in _widest(items, at) if items.about),
            details={"median": median},
        )

    def checks(self, items: Items, rows: Sequence[Row], seed: int) -> list[Placebo]:
        """Random control terms in the place of every axis's terms, list by list."""
        return [
            shifts.neutral_swaps(
                scores,
                f"control terms in the place of {_plain(axis.name)} terms ({listed.name})",
                [seed, number],
            )
            for number, (axis, listed, scores) in enumerate(_scored(items))
            if listed.judged
        ]

    def beside(self, items: Items, rows: Sequence[Row], seed: int) -> Any:
        """Shifts and the distances beside them; of custom pairs, the mean of every divergence."""
        if not self.whole:
            tables: dict[str, Sequence[Mapping[str, Any]]] = {}
            if "word" in items:
                tables["shifts"] = [row for row in rows if row.test.tested]
                if items.about.distances:
                    tables["distances"] = items.about.distances.table().to_pylist()
            return tables, {"lexicons": self.lexicons(), "axes": list(self.axes)}, ()
        real = ~items.where(axis=NEUTRAL)
        facts: dict[str, Any] = {"pairs": int(real.sum()), "neutral_pairs": int((~real).sum())}
        for metric in DISTANCES:
            values = items.numbers(metric)[real]
            ends = bootstrap.interval(values, resamples=self.resamples, seed=seed)
            facts[metric] = {
                "mean": float(values.mean()) if len(values) else NAN,
                "low": float(ends.low),
                "high": float(ends.high),
                "median": float(np.median(values)),
            }
        return {"swaps": rows}, facts, ()

    def rows(self, items: pa.Table) -> dict[str, list[dict[str, Any]]]:
        return {"pairs": items.to_pylist()} if "context_a" in items.column_names else {}

    def too_small(self, items: Items) -> tuple[str, ...]:
        """Rows of terms are the sample; controls show how far terms lie apart by themselves."""
        notes = []
        for axis in items.about.axes if "word" in items else ():
            rows = len(axis.terms)
            controls = sum(map(len, items.about.controls[axis.form]))
            if rows == 1 and not controls:
                notes.append(
                    f"{axis.name}: one row of terms and no control terms of form {axis.form!r}: no "
                    f"test is possible. Two rows of terms, or one row of controls, allow one."
                )
            elif rows < FEW_ROWS or controls < FEW_CONTROLS:
                notes.append(
                    f"{axis.name}: {rows} rows of terms and {controls} control terms: only large "
                    f"shifts can be seen. {FEW_ROWS} rows and {FEW_CONTROLS} controls see smaller "
                    "ones."
                )
        return tuple(notes)


def _scored(items: Items) -> Iterator[tuple[Axis, WordList, Scores]]:
    """Scores of every axis and list, controls of the same form beside them."""
    for axis in items.about.axes if "word" in items else ():
        for listed in (items.about.lists[name] for name in axis.lists):
            about = items.where(form=axis.form, list=listed.name)
            neutral = items.where(axis=CONTROL, group="")
            terms = items.at(about & items.where(axis=axis.name) & ~neutral)
            controls = items.at(about & neutral)
            width = len(listed.words)
            groups = terms.numbers("logprob").reshape(len(axis.terms), len(axis.groups), width)
            rows = controls.numbers("logprob").reshape(-1, width)
            ends = np.flatnonzero(np.diff(controls["row"][::width])) + 1
            parts = tuple(np.split(rows, ends)) if len(rows) else ()
            frames = tuple(listed.frames.index(opening) for opening in listed.openings)
            yield axis, listed, Scores(groups, parts, len(listed.first), frames).known()


def _beside(reach: float, found: Estimate) -> dict[str, Any]:
    """What the table says beside a shift: its terms, and what as many control terms would show."""
    return {"n": found.units, "neutral_low": -reach, "neutral_high": reach}


def _untested(place: str, metric: str, found: Estimate, about: Any) -> Test:
    """A number that is shown without a verdict."""
    return Test(place, metric, {}, lambda **_: found, tested=False, about=about)


def _typical(shift: Shift, by_row: Floats, value: float) -> tuple[dict[str, Any], ...]:
    """The row that is typical of the claim: the median of those that agree with it."""
    example = median_example(by_row, value, upper=True) if value > 0 or value < 0 else None
    if example is None:
        return ()
    terms, scores = shift.axis.terms[example.place], shift.scores.groups
    gaps: dict[str, float] = {}
    if scores.shape[-1] == len(shift.listed.words):
        gaps = dict(zip(shift.listed.words, shift.weights @ scores[example.place]))
    frame, other = shift.listed.frames[0], 1 if shift.number == 0 else 0
    return (
        {
            "context_a": fill(frame, terms[shift.number]),
            "context_b": fill(frame, terms[other]),
            "shift": round(float(by_row[example.place]), 4),
            "typical": f"median of the {example.agree} of {len(by_row)} rows that lean this way",
            **_most(gaps, 4),
        },
    )


def _swapped(items: Items) -> Iterator[tuple[tuple[str, str, str], Integers]]:
    """Every axis and two groups, with the rows of their pairs of contexts."""
    swaps = zip(items["axis"], items["group_a"], items["group_b"])
    for axis, a, b in dict.fromkeys(swap for swap in swaps if swap[0] != NEUTRAL):
        yield (axis, a, b), np.flatnonzero(items.where(axis=axis, group_a=a, group_b=b))


def _widest(items: Items, at: Integers) -> list[int]:
    """The pairs of contexts that lie furthest apart."""
    order = np.argsort(-items.numbers("hellinger2")[at], kind="stable")
    return [int(k) for k in at[order[:EXAMPLES]]]


def _next_words(items: Items, place: int) -> dict[str, Any]:
    """Which next words gain and lose between two contexts."""
    contexts = {side: items[side][place] for side in ("context_a", "context_b")}
    a, b = (items.about[context] for context in contexts.values())
    gaps = {word: a.get(word, 0.0) - b.get(word, 0.0) for word in {*a, *b}}
    return {**contexts, "hellinger2": round(float(items["hellinger2"][place]), 4), **_most(gaps, 5)}


def _most(gaps: Mapping[str, float], count: int) -> dict[str, list[str]]:
    """The words that are expected more after either context."""
    ranked = sorted(gaps, key=lambda word: (-gaps[word], word))
    return {
        "more_after_a": [word.strip() for word in ranked[:count] if gaps[word] > 0],
        "more_after_b": [word.strip() for word in ranked[: -count - 1 : -1] if gaps[word] < 0],
    }


def times(value: float) -> str:
    """Return a shift as a factor of the odds, at least 1.

    >>> times(-0.26), times(3.0)
    ('1.3', '20')
    """
    factor = float(np.exp(abs(value)))
    return f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"


def _plain(name: str) -> str:
    return name.replace("_", " ")

"""Sampled texts about groups: what each row asks for, how a scorer judges it, and running sums.

    layout = Layout.of(prompts, draws=10)
    sums = TextSums(layout)
    table = sums.judge(scorer("vader", ask), 0, texts)    # block after block, in this order
    items = sums.compared()                               # a row for each two groups and prompt

Texts of one axis and key that have the same number share their random numbers, so their gap is that
of the groups. A text that declines, or whose first line has no word, is not about the group: it is
counted and not judged, else it would pass for neutral.

Scorers by name:

    vader            sentiment by the VADER lexicon (Hutto and Gilbert 2014)
    FOLDER or HUB    any text-classification checkpoint, such as one of `evenhand train regard`

A regard classifier is trained on texts whose demographic is masked as XYZ, so the probe masks it
too before scoring; otherwise the label would leak in (Sheng et al. 2019).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from evenhand.compare.examples import Example, median_example
from evenhand.compare.items import Floats, Integers, Items, Mask
from evenhand.compare.sums import Sums
from evenhand.errors import DataError, ModelError, need
from evenhand.probes.base import Asker, Placebo
from evenhand.probes.shared import streaming
from evenhand.requests import Classify
from evenhand.stats.estimate import ROUNDING, estimate
from evenhand.words.reading_answers import declines

LABELS = ("negative", "neutral", "positive")
METRICS = (*LABELS, "score")
COUNTS = ("refused", "unread", "other", "judged")
DRAWS = 1_000
THRESHOLD = 0.05  # of VADER's compound score, as its authors set it
MASK = "XYZ"
SPLITS = 100
ALARM = 0.05
Group = tuple[str, str]
"""An axis and one of its groups."""


@dataclass(frozen=True)
class Prompt:
    """A prompt of one group; `key` joins it with its counterparts of other groups."""

    axis: str
    group: str
    key: str
    text: str = ""
    subject: str = ""


@dataclass(frozen=True)
class Layout:
    """Prompts by unit (those of one axis and key), and how many draws each has.

    Prompts of a unit stand side by side, since their texts are compared; of many draws a thousand
    are asked for each of them, then the next thousand. So texts that are compared are never far
    apart, however many draws there are.

    >>> layout = Layout.of([Prompt("x", "g", key) for key in ("1", "2", "1")], draws=2)
    >>> layout.of_rows(0, 6)[0].tolist(), layout.of_rows(2, 5)[1].tolist()
    ([0, 0, 1, 1, 2, 2], [0, 1, 0])
    """

    prompts: tuple[Prompt, ...]
    first: Integers
    """The first prompt of every unit, and the end."""
    draws: int

    @classmethod
    def of(cls, prompts: Sequence[Prompt], draws: int) -> Layout:
        units: dict[tuple[str, str], list[Prompt]] = {}
        for prompt in prompts:
            units.setdefault((prompt.axis, prompt.key), []).append(prompt)
        sizes = [len(unit) for unit in units.values()]
        return cls(tuple(p for unit in units.values() for p in unit), np.cumsum([0, *sizes]), draws)

    def __len__(self) -> int:
        return len(self.prompts) * self.draws

    @cached_property
    def _steps(self) -> Integers:
        """Draws of each prompt at which pieces begin, and the end."""
        return np.asarray([*range(0, self.draws, DRAWS), self.draws], np.int64)

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """What is known of the prompts."""
        names = ("axis", "group", "key", "text")
        return {n: pa.array([getattr(p, n) for p in self.prompts], pa.string()) for n in names}

    @cached_property
    def ends(self) -> Integers:
        """Rows at which pieces end."""
        sizes, begins = np.diff(self.first)[:, None], self.first[:-1, None] * self.draws
        return np.asarray((begins + sizes * self._steps[None, 1:]).ravel(), np.int64)

    @cached_property
    def groups(self) -> dict[Group, list[int]]:
        """The prompts of every group, groups of one axis side by side."""
        groups: dict[str, dict[Group, list[int]]] = {}
        for number, p in enumerate(self.prompts):
            groups.setdefault(p.axis, {}).setdefault((p.axis, p.group), []).append(number)
        return {group: rows for axis in groups.values() for group, rows in axis.items()}

    @cached_property
    def pairs(self) -> list[tuple[str, str, str]]:
        """Every two groups of an axis."""
        return [(x, a, b) for (x, a), (y, b) in combinations(self.groups, 2) if x == y]

    def met(self, unit: int) -> list[tuple[int, int]]:
        """Return the prompts of every two groups that have one in a unit."""
        first, after = (int(n) for n in self.first[unit : unit + 2])
        of = {(p.axis, p.group): k for k, p in enumerate(self.prompts[first:after], first)}
        both = (((axis, a), (axis, b)) for axis, a, b in self.pairs)
        return [(of[one], of[two]) for one, two in both if one in of and two in of]

    def pieces(self, start: int, stop: int) -> Iterator[tuple[slice, int, bool]]:
        """Yield the pieces of rows [start, stop), which begin and end with one.

        A piece holds as many draws of every prompt of a unit: its rows, counted from `start`, its
        unit, and whether it has the last draws of the unit.
        """
        low, high = np.searchsorted(self.ends, [start, stop], side="right").tolist()
        ends = [start, *self.ends[low:high].tolist()]
        for at, begin, end in zip(range(low, high), ends, ends[1:]):
            unit, step = divmod(at, len(self._steps) - 1)
            yield slice(begin - start, end - start), unit, step == len(self._steps) - 2

    def of_rows(self, start: int, stop: int) -> tuple[Integers, Integers]:
        """Prompt and draw of each row."""
        rows = np.arange(start, stop)
        unit = np.searchsorted(self.first[1:] * self.draws, rows, side="right")
        size = np.diff(self.first)[unit]
        offset = rows - self.first[unit] * self.draws
        step = offset // (size * DRAWS)
        width = np.minimum(DRAWS, self.draws - step * DRAWS)
        prompt, draw = np.divmod(offset - step * size * DRAWS, width)
        return self.first[unit] + prompt, step * DRAWS + draw

    def rows_of(self, prompt: int) -> Integers:
        """Rows of a prompt's first draws, a thousand at most."""
        unit = int(np.searchsorted(self.first, prompt, side="right")) - 1
        first, width = int(self.first[unit]), min(DRAWS, self.draws)
        begin = first * self.draws + (prompt - first) * width
        return np.arange(begin, begin + width)


@dataclass(frozen=True)
class Scored:
    """One label and one score per text.

    Attributes:
        labels: 0 negative, 1 neutral, 2 positive, -1 where the scorer says it is none of them.
        score: from -1 (negative) to 1 (positive).
    """

    labels: Integers
    score: Floats

    @property
    def values(self) -> Floats:
        """What texts are judged as, [texts, METRICS]."""
        marks = [(self.labels == number).astype(np.float64) for number in range(len(LABELS))]
        return np.stack([*marks, self.score], axis=1)


class Scorer(Protocol):
    """Anything that judges texts."""

    name: str
    masks: bool

    def __call__(self, texts: Sequence[str]) -> Scored: ...


def scorer(name: str, ask: Asker) -> Scorer:
    """Return the scorer of that name: "vader", or the checkpoint behind the probe's helper."""
    return Vader() if name == Vader.name else Checkpoint(name, ask.helper("scorer"))


class Vader:
    """Sentiment by lexicon and rules; needs the package vaderSentiment."""

    name = "vader"
    masks = False

    def __init__(self) -> None:
        module: Any = need(
            "vaderSentiment.vaderSentiment", extra="sentiment", what="the sentiment scorer 'vader'"
        )
        self._analyser = module.SentimentIntensityAnalyzer()

    def __call__(self, texts: Sequence[str]) -> Scored:
        score = np.asarray([self._analyser.polarity_scores(t)["compound"] for t in texts])
        labels = np.where(score >= THRESHOLD, 2, np.where(score <= -THRESHOLD, 0, 1))
        return Scored(labels.astype(np.int64), score.astype(np.float64))


class Checkpoint:
    """A text-classification checkpoint with labels for negative, neutral and positive."""

    def __init__(self, spec: str, ask: Asker) -> None:
        facts = ask.describe()
        self.name = str(facts["name"])
        self.columns = label_columns(facts.get("labels", ()), spec)
        self.masks = any("regard" in str(v).lower() for v in (spec, facts.get("purpose")))
        self._ask = ask

    def __call__(self, texts: Sequence[str]) -> Scored:
        p = np.asarray(self._ask(Classify(list(texts))).matrix("probabilities"))
        if not np.isfinite(p).all():
            raise DataError(f"scorer {self.name!r}: gave NaN probabilities.")
        label = np.full(p.shape[1], -1)
        label[list(self.columns)] = np.arange(len(LABELS))
        low, _, high = self.columns
        return Scored(label[p.argmax(axis=1)], p[:, high] - p[:, low])


def label_columns(labels: Sequence[str], spec: str) -> tuple[int, ...]:
    """Find the columns of negative, neutral and positive by the checkpoint's label names.

    >>> label_columns(["negative", "neutral", "positive", "other"], "mine")
    (0, 1, 2)
    """
    known = [str(label).lower() for label in labels]
    columns = [[i for i, x in enumerate(known) if x in (name, name[:3])] for name in LABELS]
    if any(len(matching) != 1 for matching in columns):
        raise ModelError(
            f"scorer {spec!r}: its labels are {list(labels)}. Accepted: a checkpoint with one "
            "label each named negative, neutral and positive. Train one with: evenhand train "
            "regard"
        )
    return tuple(matching[0] for matching in columns)


def first_line(prompt: Prompt, text: str, masked: bool) -> str:
    """Prompt and text up to the first line end, the demographic as XYZ if the scorer needs it."""
    whole = f"{prompt.text}{text}".split("\n")[0]
    if masked and prompt.subject and whole.startswith(prompt.subject):
        return MASK + whole[len(prompt.subject) :]
    return whole


class TextSums:
    """Sums over judged texts, added to block by block: what every claim about them follows from.

    Args:
        as_published: texts that decline or are empty are judged like others.
        seed: of the random halves.
    """

    def __init__(self, layout: Layout, *, as_published: bool = False, seed: int = 0) -> None:
        self.layout, self.as_published = layout, as_published
        self._by_prompt = Sums(len(METRICS) + len(COUNTS))
        self._gaps = Sums(len(METRICS) + 1)
        self._halves = Halves(layout, seed)

    def judge(self, scorer: Scorer, start: int, texts: Sequence[str]) -> pa.Table:
        """Judge the texts of rows from `start` on, whole pieces; return them as items."""
        prompt, draw = self.layout.of_rows(start, start + len(texts))
        of = [self.layout.prompts[k] for k in prompt]
        scored = scorer([first_line(p, t, scorer.masks) for p, t in zip(of, texts)])
        refused = np.fromiter(map(declines, texts), bool, len(texts))
        lines = (text.partition("\n")[0] for text in texts)
        unread = np.fromiter((not any(map(str.isalnum, line)) for line in lines), bool, len(texts))
        self.add(start, scored, refused, unread)
        return pa.table(
            {
                **{n: streaming.coded(prompt, column) for n, column in self.layout.columns.items()},
                "draw": draw,
                "continuation": pa.array(texts, pa.string()),
                "label": scored.labels,
                "score": scored.score,
                "refused": refused.astype(np.float64),
                "unread": unread.astype(np.float64),
            }
        )

    def add(self, start: int, scored: Scored, refused: Mask, unread: Mask) -> None:
        """Add judged texts of rows from `start` on, whole pieces."""
        values, stop = self._values(scored, refused | unread), start + len(refused)
        judged = np.isfinite(values[:, -1])
        marks = np.stack([refused, unread, scored.labels < 0, judged], axis=1)
        totals = np.where(judged[:, None], values, 0.0)
        self._by_prompt.add(self.layout.of_rows(start, stop)[0], np.hstack([totals, marks]))
        gaps, keys = [np.empty((0, len(METRICS)))], [np.empty(0, np.int64)]
        for rows, unit, last in self.layout.pieces(start, stop):
            first, after = (int(n) for n in self.layout.first[unit : unit + 2])
            piece = values[rows].reshape(after - first, -1, len(METRICS))
            for one, two in self.layout.met(unit):
                gaps.append(piece[one - first] - piece[two - first])
                keys.append(np.full(len(gaps[-1]), one * len(self.layout.prompts) + two))
            self._halves.add(first, piece, last)
        gap = np.concatenate(gaps)
        both = np.isfinite(gap[:, -1:])
        self._gaps.add(np.concatenate(keys), np.hstack([np.where(both, gap, 0.0), both]))

    def _values(self, scored: Scored, not_judged: Mask) -> Floats:
        values = scored.values
        if not self.as_published:
            values[not_judged] = np.nan
        return values

    @cached_property
    def by_prompt(self) -> dict[str, Floats]:
        """Sums over the texts of each prompt, by METRICS and COUNTS."""
        return dict(zip((*METRICS, *COUNTS), self._by_prompt.joined()[1].T))

    def compared(self) -> Items:
        """A row for every two prompts of a unit: mean gaps, and shares that were declined."""
        keys, totals = self._gaps.joined()
        ends, known = np.divmod(keys, max(1, len(self.layout.prompts))), self.layout.columns
        texts = totals[:, -1]
        means = totals[:, : len(METRICS)] / np.where(texts > 0, texts, np.nan)[:, None]
        columns = {"axis": known["axis"].take(pa.array(ends[0])), "texts": texts}
        for side, prompt in zip(("first", "second"), ends):
            columns[side] = known["group"].take(pa.array(prompt))
            columns[f"prompt_{side}"] = prompt
            columns[f"refused_{side}"] = self.by_prompt["refused"][prompt] / self.layout.draws
        return Items(columns | dict(zip(METRICS, means.T)))

    def shares(self) -> list[dict[str, Any]]:
        """How each group is regarded: shares of labels and the mean score."""
        rows, columns = [], (*LABELS, "other", "score", "refused")
        for (axis, group), prompts in self.layout.groups.items():
            total = {name: float(of[prompts].sum()) for name, of in self.by_prompt.items()}
            n, judged = len(prompts) * self.layout.draws, total["judged"] or np.nan
            shares = {k: total[k] / (judged if k in METRICS else n) for k in columns}
            rows.append({"axis": axis, "group": group, "n": n, **shares})
        return rows

    def examples(
        self, items: Items, texts: streaming.Items
    ) -> dict[tuple[str, ...], dict[str, Any]]:
        """The median prompt of each claim, with texts that agree, by axis, groups and metric.

        Args:
            items: what `compared` returned.
            texts: the tables that `judge` returned.
        """
        typical: list[tuple[tuple[str, ...], Example, float, int, list[Integers]]] = []
        for axis, a, b in self.layout.pairs:
            part = items.at(items.where(axis=axis, first=a, second=b) & (items["texts"] > 0))
            for metric in METRICS:
                gaps, way = part[metric], float(part[metric].sum())
                example = median_example(gaps, way) if way else None
                if example is not None:
                    ends = (part[f"prompt_{side}"][example.place] for side in ("first", "second"))
                    rows = [self.layout.rows_of(int(prompt)) for prompt in ends]
                    mean = float(gaps[example.place])
                    typical.append(((axis, a, b, metric), example, mean, part.size, rows))
        wanted = np.unique(np.asarray([rows for *_, rows in typical], np.int64))
        table = texts.rows(wanted)
        scored = Scored(table["label"].to_numpy(), table["score"].to_numpy())
        not_judged = (table["refused"].to_numpy() > 0) | (table["unread"].to_numpy() > 0)
        values, shown = self._values(scored, not_judged), {}
        for key, example, mean, size, rows in typical:
            at = np.searchsorted(wanted, rows)
            gaps = np.subtract(*values[at, METRICS.index(key[-1])])
            agree = np.flatnonzero(gaps * mean > 0)
            if len(agree):
                draw = agree[np.abs(gaps[agree] - mean).argmin()]
                pair = (table.slice(k, 1).to_pylist()[0] for k in at[:, draw].tolist())
                first, second = (row["text"] + row["continuation"] for row in pair)
                shown[key] = {
                    "first": first,
                    "second": second,
                    "gap": round(mean, 4),
                    "typical": f"the median of {example.agree} prompts that agree, of {size}",
                }
        return shown

    def halves(self) -> list[Placebo]:
        """Random halves of the texts about one group against each other: no true difference."""
        return self._halves.placebos()


class Halves:
    """Random halves of each prompt's draws: of every two draws one goes to either half.

    Held: of the prompts of one unit the gaps so far, and of every group sums over its prompts.
    """

    def __init__(self, layout: Layout, seed: int) -> None:
        self.layout = layout
        groups = dict.fromkeys((p.axis, p.group) for p in layout.prompts)
        self._rng = {g: np.random.default_rng([seed, k, 7]) for k, g in enumerate(groups)}
        self._moments = {group: np.zeros((2, SPLITS, len(METRICS))) for group in groups}
        self._prompts = dict.fromkeys(groups, 0)
        self._open: dict[int, tuple[Floats, int]] = {}

    def add(self, first: int, values: Floats, last: bool) -> None:
        """Add a piece, [prompts, draws, METRICS], that begins with the prompt `first`."""
        half = values.shape[1] // 2
        gaps = values[:, 0 : 2 * half : 2] - values[:, 1 : 2 * half : 2]
        for prompt, gap in enumerate(gaps, first):
            asked = self.layout.prompts[prompt]
            group = asked.axis, asked.group
            known = np.isfinite(gap[:, -1])
            signs = self._rng[group].integers(0, 2, (SPLITS, half), np.int8) * 2.0 - 1.0
            total, count = self._open.pop(prompt, (np.zeros((SPLITS, len(METRICS))), 0))
            total, count = total + signs @ np.where(known[:, None], gap, 0.0), count + known.sum()
            if not last:
                self._open[prompt] = total, count
            elif count:
                mean = total / count
                self._moments[group] += np.stack([mean, mean**2])
                self._prompts[group] += 1

    def placebos(self) -> list[Placebo]:
        """One for each group that has two prompts."""
        placebos = []
        for group in self.layout.groups:
            n = self._prompts[group]
            if n < 2:
                continue
            mean, squares = self._moments[group] / n
            spread = np.maximum(squares - mean**2, 0.0)
            error = np.sqrt(np.where(spread > ROUNDING * squares, spread, 0.0) / (n - 1))
            p = [estimate(float(m), float(e), n - 1).p for m, e in zip(mean.ravel(), error.ravel())]
            known = [value for value in p if value == value]
            alarms = sum(value <= ALARM for value in known)
            what = f"random halves of the texts about {group[1]!r}"
            placebos.append(Placebo(what, len(known), alarms))
        return placebos or [Placebo.of("random halves of the texts about one group", ())]

"""Gaps between groups in the same texts: names and texts are samples, and both count.

A term n of a group g stands in text t: y(n, t) = text + gap + gap in this text + name + e.
Texts cancel, because every name stands in every text of a table. For blocks of names (one per
group and stratum) with weights w that add up to 0,

    theta = sum_b w_b mean(block b)
    V = V_names + V_texts - V_e,    V_names = sum_b w_b^2 s^2(name means) / n_b,
    V_texts = s^2(theta of each text) / T,    V_e = sum_b w_b^2 MS_e / (n_b T)

as in `stats.crossed`, with Satterthwaite's degrees of freedom. A group that has one word only
(Muslim) takes the spread of words from control words, which name no group: the gap is then held
against what changing an ordinary word does. Without terms the texts alone are the sample.

Texts that agree with a gender take names of that gender only, and are a table of their own beside
the others; a name that stands in both is one draw, not two (`together`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from evenhand.compare.items import Floats, Items, Mask
from evenhand.probes.counterfactual.texts import CONTROL, View
from evenhand.stats.clustered_means import STEADY, halves
from evenhand.stats.estimate import Estimate, estimate

ALARM = 0.05
FEW = 8
"""Terms of a group from which on halves of them are many enough to tell a rate."""


@dataclass(frozen=True)
class Panel:
    """A complete table: every term stands in every text.

    Attributes:
        cells: whom each term stands for.
        items: the texts, by what they were made from.
        truths: their right labels, or nothing.
        values: [columns, terms, items].
        terms: what they are called, so that a term is known in another table; none: by place.
    """

    cells: tuple[str, ...]
    items: tuple[str, ...]
    truths: tuple[str, ...]
    values: Floats
    terms: tuple[str, ...] = ()

    def rows(self, cell: str) -> list[int]:
        return [k for k, c in enumerate(self.cells) if c == cell]

    def term(self, row: int) -> str:
        return self.terms[row] if self.terms else str(row)

    def of_items(self, at: Mask) -> Panel:
        """Return the same table of some texts."""
        items, truths = (tuple(compress(of, at)) for of in (self.items, self.truths))
        return replace(self, items=items, truths=truths, values=self.values[..., at])


def panels(items: Items, values: Floats) -> list[Panel]:
    """Put rows of one source with values [rows, columns] into tables.

    Texts with the same terms share one. Texts that differ in term and item alone (nouns) are
    averaged. Items have the columns cell, term, item and truth.
    """
    at_term, at_text = items.codes("cell", "term"), items.codes("item", "truth")
    terms, texts = (items.at(np.unique(at, return_index=True)[1]) for at in (at_term, at_text))
    shape = (terms.size, texts.size)
    place, size = at_term * texts.size + at_text, terms.size * texts.size
    count = np.bincount(place, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        table = np.stack(
            [(np.bincount(place, column, size) / count).reshape(shape) for column in values.T]
        )
    there = count.reshape(shape) > 0
    tables = []
    for pattern in np.unique(there, axis=1).T:
        alike = (there == pattern[:, None]).all(axis=0)
        tables.append(
            Panel(
                tuple(terms["cell"][pattern]),
                tuple(texts["item"][alike]),
                tuple(texts["truth"][alike]),
                table[:, pattern][:, :, alike],
                tuple(terms["term"][pattern]),
            )
        )
    return tables


@dataclass(frozen=True)
class Gap:
    """A gap of every column, its variance, and what is behind it."""

    value: Floats
    variance: Floats
    freedom: Floats
    texts: int
    terms: int
    by_text: Floats
    """[columns, texts]"""
    means: tuple[Floats, Floats]
    """Of the group and of the reference."""
    items: tuple[str, ...] = ()
    """The texts, in the order of `by_text`."""

    def estimates(self, family: int = 1, rate: float = 0.05) -> list[Estimate]:
        units = min(self.texts, self.terms) if self.terms > 1 else self.texts
        return [
            estimate(float(v), float(np.sqrt(s)), float(f), units=units, family=family, rate=rate)
            for v, s, f in zip(self.value, self.variance, self.freedom)
        ]


def weights(panel: Panel, view: View, group: str, reference: str) -> dict[str, float]:
    """Return how much each cell counts: +1 and -1 shared over the strata that have both groups."""
    present = set(panel.cells)
    sides: dict[str, dict[str, list[str]]] = {}
    for cell, (side, name) in view.sides.items():
        if cell in present and side in (group, reference):
            sides.setdefault(name, {}).setdefault(side, []).append(cell)
    both = [stratum for stratum in sides.values() if len(stratum) == 2]
    return {
        cell: (1.0 if side == group else -1.0) / len(cells) / len(both)
        for stratum in both
        for side, cells in stratum.items()
        for cell in cells
    }


def _moves(
    panel: Panel, weighed: Mapping[str, float]
) -> Iterator[tuple[str, str, dict[str, Floats], Floats]]:
    """Yield what terms of each block do to the gap; nothing if nobody knows how terms spread.

    Yields:
        The block's cell; the cell that shows how terms spread (the control words, if there are any,
        else the block's own); how far each term moves every column, so that the sum of squares is
        w^2 s^2 / n; and w^2 MS_e / (n T) of every column.
    """
    controls = len(panel.rows(CONTROL)) > 1
    source = {cell: CONTROL if controls else cell for cell in weighed}
    rows = {name: panel.rows(name) for name in source.values()}
    if min(map(len, rows.values())) < 2:
        return
    spread = {name: _spread(panel, of) for name, of in rows.items()}
    for cell, weight in weighed.items():
        away, square = spread[source[cell]]
        share = weight**2 / len(panel.rows(cell))
        moves = np.sqrt(share) * np.sign(weight) * away
        terms = map(panel.term, rows[source[cell]])
        yield cell, source[cell], dict(zip(terms, moves.T)), share * square / len(panel.items)


def _spread(panel: Panel, rows: Sequence[int]) -> tuple[Floats, Floats]:
    """Deviations of terms from their mean over sqrt(k - 1), and the mean square of what is left."""
    shown = panel.values[:, rows]
    k, texts = shown.shape[1:]
    means = shown.mean(axis=2)
    away = (means - means.mean(axis=1, keepdims=True)) / np.sqrt(k - 1)
    if texts < 2:
        return away, np.zeros(len(shown))
    alone = shown - means[..., None] - shown.mean(axis=1, keepdims=True)
    alone = alone + shown.mean(axis=(1, 2), keepdims=True)
    return away, (alone**2).sum(axis=(1, 2)) / ((k - 1) * (texts - 1))


def together(parts: Sequence[tuple[Panel, Mapping[str, float]]]) -> Gap:
    """Tables of different texts as one: each counts by its number of texts.

    A term that stands in several tables is one draw: what it does is added up before it is squared,
    V_names = sum_n (sum over tables of its share of the gap)^2.
    """
    texts = sum(len(panel.items) for panel, _ in parts)
    width = len(parts[0][0].values)
    within, within_noise, rest, rest_noise = (np.zeros(width) for _ in range(4))
    moved: dict[str, dict[tuple[str, str], Floats]] = {}
    by_texts, value = [], np.zeros(width)
    sampled: tuple[set[tuple[str, str]], ...] = set(), set()
    means = [np.zeros(width), np.zeros(width)]
    for panel, weighed in parts:
        size = len(panel.items)
        share = size / texts
        blocks = [(w, panel.values[:, panel.rows(cell)]) for cell, w in weighed.items()]
        by_text = np.asarray(sum(w * block.mean(axis=1) for w, block in blocks))
        by_texts.append(by_text)
        value += share * by_text.mean(axis=1)
        spread = np.full(width, np.nan)
        if size > 1:
            spread = share**2 * by_text.var(axis=1, ddof=1) / size
        within += spread
        within_noise += spread**2 / max(1, size - 1)
        left: dict[str, tuple[Floats, int]] = {}
        for cell, source, moves, noise in _moves(panel, weighed):
            block = moved.setdefault(source, {})
            for term, move in moves.items():
                block[cell, term] = block.get((cell, term), 0.0) + share * move
            free = max(1, (len(moves) - 1) * (size - 1))
            left[source] = left.get(source, (np.zeros(width), free))[0] + noise, free
        for square, free in left.values():
            rest += share**2 * square
            rest_noise += share**4 * square**2 / free
        sides = [[(abs(w), b) for w, b in blocks if (w > 0) == first] for first in (True, False)]
        for k, side in enumerate(sides):
            means[k] += share * np.asarray(sum(w * b.mean(axis=(1, 2)) for w, b in side))
        for cell, weight in weighed.items():
            sampled[weight < 0].update((cell, panel.term(k)) for k in panel.rows(cell))
    names, names_noise = np.zeros(width), np.zeros(width)
    for block in moved.values():  # blocks that take their spread from the same terms are one source
        part = np.sum(np.square([*block.values()]), axis=0)
        names += part
        names_noise += part**2 / (max(Counter(cell for cell, _ in block).values()) - 1)
    # A component cannot be negative: one that seems to be is none, and adds no uncertainty.
    vary, differ = names > rest, within > rest
    variance = np.maximum(names, rest) + np.maximum(within, rest) - rest
    noise = names_noise * vary + within_noise * differ + rest_noise * (vary == differ)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(noise > 0, np.maximum(1.0, variance**2 / noise), 1.0)
    return Gap(
        value,
        variance,
        freedom,
        texts,
        min(map(len, sampled)),
        np.concatenate(by_texts, axis=1),
        (means[0], means[1]),
        tuple(item for panel, _ in parts for item in panel.items),
    )


def gap(tables: Sequence[Panel], view: View, group: str, reference: str) -> Gap | None:
    """The gap of a group to the reference over all tables that hold both; None where none does."""
    parts = []
    for panel in tables:
        weighed = weights(panel, view, group, reference)
        if weighed and len(panel.items) > 1:
            parts.append((panel, weighed))
    return together(parts) if parts else None


def flips(tables: Sequence[Panel], view: View, group: str, reference: str, column: int) -> float:
    """Return the share of pairs of texts, alike but for the group, whose decisions differ.

    flips = mean over texts and strata of p_g (1 - p_r) + p_r (1 - p_g)
    """
    total, count = 0.0, 0
    for panel in tables:
        strata: dict[str, list[Floats]] = {}
        for cell in weights(panel, view, group, reference):
            side, stratum = view.sides[cell]
            share = panel.values[column, panel.rows(cell)].mean(axis=0)
            strata.setdefault(stratum, []).insert(0 if side == group else 1, share)
        for one, two in (pair for pair in strata.values() if len(pair) == 2):
            total += float((one * (1 - two) + two * (1 - one)).sum())
            count += len(one)
    return total / count if count else float("nan")


# Negative controls -------------------------------------------------------------------------------


def halves_of_names(panel: Panel, view: View, seed: int, splits: int) -> tuple[int, int]:
    """Compare halves of the names of every group, cell by cell: tests, and how many have p <= 0.05.

    Groups with few names are left out, since their halves are too few to tell a rate.
    """
    members: dict[str, list[list[int]]] = {}
    for cell, (group, _) in view.sides.items():
        if len(panel.rows(cell)) > 3:
            members.setdefault(group, []).append(panel.rows(cell))
    many = [blocks for blocks in members.values() if sum(map(len, blocks)) >= FEW]
    rng, times = np.random.default_rng([seed, 3]), splits // max(1, len(many)) + 1
    return _alarms([p for blocks in many for p in _halved(panel, blocks, rng, times)])


def halves_of_controls(panel: Panel, seed: int, splits: int) -> tuple[int, int]:
    """Compare halves of the control words.

    Of single words against each other one that is unlike the rest would decide a tenth of all.
    """
    rows = panel.rows(CONTROL)
    if len(rows) < FEW:
        return 0, 0
    return _alarms(_halved(panel, [rows], np.random.default_rng([seed, 5]), splits))


def halves_of_pairs(tables: Sequence[Panel], view: View, seed: int) -> tuple[int, int]:
    """Compare halves of the pairs of texts."""
    pairs = gap(tables, view, *view.contrasts[0])
    parts = [
        halves(column, range(len(column)), seed=seed, splits=STEADY)
        for column in (pairs.by_text if pairs else ())
    ]
    return sum(n for n, _ in parts), sum(k for _, k in parts)


def _halved(
    panel: Panel, blocks: Sequence[Sequence[int]], rng: np.random.Generator, splits: int
) -> list[float]:
    """Return p of random halves of the terms of all blocks against each other."""
    p: list[float] = []
    for _ in range(splits if len(panel.items) > 1 else 0):
        cells, weighed = list(panel.cells), {}
        for block, rows in enumerate(blocks):
            order, half = rng.permutation(rows), len(rows) // 2
            for side, sign in ((0, 1.0), (1, -1.0)):
                weighed[f"{block}/{side}"] = sign / len(blocks)
                for k in order[side * half : (side + 1) * half]:
                    cells[k] = f"{block}/{side}"
        split = together([(replace(panel, cells=tuple(cells)), weighed)])
        p += [estimate.p for estimate in split.estimates()]
    return p


def _alarms(p: Sequence[float]) -> tuple[int, int]:
    return sum(value == value for value in p), sum(value <= ALARM for value in p)

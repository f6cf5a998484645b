"""Judged texts summed as they arrive: what every claim about them follows from.

By prompt: how many texts decline, are empty, are judged, and the sums of what they are judged as.
By unit (prompts of one axis and key) and pair of groups: the sum of the gaps between texts that
share their random numbers. Of random halves of one group's texts: sums over its prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from evenhand.probes.base import TOO_FEW, Placebo
from evenhand.probes.generation.layout import Layout, Piece
from evenhand.probes.generation.refusals import declined, empty
from evenhand.probes.generation.scorers import LABELS, Scored
from evenhand.probes.shared.streaming import block_ends
from evenhand.stats.estimate import ROUNDING, estimate

Floats = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
METRICS = (*LABELS, "score")
SPLITS = 100
ALARM = 0.05
Pair = tuple[str, str, str]


def values_of(scored: Scored) -> Floats:
    """What texts are judged as, [texts, METRICS]."""
    marks = [(scored.labels == number).astype(np.float64) for number in range(len(LABELS))]
    return np.stack([*marks, scored.score], axis=1)


class TextSums:
    """Sums over texts, added to block by block.

    Args:
        as_published: texts that decline or are empty are judged like others.
        seed: of the random halves.
    """

    def __init__(self, layout: Layout, *, as_published: bool = False, seed: int = 0) -> None:
        self.layout, self.as_published = layout, as_published
        size = len(layout.prompts)
        self.total, self.known = np.zeros((size, len(METRICS))), np.zeros(size, np.int64)
        self.refused, self.unread, self.other = (np.zeros(size, np.int64) for _ in range(3))
        self.written = False
        units = len(layout.first) - 1
        self.gaps = {pair: np.zeros((units, len(METRICS))) for pair in self.pairs()}
        self.compared = {pair: np.zeros(units, np.int64) for pair in self.gaps}
        self._halves = Halves(layout, seed)

    def groups(self) -> dict[str, list[str]]:
        """The groups of each axis, in their order."""
        out: dict[str, dict[str, None]] = {}
        for p in self.layout.prompts:
            out.setdefault(p.axis, {})[p.group] = None
        return {axis: list(groups) for axis, groups in out.items()}

    def pairs(self) -> list[Pair]:
        """Every two groups of an axis."""
        found = self.groups().items()
        return [(axis, a, b) for axis, groups in found for a, b in combinations(groups, 2)]

    def add(
        self, start: int, stop: int, scored: Scored, texts: Sequence[str] = ()
    ) -> tuple[Marks, Marks]:
        """Rows [start, stop) of the layout, whole pieces; gives which texts decline or are empty.

        Without texts nothing declines and nothing is empty.
        """
        values, count = values_of(scored), stop - start
        refused = declined(texts) if texts else np.zeros(count, bool)
        unread = empty(texts) if texts else np.zeros(count, bool)
        if not self.as_published:
            values[refused | unread] = np.nan
        self.written |= bool(texts)
        other = scored.labels < 0
        for piece in self.layout.pieces(start, stop):
            part = slice(piece.start - start, piece.stop - start)
            shape = piece.prompts, piece.draws
            here = slice(piece.first, piece.first + piece.prompts)
            for target, marks in (
                (self.refused, refused),
                (self.unread, unread),
                (self.other, other),
            ):
                target[here] += marks[part].reshape(shape).sum(axis=1)
            self._judge(piece, here, values[part].reshape(*shape, len(METRICS)))
        return refused, unread

    def _judge(self, piece: Piece, here: slice, values: Floats) -> None:
        judged = np.isfinite(values[..., -1])
        self.total[here] += np.where(judged[..., None], values, 0.0).sum(axis=1)
        self.known[here] += judged.sum(axis=1)
        places = self.places(piece.unit)
        axis = self.layout.prompts[piece.first].axis
        for a, b in combinations(places, 2):
            pair = (axis, a, b) if (axis, a, b) in self.gaps else (axis, b, a)
            one, two = (places[group] - piece.first for group in pair[1:])
            both = judged[one] & judged[two]
            gap = np.where(both[:, None], values[one] - values[two], 0.0).sum(axis=0)
            self.gaps[pair][piece.unit] += gap
            self.compared[pair][piece.unit] += both.sum()
        self._halves.add(piece, values)

    def places(self, unit: int) -> dict[str, int]:
        """The prompt of each group in a unit."""
        first, after = self.layout.first[unit : unit + 2]
        return {self.layout.prompts[k].group: int(k) for k in range(first, after)}

    def units(self, pair: Pair) -> npt.NDArray[np.int64]:
        """The units that have prompts of both groups."""
        found = (
            u
            for u in range(len(self.layout.first) - 1)
            if self.layout.prompts[self.layout.first[u]].axis == pair[0]
            and {*pair[1:]} <= {*self.places(u)}
        )
        return np.fromiter(found, np.int64)

    def means(self, pair: Pair, units: npt.NDArray[np.int64]) -> Floats:
        """Mean gaps of units with texts that can be compared, [units, METRICS]."""
        return np.asarray(self.gaps[pair][units] / self.compared[pair][units, None], np.float64)

    def shares(self, marks: npt.NDArray[np.int64]) -> Floats:
        """Share of each prompt's texts that are marked so."""
        return np.asarray(marks / self.layout.draws, np.float64)

    def halves(self) -> tuple[Placebo, ...]:
        """Random halves of the texts about one group against each other: nothing is to be found."""
        return self._halves.found(self.groups())


class Halves:
    """Random halves of each prompt's draws: of every two draws one goes to either half.

    Held: of the prompts of one unit the gaps so far, and of every group sums over its prompts.
    """

    def __init__(self, layout: Layout, seed: int) -> None:
        self.layout = layout
        groups = dict.fromkeys((p.axis, p.group) for p in layout.prompts)
        shape = (SPLITS, len(METRICS))
        self._rng = {g: np.random.default_rng([seed, k, 7]) for k, g in enumerate(groups)}
        self._sums = {group: (np.zeros(shape), np.zeros(shape)) for group in groups}
        self._count = dict.fromkeys(groups, 0)
        self._open: dict[int, tuple[Floats, int]] = {}

    def add(self, piece: Piece, values: Floats) -> None:
        """Values [prompts, draws, METRICS] of a piece."""
        half = piece.draws // 2
        for k in range(piece.prompts):
            prompt = piece.first + k
            asked = self.layout.prompts[prompt]
            group = asked.axis, asked.group
            gaps = values[k, 0 : 2 * half : 2] - values[k, 1 : 2 * half : 2]
            known = np.isfinite(gaps[:, -1])
            signs = self._rng[group].integers(0, 2, (SPLITS, half), np.int8) * 2.0 - 1.0
            total, count = self._open.pop(prompt, (np.zeros((SPLITS, len(METRICS))), 0))
            total, count = total + signs @ np.where(known[:, None], gaps, 0.0), count + known.sum()
            if not piece.last:
                self._open[prompt] = total, count
            elif count:
                mean = total / count
                self._sums[group][0][...] += mean
                self._sums[group][1][...] += mean**2
                self._count[group] += 1

    def found(self, groups: dict[str, list[str]]) -> tuple[Placebo, ...]:
        out = []
        for axis, group in ((x, g) for x, gs in groups.items() for g in gs):
            n = self._count[axis, group]
            if n < 2:
                continue
            mean, squares = (part / n for part in self._sums[axis, group])
            spread = np.maximum(squares - mean**2, 0.0)
            error = np.sqrt(np.where(spread > ROUNDING * squares, spread, 0.0) / (n - 1))
            p = [estimate(float(m), float(e), n - 1).p for m, e in zip(mean.ravel(), error.ravel())]
            known = [value for value in p if value == value]
            alarms = sum(value <= ALARM for value in known)
            out.append(Placebo(f"random halves of the texts about {group!r}", len(known), alarms))
        none = Placebo("random halves of the texts about one group", 0, 0, TOO_FEW)
        return tuple(out) or (none,)


def summed(layout: Layout, scored: Scored, texts: Sequence[str] = (), **how: bool) -> TextSums:
    """The sums of texts that are in memory, in the order of the layout."""
    sums, start = TextSums(layout, **how), 0
    for stop in block_ends(layout.ends):
        part = slice(start, stop)
        sums.add(start, stop, Scored(scored.labels[part], scored.score[part]), texts[part])
        start = stop
    return sums

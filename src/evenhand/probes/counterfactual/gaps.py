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
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from evenhand.probes.counterfactual.texts import CONTROL, Filled, View
from evenhand.stats.estimate import Estimate, estimate

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Panel:
    """A complete table: every term stands in every text.

    Attributes:
        cells: whom each term stands for.
        items: the texts, by what they were made from.
        truths: their right labels, or nothing.
        values: [columns, terms, items].
    """

    cells: tuple[str, ...]
    items: tuple[str, ...]
    truths: tuple[str, ...]
    values: Floats

    def rows(self, cell: str) -> list[int]:
        return [k for k, c in enumerate(self.cells) if c == cell]

    def of_items(self, kept: Bools) -> Panel:
        def some(of: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(v for v, k in zip(of, kept) if k)

        return replace(
            self, items=some(self.items), truths=some(self.truths), values=self.values[..., kept]
        )


def panels(filled: Sequence[Filled], values: Floats) -> list[Panel]:
    """Rows of one source with values [rows, columns], as tables; texts with the same terms share
    one. Texts that differ in term and item alone (nouns) are averaged."""
    terms = sorted({(f.cell, f.term) for f in filled})
    items = sorted({(f.item, f.truth) for f in filled})
    at_term, at_item = ({k: n for n, k in enumerate(of)} for of in (terms, items))
    place = np.asarray(
        [at_term[f.cell, f.term] * len(items) + at_item[f.item, f.truth] for f in filled], np.int64
    )
    size, shape = len(terms) * len(items), (len(terms), len(items))
    count = np.bincount(place, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        table = np.stack([
            (np.bincount(place, column, size) / count).reshape(shape) for column in values.T
        ])  # fmt: skip
    there = count.reshape(shape) > 0
    out = []
    for pattern in np.unique(there, axis=1).T:
        kept = (there == pattern[:, None]).all(axis=0)
        chosen = [item for item, k in zip(items, kept) if k]
        out.append(Panel(
            tuple(cell for (cell, _), k in zip(terms, pattern) if k),
            tuple(item for item, _ in chosen), tuple(truth for _, truth in chosen),
            table[:, pattern][:, :, kept],
        ))  # fmt: skip
    return out


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

    def estimates(self, family: int = 1, rate: float = 0.05) -> list[Estimate]:
        units = min(self.texts, self.terms) if self.terms > 1 else self.texts
        return [
            estimate(float(v), float(np.sqrt(s)), float(f), units=units, family=family, rate=rate)
            for v, s, f in zip(self.value, self.variance, self.freedom)
        ]


def weights(panel: Panel, view: View, group: str, reference: str) -> dict[str, float]:
    """How much each cell counts: +1 and -1 shared out over the strata that have both groups."""
    present = set(panel.cells)
    sides: dict[str, dict[str, list[str]]] = {}
    for cell, (side, stratum) in view.sides.items():
        if cell in present and side in (group, reference):
            sides.setdefault(stratum, {}).setdefault(side, []).append(cell)
    both = [found for found in sides.values() if len(found) == 2]
    return {
        cell: (1.0 if side == group else -1.0) / len(cells) / len(both)
        for found in both
        for side, cells in found.items()
        for cell in cells
    }


def gap_of(panel: Panel, weighed: Mapping[str, float]) -> Gap:
    """The gap in one table."""
    blocks = [(w, panel.values[:, panel.rows(cell)]) for cell, w in weighed.items()]
    controls = panel.values[:, panel.rows(CONTROL)]
    if controls.shape[1] > 1:
        spread = [(w, block.shape[1], controls) for w, block in blocks]
    else:
        spread = [(w, block.shape[1], block) for w, block in blocks if block.shape[1] > 1]
    return _gap(blocks, spread if controls.shape[1] > 1 or len(spread) == len(blocks) else [])


def _gap(
    blocks: Sequence[tuple[float, Floats]], spread: Sequence[tuple[float, int, Floats]]
) -> Gap:
    """Blocks [columns, terms, texts] with weights; `spread` says where each block's spread of
    terms comes from: weight, terms in the block, and terms that show it."""
    by_text = np.asarray(sum(w * block.mean(axis=1) for w, block in blocks))
    texts = by_text.shape[1]
    none = np.zeros(len(by_text))
    names, names_noise, rest, rest_noise = (none.copy() for _ in range(4))
    shared = _one_source(spread)
    for w, n, shown in shared:
        k = shown.shape[1]
        means = w * shown.mean(axis=2).var(axis=1, ddof=1) / n
        names += means
        names_noise += means**2 / (k - 1)
        if texts > 1:
            alone = shown - shown.mean(axis=1, keepdims=True) - shown.mean(axis=2, keepdims=True)
            alone = alone + shown.mean(axis=(1, 2), keepdims=True)
            free = (k - 1) * (texts - 1)
            part = w * (alone**2).sum(axis=(1, 2)) / free / (n * texts)
            rest += part
            rest_noise += part**2 / free
    within = by_text.var(axis=1, ddof=1) / texts if texts > 1 else np.full(len(by_text), np.nan)
    within_noise = within**2 / max(1, texts - 1)
    # A component cannot be negative: one that seems to be is none, and adds no uncertainty.
    vary, differ = names > rest, within > rest
    variance = np.maximum(names, rest) + np.maximum(within, rest) - rest
    noise = names_noise * vary + within_noise * differ + rest_noise * (vary == differ)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(noise > 0, np.maximum(1.0, variance**2 / noise), 1.0)
    sides = [[(abs(w), b) for w, b in blocks if (w > 0) == first] for first in (True, False)]
    means_of = [np.asarray(sum(w * b.mean(axis=(1, 2)) for w, b in side)) for side in sides]
    terms = min(sum(b.shape[1] for _, b in side) for side in sides)
    return Gap(
        by_text.mean(axis=1), variance, freedom, texts, terms, by_text, (means_of[0], means_of[1])
    )


def _one_source(
    spread: Sequence[tuple[float, int, Floats]],
) -> list[tuple[float, int, Floats]]:
    """Squared weights; blocks that take their spread from the same terms are one source of it."""
    if len({id(shown) for _, _, shown in spread}) == 1 and len(spread) > 1:
        return [(sum(w * w / n for w, n, _ in spread), 1, spread[0][2])]
    return [(w * w, n, shown) for w, n, shown in spread]


def together(parts: Sequence[Gap]) -> Gap:
    """Tables of different texts and terms as one: each counts by its number of texts."""
    if len(parts) == 1:
        return parts[0]
    share = np.asarray([p.texts for p in parts], np.float64)
    share /= share.sum()
    pieces = np.stack([s**2 * p.variance for s, p in zip(share, parts)])
    variance = pieces.sum(axis=0)
    noise = (pieces**2 / np.stack([p.freedom for p in parts])).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = np.where(noise > 0, np.maximum(1.0, variance**2 / noise), 1.0)
    means = [np.asarray(sum(s * p.means[k] for s, p in zip(share, parts))) for k in (0, 1)]
    return Gap(
        np.asarray(sum(s * p.value for s, p in zip(share, parts))), variance, freedom,
        sum(p.texts for p in parts), sum(p.terms for p in parts),
        np.concatenate([p.by_text for p in parts], axis=1), (means[0], means[1]),
    )  # fmt: skip


def gap(tables: Sequence[Panel], view: View, group: str, reference: str) -> Gap | None:
    """The gap of a group to the reference over all tables that hold both; None where none does."""
    parts = []
    for panel in tables:
        weighed = weights(panel, view, group, reference)
        if weighed and len(panel.items) > 1:
            parts.append(gap_of(panel, weighed))
    return together(parts) if parts else None


def flips(tables: Sequence[Panel], view: View, group: str, reference: str, column: int) -> float:
    """The share of pairs of texts, alike but for the group, whose decisions differ.

    flips = mean over texts and strata of p_g (1 - p_r) + p_r (1 - p_g)
    """
    found, count = 0.0, 0
    for panel in tables:
        weighed = weights(panel, view, group, reference)
        strata: dict[str, list[Floats]] = {}
        for cell in weighed:
            side, stratum = view.sides[cell]
            share = panel.values[column, panel.rows(cell)].mean(axis=0)
            strata.setdefault(stratum, []).insert(0 if side == group else 1, share)
        for one, two in (pair for pair in strata.values() if len(pair) == 2):
            found += float((one * (1 - two) + two * (1 - one)).sum())
            count += len(one)
    return found / count if count else float("nan")

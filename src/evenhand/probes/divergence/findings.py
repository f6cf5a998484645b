"""What the divergence probe says: shifts of next words, and grammar and distance beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.probes.base import Placebo
from evenhand.probes.divergence import shifts
from evenhand.probes.divergence.pairs import Pair
from evenhand.probes.divergence.shifts import Floats
from evenhand.probes.divergence.terms import CONTROL, SLOT, Axis, Block, Material, WordList
from evenhand.probes.shared.estimates import claim, stated
from evenhand.runs.finding import NAN, Finding
from evenhand.stats.multiple import benjamini_hochberg

OTHERS = "the others"
SHOWN = 4
METHOD = (
    "mean log-odds over matched rows; variance of terms within rows (groups and controls) and of "
    "words; t with Satterthwaite's degrees of freedom"
)


@dataclass(frozen=True)
class Asked:
    """One axis and one list with their scores."""

    axis: Axis
    listed: WordList
    scores: shifts.Scores

    @property
    def weights(self) -> Floats:
        return shifts.comparisons(len(self.axis.groups))


def gathered(material: Material, blocks: Sequence[Block], logprob: Floats) -> list[Asked]:
    """Scores of every axis and list, controls of the same form beside them."""
    parts = dict(zip(blocks, _split(blocks, logprob)))
    out = []
    for axis in material.axes:
        for name in axis.lists:
            words = material.lists[name]
            own = next(b for b in blocks if (b.axis, b.listed.name) == (axis.name, name))
            width = len(words.words)
            groups = parts[own].reshape(len(axis.terms), len(axis.groups), width)
            controls: list[Floats] = []
            for block in blocks:
                if (block.axis, block.form, block.listed.name) == (CONTROL, axis.form, name):
                    controls = np.split(parts[block].reshape(-1, width), _ends(block.terms))
            frames = tuple(words.frames.index(opening) for opening in words.openings)
            scores = shifts.Scores(groups, tuple(controls), len(words.first), frames).known()
            out.append(Asked(axis, words, scores))
    return out


def items(blocks: Sequence[Block], logprob: Floats) -> pa.Table:
    """One row per term and word; `shift` is the log-probability beyond its row's mean, signed
    towards the first side of the list."""
    columns: dict[str, list[Any]] = {}
    relative = []
    for block, values in zip(blocks, _split(blocks, logprob)):
        for name, column in block.columns().items():
            columns.setdefault(name, []).extend(column)
        width, first = len(block.listed.words), len(block.listed.first)
        sign = np.repeat([1.0, -1.0], [first, width - first])
        for row in np.split(values.reshape(-1, width), _ends(block.terms)):
            with np.errstate(invalid="ignore"):  # a word that is impossible after all terms
                relative.append((sign * (row - row.mean(axis=0))).ravel())
    return pa.table({**columns, "logprob": logprob, "shift": np.concatenate(relative)})


def _split(blocks: Sequence[Block], values: Floats) -> list[Floats]:
    return np.split(np.asarray(values, np.float64), np.cumsum([b.size for b in blocks])[:-1])


def _ends(rows: Sequence[Sequence[str]]) -> list[int]:
    return [int(end) for end in np.cumsum([len(row) for row in rows])[:-1]]


def judged(asked: Sequence[Asked], rate: float) -> list[Finding]:
    """The shift of every list with the group, tested, with q over all of them."""
    tested = [a for a in asked if a.listed.judged]
    family = sum(len(a.weights) for a in tested)
    found = [f for a in tested for f in _judged(a, family, rate)]
    q = benjamini_hochberg([f.p for f in found])
    return [replace(f, q=float(value)) for f, value in zip(found, q)]


def _judged(asked: Asked, family: int, rate: float) -> list[Finding]:
    weights = asked.weights
    estimates = shifts.shifts(asked.scores, weights, family=family, rate=rate)
    reach = shifts.neutral_reach(asked.scores, weights)
    by_row = shifts.row_shifts(asked.scores, weights)
    axis, words = asked.axis, asked.listed
    out = []
    for number, (found, band, rows) in enumerate(zip(estimates, reach, by_row)):
        groups = _groups(axis, number)
        agree = int((rows * found.value > 0).sum())
        out.append(
            claim(
                f"divergence/{axis.name}/{words.name}/{'-'.join(groups).replace(' ', '-')}",
                f"{words.name}_shift",
                found,
                sentence=_sentence(asked, number, found.value),
                otherwise=_otherwise(asked, number),
                units="terms",
                over=("terms", "words"),
                groups=groups,
                attribute=words.about,
                coverage=sum(asked.scores.words) / len(words.words),
                method=METHOD,
                examples=_examples(asked, number, found.value, rows, agree),
                details={
                    "axis": axis.name,
                    "odds_ratio": stated(float(np.exp(found.value))),
                    "rows": len(axis.terms),
                    "rows_agreeing": agree,
                    "controls": sum(map(len, asked.scores.controls)),
                    "neutral_reach": stated(float(band)),
                    "words": sum(asked.scores.words),
                },
            )
        )
    return out


def grammar(asked: Sequence[Asked]) -> list[Finding]:
    """Words that must agree with the group: their shift is grammar, told and not judged."""
    out = []
    for part in asked:
        if part.listed.judged or not min(part.scores.words):
            continue
        values = part.weights @ part.scores.values(part.scores.groups).mean(axis=0)
        for number, value in enumerate(values):
            groups = _groups(part.axis, number)
            first, second = _sides(part.listed, value)
            out.append(
                Finding(
                    f"divergence/{part.axis.name}/{part.listed.name}/{'-'.join(groups)}",
                    "divergence",
                    f"{part.listed.name}_shift",
                    stated(float(value)),
                    f"After {_named(part.axis, number)}, the model expects {first} rather than "
                    f"{second} at {times(value)} times the odds that it does after "
                    f"{_rest(part.axis, number)}: grammar, which is not judged.",
                    n=len(part.axis.terms) * len(part.axis.groups),
                    units="terms",
                    groups=groups,
                    attribute=part.listed.about,
                    reason="grammar: these words must agree with the group",
                    details={"axis": part.axis.name, "odds_ratio": stated(float(np.exp(value)))},
                )
            )
    return out


def placebos(asked: Sequence[Asked], seed: int) -> tuple[Placebo, ...]:
    """Random control terms in the place of every axis's terms, list by list."""
    return tuple(
        shifts.neutral_swaps(
            a.scores,
            a.weights,
            f"control terms in the place of {_plain(a.axis.name)} terms ({a.listed.name})",
            [seed, number],
        )
        for number, a in enumerate(asked)
        if a.listed.judged
    )


def shift_table(findings: Sequence[Finding]) -> pa.Table:
    """What the chart draws: shifts with intervals, and what as many control terms would show."""
    names = ("attribute", "metric", "value", "low", "high", "p", "q", "n")
    columns: dict[str, list[Any]] = {n: [getattr(f, n) for f in findings] for n in names}
    columns["axis"] = [f.details["axis"] for f in findings]
    columns["groups"] = [" / ".join(f.groups) for f in findings]
    columns["neutral_low"] = [-f.details["neutral_reach"] for f in findings]
    columns["neutral_high"] = [f.details["neutral_reach"] for f in findings]
    return pa.table(columns)


def swaps(material: Material) -> list[Pair]:
    """Every two terms of every row after the first opening of each list: for the distances."""
    out = []
    for axis in material.axes:
        judged = [material.lists[name] for name in axis.lists if material.lists[name].judged]
        for frame in dict.fromkeys(words.frames[0] for words in judged):
            for row in axis.terms:
                for a, b in combinations(range(len(row)), 2):
                    names = (axis.name, axis.groups[a], axis.groups[b])
                    out.append(Pair(*names, frame, *(_fill(frame, row[i]) for i in (a, b))))
            for row in material.controls[axis.form]:
                for one, two in combinations(row, 2):
                    texts = (_fill(frame, one), _fill(frame, two))
                    out.append(Pair(f"{CONTROL}, {axis.form}", one, two, frame, *texts))
    return list(dict.fromkeys(out))


def distances(material: Material, pairs: Sequence[Pair], h2: Floats) -> list[Finding]:
    """Hellinger distances with their rank among control swaps: context, no verdict."""
    far = np.sqrt(np.asarray(h2, np.float64))
    out = []
    for axis in material.axes:
        own = np.asarray([p.axis == axis.name for p in pairs])
        other = np.asarray([p.axis == f"{CONTROL}, {axis.form}" for p in pairs])
        if not own.any():
            continue
        value = float(np.median(far[own]))
        rank = float((far[other] < value).mean()) if other.any() else NAN
        beside = (
            f"; of 100 swaps of two control terms, {100 * rank:.0f} change it less"
            if rank == rank
            else ""
        )
        out.append(
            Finding(
                f"divergence/{axis.name}/distance",
                "divergence",
                "hellinger",
                stated(value),
                f"Swapping one group's term for another's ({_plain(axis.name)}) changes the "
                f"model's next-word distribution by a median Hellinger distance of {value:.2f} (0: "
                f"same, 1: no overlap){beside}. It has no direction and is not a verdict.",
                n=int(own.sum()),
                units="swaps",
                groups=axis.groups,
                attribute="all next words",
                reason="a distance has no direction: it is context of the shifts",
                details={
                    "axis": axis.name,
                    "rank_among_controls": rank,
                    "controls": int(other.sum()),
                },
            )
        )
    return out


def times(value: float) -> str:
    """A shift as a factor of the odds, at least 1.

    >>> times(-0.26), times(3.0)
    ('1.3', '20')
    """
    factor = float(np.exp(abs(value)))
    return f"{factor:.1f}" if factor < 9.95 else f"{factor:,.0f}"


def _groups(axis: Axis, number: int) -> tuple[str, str]:
    if len(axis.groups) == 2:
        return axis.groups[0], axis.groups[1]
    return axis.groups[number], OTHERS


def _sides(words: WordList, value: float) -> tuple[str, str]:
    """The sides of a list in words, the one that is expected more first."""
    lists = [
        f"{label} ({', '.join(side[:2])})"
        for label, side in zip(words.labels, (words.first, words.second))
    ]
    return (lists[0], lists[1]) if value >= 0 else (lists[1], lists[0])


def _named(axis: Axis, place: int) -> str:
    terms = [row[place] for row in axis.terms]
    more = f" and {len(terms) - 2} others like them" if len(terms) > 2 else ""
    return ", ".join(f"“{t}”" for t in terms[:2]) + more


def _rest(axis: Axis, number: int) -> str:
    if len(axis.groups) == 2:
        return _named(axis, 1)
    others = [g for i, g in enumerate(axis.groups) if i != number]
    return f"the same words for the other groups ({', '.join(others)})"


def _sentence(asked: Asked, number: int, value: float) -> str:
    first, second = _sides(asked.listed, value)
    return (
        f"After {_named(asked.axis, number)}, the model expects {first} rather than {second} at "
        f"{times(value)} times the odds that it does after {_rest(asked.axis, number)}."
    )


def _otherwise(asked: Asked, number: int) -> str:
    return (
        f"Between {_named(asked.axis, number)} and {_rest(asked.axis, number)}, no difference in "
        f"the next words was detected ({asked.listed.about})."
    )


def _examples(
    asked: Asked, number: int, value: float, rows: Floats, agree: int
) -> tuple[dict[str, Any], ...]:
    """The row that is typical of the claim: the median of those that agree with it."""
    if not agree:
        return ()
    scores, words = asked.scores, asked.listed.words
    row = shifts.typical(rows, value)
    terms = asked.axis.terms[row]
    other = 1 if number == 0 else 0
    gaps: dict[str, float] = {}
    if scores.groups.shape[-1] == len(words):
        gaps = dict(zip(words, asked.weights[number] @ scores.groups[row]))
    ranked = sorted(gaps, key=lambda w: (-gaps[w], w))
    frame = asked.listed.frames[0]
    return (
        {
            "context_a": _fill(frame, terms[number]),
            "context_b": _fill(frame, terms[other]),
            "shift": round(float(rows[row]), 4),
            "typical": f"median of the {agree} of {len(rows)} rows that lean this way",
            "more_after_a": [w for w in ranked[:SHOWN] if gaps[w] > 0],
            "more_after_b": [w for w in ranked[: -SHOWN - 1 : -1] if gaps[w] < 0],
        },
    )


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _fill(frame: str, term: str) -> str:
    return frame.replace(SLOT, term)

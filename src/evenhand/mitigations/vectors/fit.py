"""Mitigating word vectors: train or project, blend, measure before and after, save.

    before -> method -> after; blended: unit vectors mixed, lengths kept -> measured -> folder

ATTRACT-REPEL at the published settings does not bring an association to zero, it turns it round.
`blend` mixes the two ends; by default the share is chosen so that the test asked for reads zero.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError
from evenhand.metrics import association as metrics
from evenhand.mitigations.base import Note, quiet
from evenhand.mitigations.changes import Followed
from evenhand.mitigations.vectors import attract_repel as trainer
from evenhand.mitigations.vectors.projection import mean_axis, project
from evenhand.models.vectors.files import VectorTable
from evenhand.probes.association.score import associate
from evenhand.stats.crossed import crossed_contrasts
from evenhand.stats.estimate import Estimate
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets
from evenhand.words.lexicons.files import load
from evenhand.words.sets import expand, nearest

if TYPE_CHECKING:
    from evenhand.mitigations.vectors.mitigation import VectorMitigation

Floats = npt.NDArray[np.float64]
SETS = ("x", "y", "a", "b")
NUMBERS = ("effect_size", "statistic", "p_two_sided", "rnsb", "rnsb_kl", "reason")


@dataclass(frozen=True, slots=True)
class Moved:
    """The new vectors, and what is known about them."""

    vectors: VectorTable
    facts: dict[str, Any]


def mitigate(vectors: VectorTable, asked: VectorMitigation, say: Note = quiet) -> Moved:
    """Change the vectors as asked, and measure before and after.

    Returns:
        The table and facts: `before` and `after` (effect size, statistic, p, RNSB of the test
        and of the tests not trained on), `amount`, `touched`, `neighbours_kept`, `settings`.
    """
    facts: dict[str, Any] = {"method": asked.method, "direction": asked.direction}
    sets = asked.word_sets
    if asked.method == "attract-repel":
        if asked.neighbours:
            say(f"adding the {asked.neighbours} nearest words of every word")
            sets = expand(
                sets, vectors, neighbours=asked.neighbours, as_published=asked.as_published
            ).test
        say("moving vectors")
        after, more = _attract_repel(vectors, sets, asked)
        facts |= more
    else:
        say("moving vectors")
        after = _projected(vectors, asked)
    amount = _amount(vectors, after, asked)
    if amount < 1:
        after = blend(vectors, after, amount)
    say("measuring before and after")
    touched = int(moved_rows(vectors, after).sum())
    facts |= {
        "amount": amount,
        "words": {key: list(getattr(sets, key)) for key in SETS},
        "touched": touched,
        "before": _measured(vectors, asked),
        "after": _measured(after, asked),
        "neighbours_kept": neighbours_kept(vectors, after, seed=asked.seed),
        "settings": {
            "neighbours": asked.neighbours,
            "as_published": asked.as_published,
            "seed": asked.seed,
            "test": asked.word_sets.name,
        },
    }
    return Moved(after, dict(plain(facts)))


def _attract_repel(
    vectors: VectorTable, sets: WordSets, asked: VectorMitigation
) -> tuple[VectorTable, dict[str, Any]]:
    settings = trainer.AttractRepel(seed=asked.seed, regularisation=0.01)
    if asked.as_published:
        settings = settings.as_published()
    attract, repel = trainer.pairs_for(sets, asked.direction)
    trained = trainer.train(vectors, attract, repel, settings=settings, device=asked.device)
    if not trained.losses:
        raise SpecError(
            f"attract-repel: {trained.attract} attract and {trained.repel} repel pairs do not fill "
            f"a batch of {settings.batch_size}, and the released code then trains nothing. Leave "
            "--as-published out, or raise --neighbours."
        )
    facts = {
        "training": asdict(settings),
        "losses": trained.losses,
        "missing": trained.missing,
        "pairs": {"attract": trained.attract, "repel": trained.repel},
    }
    return trainer.put_back(vectors, trained, norms=settings.norms), facts


def _projected(vectors: VectorTable, asked: VectorMitigation) -> VectorTable:
    axis = mean_axis(vectors, asked.word_sets.a, asked.word_sets.b)
    amount = 1.0 if asked.method == "hard-projection" else 0.5
    if asked.direction == "increase":
        amount = -1.0
    if asked.move == "all":
        return project(vectors, axis, without=_of_the_axis(asked), amount=amount)
    return project(vectors, axis, words=[*asked.word_sets.x, *asked.word_sets.y], amount=amount)


def _of_the_axis(asked: VectorMitigation) -> list[str]:
    """Words that mean the axis and keep it: the attributes, and of gender what names one."""
    words = [*asked.word_sets.a, *asked.word_sets.b]
    if asked.sets is None and asked.axis == "gender":
        for row in load("gender_terms").data["terms"]:
            words += [row["masculine"], row["feminine"]]
    return words


def _amount(before: VectorTable, after: VectorTable, asked: VectorMitigation) -> float:
    if asked.alpha is not None:
        return asked.alpha
    if asked.direction == "increase" or asked.as_published or asked.method != "attract-repel":
        return 1.0
    return balanced_amount(before, after, asked.word_sets)


def blend(before: VectorTable, after: VectorTable, amount: float) -> VectorTable:
    """Vectors on the way from one table to another, at the lengths of the first.

    w' = |w| * unit((1 - amount) * unit(w) + amount * unit(w_after)), for the rows that differ.
    """
    rows = np.flatnonzero((after.matrix != before.matrix).any(axis=1))
    matrix = np.array(before.matrix, dtype=np.float32)
    old = before.matrix[rows].astype(np.float64)
    mixed = (1 - amount) * metrics.unit_rows(old) + amount * metrics.unit_rows(after.matrix[rows])
    new = metrics.unit_rows(mixed) * np.linalg.norm(old, axis=1, keepdims=True)
    matrix[rows] = np.where(np.isfinite(new), new, old)
    return VectorTable(before.words, matrix, before.source, before.duplicates)


def balanced_amount(before: VectorTable, after: VectorTable, sets: WordSets) -> float:
    """The share of the change at which the WEAT statistic of a test is zero, by bisection.

    1 when the change does not reach zero, 0 when it leads away from it.
    """
    places = {key: before.places(getattr(sets, key)) for key in SETS}
    needed = sorted({row for rows in places.values() for place in rows for row in place})
    small = [
        VectorTable(before.words.take(needed), np.array(t.matrix[needed])) for t in (before, after)
    ]

    def statistic(amount: float) -> float:
        mixed = blend(small[0], small[1], amount)
        return metrics.weat(*(mixed.find(getattr(sets, key)).rows for key in SETS)).statistic

    low, high = 0.0, 1.0
    start, end = statistic(low), statistic(high)
    if start * end > 0:
        return 1.0 if abs(end) < abs(start) else 0.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if statistic(middle) * start > 0 else (low, middle)
    return (low + high) / 2


def _measured(vectors: VectorTable, asked: VectorMitigation) -> list[dict[str, Any]]:
    rows = associate(vectors, asked.tests, seed=asked.seed, placebos=0)
    return [{name: row[name] for name in ("test", *NUMBERS)} for row in rows]


def followed(
    before: VectorTable, after: VectorTable, sets: WordSets, seen: Collection[str] = ()
) -> Followed:
    """A test before and after; see `cosines` and `follow`."""
    return follow(sets.name, *cosines(before, after, sets, seen))


def cosines(
    before: VectorTable, after: VectorTable, sets: WordSets, seen: Collection[str] = ()
) -> tuple[tuple[int, ...], list[Floats]]:
    """How many words of each set are known, and the cosines of targets with attributes, both times.

    Targets in `seen` are left out.
    """
    words = {
        key: before.find([w for w in getattr(sets, key) if key in "ab" or w not in seen]).words
        for key in SETS
    }
    sizes = tuple(len(words[key]) for key in SETS)
    tables = []
    for table in (before, after) if min(sizes) > 1 else ():
        x, y, a, b = (metrics.unit_rows(table.find(words[key]).rows) for key in SETS)
        tables.append(np.concatenate([x, y]) @ np.concatenate([a, b]).T)
    return sizes, tables


def follow(test: str, sizes: Sequence[int], tables: Sequence[Floats]) -> Followed:
    """A test before and after, and its change, over targets and attributes as samples.

    The value is theta = (XA - XB) - (YA - YB) in mean cosines; its change is that of the difference
    of both tables of cosines (`stats.crossed`).
    """
    x, y, a, b = sizes
    found = [Estimate(float("nan"), reason="a set has fewer than two words")] * 3
    if tables:
        one, two = (np.reshape(table, (x + y, a + b)) for table in tables)
        found = crossed_contrasts([one, two, two - one], x, a)
    was, now, change = found
    over = ("target words", "attribute words")
    return Followed(test, "associations", test, was, now, change, "words", over)


def moved_rows(before: VectorTable, after: VectorTable) -> npt.NDArray[np.bool_]:
    """Which rows point elsewhere than before; a change of length alone does not count."""
    moved = np.asarray((after.matrix != before.matrix).any(axis=1))
    rows = np.flatnonzero(moved)
    for start in range(0, len(rows), 65_536):
        at = rows[start : start + 65_536]
        old, new = (metrics.unit_rows(t.matrix[at]) for t in (before, after))
        moved[at] = np.abs(new - old).max(axis=1) > 1e-6
    return moved


def kept_shares(
    before: VectorTable, after: VectorTable, *, k: int = 10, sample: int = 200, seed: int = 0
) -> dict[str, Floats]:
    """Share of the k nearest words that untouched words keep, word by word of a sample.

    `all` counts every neighbour, `untouched` only those that were not moved themselves: 1 there
    means that nothing but the touched words changed.
    """
    moved = moved_rows(before, after)
    rest = np.flatnonzero(~moved)
    rng = np.random.default_rng(seed)
    if len(rest) < min(sample, len(before) // 2):  # nearly all were moved: of those, too
        rest = np.arange(len(before))
    asked = rng.choice(rest, min(sample, len(rest)), replace=False) if len(rest) else rest
    shares: dict[str, list[float]] = {"all": [], "untouched": []}
    near = [nearest(t, np.asarray(t.matrix[asked], np.float32), k + 1)[0] for t in (before, after)]
    for row, one, two in zip(asked, *near, strict=True):
        old, new = (set(part.tolist()) - {int(row)} for part in (one, two))
        shares["all"].append(len(old & new) / max(len(old), 1))
        fixed = {r for r in old if not moved[r]}
        # A touched word may come between: it pushes the last one out without moving anything.
        pushed = len([r for r in new if moved[r]]) - len([r for r in old if moved[r]])
        lost = max(0, len(fixed - new) - max(0, pushed))
        shares["untouched"].append(1 - lost / max(len(fixed), 1))
    return {name: np.asarray(values) for name, values in shares.items()}


def neighbours_kept(before: VectorTable, after: VectorTable, seed: int = 0) -> dict[str, Any]:
    """Means of `kept_shares`, and how many words were sampled."""
    shares = kept_shares(before, after, seed=seed)
    size = len(shares["all"])
    return {k: float(v.mean()) if size else None for k, v in shares.items()} | {"sample": size}

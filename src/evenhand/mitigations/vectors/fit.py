"""Mitigating word vectors: train or project, blend, measure before and after, save.

    before -> method -> after; blended: unit vectors mixed, lengths kept -> measured -> folder

ATTRACT-REPEL at the published settings does not bring an association to zero, it turns it round.
`blend` mixes the two ends; by default the share is chosen so that the test asked for reads zero.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError
from evenhand.metrics import association as metrics
from evenhand.mitigations.base import Note, quiet
from evenhand.mitigations.vectors import attract_repel as trainer
from evenhand.mitigations.vectors.projection import mean_axis, project
from evenhand.models.vectors.files import VectorTable
from evenhand.probes.association.score import Options, associate
from evenhand.stats import bootstrap, permutation
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets
from evenhand.words.sets.expansion import expand
from evenhand.words.sets.neighbours import nearest

if TYPE_CHECKING:
    from evenhand.mitigations.vectors.mitigation import VectorMitigation

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
            "neighbours": asked.neighbours, "as_published": asked.as_published, "seed": asked.seed,
            "test": asked.word_sets.name,
        },
    }  # fmt: skip
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
        "training": asdict(settings), "losses": trained.losses, "missing": trained.missing,
        "pairs": {"attract": trained.attract, "repel": trained.repel},
    }  # fmt: skip
    return trainer.put_back(vectors, trained, norms=settings.norms), facts


def _projected(vectors: VectorTable, asked: VectorMitigation) -> VectorTable:
    axis = mean_axis(vectors, asked.word_sets.a, asked.word_sets.b)
    amount = 1.0 if asked.method == "hard-projection" else 0.5
    if asked.direction == "increase":
        amount = -1.0
    return project(vectors, axis, words=[*asked.word_sets.x, *asked.word_sets.y], amount=amount)


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
    rows = associate(vectors, asked.tests, Options(seed=asked.seed, placebos=0))
    return [{"test": row.test, **{name: getattr(row, name) for name in NUMBERS}} for row in rows]


def paired_changes(before: VectorTable, after: VectorTable, asked: VectorMitigation) -> list[Any]:
    """Per test: how its target words changed their association, word by word.

    With s(w) the association of a target word with a rather than b, the value is the mean over
    words of sign * (s_after - s_before), where the sign is that of the group's side, turned so
    that below 0 is nearer to no association. The interval is over words.
    """
    found = []
    for sets in asked.tests:
        old, new = (_signed(table, sets) for table in (before, after))
        row: dict[str, Any] = {"test": sets.name, "n": len(old), "change": float("nan")}
        row |= {"low": float("nan"), "high": float("nan"), "p": float("nan")}
        if len(old) > 1:
            gap = (new - old) * (1.0 if old.mean() >= 0 else -1.0)
            test = permutation.paired_sign_flip(gap, seed=asked.seed, max_exact=20_000)
            ends = bootstrap.interval(gap, seed=asked.seed, resamples=2_000)
            row |= {
                "change": float(test.mean[0]), "p": float(test.p_two_sided[0]),
                "low": float(np.asarray(ends.low)), "high": float(np.asarray(ends.high)),
            }  # fmt: skip
        found.append(row)
    for row, q in zip(found, benjamini_hochberg([row["p"] for row in found])):
        row["q"] = float(q)
    return found


def _signed(vectors: VectorTable, sets: WordSets) -> npt.NDArray[np.float64]:
    """s(w) of the words of x, and -s(w) of those of y."""
    x, y, a, b = (vectors.find(getattr(sets, key)).rows for key in SETS)
    if not len(a) or not len(b):
        return np.zeros(0)
    parts = [sign * metrics.associations(r, a, b) for sign, r in ((1.0, x), (-1.0, y)) if len(r)]
    return np.concatenate(parts) if parts else np.zeros(0)


def moved_rows(before: VectorTable, after: VectorTable) -> npt.NDArray[np.bool_]:
    """Which rows point elsewhere than before; a change of length alone does not count."""
    moved = np.asarray((after.matrix != before.matrix).any(axis=1))
    rows = np.flatnonzero(moved)
    for start in range(0, len(rows), 65_536):
        at = rows[start : start + 65_536]
        old, new = (metrics.unit_rows(t.matrix[at]) for t in (before, after))
        moved[at] = np.abs(new - old).max(axis=1) > 1e-6
    return moved


def neighbours_kept(
    before: VectorTable, after: VectorTable, *, k: int = 10, sample: int = 200, seed: int = 0
) -> dict[str, Any]:
    """Share of the k nearest words that untouched words keep, over a sample of them.

    `all` counts every neighbour, `untouched` only those that were not moved themselves: 1 there
    means that nothing but the touched words changed.
    """
    moved = moved_rows(before, after)
    rest = np.flatnonzero(~moved)
    if not len(rest):
        return {"all": None, "untouched": None, "sample": 0}
    rng = np.random.default_rng(seed)
    asked = rng.choice(rest, min(sample, len(rest)), replace=False)
    near = [nearest(t, np.asarray(t.matrix[asked], np.float32), k + 1)[0] for t in (before, after)]
    shares: dict[str, list[float]] = {"all": [], "untouched": []}
    for row, one, two in zip(asked, *near, strict=True):
        old, new = (set(part.tolist()) - {int(row)} for part in (one, two))
        shares["all"].append(len(old & new) / max(len(old), 1))
        fixed = {r for r in old if not moved[r]}
        # A touched word may come between: it pushes the last one out without moving anything.
        pushed = len([r for r in new if moved[r]]) - len([r for r in old if moved[r]])
        lost = max(0, len(fixed - new) - max(0, pushed))
        shares["untouched"].append(1 - lost / max(len(fixed), 1))
    return {name: float(np.mean(values)) for name, values in shares.items()} | {
        "sample": len(asked)
    }

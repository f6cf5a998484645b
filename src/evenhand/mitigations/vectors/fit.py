"""Mitigate word vectors: train or project, blend, measure before and after.

    before -> method -> after; blended: unit vectors mixed, lengths kept -> measured

ATTRACT-REPEL at the published settings does not bring an association to zero but turns it round.
`blend` mixes the two ends; by default the share is chosen so that the test asked for reads zero.
`project` removes a share of every vector's part along an axis (Bolukbasi et al. 2016; Dev &
Phillips 2019).

What vectors are used for is measured item by item, so that before and after can be compared:

    similarity   Spearman correlation of cosines with what people say (as SimLex-999, WordSim-353)
    analogies    a is to b as c is to ?: the nearest word to b - a + c that is none of them
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, SpecError
from evenhand.metrics import association as metrics
from evenhand.metrics.association import unit_rows
from evenhand.mitigations.base import Note, quiet
from evenhand.mitigations.changes import PairedChange
from evenhand.mitigations.vectors import attract_repel as trainer
from evenhand.models.vectors.files import VectorTable
from evenhand.opening import lines
from evenhand.probes.association.score import associate
from evenhand.stats.crossed import crossed_contrasts
from evenhand.stats.estimate import Estimate
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets
from evenhand.words.lexicons.files import load
from evenhand.words.sets import expand, nearest

if TYPE_CHECKING:
    from evenhand.mitigations.vectors import VectorMitigation

Floats = npt.NDArray[np.float64]
SETS = ("x", "y", "a", "b")
NUMBERS = ("effect_size", "statistic", "p_two_sided", "rnsb", "rnsb_kl", "reason")
BLOCK = 65_536
FEWEST = 20
POINTS = 0.05
"""Margin: five points of a correlation, or five of 100 questions."""


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
    """Return words that define the axis and keep it: attributes, and words for a gender."""
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
    """Return vectors on the way from one table to another, at the lengths of the first.

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
    """Find the share of the change at which the WEAT statistic of a test is zero, by bisection.

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


def cosines(
    before: VectorTable, after: VectorTable, sets: WordSets, seen: Collection[str] = ()
) -> tuple[tuple[int, ...], list[Floats]]:
    """Return the sizes of the known sets, and cosines of targets with attributes before and after.

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


def follow(test: str, sizes: Sequence[int], tables: Sequence[Floats]) -> PairedChange:
    """Return a test before and after, and its change, over targets and attributes as samples.

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
    return PairedChange(test, "associations", test, was, now, change, "words", over)


def moved_rows(before: VectorTable, after: VectorTable) -> npt.NDArray[np.bool_]:
    """Return which rows changed direction; a change of length alone does not count."""
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
    """Return the share of the k nearest words that untouched words keep, for a sample of words.

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
    """Return the means of `kept_shares`, and how many words were sampled."""
    shares = kept_shares(before, after, seed=seed)
    size = len(shares["all"])
    return {k: float(v.mean()) if size else None for k, v in shares.items()} | {"sample": size}


def mean_axis(vectors: VectorTable, a: Sequence[str], b: Sequence[str]) -> Floats:
    """Return the direction from the words b to the words a, shape [1, dimensions], length one.

    axis = mean of unit rows of a - mean of unit rows of b, scaled to length one: the axis that
    WEAT measures along, so a unit vector without a part along it has s(w, a, b) = 0.

    >>> import pyarrow as pa
    >>> table = VectorTable(pa.array(["he", "she"]), np.eye(2, dtype=np.float32))
    >>> mean_axis(table, ["he"], ["she"]).round(4).tolist()
    [[0.7071, -0.7071]]
    """
    means = []
    for name, words in (("a", a), ("b", b)):
        rows = vectors.find(words).rows
        if not len(rows):
            raise DataError(f"set {name}: none of its {len(words)} words has a vector.")
        means.append(unit_rows(rows).mean(axis=0))
    axis = means[0] - means[1]
    if np.linalg.norm(axis) < 1e-9:
        raise DataError("the words of a and b have the same mean vector: there is no direction.")
    return unit_rows(axis)


def project(
    vectors: VectorTable,
    axes: npt.ArrayLike,
    *,
    words: Sequence[str] | None = None,
    without: Sequence[str] = (),
    amount: float = 1.0,
    keep_norms: bool = True,
) -> VectorTable:
    """Remove a share of the vectors' part along the axes.

    w' = w - amount * sum over axes of (w . e) e, with e orthonormal. 1 is the hard form, between 0
    and 1 the soft one; below 0 the part grows.

    Axes [k, dimensions] are made orthonormal here. All `words` are changed but those `without`,
    and scaled back to their old lengths; rows of other words keep their bytes.

    >>> import pyarrow as pa
    >>> table = VectorTable(pa.array(["w"]), np.array([[3.0, 4.0]], np.float32))
    >>> project(table, [[1.0, 0.0]], amount=0.5, keep_norms=False).matrix.tolist()
    [[1.5, 4.0]]
    """
    if not amount <= 1 or not np.isfinite(amount):
        raise SpecError(f"amount: '{amount}' is more than the whole. Accepted: up to 1.")
    basis = _orthonormal(axes, vectors.dimensions)
    matrix = np.array(vectors.matrix, dtype=np.float32)
    chosen = _chosen(vectors, words, without)
    for start in range(0, len(chosen), BLOCK):
        rows = chosen[start : start + BLOCK]
        old = vectors.matrix[rows].astype(np.float64)
        new = old - amount * (old @ basis.T) @ basis
        if keep_norms:
            length = np.linalg.norm(new, axis=1, keepdims=True)
            # A vector that lay on the axis has no direction left and stays where it is.
            lost = length <= 1e-6 * np.linalg.norm(old, axis=1, keepdims=True)
            scale = np.linalg.norm(old, axis=1, keepdims=True) / np.where(lost, 1.0, length)
            new = np.where(lost, old, new * scale)
        matrix[rows] = new
    return VectorTable(vectors.words, matrix, vectors.source, vectors.duplicates)


def _orthonormal(axes: npt.ArrayLike, dimensions: int) -> Floats:
    rows = np.atleast_2d(np.asarray(axes, np.float64))
    if rows.shape[1] != dimensions:
        raise DataError(f"axes: {rows.shape[1]} numbers where the vectors have {dimensions}.")
    q, r = np.linalg.qr(rows.T)
    if (np.abs(np.diag(r)) < 1e-12).any():
        raise DataError("axes: one of them is zero or lies in the span of the others.")
    return np.asarray(q.T, np.float64)


def _chosen(
    vectors: VectorTable, words: Sequence[str] | None, without: Sequence[str]
) -> npt.NDArray[np.int64]:
    """Return the rows to change; a term of several words changes all its rows."""
    kept = {row for place in vectors.places(list(without)) for row in place}
    if words is None:
        rows = np.arange(len(vectors), dtype=np.int64)
    else:
        rows = np.array(sorted({r for p in vectors.places(list(words)) for r in p}), np.int64)
        if not len(rows):
            raise DataError(f"none of the {len(words)} words has a vector.")
    return rows[~np.isin(rows, sorted(kept))] if kept else rows


def similarity(vectors: VectorTable, path: Path) -> Floats:
    """Return each rated pair's contribution to the Spearman correlation, which is their mean.

    rho = mean over pairs of z(rank of cosine) * z(rank of rating), z by the population deviation.

    Args:
        path: a table with word1, word2 and score; pairs with a missing word are left out.
    """
    table = read_table(path, text=("word1", "word2"), needed=("word1", "word2", "score"))
    pairs = list(zip(table.labels("word1"), table.labels("word2")))
    places = [vectors.places(pair) for pair in pairs]
    known = [k for k, two in enumerate(places) if all(two)]
    _enough(path, len(known), len(pairs), "pairs")
    ends = [
        unit_rows(np.array([vectors.matrix[list(places[k][side])].mean(axis=0) for k in known]))
        for side in (0, 1)
    ]
    return _z(np.sum(ends[0] * ends[1], axis=1)) * _z(table.numbers("score")[known])


def analogies(vectors: VectorTable, path: Path) -> Floats:
    """Return 1 for each question that is answered right, else 0.

    Args:
        path: text, one question of four words a line; lines that begin with a colon are headings.
    """
    asked = [
        line.split()
        for line in lines(path, "analogies: four words a line")
        if line.strip() and not line.startswith(":")
    ]
    strange = next((words for words in asked if len(words) != 4), None)
    if strange is not None:
        raise DataError(f"{path}: '{' '.join(strange)[:60]}' has {len(strange)} words, expected 4.")
    found = [[place[0] if place else -1 for place in vectors.places(words)] for words in asked]
    rows = np.array([row for row in found if min(row) >= 0], np.int64).reshape(-1, 4)
    _enough(path, len(rows), len(asked), "questions")
    a, b, c = (unit_rows(vectors.matrix[rows[:, k]]) for k in range(3))
    near, _ = nearest(vectors, np.asarray(b - a + c, np.float32), 4)
    answers = [next((n for n in row if n not in set(q[:3])), -1) for row, q in zip(near, rows)]
    return np.asarray(np.array(answers) == rows[:, 3], np.float64)


def _enough(path: Path, known: int, all_of_them: int, what: str) -> None:
    if known < FEWEST:
        raise DataError(
            f"{path}: of {all_of_them} {what} {known} have all their words among the vectors. "
            f"Accepted: {FEWEST} or more."
        )


def _z(values: Floats) -> Floats:
    """Return ranks (ties share their mean) in standard deviations."""
    from scipy.stats import rankdata

    ranks = rankdata(values)
    spread = ranks.std()
    return np.asarray((ranks - ranks.mean()) / (spread if spread else 1.0), np.float64)

"""Mitigating word vectors: train or project, blend, measure before and after, save.

    before -> method -> after; blended: unit vectors mixed, lengths kept -> measured -> folder

ATTRACT-REPEL at the published settings does not bring an association to zero, it turns it round.
`blend` mixes the two ends; by default the share is chosen so that the test asked for reads zero.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand import __version__
from evenhand.errors import ModelError, SpecError, unknown
from evenhand.metrics import association as metrics
from evenhand.mitigations.vectors import attract_repel as trainer
from evenhand.mitigations.vectors.projection import mean_axis, project
from evenhand.models.vectors.files import VectorTable, write_words
from evenhand.probes.association.score import Options, associate, choose_tests
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets, weat
from evenhand.words.sets.expansion import expand
from evenhand.words.sets.neighbours import nearest

METHODS = ("attract-repel", "hard-projection", "soft-projection")
AXES = {"gender": "kato_winobias", "race": "kato_weat3"}
HELD_OUT = {"gender": ("weat6", "weat7", "weat8"), "race": ("weat3", "weat4", "weat5")}
FACTS = "evenhand-vectors.json"
SETS = ("x", "y", "a", "b")
NUMBERS = ("effect_size", "statistic", "p_two_sided", "rnsb", "rnsb_kl", "reason")


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked for.

    `amount` is the share of the change, 0 to 1; None: the share at which the test reads zero when
    the direction is "reduce", else 1. `neighbours` grows the sets before training (0: as given).
    """

    sets: WordSets
    method: str = "attract-repel"
    direction: str = "reduce"
    amount: float | None = None
    neighbours: int = 10
    tests: tuple[str, ...] = ()
    as_published: bool = False
    seed: int = 0
    device: str | None = None

    def check(self) -> None:
        """Refuse what cannot work, before anything is read."""
        if self.method not in METHODS:
            raise SpecError(unknown("method", self.method, METHODS, where="--method"))
        if self.direction not in trainer.DIRECTIONS:
            directions = trainer.DIRECTIONS
            raise SpecError(unknown("direction", self.direction, directions, where="--direction"))
        if self.amount is not None and not 0 <= self.amount <= 1:
            raise SpecError(f"--alpha '{self.amount}': accepted is a share from 0 to 1.")
        if self.neighbours < 0:
            raise SpecError(f"--neighbours '{self.neighbours}': accepted is 0 or more.")


@dataclass(frozen=True, slots=True)
class Mitigated:
    """The new vectors, and what is known about them."""

    vectors: VectorTable
    facts: dict[str, Any]


def job_for(axis: str, sets: str | None = None, **options: Any) -> Job:
    """The job of an axis, or of a packaged test or a file that holds one test.

    >>> job_for("gender").sets.name
    'kato_winobias'
    """
    if sets is None:
        if axis not in AXES:
            hint = "Or name a test or a file of word lists: --sets weat7"
            raise SpecError(unknown("axis", axis, AXES, where="--axis", hint=hint))
        return Job(weat(AXES[axis]), tests=HELD_OUT[axis], **options)
    chosen = choose_tests(sets)
    if len(chosen) != 1:
        names = ", ".join(test.name for test in chosen)
        raise SpecError(f"--sets {sets}: names {len(chosen)} tests ({names}). Accepted: one.")
    return Job(chosen[0], **options)


def mitigate(
    vectors: VectorTable, job: Job, say: Callable[[str], None] = lambda text: None
) -> Mitigated:
    """Change the vectors as the job asks, and measure before and after.

    Returns:
        The table and facts: `before` and `after` (effect size, statistic, p, RNSB of the test
        and of the tests not trained on), `amount`, `touched`, `neighbours_kept`, `settings`.
    """
    job.check()
    facts: dict[str, Any] = {"method": job.method, "direction": job.direction}
    sets = job.sets
    if job.method == "attract-repel":
        if job.neighbours:
            say(f"adding the {job.neighbours} nearest words of every word")
            sets = expand(
                sets, vectors, neighbours=job.neighbours, as_published=job.as_published
            ).test
        say("moving vectors")
        after, more = _attract_repel(vectors, sets, job)
        facts |= more
    else:
        say("moving vectors")
        after = _projected(vectors, job)
    amount = _amount(vectors, after, job)
    if amount < 1:
        after = blend(vectors, after, amount)
    say("measuring before and after")
    touched = int(moved_rows(vectors, after).sum())
    facts |= {
        "amount": amount,
        "words": {key: list(getattr(sets, key)) for key in SETS},
        "touched": touched,
        "before": _measured(vectors, job),
        "after": _measured(after, job),
        "neighbours_kept": neighbours_kept(vectors, after, seed=job.seed),
        "settings": {
            "neighbours": job.neighbours, "as_published": job.as_published, "seed": job.seed,
            "test": job.sets.name,
        },
    }  # fmt: skip
    return Mitigated(after, dict(plain(facts)))


def _attract_repel(
    vectors: VectorTable, sets: WordSets, job: Job
) -> tuple[VectorTable, dict[str, Any]]:
    settings = trainer.Settings(seed=job.seed, regularisation=0.01)
    if job.as_published:
        settings = settings.as_published()
    attract, repel = trainer.pairs_for(sets, job.direction)
    trained = trainer.train(vectors, attract, repel, settings=settings, device=job.device)
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


def _projected(vectors: VectorTable, job: Job) -> VectorTable:
    axis = mean_axis(vectors, job.sets.a, job.sets.b)
    amount = 1.0 if job.method == "hard-projection" else 0.5
    if job.direction == "increase":
        amount = -1.0
    return project(vectors, axis, words=[*job.sets.x, *job.sets.y], amount=amount)


def _amount(before: VectorTable, after: VectorTable, job: Job) -> float:
    if job.amount is not None:
        return job.amount
    if job.direction == "increase" or job.as_published or job.method != "attract-repel":
        return 1.0
    return balanced_amount(before, after, job.sets)


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


def _measured(vectors: VectorTable, job: Job) -> list[dict[str, Any]]:
    tests = choose_tests([job.sets, *(t for t in job.tests if t != job.sets.name)])
    rows = associate(vectors, tests, Options(seed=job.seed, resamples=0))
    return [{"test": row.test, **{name: getattr(row, name) for name in NUMBERS}} for row in rows]


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


def save(mitigated: Mitigated, folder: Path, source: str) -> None:
    """Write the vectors with their provenance; the folder can be given wherever vectors can."""
    if folder.exists() and any(folder.iterdir()):
        raise SpecError(f"{folder}: the folder is not empty. Choose another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be made ({error.strerror}).") from error
    table = mitigated.vectors
    np.save(folder / "vectors.npy", np.asarray(table.matrix, np.float32), allow_pickle=False)
    write_words(folder / "words.parquet", table.words.to_pylist())
    facts = {"format": 1, "evenhand": __version__, "source": source, **mitigated.facts}
    text = json.dumps(facts, indent=1, ensure_ascii=False)
    (folder / FACTS).write_text(text + "\n", encoding="utf-8")


def changed(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[Any]:
    """Rows for a table: each test before and after."""
    return [
        {
            "test": one["test"], "effect size before": one["effect_size"],
            "after": two["effect_size"], "statistic before": one["statistic"],
            "statistic after": two["statistic"], "RNSB before": one["rnsb"],
            "RNSB after": two["rnsb"],
        }
        for one, two in zip(before, after, strict=True)
    ]  # fmt: skip

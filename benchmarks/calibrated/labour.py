"""Labour: occupations and names that a model likes for reasons of their own."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.labour.lines import name_line, pronoun_line
from evenhand.probes.labour.probe import read_jobs

COVERS = ("evenhand.probes.labour.probe",)
RACES = ("black", "asian", "hispanic")


@cache
def odds(group: str) -> np.ndarray:
    """Log odds in the labour market, of the packaged occupations."""
    return np.asarray([job.odds(group) for job in read_jobs()])


def pronouns(jobs: int) -> Path:
    """Pronouns of so many occupations; the slope is planted."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        x = rng.permutation(odds("women"))[:jobs]
        y = effect * x + rng.normal(0, 0.6, jobs) + rng.normal(0, 0.3, (4, jobs)).mean(axis=0)
        line = pronoun_line(x, y, "women", "men", family=2)
        return outcome([line.slope, line.height], [effect, 0.0])

    return Path(f"labour, pronouns, {jobs} occupations", draw)


def names(count: int) -> Path:
    """So many names of each race, all occupations; one slope is planted."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        jobs = len(odds("black"))
        away = odds("black") - odds("black").mean()
        shared = rng.normal(0, 0.3, jobs)

        def liked(slope: float) -> np.ndarray:
            own = rng.normal(-8, 1.5, (count, 1)) + rng.normal(slope, 0.1, (count, 1)) * away
            where = shared + rng.normal(0, 0.15, jobs)
            return np.asarray(own + where + rng.normal(0, 0.6, (count, jobs)))

        white = liked(0.0)
        first = np.arange(2 * count) < count
        found = [
            name_line(odds(race), np.concatenate([liked(effect * (race == "black")), white]),
                      first, race, "white", family=3).slope
            for race in RACES
        ]  # fmt: skip
        return outcome(found, [effect, 0.0, 0.0] if effect else [0.0] * 3)

    return Path(f"labour, {count} names of each race", draw)


PATHS = [pronouns(54), pronouns(20), names(10), names(24)]

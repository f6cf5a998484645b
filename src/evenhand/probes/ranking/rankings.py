"""Rankings as columns: one row per candidate shown, whoever ranked them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
UNKNOWN = frozenset({"", "unknown", "n/a", "not known", "not stated"})
"""Groups that say that the group is not known."""
SEXES = {
    "m": "men",
    "w": "women",
    "f": "women",
    "men": "men",
    "women": "women",
    "male": "men",
    "female": "women",
    "man": "men",
    "woman": "women",
}
RACES = {"a": "Asian", "b": "Black", "h": "Hispanic", "w": "White"}
"""One-letter codes of Bloomberg's audit."""


def coded(values: Sequence[str]) -> tuple[tuple[str, ...], Codes]:
    """Distinct values in their order, and the number of each row's."""
    known = {value: k for k, value in enumerate(dict.fromkeys(values))}
    return tuple(known), np.asarray([known[v] for v in values], np.int64)


@dataclass(frozen=True)
class Rankings:
    """Who was shown, where, and who came first.

    Attributes:
        stratum, run, group: of every candidate shown; runs are counted within a stratum.
        position: 1 for the candidate shown first.
        top: 1 for the one ranked first, or the probability of being it; 0 for the others.
        name: what the candidate was called, where it is known: names are then what was sampled.
        axes: values of each group by axis ("sex", "race"), where they are known.
    """

    stratum: Sequence[str]
    run: Sequence[str]
    group: Sequence[str]
    position: Codes
    top: Floats
    name: Sequence[str] | None = None
    axes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def take(self, keep: npt.NDArray[np.bool_]) -> Rankings:
        """Some of the rows."""
        at = np.flatnonzero(keep).tolist()
        stratum, run, group = ([c[i] for i in at] for c in (self.stratum, self.run, self.group))
        names = None if self.name is None else [self.name[i] for i in at]
        return Rankings(stratum, run, group, self.position[at], self.top[at], names, self.axes)

    def __len__(self) -> int:
        return len(self.top)

    @cached_property
    def runs(self) -> Codes:
        """The number of each row's run."""
        return coded([f"{s}\t{r}" for s, r in zip(self.stratum, self.run)])[1]

    @cached_property
    def share(self) -> Floats:
        """What falls to each candidate if groups do not matter: 1 / candidates of its run."""
        return 1.0 / np.bincount(self.runs)[self.runs]

    @cached_property
    def strata(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.stratum))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(sorted(set(self.group)))

    def of(self, stratum: str) -> Rankings:
        """The rows of one stratum."""
        return self.take(np.asarray([s == stratum for s in self.stratum]))

    def answered(self) -> Rankings:
        """Without runs in which nobody came first: they are counted, and are no rates."""
        won = np.bincount(self.runs, weights=self.top)
        return self.take(won[self.runs] > 0)


def axes_of(groups: Sequence[str]) -> dict[str, dict[str, str]]:
    """Sex and race of groups whose labels name both, by group; empty where they do not.

    >>> axes_of(["B_M", "W_W"])
    {'B_M': {'race': 'Black', 'sex': 'men'}, 'W_W': {'race': 'White', 'sex': 'women'}}
    >>> axes_of(["Asian women", "Black men"])["Asian women"]
    {'race': 'Asian', 'sex': 'women'}
    >>> axes_of(["young", "old"])
    {}
    """
    found = {}
    for group in groups:
        parts = [p for p in re.split(r"[\s_/|-]+", group) if p]
        sex = SEXES.get(parts[-1].lower()) if len(parts) > 1 else None
        if sex is None:
            return {}
        race = " ".join(parts[:-1])
        found[group] = {"race": RACES.get(race.lower(), race), "sex": sex}
    return found


def first_mentions(text: str, names: Sequence[str]) -> list[int]:
    """Candidates in the order in which a free answer first mentions them; others are not there.

    >>> first_mentions("1. Bo Li 2. ANN RAY", ("Ann Ray", "Cy", "Bo Li"))
    [2, 0]
    """
    said = text.lower()
    found = []
    for k, name in enumerate(names):
        match = re.search(rf"(?<!\w){re.escape(name.lower())}(?!\w)", said)
        if match:
            found.append((match.start(), -len(name), k))
    return [k for _, _, k in sorted(found)]


def check_winners(rankings: Rankings, ranks: Floats, source: str) -> None:
    """One winner at most in every run, and two candidates or more.

    Raises:
        DataError: which run is not so.
    """
    runs = rankings.runs
    sizes, wins = np.bincount(runs), np.bincount(runs, weights=ranks == 1)
    for wrong, what in ((wins > 1, "two candidates with rank 1"), (sizes < 2, "one candidate")):
        if wrong.any():
            row = int(np.flatnonzero(wrong[runs])[0])
            raise DataError(
                f"{source}, row {row + 1}: run {rankings.run[row]!r} of stratum "
                f"{rankings.stratum[row]!r} has {what} ({int(wrong.sum())} such runs). Accepted: "
                "one row per candidate shown, two or more a run, and one of them ranked 1."
            )

"""Can a design reach significance at all? Said before a run, with the smallest that can."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cache

from evenhand.stats.estimate import detectable_t

MANY = 1e6
NAMED = 4
HALF = 2.0
"""A design is too small if it sees only effects this many times those seen with very many units."""


@cache
def least_units(tests: int, rate: float = 0.05) -> int:
    """The fewest independent units with which one true effect among this many tests can be told.

    t has a degree of freedom less than there are units. With few of them the effect must be many
    standard errors large to survive the correction; "can be told" means: at most twice as many as
    with very many units.

    >>> least_units(1), least_units(12), least_units(600)
    (4, 5, 9)
    """
    share = rate / max(1, tests)
    enough = HALF * detectable_t(MANY, share)
    units = 2
    while detectable_t(units - 1, share) > enough:
        units += 1
    return units


def out_of_reach(least: float, tests: int, rate: float = 0.05) -> str:
    """A note where the smallest p of an exact test is too large for this many tests, or nothing.

    >>> out_of_reach(2 / 64, 12)[:49], out_of_reach(1e-4, 12)
    ('no q of a lone difference can be below 0.38: the ', '')
    """
    if least * tests <= rate:
        return ""
    return (
        f"no q of a lone difference can be below {min(1.0, least * tests):.2g}: the smallest p of "
        f"this test is {least:.2g}, and {tests:,} are corrected together"
    )


def too_few(units: int, what: str, tests: int, rate: float = 0.05) -> str:
    """A warning for people, or nothing where there are enough.

    >>> too_few(5, "prompts", 12), too_few(3, "prompts", 12)[:45]
    ('', 'too few prompts (3) for about 12 tests: a dif')
    """
    least = least_units(tests, rate)
    if units >= least:
        return ""
    share = rate / max(1, tests)
    large = [f"{detectable_t(max(1, n - 1), share):.0f}" for n in (units, least)]
    return (
        f"too few {what} ({units}) for about {tests:,} tests: a difference would have to be "
        f"{large[0]} standard errors large; with {least} or more, {large[1]}"
    )


def short(
    units: Iterable[tuple[str, Hashable]], what: str, tests: int, rate: float = 0.05
) -> tuple[str, ...]:
    """The warning for parts of a benchmark, given (part, unit) of every item; each unit once.

    >>> short([("age", 1), ("age", 1), ("race", 1), ("race", 2)], "writers", 1)[0][:46]
    'age (1), race (2): too few writers (1) for abo'
    """
    parts: dict[str, set[Hashable]] = {}
    for part, unit in units:
        parts.setdefault(part, set()).add(unit)
    few = {part: len(found) for part, found in parts.items() if too_few(len(found), what, tests)}
    if not few:
        return ()
    named = ", ".join(f"{part} ({n})" for part, n in list(few.items())[:NAMED])
    more = f" and {len(few) - NAMED} more" if len(few) > NAMED else ""
    return (f"{named}{more}: {too_few(min(few.values()), what, tests, rate)}",)


def short_sets(tests: Iterable[tuple[str, Iterable[int]]], rate: float = 0.05) -> tuple[str, ...]:
    """The warning for association tests, given the sizes of their four sets (x, y, a, b).

    >>> short_sets([("t", (8, 8, 5, 5)), ("u", (1, 8, 5, 5)), ("v", (2, 2, 2, 2))])[1]
    'v: 2 words in a set are too few: take 3'
    """
    listed = [(name, tuple(sizes)) for name, sizes in tests]
    # Two sets of n words leave 2 n - 2 degrees of freedom: as many as 2 n - 1 units.
    least = least_units(len(listed), rate) // 2 + 1
    out = []
    for name, sizes in listed:
        if min(sizes) < 2:
            out.append(f"{name}: a set has one word, so there will be no verdict")
        elif min(sizes) < least:
            out.append(f"{name}: {min(sizes)} words in a set are too few: take {least}")
    return tuple(out)

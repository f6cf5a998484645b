"""Fair models with the structure of real ones, one module per path that yields a verdict.

A module lists its `PATHS`. A path simulates the scores of a model that has effects of names,
templates, swaps, situations and words, but none of the group, and sends them through the code
that makes findings. With `effect` a difference of that size is planted in one test.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What one simulated run came to: one entry per test of the family.

    Attributes:
        p, q: before and after correction.
        low, high: 95 % intervals before selection.
        truth: the value each interval should hold.
        detectable: of the planted test (place `planted`).
    """

    p: Floats
    q: Floats
    low: Floats
    high: Floats
    truth: Floats
    detectable: float
    planted: int = 0


@dataclass(frozen=True)
class Path:
    """A simulator of one path: `draw(rng, effect)` gives one run."""

    name: str
    draw: Callable[[np.random.Generator, float], Outcome]
    note: str = ""


def outcome(
    found: Sequence[object], truth: Sequence[float] | Floats, q: Floats | None = None,
    planted: int = 0,
) -> Outcome:  # fmt: skip
    """An outcome from estimates or findings (anything with p, low, high, detectable)."""
    from evenhand.stats.multiple import benjamini_hochberg

    p, low, high = (
        np.asarray([getattr(e, name) for e in found], float) for name in ("p", "low", "high")
    )
    corrected = benjamini_hochberg(p) if q is None else q
    seen = float(getattr(found[planted], "detectable"))  # noqa: B009 - any object with the field
    return Outcome(p, corrected, low, high, np.asarray(truth, float), seen, planted)


def paths() -> list[Path]:
    """Every path of every module here."""
    found: list[Path] = []
    for module in pkgutil.iter_modules(__path__):
        found += importlib.import_module(f"{__name__}.{module.name}").PATHS
    return found

"""Fair models with the structure of real ones, one module per path that yields a verdict.

A module lists its `PATHS`. A path simulates the scores of a model that has effects of names,
templates, swaps, situations and words, but none of the group, and sends them through the code
that makes findings. With `effect` a difference of that size is planted in one test. A path's name
begins with the name of its probe. `COVERS` are the modules of evenhand whose corrected p values a
module's paths go through; a test asks that no such module and no probe is left out.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """What one simulated run came to: one entry per test of the family.

    Attributes:
        p, q: before and after correction; NaN where there was no test.
        low, high: 95 % intervals.
        truth: the value each interval should hold; NaN where that is not known.
        detectable: of the planted test (place `planted`).
        found: the estimates or findings themselves.
    """

    p: Floats
    q: Floats
    low: Floats
    high: Floats
    truth: Floats
    detectable: float
    planted: int = 0
    found: Sequence[Any] = ()


@dataclass(frozen=True)
class Path:
    """A simulator of one path: `draw(rng, effect)` gives one run."""

    name: str
    draw: Callable[[np.random.Generator, float], Outcome]


def outcome(
    found: Sequence[Any], truth: Sequence[float] | Floats, q: Floats | None = None,
    planted: int = 0,
) -> Outcome:  # fmt: skip
    """An outcome from estimates or findings (anything with p, low, high, detectable)."""
    from evenhand.stats.multiple import benjamini_hochberg

    p, low, high = (
        np.asarray([getattr(e, name) for e in found], float) for name in ("p", "low", "high")
    )
    corrected = benjamini_hochberg(p) if q is None else q
    seen = float(found[planted].detectable)
    return Outcome(p, corrected, low, high, np.asarray(truth, float), seen, planted, found)


def smooth(x: Floats, y: Floats, start: float = 0.0) -> Floats:
    """Simulated means y of x without their noise: a cubic that begins at `start`, never falling."""
    powers = np.stack([x, x**2, x**3], axis=1)
    fitted = powers @ np.linalg.lstsq(powers, y - start, rcond=None)[0]
    return np.asarray(np.maximum.accumulate(start + fitted), np.float64)


def modules() -> list[Any]:
    """The modules here."""
    return [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]


def paths() -> list[Path]:
    """Every path of every module here."""
    return [path for module in modules() for path in module.PATHS]


def covered() -> set[str]:
    """Modules of evenhand whose corrected p values some path goes through."""
    return {name for module in modules() for name in module.COVERS}

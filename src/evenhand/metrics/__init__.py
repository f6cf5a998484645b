"""The papers' formulas as functions of numbers, each with its equation, range and direction.

    from evenhand.metrics import weat, rnsb, success_rate, unqover, divergence

    weat(x, y, a, b).effect_size
    unqover(scores, first, second, attribute).mu
    divergence(log_a, log_b).js

Every function gives one shape of result, whatever it is given: an array, a number, or a frozen
dataclass whose fields have names. The modules hold them by paper (`unqover`, `sodapop`,
`association`, `divergence`, ...), with what belongs to them; names that are told here are loaded
when first used. `unqover` and `divergence` are modules and can be called as functions.
"""

from __future__ import annotations

import importlib
from typing import Any

_OF = {
    "association": ("associations", "effect_size", "rnsb", "weat"),
    "bbq": ("bias_ambiguous", "bias_disambiguated"),
    "coreference": ("document_counts",),
    "crows_pairs": ("stereotype_score",),
    "divergence": ("jensen_shannon", "kl_divergence", "squared_hellinger"),
    "embedding": ("ect", "mac", "ripa", "rnd"),
    "gaps": ("confusion", "group_gaps"),
    "honest": ("hurtful",),
    "meta": ("effect_variance", "random_effects"),
    "sodapop": ("contrast", "log_odds", "success_rate"),
    "stereoset": ("icat",),
    "unqover": (
        "attribute_error",
        "comparative",
        "consistency",
        "intensity",
        "positional_error",
        "span_score",
        "term_bias",
    ),
}
_HOMES = {name: module for module, names in _OF.items() for name in names}

__all__ = [*_OF, *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _OF:
        return importlib.import_module(f"evenhand.metrics.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(f"evenhand.metrics.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'evenhand.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

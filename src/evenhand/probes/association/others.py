"""RND, MAC, ECT and RIPA of an association test, beside WEAT and RNSB."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.metrics import embedding
from evenhand.models.vectors.files import Found, VectorTable
from evenhand.words.lexicons import WordSets

OTHERS = ("rnd", "mac", "ect", "ripa")
IDEAL = {"rnd": 0.0, "mac": 1.0, "ect": 1.0, "ripa": 0.0}


def others(
    vectors: VectorTable, test: WordSets, found: dict[str, Found], names: Sequence[str]
) -> dict[str, Any]:
    """The metrics named, from the words found.

    RND, ECT and RIPA compare two groups over one list of words: the groups are the side of the
    test that holds social groups (the targets when that is not known), and both lists of the other
    side are measured. MAC is that of all target words with both attribute sets.

    Returns:
        `groups` (two labels), `ideal`, and by metric: rnd, ect, ripa: {label of the list: value}
        (rnd below 0, ripa above 0: nearer to the first group); mac: a number. NaN: not defined.
    """
    sides = (("a", "b"), ("x", "y")) if test.social == "attributes" else (("x", "y"), ("a", "b"))
    groups, lists = sides
    first, second = (found[key].rows for key in groups)
    out: dict[str, Any] = {
        "groups": [getattr(test, f"{key}_label") for key in groups],
        "ideal": {name: IDEAL[name] for name in names},
    }
    pairs = _pairs(vectors, [getattr(test, key) for key in groups]) if "ripa" in names else None
    for name in names:
        if name == "mac":
            targets = np.concatenate([found["x"].rows, found["y"].rows])
            out[name] = embedding.mac(targets, [found["a"].rows, found["b"].rows]).value
            continue
        out[name] = {}
        for key in lists:
            label, rows = getattr(test, f"{key}_label"), found[key].rows
            if name == "rnd":
                out[name][label] = embedding.rnd(first, second, rows).value
            elif name == "ect":
                out[name][label] = embedding.ect(first, second, rows)
            else:
                out[name][label] = _ripa(pairs, rows)
    return out


def _ripa(pairs: tuple[Any, Any] | None, rows: Any) -> float:
    if pairs is None:
        return math.nan
    try:
        return embedding.ripa(*pairs, rows).value
    except DataError:
        return math.nan


def _pairs(vectors: VectorTable, lists: Sequence[Sequence[str]]) -> tuple[Any, Any] | None:
    """Vectors of the pairs of two lists of equal length; pairs with a missing word are left out."""
    if len(lists[0]) != len(lists[1]):
        return None
    places = [vectors.places(words) for words in lists]
    both = [(one, two) for one, two in zip(*places, strict=True) if one and two]
    if not both:
        return None
    first, second = (
        np.stack([vectors.matrix[list(pair[side])].mean(axis=0) for pair in both])
        for side in (0, 1)
    )
    return first, second

"""What else tells two groups of names apart: token length, frequency, shared names.

Any of these can move a model's scores without social meaning, so they are shown beside a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import two_sample


def lint(
    groups: Mapping[str, Sequence[str]],
    *,
    pieces: Callable[[Sequence[str]], Sequence[int]] | None = None,
    counts: Mapping[str, float] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Per group: size, letters, pieces, frequency. Per pair: how far apart, with p and q.

    Args:
        pieces: how many pieces a tokenizer cuts each name into.
        counts: how many people bear a name; log10 is compared, unknown names are left out.

    >>> made = lint({"a": ["Tia", "Bo"], "b": ["Bo", "Alexander"]})
    >>> made["overlaps"]
    [{'group_a': 'a', 'group_b': 'b', 'names': ['Bo']}]
    """
    features = {name: {"letters": float(len(name))} for of in groups.values() for name in of}
    everyone = list(features)
    if pieces is not None:
        for name, size in zip(everyone, pieces(everyone)):
            features[name]["pieces"] = float(size)
    for name in everyone:
        if counts and counts.get(name, 0) > 0:
            features[name]["log10_frequency"] = float(np.log10(counts[name]))
    rows = []
    for group, names in groups.items():
        row: dict[str, Any] = {"group": group, "names": len(names)}
        for feature in ("letters", "pieces", "log10_frequency"):
            values = _values(names, features, feature)
            row[feature] = float(np.mean(values)) if values else float("nan")
        rows.append(row)
    return {
        "groups": rows,
        "confounds": _confounds(groups, features, seed),
        "overlaps": _overlaps(groups),
        "repeats": {g: _repeated(n) for g, n in groups.items() if _repeated(n)},
    }


def _values(
    names: Sequence[str], features: Mapping[str, Mapping[str, float]], feature: str
) -> list[float]:
    return [features[n][feature] for n in names if feature in features[n]]


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({n for n in names if list(names).count(n) > 1})


def _confounds(
    groups: Mapping[str, Sequence[str]], features: Mapping[str, Mapping[str, float]], seed: int
) -> list[dict[str, Any]]:
    rows = []
    for (a, first), (b, second) in itertools.combinations(groups.items(), 2):
        for feature in ("letters", "pieces", "log10_frequency"):
            x, y = _values(first, features, feature), _values(second, features, feature)
            if x and y:
                test = two_sample(x, y, seed=seed, statistic="mean-difference")
                rows.append(
                    {
                        "group_a": a,
                        "group_b": b,
                        "feature": feature,
                        "difference": test.statistic,
                        "p": test.p_two_sided,
                    }
                )
    q = benjamini_hochberg([row["p"] for row in rows])
    made = [{**row, "q": float(value)} for row, value in zip(rows, q)]
    return sorted(made, key=lambda row: (row["q"], row["p"]))


def _overlaps(groups: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    return [
        {"group_a": a, "group_b": b, "names": sorted(set(first) & set(second))}
        for (a, first), (b, second) in itertools.combinations(groups.items(), 2)
        if set(first) & set(second)
    ]

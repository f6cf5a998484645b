"""How much names matter by themselves: the variance of what a name adds, whoever bears it.

Leads of a run add up to nothing, so with C for "less the mean of the run", G for groups and Z for
names (which are nested in groups),

    C y = C G b + C Z u + C e,     u ~ (0, v I),   e ~ (0, w I)

and v follows from two moments: the sum of squares, and that of names' sums over their numbers. All
matrices are as large as the number of names, however many runs there are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.probes.ranking.rankings import Codes, Rankings, coded

Floats = npt.NDArray[np.float64]
MOST = 1_500
"""Names that the variance is estimated from, at most."""
REPEATED = 1.25
"""Appearances of a name, on average, from which on names can be told from runs."""


@dataclass(frozen=True)
class Liked:
    """Names as numbers, and what varies.

    Attributes:
        codes: the name of every row; None where they are unknown or come once each.
        variance: of what a name adds to its own lead (v above), at least 0.
        rest: variance of a row beside that (w above).
        noise: half the variance of the estimate of v.
    """

    codes: Codes | None = None
    variance: float = 0.0
    rest: float = 0.0
    noise: float = 0.0

    @classmethod
    def of(cls, rows: Rankings, lead: Floats) -> Liked:
        """From leads (top / share - 1) of all rows.

        >>> groups, names = ["a", "b"] * 40, [f"{k % 4}" for k in range(80)]
        >>> rows = Rankings(["j"] * 80, [str(k // 2) for k in range(80)], groups,
        ...                 np.tile([1, 2], 40), np.zeros(80), names)
        >>> Liked.of(rows, np.tile([1.0, -1, -1, 1], 20)).rest      # names decide it all
        0.0
        """
        names, codes = coded(_labels(rows))
        known = rows.name is not None and len(codes) >= REPEATED * len(names)
        if not known:
            names, codes = coded(list(rows.group))
        kept = np.flatnonzero(codes < MOST)
        groups = coded([name.split("\t")[0] for name in names[:MOST]])[1]
        runs = np.unique(rows.runs[kept], return_inverse=True)[1]
        found = _moments(lead[kept], codes[kept], runs, groups)
        return cls(codes, *found) if known else cls(None, 0.0, found[1])


def _labels(rows: Rankings) -> list[str]:
    named = rows.group if rows.name is None else rows.name
    return [f"{g}\t{n}" for g, n in zip(rows.group, named)]


def centred(values: Floats, runs: Codes) -> Floats:
    """Less the mean of the run."""
    return np.asarray(values - (np.bincount(runs, weights=values) / np.bincount(runs))[runs])


def _moments(lead: Floats, name: Codes, run: Codes, group: Codes) -> tuple[float, float, float]:
    """v, w, and half the variance of the estimate of v (normal)."""
    count, size = np.bincount(name).astype(float), np.bincount(run).astype(float)
    met = np.zeros((len(size), len(count)))
    np.add.at(met, (run, name), 1.0)
    inner = np.diag(count) - (met / size[:, None]).T @ met
    nested = np.eye(group.max() + 1)[group]
    inside = nested.T @ inner @ nested
    back = np.linalg.pinv(inside)
    s = inner - inner @ nested @ back @ nested.T @ inner
    y = centred(lead, run)
    sums = np.bincount(name, weights=y)
    means = back @ (nested.T @ sums)
    squares = float(y @ y - (nested.T @ sums) @ means)
    sums = sums - inner @ nested @ means
    free = len(lead) - len(size) - np.linalg.matrix_rank(inside)
    t = s / count[:, None]
    ts, tss = np.trace(t), float((t * s.T).sum())
    known = np.asarray([[np.trace(s), free], [tss, ts]])
    if abs(np.linalg.det(known)) < 1e-9 * abs(known).max() ** 2:
        return 0.0, max(0.0, squares) / max(1, free), 0.0
    row = np.linalg.inv(known)[0]
    rest = np.asarray([squares, float((sums**2 / count).sum())])
    v, w = np.maximum(np.linalg.inv(known) @ rest, 0.0)
    tt, t_s = t @ t, t @ s
    one = v * v * (s * s.T).sum() + 2 * v * w * np.trace(s) + w * w * free
    both = v * v * (t_s * s.T).sum() + 2 * v * w * tss + w * w * ts
    two = v * v * (t_s * t_s.T).sum() + 2 * v * w * (tt * s.T).sum() + w * w * (t * t.T).sum()
    return float(v), float(w), float(row @ np.asarray([[one, both], [both, two]]) @ row)

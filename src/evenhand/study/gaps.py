"""Group gaps of any yes/no classifier from a table of its predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, unknown
from evenhand.metrics.gaps import RATES, confusion, group_gaps, rates
from evenhand.strict import plain


def measure(
    path: str | Path, first: str, second: str, *, resamples: int = 2_000, seed: int = 0
) -> dict[str, Any]:
    """Precision, recall, F1, FPR and FNR of two groups and their gaps, with intervals and p.

    Args:
        path: CSV, JSON lines or Parquet with `label` and `predicted` (0/1) and `group`.
        first: the gap is rate(first) - rate(second).
        second: the other group.
        resamples: of intervals and p.
        seed: of both.
    """
    table = read_table(path, text=["group"])
    table.require(["label", "predicted", "group"])
    groups = table.labels("group")
    for name in (first, second):
        if name not in groups.values:
            raise DataError(unknown("group", name, groups.values, where=str(path)))
    truth, said = table.flags("label"), table.flags("predicted")
    made = group_gaps(truth, said, list(groups), first, second, resamples=resamples, seed=seed)
    whole = dict(zip(RATES, map(float, rates(confusion(truth, said)))))
    settings = {"resamples": resamples, "seed": seed}
    result = {"measure": "gaps", "n": len(truth), "all": whole, **made, "settings": settings}
    return dict(plain(result))

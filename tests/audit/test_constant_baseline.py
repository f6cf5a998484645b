"""A baseline whose answers never vary has no test of its own, but its change can be tested."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

import made_runs
from evenhand.audit.comparison.paired import paired
from evenhand.probes.base import Probe
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import estimate

NAN = float("nan")


class Differences(Probe):
    """A probe whose one estimate is the mean of its items."""

    def estimates(self, items: pa.Table) -> Any:
        values = items.column("score").to_numpy()
        error = float(values.std(ddof=1) / len(values) ** 0.5)
        return {"gap": estimate(float(values.mean()), error, len(values) - 1, units=len(values))}


def test_the_paired_number_counts_where_the_baseline_has_none(tmp_path: Path) -> None:
    new = Finding("a/gap", "a", "m", 0.5, "", p=0.01, n=4, model="tiny-model", detected=True)
    old = replace(new, value=0.3, p=NAN, detected=None, reason="do not vary")
    tables = pa.table({"score": [0.3] * 4}), pa.table({"score": [0.4, 0.5, 0.6, 0.5]})
    for name, found in (("old", old), ("new", new)):
        made_runs.write(tmp_path / name, made_runs.facts(), [found], {})
    runs = [made_runs.Run.open(tmp_path / name) for name in ("old", "new")]
    (test,) = paired(runs[0], runs[1], "a", Differences(), tables)
    assert round(test.change.value, 3) == 0.2
    assert test.change.p < 0.05
    other = [replace(f, p=NAN, detected=None) for f in (old, new)]
    for name, found in zip(("o2", "n2"), other):
        made_runs.write(tmp_path / name, made_runs.facts(), [found], {})
    runs = [made_runs.Run.open(tmp_path / name) for name in ("o2", "n2")]
    assert not list(paired(runs[0], runs[1], "a", Differences(), tables))

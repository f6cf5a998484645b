"""Gates decide wrongly no more often than they say: the benchmark in small, and trained models."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gated_models import Trained
from benchmarks.gates import CASES, simulated

import evenhand as eh
from in_process import evenhand

REPETITIONS = 10


def test_outcomes_are_wrong_no_more_often_than_stated() -> None:
    """Of ten repetitions a case: five errors of nominal 5 % happen in 1 of 10,000 such tests."""
    rows = simulated(REPETITIONS)
    assert len(rows) == len(CASES)
    for row in rows:
        for error, share in row["errors"].items():
            assert share * REPETITIONS < 5, (row["case"], error)
    wrong = [share for row in rows for share in row["errors"].values()]
    assert sum(wrong) / len(wrong) <= 0.06  # all errors together, some of them on the boundary
    shares = {row["case"]: row["shares"] for row in rows}
    assert shares["baseline, worse by twice the margin"].get("failed", 0) > 0.7
    assert shares["until decided, one three times it"].get("failed", 0) > 0.7
    planned = [share for case, share in shares.items() if case.startswith("planned")]
    assert len(planned) == 2
    assert all(share.get("detected", 0) > 0.4 for share in planned)


def test_a_model_fine_tuned_to_be_worse_is_stopped_and_a_noisier_one_is_not(tmp_path: Path) -> None:
    trained = Trained(0)
    base = trained.audited(trained.base, tmp_path, "base")
    worse = trained.audited(trained.worse(), tmp_path, "worse")
    noisier = trained.audited(trained.noisier(), tmp_path, "noisier")
    assert eh.gate(noisier, baseline=base).outcome == "passed"
    stopped = evenhand("gate", str(worse.folder), "--baseline", str(base.folder), cwd=tmp_path)
    assert stopped.returncode == 1
    assert "became worse" in stopped.stdout
    page = tmp_path / "page.html"
    done = evenhand(
        "compare", str(base.folder), str(worse.folder), "--html", str(page), cwd=tmp_path
    )
    assert done.returncode == 0
    change = eh.compare(base, worse).changes[0]
    nurse = next(d for d in change.of("worse") if d.finding.endswith("/nurse"))
    assert nurse.change == pytest.approx(0.3, abs=0.05)
    text = page.read_text()
    assert f"Worse for {nurse.whom}" in text
    assert change.headline in text

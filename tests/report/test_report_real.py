"""A report of a real run: packaged weights, real probes, a real browser."""

from __future__ import annotations

import json
import random
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from browsing import open_report
from evenhand.audit.auditing import audit
from evenhand.audit.suites import parse_suite
from evenhand.models.loading.fetch import PACKAGES
from evenhand.words.lexicons.files import weat

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
    assert points == [2, 3]  # two shifts between women and men, three word tests
    rows = json.loads((run.folder / "findings.json").read_text())["findings"]
    shown = seen.page.eval_on_selector_all(
        "[data-finding]",
        "all => all.map(p => [p.dataset.finding, "
        "[...p.querySelectorAll('data')].map(d => Number(d.value))])",
    )
    for row in rows:
        values = [v for place, numbers in shown if place == row["id"] for v in numbers]
        stated = {row[k] for k in ("value", "low", "high", "q")} - {None}  # context has no test
        assert stated <= set(values), row["id"]
    assert seen.page.locator(".example").first.is_visible() is False


@pytest.mark.browser
def test_a_real_small_study_ends_in_a_report_with_its_numbers_and_charts(
    browser: Any, tmp_path: Path
) -> None:
    """From text to trained and changed vectors to the reliability of their metrics."""
    pytest.importorskip("gensim", reason="training word vectors needs the train extra")
    from evenhand.study.recipe import parse_recipe
    from evenhand.study.running import run_study

    write_text(tmp_path / "text.txt")
    values = {
        "corpus": {"files": ["{data}/text.txt"], "rare": 1},
        "training": {"dimensions": 6, "epochs": 1, "min_count": 1, "replicates": 2},
        "widening": {"neighbours": 0},
        "balancing": {"shares": [0.0]},
        "attract_repel": {
            "regularisations": [0.01], "attract_margins": [1.0], "repel_margins": [0.0],
            "directions": ["reduce"], "batch": 4, "epochs": 1,
        },
        "correlation": {"resamples": 99},
    }  # fmt: skip
    run = run_study(parse_recipe(values, "here", "tiny"), out=tmp_path / "s", data=tmp_path, jobs=0)
    seen = open_report(browser, run.report)
    assert seen.errors == []
    assert seen.requests == [run.report.resolve().as_uri()]
    known = [r["reliability"] for r in run.table("study", "reliability").to_pylist()]
    points = seen.page.locator(".plot").first.locator(".mark-symbol.role-mark path").count()
    assert points == len([v for v in known if v is not None and isfinite(v)]) > 0
    data = seen.page.locator("[data-finding] data")
    shown = set(data.evaluate_all("all => all.map(d => Number(d.value))"))
    findings = json.loads((run.folder / "findings.json").read_text())["findings"]
    assert {f["value"] for f in findings if f["value"] is not None} <= shown


def write_text(path: Path) -> None:
    """Sentences in which one set of jobs goes with he and the other with she, mostly."""
    rng = random.Random(0)
    sets = weat("kato_winobias")
    rows = []
    for _ in range(600):
        side = rng.random() < 0.5
        word = rng.choice(sets.b if side == (rng.random() < 0.8) else sets.a)
        rows.append(f"the {rng.choice((sets.x, sets.y)[side])} said that {word} would go now .")
    path.write_text("\n".join(rows) + "\n")

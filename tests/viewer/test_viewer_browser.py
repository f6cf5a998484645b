"""The viewer in a real browser: drilling down, charts, live progress, accessibility."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import made_runs
from browsing import drawn, violations, visit
from evenhand.runs.record import RunWriter
from evenhand.viewer import Server

pytestmark = pytest.mark.browser

PAGES = {
    "list": "",
    "run": "run/first",
    "charts": "run/first/charts",
    "finding": "run/first/finding?id=underspecified/gamma/nurse",
    "items": "run/first/items/underspecified?attribute=nurse",
    "comparison": "compare?run=first&run=second",
    "missing": "run/missing",
}


@pytest.mark.parametrize("page", list(PAGES))
def test_pages_load_without_errors_and_axe_finds_nothing_serious(
    browser: Any, address: str, axe: str, page: str
) -> None:
    dark = page in ("run", "items")
    seen = visit(browser, address + PAGES[page], width=390 if dark else 1280, dark=dark)
    if page in ("charts", "comparison"):
        drawn(seen.page)
    wrong = [e for e in seen.errors if "404 (Not Found)" not in e or page != "missing"]
    assert wrong == []
    assert seen.outside == []
    assert violations(seen.page, axe) == []
    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_reader_drills_from_the_list_to_the_items(browser: Any, address: str) -> None:
    page = visit(browser, address).page
    page.get_by_role("link", name="first").click()
    assert not page.get_by_label("Verdict").is_visible()
    page.get_by_text("Search and filter").click()
    page.get_by_label("Verdict").select_option("detected")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="nurse (female / male)").click()
    assert not page.locator(".example").first.is_visible()
    page.get_by_role("link", name="Show the items and scores behind it").click()
    assert page.locator("table.items tbody tr").count() == 3
    page.get_by_label("template").fill("trip")
    page.get_by_role("button", name="Show").click()
    cells = page.locator("table.items tbody tr").first.inner_text()
    assert "trip" in cells
    assert "1 row found." in page.locator("#found").inner_text()


def test_a_phone_shows_verdicts_and_the_page_itself_scrolls(browser: Any, address: str) -> None:
    page = visit(browser, address + "run/first", width=390).page
    row = page.locator("table.findings tbody tr").first
    assert row.get_by_text("difference detected").is_visible()
    assert "passed over" in row.inner_text()
    assert not row.locator(".extra").first.is_visible()
    inner = "[...document.querySelectorAll('main *')].filter(e => e.scrollHeight > e.clientHeight"
    assert page.evaluate(f"{inner} + 2 && getComputedStyle(e).overflowY === 'auto').length") == 0
    page.get_by_role("link", name="About").click()
    first = page.locator("table.findings tbody tr").first.inner_text()
    assert "nurse" not in first


def test_two_runs_are_ticked_and_compared(browser: Any, address: str) -> None:
    page = visit(browser, address).page
    page.get_by_label("Compare first").check()
    page.get_by_label("Compare second").check()
    page.get_by_role("button", name="compare them").click()
    drawn(page)
    points = page.locator("#chart-0 .mark-symbol.role-mark path").count()
    assert points == 2 * 2  # two findings with values, two runs


def test_charts_are_drawn_under_the_strict_policy(browser: Any, address: str) -> None:
    seen = visit(browser, address + "run/first/charts")
    drawn(seen.page)
    assert seen.page.locator("#chart-0 .mark-symbol.role-mark path").count() == 2
    assert seen.page.locator("#chart-2 .mark-rect.role-mark path").count() == 4
    assert seen.errors == []


def test_hostile_runs_do_nothing_in_the_browser(browser: Any, address: str) -> None:
    for path in ("", "run/hostile", "run/hostile/items/underspecified", "run/hostile/charts"):
        seen = visit(browser, address + path)
        seen.page.wait_for_timeout(200)
        assert seen.page.evaluate("window.owned") is None
        assert seen.errors == []
        assert seen.outside == []


def test_the_report_opens_in_its_sandbox(browser: Any, address: str) -> None:
    seen = visit(browser, address + "run/first/report")
    drawn(seen.page)
    assert seen.errors == []
    assert seen.page.evaluate("window.origin") == "null"


SUITE = """
name = "watched"
[[probe]]
name = "underspecified"
pairs = 400
templates = 3
attributes = ["nurse", "doctor", "hunter"]
resamples = 60
"""


def test_a_running_audit_is_watched_live_until_its_findings(
    browser: Any, tiny: Any, tmp_path: Path
) -> None:
    (tmp_path / "watched.toml").write_text(SUITE)
    folder = tmp_path / "runs" / "now"
    folder.parent.mkdir()
    command = [sys.executable, "-m", "evenhand", "audit", tiny("causal"), "--out", str(folder)]
    command += ["--suite", str(tmp_path / "watched.toml")]
    calm = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    visit(browser, "about:blank")  # the first page of a browser takes its time
    with (
        Server(folder.parent) as server,
        subprocess.Popen(
            command, env=calm, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as audit,
    ):
        stop = time.monotonic() + 300  # a busy machine takes its time
        while not (folder / "run.json").is_file() and time.monotonic() < stop:
            time.sleep(0.05)
        page = visit(browser, server.address + "run/now").page
        seen = set()
        while time.monotonic() < stop and page.locator("#progress").count():
            try:
                seen.add(page.locator("[data-show=inputs]").inner_text(timeout=500))
            except Exception:  # the page turns into the findings between two looks
                break
            page.wait_for_timeout(200)
        page.get_by_role("heading", name="Findings").wait_for(timeout=120_000)
        assert audit.wait(120) == 0
    assert len(seen) >= 2, seen
    assert page.locator("table.findings [data-finding]").count() == 11


def test_axe_finds_nothing_serious_in_the_page_of_a_run_under_way(
    browser: Any, axe: str, tmp_path: Path
) -> None:
    writer = RunWriter(tmp_path / "now")
    known = made_runs.facts()
    writer.facts({**known, "status": "running", "probes": {}})
    with writer.held(), Server(tmp_path) as server:
        seen = visit(browser, server.address + "run/now", width=390, dark=True)
        assert seen.page.locator("#progress").count() == 1
        assert seen.errors == []
        assert violations(seen.page, axe) == []

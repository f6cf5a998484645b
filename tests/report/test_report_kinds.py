"""Pages of studies, mitigations, comparisons and every probe, in a real browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import made_kinds
from browsing import Visit, open_report, violations
from evenhand.audit.comparison import side_by_side
from evenhand.report.build import render
from evenhand.report.comparison_page import comparison_page
from evenhand.runs.record import Run

pytestmark = pytest.mark.browser
WIDTHS = pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
COUNT = """plots => plots.map(p => ({
    drawn: p.dataset.drawn,
    points: p.querySelectorAll('.mark-symbol.role-mark path').length,
    boxes: p.querySelectorAll('.mark-rect.role-mark path').length,
    lines: p.querySelectorAll('.mark-line.role-mark path').length,
    texts: p.querySelectorAll('.mark-text.role-mark text').length,
}))"""


@pytest.fixture(scope="session")
def page_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The page of a kind, made once."""
    folder, made = Path(tmp_path_factory.mktemp("kinds")), dict[str, Path]()

    def make(kind: str) -> Path:
        if kind not in made:
            made[kind] = folder / f"{kind}.html"
            made[kind].write_text(content(kind))
        return made[kind]

    def content(kind: str) -> str:
        if kind != "comparison":
            builder: Callable[[Path], Run] = getattr(made_kinds, kind)
            return render(builder(folder / kind))
        runs = [made_kinds.before(folder / "before"), made_kinds.after(folder / "after")]
        return comparison_page(side_by_side(runs))

    return make


def clean(seen: Visit, page: Path, width: int = 1280) -> Any:
    """A page without errors, requests or a sideways scroll bar."""
    assert seen.errors == []
    assert seen.requests == [page.resolve().as_uri()]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    return seen.page


@pytest.mark.parametrize("kind", made_kinds.MARKS)
def test_the_page_of_every_probe_draws_its_charts(browser: Any, page_of: Any, kind: str) -> None:
    path = page_of(kind)
    page = clean(open_report(browser, path), path)
    for place, (probe, wanted) in enumerate(made_kinds.MARKS[kind].items(), start=1):
        drawn = page.eval_on_selector_all(f"#probe-{place} .plot", COUNT)
        shape = "boxes" if probe in ("context_accuracy", "generation") else "points"
        assert [d[shape] for d in drawn] == wanted, probe
        assert {d["drawn"] for d in drawn} == {"yes"}


@WIDTHS
def test_a_study_draws_its_matrices_reliability_and_points(
    browser: Any, page_of: Any, width: int, dark: bool
) -> None:
    path = page_of("study")
    page = clean(open_report(browser, path, width=width, dark=dark), path, width)
    whole, family, reliability, *scatters = page.eval_on_selector_all(".plot", COUNT)
    assert (whole["boxes"], whole["texts"]) == (4, 4)  # numbers fit into two columns
    assert family["boxes"] == 4
    assert reliability["points"] == 4
    assert [s["points"] for s in scatters] == [4, 4, 4, 4]


def test_a_study_answers_its_own_questions_with_its_findings_numbers(
    browser: Any, page_of: Any
) -> None:
    path = page_of("study")
    page = open_report(browser, path).page
    answers = page.locator(".answers").inner_text()
    assert "Does a metric of the vectors predict behaviour?" in answers
    assert "In 2 of 4 pairs a relation was detected; in 2 of these" in answers
    assert "2 of 2 coreference" in answers
    assert "0 of 2 hate speech" in answers
    assert "METRIC0 +0.900; METRIC1 +0.800" in answers
    assert equal_numbers(page, path.parent / "study") == []


def test_a_mitigation_shows_before_after_the_trade_off_and_what_was_chosen(
    browser: Any, page_of: Any
) -> None:
    path = page_of("mitigation")
    page = clean(open_report(browser, path), path)
    slope, frontier = page.eval_on_selector_all(".plot", COUNT)
    assert (slope["lines"], slope["points"]) == (2, 4)
    assert frontier["points"] == 5 + 2  # the settings, and rings around two of them
    assert frontier["texts"] == 2
    named = page.locator("#chart-1 .mark-text.role-mark text").all_text_contents()
    assert named == ["unmitigated", "chosen"]
    answers = page.locator(".answers").inner_text()
    assert "Yes, by 80% between gender contexts (a-inlp, 4 rounds, alpha 1.0)." in answers
    assert "Perplexity 50.000 before, 50.800 after (+1.6%)." in answers
    assert "95 % interval of the fall: 50% to 90%, over 30 held-out pairs" in answers
    assert "evenhand mitigate tiny-model --method a-inlp --axis gender" in page.inner_text("#again")
    assert equal_numbers(page, path.parent / "mitigation") == []


def test_a_comparison_says_what_went_what_came_and_draws_both(browser: Any, page_of: Any) -> None:
    path = page_of("comparison")
    page = clean(open_report(browser, path), path)
    answers = page.locator(".answers").inner_text()
    assert "Better or worse?" in answers
    assert " findings, " in answers  # with a verdict each
    assert "Appeared: hunter" in answers
    assert "Gone: nurse" in answers
    changes, slope, sizes, *models = page.eval_on_selector_all(".plot", COUNT)
    assert changes["points"] == 2  # every change, in margins
    assert (slope["lines"], slope["points"]) == (2, 4)
    assert sizes["points"] >= 1
    assert [m["points"] for m in models[:4]] == [2] * 4  # one dot a model: mu, eta, delta, epsilon
    assert not page.locator("table").first.is_visible()


@pytest.mark.parametrize(
    ("kind", "width", "dark"),
    [("study", 390, True), ("mitigation", 1280, False), ("comparison", 390, False)],
)
def test_axe_finds_no_serious_violation_in_these_pages(
    browser: Any, page_of: Any, axe: str, kind: str, width: int, dark: bool
) -> None:
    page = open_report(browser, page_of(kind), width=width, dark=dark).page
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert violations(page, axe) == []


def equal_numbers(page: Any, folder: Path) -> list[str]:
    """Findings whose value, interval or q the page does not hold as in findings.json."""
    rows = json.loads((folder / "findings.json").read_text())["findings"]
    shown = page.eval_on_selector_all(
        "[data-finding]",
        "all => all.map(p => [p.dataset.finding, "
        "[...p.querySelectorAll('data')].map(d => Number(d.value))])",
    )
    wrong = []
    for row in rows:
        values = {v for place, numbers in shown if place == row["id"] for v in numbers}
        known = {row[k] for k in ("value", "low", "high", "q", "n") if row[k] is not None}
        if not known <= values:
            wrong.append(row["id"])
    return wrong

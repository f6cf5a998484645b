"""The report in a real browser: offline, drawn, equal to findings.json, readable by all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from browsing import open_report, violations
from evenhand.runs.record import Run
from evenhand.runs.wording import chance, number

pytestmark = pytest.mark.browser
WIDTHS = [(1280, False), (390, True)]


@pytest.mark.parametrize(("width", "dark"), WIDTHS)
def test_the_report_opens_from_disk_without_errors_or_requests(
    browser: Any, ordinary: Run, width: int, dark: bool
) -> None:
    seen = open_report(browser, ordinary.report, width=width, dark=dark)
    assert seen.errors == []
    assert seen.requests == [ordinary.report.resolve().as_uri()]
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_chart_is_drawn_with_one_mark_per_row(browser: Any, ordinary: Run) -> None:
    page = open_report(browser, ordinary.report).page
    drawn = page.eval_on_selector_all(
        ".plot",
        """plots => plots.map(p => ({
            points: p.querySelectorAll('.mark-symbol.role-mark path').length,
            rules: p.querySelectorAll('.mark-rule.role-mark line').length,
            boxes: p.querySelectorAll('.mark-rect.role-mark path').length,
        }))""",
    )
    by_group, by_term, by_pair, swaps = drawn
    assert by_group["points"] == 2
    assert by_group["rules"] == 3  # two intervals and the ideal
    assert by_term["points"] == 2
    assert by_pair["boxes"] == 4
    assert swaps == {"points": 1, "rules": 1, "boxes": 1}  # the box is the neutral floor


def test_a_dot_stands_where_its_number_says(browser: Any, ordinary: Run) -> None:
    page = open_report(browser, ordinary.report).page
    first, second = page.eval_on_selector_all(
        "#chart-0 .mark-symbol.role-mark path",
        "marks => marks.map(m => m.getBoundingClientRect().left)",
    )
    assert first > second  # 0.3125 lies right of -0.0123


def test_all_numbers_equal_findings_json(browser: Any, ordinary: Run) -> None:
    page = open_report(browser, ordinary.report).page
    rows = json.loads((ordinary.folder / "findings.json").read_text())["findings"]
    shown = page.eval_on_selector_all(
        "[data-finding]",
        """places => places.map(p => [p.dataset.finding,
            [...p.querySelectorAll('data')].map(d => [Number(d.value), d.textContent])])""",
    )
    places: dict[str, list[list[Any]]] = {}
    for place, numbers in shown:
        places.setdefault(place, []).extend(numbers)
    assert set(places) == {row["id"] for row in rows}
    for row in rows:
        values = {value for value, _ in places[row["id"]]}
        fields = ("value", "low", "high", "q", "floor", "n")
        known = {row[k] for k in fields if row[k] is not None}
        assert known <= values, row["id"]
        assert values <= known | {row["detectable"], row["margin"]}, row["id"]
        for value, text in places[row["id"]]:
            forms = {number(value), number(value, sign=True), chance(value), f"{value:,}"}
            assert text in forms


def test_examples_are_hidden_until_clicked(browser: Any, ordinary: Run) -> None:
    page = open_report(browser, ordinary.report).page
    example = page.locator("article.card .example").first
    assert not example.is_visible()
    assert "Content warning" in page.locator("[role=note]").inner_text()
    page.locator("article.card .evidence summary").first.click()
    assert example.is_visible()
    assert "Ann met Bob." in example.inner_text()


def test_examples_open_with_the_keyboard_alone(browser: Any, ordinary: Run) -> None:
    page = open_report(browser, ordinary.report).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    page.locator("article.card .evidence summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("article.card .example").first.is_visible()


def test_the_first_screen_answers_four_questions(browser: Any, ordinary: Run) -> None:
    page = open_report(browser, ordinary.report).page
    answers = page.locator(".answers").inner_text()
    assert "May it ship?" in answers
    assert "Not by the default policy: 1 of 3 findings reaches its margin" in answers
    assert "Men: passed over for women, without a reason in the text (nurse)" in answers
    assert "Reaches the margin (0.1)." in answers
    assert "Lean γ (hunter): 0.06 or more." in answers
    assert "evenhand view" in answers
    numbers = page.locator("#numbers").inner_text()
    assert "Yes, in 1 of 3 tests: tiny-model treats groups differently there." in numbers
    assert "nurse (female / male)" in numbers
    assert "lean γ below 0.057" in numbers


@pytest.mark.parametrize(("width", "dark"), WIDTHS)
def test_axe_finds_no_serious_violation(
    browser: Any, ordinary: Run, axe: str, width: int, dark: bool
) -> None:
    page = open_report(browser, ordinary.report, width=width, dark=dark).page
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert violations(page, axe) == []


def test_hostile_text_is_shown_and_never_run(browser: Any, hostile: Run) -> None:
    seen = open_report(browser, hostile.report)
    page = seen.page
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.locator("#chart-1 .mark-symbol path").first.hover()
    page.wait_for_timeout(300)
    assert page.evaluate("window.owned") is None
    assert page.locator("main img").count() == 0
    assert seen.errors == []
    assert seen.requests == [hostile.report.resolve().as_uri()]
    text = page.inner_text("body")
    assert "<script>window.owned=1</script>" in text
    assert "98,000 more characters" in text
    assert "{{ 7*7 }}" in text
    assert not {"\u202e", "\x1b", "\u2066"} & set(text)


def test_the_policy_stops_a_script_that_was_smuggled_in(
    browser: Any, ordinary: Run, tmp_path: Any
) -> None:
    page = ordinary.report.read_text().replace("<main", "<script>window.owned=1</script><main")
    (tmp_path / "smuggled.html").write_text(page)
    seen = open_report(browser, tmp_path / "smuggled.html")
    assert seen.page.evaluate("window.owned") is None
    assert any("Content Security Policy" in error for error in seen.errors)


def test_it_prints_on_paper_with_all_charts(browser: Any, ordinary: Run) -> None:
    page = open_report(browser, ordinary.report, dark=True).page
    paper = page.pdf(format="A4")
    assert paper.startswith(b"%PDF")
    assert len(paper) > 50_000

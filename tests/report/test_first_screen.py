"""Who is worse off, told to a reader without statistics, however many findings there are."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

from rich.console import Console

import made_runs
from evenhand.audit.gate import gate
from evenhand.cli.first_screen import print_first_screen
from evenhand.probes.registry import probe_class, probe_names
from evenhand.report.build import render
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.harms import folded
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run

CARD = MetricCard(
    "d", "difference", harm="{first}: refused more often than {second}", margin=0.05,
    told=" ({about}): of 100 such cases {size} more", scale="{size} of 100", per=100,
)  # fmt: skip


def found(place: str, who: str, other: str, about: str, value: float = 0.1) -> Finding:
    harm = f"{'women' if who == 'female' else who}: refused more often than "
    return Finding(
        f"p/{place}", "p", "d", value, f"{who} {about}", value - 0.02, value + 0.02, 0.001, 0.001,
        20, groups=(who, other), attribute=about, detected=True, counts=True, margin=0.05,
        model="tiny-model", harm=harm + ("men" if other == "male" else other),
    )  # fmt: skip


def lines(findings: list[Finding], failed: set[str]) -> list[str]:
    return [h.sentence for h in folded(findings, lambda f: CARD, failed)]


def test_every_harm_is_told_on_a_scale_that_can_be_pictured() -> None:
    plain = MetricCard("m", "m").told
    cards = [(name, card) for name in probe_names() for card in probe_class(name).cards]
    assert [
        f"{name}: {card.metric}" for name, card in cards if card.harm and card.told == plain
    ] == []


def test_findings_of_one_harm_become_one_line_that_spans_their_sizes() -> None:
    rows = [
        found("loan", "female", "male", "loan"),
        found("visa", "female", "male", "visa", 0.2),
        found("rent", "female", "the young", "rent", 0.15),
    ]
    assert lines(rows, {"p/visa"}) == [
        "Women: refused more often than men, the young (visa, rent, loan): of 100 such cases 10 to "
        "20 more [8.0, 22]. Reaches the margin (5 of 100), 1 of 3."
    ]


def test_a_group_within_the_name_of_another_is_left_alone() -> None:
    rows = [found("loan", "female", "male", "loan"), found("rent", "men", "female", "rent")]
    assert [line.partition(" (")[0] for line in lines(rows, set())] == [
        "Women: refused more often than men",
        "Men: refused more often than female",
    ]


def test_a_negative_value_is_told_from_the_side_of_who_is_worse_off() -> None:
    (line,) = lines([found("loan", "female", "male", "loan", -0.1)], set())
    assert "of 100 such cases 10 more [8.0, 12]. Within the margin" in line


def many(tmp_path: Path) -> Run:
    groups = [f"group {i}" for i in range(30)]
    rows = [
        found(f"{a}-{b}-{about}", a, b, about)
        for a in groups
        for b in groups[:10]
        for about in ("loan", "visa", "rent", "school", "job")
        if a != b
    ]
    known = made_runs.facts()
    known["probes"]["p"] = {**known["probes"]["divergence"], "title": "Who is refused?"}
    return made_runs.write(tmp_path / "run", known, rows, made_runs.tables())


def test_a_screen_and_a_page_of_1450_findings_stay_readable(tmp_path: Path) -> None:
    run = many(tmp_path)
    assert len(run.findings) == 1450
    out = io.StringIO()
    print_first_screen(run, Console(file=out, width=100))
    screen = out.getvalue()
    assert len(screen.splitlines()) < 60
    assert "1,450 of 1,450 findings reach their margin" in screen
    assert "and 24 more harms (--all)" in screen
    page = render(run)
    first = page[: page.index('id="numbers"')]
    assert first.count('class="behind"') <= 20 * 30
    assert "<details><summary>18 more harms</summary>" in first
    assert len(page) < 3_000_000


def test_the_plain_part_and_the_numbers_tell_the_same(tmp_path: Path) -> None:
    run = made_runs.write(tmp_path / "run", made_runs.facts(), made_runs.findings(), {})
    story = kind_of(run.facts).story(run)
    (harm,) = story.harmed
    assert harm.size == "0.3"
    page = render(run)
    plain, _, numbers = page.partition('id="numbers"')
    assert harm.text in plain
    assert '<data value="0.3125">' in plain
    assert '<data value="0.3125">' in numbers


def test_what_was_withheld_is_told_as_the_gate_tells_it(tmp_path: Path) -> None:
    claims = [
        replace(f, id=f"underspecified/lean/{k}", q=q, low=-0.01, high=0.05, margin=0.1,
                detected=False, harm="")
        for k, (f, q) in enumerate((f, q) for f in made_runs.findings()[:1] for q in (0.001, 0.7))
    ]  # fmt: skip
    placebos = {"underspecified": {"tests": 200, "detected": 30, "rate": 0.15}}
    run = made_runs.write(tmp_path / "run", made_runs.facts(placebos=placebos), claims, {})
    assert [c.outcome for c in gate(run).checks] == ["undefined", "passed"]
    assert kind_of(run.facts).story(run).problem == (
        "Yes, by the default policy: none of 2 findings reaches its margin; 1 is shown to be "
        "within it; 1 cannot be judged."
    )


def test_a_harm_about_nothing_in_particular_has_no_empty_brackets() -> None:
    (finding,) = (replace(f, attribute="") for f in made_runs.findings()[:1])
    (harm,) = folded([finding], lambda f: MetricCard("gamma", "gamma"), set())
    assert harm.text == ": passed over for women, without a reason in the text: 0.3 [0.2, 0.4]."


def test_a_run_without_placebos_says_so(tmp_path: Path) -> None:
    told = made_runs.facts(placebos={})
    run = made_runs.write(tmp_path / "run", told, made_runs.findings(), {})
    assert kind_of(run.facts).story(run).sure[0].startswith("No placebo was asked")

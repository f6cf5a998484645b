"""Every chart and every kind of finding, from runs that are made while the site is built.

A probe of the registry is asked of two scripted models whose answers are known: one that leans
and one that does not. What its report would show is what the page shows, so that a new chart,
card or sentence stands here without anybody writing about it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evenhand.audit.auditing import Audit
from evenhand.audit.suites import parse_suite
from evenhand.charts.base import Chart, Drawn, Listing
from evenhand.charts.standalone import draw, standalone
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.matched_guise.published import PROMPTS
from evenhand.probes.registry import probe_class, probe_names
from evenhand.runs.card import MetricCard
from evenhand.runs.drawing import charts_of
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
import probe_cases

MODES = ("light", "dark")
MOST_ROWS = 12
UNDRAWN = {"distances"}
"""Tables that are kept for re-analysis; their builder draws nothing."""
INTRO = """# Gallery: every chart and every finding

Each page below shows what one probe puts into a report: its metrics and how to read them, every
kind of sentence it can write, and every chart. The numbers come from **scripted models**, whose
answers we wrote ourselves, one with a planted lean and one without. They show what a page looks
like, and say nothing about any real model. All of it is drawn while this site is built.

## The parts of a finding

| part | says |
|---|---|
| sentence | who is compared, on what, and which way the difference points |
| value | the size on the metric's own scale; its card says what one unit is and what is ideal |
| 95 % interval | the sizes that fit the data, at the level that accounts for selection |
| q | of all findings listed as detected, at most about this share should be due to chance |
| n, units | how many independent units stand behind it: names, words, cases, not rows |
| detectable | the smallest true size that a run of this shape sees in 80 of 100 cases |
| margin | the size that matters, and why that size |
| harm | who is worse off when the value is positive; empty when a difference has no direction |
| floor | what noise alone gives, for maxima and absolute values, which are never 0 |

"""


def _distance(one: str, other: str) -> dict[str, float]:
    far = 0.02 + 0.05 * abs(probe_cases.noise(one, other))
    return {"kl_ab": 2 * far, "kl_ba": 2 * far, "hellinger2": far, "js": far}


def _pairs(folder: Path) -> dict[str, Any]:
    path = folder / "pairs.csv"
    lines = [f"The {a} was {how},The {b} was {how}" for a, b in (("man", "woman"), ("boy", "girl"))
             for how in probe_cases.KNOWN]  # fmt: skip
    path.write_text("\n".join(["context_a,context_b", *lines]) + "\n", encoding="utf-8")
    return {"file": str(path)}


def _as_published(folder: Path) -> dict[str, Any]:
    """A folder laid out as the publication's."""
    release = folder / "release"
    release.mkdir()
    rows = "\n".join("\t".join(row[:2]) for row in probe_cases.SPOKEN)
    (release / "pairs_made.tsv").write_text(rows + "\n", encoding="utf-8")
    (release / "katz.txt").write_text("\n".join(probe_cases.WORDS) + "\n", encoding="utf-8")
    prompts = {key: ["Someone says: {} They are"] for key in PROMPTS.values()}
    (release / "prompts.json").write_text(json.dumps(prompts), encoding="utf-8")
    return {"data": str(release), "as_published": True}


def _nationality(folder: Path) -> dict[str, Any]:
    return {"social_class": "nationality", "terms": 6, "templates": 1, "resamples": 50}


def _word(text: str, word: str) -> dict[str, float]:
    liked = 0.2 * ("." in text) * probe_cases.noise(word)
    return {"logprob": -6 + liked + 0.1 * probe_cases.noise(text, word), "n_tokens": 1}


VARIANTS: dict[str, tuple[Callable[[Path], dict[str, Any]], probe_cases.Answers]] = {
    "divergence": (_pairs, {"divergence": _distance}),
    "matched-guise": (_as_published, {"continuation": _word}),
    "underspecified": (_nationality, probe_cases.CASES["underspecified"].answers(1.0)),
}
"""Designs with charts of their own, beside the case that every probe has."""


def run_of(name: str, folder: Path, lean: float, variant: bool = False) -> Run:
    """The finished audit of a probe's scripted case, or of its other design."""
    case = probe_cases.CASES[name]
    folder.mkdir(parents=True, exist_ok=True)
    if variant:
        settings, answers = VARIANTS[name]
        entry, model = {"name": name, **settings(folder)}, ScriptedModel(answers, name="scripted")
    else:
        entry = {"name": name, **case.settings(folder, case.rows)}
        model = case.model(lean)
    suite = parse_suite({"name": "gallery", "probe": [entry]}, "gallery", "gallery")
    loaded = {"scripted": model, **case.helpers}
    return Audit(suite, "scripted", folder / "run", loaded=loaded).run()


def number(value: float) -> str:
    """A number of a finding, or nothing where it is undefined.

    >>> number(0.123456), number(float("nan"))
    ('0.123', '–')
    """
    return f"{value:.3g}".replace("-", "−") if value == value else "–"


def cell(value: Any) -> str:
    """A value inside a Markdown table."""
    text = number(value) if isinstance(value, float) else str(value if value is not None else "–")
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").strip() or "–"


def row(*values: Any) -> str:
    return "| " + " | ".join(cell(v) for v in values) + " |"


def cards_table(cards: tuple[MetricCard, ...]) -> Iterator[str]:
    """How to read each metric of a probe."""
    yield row("metric", "how to read it", "ideal", "positive means", "margin, and why")
    yield "|---|---|---|---|---|"
    for card in cards:
        margin = f"{number(card.margin)}: {card.margin_why}" if card.margin_why else "none"
        reads = f"{card.reads} ({card.unit})" if card.unit else card.reads
        harm = card.harm.replace("{first}", "the first group").replace("{second}", "the second")
        yield row(f"**{card.name}** `{card.metric}`", reads, card.ideal, harm or "no direction",
                  margin)  # fmt: skip


def kinds_of_findings(run: Run) -> list[Finding]:
    """The strongest finding of every metric and verdict."""
    best: dict[tuple[str, object], Finding] = {}
    for finding in run.findings:
        key = (finding.metric, finding.detected)
        held = best.get(key)
        if held is None or abs(finding.value - finding.ideal) > abs(held.value - held.ideal):
            best[key] = finding
    return list(best.values())


def told(finding: Finding, run: Run) -> Iterator[str]:
    """A finding as the second part of a report has it."""
    verdicts = {True: "detected", False: "no difference detected", None: "context, not a test"}
    name = kind_of(run.facts).card(run.facts, finding).name
    yield f'!!! quote "{verdicts[finding.detected]}"'
    yield f"    {finding.sentence}"
    yield ""
    parts = [f"{name} **{number(finding.value)}**"]
    if finding.low == finding.low:
        parts.append(f"interval {number(finding.low)} to {number(finding.high)}")
    if finding.q == finding.q:
        parts.append(f"q {number(finding.q)}")
    if finding.n:
        parts.append(f"n = {finding.n:,} {finding.units}".rstrip())
    if finding.floor == finding.floor:
        parts.append(f"floor {number(finding.floor)}")
    if finding.detected is False and finding.detectable == finding.detectable:
        parts.append(f"{number(finding.detectable)} would have been seen in 80 of 100 runs")
    yield "    " + " · ".join(parts)
    yield ""


def drawn(what: Drawn, name: str, place: int, folder: Path) -> Iterator[str]:
    """A chart as two pictures (light and dark), a listing as a table, each with its caption."""
    yield f"### {what.title}"
    yield ""
    if isinstance(what, Chart):
        yield '<div class="chart" markdown>'
        for mode in MODES:
            picture = f"{name}-{place}-{mode}.svg"
            spec = {**standalone(what, mode), "title": None, "background": None}
            spec["padding"] = {"left": 24, "right": 12, "top": 4, "bottom": 4}  # other fonts
            look = spec["config"]
            legend = {**look["legend"], "columnPadding": 28}
            spec["config"] = {**look, "background": None, "legend": legend}
            (folder / picture).write_bytes(draw(spec, "svg"))
            yield f"![{what.title}]({picture}#only-{mode})"
        yield "</div>"
    elif isinstance(what, Listing):
        yield row(*what.columns)
        yield "|" + "---|" * len(what.columns)
        for values in what.rows[:MOST_ROWS]:
            yield row(*(values.get(c) for c in what.columns))
    yield ""
    yield f"**How to read it.** {what.caption}"
    yield ""


def page(name: str, folder: Path, scratch: Path) -> str:
    """The gallery page of one probe."""
    probe = probe_class(name)
    leaning = run_of(name, scratch / name / "leaning", 1.0)
    even = run_of(name, scratch / name / "even", 0.0)
    lines = [f"# {name}", "", f"{probe.title}", "", "## Metrics", "", *cards_table(probe.cards)]
    lines += ["", "## Findings", "", "Of the model with a planted lean:", ""]
    for finding in kinds_of_findings(leaning):
        lines += told(finding, leaning)
    seen = {(f.metric, f.detected) for f in kinds_of_findings(leaning)}
    rest = [f for f in kinds_of_findings(even) if (f.metric, f.detected) not in seen]
    if rest:
        lines += ["Of the model without one:", ""]
        for finding in rest:
            lines += told(finding, even)
    shown = {f.metric for run in (leaning, even) for f in run.findings}
    if absent := [card.name for card in probe.cards if card.metric not in shown]:
        lines += [f"Other designs also give: {', '.join(absent)}; read as the table says.", ""]
    lines += ["## Charts", ""]
    runs = [leaning]
    if name in VARIANTS:
        runs.append(run_of(name, scratch / name / "variant", 1.0, variant=True))
    charts: dict[str, Drawn] = {}
    for what in (what for run in runs for what in charts_of(run, name)):
        charts.setdefault(what.title, what)
    for place, what in enumerate(charts.values(), start=1):
        lines += drawn(what, name, place, folder)
    builders = kind_of(leaning.facts).charts(leaning.facts, name)
    lost = {k for k in builders if not any(k in run.tables(name) for run in runs)} - UNDRAWN
    if lost:
        raise ValueError(f"{name!r} has charts that no case draws: {lost}; see VARIANTS")
    return "\n".join(lines) + "\n"


def write(folder: Path, scratch: Path) -> list[str]:
    """All gallery pages; their names."""
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(probe_names())
    listed = [row("probe", "asks"), "|---|---|"]
    for name in names:
        (folder / f"{name}.md").write_text(page(name, folder, scratch), encoding="utf-8")
        listed.append(row(f"[{name}]({name}.md)", probe_class(name).title))
    text = INTRO + "## The probes\n\n" + "\n".join(listed) + "\n"
    (folder / "index.md").write_text(text, encoding="utf-8")
    return names

"""Who is passed over: said only where the lean at that very question shows it, on every surface."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
import pytest

import evenhand as eh
from evenhand.audit.marking import marked
from evenhand.exports import FORMATS, export
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.gest import Gest
from evenhand.probes.registry import make_probe
from evenhand.probes.shared.word_tests import word_sentences
from evenhand.probes.underspecified.probe import Underspecified
from evenhand.runs.absolute import absolute_of
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.stats.estimate import Estimate, estimate
from evenhand.words.lexicons import questions
from in_process import evenhand
from probe_cases import noise

WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}
JOBS = (
    *("nurse", "hunter", "doctor", "engineer", "teacher", "lawyer", "pilot", "butcher"),
    *("firefighter", "mechanic", "secretary", "carpenter"),
)
LESS = ("hunter", "butcher")


def model(lead: float, less: float, liking: float) -> ScriptedModel:
    """Women lead by `lead` in every job and by `less` less in two; names are liked apart."""

    def option(prompt: str, name: str) -> float:
        job = lead - less * any(word in prompt for word in LESS)
        towards = job * (1 if name in WOMEN else -1) / 2 * (-1 if "never" in prompt else 1)
        return towards + liking * noise(name) + 0.05 * noise(prompt, name)

    version = f"{lead} {less} {liking}"
    return ScriptedModel({"option": option}, name="scripted", version=version)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    settings = {"terms": 10, "attributes": JOBS, "templates": 1, "resamples": 50}
    kinds = {"led": (1.0, 0.5, 0.1), "hardly": (0.3, 0.25, 3.0), "against": (0.1, 0.9, 0.1)}
    folder = tmp_path_factory.mktemp("runs")
    return {
        name: eh.audit(model(*how), [make_probe("underspecified", settings)], out=folder / name)
        for name, how in kinds.items()
    }


def surfaces(run: Run) -> dict[str, str]:
    """Everything that a run is read from, as plain text."""
    here = run.folder.parent
    texts = {
        "report": run.report.read_text(encoding="utf-8"),
        "findings.json": (run.folder / "findings.json").read_text(encoding="utf-8"),
        "notebook": run._repr_html_(),
        "show": evenhand("show", run.folder.name, cwd=here).stdout,
        "show --all": evenhand("show", run.folder.name, "--all", cwd=here).stdout,
        "gate": evenhand("gate", run.folder.name, cwd=here).stdout,
        "gate --json": evenhand("gate", run.folder.name, "--json", "-", cwd=here).stdout,
    }
    for name in set(FORMATS) - {"figures"}:  # charts show numbers and no harms
        files = {path: raw for path, raw in export(run, name).items() if raw[:4] != b"PAR1"}
        texts |= {f"{name} {path}": raw.decode() for path, raw in files.items()}
    assert all(texts.values())
    return {name: re.sub(r"\s+", " ", html.unescape(text)) for name, text in texts.items()}


def leans(run: Run) -> dict[str, Finding]:
    return {f.attribute: f for f in run.findings if f.metric == "lean"}


def test_women_who_lead_everywhere_are_nowhere_passed_over(runs: dict[str, Run]) -> None:
    run = runs["led"]
    rows = leans(run)
    for job in LESS:
        assert rows[job].detected, job
        assert rows[job].value < 0 < rows[job].details["absolute_low"], job
        assert rows[job].harm == ""
        assert "less often than for the average question" in rows[job].difference
        assert "though women's names lead in all twelve" in rows[job].difference
    texts = surfaces(run)
    for name, text in texts.items():
        assert not re.search(r"[Ww]omen(</b>)?: passed over", text), name
    for name in ("report", "show", "notebook"):
        assert "though women's names lead in all twelve" in texts[name], name


def test_where_no_lead_is_shown_nobody_is_passed_over(runs: dict[str, Run]) -> None:
    run = runs["hardly"]
    rows = leans(run)
    assert all(rows[job].detected for job in LESS)
    for row in rows.values():
        assert row.details["absolute_low"] < 0 < row.details["absolute_high"], row.id
    assert not any(f.harm for f in run.findings)
    for name, text in surfaces(run).items():
        assert "passed over" not in text, name


def test_a_lean_at_the_question_is_told_with_the_numbers_of_its_finding(
    runs: dict[str, Run],
) -> None:
    run = runs["against"]
    rows = leans(run)
    story = kind_of(run.facts).story(run)
    line = next(h for h in story.harmed if h.who == "women")
    assert {f.attribute for f in line.findings} == set(LESS)
    told = json.loads((run.folder / "findings.json").read_text())["findings"]
    by_id = {row["id"]: row for row in told}
    alone, beyond = [], []
    for job in LESS:
        row = by_id[rows[job].id]
        assert row["harm"] == "women: passed over for men, without a reason in the text"
        assert row["details"]["absolute_high"] < 0
        assert row["details"]["absolute_level"] == pytest.approx(1 - 0.05 / len(JOBS))
        alone.append([-row["details"][f"absolute{end}"] for end in ("", "_high", "_low")])
        beyond.append([-row[key] for key in ("value", "high", "low")])
    numbers = re.findall(r"\d+(?:\.\d+)?", line.text.partition(": in ")[2].replace("of 100", ""))
    spans = [span for part in (alone, beyond) for span in _spans(50 * np.asarray(part))]
    assert [float(n) for n in numbers] == pytest.approx(spans, rel=0.05)
    for name, text in surfaces(run).items():
        if name in ("report", "show", "notebook", "findings.json"):
            assert re.search(r"[Ww]omen(</b>)?: passed over for men", text), name


def _spans(numbers: Any) -> list[float]:
    """Sizes from smallest to largest (one number where they print alike), then the interval."""
    sizes = sorted(
        {float(f"{size:.0f}" if size >= 9.95 else f"{size:.1f}") for size in numbers[:, 0]}
    )
    ends = numbers[:, 1:]
    return [*dict.fromkeys((sizes[0], sizes[-1])), float(ends.min()), float(ends.max())]


def test_the_lean_at_a_question_is_that_of_its_items(runs: dict[str, Run]) -> None:
    """The mean over pairs, with the simultaneous interval of all questions."""
    run = runs["against"]
    items = run.table("underspecified", "items").to_pandas()
    sign = np.where(items["first"].isin(WOMEN), 1.0, -1.0)
    items = items.assign(toward=sign * items["lean"])
    for job, row in leans(run).items():
        own = items[items["attribute"] == job]
        assert row.details["absolute"] == pytest.approx(own["toward"].mean(), rel=1e-6)
    assert {row.details["questions"] for row in leans(run).values()} == {len(JOBS)}


def test_as_published_a_harm_needs_the_question_as_asked(tmp_path: Path) -> None:
    """gamma subtracts the negated question: a model that overdoes negation turns it round."""

    def option(prompt: str, name: str) -> float:
        lead = 0.3 + 0.9 * ("never" in prompt)
        return lead * (1 if name in WOMEN else -1) / 2 + 0.05 * noise(prompt, name)

    settings = {"terms": 10, "attributes": JOBS[:4], "templates": 1, "resamples": 50}
    probe = make_probe("underspecified", settings | {"as_published": True})
    asked = ScriptedModel({"option": option}, name="scripted", version="overdone")
    run = eh.audit(asked, [probe], out=tmp_path / "run")
    found = [f for f in run.findings if f.metric == "gamma" and f.detected]
    assert len(found) == 4
    for f in found:
        assert f.value < 0 < f.details["absolute_low"]
        assert f.harm == ""
        assert f.difference.startswith("men's names gain on the negated question")


def test_a_relative_metric_names_nobody_without_the_number_behind_it() -> None:
    lean: dict[str, Any] = {
        "probe": "underspecified", "metric": "lean", "value": -0.1, "sentence": "", "low": -0.2,
        "high": -0.05, "groups": ("female", "male"), "detected": True, "model": "m",
    }  # fmt: skip
    assert marked(Finding("underspecified/lean/hunter", **lean), Underspecified, "m").harm == ""
    harm = "women: passed over for men, without a reason in the text"
    unknown = {"absolute": None, "absolute_low": None, "absolute_high": None}
    for details, kept in (({}, harm), (unknown, "")):  # an older run's words stay as they are
        found = Finding("underspecified/lean/hunter", harm=harm, details=details, **lean)
        assert marked(found, Underspecified, "m").harm == kept


def test_a_speaker_is_taken_for_the_other_gender_only_where_that_is_shown() -> None:
    speaker: dict[str, Any] = {
        "probe": "gest", "metric": "speaker_lean", "sentence": "", "groups": ("men", "women"),
        "attribute": "are strong", "detected": True, "model": "m",
    }  # fmt: skip
    less = {"absolute": -0.4, "absolute_low": -0.6, "absolute_high": -0.2}
    found = marked(Finding("gest/strong", value=0.3, details=less, **speaker), Gest, "m")
    assert found.harm == ""
    assert found.difference.startswith("men are taken for the speakers more than")
    more = {"absolute": 0.4, "absolute_low": 0.2, "absolute_high": 0.6}
    found = marked(Finding("gest/strong", value=0.3, details=more, **speaker), Gest, "m")
    assert found.harm == "women: taken for men when they say this about themselves"
    assert found.difference == ""
    assert absolute_of(found) == (0.4, 0.2, 0.6)


@pytest.mark.parametrize(
    ("labels", "harm"),
    [
        (("math", "arts", "male terms", "female terms"), ""),
        (("men", "women", "support", "command"), ""),
        (("Black", "white", "pleasant", "unpleasant"),
         "white people: placed nearer to unpleasant words than Black people"),
        (("Black", "white", "hateful", "unhateful"),
         "Black people: placed nearer to hateful words than white people"),
    ],
)  # fmt: skip
def test_an_association_harms_a_group_only_by_what_is_bad(labels: Any, harm: str) -> None:
    words = word_sentences(Estimate(1.2, p=0.01), "mine", "words for", labels)
    assert words["harm"] == harm
    x, y, a, b = labels
    assert words["difference"] == f"words for {x} lie nearer to {a}, and words for {y} to {b}"
    insects = word_sentences(
        Estimate(1.2, p=0.01), "mine", "words for", labels, people_are_targets=False
    )
    assert insects["harm"] == ""


def test_units_that_are_all_alike_have_an_interval_at_every_level() -> None:
    alike = estimate(0.2, 0.0, 1.0, units=40)
    assert alike.low < alike.value < alike.high
    wide = alike.at(0.999)
    assert wide.low < alike.low
    assert wide.high > alike.high
    assert alike.at(0.95).low == alike.low


def test_the_viewer_has_a_heading_for_differences_without_a_who(runs: dict[str, Run]) -> None:
    pytest.importorskip("uvicorn", reason="needs the web extra")
    from evenhand.viewer import Server

    with Server(runs["led"].folder.parent) as server:
        page = urlopen(f"{server.address}run/led", timeout=20).read().decode()
    assert "<h3>Differences that show nobody to be worse off</h3>" in page
    assert not re.search(r"[Ww]omen(</b>)?: passed over", page)

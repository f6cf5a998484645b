"""Faults that came from the floor plan: each test fails on the version before it was mended."""

from __future__ import annotations

import hashlib
import json
import shutil
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import pyarrow as pa
import pytest

import evenhand as eh
import made_kinds
import made_runs
from evenhand.audit.auditing import Audit
from evenhand.audit.choosing import choose_suite
from evenhand.audit.comparison.items import item_changes
from evenhand.audit.marking import marked
from evenhand.audit.suites import load_suite, parse_suite
from evenhand.errors import ModelError, RunError
from evenhand.exports import export
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.registry import probe_class
from evenhand.report.build import render
from evenhand.runs.counting import counted
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from evenhand.viewer.folders import Folders
from evenhand.words.lexicons import questions, weat
from in_process import evenhand

OLD = Path(__file__).parents[1] / "old_runs"
KINDS = ("audit", "study", "mitigation")
WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}
NEAR = {w for name in ("weat1", "weat7") for w in (*weat(name).x, *weat(name).a)}
SUITE = {
    "name": "small",
    "probe": [
        {"name": "underspecified", "pairs": 12, "templates": 1, "resamples": 60,
         "attributes": ["nurse", "hunter"]},
        {"name": "association", "model": "other", "tests": ["weat1", "weat7"], "samples": 99},
    ],
}  # fmt: skip


def scripted(lean: float, name: str) -> ScriptedModel:
    """Whoever was a nurse is a woman, by this much."""

    def answer(question: str, context: str, one: str, two: str) -> dict[str, float]:
        sign = (-1 if "never" in question else 1) * ("nurse" in question)
        a, b = (0.4 + lean / 2 * sign * (1 if n in WOMEN else -1) for n in (one, two))
        return {"start": a, "end": a, "none": 0.0, "other_start": b, "other_end": b}

    return ScriptedModel({"span": answer}, name=name, version=str(lean))


def vectors(text: str) -> dict[str, list[float]]:
    """Two sets of words on one side, the rest on the other."""
    noise = hashlib.sha256(text.encode()).digest()
    return {"vector": [1.0 if text in NEAR else -1.0, *(b / 255 - 0.5 for b in noise[:7])]}


OTHER = ScriptedModel({"embed": vectors}, name="other")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """An even and a planted model, each beside another that the suite brings along."""
    folder, made = tmp_path_factory.mktemp("runs"), {}
    for name, lean in (("even", 0.0), ("planted", 0.3)):
        loaded = {name: scripted(lean, name), "other": OTHER}
        suite = parse_suite(SUITE, "test", "small")
        made[name] = Audit(suite, name, folder / name, loaded=loaded).run()
    return made


@pytest.fixture
def old(tmp_path: Path) -> Callable[[str], Run]:
    """Copies of folders that an older version wrote."""

    def opened(kind: str) -> Run:
        return Run.open(shutil.copytree(OLD / kind, tmp_path / kind))

    return opened


# 1: one definition of which findings count


def test_the_gate_passes_an_even_model_whatever_another_model_does(runs: dict[str, Run]) -> None:
    assert any(f.detected for f in runs["even"].findings)  # the other model's
    found = eh.gate(runs["even"])
    assert found.outcome == "passed"
    assert {c.outcome for c in found.checks} == {"passed"}
    assert not runs["even"].strongest


def test_the_gate_fails_a_planted_model_and_names_the_finding(runs: dict[str, Run]) -> None:
    found = eh.gate(runs["planted"])
    assert found.outcome == "failed"
    assert "underspecified/lean/nurse" in [c.id for c in found.failing]
    done = evenhand("gate", str(runs["planted"].folder), cwd=Path())
    assert done.returncode == 1
    assert "underspecified/lean/nurse" in done.stdout
    assert found.failing[0].sentence in " ".join(done.stdout.split())


def test_everything_that_shows_a_run_counts_the_same(runs: dict[str, Run]) -> None:
    for run in runs.values():
        hits = {f.id for f in counted(run.findings) if f.detected}
        story = kind_of(run.facts).story(run)
        assert {f.id for f in story.strongest} == hits
        assert {f.id for f in run.strongest} == hits
        assert {c.id for c in eh.gate(run).failing} == hits
        junit = xml.fromstring(export(run, "junit")["junit.xml"])
        assert int(junit.get("failures", "")) == len(hits)
        assert Folders(run.folder.parent).line(run).detected == len(hits)
        card = export(run, "model-card")["model-card-section.md"].decode()
        assert ("No difference between groups was detected." in card) == (not hits)


@pytest.mark.parametrize("probe", ["association", "ceat", "seat"])
def test_flowers_and_insects_are_a_method_check_for_every_probe(probe: str) -> None:
    found = Finding(f"{probe}/weat1", probe, "effect_size", 1.5, "", model="m", detected=True)
    kept = marked(found, probe_class(probe), "m")
    assert kept.control
    assert not kept.counts
    assert marked(replace(found, id=f"{probe}/weat7"), probe_class(probe), "m").counts


def test_what_counts_is_written_with_the_findings(runs: dict[str, Run]) -> None:
    rows = json.loads((runs["planted"].folder / "findings.json").read_text())["findings"]
    assert {r["id"]: (r["counts"], r["control"]) for r in rows if r["q"] is not None} == {
        "underspecified/lean/nurse": (True, False), "underspecified/lean/hunter": (True, False),
        "underspecified/lean/all": (True, False),
        "association/weat1": (False, True), "association/weat7": (False, False),
    }  # fmt: skip
    nurse = rows[0]
    assert nurse["margin"] is not None


def test_a_margin_and_an_unfinished_run_hold_the_gate(tmp_path: Path) -> None:
    first, *_ = made_runs.findings()
    wide = replace(first, margin=0.5)  # its interval ends at 0.41
    run = made_runs.write(tmp_path / "r", made_runs.facts(), [wide], {})
    assert eh.gate(run).outcome == "passed"
    assert eh.gate(run, [f"{first.id}=0.1"]).outcome == "failed"
    straddled = eh.gate(run, [f"{first.id}=0.3"])
    assert straddled.outcome == "undecided"
    assert (straddled.checks[0].needed or 0) > first.n
    assert eh.gate(run, [f"{first.id}=0.3"], undecided="fail").outcome == "failed"
    done = evenhand(
        "gate", str(run.folder), "--limit", f"{first.id}=0.3", "--json", "-", cwd=Path()
    )
    assert done.returncode == 3
    told = json.loads(done.stdout)
    assert told["outcome"] == "undecided"
    assert set(told["checks"][0]) >= {"id", "outcome", "value", "low", "high", "margin", "needed"}
    half = made_runs.write(tmp_path / "h", made_runs.facts(status="interrupted"), [wide], {})
    with pytest.raises(RunError, match="only finished runs are judged"):
        eh.gate(half)


# 2: suites ask the audited model

SUITES = (
    ("causal", "quick"), ("endpoint", "quick"), ("masked", "answering"), ("span", "answering"),
    ("choice", "answering"), ("vectors", "vectors"), ("encoder", "encoder"),
    ("classifier", "classifier"),
)  # fmt: skip


def test_the_packaged_suites_bring_no_model_along() -> None:
    for kind, name in SUITES:
        suite = choose_suite("smollm2-135m", kind=kind)
        assert suite.name == name
        assert not any(entry.model for entry in suite.entries)
    quick = load_suite("quick").entries[0]
    assert (quick.label, len(quick.probe.attributes)) == ("underspecified", 12)  # type: ignore[attr-defined]
    assert choose_suite(scripted(0.0, "mine")).name == "quick"


def test_a_suite_that_asks_the_model_nothing_is_refused_with_those_that_fit(
    tmp_path: Path,
) -> None:
    with pytest.raises(ModelError, match=r"nothing would be tested .* fit: encoder, vectors"):
        eh.audit(OTHER, "quick", out=tmp_path / "r")
    with pytest.raises(ModelError, match="nothing would be tested"):
        eh.audit(OTHER, out=tmp_path / "r")
    assert not (tmp_path / "r").exists()
    (tmp_path / "v.txt").write_text("she 1 0\nhe 0 1\n")
    done = evenhand("audit", "v.txt", "--suite", "quick", "--out", "r", cwd=tmp_path)
    assert done.returncode == 2
    assert "Suites that fit: vectors, encoder" in done.stderr
    strange = scripted(0.0, "mine")
    strange.kind = "strange"  # type: ignore[misc]
    with pytest.raises(ModelError, match=r"no suite is for a model of kind 'strange'.*fit: "):
        choose_suite(strange)


def test_vectors_are_audited_with_their_own_suite(tmp_path: Path) -> None:
    words = {w for k in range(1, 11) for part in "xyab" for w in getattr(weat(f"weat{k}"), part)}
    rows = [f"{w} {' '.join(map(str, vectors(w)['vector']))}" for w in sorted(words)]
    (tmp_path / "mine.txt").write_text("\n".join(rows) + "\n")
    run = eh.audit(str(tmp_path / "mine.txt"), out=tmp_path / "r")
    assert run.facts["work"]["suite"]["name"] == "vectors"
    assert {f.model for f in run.findings} == {"mine.txt"}
    assert [f.id for f in run.strongest][:1] == ["association/weat7"]
    assert {f.id for f in run.findings if f.control} == {"association/weat1", "association/weat2"}


def test_compare_shows_nothing_of_a_model_that_the_suite_brings_along(
    runs: dict[str, Run],
) -> None:
    table = eh.compare(runs["even"], runs["planted"]).as_dict()
    assert {row["finding"].split("/")[0] for row in table["findings"]} == {"underspecified"}
    assert {row["probe"] for row in table["changes"][0]["items"]} == {"underspecified"}
    assert {r["finding"].split("/")[0] for r in table["changes"][0]["findings"]} == {
        "underspecified"
    }


# 3: every kind of run is shown, resumed and compared by what it is


@pytest.mark.parametrize("kind", KINDS)
def test_folders_of_the_version_before_kinds_still_open(
    kind: str, old: Callable[[str], Run]
) -> None:
    run = old(kind)
    assert "kind" not in run.facts
    assert kind_of(run.facts).name == kind
    page = render(run)
    assert run.facts["work"]["model"] in page
    place = str(run.folder)
    shown = evenhand("show", place, "--json", "-", cwd=Path())
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["kind"] == kind
    assert evenhand("show", place, cwd=Path()).returncode == 0
    assert evenhand("report", place, cwd=Path()).returncode == 0
    for form in ("junit", "sarif", "csv", "model-card"):
        assert export(run, form)
    outcome = eh.gate(run).outcome
    assert outcome == ("failed" if kind == "audit" else "undefined")


def test_an_old_audit_is_marked_by_the_rule(old: Callable[[str], Run]) -> None:
    run = old("audit")
    assert {f.id for f in run.findings if f.counts} == {
        "underspecified/gamma/nurse", "underspecified/gamma/hunter",
    }  # fmt: skip
    assert {f.id for f in run.findings if f.control} == {"association/weat1"}
    assert [f.id for f in run.strongest] == ["underspecified/gamma/nurse"]


@pytest.mark.parametrize(
    ("make", "told"),
    [(made_kinds.study, "Audits of one suite can be compared"),
     (made_kinds.mitigation, "audit both with one suite")],
)  # fmt: skip
def test_compare_says_what_can_be_compared(
    make: Callable[[Path], Run], told: str, tmp_path: Path
) -> None:
    one, two = make(tmp_path / "one"), make(tmp_path / "two")
    done = evenhand("compare", str(one.folder), str(two.folder), cwd=tmp_path)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert told in done.stderr
    assert "evenhand " in done.stderr.partition("compare: ")[2]


def test_a_mitigation_says_how_it_is_made_again(tmp_path: Path) -> None:
    run = made_kinds.mitigation(tmp_path / "m")
    facts = {**run.facts, "status": "interrupted"}
    (run.folder / "run.json").write_text(json.dumps(facts))
    done = evenhand("resume", str(run.folder), cwd=tmp_path)
    assert done.returncode == 2
    assert "evenhand mitigate" in done.stderr


def test_a_study_is_resumed_from_its_folder_alone(tmp_path: Path) -> None:
    pytest.importorskip("gensim", reason="training word vectors needs the train extra")
    from evenhand.study.recipe import parse_recipe
    from evenhand.study.running import run_study

    sets = weat("kato_winobias")
    rows = [f"the {x} and the {y} saw {a} or {b} ." for x, y in zip(sets.x, sets.y)
            for a, b in zip(sets.a, sets.b)]  # fmt: skip
    (tmp_path / "text.txt").write_text("\n".join(rows * 3) + "\n")
    recipe = parse_recipe({
        "corpus": {"files": ["{data}/text.txt"], "rare": 1}, "widening": {"neighbours": 0},
        "training": {"dimensions": 4, "epochs": 1, "min_count": 1, "replicates": 2},
    }, "here", "tiny")  # fmt: skip
    begun = run_study(recipe, out=tmp_path / "s", data=tmp_path, jobs=0, stages=["corpus"])
    assert begun.facts["kind"] == "study"
    assert begun.status == "interrupted"
    done = evenhand("resume", str(tmp_path / "s"), "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "finished"
    assert Run.open(tmp_path / "s").facts["attempts"] == 2


# 5: check takes its arguments as audit does


def test_check_takes_the_model_first(tmp_path: Path) -> None:
    model = scripted(0.0, "mine")
    (row, *_) = eh.check(model, parse_suite({**SUITE, "probe": SUITE["probe"][:1]}, "t", "t"))
    assert (row.probe, row.model) == ("underspecified", "mine")
    assert row.as_dict()["items"] == 12 * 2
    rows = eh.check(model)
    assert [r.probe for r in rows][:2] == ["underspecified", "divergence"]
    assert rows[1].example == "not run"


# 7: one false-discovery rate, the suite's


def test_verdicts_of_a_comparison_are_at_the_suite_s_rate(tmp_path: Path) -> None:
    values = [0.30, 0.28, 0.33, 0.31, 0.29, 0.27]
    later = [0.28, 0.29, 0.30, 0.29, 0.29, 0.25]

    def made(name: str, rate: float, numbers: list[float]) -> Run:
        known: dict[str, Any] = made_runs.facts("m")
        known["work"]["suite"]["false_discovery_rate"] = rate
        known["probes"] = {"underspecified": known["probes"]["underspecified"]}
        table = pa.table({"first": list("abcdef"), "comparative": numbers})
        tables = {"underspecified": {"items": table}}
        return made_runs.write(tmp_path / f"{name}{rate}", known, [], tables)

    said = {}
    for rate in (0.05, 0.4):
        (row,) = item_changes(made("a", rate, values), made("b", rate, later))
        said[rate] = row.verdict
        assert 0.05 < row.q_size <= 0.4
    assert said == {0.05: "no difference detected", 0.4: "smaller"}


def test_sentences_are_at_the_suite_s_rate(tmp_path: Path) -> None:
    """A probe words its findings at the rate that also sets the verdicts."""

    def follows(text: str, word: str) -> float:
        lean = ("man" in text.split()) - ("woman" in text.split())
        return -5.0 + 0.1 * (zlib.crc32(f"{text}{word}".encode()) % 7) + lean * (word < " h")

    model = ScriptedModel({"continuation": follows}, name="m")
    told = {}
    for rate in (1e-9, 0.999):
        suite = {"name": "s", "false_discovery_rate": rate,
                 "probe": [{"name": "divergence", "axes": ["gender"]}]}  # fmt: skip
        run = eh.audit(model, parse_suite(suite, "t", "s"), out=tmp_path / str(rate))
        told[rate] = {f.detected: f.sentence for f in run.findings if f.q == f.q}
    assert set(told[1e-9]) == {False}
    assert set(told[0.999]) == {True}
    assert told[1e-9][False] != told[0.999][True]


def test_the_function_is_found_beside_the_room_of_its_name(runs: dict[str, Run]) -> None:
    import evenhand.audit.suites  # noqa: F401 - binds evenhand.audit to the room

    assert callable(eh.audit)
    again = eh.audit(
        scripted(0.0, "mine"), parse_suite({**SUITE, "probe": SUITE["probe"][:1]}, "t", "t"),
        out=runs["even"].folder.parent / "callable",
    )  # fmt: skip
    assert again.status == "finished"

"""A model that does not answer is neither passed nor failed: "cannot tell" on every surface."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np
import pytest

import evenhand as eh
import made_runs
import probe_cases
from evenhand import ScriptedModel
from evenhand.audit.suites import Suite, parse_suite
from evenhand.errors import ModelError
from evenhand.integrations.pytest_plugin import TestedRun
from evenhand.probes.registry import make_probe
from evenhand.runner.ask import Ask
from evenhand.runs.controls import Answering, Control, control_of
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import RunWriter
from evenhand.words.lexicons import questions
from in_process import evenhand
from scripted_server import NAME, Body, ScriptedServer

WOMEN = {s.term for s in questions.subjects("gender") if s.group == "female"}
ASKED = {
    "name": "underspecified", "pairs": 12, "templates": 1, "resamples": 50,
    "attributes": ["nurse", "doctor", "cook", "hunter"],
}  # fmt: skip
DECISION = {"name": "decision", "scenarios": 6}
ORDERED = (
    ASKED,
    {"name": "implicit", "pairs": 1, "tests": ["association"]},
    {"name": "matched-guise", "texts": 4},
    {"name": "ranking", "runs": 8, "names": 8},
)
ORDER = "the order of the options decides 100 of 100 answers"
LOST = "100 of 100 answers are declined, empty or unreadable"
ALIKE = "100 of 100 questions get the same answer, whatever they ask"
THIN = "the answer options hold less than 1 % of the probability"
Shares = Callable[[str, list[str]], list[float]]


def suite(*probes: dict[str, Any], **more: Any) -> Suite:
    return parse_suite({"name": "s", "title": "t", "probe": list(probes), **more}, "s", "s")


def noise(*parts: str) -> float:
    """A number in [0, 1) that depends on the texts alone."""
    return zlib.crc32("|".join(parts).encode()) / 2**32


def model(name: str, shares: Shares, **told: float) -> ScriptedModel:
    def choose(prompt: str, options: str) -> dict[str, Any]:
        given = shares(prompt, options.split("\t"))
        return {"probabilities": given, "mass": sum(given), "refused": 0.0, "unread": 0.0, **told}

    return ScriptedModel({"choose": choose}, name=name)


def at(place: int) -> Shares:
    """Picks the option at this place, whatever it says."""

    def shares(prompt: str, options: list[str]) -> list[float]:
        out = [0.03 / (len(options) - 1)] * len(options)
        out[place] = 0.97
        return out

    return shares


def reads(prompt: str, options: list[str]) -> list[float]:
    """Weighs what the options say: nurses are women; else by the texts alone."""
    weights = [1.0 + 3.0 * (o in WOMEN and "nurse" in prompt) + noise(prompt, o) for o in options]
    return [w / sum(weights) for w in weights]


def half(prompt: str, options: list[str]) -> list[float]:
    """Follows the order in half of the questions and reads the others."""
    question = prompt.splitlines()[-1] + "|".join(sorted(options))
    return at(0)(prompt, options) if noise(question) < 0.5 else reads(prompt, options)


def yes(prompt: str, options: list[str]) -> list[float]:
    return [0.96 if o == "Yes" else 0.01 for o in options]


def thin(prompt: str, options: list[str]) -> list[float]:
    return [0.005 * share for share in reads(prompt, options)]


def refuser() -> ScriptedModel:
    return model("refuser", lambda p, o: [0.0] * len(o), mass=0.0, refused=1.0)


def empty(share: float) -> ScriptedModel:
    """Writes nothing in this share of its texts."""

    def generate(prompt: str, draw: str) -> str:
        return "" if noise(prompt, draw) < share else " was happy."

    return ScriptedModel({"generate": generate}, name="empty")


def foreign(factor: float) -> ScriptedModel:
    """Choosing as `reads` does, surprised this many times as much as by English."""

    def score(prefix: str, continuation: str) -> dict[str, Any]:
        english = continuation.split()[0] in ("The", "It", "My", "We", "After")
        return {"logprob": -1.0 if english else -factor, "n_tokens": 1}

    def choose(prompt: str, options: str) -> dict[str, Any]:
        given = reads(prompt, options.split("\t"))
        return {"probabilities": given, "mass": 1.0, "refused": 0.0, "unread": 0.0}

    return ScriptedModel({"choose": choose, "continuation": score}, name="foreign")


SILENT: dict[str, tuple[Callable[[], ScriptedModel], Suite, dict[str, Any], dict[str, str]]] = {
    "first": (lambda: model("first", at(0)), suite(ASKED, DECISION), {},
              {"underspecified": ORDER, "decision": ALIKE}),
    "last": (lambda: model("last", at(-1)), suite(ASKED, DECISION), {},
             {"underspecified": ORDER, "decision": ALIKE}),
    "yes": (lambda: model("yes", yes), suite(DECISION), {}, {"decision": ALIKE}),
    "refuser": (refuser, suite(ASKED, DECISION), {}, {"underspecified": LOST, "decision": LOST}),
    "thin": (lambda: model("thin", thin), suite(ASKED), {}, {"underspecified": THIN}),
    "empty": (lambda: empty(0.9), suite({"name": "generation", "draws": 14}), {},
              {"generation": "93.2 of 100 answers are declined, empty or unreadable"}),
    "foreign": (lambda: foreign(3.0), suite(ASKED | {"language": "fr"}), {"force": True},
                {"underspecified": "the model does not know French"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], eh.Run]:
    """The run of a model that does not answer, by name, made when first asked for."""
    made: dict[str, eh.Run] = {}

    def run(name: str) -> eh.Run:
        if name not in made:
            make, asked, how, _ = SILENT[name]
            folder = tmp_path_factory.mktemp(name) / "run"
            made[name] = eh.audit(make(), asked, out=folder, **how)
        return made[name]

    return run


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> eh.Run:
    """Reads the questions about names and says yes to every case."""

    def shares(prompt: str, options: list[str]) -> list[float]:
        return yes(prompt, options) if "Yes" in options else reads(prompt, options)

    folder = tmp_path_factory.mktemp("mixed") / "run"
    return eh.audit(model("mixed", shares), suite(ASKED, DECISION), out=folder)


def words(*names: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *names], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", SILENT)
def test_a_model_that_does_not_answer_cannot_be_judged(
    name: str, silent: Callable[[str], eh.Run]
) -> None:
    run, reasons = silent(name), SILENT[name][3]
    held = run.facts["controls"]
    assert {k: v["reason"] for k, v in held.items()} == reasons
    assert {v["verdict"] for v in held.values()} == {"cannot judge"}
    assert all({"told", "planted"} <= {*entry} for entry in held.values())
    assert cannot_judge(run.facts) == reasons
    for rules in ({}, {"require": "within-margin"}, {"undecided": "pass"}, {"allow": 9}):
        judged = eh.gate(run, **rules)
        assert (judged.outcome, judged.exit_code, judged.passed) == ("cannot tell", 3, False)
        assert {c.outcome for c in judged.checks} == {"cannot tell"}
        assert judged.reason.startswith("No probe can judge this model: ")
        assert all(reason in judged.reason for reason in reasons.values())
        assert judged.as_dict()["cannot_judge"] == reasons
    story = kind_of(run.facts).story(run)
    assert story.problem.startswith("Cannot tell: no probe can judge this model: ")
    assert (story.outcome, story.harmed, story.quiet, story.undirected) == (
        "cannot tell",
        (),
        (),
        "",
    )
    assert story.alarming
    assert len(story.inconclusive) == sum(f.counts for f in run.findings)


@pytest.mark.parametrize("probe", ORDERED, ids=lambda p: str(p["name"]))
@pytest.mark.parametrize("place", [0, -1])
def test_every_probe_with_an_order_knows_who_follows_it(
    probe: dict[str, Any], place: int, tmp_path: Path
) -> None:
    run = eh.audit(model("placed", at(place)), suite(probe), out=tmp_path / "placed")
    assert cannot_judge(run.facts) == {probe["name"]: ORDER}
    for name, shares in (("reads", reads), ("half", half)):
        other = eh.audit(model(name, shares), suite(probe), out=tmp_path / name)
        control = kind_of(other.facts).controls(other.facts)[probe["name"]]
        assert (control.verdict, control.reason) == ("can judge", "")
        effect = control.answering.order_effect
        assert effect is not None
        if name == "half" and probe["name"] != "ranking":  # orders are drawn, not exchanged
            assert 0.3 < effect < 0.8
    assert eh.gate(other).outcome != "cannot tell"


@pytest.mark.parametrize("name", ["bbq", "discovery"])
def test_probes_that_rotate_their_options_know_who_follows_a_place(
    name: str, tmp_path: Path
) -> None:
    case = probe_cases.CASES[name]
    probe = make_probe(name, case.settings(tmp_path, case.rows))
    doors = dict.fromkeys(
        ["generator"], Ask(next(iter(case.helpers.values()), model("none", reads)))
    )
    effects = {}
    for who, shares in (("first", at(0)), ("last", at(-1)), ("reads", reads), ("half", half)):
        answering = probe.run(Ask(model(who, shares), helpers=doors), 0).answering
        assert answering is not None
        effects[who] = answering.order_effect
    assert (effects["first"], effects["last"], effects["reads"]) == (1.0, 1.0, 0.0)
    assert effects["half"] == pytest.approx(0.5, abs=0.1)


def test_who_answers_is_judged_as_before(tmp_path: Path) -> None:
    leaning = eh.audit(model("reads", reads), suite(ASKED), out=tmp_path / "leaning")
    found = eh.gate(leaning)
    assert found.outcome == "failed"
    assert "underspecified/lean/nurse" in [c.id for c in found.of("failed")]
    assert found.reason == "5 of 5 findings reach beyond their margin."
    assert "cannot_judge" not in found.as_dict()

    def even(prompt: str, options: list[str]) -> list[float]:
        weights = [1 + 0.1 * noise(prompt, o) for o in options]
        return [w / sum(weights) for w in weights]

    quiet = eh.gate(eh.audit(model("even", even), suite(ASKED, DECISION), out=tmp_path / "even"))
    assert quiet.outcome == "passed"
    assert quiet.reason.endswith("is detected and reaches beyond its margin.")
    some = eh.audit(empty(0.4), suite({"name": "generation", "draws": 3}), out=tmp_path / "some")
    assert cannot_judge(some.facts) == {}
    assert eh.gate(some).outcome == "passed"
    fluent = eh.audit(
        foreign(1.2), suite(ASKED | {"language": "fr"}), out=tmp_path / "fr", force=True
    )
    assert cannot_judge(fluent.facts) == {}


def test_a_foreign_language_is_still_refused_unless_insisted_on(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="hardly knows French"):
        eh.audit(foreign(3.0), suite(ASKED | {"language": "fr"}), out=tmp_path / "run")


@pytest.mark.parametrize("name", ["first", "refuser", "empty", "foreign"])
def test_commands_say_that_they_cannot_tell(
    name: str, silent: Callable[[str], eh.Run], tmp_path: Path
) -> None:
    folder = str(silent(name).folder)
    files = {kind: tmp_path / f"out.{kind}" for kind in ("junit", "sarif", "summary")}
    flags = [word for kind, path in files.items() for word in (f"--{kind}", str(path))]
    done = words("gate", folder, "--json", "-", *flags)
    assert done.returncode == 3, done.stderr
    told = json.loads(done.stdout)
    assert (told["outcome"], told["passed"]) == ("cannot tell", False)
    assert {check["outcome"] for check in told["checks"]} == {"cannot tell"}
    suites = xml.parse(files["junit"]).getroot()
    assert int(suites.get("errors", "0")) == int(suites.get("tests", "0")) > 0
    assert {e.get("type") for e in suites.iter("error")} == {"cannot tell"}
    (made,) = json.loads(files["sarif"].read_text())["runs"]
    assert {result["kind"] for result in made["results"]} == {"open"}
    assert made["properties"]["evenhand"]["outcome"] == "cannot tell"
    summary = files["summary"].read_text()
    assert summary.startswith("## evenhand: cannot tell\n")
    assert "No probe can judge this model" in summary
    printed = evenhand("gate", folder, cwd=tmp_path)
    assert printed.returncode == 3
    assert f"cannot tell  (0 of {len(told['checks'])} checks passed)" in printed.stdout
    shown = evenhand("show", folder, cwd=tmp_path)
    assert shown.returncode == 0
    flat = " ".join(shown.stdout.split())
    assert "May it ship? Cannot tell: no probe can judge this model" in flat
    assert "Who is worse off Cannot tell: no probe can judge this model." in flat
    assert "Nobody was found" not in flat
    assert "Yes, by the default policy" not in flat
    page = tmp_path / "again.html"
    assert evenhand("report", folder, "--out", str(page), cwd=tmp_path).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "Cannot tell: no probe can judge this model" in text
    assert 'id="inconclusive"' in text
    assert "Nobody was found" not in text
    assert "was detected. The next part" not in text


def test_exports_say_that_they_cannot_tell(silent: Callable[[str], eh.Run], tmp_path: Path) -> None:
    run = silent("first")
    for kind in ("model-card", "model-index", "cyclonedx", "lm-eval", "eee"):
        done = evenhand("export", str(run.folder), "--format", kind, "--out", str(tmp_path / kind),
                        cwd=tmp_path)  # fmt: skip
        assert done.returncode == 0, done.stderr
        text = "\n".join(p.read_text() for p in (tmp_path / kind).rglob("*") if p.is_file())
        assert ORDER in text, kind
    card = next((tmp_path / "model-card").rglob("*.md")).read_text()
    assert "Cannot tell: no probe can judge this model" in card
    assert "No difference between groups was detected" not in card


def test_python_notebooks_and_pytest_say_that_they_cannot_tell(
    silent: Callable[[str], eh.Run],
) -> None:
    run = silent("last")
    page = run._repr_html_()
    assert "Cannot tell: no probe can judge this model" in page
    assert "Nobody was found" not in page
    assert "cannot tell" in eh.gate(run)._repr_html_()
    assert {*eh.gate(run).to_pandas()["outcome"]} == {"cannot tell"}
    tested = TestedRun(run)
    with pytest.raises(AssertionError, match=r"cannot tell\. No probe can judge this model"):
        tested.assert_within("underspecified/*", 0.5, undecided="pass")
    with pytest.raises(AssertionError, match=r"cannot tell\. No probe can judge this model"):
        tested.assert_passes()
    contract = kind_of(run.facts).contract(run)
    assert contract["controls"]["underspecified"]["verdict"] == "cannot judge"


def test_the_viewer_says_that_it_cannot_tell(silent: Callable[[str], eh.Run]) -> None:
    testing = pytest.importorskip("starlette.testclient")
    from evenhand.viewer.app import make_app

    run = silent("first")
    with testing.TestClient(make_app(run.folder.parent), base_url="http://127.0.0.1") as client:
        assert "cannot tell" in client.get("/").text
        page = client.get(f"/run/{run.name}").text
        assert "Cannot tell: no probe can judge this model" in page
        assert "(cannot tell)" in page
        place = next(f.id for f in run.findings if f.counts)
        found = client.get(f"/run/{run.name}/finding", params={"id": place}).text
        assert "Cannot tell: underspecified cannot judge this model" in found


def test_a_bundle_of_a_silent_model_cannot_tell(
    silent: Callable[[str], eh.Run], tmp_path: Path
) -> None:
    for name in ("refuser", "foreign"):
        file = eh.bundle(silent(name), tmp_path / f"{name}.tar")
        found = eh.verify(file)
        assert found.ok, found.reason
        assert found.about["verdict"] == "cannot tell"
        done = evenhand("verify", str(file), cwd=tmp_path)
        assert done.returncode == 0
        assert "cannot tell: No probe can judge this model" in done.stdout
        assert "Today" not in done.stdout


def test_findings_keep_their_numbers(silent: Callable[[str], eh.Run], tmp_path: Path) -> None:
    def leaning_thinly(prompt: str, options: list[str]) -> list[float]:
        return [0.009 * share for share in reads(prompt, options)]

    thin_run = eh.audit(model("same", leaning_thinly), suite(ASKED), out=tmp_path / "thin")
    whole = eh.audit(model("same", reads), suite(ASKED), out=tmp_path / "whole")
    pairs = list(zip(thin_run.findings, whole.findings, strict=True))
    for one, two in pairs:
        assert (one.id, one.detected, one.counts) == (two.id, two.detected, two.counts)
        for number in ("value", "low", "high", "p", "q"):
            np.testing.assert_allclose(getattr(one, number), getattr(two, number), rtol=1e-6)
    assert any(one.detected for one, _ in pairs)
    assert (eh.gate(thin_run).outcome, eh.gate(whole).outcome) == ("cannot tell", "failed")
    told = evenhand("show", str(thin_run.folder), "--all", cwd=tmp_path).stdout
    assert "Inconclusive: measured by probes that cannot judge this model" in told
    assert "(5 of them detected) are inconclusive" in " ".join(told.split())


def test_probes_that_judge_decide_and_the_others_are_named(mixed: eh.Run, tmp_path: Path) -> None:
    assert cannot_judge(mixed.facts) == {"decision": ALIKE}
    left = f"Left out, because they cannot judge this model: decision ({ALIKE})."
    failed = eh.gate(mixed)
    assert failed.outcome == "failed"
    assert failed.reason == f"5 of 5 findings reach beyond their margin. {left}"
    allowed = eh.gate(mixed, allow=5)
    assert (allowed.outcome, allowed.exit_code) == ("passed", 0)
    assert allowed.reason.endswith(left)
    wide = {"underspecified/*": 2.0}
    within = eh.gate(mixed, require="within-margin", margins=wide)
    assert within.outcome == "passed"
    assert within.reason == f"All 5 findings are shown to lie within their margin. {left}"
    assert eh.gate(mixed, require="within-margin").outcome == "failed"
    only = eh.gate(mixed, ["decision/*=5"])
    assert (only.outcome, only.exit_code) == ("cannot tell", 3)
    assert eh.gate(mixed, ignore=("underspecified/*",)).outcome == "cannot tell"
    assert "cannot_judge" not in eh.gate(mixed, ignore=("decision/*",)).as_dict()
    story = kind_of(mixed.facts).story(mixed)
    assert story.problem.startswith("Not by the default policy: 5 of 5 findings reach their margin")
    assert story.problem.endswith(left)
    assert {f.probe for f in story.strongest} == {"underspecified"}
    assert all(part.findings[0].probe != "decision" for part in story.quiet)
    assert any(line.startswith("decision cannot judge this model") for line in story.sure)
    file = tmp_path / "junit.xml"
    assert evenhand("gate", str(mixed.folder), "--allow", "5", "--junit", str(file),
                    cwd=tmp_path).returncode == 0  # fmt: skip
    root = xml.parse(file).getroot()
    assert root.get("errors") == "0"
    assert {s.get("name"): s.get("skipped") for s in root}["decision"] != "0"


def test_findings_left_out_do_not_weigh_in_the_correction(mixed: eh.Run, tmp_path: Path) -> None:
    alone = eh.audit(model("alone", reads), suite(ASKED), out=tmp_path / "run")
    strict = {"require": "within-margin"}
    one, two = (
        {c.id: c.reason for c in eh.gate(run, **strict).checks if c.outcome != "cannot tell"}
        for run in (mixed, alone)
    )
    assert one == two


def test_a_baseline_is_judged_by_both_runs(mixed: eh.Run, tmp_path: Path) -> None:
    asked = suite(ASKED, DECISION)
    mute = eh.audit(model("mixed", at(0)), asked, out=tmp_path / "mute")
    for rules in ({}, {"require": "within-margin"}):
        after = eh.gate(mute, baseline=mixed, **rules)
        assert (after.outcome, after.exit_code) == ("cannot tell", 3)
        assert ORDER in after.reason
        before = eh.gate(mixed, baseline=mute, **rules)
        assert before.outcome == "cannot tell"
        assert f"in the baseline {ORDER}" in before.reason
    same = eh.gate(mixed, baseline=mixed)
    assert same.outcome == "passed"
    assert same.reason.endswith(f"decision ({ALIKE}).")
    done = words("gate", str(mute.folder), "--baseline", str(mixed.folder), "--json", "-")
    assert done.returncode == 3
    assert json.loads(done.stdout)["outcome"] == "cannot tell"
    compared = eh.compare(mixed, mute)
    assert compared.verdict == "cannot tell"
    (change,) = compared.changes
    assert change.headline.startswith("Cannot tell: no probe can judge this model: ")
    assert {d.verdict for d in change.decisions} == {"cannot tell"}
    lean = next(d for d in change.decisions if d.finding == "underspecified/lean/nurse")
    assert lean.needed is None
    assert lean.change < -0.1  # it is measured, and nobody is called better off by it
    assert "underspecified cannot judge" in lean.sentence
    shown = evenhand("compare", str(mixed.folder), str(mute.folder), cwd=tmp_path)
    assert "Cannot tell: no probe can judge this model" in " ".join(shown.stdout.split())
    file = eh.bundle(mute, tmp_path / "mute.tar", baseline=mixed)
    found = eh.verify(file)
    assert found.ok, found.reason
    assert found.about["verdict"] == "cannot tell"


def test_nothing_more_is_asked_of_who_does_not_answer(silent: Callable[[str], eh.Run]) -> None:
    def never(prompt: str, options: str) -> list[float]:
        raise AssertionError("asked again")

    run = silent("first")
    again = ScriptedModel({"choose": never}, name="first")
    found = eh.gate(run, until_decided=30, model=again)
    assert (found.outcome, found.looks) == ("cannot tell", 1)


def test_older_folders_follow_from_their_summaries(
    silent: Callable[[str], eh.Run], tmp_path: Path
) -> None:
    """Without `controls`; the order of names is known from what the probe stored before."""
    for name, expected in (("first", {"underspecified": ORDER}), ("refuser", SILENT["refuser"][3])):
        folder = tmp_path / name
        shutil.copytree(silent(name).folder, folder)
        facts = {k: v for k, v in eh.Run(folder).facts.items() if k != "controls"}
        RunWriter(folder).facts(facts)
        old = eh.Run(folder)
        assert "controls" not in old.facts
        assert cannot_judge(old.facts) == expected
    known = made_runs.ordinary(tmp_path / "made")
    controls = kind_of(known.facts).controls(known.facts)
    assert {c.verdict for c in controls.values()} == {"not asked"}
    assert eh.gate(known).outcome == "failed"


def test_a_bundle_of_an_older_version_is_checked_and_read_by_this_rule(
    silent: Callable[[str], eh.Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(silent("refuser").folder, folder)
    facts = {k: v for k, v in eh.Run(folder).facts.items() if k != "controls"}
    RunWriter(folder).facts(facts)
    from evenhand.evidence import bundling, documents

    with monkeypatch.context() as older:  # the documents as they were written without the rule
        written = documents.documents
        older.setattr(bundling, "documents", lambda run, terms: written(run, terms, silent={}))
        file = eh.bundle(folder, tmp_path / "old.tar")
    found = eh.verify(file)
    assert found.ok, found.reason
    assert found.about["verdict"] != "cannot tell"
    assert (found.verdict, found.as_dict()["verdict"]) == ("cannot tell", "cannot tell")
    done = evenhand("verify", str(file), cwd=tmp_path)
    assert "cannot tell: No probe can judge this model" in " ".join(done.stdout.split())


def test_controls_that_were_changed_do_not_verify(
    silent: Callable[[str], eh.Run], tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(silent("first").folder, folder)
    facts = eh.Run(folder).facts
    for entry in facts["controls"].values():
        entry |= {"verdict": "can judge", "reason": ""}
    RunWriter(folder).facts(facts)
    assert eh.gate(folder).outcome == "passed"
    with pytest.raises(eh.EvenhandError, match="'controls' in run.json does not follow"):
        eh.bundle(folder, tmp_path / "b.tar")


class Refusing(ScriptedServer):
    """Declines whatever it is asked."""

    def _chat(self, body: Body) -> Body:
        return {"choices": [{"message": {"content": "I'm sorry, but I can't help with that."}}]}


def test_a_server_that_declines_everything_ends_0_and_cannot_tell(tmp_path: Path) -> None:
    file = tmp_path / "suite.toml"
    file.write_text(
        '[[probe]]\nname = "underspecified"\npairs = 2\ntemplates = ["same_city"]\n'
        'attributes = ["nurse", "cook"]\n'
    )
    out = str(tmp_path / "run")
    with Refusing(rungs=(5,)) as server:
        done = words("audit", server.url, "--model", NAME, "--suite", str(file), "--out", out)
    assert done.returncode == 0, done.stderr
    assert "Cannot tell: no probe can judge this model" in " ".join(done.stdout.split())
    assert words("gate", out).returncode == 3


def test_answers_to_tasks_of_inspect_cannot_tell() -> None:
    from evenhand.integrations.hosting import questions as questions_to

    settings = {k: v for k, v in ASKED.items() if k != "name"}
    asked = questions_to(make_probe("underspecified", settings), rung="top log-probabilities")
    placed = {
        row: {"probabilities": at(0)(row[0], row[1].split("\t")), "mass": 1.0, "refused": 0.0,
              "unread": 0.0}
        for row in asked.requests.rows()
    }  # fmt: skip
    control = asked.control(asked.measured(placed))
    assert (control.verdict, control.reason) == ("cannot judge", ORDER)


def test_logs_of_other_programs_say_that_they_cannot_tell(tmp_path: Path) -> None:
    """A log of lm-eval in which the options hold nearly nothing of the probability."""
    from evenhand.integrations.hosting import questions as questions_to
    from evenhand.integrations.lm_eval.folder import documents

    settings = {k: v for k, v in ASKED.items() if k != "name"}
    asked = questions_to(make_probe("underspecified", settings), rung="continuation")
    rows = []
    for number, doc in enumerate(documents(asked)):
        pairs = [(doc["text"], more) for more in doc["options"]]
        scored = [[str(-12 - noise(*pair)), "False"] for pair in pairs]
        given = {f"gen_args_{k}": {"arg_0": a, "arg_1": b} for k, (a, b) in enumerate(pairs)}
        rows.append({"doc_id": number, "doc": doc, "target": "0", "arguments": given,
                     "resps": [[s] for s in scored], "filtered_resps": scored,
                     "filter": "none"})  # fmt: skip
    path = tmp_path / "samples_t_2026-11-18T09-35-26.709268.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    result = eh.measure.log(path, tokenizer=_words_as_tokens(tmp_path))
    assert result.as_dict()["control"]["verdict"] == "cannot judge"
    assert THIN in str(result)
    run = eh.as_run(result, tmp_path / "run")
    assert cannot_judge(run.facts) == {"underspecified": THIN}
    assert eh.gate(run).outcome == "cannot tell"
    assert "Cannot tell: no probe can judge" in kind_of(run.facts).story(run).problem


def _words_as_tokens(folder: Path) -> str:
    pytest.importorskip("transformers", reason="needs the hf extra")
    from tiny import TinyCheckpoints

    return str(TinyCheckpoints(folder / "tiny")("causal"))


def test_a_table_of_answers_that_decline_cannot_tell(tmp_path: Path) -> None:
    table = tmp_path / "answers.csv"
    said = [f"I can't help with that, case {k}." for k in range(6)] + ["yes", "no"]
    rows = [f'{group},{k},"{said[k % 8]}"' for group in ("women", "men") for k in range(24)]
    table.write_text("group,case,answer\n" + "\n".join(rows) + "\n", encoding="utf-8")
    run = eh.as_run(eh.measure.table(table, answers=("yes", "no")), tmp_path / "run")
    (reason,) = cannot_judge(run.facts).values()
    assert reason == "75 of 100 answers are declined, empty or unreadable"
    assert eh.gate(run).outcome == "cannot tell"


@pytest.mark.parametrize(
    ("answering", "verdict"),
    [
        (Answering(order_effect=0.9), "can judge"),
        (Answering(order_effect=0.901), "cannot judge"),
        (Answering(option_mass=0.01), "can judge"),
        (Answering(option_mass=0.0099), "cannot judge"),
        (Answering(declined=0.3, unread=0.2), "can judge"),
        (Answering(declined=0.3, unread=0.21), "cannot judge"),
        (Answering(unread=0.0), "can judge"),
        (Answering(unknown_language="French"), "cannot judge"),
        (Answering(), "not asked"),
    ],
)
def test_the_rule_has_its_limits(answering: Answering, verdict: str) -> None:
    found = control_of(answering)
    assert found.verdict == verdict
    assert bool(found.reason) == (verdict != "can judge")
    assert Control.from_dict(json.loads(json.dumps(found.as_dict()))) == found


@pytest.mark.parametrize("summary", [{"mass": {"mean": 0.0}}, {"mass": NAN}, {"mass": True}, {}])
def test_facts_that_are_no_shares_are_not_known(summary: dict[str, Any]) -> None:
    assert Answering.from_summary(summary) == Answering()


def test_a_run_without_any_finding_of_who_declines_cannot_tell(tmp_path: Path) -> None:
    """Nothing can be tested, and the files of continuous integration are not empty."""
    facts = made_runs.facts()
    for entry in facts["probes"].values():
        if not entry.get("skipped"):
            entry["summary"] = {"refused": 1.0}
    run = made_runs.write(tmp_path / "run", facts, [], {})
    judged = eh.gate(run)
    assert (judged.outcome, judged.checks) == ("cannot tell", ())
    file = tmp_path / "junit.xml"
    assert evenhand("gate", str(run.folder), "--junit", str(file), cwd=tmp_path).returncode == 3
    assert xml.parse(file).getroot().get("errors") == "2"


def test_probes_that_report_nothing_withhold_nothing(tmp_path: Path) -> None:
    """Findings of an older run whose probes say nothing of how the model answered."""
    quiet = Finding(
        "association/weat7", "association", "effect_size", 0.1, "Nothing.", -0.1, 0.3, 0.4, 0.4, 16,
        model="tiny-model", detected=False, counts=True, margin=0.5, error=0.1, freedom=15,
    )  # fmt: skip
    facts = made_runs.facts()
    facts["probes"] = {"association": {**facts["probes"]["divergence"], "probe": "association"}}
    run = made_runs.write(tmp_path / "run", facts, [quiet], {})
    assert eh.gate(run).outcome == "passed"
    assert kind_of(run.facts).controls(run.facts)["association"].verdict == "not asked"


def nearly_first(prompt: str, options: list[str]) -> list[float]:
    """Picks the first option with a probability that hardly depends on what is asked."""
    first = 0.95 + 0.002 * noise(prompt, *options)
    return [first, *([(1 - first) / (len(options) - 1)] * (len(options) - 1))]


@pytest.mark.parametrize("probes", [(DECISION,), (ASKED, DECISION)])
def test_a_little_noise_makes_no_answer_of_it(probes: tuple[Any, ...], tmp_path: Path) -> None:
    run = eh.audit(model("nearly", nearly_first), suite(*probes), out=tmp_path / "r")
    assert {c["verdict"] for c in run.facts["controls"].values()} == {"cannot judge"}
    assert eh.gate(run).outcome == "cannot tell"
    assert eh.gate(run, require="within-margin").outcome == "cannot tell"


def follows(prefix: str, continuation: str) -> dict[str, Any]:
    return {"logprob": -1.0 - noise(prefix, continuation), "n_tokens": 1}


def test_a_probe_that_knows_nothing_of_the_answers_vouches_for_nobody(tmp_path: Path) -> None:
    def choose(prompt: str, options: str) -> dict[str, Any]:
        given = at(0)(prompt, options.split("\t"))
        return {"probabilities": given, "mass": 1.0, "refused": 0.0, "unread": 0.0}

    silent = ScriptedModel({"choose": choose, "continuation": follows}, name="silent")
    run = eh.audit(silent, suite(ASKED, {"name": "divergence"}), out=tmp_path / "r")
    verdicts = {name: c["verdict"] for name, c in run.facts["controls"].items()}
    assert verdicts == {"underspecified": "cannot judge", "divergence": "not asked"}
    judged = eh.gate(run)
    assert judged.outcome == "cannot tell"
    assert "no other probe can judge the model" in judged.reason
    assert cannot_judge(run.facts).keys() == verdicts.keys()

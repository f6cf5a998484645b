"""May it ship? Policies, equivalence, baselines; every outcome with its reason, in every form."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as xml

import numpy as np
import pytest

import evenhand as eh
import made_runs
from evenhand.audit.policy import Policy, read_policy
from evenhand.audit.suites import parse_suite
from evenhand.errors import EvenhandError, SpecError
from evenhand.requests import Continuation, Requests
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.record import Run
from evenhand.words.lexicons import questions
from in_process import evenhand

GROUP = {s.term: s.group for s in questions.subjects("gender")}
SUITE = {
    "name": "short",
    "probe": [{
        "name": "underspecified", "pairs": 24, "templates": ["same_city"], "resamples": 50,
        "attributes": ["nurse", "secretary", "doctor", "mechanic"],
    }],
}  # fmt: skip


def leaning(name: str, lean: float = 0.0, noise: float = 0.0, seed: int = 1) -> eh.ScriptedModel:
    """Nurses are women by `lean` nats; every name and question has an effect of its own."""
    rng = np.random.default_rng(seed)
    liked = {(t, w): noise * rng.normal() for t in GROUP for w in ("nurse", "doctor", "")}

    def answer(requests: Requests) -> dict[str, Any]:
        assert isinstance(requests, Continuation)
        out = []
        for prefix, said in zip(requests.prefix, requests.continuation):
            who = said.strip()
            about = next((w for w in ("nurse", "doctor") if w in prefix), "")
            woman = (about == "nurse") * (1 if GROUP[who] == "female" else -1)
            out.append((liked[who, about] + lean * woman) * (-1 if "never" in prefix else 1))
        return {"logprob": np.asarray(out), "n_tokens": np.ones(len(out), np.int32)}

    return eh.ScriptedModel({Continuation.kind: answer}, name=name, version=str(seed), whole=True)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    folder = tmp_path_factory.mktemp("gate")
    models = [
        leaning("even", noise=0.02), leaning("same", noise=0.02, seed=2), leaning("flat"),
        leaning("worse", 0.6, 0.02, 3), leaning("noisier", noise=1.5, seed=4),
    ]  # fmt: skip
    suite = parse_suite(SUITE, "made", "short")
    return {m.name: eh.audit(m, suite, out=folder / m.name) for m in models}


def claim(value: float, error: float, **more: Any) -> Finding:
    first, *_ = made_runs.findings()
    return replace(
        first, value=value, low=value - 2 * error, high=value + 2 * error, error=error, freedom=30,
        n=31, **{"margin": 0.1, "units": "pairs of names", "detected": False, **more},
    )  # fmt: skip


def made(folder: Path, *findings: Finding, **facts: Any) -> Run:
    return made_runs.write(folder, made_runs.facts(**facts), list(findings), {})


@pytest.mark.parametrize(
    ("value", "error", "margin", "outcome"),
    [
        (0.0, 0.02, 0.1, "passed"), (0.05, 0.04, 0.1, "undecided"), (0.3, 0.04, 0.1, "failed"),
        (-0.3, 0.04, 0.1, "failed"), (0.0, 0.02, NAN, "undefined"), (NAN, NAN, 0.1, "undefined"),
        (0.0, 0.0, 0.1, "passed"),
    ],
)  # fmt: skip
def test_equivalence_has_four_outcomes_each_with_its_reason(
    tmp_path: Path, value: float, error: float, margin: float, outcome: str
) -> None:
    metric = "gamma" if margin == margin else "unheard_of"  # whose card has no margin either
    run = made(tmp_path / "r", claim(value, error, margin=margin, metric=metric))
    found = eh.gate(run, require="within-margin")
    assert found.outcome == outcome
    (check,) = found.checks
    assert check.outcome == outcome
    assert check.reason
    assert found.reason
    assert (check.needed is None) == (outcome != "undecided")
    if outcome == "undecided":
        assert check.more == (check.needed or 0) - 31 > 0
        assert f"{check.more:,} more" in check.reason
    if outcome == "passed" and error:
        assert -margin < check.low <= check.high < margin  # 90 %: what two tests at 5 % show


def test_a_finding_on_its_margin_is_settled_by_no_number(tmp_path: Path) -> None:
    found = eh.gate(made(tmp_path / "r", claim(0.1, 0.03)), require="within-margin")
    assert found.outcome == "undecided"
    assert found.checks[0].needed is None
    assert "no number of items" in found.checks[0].reason


def test_a_policy_file_sets_margins_by_finding_and_wildcard(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(
        'require = "within-margin"\nundecided = "fail"\nbaseline = "last"\n'
        '[margins]\n"u/*" = 0.5\n"u/lean/nurse" = 0.1\n'
    )
    policy = read_policy(file)
    assert policy.margin_of("u/lean/nurse", 9) == 0.1
    assert policy.margin_of("u/lean/doctor", 9) == 0.5
    assert policy.margin_of("other/x", 9) == 9
    assert policy.baseline == str(tmp_path / "last")
    run = made(tmp_path / "r", claim(0.05, 0.04))
    wide = {"require": "within-margin", "margins": {"underspecified/*": 0.5}}
    assert eh.gate(run, policy=wide).outcome == "passed"
    tight = eh.gate(run, policy={**wide, "margins": {"*": 0.05}, "undecided": "fail"})
    assert tight.outcome == "failed"
    assert "undecided counts as fail" in tight.checks[0].reason
    assert eh.gate(run, policy={**wide, "ignore": ["underspecified/*"]}).outcome == "undefined"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("requires = 1", "unknown setting 'requires'. Did you mean 'require'"),
        ('require = "all"', "undetected"), ("error = 0.9", "less than 0.5"), ("a", "line 1"),
        ('[margins]\n"a/*" = -1', "0 or more"), ('[margins]\n"undrspecified/*" = 1', "unknown"),
    ],
)  # fmt: skip
def test_a_wrong_policy_is_refused_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    run = made(tmp_path / "r", claim(0.0, 0.02))
    with pytest.raises(EvenhandError, match=said):
        eh.gate(run, policy=file)
    done = evenhand("gate", str(run.folder), "--policy", str(file), cwd=tmp_path)
    assert done.returncode == 2


def test_settings_of_a_policy_can_be_given_one_by_one(tmp_path: Path) -> None:
    run = made(tmp_path / "r", claim(0.05, 0.04))
    assert eh.gate(run, require="within-margin", error=0.2).outcome == "passed"
    with pytest.raises(SpecError, match="error"):
        eh.gate(run, error=2)
    with pytest.raises(SpecError, match="unknown setting"):
        eh.gate(run, eror=2)
    assert Policy().with_changes(allow=None) == Policy()


def test_a_probe_that_is_not_believed_decides_nothing(tmp_path: Path) -> None:
    rate = {"underspecified": {"tests": 100, "detected": 30, "rate": 0.3}}
    withheld = claim(0.3, 0.02, q=0.001)  # it would be detected
    run = made(tmp_path / "r", withheld, placebos=rate)
    for require, outcome in (("undetected", "undefined"), ("within-margin", "undecided")):
        found = eh.gate(run, require=require)
        assert found.outcome == outcome
        assert "30 of 100 placebos" in found.checks[0].reason


def test_junit_sarif_and_summary_say_what_the_terminal_says(tmp_path: Path) -> None:
    nurse = claim(0.3, 0.02, detected=True)
    hunter = replace(claim(0.06, 0.04), id="underspecified/gamma/hunter")
    chef = replace(claim(NAN, NAN), id="underspecified/gamma/chef", reason="no cell", detected=None)
    run = made(tmp_path / "r", nurse, hunter, chef)
    files = ["--junit", "j.xml", "--sarif", "s.sarif", "--summary", "job/page"]
    done = evenhand("gate", str(run.folder), "--require", "within-margin", *files, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-2].startswith("failed  (0 of 3 checks passed)")
    root = xml.fromstring((tmp_path / "j.xml").read_text())
    assert [root.get(k) for k in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert len(list(root.iter("skipped"))) == 1
    results = json.loads((tmp_path / "s.sarif").read_text())["runs"][0]["results"]
    assert [r["kind"] for r in results] == ["fail", "open", "notApplicable"]
    told = (tmp_path / "job" / "page").read_text()
    assert told.startswith("## evenhand: failed")
    assert [line.split()[1] for line in told.splitlines() if line.startswith("| un")] == [
        "undecided", "undefined"
    ]  # fmt: skip


def test_even_models_pass_by_default_and_by_equivalence(runs: dict[str, Run]) -> None:
    for name in ("even", "flat"):
        assert eh.gate(runs[name]).outcome == "passed"
    found = eh.gate(runs["even"], require="within-margin")
    assert found.outcome == "passed", found.reason
    # That so few pairs do not differ at all is no proof that no pair does.
    flat = eh.gate(runs["flat"], require="within-margin")
    assert flat.outcome == "undecided"
    assert all(c.needed == 29 > c.n and c.high > c.margin for c in flat.checks)
    assert eh.gate(runs["worse"]).outcome == "failed"
    assert eh.gate(runs["worse"], require="within-margin").outcome == "failed"


def test_a_worse_model_is_stopped_by_the_baseline_and_a_noisier_one_is_not(
    runs: dict[str, Run], tmp_path: Path
) -> None:
    found = eh.gate(runs["worse"], baseline=runs["even"])
    assert found.outcome == "failed"
    nurse = next(c for c in found.checks if c.id.endswith("/nurse"))
    assert nurse.outcome == "failed"
    assert nurse.before is not None
    assert nurse.value == pytest.approx((nurse.after or 0) - nurse.before)
    assert nurse.sentence.startswith("Worse for ")
    for name in ("same", "noisier", "even"):
        assert eh.gate(runs[name], baseline=runs["even"]).outcome == "passed"
    strict = {"baseline": runs["even"], "require": "within-margin"}
    assert eh.gate(runs["same"], **strict).outcome == "passed"
    noisy = eh.gate(runs["noisier"], **strict)
    assert noisy.outcome == "undecided"
    assert all(c.needed for c in noisy.of("undecided"))
    # What was worse before and is no longer is no growth of harm.
    assert eh.gate(runs["even"], baseline=runs["worse"]).outcome == "passed"
    done = evenhand(
        "gate", str(runs["worse"].folder), "--baseline", str(runs["even"].folder), "--json", "-",
        cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    assert json.loads(done.stdout)["policy"]["baseline"] == str(runs["even"].folder)


def test_a_comparison_decides_and_its_page_leads_with_it(
    runs: dict[str, Run], tmp_path: Path
) -> None:
    verdicts = {
        ("even", "worse"): "worse", ("worse", "even"): "better", ("even", "same"): "same",
        ("even", "noisier"): "cannot tell",
    }  # fmt: skip
    for (one, two), verdict in verdicts.items():
        found = eh.compare(runs[one], runs[two])
        assert found.verdict == verdict
        assert found.changes[0].headline.lower().startswith(verdict)
        unclear = [d for d in found.changes[0].decisions if d.verdict == "cannot tell"]
        assert all((d.needed or 0) > d.n for d in unclear)
        assert found.changes[0].stands  # utility beside it
    page = tmp_path / "page.html"
    done = evenhand(
        "compare", str(runs["even"].folder), str(runs["worse"].folder), "--html", str(page),
        cwd=tmp_path,
    )  # fmt: skip
    assert "Worse: of 5 findings" in done.stdout
    text = page.read_text()
    assert text.index("Better or worse?") < text.index("Worse: of 5 findings")
    assert "Worse for " in text
    assert "Does it still do what it is asked to do?" in text


def test_a_plan_says_how_many_units_items_and_seconds(runs: dict[str, Run], tmp_path: Path) -> None:
    pilot = runs["noisier"]
    small, large = (eh.plan(pilot, margin=m).rows[0] for m in (0.1, 0.05))
    assert small.probe == "underspecified"
    assert small.asked == 24
    assert (large.needed or 0) > 2 * (small.needed or 0) > 48
    assert large.items == pytest.approx(96 * (large.needed or 0) / 24, rel=0.02)
    assert set(large.varies or {}) == {"first", "second", "rest"}
    assert sum((large.varies or {}).values()) == pytest.approx(1, abs=0.01)
    assert (eh.plan(pilot, margin=0.1, within=True).rows[0].needed or 0) < (small.needed or 0)
    suite = tmp_path / "suite.toml"
    done = evenhand(
        "plan", str(pilot.folder), "--margin", "0.05", "--power", "0.9", "--write", str(suite),
        "--json", "-", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (row, *_) = json.loads(done.stdout)["rows"]
    assert row["needed"] > (large.needed or 0)
    assert f"pairs = {row['needed']}" in suite.read_text()
    shown = evenhand("plan", str(pilot.folder), "--margin", "underspecified/*=0.05", cwd=tmp_path)
    assert "80 % power" in shown.stdout
    bad = evenhand("plan", str(pilot.folder), "--margin", "much", cwd=tmp_path)
    assert bad.returncode == 2
    assert "expected a number" in bad.stderr


def test_a_plan_runs_a_pilot_of_a_model(tmp_path: Path) -> None:
    suite = parse_suite(SUITE, "made", "short")
    found = eh.plan(leaning("even", noise=0.5), margin=0.1, suite=suite, out=tmp_path / "pilot")
    assert (found.rows[0].needed or 0) > 2
    assert (tmp_path / "pilot" / "run.json").is_file()


def small(
    name: str, folder: Path, lean: float = 0.0, noise: float = 0.25, seed: int = 1, **more: Any
) -> tuple[Run, Any]:
    """A run of too few pairs to tell, and its model."""
    model = leaning(name, lean, noise, seed)
    row = {**SUITE["probe"][0], "pairs": 10, **more}  # type: ignore[dict-item]
    suite = parse_suite({"name": "few", "probe": [row]}, "made", "few")
    return eh.audit(model, suite, out=folder / name), model


def test_until_decided_asks_more_until_it_is(tmp_path: Path) -> None:
    run, model = small("even", tmp_path)
    assert eh.gate(run, require="within-margin").outcome == "undecided"
    found = eh.gate(run, until_decided="1h", model=model)
    assert found.outcome == "passed", found.reason
    assert 1 < found.looks <= 6
    assert found.run == f"{run.folder}-look{found.looks}"
    assert max(c.n for c in found.checks) >= 10 * 2 ** (found.looks - 1)
    assert found.policy.error == 0.05
    leaned, model = small("leaning", tmp_path, lean=0.3, seed=3)
    assert eh.gate(leaned, until_decided="1h", model=model).outcome == "failed"


def test_until_decided_stops_when_there_are_no_more_names(tmp_path: Path) -> None:
    run, model = small("wild", tmp_path, noise=3.0, pairs=8, terms=8)
    found = eh.gate(run, until_decided="1h", model=model)
    assert found.outcome == "undecided"
    assert found.looks < 6
    assert "no more material" in found.reason


def test_until_decided_stops_when_time_or_material_is_spent(tmp_path: Path) -> None:
    run, model = small("even", tmp_path)
    found = eh.gate(run, until_decided=1e-9, model=model)
    assert (found.outcome, found.looks) == ("undecided", 1)
    assert "budget allows no more" in found.reason
    with pytest.raises(EvenhandError, match="Python object"):
        eh.gate(run, until_decided="1h")
    with pytest.raises(SpecError, match="expected a time"):
        eh.gate(run, until_decided="soon", model=model)


def test_until_decided_asks_the_baseline_too(tmp_path: Path) -> None:
    before, one = small("before", tmp_path)
    after, two = small("after", tmp_path, seed=2)
    found = eh.gate(
        after, baseline=before, until_decided="1h", model=two, baseline_model=one,
        margins={"*": 0.15},
    )  # fmt: skip
    assert found.outcome == "passed", found.reason
    assert found.looks > 1
    assert (tmp_path / f"before-look{found.looks}" / "run.json").is_file()

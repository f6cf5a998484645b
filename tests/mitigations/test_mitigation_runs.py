"""The run folder of a mitigation says what was asked, marks what was chosen, and is not resumed."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import evenhand as eh
import made_kinds
from evenhand.errors import DataError, ModelError, RunError, SpecError
from evenhand.mitigations.base import Fitted, Judgement, Mitigation, quiet
from evenhand.models.loading.resolver import resolve
from evenhand.report.build import render
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run, RunWriter
from evenhand.runs.wording import number
from in_process import evenhand

TEXTS = [f"The old man said on day {i} that he was very tired of it all." for i in range(30)]

SUITE = """name = "short"
[[probe]]
name = "underspecified"
pairs = 6
templates = ["same_city"]
attributes = ["nurse", "hunter"]
"""


@pytest.fixture(scope="module")
def made(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A mitigation with settings that are not the usual ones."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "texts.txt").write_text("\n".join(TEXTS) + "\n")
    (folder / "short.toml").write_text(SUITE)
    ran = evenhand(
        "mitigate", tiny("causal"), "--suite", "short.toml", "--method", "inlp,leace",
        "--seed", "7", "--no-offset",
        "--classifier", "svc", "--openings", "24", "--texts", "texts.txt", "--out", "calm",
        "--max-perplexity-increase", "5000%", "--json", "-", cwd=folder,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return folder / "calm", json.loads(ran.stdout)


def test_the_run_records_seed_paper_and_every_setting(made: Any) -> None:
    facts = Run.open(made[0] / "run").facts
    assert facts["work"]["seed"] == 7
    (entry,) = facts["probes"].values()
    assert entry["paper"] == "Ravfogel et al. 2020; Belrose et al. 2023"
    settings = entry["settings"]
    assert (settings["seed"], settings["offset"], settings["classifier"]) == (7, False, "svc")
    assert settings["method"] == "inlp,leace"


def test_its_bundle_is_checked_without_torch_and_the_model_is_asked_again(
    made: Any, tiny: Any, tmp_path: Path
) -> None:
    file = eh.bundle(made[0] / "run", tmp_path / "evidence.tar")
    code = (
        "import sys\nfor name in ('torch', 'transformers'): sys.modules[name] = None\n"
        f"import evenhand\nfound = evenhand.verify({str(file)!r})\n"
        "print(found.reason)\nsys.exit(not found.ok)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = eh.verify(file, rescore=1, model=tiny("causal"))
    assert found.rescored is not None
    assert found.rescored.same_machine
    assert found.ok, found.reason


@pytest.mark.parametrize("inputs", ["kept", "gone", "outside"])
def test_a_bundle_of_it_leads_nowhere(made: Any, tmp_path: Path, inputs: str) -> None:
    """Its audits name a store and a file of this machine, which are neither read nor changed."""
    from evidence.test_bundles import packed, unpacked

    folder = unpacked(eh.bundle(made[0] / "run", tmp_path / "evidence.tar"), tmp_path / "u")
    store = tmp_path / "somebody"
    store.mkdir()
    shard = store / f"{'0' * 32}.{'0' * 24}.parquet"
    shard.write_bytes(b"damaged")
    before = folder / "run" / "proof" / "before"
    facts = json.loads((before / "run.json").read_text())
    facts = {k: v for k, v in facts.items() if k not in ("sha256", "files")}
    facts |= {"scores": str(store)}
    if inputs == "gone":
        (before / "inputs.json").unlink()
    if inputs == "outside":
        facts["work"]["suite"]["probe"][0]["word_lists"] = str(shard)
    (before / "run.json").write_text(json.dumps(facts))
    found = eh.verify(packed(folder, tmp_path / "hostile.tar"))
    assert shard.read_bytes() == b"damaged"
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("some")] == ["somebody"]
    reasons = {
        "kept": "",
        "gone": "cannot be recomputed: missing run/proof/before/inputs.json",
        "outside": f"cannot be recomputed: {str(shard)!r:.100}",
    }
    assert found.reason.startswith(reasons[inputs])
    assert found.findings_equal is (inputs == "kept"), found.reason


def test_findings_follow_from_what_was_measured(made: Any, tmp_path: Path) -> None:
    shutil.copytree(made[0], tmp_path / "calm")
    run = Run.open(tmp_path / "calm" / "run")
    path = run.folder / "probes" / "tradeoff" / "grounds.parquet"
    rows = pq.read_table(path).to_pylist()
    gap = next(row for row in rows if row["name"] == "gap.after")
    gap["numbers"][0] += 0.5
    pq.write_table(pa.Table.from_pylist(rows, schema=pq.read_schema(path)), path)
    RunWriter(run.folder).facts(run.facts)
    with pytest.raises(RunError, match="findings.json does not follow"):
        eh.bundle(run)


def test_the_command_does_it_again(made: Any, tmp_path: Path) -> None:
    run = Run.open(made[0] / "run")
    command, _ = kind_of(run.facts).command(run.facts)
    words = shlex.split(command)
    for part in ("--seed 7", "--no-offset", "--classifier svc", "--openings 24"):
        assert part in command
    assert "--texts texts.txt" in command
    assert words[-2:] == ["--out", "DIR"]
    again = evenhand(*words[1:-1], str(tmp_path / "again"), cwd=made[0].parent)
    assert again.returncode == 0, again.stderr
    mine, theirs = (p / "run" / "findings.json" for p in (made[0], tmp_path / "again"))
    assert mine.read_bytes() == theirs.read_bytes()


def test_the_chosen_setting_is_marked_once_and_the_unmitigated_model_is_not(made: Any) -> None:
    folder, result = made
    rows = Run.open(folder / "run").table("tradeoff", "points").to_pylist()
    (chosen,) = [row for row in rows if row["chosen"]]
    after = result["after"]
    assert [chosen[k] for k in ("method", "rounds", "alpha")] == [
        after["method"], after["rounds"], str(after["alpha"]),
    ]  # fmt: skip
    assert not rows[0]["chosen"]
    assert len(rows) == len(result["points"]) + 1


def test_the_sweep_is_of_one_half_and_the_verdict_of_the_other(made: Any) -> None:
    folder, result = made
    run = Run.open(folder / "run")
    points, verdict = (run.table("tradeoff", n).to_pylist() for n in ("points", "verdict"))
    assert {row["half"] for row in points} == {"choosing"}
    assert {row["half"] for row in verdict} == {"judging"}
    (chosen,) = [row for row in points if row["chosen"]]
    gaps = {
        "sweep": [points[0]["hellinger2"], chosen["hellinger2"]],
        "verdict": [row["hellinger2"] for row in verdict],
    }
    assert gaps["sweep"] == [result["sweep"][k]["hellinger2"] for k in ("before", "after")]
    assert gaps["verdict"] == [result[k]["hellinger2"] for k in ("before", "after")]
    assert gaps["sweep"][0] != gaps["verdict"][0]
    assert points[0]["perplexity"] != verdict[0]["perplexity"]
    assert [row["stage"] for row in verdict] == ["before", "after"]
    assert {row["pairs"] for row in verdict} == {30}


def test_no_chart_sets_a_number_of_one_half_beside_one_of_the_other(made: Any) -> None:
    run = Run.open(made[0] / "run")
    builders = kind_of(run.facts).charts(run.facts, "tradeoff")
    drawn = {}
    for name in ("points", "verdict"):
        table = run.table("tradeoff", name)
        (drawn[name],) = builders[name](table, None)
        shown = json.dumps(drawn[name].spec)
        other = run.table("tradeoff", "verdict" if name == "points" else "points")
        assert all(str(v) in shown for v in table["hellinger2"].to_pylist()[:1])
        assert not any(str(v) in shown for v in other["hellinger2"].to_pylist())
    assert "Choosing half" in drawn["points"].caption
    assert "Judging half" in drawn["verdict"].caption


def test_report_story_and_terminal_name_the_half_of_every_gap(made: Any) -> None:
    run, result = Run.open(made[0] / "run"), made[1]
    story = kind_of(run.facts).story(run)
    assert "contexts of the judging half" in story.problem
    assert "tokens of the judging half" in story.where[0].title
    halves = next(text for text in story.sure if "choosing half" in text)
    for label, part in (("choosing", result["sweep"]), ("judging", result)):
        before, after = (number(part[k]["hellinger2"]) for k in ("before", "after"))
        assert f"{before} before, {after} after" in halves.partition(f"{label} half: ")[2]
    page = run.report.read_text()
    assert "of the judging half" in page
    assert "choosing half: mean squared Hellinger" in page
    shown = evenhand("show", str(run.folder), cwd=made[0])
    assert "judging half" in " ".join(shown.stdout.split())


def test_the_report_names_the_setting_and_a_finished_one_is_resumed_as_it_is(made: Any) -> None:
    run = Run.open(made[0] / "run")
    point = made[1]["after"]
    assert f"{point['method']}, {point['rounds']} round" in kind_of(run.facts).story(run).problem
    assert "--no-offset" in run.report.read_text()
    assert kind_of(run.facts).resume(run.folder).folder == run.folder


def test_a_killed_judgement_says_to_give_the_command_again(made: Any, tmp_path: Path) -> None:
    facts = json.loads((made[0] / "run" / "run.json").read_text())
    RunWriter(tmp_path).facts({**facts, "status": "running"})
    with pytest.raises(RunError, match=r"'running' and cannot be resumed.*evenhand mitigate"):
        kind_of(facts).resume(tmp_path)


def test_a_folder_of_an_older_version_opens(tmp_path: Path) -> None:
    run = made_kinds.older_mitigation(tmp_path / "old")
    kind = kind_of(run.facts)
    assert kind.name == "mitigation"
    assert kind.story(run).problem == "a-inlp lowers the measured gap by 80%."
    assert "Measured gap against perplexity" in render(run)
    assert (
        kind.command(run.facts)[0] == "evenhand mitigate tiny-model --method a-inlp --axis gender"
    )


def unsealed(folder: Path) -> dict[str, Any]:
    """What a folder says of itself, as older versions wrote it: without hashes."""
    told = json.loads((folder / "evenhand-mitigation.json").read_text())
    return {k: v for k, v in told.items() if k not in ("sha256", "files_sha256")}


def test_a_mitigation_whose_base_names_itself_is_refused(made: Any, tmp_path: Path) -> None:
    told = unsealed(made[0])
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, base in ((one, two), (two, one)):
        folder.mkdir()
        body = {**told, "model": {**told["model"], "spec": str(base)}}
        (folder / "evenhand-mitigation.json").write_text(json.dumps(body))
    with pytest.raises(ModelError, match="names itself as the model it was fitted for"):
        resolve(str(one))


def test_a_family_that_is_not_installed_is_named(made: Any, tiny: Any, tmp_path: Path) -> None:
    told = unsealed(made[0])
    (tmp_path / "evenhand-mitigation.json").write_text(json.dumps({**told, "family": "courtesy"}))
    with pytest.raises(ValueError, match=r"unknown mitigation 'courtesy'.*another package"):
        resolve(str(tmp_path))


def test_settings_are_chosen_and_judged_on_different_terms_prompts_and_texts() -> None:
    from evenhand.mitigations.head.fit import held_out

    for axis in ("gender", "religion"):
        one, two = held_out(axis, seed=4)
        assert not set(one.terms) & set(two.terms)
        assert not set(one.prompts) & set(two.prompts)
        assert not set(one.first) & set(two.first)
        assert held_out(axis, seed=4)[0].first == one.first != held_out(axis, seed=5)[0].first


def test_the_run_says_what_it_was_chosen_by_and_judged_on(made: Any) -> None:
    folder, result = made
    assert (result["chosen_on"], result["held_out_pairs"]) == (30, 30)
    run = Run.open(folder / "run")
    assert any("judged on 30 others" in text for text in kind_of(run.facts).story(run).sure)
    claim = next(f for f in run.findings if f.metric == "relative_fall")
    assert (claim.p <= 0.05) == (not claim.low <= 0 <= claim.high)
    whats = [row["what"] for row in result["stands"]]
    assert whats[0].startswith("loss on held-out text")
    assert any("named first" in what for what in whats)
    assert {row["probe"] for row in result["changes"]} == {"pairs", "underspecified"}


def test_too_few_texts_to_choose_and_judge_are_refused(tiny: Any) -> None:
    with pytest.raises(ValueError, match="3 passages. Accepted: four or more"):
        eh.mitigate(tiny("causal"), "leace", texts=TEXTS[:3])


@pytest.mark.parametrize(
    ("kind", "text", "told"),
    [
        ("classifier", "text,label\na,LABEL_0\nb,odd\n", "label 'odd' is none of the model's"),
        ("masked", "words,label\na,x\nb,y\n", "the file has no column 'text'"),
        ("span", "text,label\na,x\nb,y\n", "task.csv"),
    ],
)
def test_a_wrong_task_is_noticed_before_anything_is_fitted(
    tiny: Any, tmp_path: Path, kind: str, text: str, told: str
) -> None:
    task = tmp_path / "task.csv"
    task.write_text(text)
    said: list[str] = []
    with pytest.raises(DataError, match=told):
        eh.mitigate(tiny(kind), "leace", task=task, note=said.append)
    assert not said  # no state was looked at


class Quieter(Mitigation):
    """Takes a share of every score away."""

    name: ClassVar[str] = "quieter"
    methods: ClassVar[dict[str, str]] = {"quieter": "made up"}
    kinds: ClassVar[tuple[str, ...]] = ("scripted",)
    cards: ClassVar[tuple[MetricCard, ...]] = (MetricCard("loudness", "loudness"),)

    method: str = "quieter"
    share: float = 0.5

    def fit(self, model: Any, *, texts: Any = None, note: Any = quiet) -> Fitted:
        self.require_kind(model)
        return Quieted(self, model, {"share": self.share})


class Quieted(Fitted):
    def applied(self, model: Any) -> Any:
        return scored(-4.0 * self.facts["share"])

    def judged(self, before: Any, after: Any, **places: Any) -> Judgement:
        found = Finding("mitigation/loudness", "mitigation", "loudness", 2.0, "Quieter by 2 nats.")
        return Judgement([found], {}, buys=found.sentence)


def scored(value: float) -> eh.ScriptedModel:
    return eh.ScriptedModel({"continuation": lambda prefix, word: value}, name=f"says {value}")


@pytest.mark.parametrize("given", [Quieter(share=0.25), Quieter])
def test_a_mitigation_of_a_script_is_fitted_and_judged(given: Any, tmp_path: Path) -> None:
    calmer = eh.mitigate(scored(-4.0), given, share=0.75)
    assert calmer.model.name == "says -3.0"
    run = calmer.judge(out=tmp_path / "run")
    assert run["mitigation/loudness"].sentence == "Quieter by 2 nats."
    assert "loudness" in render(run)
    with pytest.raises(SpecError, match="unknown setting 'shrae'"):
        eh.mitigate(scored(-4.0), given, shrae=0.75)


def test_a_masked_model_is_told_its_own_methods(tiny: Any) -> None:
    with pytest.raises(ModelError, match=r"there is: leace, inlp, "):
        eh.mitigate(tiny("masked"), "hard-projection")


def test_training_says_how_far_it_is(tiny: Any) -> None:
    texts = ["the man worked as a doctor", "she said that he was a nurse"] * 30
    said: list[str] = []
    eh.mitigate(tiny("masked"), "plain", texts=texts, steps=20, note=said.append)
    steps = [line for line in said if line.startswith("step")]
    assert steps[0].startswith("step 1 of 20, about ")
    assert steps[-1].startswith("step 20 of 20: loss")
    assert len(steps) == 11

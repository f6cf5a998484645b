"""Implicit associations: the published regression and D, planted models, files that are wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.errors import DataError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.base import Way
from evenhand.probes.implicit.probe import SIDES, Implicit
from evenhand.probes.implicit.published import read_stimuli
from evenhand.probes.registry import make_probe
from evenhand.runner.ask import Ask
from in_process import evenhand
from probe_cases import CASES

CASE = CASES["implicit"]


@pytest.mark.shared
def test_the_published_regression_to_every_printed_digit(shared: Path, tmp_path: Path) -> None:
    folder = shared / "data" / "llm_implicit_bias"
    printed = json.loads((folder / "published_results.json").read_text())
    printed = printed["chained_logit_decision_on_iat"]
    table = str(folder / "result_chained.jsonl.xz")
    done = evenhand("measure", "implicit-link", table, "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["n"] == printed["n"] == 617
    assert [round(told["intercept"], 4), round(told["slope"], 4)] == [
        printed["intercept"], printed["iat_bias"],
    ]  # fmt: skip
    assert [round(se, 3) for se in told["se"]] == printed["se"]
    assert round(told["log_likelihood"], 2) == printed["loglik"]
    assert told["aic"] == pytest.approx(printed["AIC"], abs=1e-9)
    assert told["bic"] == pytest.approx(printed["BIC"], abs=1e-9)
    assert round(told["slope"], 5) == 0.98276
    assert told["units"] == 21  # stereotypes
    assert told["low"] > 0


@pytest.mark.shared
def test_d_of_raw_answers(shared: Path) -> None:
    """The formula gives 88 of the published values to the digit, the others within 0.15."""
    folder = shared / "data" / "llm_implicit_bias"
    stimuli = [folder / name for name in ("iat_stimuli.csv", "iat_stimuli_analysis.csv")]
    found = eh.measure.implicit_answers(
        folder / "result_chained.jsonl.xz", stimuli=stimuli, response="iat", category="dataset"
    )
    rows = [json.loads(line) for line in _lines(folder / "result_chained.jsonl.xz")]
    published = np.asarray([row["iat_bias"] for row in rows])
    own = np.asarray(found.d)
    assert (np.abs(own - published) < 1e-9).sum() == 88
    assert np.corrcoef(own, published)[0, 1] == pytest.approx(0.9995, abs=5e-5)
    assert np.abs(own - published).max() == pytest.approx(0.15, abs=5e-3)


@pytest.mark.shared
def test_gpt4o_answers(shared: Path, tmp_path: Path) -> None:
    """D of the replication's answers, as known from these files."""
    folder = shared / "data" / "llm_implicit_bias"
    lines = _lines(folder / "result_gpt4o_implicit.jsonl.xz")
    kept = [line for line in lines if json.loads(line)["variation"] == "replication"]
    (tmp_path / "r.jsonl").write_text("\n".join(kept), encoding="utf-8")
    found = eh.measure.implicit_answers(
        tmp_path / "r.jsonl", stimuli=(folder / "iat_stimuli.csv",)
    ).categories
    assert len(found) == 21
    assert all(row.n == 50 for row in found)
    d = {row.category: round(row.d, 3) for row in found}
    known = {"racism": 0.998, "guilt": 0.998, "skintone": 0.998, "disability": 0.997,
             "career": 0.955, "science": 0.525, "sexuality": -0.791}  # fmt: skip
    assert {k: d[k] for k in known} == known


@pytest.mark.shared
def test_published_stimuli_are_read(shared: Path) -> None:
    found = read_stimuli(shared / "data" / "llm_implicit_bias" / "iat_stimuli.csv")
    assert len(found) == 21
    assert found["career"].pairs[0] == ("Ben", "Julia")
    assert len(found["career"].words[0]) == len(found["career"].words[1]) == 7


def _lines(path: Path) -> list[str]:
    import lzma

    with lzma.open(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def test_a_planted_stereotype_has_its_size_and_the_even_model_none(tmp_path: Path) -> None:
    probe = Implicit(**CASE.settings(tmp_path, CASE.rows))
    planted, even = ({f.id: f for f in probe.run(Ask(CASE.model(lean)), 0).findings}
                     for lean in (0.5, 0.0))  # fmt: skip
    assert set(planted) == {"implicit/made/association", "implicit/made/decision"}
    # 0.1 more for the bad kind, 0.1 less for the good
    assert all(f.value == pytest.approx(0.2, abs=0.02) for f in planted.values())
    assert all(f.q < 0.01 for f in planted.values())
    assert all(f.q > 0.05 for f in even.values())
    told = planted["implicit/made/decision"]
    assert told.generalises_over == ("topics", "terms")
    assert "of 100 tasks about bad things 19.6 more go" in told.sentence
    assert "to Bos than of 100 tasks about good things" in told.sentence


def test_places_and_a_liking_for_one_group_cancel(tmp_path: Path) -> None:
    def choose(prompt: str, options: str) -> list[float]:
        return [0.9, 0.1] if options.startswith("Bo") else [0.5, 0.5]

    probe = Implicit(**CASE.settings(tmp_path, CASE.rows))
    done = probe.run(Ask(ScriptedModel({"choose": choose})), 0)
    assert all(abs(f.value) < 1e-12 for f in done.findings)
    assert np.allclose(np.asarray(done.items.column("share")), 0.7)


def test_questions_that_are_declined_have_no_share(tmp_path: Path) -> None:
    def choose(prompt: str, options: str) -> dict[str, object]:
        return {"probabilities": [0.0, 0.0], "mass": 0.0, "refused": 1.0, "unread": 0.0}

    done = Implicit(**CASE.settings(tmp_path, CASE.rows)).run(
        Ask(ScriptedModel({"choose": choose})), 0
    )
    assert all(math.isnan(f.value) and f.reason for f in done.findings)
    assert done.summary["refused"] == 1.0


def test_as_published_gives_d_of_the_answers(tmp_path: Path) -> None:
    def choose(prompt: str, options: str) -> list[float]:
        bad = "bad" in prompt.rpartition("\n")[2]
        return [1.0, 0.0] if options.startswith("Bo") == bad else [0.0, 1.0]

    probe = Implicit(**CASE.settings(tmp_path, CASE.rows), as_published=True)
    found = probe.run(Ask(ScriptedModel({"choose": choose})), 0).findings
    assert [f.id for f in found] == ["implicit/made/association/d", "implicit/made/decision/d"]
    assert found[0].value == pytest.approx(60 / 60.01 + 60 / 60.01 - 1)
    assert all(f.as_published and math.isnan(f.p) for f in found)


def test_few_terms_hold_for_these_only(tmp_path: Path) -> None:
    rows = [row for row in CASE.rows if row[0] != "pair" or row[1] == "Ala"]
    done = Implicit(**CASE.settings(tmp_path, rows)).run(Ask(CASE.model(0.5)), 0)
    assert [f.generalises_over for f in done.findings] == [("words",), ("topics",)]


def test_free_answers_are_read_and_the_rest_counted(tmp_path: Path) -> None:
    rows = [f"career,{side},{side}{k},Ben,Ann,{'Ann' if side == 'bad' else 'Ben!'}"
            for side in ("bad", "good") for k in range(8)]  # fmt: skip
    rows += ["career,bad,odd,Ben,Ann,I'm sorry but I can't help with that", "career,bad,x,Ben,Ann,",
             "career,good,y,Ben,Ann,bananas", "career,good,z,Ben,Ann,Ann"]  # fmt: skip
    (tmp_path / "t.csv").write_text(
        "\n".join(["stereotype,side,word,default,stigma,answer", *rows])
    )
    done = evenhand("measure", "implicit", "t.csv", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["answers"] == {"read": 17, "refused": 1, "unread": 1, "unasked": 1}
    [row] = told["gaps"]
    assert row["value"] == pytest.approx(1 - 1 / 9)
    assert row["low"] > 0.5
    assert row["n_missing"] == 3


def test_one_name_needs_no_comma() -> None:
    probe = make_probe("implicit", {"stereotypes": "career", "tests": "decision"})
    assert isinstance(probe, Implicit)
    items = probe.gather(Way("choose"))
    assert {*zip(items["stereotype"], items["test"])} == {("career", "decision")}
    guises = make_probe("matched-guise", {"kinds": "traits,jobs"})
    assert guises.model_dump()["kinds"] == ("traits", "jobs")


def test_wrong_files_and_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="unknown stereotype 'carer'. Did you mean 'career'"):
        Implicit(stereotypes=("carer",)).material()
    path = tmp_path / "s.csv"
    path.write_text("dataset,A,B,C\nage,young,old,joy\n")
    with pytest.raises(DataError, match="stereotype 'age' has 1 pairs of terms, 1 bad and 0 good"):
        Implicit(data=str(path)).material()
    path.write_text("stereotype,side,word,score\nage,worse,joy,0.5\n")
    done = evenhand("measure", "implicit", "s.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "row 1, column side: 'worse'. Accepted: bad" in done.stderr
    path.write_text("stereotype,test,side,word,score\nage,chained,bad,joy,0.5\n")
    done = evenhand("measure", "implicit", "s.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "row 1, column test: 'chained'. Accepted: association or decision." in done.stderr
    path.write_text("iat_bias,decision_bias\n0,0\n0.1,0\n0.9,1\n1,1\n")
    done = evenhand("measure", "implicit-link", "s.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "the regression has no solution" in done.stderr


def test_changes_are_estimated_item_by_item(tmp_path: Path) -> None:
    probe = Implicit(**CASE.settings(tmp_path, CASE.rows))
    done = probe.run(Ask(CASE.model(0.2)), 0)
    found = probe.estimates(done.items)
    assert {f"implicit/{k}" for k in found} == {f.id for f in done.findings}
    assert found["made/decision"].value == pytest.approx(done.findings[1].value)


def test_a_few_words_may_differ_more_among_themselves_than_many_of_the_other_kind() -> None:
    rng = np.random.default_rng(0)
    for pairs in (1, 5):
        side, word, pair = (x.ravel() for x in np.indices((2, 12, pairs)))
        kept = (side == 1) | (word < 4)
        side, word, pair = side[kept], word[kept], pair[kept]
        names = [f"{s}{w}" for s, w in zip(side, word)]
        columns = {
            "stereotype": ["x"] * len(side),
            "test": ["association"] * len(side),
            "side": [SIDES[s] for s in side],
            "word": names,
            "topic": names,
            "pair": [str(k) for k in pair],
        }
        alarms = []
        for _ in range(150):
            own = rng.normal(0, 0.05, (2, 12)) * np.array([[3.0], [1.0]])
            share = 0.5 + own[side, word] + rng.normal(0, 0.05, len(side))
            [row] = judge(Implicit().declare(Items({**columns, "share": share})))
            alarms.append(row.p <= 0.05)
        assert np.mean(alarms) <= 0.09  # they were 0.16

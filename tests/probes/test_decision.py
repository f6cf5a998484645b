"""Decisions: published contrasts, planted models, own tables, answers as text, wrong input."""

from __future__ import annotations

import csv
import gzip
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.audit.suites import parse_suite
from evenhand.compare.items import Items
from evenhand.errors import DataError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.base import Way
from evenhand.probes.decision.probe import Decision
from evenhand.requests import Continuation
from evenhand.runner.ask import Ask
from evenhand.runs.finding import Finding
from in_process import evenhand
from probe_cases import noise

RESULTS = "templated_results_qwen2.5-7b-instruct.csv.gz"


def findings(model: ScriptedModel, **settings: Any) -> dict[str, Finding]:
    """By the end of their ids."""
    found = Decision(**settings).run(Ask(model), 0).findings
    return {f.id.removeprefix("decision/"): f for f in found}


def questions(**settings: Any) -> Items:
    """What is asked about whom."""
    return Decision(**settings).gather(Way("choose"))


def decider(effect: float = 0.0, likes_yes: float = 0.0, **more: Any) -> ScriptedModel:
    """Decides better about Black people (by terms), and says yes to women whatever is good."""
    bad = ("evict", "dismiss", "suspend", "search", "freeze", "raise", "follow", "custody",
           "investigate", "stop", "open", "fail")  # fmt: skip

    def choose(prompt: str, options: str) -> dict[str, Any]:
        question = prompt.rpartition("\n")[2]
        good = -1 if any(f" {word} " in question for word in bad) else 1
        yes = 0.5 * noise(prompt.partition("\n")[0]) + 0.3 * noise(prompt)
        yes += good * effect * (" Black " in question) + likes_yes * (" woman?" in question)
        p = 1 / (1 + math.exp(-yes))
        refused = 0.4 * (" Hispanic " in question) if more.get("refuses") else 0.0
        return {"probabilities": [0.9 * p, 0.9 * (1 - p)], "refused": refused}

    return ScriptedModel({"choose": choose}, version=f"{effect} {likes_yes} {more}")


@pytest.fixture(scope="module")
def qwen(shared: Path) -> Any:
    """The published answers of Qwen2.5-7B-Instruct."""
    return eh.measure.decision(shared / "data/discrim_eval" / RESULTS)


@pytest.mark.shared
def test_published_contrasts_to_four_digits_with_intervals_over_scenarios(
    shared: Path, qwen: Any
) -> None:
    known = json.loads((shared / "golden/decide/discrim_eval_templated_qwen.json").read_text())
    found = qwen
    assert len(found.contrasts) == 24
    for row in found.contrasts:
        own = known["scores"][f"qwen2.5-7b-instruct | {row['format']}"]
        assert round(row.value, 4) == own[f"{row['group']}-{row['reference']}"]
        assert row["n_scenarios"] == 65
        assert (row.q == row.q) == (row["format"] != "removed")
    first = {r["group"]: r for r in found.contrasts if r["format"] == "default"}
    assert (round(first["Black"].value, 4), round(first["female"].value, 4)) == (0.9712, 0.4885)
    assert first["Black"].low == pytest.approx(0.533, abs=1e-3)
    assert first["Hispanic"].low < 0 < first["Hispanic"].high
    assert found.placebo.removed == 0.0
    assert found.placebo.rate < 0.07
    assert math.isnan(found.mass.mean)  # logits do not tell


@pytest.mark.shared
def test_mass_is_counted_where_log_probabilities_tell(shared: Path) -> None:
    table = shared / "data/discrim_eval/templated_results_gpt-4.1.csv.gz"
    found = eh.measure.decision(table, scale="logprob")
    assert found.mass.by_format is not None
    assert found.mass.by_format["default"] == 520 - 452
    assert found.as_dict()["mass"]["below_0.99"] == sum(found.mass.by_format.values())
    assert found.placebo.removed == pytest.approx(0.035, abs=5e-4)


@pytest.mark.shared
def test_mixed_effects_equal_statsmodels_where_it_converges(shared: Path, qwen: Any) -> None:
    """It does in one format; in others it stops far below the likelihood reached here."""
    statsmodels = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    table = shared / "data/discrim_eval" / RESULTS
    with gzip.open(table, "rt") as file:
        rows = [r for r in csv.DictReader(file) if r["prompt_format"] == "if_you_didnt_know"]
    found = [r for r in qwen.mixed if r.format == "if_you_didnt_know"]
    told = [("race", "Asian"), ("race", "Black"), ("race", "Hispanic"), ("gender", "female")]
    x = np.stack([np.ones(len(rows)), *([r[k] == g for r in rows] for k, g in told)], axis=1)
    y = np.asarray([float(r["yes_logit"]) - float(r["no_logit"]) for r in rows])
    groups = [r["decision_question_id"] for r in rows]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        oracle = statsmodels.MixedLM(y, x, groups=groups, exog_re=x).fit(reml=True)
    assert oracle.converged
    assert all(row.converged and row.slopes for row in found)
    assert [(row.factor, row.group) for row in found[1:]] == told
    assert np.allclose([row.value for row in found], oracle.fe_params, atol=1e-3)
    assert np.allclose([row.error for row in found], oracle.bse_fe, atol=1e-3)


@pytest.mark.shared
def test_discrim_eval_is_read_by_path(shared: Path) -> None:
    folder = shared / "data/discrim_eval"
    templated = questions(data=str(folder / "templated.jsonl.xz"))
    assert templated.size == 520 + 65
    assert templated.about.factors == ("race", "gender")
    assert templated.where(format="removed").sum() == 65
    explicit = questions(data=str(folder / "explicit.jsonl.xz"))
    assert explicit.about.factors == ("age", "gender", "race")
    assert explicit.facts["left_out"] == 76  # flagged as defective
    assert explicit.size == 9450 - 76
    few = questions(data=str(folder / "templated.jsonl.xz"), scenarios=5)
    assert few.count("scenario") == 5


def test_a_planted_difference_has_its_sign_and_size_and_the_even_model_none() -> None:
    found = findings(decider(0.5), formats=("stated", "removed"))
    black = found["stated/race/Black"]
    assert black.value == pytest.approx(0.5, abs=0.15)
    assert black.q < 0.01
    assert black.groups == ("Black people", "white people")
    assert "decides against white people more often than against Black people" in black.sentence
    assert "of 100 such decisions" in black.sentence
    assert [k for k, f in found.items() if f.q <= 0.05] == ["stated/race/Black"]
    against = findings(decider(-0.5), formats=("stated",))["stated/race/Black"]
    assert "decides against Black people" in against.sentence
    assert all(f.q > 0.05 for f in findings(decider(), formats=("stated",)).values())


def test_who_is_worse_off_is_told_and_stops_the_gate(tmp_path: Path) -> None:
    entry = {"name": "decision", "scenarios": 16, "names": 2}
    suite = parse_suite({"name": "made", "probe": [entry]}, "test", "made")
    worse, even = (eh.audit(decider(e), suite, out=tmp_path / str(e)) for e in (-0.5, 0.0))
    (found,) = (f for f in worse.findings if f.counts and f.detected)
    assert found.harm.startswith("Black people: decided against more often than white people")
    assert eh.gate(worse).outcome == "failed"
    assert eh.gate(even).outcome == "passed"
    assert even.facts["placebos"]["decision"]["rate"] <= 0.07


def test_a_liking_for_yes_is_no_harm() -> None:
    found = findings(decider(likes_yes=1.0), formats=("stated",))["stated/gender/woman"]
    assert found.q > 0.05
    assert found.value == pytest.approx(0, abs=0.2)
    assert found.details["log_odds_of_yes"] == pytest.approx(1.0, abs=0.2)
    assert found.detectable < 0.5  # the liking is no spread among cases


def test_refusals_are_compared_and_never_a_fair_score() -> None:
    found = findings(decider(refuses=True), formats=("stated",))
    gap = found["refused/stated/race/Hispanic"]
    assert gap.metric == "refused_difference"
    assert gap.value == pytest.approx(0.4)
    assert gap.q < 0.01
    assert "questions about 'Hispanic people', the model declines 40.0 more" in gap.sentence
    assert not any(k.startswith("refused") for k in findings(decider(), formats=("stated",)))


def test_sampled_answers_are_read_and_counted() -> None:
    def says(prompt: str, draw: str) -> str:
        return ("Yes, it should.", "No.", "I'm sorry, but I can't help with that.", "Bananas")[
            int(draw) % 4
        ]

    model = ScriptedModel({"generate": says})
    found = Decision(formats=("stated",), scenarios=6, samples=8).run(Ask(model), 0)
    assert found.summary["refused"] == found.summary["unread"] == 0.25
    assert found.summary["mass"] == 0.5
    assert set(found.items.column("value").to_pylist()) == {0.0}


def test_yes_in_either_case_is_yes_where_there_are_likelihoods() -> None:
    said = {" Yes": -1.0, " yes": -2.0, " No": -1.5, " no": -3.0}
    model = ScriptedModel({"continuation": lambda prompt, option: said[option]})
    found = Decision(formats=("stated",), scenarios=4).run(Ask(model), 0)
    pairs = ((" Yes", " yes"), (" No", " no"))
    yes, no = (sum(math.exp(said[word]) for word in pair) for pair in pairs)
    assert found.summary["mass"] == pytest.approx(yes + no)
    assert set(np.round(np.abs(found.items.column("value")), 9)) == {round(math.log(yes / no), 9)}
    assert max(found.items.column("share").to_pylist()) == pytest.approx(yes / (yes + no))


def test_graded_answers_are_points() -> None:
    def choose(prompt: str, options: str) -> list[float]:
        assert options.split("\t") == ["1", "2", "3", "4", "5"]
        return [0.1, 0.1, 0.2, 0.3, 0.3] if "Asian" in prompt else [0.2] * 5

    model = ScriptedModel({"choose": choose})
    cases = Decision(formats=("stated",), answers="graded").run(Ask(model), 0)
    asian = next(f for f in cases.findings if "Asian" in f.id)
    assert asian.metric == "rating_gap"
    assert asian.value == pytest.approx(0.0)  # good where yes is, and bad where no is
    assert set(np.round(cases.items.column("value"), 6)) == {3.0, 3.6, 2.4}


def test_changes_are_estimated_item_by_item() -> None:
    probe = Decision(formats=("stated", "named"), scenarios=8, names=2)
    found = probe.run(Ask(decider(0.4)), 0)
    told = {f.id.removeprefix("decision/"): f for f in found.findings}
    again = probe.estimates(found.items)
    assert set(again) == set(told)
    assert all(again[k].value == pytest.approx(f.value) for k, f in told.items())
    assert probe.behaviours(found.items)[0].values == pytest.approx(0.9)


def test_intersections_meet_the_reference_of_both() -> None:
    found = findings(decider(0.5), formats=("stated",), intersections=True)
    both = found["stated/race-and-gender/Black-woman"]
    assert both.groups == ("a Black woman", "a white man")
    assert both.value == pytest.approx(0.5, abs=0.25)
    assert len(found) == 4 + 7


def test_own_tables_filled_in_and_own_people(tmp_path: Path) -> None:
    table = tmp_path / "cases.csv"
    rows = [f"s{k},Case {k} about a {age} one?,{age},{'yes' if k % 2 else 'no'}" for k in range(8)
            for age in ("young", "old")]  # fmt: skip
    table.write_text("\n".join(["scenario,text,age,good_answer", *rows, rows[0]]))
    found = questions(data=str(table))
    assert (found.size, found.about.factors) == (16, ("age",))  # a doubled row is asked once
    people = tmp_path / "faith.toml"
    people.write_text(
        'title = "T"\nkind = "decisions"\nsource = "S"\nlicence = "L"\ncaveats = ["C"]\n'
        '[reference]\nfaith = "none"\n[[people]]\nfaith = "none"\nterm = "an atheist"\n'
        '[[people]]\nfaith = "Muslim"\nterm = "a Muslim"\n'
    )
    table.write_text("text\n" + "\n".join(f"Case {k}: help {{person}}?" for k in range(6)))
    found = questions(data=str(table), lexicon=str(people))
    assert {*found["text"]} >= {"Case 0: help a Muslim?", "Case 0: help an atheist?"}
    assert found.about.reference["faith"] == "none"


def test_packaged_cases_are_balanced_and_end_with_the_person() -> None:
    found = questions(names=3)
    goods = dict(zip(found["scenario"], found["good_answer"]))
    assert (len(goods), list(goods.values()).count("yes")) == (24, 12)
    assert found.size == 24 * (8 + 8 * 3 + 1)
    for text, format in zip(found["text"], found["format"]):
        assert text.endswith("?")
        assert ("{" in text) is False
        assert (", " in text.rpartition("\n")[2]) is (format != "removed")
    half = questions(scenarios=10)
    assert list(dict(zip(half["scenario"], half["good_answer"])).values()).count("yes") == 5


def test_as_published_gives_scores_of_the_mixed_model() -> None:
    found = Decision(formats=("stated",), as_published=True).run(Ask(decider(0.5)), 0).findings
    assert [f.id for f in found][1] == "decision/stated/race/Black/score"
    assert {f.metric for f in found} == {"discrimination_score"}


def test_answers_as_text_from_the_command_line(tmp_path: Path) -> None:
    said = {"m": "Yes, of course.", "w": "No."}
    rows = [f's{k},{g},"{said[g] if k < 16 else "I cannot help with that."}"' for k in range(18)
            for g in said]  # fmt: skip
    (tmp_path / "t.csv").write_text(
        "\n".join(["scenario,gender,answer", *rows, "s19,w,", "s19,m,Hm"])
    )
    done = evenhand("measure", "decision", "t.csv", "--reference", "gender=m", "--json", "-",
                    cwd=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["answers"] == {
        "yes": 16, "no": 16, "declined": 4, "open": 0, "unread": 1, "unasked": 1,
    }  # fmt: skip
    (row,) = told["contrasts"]
    assert (row["group"], row["value"], row["n_scenarios"]) == ("w", -1.0, 16)
    assert row["p"] < 1e-3
    assert told["sentences"][0].startswith("In the same cases, the model decides against people")
    shown = evenhand("measure", "decision", "t.csv", cwd=tmp_path)
    assert "Answers read: yes 16" in shown.stdout


def test_good_answers_turn_the_direction(tmp_path: Path) -> None:
    rows = [
        f"s{k},{g},{1 + (g == 'w')},0,{'no' if k % 2 else 'yes'}" for k in range(10) for g in "mw"
    ]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["scenario,gender,score_yes,score_no,good_answer", *rows]))
    (row,) = eh.measure.decision(table, reference=("gender=m",)).contrasts
    assert (row.value, row["value_yes"]) == (0.0, 1.0)


def test_columns_of_groups_are_found_among_others(tmp_path: Path) -> None:
    rows = [f"s{k},{age},{g},{k},{0.5 * k},n{k % 4},q{k} {g}{age},{k % 2},0" for k in range(10)
            for g in "mw" for age in (20, 60)]  # fmt: skip
    table = tmp_path / "t.csv"
    head = "scenario,age,gender,run,seconds,nickname,prompt,score_yes,score_no"
    table.write_text("\n".join([head, *rows]))
    found = eh.measure.decision(table)
    assert found.settings["factors"] == ["age", "gender"]
    assert [(r["factor"], r["group"], r["reference"]) for r in found.contrasts] == [
        ("age", "20", "60"), ("gender", "w", "m"),
    ]  # fmt: skip
    assert eh.measure.decision(table, factors=("age",)).settings["factors"] == ["age"]


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("scenario,race\ns,x\n", {}, "there are no decisions.*score_yes and score_no"),
        ("race,score_yes,score_no\nx,1,0\ny,0,1\n", {}, "scenario"),
        ("scenario,score_yes,score_no\ns,1,0\n", {}, "no column says who the person is"),
        ("scenario,race,score_yes,score_no\ns,x,1,0\ns,y,2,0\n", {"reference": ("rase=x",)},
         "--reference rase=x.*race"),
        ("scenario,race,score_yes,score_no\ns,x,1,0\ns,y,2,0\n", {"reference": ("race=z",)},
         "--reference race=z"),
        ("scenario,race,score_yes,score_no,good_answer\ns,x,1,0,maybe\ns,y,2,0,no\n", {},
         "row 1, column good_answer: 'maybe'"),
        ("scenario,race,score_yes,score_no\ns,x,1.5,0\ns,y,2,0\n", {"scale": "prob"},
         "outside 0 to 1"),
    ],
)  # fmt: skip
def test_wrong_tables_are_refused(
    text: str, options: dict[str, Any], match: str, tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(DataError, match=match):
        eh.measure.decision(tmp_path / "t.csv", **options)


def test_wrong_cases_and_settings_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("scenario,text\na,Help {person}?\nb,Help him?\n")
    with pytest.raises(DataError, match=r"row 2, column text: there is no \{person\}"):
        questions(data=str(table))
    table.write_text("text,good_answer\nHelp {person}?,maybe\n")
    with pytest.raises(DataError, match="the good answer is 'maybe'"):
        questions(data=str(table))
    with pytest.raises(SpecError, match="kind 'names'"):
        questions(lexicon="unqover_names")
    with pytest.raises(SpecError, match="formats: none: no text mentions people this way"):
        questions(formats=())


def test_refusals_in_files_are_compared_between_intersections_too(tmp_path: Path) -> None:
    """`--intersections` goes for answers that decline as it does for decisions."""
    said = {"wm": "Yes.", "ww": "Yes.", "bm": "No.", "bw": "I'm sorry, but I can't help with that."}
    rows = [f's{k},{who[0]},{who[1]},"{said[who]}"' for k in range(8) for who in said]
    table = tmp_path / "t.csv"
    table.write_text("\n".join(["scenario,race,gender,answer", *rows]))
    found = eh.measure.decision(table, reference=("race=w", "gender=m"), intersections=True)
    both = [r["group"] for r in found.refusals if r["factor"] == "race and gender"]
    assert both == ["b m", "b w", "w w"]
    assert len(found.refusals) == len(found.contrasts) == 5
    claims = found.claims()
    assert claims is not None
    refused = [f.id for f in claims.findings if f.metric == "refused_difference"]
    assert "decision/refused/race-and-gender/b-w" in refused


def test_a_preview_asks_what_the_run_asks() -> None:
    """A model that answers continuations alone is asked Yes and yes: the preview counts both."""
    asked = 0

    def score(prompt: str, option: str) -> float:
        nonlocal asked
        asked += 1
        return -1.0

    model = ScriptedModel({"continuation": score})
    probe = Decision(formats=("stated",), scenarios=4)
    probe.run(Ask(model), 0)
    preview = probe.preview(model.answers, 0)
    assert asked == len(preview.requests) == 4 * preview.items
    assert isinstance(preview.requests, Continuation)
    assert {*preview.requests.continuation} == {" Yes", " No", " yes", " no"}

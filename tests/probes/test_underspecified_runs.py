"""From suites to run folders, reports and comparison pages; and released prediction files."""

from __future__ import annotations

import gzip
import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest

from evenhand.audit.auditing import Audit
from evenhand.audit.comparison import model_names, side_by_side
from evenhand.audit.suites import load_suite, parse_suite
from evenhand.errors import DataError, RunError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.underspecified.compare import _shared, _top, preferences
from evenhand.probes.underspecified.numbers import NUMBERS
from evenhand.report.comparison_page import comparison_page
from evenhand.runs.record import Run, RunWriter
from told import told

WOMEN = ("Mary", "Patricia", "Linda", "Barbara", "Elizabeth", "Jennifer")
SUITE = {
    "name": "two",
    "probe": [
        {"name": "underspecified", "label": "gender", "terms": 8, "resamples": 60,
         "attributes": ["nurse", "hunter"], "templates": 2},
        {"name": "underspecified", "label": "religion", "social_class": "religion", "pairs": 12,
         "resamples": 60, "attributes": ["were rude", "stole a wallet"], "templates": 2},
    ],
}  # fmt: skip


def model(lean: float) -> ScriptedModel:
    from evenhand.words.lexicons import questions

    women = {s.term for s in questions.subjects("gender") if s.group == "female"}

    def answer(question: str, context: str, one: str, two: str) -> dict[str, float]:
        sign = (-1 if "never" in question else 1) * ("nurse" in question)
        wobble = (hash_of(question + context) % 100) / 2_000
        a = 0.4 + lean * sign * (1 if one in women else -1) / 2 + wobble
        b = 0.4 + lean * sign * (1 if two in women else -1) / 2
        return {"start": a, "end": a, "none": 0.0, "other_start": b, "other_end": b}

    return ScriptedModel({"span": answer}, name=f"lean-{lean}", version=str(lean))


def hash_of(text: str) -> int:
    return sum(ord(c) * (i + 1) for i, c in enumerate(text))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    folder = tmp_path_factory.mktemp("runs")
    suite = parse_suite(SUITE, "test", "two")
    made = []
    for lean in (0.3, 0.1, 0.0):
        asked = model(lean)
        job = Audit(suite, asked.name, folder / asked.name, loaded={asked.name: asked})
        job._check_models = lambda: None  # type: ignore[method-assign]
        made.append(job.run())
    return made


def test_models_are_compared_by_intensity_and_shared_attributes(runs: list[Run]) -> None:
    gender = preferences(runs, model_names(runs), "gender")
    mu = [row["mu"] for row in gender["models"]]
    assert mu[0] > mu[1] > mu[2]
    assert mu[0] == pytest.approx(0.3, abs=0.03)
    assert all(row["mu_floor"] > 0 for row in gender["models"])
    assert all(set(NUMBERS) <= set(row) for row in gender["models"])
    assert min(row["eta_p"] for row in gender["models"]) <= 0.05
    own = [r for r in gender["top"] if r["model"] == "lean-0.3"]
    first = next(r for r in own if r["group"] == "female")
    assert first["attribute"] == "nurse"
    assert first["detected"]
    shared = preferences(runs[:2], model_names(runs[:2]), "gender")["shared"]
    assert shared[0]["attribute"] == "nurse"
    assert shared[0]["detected_in"] == 2


def test_a_group_that_a_model_never_leans_to_keeps_its_rows(runs: list[Run]) -> None:
    """As in UnQover's Table 2, where one gender's largest gamma is negative in some models."""
    rows = [
        {"group": group, "attribute": job, "gamma": side * gamma, "low": 0.0, "high": 0.0,
         "q": 0.01, "eta": 0.0}
        for group, side in (("female", 1), ("male", -1))
        for job, gamma in (("nurse", 0.3), ("cook", 0.2), ("hunter", 0.0), ("mason", 0.1))
    ]  # fmt: skip
    top = _top("always-her", rows, "group", 0.05)
    hers, his = ([r for r in top if r["group"] == g] for g in ("female", "male"))
    assert [r["gamma"] for r in hers] == [0.3, 0.2, 0.1, 0.0]
    assert [(r["attribute"], r["gamma"]) for r in his] == [
        ("hunter", 0.0), ("mason", -0.1), ("cook", -0.2), ("nurse", -0.3),
    ]  # fmt: skip
    assert [r["place"] for r in his] == [1, 2, 3, 4]
    groups = {
        (r["model"], r["group"]) for r in preferences(runs, model_names(runs), "gender")["top"]
    }
    assert groups == {(name, g) for name in model_names(runs) for g in ("female", "male")}


def test_leans_of_terms_are_ranked_by_size_whatever_the_sign(runs: list[Run]) -> None:
    rows = [
        {"term": term, "attribute": "stole", "gamma": gamma, "low": 0.0, "high": 0.0, "q": 0.01,
         "eta": 0.0}
        for term, gamma in (("Finn", 0.1), ("Dane", -0.4), ("Swede", 0.3), ("Lett", None))
    ]  # fmt: skip
    assert [r["term"] for r in _top("any", rows, "term", 0.05)] == ["Dane", "Swede", "Finn"]
    tables = [[r for r in rows if r["gamma"] is not None], rows]
    shared = _shared(["one", "two"], tables, "term", 0.05)
    assert [(r["term"], r["mean"]) for r in shared] == [
        ("Dane", pytest.approx(-0.4)), ("Swede", pytest.approx(0.3)), ("Finn", pytest.approx(0.1)),
    ]  # fmt: skip


def test_runs_of_one_model_under_one_name_are_told_apart(runs: list[Run], tmp_path: Path) -> None:
    copies = [shutil.copytree(runs[0].folder, tmp_path / side / "run") for side in "ab"]
    found = side_by_side([Run.open(folder) for folder in (*copies, copies[0])])
    assert len(set(found.names)) == 3
    assert all(set(found.names) <= set(row) for row in found.rows())


def test_terms_are_ranked_over_models(runs: list[Run]) -> None:
    ranks = preferences(runs, model_names(runs), "religion")["ranks"]
    assert len(ranks) == 11
    assert [r["mean_rank"] for r in ranks] == sorted(r["mean_rank"] for r in ranks)
    assert all(r["sd"] == 0 for r in ranks)  # lean is about gender: the models agree here


def test_the_comparison_is_one_page_that_needs_nothing(runs: list[Run], tmp_path: Path) -> None:
    page = comparison_page(side_by_side(runs))
    assert "http://" not in page.split("<script>")[0]
    assert "Content-Security-Policy" in page
    for words in ("lean-0.3", "Intensity μ", "Ranks of terms", "Shared by all models"):
        assert words in page


def test_every_table_of_the_probe_has_a_chart(runs: list[Run]) -> None:
    from evenhand.probes.underspecified.probe import Underspecified
    from evenhand.runs.drawing import charts_of

    assert len(charts_of(runs[0], "religion")) >= 6
    assert set(runs[0].tables("religion")) - {"items"} <= set(Underspecified.charts())
    assert (runs[0].folder / "report.html").stat().st_size > 10_000


def test_runs_of_different_suites_are_not_compared(runs: list[Run], tmp_path: Path) -> None:
    asked = model(0.5)
    other = parse_suite({"name": "two", "probe": [SUITE["probe"][0]]}, "test", "two")  # type: ignore[index]
    job = Audit(other, asked.name, tmp_path / "x", loaded={asked.name: asked})
    job._check_models = lambda: None  # type: ignore[method-assign]
    with pytest.raises(RunError, match="differ in their suite"):
        side_by_side([runs[0], job.run()])


def test_a_sample_fitted_to_a_budget_is_named_when_runs_cannot_be_compared(
    runs: list[Run], tmp_path: Path
) -> None:
    copy = shutil.copytree(runs[0].folder, tmp_path / "x")
    facts = json.loads((copy / "run.json").read_text())
    facts["work"]["suite"]["probe"][1]["pairs"] = 9
    RunWriter(copy).facts(facts)
    with pytest.raises(RunError, match=r"\(religion: pairs is 12 and 9\).*without --budget"):
        side_by_side([runs[0], Run.open(copy)])


@pytest.mark.parametrize("name", ["unqover", "unqover-sampled"])
def test_the_recipes_are_sound(name: str) -> None:
    suite = load_suite(name)
    assert {e.probe.name for e in suite.entries} == {"underspecified"}
    for entry in suite.entries:
        assert len(entry.probe.design("lm", 0)) > 0  # type: ignore[attr-defined]


def released(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Rows of a golden file in the released prediction format."""
    out = {}
    for r in rows:
        key = "|".join(map(str, (r["cluster1"], r["cluster2"], r["subj1"], r["subj2"], r["tid"],
                                 r["attr_cluster"], r["attr"], r["attr"])))  # fmt: skip
        record: dict[str, Any] = {"context": "..."}
        for question in ("q0", "q1"):
            record[question] = {"question": "?", "pred": ""} | {
                who: {"text": "", "start": r["scores"][question][who][0],
                      "end": r["scores"][question][who][1]}
                for who in ("ans0", "ans1")
            }  # fmt: skip
        out[key] = record
    return out


@pytest.mark.shared
def test_released_predictions_are_scored(shared: Path, tmp_path: Path) -> None:
    for name in ("paper_example", "analysis_ethnicity"):
        data = json.loads((shared / "golden" / "unqover" / f"{name}.json").read_text())
        file = tmp_path / f"{name}.output.json"
        file.write_text(json.dumps(released(data["rows"]), indent=4))
        result = told("underspecified", file, resamples=50, samples=99)
        for mine, theirs in (("mu", "mu"), ("delta", "delta"), ("epsilon", "epsilon"),
                             ("mean_score", "avgS"), ("eta", "eta")):  # fmt: skip
            assert result[mine] == pytest.approx(data["expected"][theirs], abs=1e-12)


def test_predictions_that_were_never_made_are_refused(tmp_path: Path) -> None:
    empty = {q: {a: ["", ""] for a in ("ans0", "ans1")} for q in ("q0", "q1")}
    names = ("cluster1", "cluster2", "subj1", "subj2", "tid", "attr_cluster", "attr")
    rows = [{**dict(zip(names, ("None", "None", "A", "B", 0, "None", "x"))), "scores": empty}]
    file = tmp_path / "p.json"
    file.write_text(json.dumps(released(rows)))
    with pytest.raises(DataError, match="has no start and end probability"):
        told("underspecified", file)


def predicted(ends: list[Any]) -> dict[str, Any]:
    """Two ordered entries of one cell; one answer has these start and end probabilities."""
    names = ("cluster1", "cluster2", "subj1", "subj2", "tid", "attr_cluster", "attr")
    rows = []
    for one, two in (('"A"', "B"), ("B", '"A"')):
        scores = {q: {a: [0.25, 0.25] for a in ("ans0", "ans1")} for q in ("q0", "q1")}
        values = ("None", "None", one, two, 0, "None", "x")
        rows.append({**dict(zip(names, values)), "scores": scores})
    rows[0]["scores"]["q0"]["ans0"] = ends
    return released(rows)


@pytest.mark.parametrize("ends", [[2.0, 0.25], [-0.5, -0.5], [float("nan"), 0.5]])
def test_predictions_that_are_no_probabilities_are_refused(
    tmp_path: Path, ends: list[float]
) -> None:
    (tmp_path / "p.json").write_text(json.dumps(predicted(ends)))
    with pytest.raises(DataError, match=r"ans0: (2.0|-0.5|nan) is not a probability"):
        told("underspecified", tmp_path / "p.json")


def test_predictions_are_known_by_what_is_in_them_not_by_the_name(tmp_path: Path) -> None:
    text = json.dumps(predicted([0.81, 0.25]))
    (tmp_path / "p.output").write_text(text)
    (tmp_path / "p.json.gz").write_bytes(gzip.compress(text.encode()))
    for name in ("p.output", "p.json.gz"):
        found = told("underspecified", tmp_path / name, resamples=50)
        assert found["delta"] == pytest.approx((0.45 - 0.25) / 4)
        assert found["gamma"][0]["term"] == '"A"'


def test_one_template_only_gives_numbers_and_no_false_interval(tmp_path: Path) -> None:
    lines = ["template,attribute,first,second,negated,score_first,score_second"]
    for first, second in (("A", "B"), ("B", "A")):
        lines += [f"t,x,{first},{second},{n},0.6,0.3" for n in (0, 1)]
    file = tmp_path / "one.csv"
    file.write_text("\n".join(lines))
    result = told("underspecified", file, resamples=50)
    assert result["delta"] == pytest.approx(0.3)
    assert result["mu_low"] is None
    assert "no interval" in result["reason"]
    file.write_text("\n".join(lines[:-1]))
    partial = told("underspecified", file, resamples=50)
    assert partial["n_cells"] == 0
    assert partial["mu"] is None
    assert partial["coverage"]["n_missing"] == 1
    file.write_text("\n".join([*lines[:-1], "t,x,B,A,1,1.6,0.3"]))
    with pytest.raises(DataError, match="outside 0 to 1"):
        told("underspecified", file)
    assert math.isfinite(result["mu"])

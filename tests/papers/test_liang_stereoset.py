"""StereoSet: published predictions score to the published numbers; failures are never 50."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import DataError, SpecError
from evenhand.metrics.stereoset import Outcomes, icat, intervals, scores
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes import stereoset as files
from evenhand.probes.stereoset import StereoSet
from evenhand.runner.ask import Ask
from made_benchmarks import stereoset_gold
from told import told

FILES = {
    "gpt2": "predictions_gpt2_ModelNSP_GPT2LM.json.xz",
    "bert-base-cased": "predictions_bert-base-cased_BertNextSentence_BertLM.json.xz",
    "roberta-base": "predictions_roberta-base_ModelNSP_RoBERTaLM.json.xz",
}
NAMES = {"lms": "LM Score", "ss": "SS Score", "icat": "ICAT Score"}


@pytest.mark.shared
@pytest.mark.parametrize("model", FILES)
def test_published_predictions_score_to_the_published_numbers(model: str, shared: Path) -> None:
    folder = shared / "data" / "stereoset"
    published = json.loads((folder / "predictions" / "published_scores.json").read_text())[model]
    predictions = folder / "predictions" / FILES[model]
    gold = folder / "dev.json.gz"
    found = told("stereoset", predictions, gold=gold, resamples=50)["scores"]
    compared = 0
    for split in ("intrasentence", "intersentence"):
        for domain, row in published[split].items():
            for ours, theirs in NAMES.items():
                assert found[split][domain][ours] == pytest.approx(row[theirs], abs=1e-9)
                compared += 1
    for ours, theirs in NAMES.items():
        overall = published["overall"]
        overall = overall.get("overall", overall)
        assert found["overall"]["overall"][ours] == pytest.approx(overall[theirs], abs=1e-9)
    assert compared == 30
    assert found["overall"]["overall"]["n"] == 2106 + 2123


@pytest.mark.shared
def test_icat_of_the_papers_tables(shared: Path) -> None:
    rows = json.loads((shared / "golden" / "liang" / "icat_table.json").read_text())
    for row in rows:
        assert icat(row["lm"], row["ss"]) == pytest.approx(row["icat_recomputed"], abs=1e-9)
        assert icat(row["lm"], row["ss"]) == pytest.approx(row["icat_printed"], abs=0.015)


def test_ties_count_as_anti_and_terms_weigh_equally() -> None:
    outcomes = Outcomes.of([1.0, 2.0, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0])
    found = scores(outcomes, ["a", "b", "b", "b"])
    assert found["ss"] == 50.0  # 0 of 1 for a, 3 of 3 for b
    assert found["lms"] == 100.0


def test_a_failed_score_is_refused_or_left_out_never_fifty(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="never counted as the ideal 50"):
        Outcomes.of([np.nan], [1.0], [0.0])
    gold = stereoset_gold(tmp_path)
    predictions = tmp_path / "p.json"
    rows = [{"id": f"{e}{k}", "score": s} for e, scores in (("x", "321"),) for k, s in
            zip("sau", map(float, scores))]  # fmt: skip
    predictions.write_text(json.dumps({"intrasentence": rows}))
    result = told("stereoset", predictions, gold=gold)
    row = result["scores"]["intrasentence"]["gender"]
    assert (row["n"], row["n_missing"], row["ss"]) == (1, 1, 100.0)
    failed = tmp_path / "failed.json"
    failed.write_text(json.dumps({"intrasentence": [r | {"score": None} for r in rows]}))
    row = told("stereoset", failed, gold=gold)["scores"]["intrasentence"]["gender"]
    assert row["ss"] is None
    assert row["reason"] == "no example has all three scores"


def test_intervals_hold_the_estimate_and_need_two_terms() -> None:
    rng = np.random.default_rng(0)
    outcomes = Outcomes.of(*rng.normal(size=(3, 200)))
    terms = [str(i % 20) for i in range(200)]
    found, ends = scores(outcomes, terms), intervals(outcomes, terms)
    for name in ("lms", "ss", "icat"):
        assert ends[f"{name}_low"] <= found[name] <= ends[f"{name}_high"]
    assert np.isnan(intervals(outcomes, ["a"] * 200)["ss_low"])


def test_the_probe_scores_sentences_given_their_context(tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def likelihood(prefix: str, text: str) -> dict[str, float]:
        asked.append((prefix, text))
        return {"logprob": -float(len(text)), "n_tokens": 2}

    model = ScriptedModel({"continuation": likelihood})
    probe = StereoSet(file=str(stereoset_gold(tmp_path)), examples=None)
    made = probe.run(Ask(model), seed=0)
    assert ("Ann came.", " She left.") in asked
    assert ("", "Ann is kind.") in asked
    row = next(f for f in made.findings if f.id == "stereoset/intersentence/gender")
    assert row.n == 1
    assert row.value in (0.0, 100.0)
    with pytest.raises(SpecError, match="measure stereoset"):
        StereoSet(file="x", as_published=True).chosen()


def test_wrong_files_are_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("[]")
    with pytest.raises(DataError, match="expected a JSON object"):
        files.read_gold(bad)
    bad.write_text('{"data": {"intrasentence": [{"id": "x"}]}}')
    with pytest.raises(DataError, match="lacks 'sentences'"):
        files.read_gold(bad)
    with pytest.raises(DataError, match="no such file"):
        files.read_predictions(tmp_path / "none.json")

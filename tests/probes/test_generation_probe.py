"""The generation probe: paired draws, known shares, masking, prompts from files; ratings."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import evenhand as eh
from evenhand.audit.auditing import audit
from evenhand.audit.suites import parse_suite
from evenhand.errors import DataError, MissingExtra, ModelError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.models.loading.resolver import resolve
from evenhand.probes.generation import probe as generation
from evenhand.probes.generation.probe import Generation, read_prompts
from evenhand.probes.generation.ratings import Text, read_sheets, summarise, write_sheets
from evenhand.probes.generation.texts import Prompt, Scored, first_line, label_columns, scorer
from evenhand.runner.ask import Ask


class Words:
    """Negative for 'bad', positive for 'good'."""

    name, masks = "words", True
    seen: list[str] = []  # noqa: RUF012

    def __call__(self, texts: Sequence[str]) -> Scored:
        Words.seen = list(texts)
        score = np.asarray([("good" in t) - ("bad" in t) for t in texts], float)
        return Scored((score + 1).astype(np.int64), score)


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> ScriptedModel:
    monkeypatch.setattr(generation, "scorer", lambda name, ask: Words())
    return ScriptedModel({"generate": write})


def write(prompt: str, draw: str) -> dict[str, object]:
    lucky = sum(map(ord, draw)) % 2 == 0
    return {"text": " good" if "woman" in prompt or lucky else " bad", "n_tokens": 1}


def test_a_planted_difference_is_found_with_its_sign(model: ScriptedModel) -> None:
    measured = Generation(draws=8).run(Ask(model), seed=0)
    found = {f.metric: f for f in measured.findings}
    bad = found["negative_difference"]
    assert bad.groups == ("female", "male")
    assert bad.value == pytest.approx(-0.5, abs=0.01)
    assert bad.low <= bad.value <= bad.high < 0
    assert bad.q < 0.01
    assert found["neutral_difference"].value == 0
    assert found["score_difference"].value == pytest.approx(1.0, abs=0.02)
    shares = {r["group"]: r for r in measured.summary["shares"]}
    assert shares["female"]["positive"] == 1.0


def test_refusals_are_compared_by_group_and_are_no_neutral_texts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The model declines half of the texts about women; the others are as good as about men."""

    def shy(prompt: str, draw: str) -> dict[str, object]:
        if "woman" in prompt and sum(map(ord, draw)) % 2:
            return {"text": " I'm sorry, but I can't continue this text.", "n_tokens": 9}
        return {"text": " good", "n_tokens": 1}

    monkeypatch.setattr(generation, "scorer", lambda name, ask: Words())
    measured = Generation(draws=8).run(Ask(ScriptedModel({"generate": shy})), seed=0)
    found = {f.metric: f for f in measured.findings}
    refused = found["refused_difference"]
    assert refused.groups == ("female", "male")
    assert refused.value == pytest.approx(0.5, abs=0.01)
    assert 0 < refused.low < 0.5  # so few prompts that do not differ leave much open
    assert "declines 50.0 more than of 100 requests to write about 'male'" in refused.sentence
    assert found["positive_difference"].value == 0  # of the texts that were written
    assert measured.summary["refused"] == pytest.approx(0.25, abs=0.01)
    assert "25.0 % decline and 0.0 % are empty" in measured.summary["trust"][0]
    assert [row["refused"] for row in measured.summary["shares"]] == [0.5, 0.0]
    assert sum(measured.items["refused"].to_pylist()) == 0.25 * measured.items.num_rows


def test_a_model_that_declines_nothing_has_no_refusal_finding(model: ScriptedModel) -> None:
    measured = Generation(draws=8).run(Ask(model), seed=0)
    assert not [f for f in measured.findings if f.metric == "refused_difference"]


@pytest.mark.parametrize("text", ["I cannot help.", "", " ...", "\n"])
def test_a_model_that_writes_nothing_about_anybody_cannot_be_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    monkeypatch.setattr(generation, "scorer", lambda name, ask: Words())
    never = ScriptedModel({"generate": lambda p, d: {"text": text, "n_tokens": 3}})
    run = eh.audit(never, [Generation(draws=2)], out=tmp_path / "never")
    assert not [f for f in run.findings if f.metric == "positive_difference"]
    assert "are not compared: in all but 0 of" in json.dumps(run.facts)
    assert run.facts["controls"]["generation"]["verdict"] == "cannot judge"
    assert eh.gate(run).outcome == "cannot tell"


def test_the_demographic_is_masked_for_a_regard_scorer(model: ScriptedModel) -> None:
    Generation(draws=1).run(Ask(model), seed=0)
    assert all(t.startswith("XYZ ") for t in Words.seen)
    prompt = Prompt("gender", "male", "k", "The man was", "The man")
    assert first_line(prompt, " kind.\nNext", True) == "XYZ was kind."
    assert first_line(prompt, " kind.\nNext", False) == "The man was kind."


def test_numbers_follow_from_the_items(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Prompts that one group lacks, declined and empty texts count for no gap."""
    keys = [(g, k) for k in range(6) for g in "ba" if (g, k) not in (("a", 2), ("b", 4))]
    rows = "".join(f"{g},The {g} {k} is,{k}\n" for g, k in keys)
    (tmp_path / "p.csv").write_text(f"group,prompt,key\n{rows}")

    def written(prompt: str, draw: str) -> dict[str, object]:
        number = sum(map(ord, prompt + draw)) % 5
        text = (" good", " bad", " I'm sorry, but I can't continue this text.", "\n", " plain")[
            number
        ]
        return {"text": text, "n_tokens": 1}

    monkeypatch.setattr(generation, "scorer", lambda name, ask: Words())
    probe = Generation(file=str(tmp_path / "p.csv"), draws=7)
    measured = probe.run(Ask(ScriptedModel({"generate": written})), seed=0)
    assert {*measured.tables} == {"shares"}
    score: dict[tuple[str, str, int], float] = {}
    for row in measured.items.to_pylist():
        if not row["refused"] and not row["unread"]:
            score[row["group"], row["key"], row["draw"]] = row["score"]
    gaps = []
    for key in "0135":
        draws = [d for d in range(7) if ("a", key, d) in score and ("b", key, d) in score]
        gaps.append(np.mean([score["b", key, d] - score["a", key, d] for d in draws]))
    found = next(f for f in measured.findings if f.metric == "score_difference")
    assert (found.groups, found.n) == (("b", "a"), 4)
    assert found.value == pytest.approx(np.mean(gaps))
    assert found.error == pytest.approx(np.std(gaps, ddof=1) / 2)
    [example] = found.examples
    assert round(abs(example["gap"]), 4) in [round(abs(float(gap)), 4) for gap in gaps]
    assert example["typical"].endswith("prompts that agree, of 4")


def test_a_checkpoint_scorer_is_asked_through_the_same_door(tiny: Any, tmp_path: Path) -> None:
    """Its scores are shards, its fingerprint is in run.json, and a resumed run scores nothing."""
    folder = tmp_path / "regard-scorer"
    shutil.copytree(tiny("classifier"), folder)
    config = json.loads((folder / "config.json").read_text())
    config |= {"id2label": {"0": "negative", "1": "neutral", "2": "positive"}}
    config |= {"label2id": {v: int(k) for k, v in config["id2label"].items()}}
    (folder / "config.json").write_text(json.dumps(config))
    suite = {"name": "s", "probe": [{"name": "generation", "draws": 2, "scorer": str(folder)}]}
    model = ScriptedModel({"generate": write})
    run = audit(model, parse_suite(suite, "test", "s"), out=tmp_path / "run")
    judge = run.facts["models"][str(folder)]
    assert judge["fingerprint"] == resolve(str(folder)).fingerprint
    assert judge["labels"] == ["negative", "neutral", "positive"]
    kinds = {
        pq.read_schema(p).metadata[b"kind"].decode()
        for p in (run.folder / "requests").glob("*.parquet")
    }
    assert kinds == {"generate", "classify"}
    before = (run.folder / "findings.json").read_bytes()
    shards = run.facts["shards"]["total"]
    again = audit(model, parse_suite(suite, "test", "s"), out=tmp_path / "run")
    assert again.facts["shards"]["scored_by_attempt"] == {"1": shards}
    assert (again.folder / "findings.json").read_bytes() == before


def test_prompts_from_files(tmp_path: Path) -> None:
    table = tmp_path / "p.csv"
    table.write_text("group,prompt\na,One is\na,Two is\nb,Uno is\nb,Due is\n")
    assert [(p.group, p.key) for p in read_prompts(table)] == [
        ("a", "0"), ("a", "1"), ("b", "0"), ("b", "1"),
    ]  # fmt: skip
    bold = tmp_path / "gender_prompt.json"
    bold.write_text(json.dumps({"men": {"x": ["He was "]}, "women": {"y": ["She was ", "Z"]}}))
    assert [p.text for p in read_prompts(bold)] == ["He was", "She was"]
    bold.write_text("[]")
    with pytest.raises(DataError, match="not BOLD's JSON"):
        read_prompts(bold)


@pytest.mark.shared
def test_bold_and_honest_files_are_read(shared: Path) -> None:
    bold = read_prompts(shared / "data" / "bold" / "prompts" / "gender_prompt.json.xz")
    assert len({p.group for p in bold}) == 2
    honest = read_prompts(shared / "data" / "honest" / "binary_en_template.tsv")
    assert {p.group for p in honest} == {"female", "male"}
    assert all("[M]" not in p.text for p in honest)


def test_vader_gives_signs_and_wrong_scorers_are_named() -> None:
    try:
        vader = scorer("vader", Ask(ScriptedModel({})))
    except MissingExtra:
        pytest.skip("vaderSentiment is not installed")
    scored = vader(["What a wonderful day.", "A terrible, cruel crime.", "The table."])
    assert scored.labels.tolist() == [2, 0, 1]
    with pytest.raises(ModelError, match="train one with: evenhand train regard|Train one with"):
        label_columns(["LABEL_0", "LABEL_1"], "x")
    with pytest.raises(SpecError, match="axis 'age'"):
        Generation(axes=("age",)).prompts()


def test_sheets_are_blinded_and_ratings_come_back(tmp_path: Path) -> None:
    texts = [
        Text(m, p, s, f"text {m}{p}{s}")
        for m in ("own", "mitigated") for p in "12" for s in "ab"
    ]  # fmt: skip
    write_sheets(texts, tmp_path, raters=2, seed=1)
    sheet = (tmp_path / "rater1.csv").read_text()
    assert "mitigated" not in sheet.replace("text mitigated", "")
    key = json.loads((tmp_path / "key.json").read_text())
    with pytest.raises(DataError, match="clarity is ''. Accepted: 1 to 5"):
        read_sheets(tmp_path)
    for path in tmp_path.glob("rater*.csv"):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        with path.open("w", newline="") as file:
            out = csv.DictWriter(file, rows[0])
            out.writeheader()
            for row in rows:
                of = key[row["code"]]
                fair = 5 if of["model"] == "mitigated" or of["side"] == "a" else 2
                out.writerow({**row, "clarity": 4, "content": 3, "fairness": fair})
    found = {r.model: vars(r) for r in summarise(read_sheets(tmp_path))}
    assert found["own"]["relative_fairness"] == 3.0
    assert found["mitigated"]["relative_fairness"] == 0.0
    assert found["own"]["fairness_agreement"] == 1.0
    assert found["own"]["clarity"] == 4.0

"""Counterfactual texts: scripted judges, texts of one's own, heads of every sort, bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import evenhand as eh
from evenhand.compare.items import Items
from evenhand.errors import DataError, ModelError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.models.loading.resolver import resolve
from evenhand.probes.base import Measured
from evenhand.probes.counterfactual.gaps import gap, panels
from evenhand.probes.counterfactual.probe import Counterfactual, Scored, scored
from evenhand.probes.counterfactual.texts import Filled, Label, View
from evenhand.requests import Classify
from evenhand.runner.ask import Ask
from evenhand.words.lexicons import groups
from in_process import evenhand
from probe_cases import noise
from tiny import _bpe, wordpiece

BLACK = set(groups(["african_american"])["african_american"].terms)
NAMES = {name for group in groups().values() for name in group.terms}
RACE = "african_american-european_american"
TOXIC = ["fine", "toxic"]


def judge(harm: float, labels: list[str] | None = TOXIC, **facts: Any) -> ScriptedModel:
    """Texts differ, names and words a little; Black names cost so much."""

    def shares(text: str) -> list[float]:
        words = text.replace(",", "").replace(".", "").split()
        bad = 0.45 + 0.3 * noise(*sorted(set(words) - NAMES)[:3]) + 0.03 * noise(text)
        bad += harm * any(word in BLACK for word in words)
        return [1 - bad, bad] if labels is TOXIC else [bad] * len(labels or "1")

    told = {"labels": labels} if labels else {}
    return ScriptedModel({"classify": shares}, version=str((harm, labels)), facts=told | facts)


def measured(model: ScriptedModel, **settings: Any) -> dict[str, Any]:
    out = run(model, **settings)
    return {f.id.removeprefix("counterfactual/"): f for f in out.findings}


def run(model: ScriptedModel, **settings: Any) -> Measured:
    return Counterfactual(**settings).run(Ask(model), 0)


def test_sign_and_size_of_planted_names() -> None:
    for harm in (0.1, -0.1):
        found = measured(judge(harm), swaps=("names",))
        score = found[f"race/{RACE}/toxic/score"]
        assert score.low <= harm <= score.high
        assert score.q < 0.05
        assert "higher" in score.sentence
        assert found["gender/female-male/toxic/score"].q > 0.05
    even = measured(judge(0.0), swaps=("names",))
    assert min(f.q for f in even.values() if f.q == f.q) > 0.05


def test_placebos_are_names_of_one_group_control_words_and_halves_of_pairs() -> None:
    told = run(judge(0.1)).placebos
    assert {p.what.split(" ")[0] for p in told} == {"random", "control"}
    assert all(p.tests >= 100 and p.alarms / p.tests < 0.1 for p in told)


def test_a_score_needs_to_be_told_which_end_is_bad() -> None:
    unsure = run(judge(0.1, None), swaps=("names",))
    assert {f.metric for f in unsure.findings} <= {"label_gap", "call_gap"}
    assert "bad=high (or low)" in unsure.summary["trust"][0]
    low = measured(judge(0.1, None, activation="none"), swaps=("names",), bad="low", threshold=0.5)
    assert low[f"race/{RACE}/score/score"].metric == "points_gap"
    # More points are better, so that fewer texts with Black names fall short.
    assert low[f"race/{RACE}/score/decision"].value < 0
    high = measured(judge(0.1, None, activation="none"), swaps=("names",), bad="high")
    assert high[f"race/{RACE}/score/score"].metric == "burden_gap"
    assert high[f"race/{RACE}/score/score"].margin > 0


def test_labels_that_do_not_exclude_each_other_are_decided_one_by_one() -> None:
    both = measured(judge(0.1, ["toxic", "insult", "praise"], activation="sigmoid"),
                    swaps=("names",))  # fmt: skip
    assert {k.split("/")[2] for k in both} == {"toxic", "insult"}
    assert both[f"race/{RACE}/insult/decision"].value > 0
    moods = ["joy", "anger", "fear"]
    every = measured(judge(0.1, moods, activation="sigmoid"), swaps=("names",))
    assert {k.split("/")[2] for k in every} == set(moods)


@pytest.mark.parametrize(
    ("model", "settings", "error", "says"),
    [
        (judge(0.0), {"bad": "bland"}, SpecError, "fine, toxic"),
        (judge(0.0, None), {"bad": "toxic"}, SpecError, "high, low"),
        (judge(0.0, ["ENTAILMENT", "NEUTRAL"]), {}, ModelError, "measure counterfactual"),
        (judge(0.0), {"data": "gone.csv"}, DataError, "gone.csv"),
        (judge(0.0), {"identities": "height"}, SpecError, "religion"),
        (judge(0.0), {"groups": "female"}, SpecError, "two or more"),
        (judge(0.0), {"as_published": True}, SpecError, "no released code"),
        (judge(0.0), {"swaps": ("dialect",), "pairs": "gone.tsv"}, DataError, "gone.tsv"),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    model: ScriptedModel, settings: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        run(model, **settings)


def test_texts_of_ones_own_with_slots_names_and_labels(tmp_path: Path) -> None:
    """Slots, listed names and words for identities are found; errors are told from decisions."""
    things = "bag book cup hat key lamp map pen ring shoe sock toy van wig yarn zip".split()
    rows = ["text,label", "nobody is in this text,fine"]
    rows += [f"{{name}} has lost a {t}.,{TOXIC[k % 2]}" for k, t in enumerate(things)]
    rows += [f"I told Latisha about the {t}.,{TOXIC[k % 2]}" for k, t in enumerate(things)]
    rows += [f"A Muslim woman bought a {t}.,{TOXIC[k % 2]}" for k, t in enumerate(things)]
    (tmp_path / "own.csv").write_text("\n".join(rows))
    out = run(judge(0.2), data=str(tmp_path / "own.csv"))
    assert out.summary["notes"] == [
        "1 of 49 texts name nobody, or several people, and were left out"
    ]
    found = {f.id.removeprefix("counterfactual/"): f for f in out.findings}
    kinds = ("positive", "negative")
    wrong, missed = (found[f"race/{RACE}/toxic/false-{kind}"] for kind in kinds)
    assert wrong.value > 0 > missed.value
    assert wrong.metric == "false_positive_gap"
    assert "religion/jewish-christian/toxic/score" in found
    right = Counterfactual.behaviours(out.items)[0].values
    assert 0 < np.nanmean(right) < 1
    (tmp_path / "own.csv").write_text("text\nNo one.\nThe weather is fine.")
    with pytest.raises(DataError, match=r"none of 2 texts has a slot \{name\}"):
        run(judge(0.2), data=str(tmp_path / "own.csv"))
    (tmp_path / "own.csv").write_text("sentence\nHello {name}.")
    with pytest.raises(DataError, match="text"):
        run(judge(0.2), data=str(tmp_path / "own.csv"))
    (tmp_path / "own.csv").write_text("text,label\n{name} is here.,toxik\n{name} left.,fine")
    with pytest.raises(DataError, match=r"label 'toxik'.*fine, toxic"):
        run(judge(0.2), data=str(tmp_path / "own.csv"))


def test_dialects_near_copies_are_one_pair(tmp_path: Path) -> None:
    pairs = [f"{who} be {what}\t{who} is {what}" for what in ("late", "here", "up", "in", "out")
             for who in ("he", "she")]  # fmt: skip
    (tmp_path / "two.tsv").write_text("\n".join(pairs))
    found = measured(judge(0.0), pairs=str(tmp_path / "two.tsv"), pair_names=("one", "two"))
    assert found["dialect/one-two/toxic/score"].n == 5
    assert found["dialect/one-two/toxic/score"].metric == "dialect_score_gap"


def scores(folder: Path, texts: int, gap: float) -> tuple[Path, np.ndarray]:
    rng = np.random.default_rng(0)
    values = 0.4 + 0.2 * rng.random((texts, 1)) + 0.02 * rng.normal(size=(texts, 2)) + [[gap, 0]]
    rows = [f"t{k},{g},{values[k, n]:.6f}" for k in range(texts) for n, g in enumerate("ab")]
    path = folder / "scores.csv"
    path.write_text("\n".join(["item,group,score", *rows]))
    return path, np.asarray([row.split(",")[2] for row in rows], float).reshape(-1, 2)


def test_scores_from_elsewhere_are_the_paired_t_test(tmp_path: Path) -> None:
    path, values = scores(tmp_path, 30, 0.03)
    told = evenhand(
        "measure", "counterfactual", str(path), "--reference", "b", "--json", "-", cwd=tmp_path
    )
    (row,) = json.loads(told.stdout)["gaps"]
    assert {"group", "reference", "value", "low", "high", "p", "q", "n", "flips"} <= set(row)
    expected = stats.ttest_rel(values[:, 0], values[:, 1])
    low, high = expected.confidence_interval()
    found = [row[k] for k in ("value", "low", "high", "p")]
    assert found == pytest.approx(
        [np.diff(values[:, ::-1]).mean(), low, high, expected.pvalue], rel=1e-9
    )
    assert (row["n"], row["group"], row["reference"]) == (30, "a", "b")
    calls = values >= 0.5
    assert row["flips"] == pytest.approx((calls[:, 0] != calls[:, 1]).mean())


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("item,group,score\nt1,a,1\nt2,a,2", "only group"),
        ("item,group\nt1,a", "score"),
        ("item,group,score\nt1,a,\nt1,b,2", "row 1, column score"),
        ("item,group,score,label\nt1,a,1,perhaps\nt1,b,2,no", "label"),
    ],
)
def test_bad_scores_are_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(DataError, match=says):
        eh.measure.counterfactual(tmp_path / "bad.csv")


def test_items_scored_for_one_group_only_do_not_count(tmp_path: Path) -> None:
    path, _ = scores(tmp_path, 8, 0.03)
    path.write_text(path.read_text() + "\nalone,a,0.9")
    found = eh.measure.counterfactual(path, reference="b")
    assert (found.gaps[0].n, found.n_unpaired) == (8, 1)


def head(folder: Path, kind: str, **config: Any) -> tuple[str, Any, Any]:
    """An untrained checkpoint with a head for sequences."""
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = (wordpiece if kind == "bert" else _bpe)(transformers)
    small = {"vocab_size": len(tokenizer), "initializer_range": 0.3, **config}
    model: Any
    if kind == "bert":
        made = transformers.BertConfig(
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=4,
            intermediate_size=64,
            **small,
        )
        model = transformers.BertForSequenceClassification(made)
    else:
        decoder = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=4, **small)
        model = transformers.GPT2ForSequenceClassification(decoder)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder), tokenizer, model.eval()


MANY = "multi_label_classification"


@pytest.mark.model
@pytest.mark.parametrize(
    ("kind", "config", "activation"),
    [
        ("bert", {"num_labels": 3}, "softmax"),
        ("bert", {"num_labels": 3, "problem_type": MANY}, "sigmoid"),
        ("bert", {"num_labels": 1}, "none"),
        ("gpt2", {"num_labels": 2}, "softmax"),  # a decoder that knows no padding
        ("gpt2", {"num_labels": 1, "pad_token_id": 7}, "none"),
    ],
)
def test_numbers_are_those_of_the_head(
    tmp_path: Path, kind: str, config: dict[str, Any], activation: str
) -> None:
    import torch

    folder, tokenizer, plain = head(tmp_path / "m", kind, **config)
    model = resolve(folder)
    texts = ["the man worked", "the woman worked as a nurse in the same city", "he said"]
    given = Ask(model)(Classify(texts)).matrix("probabilities")
    with torch.inference_mode():
        logits = torch.cat([plain(**tokenizer(t, return_tensors="pt")).logits for t in texts])
    ways = {"softmax": logits.softmax(-1), "sigmoid": logits.sigmoid(), "none": logits}
    assert model.describe()["activation"] == activation
    assert np.allclose(given, ways[activation].numpy(), atol=1e-5)


def test_a_name_that_stands_in_two_tables_is_one_draw() -> None:
    rng, alarms = np.random.default_rng(0), []
    view = View("race", "names", {"b": ("b", ""), "w": ("w", "")}, "w", "")
    filled = [
        Filled("names", f"t{t}", cell, f"{cell}{n}", "")
        for t in range(20) for cell in ("b", "w") for n in range(6)
    ]  # fmt: skip
    # Texts of the second half agree with a gender: they also lack a third cell of names.
    filled += [Filled("names", f"t{t}", "x", f"x{n}", "") for t in range(10) for n in range(6)]
    rows = Items.from_rows(map(vars, filled))
    names = sorted({f.term for f in filled})
    at = np.asarray([names.index(f.term) for f in filled])
    for _ in range(200):
        values = rng.normal(size=len(names))[at] + 0.3 * rng.normal(size=len(filled))
        tables = panels(rows, values[:, None])
        assert len(tables) == 2
        found = gap(tables, view, "b", "w")
        assert found is not None
        assert found.terms == 6
        alarms.append(found.estimates()[0].p <= 0.05)
    assert np.mean(alarms) <= 0.09  # it was 0.17 when each table counted as names of its own


def test_halves_of_few_names_are_no_rate_and_those_of_many_are_steady() -> None:
    rng, rates = np.random.default_rng(0), []
    for size in (6, *[12] * 8):
        filled = [
            Filled("names", f"t{t}", cell, f"{cell}{n}", "")
            for t in range(10) for cell in "bw" for n in range(size)
        ]  # fmt: skip
        views = (View("race", "names", {"b": ("b", ""), "w": ("w", "")}, "w", ""),)
        label = Label("bad", 1, "high", cut=0.5)
        names = rng.normal(size=2 * size)[None, :].repeat(10, axis=0)
        score = (names + 0.3 * rng.normal(size=names.shape)).ravel()
        texts = Items.from_rows(map(vars, filled), about=Scored(views))
        items = scored(texts, [label], np.stack([score, score > 0])[None])
        (placebo,) = Counterfactual().checks(items, (), 0)
        assert (placebo.tests > 900) == (size > 6)
        rates += [placebo.alarms / placebo.tests] if placebo.tests else []
    assert max(rates) <= 0.07  # with 100 splits one in eight was above


def test_comparisons_of_a_file_that_cannot_be_made_have_no_row(tmp_path: Path) -> None:
    """They are told without a test; the table of gaps has the others, with their q."""
    rows = [f"t{k},{g},{(3 * k % 7 + (g == 'b')) / 10}" for k in range(12) for g in "ab"]
    (tmp_path / "s.csv").write_text("\n".join(["item,group,score", *rows, "t0,c,0.5"]))
    result = eh.measure.counterfactual(tmp_path / "s.csv", reference="a", bad="high")
    assert [(r["group"], r["n"]) for r in result.gaps] == [("b", 12), ("c", 1)]
    claims = result.claims()
    assert claims is not None
    untold = [f for f in claims.findings if "could not be compared" in f.sentence]
    assert {f.groups for f in untold} == {("c", "a")}
    table = claims.tables["gaps"]
    assert set(table.column("group").to_pylist()) == {"b"}
    by_id = {f.id.rpartition("/")[2]: f.q for f in claims.findings if f.groups[0] == "b"}
    told = dict(zip(table.column("kind").to_pylist(), table.column("q").to_pylist()))
    assert told["score"] == by_id["score"] < 0.05

"""GEST: published values from published scores, planted models, and files that are wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import DataError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.base import Way
from evenhand.probes.gest import KNOWN, OVERALL, Gest
from evenhand.runner.ask import Ask
from in_process import evenhand
from probe_cases import CASES, SAID

PUBLISHED = {
    "bert-base-uncased": "bert-base", "albert-base-v2": "albert-base",
    "bert-base-multilingual-cased": "bert-base-multi", "electra-base-generator": "electra-base",
    "electra-large-generator": "electra-large", "distilbert-base-uncased": "distilbert-base",
}  # fmt: skip
"""Models that the printed table calls by another name."""


@pytest.mark.shared
def test_published_rates_to_two_decimals(shared: Path) -> None:
    """Every printed r_i of a model whose scores there are, and every g_s to six decimals."""
    folder = shared / "data" / "gest"
    known = json.loads((folder / "known_answers.json").read_text())
    found = eh.measure.gest(folder / "predictions.csv.xz", base="10", as_published=True).rows
    rates: dict[str, dict[str, float]] = {}
    for row in found:
        rates.setdefault(row["score"], {})[row["stereotype"]] = row["masculine_rate"]
    assert len(rates) == 48
    order = [name for name, _ in KNOWN.values()]
    equal = 0
    for column, own in rates.items():
        _, model, template = column.split("/")
        printed = known["published_r_i_mean_2dp"][f"{PUBLISHED.get(model, model)}/{template}"]
        assert own["overall"] == pytest.approx(known["g_s"][column], abs=2e-6)
        equal += sum(abs(own[n] - p) < 0.00501 for n, p in zip(order, printed))
    assert equal == 48 * 16


@pytest.mark.shared
def test_all_printed_rates_from_means_of_stereotypes(shared: Path, tmp_path: Path) -> None:
    """All 1,408 printed r_i, and g_s: of models without scores, from the mean of a stereotype."""
    known = json.loads((shared / "data" / "gest" / "known_answers.json").read_text())
    names = {c: "/".join([PUBLISHED.get(c.split("/")[1], c.split("/")[1]), c.split("/")[2]])
             for c in known["r_i"]}  # fmt: skip
    columns = [c for c in known["r_i"] if names[c] in known["published_r_i_mean_2dp"]]
    rows = [[str(k + 1), *(repr(math.log(known["r_i"][c][k])) for c in columns)] for k in range(16)]
    table = tmp_path / "means.csv"
    table.write_text("\n".join(",".join(row) for row in [["stereotype", *columns], *rows]))
    found = eh.measure.gest(table, base="10", as_published=True).rows
    order = [OVERALL, *(name for name, _ in KNOWN.values())]
    equal = 0
    for row in found:
        place = order.index(row["stereotype"])
        if place:
            printed = known["published_r_i_mean_2dp"][names[row["score"]]][place - 1]
            equal += abs(row["masculine_rate"] - printed) < 0.00506  # r_i are stored to 4 decimals
        else:
            assert row["masculine_rate"] == pytest.approx(known["g_s"][row["score"]], abs=2e-4)
    assert equal == 1_408


@pytest.mark.shared
def test_one_base_is_the_published_rate_to_the_power_of_ln_10(shared: Path) -> None:
    table = shared / "data" / "gest" / "predictions.csv.xz"
    ask: Any = {"score": ("glm/gpt2/t0",), "base": "10"}
    sound = eh.measure.gest(table, **ask).rows
    published = eh.measure.gest(table, **ask, as_published=True).rows
    for one, two in zip(sound, published):
        assert one["masculine_rate"] == pytest.approx(two["masculine_rate"] ** math.log(10))
    assert published[0].masculine_rate == pytest.approx(1.1135, abs=5e-5)
    assert sound[0].found.value == pytest.approx(math.log(1.113549) * math.log(10), abs=1e-5)
    assert sound[0].found.p < 0.05
    assert sound[0].found.units == 16


def test_a_planted_lean_has_its_size_and_the_even_model_none(tmp_path: Path) -> None:
    case = CASES["gest"]
    probe = Gest(**case.settings(tmp_path, case.rows))
    planted, even = (
        {f.id: f for f in probe.run(Ask(case.model(lean)), 0).findings} for lean in (0.3, 0.0)
    )
    # he rises and she falls by 0.3 after stereotypes about men, the other way round about women
    assert planted["gest/overall"].value == pytest.approx(1.2, abs=0.1)
    assert planted["gest/are-tough"].value == pytest.approx(0.6, abs=0.1)
    assert planted["gest/are-weak"].value == pytest.approx(-0.6, abs=0.1)
    assert all(f.q < 0.01 for f in planted.values())
    assert all(f.q > 0.05 for f in even.values())
    assert 'odds of "he" are' in planted["gest/are-tough"].sentence
    assert 'odds of "she" are' in planted["gest/are-weak"].sentence


def test_masked_models_fill_all_four_templates(tmp_path: Path) -> None:
    texts = []

    def fill(text: str, word: str) -> dict[str, float]:
        texts.append(text)
        return {"logprob": -1.0 if word in ("He", "he", "man") else -2.0, "n_pieces": 1}

    probe = Gest(**CASES["gest"].settings(tmp_path, SAID))
    found = probe.run(Ask(ScriptedModel({"mask-score": fill})), 0)
    assert {t.replace(SAID[0][0], "S") for t in texts if SAID[0][0] in t} == {
        '<mask> said: "S"', 'The <mask> said: "S"', '"S", <mask> said.', '"S", the <mask> said.',
    }  # fmt: skip
    assert found.findings[0].value == 0.0  # a liking for "he" is no stereotype
    assert found.summary["scores"][0]["mean_score"] == pytest.approx(1.0)


def test_as_published_gives_g_s_of_each_template(tmp_path: Path) -> None:
    probe = Gest(**CASES["gest"].settings(tmp_path, SAID), as_published=True)
    found = probe.run(Ask(CASES["gest"].model(0.5)), 0).findings
    assert [f.id for f in found] == ["gest/t0/g_s", "gest/t1/g_s"]
    assert found[0].value == pytest.approx(math.exp(2.0 / math.log(10)), abs=0.1)
    assert len(found[0].details["r_i"]) == 6


def test_changes_are_estimated_item_by_item(tmp_path: Path) -> None:
    case = CASES["gest"]
    probe = Gest(**case.settings(tmp_path, case.rows))
    items = probe.run(Ask(case.model(0.2)), 0).items
    found = probe.estimates(items)
    told = {f.id.partition("/")[2]: f for f in probe.run(Ask(case.model(0.2)), 0).findings}
    assert set(found) == set(told)
    assert all(found[k].value == pytest.approx(f.value) for k, f in told.items())
    assert np.allclose(probe.behaviours(items)[0].values, 2 * math.exp(-3), rtol=0.3)


def test_wrong_files_and_settings_are_refused(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("sentence,stereotype\nI sing.,17\n")
    with pytest.raises(DataError, match="row 1, column stereotype: '17'.*usual"):
        Gest(data=str(table)).gather(Way("continuation"))
    table.write_text("sentence,stereotype,usual\nI sing.,singers,women\n")
    with pytest.raises(DataError, match="'women'. Accepted: male or female"):
        Gest(data=str(table)).gather(Way("continuation"))
    case = CASES["gest"]
    with pytest.raises(SpecError, match="templates has 7"):
        Gest(**case.settings(tmp_path, case.rows), templates=(7,)).run(Ask(case.model(0)), 0)
    table.write_text("stereotype\n1\n")
    done = evenhand("measure", "gest", str(table), cwd=tmp_path)
    assert done.returncode == 2
    assert "no column of scores" in done.stderr


def test_own_stereotypes_from_the_command_line(tmp_path: Path) -> None:
    rows = [f"s{k},{'cooks' if k % 4 < 2 else 'drives'}{k % 2},{'fe' * (k % 4 < 2)}male,"
            f"{(k % 4 >= 2) + k % 3 / 10}" for k in range(80)]  # fmt: skip
    (tmp_path / "t.csv").write_text("\n".join(["sentence,stereotype,usual,score", *rows]))
    done = evenhand("measure", "gest", "t.csv", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)["scores"]["score"]
    assert told["overall"]["value"] == pytest.approx(1.0, abs=0.05)
    assert told["drives1"]["low"] > 0

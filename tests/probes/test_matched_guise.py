"""Matched guises: human lists as published, planted models, own pairs, and files that are wrong."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import evenhand as eh
from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.errors import DataError, ModelError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.matched_guise.probe import Kind, MatchedGuise, Material
from evenhand.probes.matched_guise.published import Human, chance_agreement, read_pairs
from evenhand.runner.ask import Ask
from evenhand.words.lexicons import load
from in_process import evenhand
from probe_cases import CASES

CASE = CASES["matched-guise"]
WEIGHTED = {"katz": -0.917, "gilbert": -0.531, "karlins": 0.088, "bergsieker": 0.194}


@pytest.mark.shared
def test_human_lists_and_favourabilities_are_the_published_ones(shared: Path) -> None:
    folder = shared / "data" / "dialect_prejudice"
    human = Human.read(folder / "human_ratings.json")
    words = (folder / "katz.txt").read_text().split()
    published = json.loads((folder / "published_results.json").read_text())
    found = {made.study: made for made in human.lists(words)}
    assert {k: list(found[k].words) for k in WEIGHTED} == published["top5_humans"]
    assert {k: round(found[k].favorability, 3) for k in WEIGHTED} == WEIGHTED
    assert found["katz"].favorabilities == (-1.32, -1.75, 1.08, 0.15, -1.63)
    mean, spread = published["agreement_mean_average_precision"]["chance"]
    assert chance_agreement(len(words)) == pytest.approx(mean, abs=4 * spread / 100)  # 10,000 draws


@pytest.mark.shared
def test_agreement_of_ratios_with_human_lists(shared: Path, tmp_path: Path) -> None:
    """Words ranked as in 1933 agree fully with that list, and have its favourability."""
    folder = shared / "data" / "dialect_prejudice"
    words = (folder / "katz.txt").read_text().split()
    first = ["lazy", "ignorant", "musical", "religious", "stupid"]
    order = first + [w for w in words if w not in first]
    lines = [f"t{t},{w},{-k / 10},0" for t in range(3) for k, w in enumerate(order)]
    table = tmp_path / "r.csv"
    table.write_text("\n".join(["text,attribute,logprob_dialect,logprob_standard", *lines]))
    found = eh.measure.guise_ratios(table, human=folder / "human_ratings.json")
    assert list(found.top) == first
    assert found.human[0].agreement == 1.0
    assert found.words[1].value == pytest.approx(-0.1 / math.log(10))


@pytest.mark.shared
def test_the_published_pairs_are_one_unit_for_each_verb(shared: Path) -> None:
    found = read_pairs(shared / "data" / "dialect_prejudice")
    assert len(found) == 699
    assert len({pair.unit for pair in found}) == 233
    assert {pair.feature for pair in found} == {"habitual"}


@pytest.mark.shared
def test_as_published_gives_log10_ratios(shared: Path) -> None:
    def follows(text: str, word: str) -> dict[str, float]:
        return {"logprob": -3 + math.log(10) * (" be " in text and word == " lazy"), "n_tokens": 1}

    probe = MatchedGuise(data=str(shared / "data" / "dialect_prejudice"), texts=5,
                         as_published=True)  # fmt: skip
    done = probe.run(Ask(ScriptedModel({"continuation": follows})), 0)
    assert len(done.findings) == 37
    assert done.findings[0].attribute == "lazy"
    assert done.findings[0].value == pytest.approx(1.0)
    assert all(f.value == 0 for f in done.findings[1:])
    assert done.items.num_rows == 5 * 9 * 37
    assert done.summary["human"][0]["study"] == "katz"


def test_as_published_asks_for_the_likelihood_of_words_only(tmp_path: Path) -> None:
    release = tmp_path / "release"
    release.mkdir()
    (release / "pairs_made.tsv").write_text("he be late\the is late\nwe be here\twe are here\n")
    (release / "katz.txt").write_text("rude able")
    (release / "prompts.json").write_text(json.dumps({"TRAIT_PROMPTS": ["{} He is an"]}))
    probe = MatchedGuise(data=str(release), as_published=True)
    assert probe.choose(frozenset({"choose", "continuation"})) == "continuation"
    with pytest.raises(ModelError, match="matched-guise"):
        probe.choose(frozenset({"choose"}))

    def follows(text: str, word: str) -> dict[str, float]:
        return {"logprob": -2.0 - (" is " in text), "n_tokens": 1}

    done = probe.run(Ask(ScriptedModel({"continuation": follows})), 0)
    assert set(done.tables) == {"ratios"}  # none of the gaps, which nobody asked for
    [row] = done.tables["ratios"].to_pylist()
    assert (row["word"], row["n_clusters"]) == ("able", 2)  # "an" goes with one word only
    assert done.summary["by"] == "continuation"
    assert done.summary["ratios"][0]["word"] == done.summary["top"][0] == "able"


def test_a_planted_prejudice_has_its_size_and_the_even_model_none(tmp_path: Path) -> None:
    probe = MatchedGuise(**CASE.settings(tmp_path, CASE.rows))
    planted, even = ({f.id: f for f in probe.run(Ask(CASE.model(lean)), 0).findings}
                     for lean in (0.5, 0.0))  # fmt: skip
    assert set(planted) >= {f"matched-guise/{k}" for k in ("traits", "jobs", "decisions")}
    # 0.3 x 0.5 on average, times 0.8 plus what single texts add
    assert all(0.10 < f.value < 0.15 for f in planted.values())
    assert all(f.q < 0.01 for f in planted.values())
    assert all(f.q > 0.05 for f in even.values())
    told = planted["matched-guise/decisions"]
    assert told.generalises_over == ("texts", "features of the dialect", "questions")
    assert (
        "more get the harsher decision when the same thing is said in African American"
        in told.sentence
    )


def test_places_and_general_harshness_cancel(tmp_path: Path) -> None:
    """A model that takes what is named first, or whatever is worse, has no gap."""

    def first(prompt: str, options: str) -> list[float]:
        return [0.9, 0.1]

    probe = MatchedGuise(**CASE.settings(tmp_path, CASE.rows), kinds=("traits",))
    done = probe.run(Ask(ScriptedModel({"choose": first})), 0)
    assert all(f.value == 0 for f in done.findings)
    assert np.allclose(np.asarray(done.items.column("worse_dialect")), 0.5)


def test_refusals_are_counted_apart_and_compared(tmp_path: Path) -> None:
    def choose(prompt: str, options: str) -> dict[str, object]:
        declined = "." in prompt.partition("\n")[0]  # the dialect's texts end in a dot here
        return {"probabilities": [0.0, 0.0] if declined else [0.5, 0.5], "mass": 1.0 - declined,
                "refused": float(declined), "unread": 0.0}  # fmt: skip

    probe = MatchedGuise(**CASE.settings(tmp_path, CASE.rows))
    found = {f.id: f for f in probe.run(Ask(ScriptedModel({"choose": choose})), 0).findings}
    assert found["matched-guise/refused"].value == 1.0
    assert found["matched-guise/refused"].p == 2.0**-5  # six features, all of them alike
    traits = found["matched-guise/traits"]
    assert math.isnan(traits.value)
    assert traits.reason == "no answer could be read"


def test_free_answers_are_read_and_the_rest_counted(tmp_path: Path) -> None:
    rows = [f't{k},rude,polite,"{["Rude.", "They seem rude", "polite"][k % 3]}",polite'
            for k in range(30)]  # fmt: skip
    rows += ["t30,rude,polite,I'm sorry but I cannot answer that,polite", "t31,rude,polite,,polite",
             "t32,rude,polite,bananas,Polite!"]  # fmt: skip
    (tmp_path / "t.csv").write_text(
        "\n".join(["text,worse,better,answer_dialect,answer_standard", *rows])
    )
    done = evenhand("measure", "matched-guise", "t.csv", "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["answers"]["dialect"] == {"read": 30, "refused": 1, "unread": 1, "unasked": 1}
    assert told["answers"]["standard"]["read"] == 33
    assert told["gaps"][0]["value"] == pytest.approx(2 / 3)
    assert told["gaps"][0]["low"] > 0.4
    assert told["gaps"][0]["n_missing"] == 3


def test_own_questions_come_from_a_lexicon(tmp_path: Path) -> None:
    text = load("dialect_guises").path.read_text(encoding="utf-8").partition("[kinds.traits]")[0]
    own = text + '[kinds.tone]\nabout = "tone"\nworse = "cold"\nrows = [["cold", "warm", "{}"]]\n'
    path = tmp_path / "own.toml"
    path.write_text(own.replace("{}", "Is it {one} or {two}?"))
    assert [q.worse for q in MatchedGuise(questions=str(path)).material().questions] == ["cold"]
    path.write_text(own.replace("{}", "Is it cold?"))
    with pytest.raises(SpecError, match="does not name both answers"):
        MatchedGuise(questions=str(path)).material()
    with pytest.raises(SpecError, match="unknown kind of question 'trait'"):
        MatchedGuise(kinds=("trait",)).material()


def test_wrong_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("he be late\the is late\nshe be\n")
    with pytest.raises(DataError, match="line 2: 1 texts"):
        MatchedGuise(data=str(path)).material()
    with pytest.raises(DataError, match="publication's folder"):
        MatchedGuise(data=str(path.rename(tmp_path / "p.tsv")), as_published=True).release()
    (tmp_path / "t.csv").write_text("text,worse,score_dialect,score_standard\na,rude,1.5,0\n")
    done = evenhand("measure", "matched-guise", "t.csv", cwd=tmp_path)
    assert done.returncode == 2
    assert "row 1, column score_dialect: 1.5" in done.stderr


def test_changes_are_estimated_item_by_item(tmp_path: Path) -> None:
    probe = MatchedGuise(**CASE.settings(tmp_path, CASE.rows))
    done = probe.run(Ask(CASE.model(0.2)), 0)
    found = probe.estimates(done.items)
    told = {f.id.partition("/")[2]: f for f in done.findings}
    assert set(found) == set(told)
    assert all(found[k].value == pytest.approx(f.value) for k, f in told.items())


def test_two_questions_of_a_kind_are_few_whatever_the_texts() -> None:
    rng, p = np.random.default_rng(0), []
    texts, questions = np.indices((40, 2)).reshape(2, -1)
    about = Material(("", ""), "", (), (Kind("k", "", "", False, ()),))
    columns = {
        "unit": [f"t{t}" for t in texts],
        "feature": [""] * 80,
        "kind": ["k"] * 80,
        "question": [f"q{q}" for q in questions],
        "worse_standard": np.full(80, 0.5),
    }
    for _ in range(300):
        gap = rng.normal(0, 0.1, 2)[questions] + rng.normal(0, 0.05, 40)[texts]
        gap += rng.normal(0, 0.08, 80)
        items = Items({**columns, "worse_dialect": 0.5 + gap}, about=about)
        [row] = judge(MatchedGuise().declare(items))
        p.append(row.p)
    assert np.mean(np.asarray(p) <= 0.01) <= 0.01  # it was 0.025

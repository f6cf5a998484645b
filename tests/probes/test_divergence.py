"""The divergence probe on models with known answers: shifts of next words, grammar, distances."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import ModelError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.probes.divergence.probe import Divergence
from evenhand.probes.divergence.terms import material
from evenhand.requests import Requests
from evenhand.runner.ask import Ask
from evenhand.runs.finding import Finding

WOMEN = set("woman lady mother sister daughter wife girlfriend aunt grandmother niece".split())
JOBS = set(material(
    ["gender"], lexicon="contexts", controls="divergence_controls", lists="next_words", prompts=4,
    words=20,
).lists["jobs"].first)  # fmt: skip


def drawn(seed: int, *texts: str, sd: float) -> float:
    return float(np.random.default_rng([seed, *map(ord, "|".join(texts))]).normal(0, sd))


def distance(a: str, b: str) -> dict[str, float]:
    value = float(np.exp(drawn(0, a, b, sd=0.4) - 4))
    return {"kl_ab": 4 * value, "kl_ba": 4 * value, "hellinger2": min(1.0, value), "js": value}


def scripted(effect: float = 0.0, seed: int = 0, kinds: str = "continuation divergence") -> Any:
    """Terms and words are their own; women's jobs follow women by `effect` nats more."""

    def logprobs(requests: Requests) -> dict[str, Any]:
        out = []
        for text, word in requests.rows():
            value = -5 + drawn(seed, word, sd=1.0) + drawn(seed, text, word, sd=0.3)
            value += drawn(seed, text, sd=0.5)
            if WOMEN & set(text.split()) and word.strip() in JOBS:
                value += effect
            out.append(value)
        return {"logprob": np.asarray(out), "n_tokens": np.ones(len(out), np.int32)}

    def distances(requests: Requests) -> dict[str, Any]:
        rows = [distance(a, b) for a, b in requests.rows()]
        return {name: np.asarray([r[name] for r in rows]) for name in rows[0]}

    answers = {"continuation": logprobs, "divergence": distances}
    chosen = {kind: answers[kind] for kind in kinds.split()}
    return ScriptedModel(chosen, version=f"{effect} {seed}", whole=True)


def measured(effect: float = 0.0, seed: int = 0, **settings: Any) -> Any:
    probe = Divergence(**{"axes": ("gender",), "words": 8, **settings})
    return probe.run(Ask(scripted(effect, seed)), seed=0)


def claims(effect: float = 0.0, seed: int = 0, **settings: Any) -> dict[str, Finding]:
    return {f.id: f for f in measured(effect, seed, **settings).findings}


@pytest.fixture(scope="module")
def planted() -> dict[str, Finding]:
    return claims(1.5)


def test_a_planted_shift_is_found_in_its_direction_and_its_size_recovered(
    planted: dict[str, Finding],
) -> None:
    found = planted["divergence/gender/jobs/female-male"]
    assert found.q < 0.001
    assert found.low < 1.5 < found.high
    assert found.details["odds_ratio"] == pytest.approx(np.exp(found.value))
    assert f"at {np.exp(found.value):.1f} times the odds" in found.sentence
    assert found.sentence.index("held by women") < found.sentence.index("held by men")
    assert planted["divergence/gender/valence/female-male"].q > 0.05


def test_the_opposite_shift_reads_the_other_way_round() -> None:
    found = claims(-1.5)["divergence/gender/jobs/female-male"]
    assert found.value < 0
    assert found.sentence.index("held by men") < found.sentence.index("held by women")


def test_numbers_agree_and_say_what_they_stand_for(planted: dict[str, Finding]) -> None:
    for found in planted.values():
        if found.p == found.p:
            assert (found.p <= 0.05) == (not found.low <= 0 <= found.high)
            assert found.generalises_over == ("terms", "words")
            assert (found.units, found.n) == ("terms", 20)
            assert found.details["controls"] >= 40
            assert not any(word in found.otherwise for word in ("times", "rather", "more"))


def test_models_without_a_group_effect_get_few_small_p_values() -> None:
    p = [f.p for seed in range(25) for f in claims(0.0, seed).values() if f.p == f.p]
    assert len(p) == 50
    assert np.mean(np.asarray(p) <= 0.05) <= 0.12


def test_the_example_is_typical_and_agrees_with_the_sentence(planted: dict[str, Finding]) -> None:
    (example,) = planted["divergence/gender/jobs/female-male"].examples
    assert set(example["context_a"].split()) & WOMEN
    assert not set(example["context_b"].split()) & WOMEN
    assert example["shift"] > 0
    assert example["typical"] == "median of the 10 of 10 rows that lean this way"
    assert set(example["more_after_a"]) <= JOBS


def test_grammar_and_distances_are_context_without_a_verdict(planted: dict[str, Finding]) -> None:
    context = [f for f in planted.values() if f.metric in ("grammar_shift", "hellinger")]
    assert len(context) == 2
    for found in context:
        assert np.isnan(found.p)
        assert np.isnan(found.q)
        assert found.detected is None
        assert found.reason
        assert " far" not in found.sentence
    rank = planted["divergence/gender/distance"].details["rank_among_controls"]
    assert 0 <= rank <= 1


def test_of_several_groups_each_is_held_against_the_others() -> None:
    found = [f for f in claims(axes=("religion",)).values() if f.metric == "danger_shift"]
    assert [f.groups for f in found] == [
        (g, "the others") for g in ("christian", "jewish", "muslim", "hindu")
    ]
    assert sum(f.value for f in found) == pytest.approx(0, abs=1e-6)


def test_placebos_are_many_and_quiet() -> None:
    made = measured(1.5).placebos
    assert [p.tests for p in made] == [100, 100]
    assert sum(p.alarms for p in made) / 200 <= 0.12


def test_items_hold_every_question_and_its_shift() -> None:
    rows = measured(1.5).items.to_pylist()
    assert set(rows[0]) >= set(Divergence.item_shape.text + Divergence.item_shape.score)
    assert Divergence.item_shape.fits(rows[0])
    alone = [r for r in rows if r["list"] == "jobs" and r["row"] == 2 and r["word"] == "nurse"]
    own = {r["term"]: r for r in alone if r["axis"] == "gender"}
    mean = np.mean([r["logprob"] for r in own.values()])
    assert own["mother"]["shift"] == pytest.approx(own["mother"]["logprob"] - mean)


def test_an_impossible_word_is_left_out_and_counted() -> None:
    model = scripted()
    whole = model._functions["continuation"]

    def with_gaps(requests: Requests) -> dict[str, Any]:
        out = whole(requests)
        words = np.asarray([w for _, w in requests.rows()])
        return {**out, "logprob": np.where(words == " nurse", -np.inf, out["logprob"])}

    model._functions["continuation"] = with_gaps
    found = {f.id: f for f in Divergence(axes=("gender",), words=8).run(Ask(model), 0).findings}
    assert found["divergence/gender/jobs/female-male"].coverage == pytest.approx(15 / 16)
    assert found["divergence/gender/jobs/female-male"].p > 0


def test_one_row_without_controls_is_undefined_with_a_reason(tmp_path: Path) -> None:
    probe = Divergence(axes=("a",), lexicon=str(lexicon(tmp_path, form="other")))
    assert "no test is possible" in probe.preview(frozenset({"continuation"}), 0).notes[0]
    found = next(iter(probe.run(Ask(scripted()), 0).findings))
    assert np.isnan(found.p)
    assert "no spread of terms" in found.reason


def test_few_rows_are_announced_before_the_run() -> None:
    (note,) = Divergence().preview(frozenset({"continuation"}), 0).notes
    assert note.startswith("gender_identity: 3 rows of terms and 44 control terms")


def lexicon(
    folder: Path, *, form: str = "noun", row: str = '["x", "y"]', lists: str = '"valence"',
    axis: str = "a",
) -> Path:  # fmt: skip
    file = folder / "mine.toml"
    file.write_text(
        'title = "T"\nkind = "contexts"\nsource = "S"\nlicence = "L"\ncaveats = ["C"]\n'
        f'[matched.{axis}]\nform = "{form}"\nlists = [{lists}]\ngroups = ["g", "h"]\n'
        f"terms = [{row}]\n"
    )
    return file


@pytest.mark.parametrize("change", [{"lists": '"valence", "valence"'}, {"axis": "control"}])
def test_a_list_named_twice_or_an_axis_called_control_changes_nothing(
    tmp_path: Path, change: dict[str, str]
) -> None:
    shifts = []
    for changed in ({}, change):
        path = lexicon(tmp_path, row='["x", "y"], ["v", "w"]', **changed)
        probe = Divergence(axes=(changed.get("axis", "a"),), lexicon=str(path))
        shifts.append(probe.run(Ask(scripted(kinds="continuation")), seed=0).findings)
    first, second = shifts
    assert len(first) == len(second) == 1
    assert (first[0].value, first[0].p) == (second[0].value, second[0].p)


def test_the_table_of_shifts_holds_the_numbers_of_the_findings(
    planted: dict[str, Finding],
) -> None:
    run = measured(1.5)
    rows = run.tables["shifts"].to_pylist()
    judged = [f for f in planted.values() if f.p == f.p]
    assert [row["metric"] for row in rows] == [f.metric for f in judged]
    for row, found in zip(rows, judged):
        assert (row["n"], row["groups"]) == (found.n, " / ".join(found.groups))
        numbers = [getattr(found, name) for name in ("value", "low", "high", "p", "q")]
        assert [row[n] for n in ("value", "low", "high", "p", "q")] == pytest.approx(numbers)
        assert row["neutral_high"] == pytest.approx(found.details["neutral_reach"])
        assert "error" not in row
    again = Divergence(axes=("gender",), words=8).material().questions()
    answered = again.having({"logprob": run.items["logprob"].to_numpy()})
    same = Divergence(axes=("gender",), words=8).measure(answered, seed=0)
    assert [f.value for f in same.findings if f.p == f.p] == [f.value for f in judged]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"row": '["x"]'}, "one term per group"),
        ({"row": '"x"'}, "a list of rows"),
    ],
)
def test_mistakes_in_a_users_terms(tmp_path: Path, change: dict[str, str], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Divergence(axes=("a",), lexicon=str(lexicon(tmp_path, **change))).material()


def test_unknown_axes_get_a_suggestion() -> None:
    with pytest.raises(SpecError, match="Did you mean 'religion'"):
        Divergence(axes=("relgion",)).material()


def test_a_model_without_continuations_gets_distances_alone() -> None:
    made = Divergence(axes=("gender",)).run(Ask(scripted(kinds="divergence")), seed=0)
    assert [f.metric for f in made.findings] == ["hellinger"]
    assert "context_a" in made.items.column_names


def test_whole_distributions_need_a_model_that_gives_them(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="answers divergence"):
        Divergence(as_published=True).run(Ask(scripted(kinds="continuation")), seed=0)
    made = Divergence(axes=("gender",)).run(Ask(scripted(kinds="continuation")), seed=0)
    assert "hellinger" not in {f.metric for f in made.findings}


def test_own_pairs_keep_the_contract_and_have_no_test(tmp_path: Path) -> None:
    file = tmp_path / "pairs.csv"
    file.write_text("context_a,context_b\nThe man was,The woman was\nHe was,She was\n")
    probe = Divergence(file=str(file))
    made = probe.run(Ask(scripted()), seed=0)
    rows = probe.rows(made.items)["pairs"]
    assert set(rows[0]) >= {"context_a", "context_b", "kl_ab", "kl_ba", "hellinger2"}
    assert made.summary["hellinger2"]["low"] <= made.summary["hellinger2"]["mean"]
    assert np.isnan(made.findings[0].p)
    assert "no test" in made.findings[0].reason


def test_as_published_prints_the_unsquared_distance_on_ten_prompts() -> None:
    probe = Divergence(axes=("gender",), as_published=True)
    made = probe.run(Ask(scripted()), seed=0)
    finding = made.findings[0]
    rows = [r for r in made.items.to_pylist() if r["group_b"] == "male"]
    assert (finding.metric, finding.n) == ("hellinger", 10)
    right = np.mean([np.sqrt(r["hellinger2"]) for r in rows])
    assert finding.value == pytest.approx(right)


def test_a_budget_takes_words_away_and_more_can_be_had() -> None:
    assert Divergence(words=8).within(0.5).words == 4  # type: ignore[attr-defined]
    assert Divergence(words=8).finer().words == 20  # type: ignore[union-attr]
    assert Divergence(words=20).finer() is None

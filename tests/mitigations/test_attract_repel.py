"""ATTRACT-REPEL: reference costs and step, only touched rows move, WEAT goes the asked way."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import DataError, SpecError
from evenhand.metrics.association import weat
from evenhand.mitigations.vectors import attract_repel as job
from evenhand.models.vectors.files import VectorTable
from evenhand.words import lexicons
from evenhand.words.lexicons import WordSets

torch = pytest.importorskip("torch", reason="needs the hf extra")

ROWS = ("x", "y", "a", "b")


def made(seed: int = 0, n: int = 40, d: int = 12) -> VectorTable:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * rng.uniform(0.5, 3, size=(n, 1))
    return VectorTable(pa.array([f"w{k:02}" for k in range(n)]), rows.astype(np.float32), "made")


def words(start: int, stop: int) -> tuple[str, ...]:
    return tuple(f"w{k:02}" for k in range(start, stop))


SETS = WordSets("made", words(0, 6), words(6, 12), words(12, 15), words(15, 18))


def size(table: VectorTable, sets: WordSets) -> float:
    return weat(*(table.find(getattr(sets, key)).rows for key in ROWS)).effect_size


@pytest.fixture(scope="module")
def golden(shared: Path) -> dict[str, Any]:
    return dict(json.loads((shared / "golden" / "kato" / "attract_repel_tiny.json").read_text()))


def problem_of(golden: dict[str, Any], case: dict[str, Any], **changes: Any) -> Any:
    """The reference words as a problem; pair numbers are word numbers."""
    start = np.array(golden["X"])
    if case["initial"].startswith("unit"):
        start /= np.linalg.norm(start, axis=1, keepdims=True)
    chosen = job.AttractRepel(
        attract_margin=case["attract_margin"], repel_margin=case["repel_margin"], start="raw",
        same_word=True, **changes,
    )  # fmt: skip
    entries = (np.arange(50)[:, None], np.ones((50, 1)))
    problem = job.Problem(start, entries, chosen, None)
    if case["state"] == "perturbed":
        problem.weight += torch.as_tensor(np.array(golden["noise"]))
    return problem


def numbers(golden: dict[str, Any], name: str) -> np.ndarray:
    return np.array([[int(word[1:]) for word in pair] for pair in golden[name]])


@pytest.mark.shared
def test_negatives_and_costs_of_the_reference_cases(golden: dict[str, Any]) -> None:
    for case in golden["cases"]:
        for kind, (name, list_) in enumerate((("attract", "synonyms"), ("repel", "antonyms"))):
            pairs = numbers(golden, list_)
            problem = problem_of(golden, case)
            codes = torch.as_tensor(pairs.T.reshape(-1).copy())
            x = problem._unit(problem._terms(problem.weight, codes))
            chosen, usable = problem.chosen_negatives(kind, codes, x)
            seen = codes[chosen].reshape(2, -1).T.tolist()
            assert seen == [[int(w[1:]) for w in pair] for pair in case[f"neg_{name}"]]
            np.testing.assert_allclose(
                problem.hinges(kind, x, chosen, usable), case[f"{name}_per_pair"], atol=1e-9
            )


@pytest.mark.shared
@pytest.mark.parametrize("weight", ["1e-09", "0.01", "0.1"])
def test_both_forms_of_the_regularisation(golden: dict[str, Any], weight: str) -> None:
    for case in golden["cases"]:
        wanted = case[f"reg_lambda_{weight}"]
        total = 0.0
        for kind, (name, list_) in enumerate((("attract", "synonyms"), ("repel", "antonyms"))):
            pairs = numbers(golden, list_)
            released = problem_of(golden, case, reg="released", regularisation=float(weight))
            cost = float(released.cost(kind, pairs, released.weight, None))
            assert cost == pytest.approx(wanted[f"code_total_cost_{name}"], abs=1e-9)
            paper = problem_of(golden, case, reg="paper", regularisation=float(weight))
            codes = torch.as_tensor(pairs.T.reshape(-1).copy())
            held = float(paper.held(codes, paper.weight, None))
            assert held == pytest.approx(wanted[f"paper_norm_{name}"], abs=1e-9)
            total += float(paper.cost(kind, pairs, paper.weight, None))
        assert total == pytest.approx(wanted["paper_total_cost"], abs=1e-9)


@pytest.mark.shared
def test_one_clipped_step(golden: dict[str, Any]) -> None:
    wanted = golden["adagrad_step"]
    problem = problem_of(golden, golden["cases"][0], reg="released", regularisation=0.01)
    before = problem.vectors().copy()
    cost = problem.step(0, numbers(golden, "synonyms"))
    after = problem.vectors()
    assert cost == pytest.approx(wanted["cost"], abs=1e-9)
    np.testing.assert_allclose(after[2], wanted["after_step_row_w02"], atol=1e-9)
    np.testing.assert_allclose(after[30], wanted["after_step_row_w30_untouched"], atol=0)
    slope = (problem.sums[0].numpy()[2] - 0.1) ** 0.5 * np.sign(before[2] - after[2])
    np.testing.assert_allclose(slope, wanted["grad_row_w02"], atol=1e-8)


@pytest.mark.parametrize("reg", ["paper", "released"])
@pytest.mark.parametrize("kind", [0, 1])
def test_the_slope_is_that_of_the_cost(reg: Any, kind: int) -> None:
    table = made(d=5)
    chosen = job.AttractRepel(reg=reg, regularisation=0.3, attract_margin=0.4, repel_margin=0.3)
    entries = (np.array([[0, 1], [2, 2], [3, 3], [4, 4]]), np.array([[0.5, 0.5], *[[1, 0]] * 3]))
    problem = job.Problem(table.matrix[:5].astype(np.float64), entries, chosen, None)
    problem.weight += 0.1 * torch.as_tensor(np.random.default_rng(1).normal(size=(5, 5)))
    pairs = np.array([[0, 1], [2, 3]])
    weight = problem.weight.clone().requires_grad_(True)
    (slope,) = torch.autograd.grad(problem.cost(kind, pairs, weight, None), weight)
    for place in ((0, 0), (1, 3), (4, 2)):
        step = torch.zeros_like(problem.weight)
        step[place] = 1e-6
        ends = [float(problem.cost(kind, pairs, problem.weight + s * step, None)) for s in (1, -1)]
        assert (ends[0] - ends[1]) / 2e-6 == pytest.approx(float(slope[place]), abs=1e-6)


@given(st.integers(0, 100), st.sampled_from(["reduce", "increase"]), st.booleans())
@settings(max_examples=8, deadline=None)
def test_untouched_rows_keep_their_bytes_and_touched_ones_their_length(
    seed: int, direction: str, published: bool
) -> None:
    table = made(seed)
    attract, repel = job.pairs_for(SETS, direction)
    options = {"batch_size": 9, "epochs": 2, "seed": seed}
    moved = job.attract_repel(table, attract, repel, **options)
    np.testing.assert_array_equal(moved.matrix[18:], table.matrix[18:])
    assert (np.abs(moved.matrix[:18] - table.matrix[:18]).max(axis=1) > 1e-4).all()
    lengths = [np.linalg.norm(t.matrix, axis=1) for t in (moved, table)]
    np.testing.assert_allclose(*lengths, rtol=1e-6)
    if published:
        unit = job.attract_repel(table, attract, repel, as_published=True, **options)
        np.testing.assert_allclose(np.linalg.norm(unit.matrix, axis=1), 1, rtol=1e-6)
        cosines = [t.matrix[18:] @ t.matrix[18:].T for t in (unit, table)]
        outer = np.outer(lengths[1][18:], lengths[1][18:])
        np.testing.assert_allclose(cosines[0], cosines[1] / outer, atol=1e-5)


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("state", ["separate", "shared"])
def test_the_effect_size_goes_the_asked_way(published: bool, state: str) -> None:
    table = made(4)
    before = size(table, SETS)
    options = {"batch_size": 9, "optimizer_state": state}
    reduced, increased = (
        size(
            job.attract_repel(table, *job.pairs_for(SETS, way), as_published=published, **options),
            SETS,
        )
        for way in ("reduce", "increase")
    )
    assert reduced < before < increased


def test_same_seed_same_bytes_and_another_seed_others() -> None:
    attract, repel = job.pairs_for(SETS)
    one, again, other = (
        job.attract_repel(made(), attract, repel, batch_size=9, seed=s).matrix for s in (1, 1, 2)
    )
    assert one.tobytes() == again.tobytes()
    assert one.tobytes() != other.tobytes()


def test_a_term_of_two_words_moves_both() -> None:
    table = made()
    moved = job.attract_repel(table, [("w00 w01", "w02"), ("w03", "w04")], [])
    changed = np.flatnonzero((moved.matrix != table.matrix).any(axis=1))
    assert changed.tolist() == [0, 1, 2, 3, 4]
    before, after = (
        float(t.find(["w00 w01"]).rows[0] @ t.find(["w02"]).rows[0]) for t in (table, moved)
    )
    assert after > before


def test_separate_state_takes_larger_steps_than_shared() -> None:
    attract, repel = job.pairs_for(SETS)
    table = made()
    far = {
        state: np.abs(
            job.attract_repel(table, attract, repel, batch_size=9, optimizer_state=state).matrix
            - table.matrix
        ).mean()
        for state in ("separate", "shared")
    }
    assert far["separate"] > far["shared"]


def test_a_strong_hold_keeps_words_near_their_start() -> None:
    attract, repel = job.pairs_for(SETS)
    table = made()
    far = [
        np.abs(
            job.attract_repel(table, attract, repel, batch_size=9, regularisation=w).matrix
            - table.matrix
        ).mean()
        for w in (0.0, 1.0)
    ]
    assert far[1] < far[0]


def test_few_pairs_are_trained_unless_published_rules_drop_them() -> None:
    attract, repel = job.pairs_for(SETS)
    table = made()
    trained = job.train(table, attract, repel, settings=job.AttractRepel(epochs=1))
    assert (trained.attract, trained.repel) == (36, 36)
    assert len(trained.losses) == 1
    published = job.train(table, attract, repel, settings=job.AttractRepel(epochs=1).as_published())
    assert published.losses == ()


def test_pairs_that_clash_or_miss_are_left_out() -> None:
    trained = job.train(
        made(),
        [("w00", "w01"), ("w01", "w00"), ("w02", "w02"), ("w03", "gone"), ("w05", "w06")],
        [("w05", "w06"), ("w07", "w08")],
        settings=job.AttractRepel(epochs=0),
    )
    assert (trained.attract, trained.repel, trained.missing) == (1, 2, ("gone",))
    assert trained.rows.tolist() == [0, 1, 5, 6, 7, 8]


def test_a_word_is_not_its_own_negative() -> None:
    problem = job.Problem(
        made(d=4).matrix[:4].astype(np.float64),
        (np.arange(4)[:, None], np.ones((4, 1))), job.AttractRepel(), None,
    )  # fmt: skip
    pairs = np.array([[0, 1], [0, 2], [0, 3]])
    codes = torch.as_tensor(pairs.T.reshape(-1).copy())
    chosen, usable = problem.chosen_negatives(0, codes, problem.begin[codes])
    assert (codes[chosen][:3] != 0).all()
    # All others of the batch are the word or its partner: there is no negative.
    two = torch.as_tensor([0, 0, 1, 1])
    _, usable = problem.chosen_negatives(0, two, problem.begin[two])
    assert not usable.any()


def test_wrong_input() -> None:
    with pytest.raises(SpecError, match="unknown direction 'redcue'. Did you mean 'reduce'"):
        job.pairs_for(SETS, "redcue")
    with pytest.raises(DataError, match=r"none of the 2 pairs.*without a vector: gone, lost"):
        job.attract_repel(made(), [("gone", "w00")], [("lost", "w01")])
    with pytest.raises(SpecError, match="unknown reg 'none'"):
        job.attract_repel(made(), [("w00", "w01")], [], reg="none")
    with pytest.raises(SpecError, match="batch_size: '1' is too small"):
        job.attract_repel(made(), [("w00", "w01")], [], batch_size=1)


def test_functions_and_tables_can_be_sent_to_other_processes() -> None:
    function = pickle.loads(pickle.dumps(job.attract_repel))
    table = pickle.loads(pickle.dumps(made()))
    assert function is job.attract_repel
    np.testing.assert_array_equal(table.matrix, made().matrix)


def expanded(table: VectorTable, sets: WordSets, k: int = 5) -> WordSets:
    """Each set with the k nearest words of its words; words of two sets stay in neither."""
    unit = table.matrix / np.linalg.norm(table.matrix, axis=1, keepdims=True)
    names = table.words
    grown = {}
    for key in ROWS:
        rows = table.find(getattr(sets, key)).rows
        near = np.argpartition(-(rows / np.linalg.norm(rows, axis=1)[:, None]) @ unit.T, k, axis=1)
        found = [names[int(i)].as_py() for i in near[:, : k + 1].ravel()]
        grown[key] = dict.fromkeys([*(w.lower() for w in getattr(sets, key)), *found])
    own = {key: {w.lower() for w in getattr(sets, key)} for key in ROWS}
    return WordSets(
        "expanded",
        *(
            tuple(
                word for word in grown[key]
                if word in own[key] or not any(word in grown[o] for o in ROWS if o != key)
            )
            for key in ROWS
        ),
    )  # fmt: skip


@pytest.mark.model
def test_the_winobias_sets_on_glove(glove: VectorTable) -> None:
    test = lexicons.weat("kato_winobias")
    sets = expanded(glove, test)
    before = size(glove, test)
    moved = {
        way: job.attract_repel(glove, *job.pairs_for(sets, way), epochs=1, regularisation=0.01)
        for way in job.DIRECTIONS
    }
    assert size(moved["reduce"], test) < before - 0.5
    assert size(moved["increase"], test) > before
    touched = {r for key in ROWS for rows in glove.places(getattr(sets, key)) for r in rows}
    rest = np.setdiff1d(np.arange(len(glove)), sorted(touched))
    for table in moved.values():
        np.testing.assert_array_equal(table.matrix[rest], glove.matrix[rest])
    asked = rest[:: len(rest) // 10]
    unit = glove.matrix[rest] / np.linalg.norm(glove.matrix[rest], axis=1, keepdims=True)
    for table in moved.values():
        # Among words that are in no set, nearest neighbours are the same to the last place.
        same = table.matrix[rest] / np.linalg.norm(table.matrix[rest], axis=1, keepdims=True)
        near = [np.argpartition(-(m[asked] @ u.T), 11, axis=1)[:, :11]
                for m, u in ((glove.matrix, unit), (table.matrix, same))]  # fmt: skip
        np.testing.assert_array_equal(near[0], near[1])

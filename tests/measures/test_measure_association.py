"""`measure association`: true permutation tests, coverage, and nulls with reasons."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from evenhand.errors import DataError, ModelError, SpecError
from evenhand.metrics import association as metrics
from evenhand.metrics import embedding
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.probes.association.score import associate, choose_tests
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets
from told import told

NAMES = {key: tuple(f"{key}{k}" for k in range(n)) for key, n in zip("xyab", (6, 6, 4, 5))}


def made(seed: int = 0, lean: float = 0.5) -> VectorTable:
    rng = np.random.default_rng(seed)
    words = [word for part in NAMES.values() for word in part]
    rows = rng.normal(size=(len(words), 8))
    side = {"x": lean, "y": -lean, "a": 2.0, "b": -2.0}
    rows[:, 0] += [side[word[0]] for word in words]
    return VectorTable(pa.array(words), rows.astype(np.float32), "made")


def made_test(**changed: tuple[str, ...]) -> WordSets:
    return WordSets(name="made", **{**NAMES, **changed})


def one(vectors: VectorTable, test: WordSets, **options: object) -> dict[str, object]:
    (row,) = associate(vectors, [test], **options)
    return dict(plain(row))


@pytest.mark.parametrize("seed", range(5))
def test_p_is_a_permutation_test_by_full_enumeration(seed: int) -> None:
    vectors = made(seed)
    row = one(vectors, made_test())
    x, y, a, b = (vectors.find(NAMES[key]).rows for key in "xyab")
    s = metrics.associations(np.concatenate([x, y]), a, b)
    null = [2 * s[list(part)].sum() - s.sum() for part in itertools.combinations(range(12), 6)]
    seen = s[:6].sum() - s[6:].sum()
    assert row["p_method"] == "exact"
    assert row["n_partitions"] == 924
    assert row["statistic"] == pytest.approx(seen, abs=1e-12)
    assert row["p_right"] == pytest.approx(np.mean(np.array(null) >= seen - 1e-12))
    assert row["p_two_sided"] == pytest.approx(np.mean(np.abs(null) >= abs(seen) - 1e-12))


def test_a_negative_statistic_has_a_sensible_two_sided_p() -> None:
    forward = one(made(lean=2.0), made_test())
    backward = one(made(lean=2.0), made_test(x=NAMES["y"], y=NAMES["x"]))
    assert backward["statistic"] == -forward["statistic"]  # type: ignore[operator]
    assert forward["p_two_sided"] < 0.05  # type: ignore[operator]
    assert backward["p_two_sided"] == pytest.approx(forward["p_two_sided"])
    assert backward["p_right"] > 0.95  # type: ignore[operator]


def test_many_partitions_are_sampled_with_a_seed() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(60)]
    vectors = VectorTable(pa.array(words), rng.normal(size=(60, 6)).astype(np.float32), "many")
    test = WordSets(
        "many", *(tuple(words[i : i + n]) for i, n in ((0, 20), (20, 20), (40, 10), (50, 10)))
    )
    row = one(vectors, test, samples=999, seed=3)
    assert (row["p_method"], row["n_partitions"]) == ("sampled", 999)
    assert row == one(vectors, test, samples=999, seed=3)
    assert row["p_right"] >= 1 / 1000  # type: ignore[operator]


def test_too_many_missing_words_give_nulls_a_reason_and_coverage() -> None:
    row = one(made(), made_test(x=("x0", "x1", "gone", "lost")))
    numbers = ("statistic", "effect_size", "effect_size_ddof1", "p_right", "p_two_sided", "rnsb",
               "rnsb_kl", "p_method", "n_partitions", "q")  # fmt: skip
    assert [row[key] for key in numbers] == [None] * len(numbers)
    assert str(row["reason"]).startswith("set x: 2 of 4 words have no vector (50 %, limit 20 %)")
    assert row["words_missing"] == ["gone", "lost"]
    assert len(row["words_used"]) == 2 + 6 + 4 + 5  # type: ignore[arg-type]
    assert row["coverage"]["x"] == {  # type: ignore[index]
        "listed": 4, "used": 2, "missing": ["gone", "lost"], "lower_cased": 0,
    }  # fmt: skip


def test_the_limit_may_be_raised_and_is_inclusive() -> None:
    test = made_test(x=("x0", "x1", "x2", "x3", "gone"))
    assert one(made(), test)["reason"] is None
    assert one(made(), test, max_missing=0.19)["reason"] is not None
    row = one(made(), made_test(x=("x0", "x1", "gone", "lost")), max_missing=0.5)
    assert row["reason"] is None
    assert row["n_partitions"] == 28


def test_keep_goes_on_with_the_words_there_are() -> None:
    test = made_test(x=("x0", "x1", "gone", "lost"))
    kept = one(made(), test, missing="keep")
    assert kept["reason"] is None
    assert kept["words_missing"] == ["gone", "lost"]
    assert kept["effect_size"] == one(made(), test, max_missing=0.5)["effect_size"]


def test_balanced_cuts_partners_of_missing_words_first() -> None:
    test = made_test(x=("x0", "gone", "x2", "x3", "x4"))
    row = one(made(), test, missing="balanced")
    # y has six words: y1 stands where x has a missing word, y5 is the last.
    assert row["words_used"][:8] == ["x0", "x2", "x3", "x4", "y0", "y2", "y3", "y4"]  # type: ignore[index]
    assert row["coverage"]["y"]["used"] == 4  # type: ignore[index]
    assert row["n_partitions"] == 70
    plain = made_test(x=("x0", "x2", "x3", "x4"), y=("y0", "y2", "y3", "y4"))
    assert row["effect_size"] == one(made(), plain)["effect_size"]
    assert one(made(), made_test(), missing="balanced") == one(made(), made_test())
    lost = made_test(x=("x0", "gone", "lost"))
    assert "limit 20 %" in str(one(made(), lost, missing="balanced")["reason"])


def test_further_metrics_on_request() -> None:
    test = WordSets(name="made", **NAMES, social="targets", x_label="one", y_label="two")
    row = one(made(), test, also=["rnd", "mac", "ect", "ripa"])
    found = row["others"]
    assert found["groups"] == ["one", "two"]  # type: ignore[index]
    x, y, a, b = (made().find(NAMES[key]).rows for key in "xyab")
    assert found["rnd"]["a"] == pytest.approx(embedding.rnd(x, y, a).value)  # type: ignore[index]
    assert found["ect"]["b"] == pytest.approx(embedding.ect(x, y, b))  # type: ignore[index]
    assert found["ripa"]["a"] == pytest.approx(embedding.ripa(x, y, a).value)  # type: ignore[index]
    both = np.concatenate([x, y])
    assert found["mac"] == pytest.approx(embedding.mac(both, [a, b]).value)  # type: ignore[index]
    assert "others" not in one(made(), test)


def test_pairs_are_kept_together_when_a_word_is_missing() -> None:
    test = WordSets(
        "made", x=("x0", "gone", "x2"), y=("y0", "y1", "y2"), a=NAMES["a"], b=NAMES["b"]
    )
    row = one(made(), test, also=["ripa"], missing="keep")
    x, y, a = (made().find(w).rows for w in (("x0", "x2"), ("y0", "y2"), NAMES["a"]))
    assert row["others"]["ripa"]["a"] == pytest.approx(embedding.ripa(x, y, a).value)  # type: ignore[index]


@pytest.mark.parametrize("key", "xyab")
def test_an_empty_set_is_a_reason_not_a_crash(key: str) -> None:
    row = one(made(), made_test(**{key: ("gone", "lost")}), max_missing=1.0)
    assert row["reason"] == f"set {key}: none of its 2 words has a vector"
    assert row["effect_size"] is None


def test_sets_of_one_word_have_numbers_but_no_interval() -> None:
    row = one(made(), made_test(x=("x0",), y=("y0",)))
    assert row["effect_size"] is not None
    assert row["effect_size_low"] is None
    assert row["reason"] == "a set has one word: no interval"


def test_the_interval_is_about_the_effect_size() -> None:
    row = one(made(lean=1.5), made_test())
    assert row["effect_size_low"] < row["effect_size"] < row["effect_size_high"]  # type: ignore[operator]
    assert row["effect_size_low"] > 0  # type: ignore[operator]


def test_the_interval_leaves_0_out_exactly_when_p_is_small() -> None:
    verdicts = set()
    for seed in range(12):
        row = one(made(seed, lean=0.2 * seed), made_test())
        outside = row["effect_size_low"] > 0 or row["effect_size_high"] < 0  # type: ignore[operator]
        assert (row["p"] <= 0.05) == outside  # type: ignore[operator]
        assert row["percentile"] is None  # no words of the packaged lists among these
        verdicts.add(outside)
    assert verdicts == {True, False}


@pytest.mark.shared
def test_the_effect_is_set_among_random_attribute_words(shared: Path) -> None:
    path = shared / "data" / "embeddings" / "glove_6B_50d_subset.txt.gz"
    rows = told("association", vectors=path, tests="weat1,weat6,weat9")["tests"]
    assert [row["n_random"] for row in rows] == [200] * 3
    assert sum(row["random_alarms"] for row in rows) <= 0.07 * 600
    assert rows[1]["percentile"] > 85 > rows[2]["percentile"]
    assert rows[1]["q"] < 0.01 < 0.05 < rows[2]["q"]  # career and family; mental and physical


def test_raw_norms_change_rnsb_only() -> None:
    unit, raw = one(made(), made_test()), one(made(), made_test(), raw_norms=True)
    differ = {key for key in unit if unit[key] != raw[key]}
    assert differ == {"rnsb", "rnsb_kl"}


def test_q_corrects_over_the_tests() -> None:
    tests = [made_test(), made_test(x=("gone",)), made_test(a=NAMES["b"], b=NAMES["a"])]
    rows = told("association", vectors=made(), tests=tests)["tests"]
    assert rows[1]["q"] is None
    assert all(row["q"] >= row["p"] for row in (rows[0], rows[2]))


def test_tests_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"mine": {key: list(words) for key, words in NAMES.items()}}))
    row = told("association", vectors=made(), tests=str(path))["tests"][0]
    assert row["test"] == "mine"
    assert row["effect_size"] == one(made(), made_test())["effect_size"]


def test_vectors_in_memory_are_measured_as_their_table_is() -> None:
    table = made()
    mapping = dict(zip(table.words.to_pylist(), np.asarray(table.matrix)))
    asked = {"tests": (made_test(),)}
    ours, theirs = (told("association", vectors=v, **asked)["tests"] for v in (table, mapping))
    assert ours == theirs
    with pytest.raises(SpecError, match=r"3 \(int\): expected a transformers model"):
        told("association", vectors=3, tests="weat1")
    with pytest.raises(SpecError, match="of kind 'classifier': expected word vectors"):
        told("association", vectors=lambda texts: [0.5] * len(texts), tests="weat1")


def test_wrong_options() -> None:
    with pytest.raises(SpecError, match=r"unknown test 'waet6'. Did you mean"):
        told("association", vectors=made(), tests="waet6")
    with pytest.raises(SpecError, match="no test is named"):
        told("association", vectors=made(), tests=" , ")
    with pytest.raises(SpecError, match="max_missing: .*less than or equal to 1; got 2"):
        told("association", vectors=made(), tests="weat1", max_missing=2)
    with pytest.raises(SpecError, match="'threshold', 'keep' or 'balanced'; got 'balance'"):
        told("association", vectors=made(), tests="weat1", missing="balance")
    with pytest.raises(SpecError, match="also.0: .*'mac'.*; got 'mca'"):
        told("association", vectors=made(), tests="weat1", also=["mca"])
    with pytest.raises(DataError, match="no such file"):
        told("association", vectors="gone.txt", tests="weat1")


@pytest.mark.shared
def test_files_of_sentence_tests_can_be_read(shared: Path) -> None:
    folder = shared / "data" / "word_sets" / "seat"
    found = choose_tests(folder / "weat7.jsonl")[0]
    assert (found.name, found.x_label, found.b_label) == ("weat7", "Math", "FemaleTerms")
    read = [choose_tests(path)[0] for path in sorted(folder.glob("*.jsonl"))]
    assert len(read) == 50
    # Word tests of these files agree with the published effect size on the Google News vectors.
    path = shared / "data" / "embeddings" / "googlenews_w2v_300d_subset.bin.gz"
    row = associate(open_vectors(path), [found], placebos=0)[0]
    assert row["effect_size_ddof1"] == pytest.approx(0.9664, abs=1e-4)


@pytest.mark.shared
def test_real_subset_files_agree_with_each_other(shared: Path) -> None:
    path = shared / "data" / "embeddings" / "glove_6B_50d_subset.txt.gz"
    rows = told("association", vectors=path, tests="weat7,weat8")["tests"]
    assert rows[0]["effect_size"] == pytest.approx(1.5442, abs=1e-4)
    assert rows[1]["effect_size"] == pytest.approx(1.5336, abs=1e-4)


@pytest.mark.model
def test_exact_p_of_the_published_tests_on_glove() -> None:
    try:
        vectors = open_vectors(resolve_vectors("glove-6b-50d"))
    except ModelError as error:
        pytest.skip(str(error))
    tests = "weat6,weat7,weat8,weat9_wefe,weat10_wefe"
    rows = told("association", vectors=vectors, tests=tests)["tests"]
    wanted = [7.8e-5, 2.3e-4, 3.9e-4, 0.026, 0.0985]
    assert [row["p_method"] for row in rows] == ["exact"] * 5
    assert [row["p_right"] for row in rows] == pytest.approx(wanted, rel=0.03)

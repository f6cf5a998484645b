"""WEFE's calls over evenhand: equal numbers where WEFE is right, sound ones where it is not."""

from __future__ import annotations

import itertools
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evenhand.compat.wefe import (
    ECT,
    MAC,
    RIPA,
    RND,
    RNSB,
    WEAT,
    Query,
    WordEmbeddingModel,
    load_weat,
    run_queries,
)  # fmt: skip
from evenhand.errors import MissingExtra, SpecError
from evenhand.models.vectors.files import VectorTable
from evenhand.words.lexicons import weat

WORDS = [f"{key}{k}" for key in "xyab" for k in range(5)]
MATRIX = np.random.default_rng(11).normal(size=(20, 8)).astype(np.float32)
SETS = {key: [f"{key}{k}" for k in range(5)] for key in "xyab"}


@pytest.fixture(scope="module")
def model() -> WordEmbeddingModel:
    return WordEmbeddingModel(VectorTable(pa.array(WORDS), MATRIX), "made")


def query(targets: str = "xy", attributes: str = "ab", **changed: list[str]) -> Query:
    sets = SETS | changed
    return Query(
        [sets[k] for k in targets], [sets[k] for k in attributes],
        [k.upper() for k in targets], [k.upper() for k in attributes],
    )  # fmt: skip


def test_numbers_and_keys_of_wefe(model: WordEmbeddingModel) -> None:
    """The values were printed by WEFE 1.0.1 for these words and vectors."""
    found = WEAT().run_query(query(), model, calculate_p_value=True)
    assert found["query_name"] == "X and Y wrt A and B"
    assert found["result"] == found["weat"] == pytest.approx(0.4166218377649784, abs=1e-6)
    assert found["effect_size"] == pytest.approx(0.7743661536894124, abs=1e-6)
    found = RNSB().run_query(query(), model, holdout=False)
    assert found["result"] == found["rnsb"] == pytest.approx(0.07035429188728783, abs=1e-4)
    assert found["negative_sentiment_probabilities"]["x2"] == pytest.approx(0.660312, abs=1e-3)
    assert sum(found["negative_sentiment_distribution"].values()) == pytest.approx(1)
    found = RND().run_query(query(attributes="a"), model)
    assert found["rnd"] == pytest.approx(-0.06116771697998047, abs=1e-6)
    assert list(found["distance_by_word"]) == ["a2", "a1", "a0", "a3", "a4"]
    assert RND().run_query(query(attributes="a"), model, normalize=True)["result"] == pytest.approx(
        -0.02108161449432373, abs=1e-6
    )
    found = MAC().run_query(query(targets="x"), model)
    assert found["mac"] == pytest.approx(0.9993301306519902, abs=1e-6)
    assert found["targets_eval"]["X"]["x1"]["A"] == pytest.approx(1.1599999908204754, abs=1e-6)
    assert ECT().run_query(query(attributes="a"), model)["ect"] == pytest.approx(0.3, abs=1e-12)
    found = RIPA().run_query(query(attributes="a"), model)
    assert found["ripa"] == pytest.approx(0.04371802881360054, abs=1e-6)
    assert found["word_values"]["a0"] == pytest.approx(
        {"mean": 0.14064326882362366, "std": 0.7617979645729065}, abs=1e-6
    )


def test_p_is_that_of_a_permutation_test_with_a_seed(model: WordEmbeddingModel) -> None:
    options: dict[str, Any] = {"calculate_p_value": True}
    right = WEAT().run_query(query(), model, **options)
    assert right == WEAT().run_query(query(), model, **options)
    unit = MATRIX.astype(float) / np.linalg.norm(MATRIX, axis=1, keepdims=True)
    s = unit[:10] @ (unit[10:15].mean(axis=0) - unit[15:].mean(axis=0))
    null = [2 * s[list(c)].sum() - s.sum() for c in itertools.combinations(range(10), 5)]
    seen = s[:5].sum() - s[5:].sum()
    assert right["p_method"] == "exact"
    assert right["p_value"] == pytest.approx(np.mean(np.array(null) >= seen - 1e-12))
    turned = WEAT().run_query(query(targets="yx"), model, p_value_test_type="two-sided", **options)
    both = WEAT().run_query(query(), model, p_value_test_type="two-sided", **options)
    assert both["p_value"] == turned["p_value"] < 1
    exact = WEAT().run_query(query(), model, p_value_method="exact", **options)
    assert exact["p_value"] == right["p_value"]


def test_return_effect_size_changes_the_result_only(model: WordEmbeddingModel) -> None:
    found = WEAT().run_query(query(), model, return_effect_size=True)
    assert found["result"] == found["effect_size"]
    assert np.isnan(found["p_value"])


@pytest.mark.parametrize("metric", [WEAT, RNSB, RND, MAC, ECT, RIPA])
def test_too_many_lost_words_keep_every_key(model: WordEmbeddingModel, metric: Any) -> None:
    attributes = "ab" if metric in (WEAT, RNSB, MAC) else "a"
    full = metric().run_query(query(attributes=attributes), model)
    lost = metric().run_query(
        query(attributes=attributes, x=["x0", "x1", "x2", "gone", "lost"]), model
    )
    assert set(lost) == set(full)
    assert np.isnan(lost["result"])
    assert lost["n_lost"]["X"] == 2
    assert lost["words_missing"] == ["gone", "lost"]
    assert lost["reason"].startswith("X: 2 of 5 words have no vector")
    empty = metric().run_query(
        query(attributes=attributes, x=["gone"] * 1 + ["lost"] * 4), model,
        lost_vocabulary_threshold=1.0,
    )  # fmt: skip
    assert empty["reason"] == "X: none of its 5 words has a vector"


def test_pairs_of_ripa_stay_together(model: WordEmbeddingModel) -> None:
    lost = query(attributes="a", x=["x0", "gone", "x2", "x3", "x4"])
    found = RIPA().run_query(lost, model)
    parts = query(attributes="a", x=["x0", "x2", "x3", "x4"], y=["y0", "y2", "y3", "y4"])
    assert found["ripa"] == RIPA().run_query(parts, model)["ripa"]
    assert found["n_lost"] == {"X": 1, "Y": 0, "A": 0}
    with pytest.raises(SpecError, match="5 and 4 words are not pairs"):
        RIPA().run_query(query(attributes="a", y=["y0", "y1", "y2", "y3"]), model)


def test_words_are_tried_through_the_preprocessors() -> None:
    model = WordEmbeddingModel({"elan": [1.0, 2], "ELAN": [2.0, 1], "construction": [1, 0.0],
                                "worker": [0, 1.0]})  # fmt: skip
    accents = {"lowercase": True, "strip_accents": True}
    assert model.find(["Élan"])[1] == ["Élan"]
    assert list(model.find(["Élan"], preprocessors=[{}, accents])[0]) == ["elan"]
    both = [accents, {"uppercase": True, "strip_accents": "ascii"}]
    assert list(model.find(["Élan"], preprocessors=both, strategy="all")[0]) == ["elan", "ELAN"]
    shout = {"preprocessor": lambda word: "ELAN"}
    assert list(model.find(["any"], preprocessors=[shout])[0]) == ["ELAN"]
    found, lost = model.find(["construction worker"])
    assert found["construction worker"].tolist() == [0.5, 0.5]
    assert not lost
    with pytest.raises(SpecError, match="'lowecase' is unknown"):
        model.find(["any"], preprocessors=[{"lowecase": True}])


def test_gensim_vectors_and_prefixes() -> None:
    gensim = pytest.importorskip("gensim.models")
    vectors = gensim.KeyedVectors(8)
    vectors.add_vectors([f"/c/en/{word}" for word in WORDS], MATRIX)
    model = WordEmbeddingModel(vectors, "prefixed", vocab_prefix="/c/en/")
    plain = WordEmbeddingModel(dict(zip(WORDS, MATRIX)), "plain")
    assert WEAT().run_query(query(), model)["weat"] == WEAT().run_query(query(), plain)["weat"]


def test_run_queries_gives_models_by_queries(model: WordEmbeddingModel) -> None:
    turned = WordEmbeddingModel(dict(zip(WORDS, MATRIX[::-1])), "turned")
    found = run_queries(
        WEAT, [query(), query(targets="yx")], [model, turned], queries_set_name="both",
        aggregate_results=True, metric_params={"return_effect_size": True},
    )  # fmt: skip
    row = found["made"]
    name = "WEAT: both abs_avg score"
    assert list(row) == ["X and Y wrt A and B", "Y and X wrt A and B", name]
    assert row[name] == pytest.approx(0.7743661536894124, abs=1e-6)
    assert found.full["turned"]["X and Y wrt A and B"]["n_lost"]["X"] == 0
    whole = Query([SETS["x"], SETS["y"]], [SETS["a"], SETS["b"]], ["X", "Y"], ["A", "B"])
    parts = run_queries(RND, [whole], [model], generate_subqueries=True)
    assert list(parts["made"]) == ["X and Y wrt A", "X and Y wrt B"]
    with pytest.raises(SpecError, match="unknown aggregation 'mean'"):
        run_queries(WEAT, [query()], [model], aggregate_results=True, aggregation_function="mean")


def test_a_data_frame_when_pandas_is_there(model: WordEmbeddingModel) -> None:
    found = run_queries(WEAT, [query()], [model])
    try:
        import pandas  # noqa: F401
    except ImportError:
        with pytest.raises(MissingExtra, match="pip install pandas"):
            found.to_pandas()
    else:
        assert found.to_pandas().loc["made"].tolist() == list(found["made"].values())


def test_lost_words_are_logged_when_asked(
    model: WordEmbeddingModel, caplog: pytest.LogCaptureFixture
) -> None:
    lost = query(x=["x0", "x1", "x2", "x3", "gone"])
    with caplog.at_level(logging.WARNING):
        WEAT().run_query(lost, model, warn_not_found_words=True)
    assert "{'X': ['gone']}" in caplog.text


def test_wrong_queries(model: WordEmbeddingModel) -> None:
    with pytest.raises(SpecError, match="has 1 target sets. Accepted: 2"):
        WEAT().run_query(query(targets="x"), model)
    with pytest.raises(SpecError, match="target set 0 is str 'words'"):
        Query(["words"], [["a"]])  # type: ignore[list-item]
    with pytest.raises(SpecError, match="1 names for 2 target sets"):
        Query([["a"], ["b"]], [["c"]], ["one"])
    with pytest.raises(SpecError, match="target set 1 is empty"):
        Query([["a"], []], [["c"]])
    with pytest.raises(SpecError, match="unknown option 'calculate_p'. Did you mean"):
        WEAT().run_query(query(), model, calculate_p=True)
    with pytest.raises(SpecError, match="int is not a set of vectors"):
        WordEmbeddingModel(3)
    with pytest.raises(KeyError, match="'gone' is not in the vocabulary of 'made'"):
        model["gone"]


def test_queries_compare_and_print() -> None:
    assert query() == query()
    assert query() != query(targets="yx")
    assert Query.of(weat("weat6")).template == (2, 2)
    assert repr(query(attributes="a")).startswith("<Query: X and Y wrt A\n- Target sets: [['x0'")


@pytest.mark.shared
def test_word_lists_under_the_names_of_wefe(shared: Path) -> None:
    theirs = json.loads((shared / "data" / "word_sets" / "wefe" / "WEAT.json").read_text())
    ours = load_weat()
    assert set(ours) == set(theirs)
    differ = {
        name: sorted(set(theirs[name]) ^ set(words))
        for name, words in ours.items() if set(theirs[name]) != set(words)
    }  # fmt: skip
    assert differ == {
        "temporary": ["short", "short-term"], "young_people_names": ["Bill", "Billy"],
    }  # fmt: skip


@pytest.mark.model
def test_glove_by_its_alias() -> None:
    from evenhand.models.loading.fetch import PACKAGES

    if not PACKAGES["glove-6b-50d"].ready:
        pytest.skip("weights of glove-6b-50d are not in the cache")
    model = WordEmbeddingModel("glove-6b-50d", "glove")
    lists = load_weat()
    asked = Query(
        [lists["male_names"], lists["female_names"]], [lists["career"], lists["family"]],
        ["Male names", "Female names"], ["Career", "Family"],
    )  # fmt: skip
    found = WEAT().run_query(
        asked, model, preprocessors=[{}, {"lowercase": True}], calculate_p_value=True
    )
    assert found["effect_size"] == pytest.approx(1.7638, abs=1e-4)
    assert found["p_value"] == pytest.approx(7.8e-5, rel=0.02)
    assert found["words_used"]["Male names"][0] == "john"

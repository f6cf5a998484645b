"""Recipes say what a study does; the grid says which embeddings that needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.audit.suites import load_suite, suite_names
from evenhand.errors import DataError, SpecError
from evenhand.study.grid import cells
from evenhand.study.recipe import load_recipe, parse_recipe, place

CORPUS = {"corpus": {"files": ["a.txt"]}}


def test_the_papers_grid_has_45_points_per_algorithm() -> None:
    recipe = parse_recipe({**CORPUS, "balancing": {}, "attract_repel": {}}, "here")
    grid = cells(recipe)
    points = {c.point for c in grid}
    assert len(points) == 1 + 20 + 24
    assert len(grid) == len(points) + recipe.training.replicates - 1


def test_replicates_differ_in_their_seed_and_changed_vectors_do_not() -> None:
    grid = cells(parse_recipe({**CORPUS, "balancing": {}}, "here"))
    assert [c.seed for c in grid if c.family == "original"] == [0, 1, 2]
    assert {c.seed for c in grid if c.family == "balancing"} == {0}


def test_pulled_vectors_start_from_the_first_original_of_their_algorithm() -> None:
    values = {**CORPUS, "attract_repel": {}, "training": {"algorithms": ["word2vec", "fasttext"]}}
    for cell in cells(parse_recipe(values, "here")):
        if cell.family == "attract_repel":
            assert cell.base == f"{cell.algorithm}-original-1"


def test_every_wrong_setting_is_named_at_once() -> None:
    values = {**CORPUS, "training": {"epochs": 0}, "balancing": {"shares": [1.5]}, "colour": 1}
    with pytest.raises(SpecError) as caught:
        parse_recipe(values, "my.toml")
    message = str(caught.value)
    assert message.startswith("my.toml: ")
    assert "training.epochs" in message
    assert "not 1.5" in message
    assert "colour" in message


def test_an_unknown_word_set_is_refused_with_the_nearest_names() -> None:
    with pytest.raises(SpecError, match="kato_winobias"):
        parse_recipe({**CORPUS, "word_set": "kato_winobas"}, "here")


def test_the_packaged_studies_load_and_are_no_suites() -> None:
    assert load_recipe("kato").name == "kato"
    assert "kato" not in suite_names()
    with pytest.raises(SpecError, match="evenhand study kato"):
        load_suite("kato")


def test_an_unknown_study_names_those_there_are() -> None:
    with pytest.raises(SpecError, match="kato"):
        load_recipe("katoo")


def test_paths_with_data_need_a_data_folder_and_must_exist(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    assert place("{data}/a.txt", tmp_path) == tmp_path / "a.txt"
    with pytest.raises(SpecError, match="--data DIR"):
        place("{data}/a.txt", None)
    with pytest.raises(DataError, match=r"b\.txt"):
        place("{data}/b.txt", tmp_path)

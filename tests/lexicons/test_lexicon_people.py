"""Name groups, their axes, unions and intersections."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenhand.errors import SpecError
from evenhand.words.lexicons import available, groups, load, union
from evenhand.words.lexicons.people import NAME_LEXICONS

SIZES = {
    "african_american_female": 25,
    "african_american_male": 25,
    "european_american_female": 25,
    "european_american_male": 25,
    "hispanic_female": 30,
    "hispanic_male": 30,
    "asian_female": 27,
    "asian_male": 33,
    "unqover_female": 70,
    "unqover_male": 70,
}
USER = """title = "T"
kind = "names"
source = "S"
licence = "L"
caveats = []
[groups.{name}]
axis = {{ gender = "female", race = "welsh" }}
terms = {terms}
"""


def test_every_lexicon_of_names_is_read() -> None:
    assert set(NAME_LEXICONS) == {name for name in available() if load(name).kind == "names"}


def test_group_sizes() -> None:
    assert {name: len(group.terms) for name, group in groups().items()} == SIZES


@pytest.mark.parametrize("name", SIZES)
def test_no_name_twice_in_a_group(name: str) -> None:
    terms = groups([name])[name].terms
    assert len(set(terms)) == len(terms)
    assert all(term[0].isupper() for term in terms)


def test_the_name_is_spelled_betsy() -> None:
    names = groups()["european_american_female"].terms
    assert "Betsy" in names
    assert "Besty" not in names
    assert any("Besty" in caveat for caveat in load("sodapop_names").caveats)


def test_axis_values_are_unions_and_intersections() -> None:
    women, men = (groups([gender])[gender] for gender in ("female", "male"))
    assert dict(women.axis) == {"gender": "female"}
    assert not set(women.terms) & set(men.terms)
    assert set(groups(axis={"gender": "female", "race": "asian"})) == {"asian_female"}
    assert set(groups(["asian_female", "asian_male"], axis={"gender": "male"})) == {"asian_male"}
    assert len(groups(["hispanic"])["hispanic"].terms) == 60


def test_only_the_groups_asked_for_in_that_order() -> None:
    assert list(groups(["hispanic_male", "asian_male"])) == ["hispanic_male", "asian_male"]


def test_unknown_group_axis_and_value() -> None:
    with pytest.raises(SpecError) as error:
        groups(["african_american_femal"])
    assert "Did you mean 'african_american_female'" in str(error.value)
    assert str(error.value).endswith("List them with: evenhand ls groups")
    with pytest.raises(SpecError, match="unknown axis 'age'"):
        groups(axis={"age": "old"})
    with pytest.raises(
        SpecError, match=r"unknown value of axis 'race' 'asain'. Did you mean 'asian'"
    ):
        groups(axis={"race": "asain"})


def test_a_union_of_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="union of nothing"):
        union("none", [])


def test_a_users_groups_join(tmp_path: Path) -> None:
    file = tmp_path / "welsh.toml"
    file.write_text(USER.format(name="welsh_female", terms='["Carys", "Nia"]'))
    found = groups(["welsh_female", "female"], extra=[file])
    assert found["welsh_female"].terms == ("Carys", "Nia")
    assert "Carys" in found["female"].terms


@pytest.mark.parametrize(
    ("name", "terms", "message"),
    [
        ("asian_male", '["A"]', "already exists"),
        ("g", "[]", "has no terms"),
        ("g", "[1]", "to be a list of strings"),
    ],
)
def test_mistakes_in_a_users_groups(tmp_path: Path, name: str, terms: str, message: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(USER.format(name=name, terms=terms))
    with pytest.raises(SpecError, match=message):
        groups(extra=[file])


@pytest.mark.shared
def test_same_names_as_the_released_sodapop_lists(shared: Path) -> None:
    released = json.loads((shared / "data/sodapop/names.json").read_text())
    ours = {frozenset(group.terms) for group in groups().values()}
    for names in released.values():
        assert frozenset("Betsy" if name == "Besty" else name for name in names) in ours


@pytest.mark.shared
@pytest.mark.parametrize("gender", ["female", "male"])
def test_same_names_as_the_released_unqover_lists(shared: Path, gender: str) -> None:
    file = shared / "data/unqover/word_lists/nouns/subjects" / gender
    lines = [line for line in file.read_text().splitlines() if line.startswith("[subj]")]
    released = {line.split("|")[1].strip() for line in lines}
    assert set(groups()[f"unqover_{gender}"].terms) == released

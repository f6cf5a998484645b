"""Loading lexicons: packaged, by path, and everything that can be wrong with one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import DataError, SpecError
from evenhand.words.lexicons import available, load
from evenhand.words.lexicons.files import HEADER

NAMES = (
    "contexts",
    "gender_terms",
    "kato_word_sets",
    "liang_definitional",
    "liang_prompts",
    "prejudices",
    "sodapop_names",
    "unqover_ethnicity",
    "unqover_names",
    "unqover_nationality",
    "unqover_occupations",
    "unqover_religion",
    "unqover_templates",
    "weat",
    "weat_variants",
)
GOOD = 'title = "T"\nkind = "names"\nsource = "S"\nlicence = "L"\ncaveats = ["C"]\n'


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from strings(item)
    elif hasattr(value, "items"):
        for item in value.values():
            yield from strings(item)


def test_all_packaged_lexicons_are_listed_with_their_titles() -> None:
    assert set(NAMES) <= set(available())
    assert list(available()) == sorted(available())
    assert available() == {name: load(name).title for name in available()}


@pytest.mark.parametrize("name", available())
def test_every_lexicon_has_a_full_header(name: str) -> None:
    lexicon = load(name)
    assert lexicon.name == name
    assert min(len(lexicon.source), len(lexicon.licence), len(lexicon.caveats)) > 0
    assert all(len(caveat) > 30 for caveat in lexicon.caveats)
    if not lexicon.source.startswith("Written for evenhand"):
        assert re.search(r"\(\d{4}", lexicon.source)


@pytest.mark.parametrize("name", available())
def test_no_stray_white_space_anywhere(name: str) -> None:
    lexicon = load(name)
    texts = [lexicon.title, lexicon.source, lexicon.licence, *lexicon.caveats]
    for text in (*texts, *strings(lexicon.data)):
        assert text == " ".join(text.split())


@pytest.mark.parametrize("name", available())
def test_wording_rules(name: str) -> None:
    text = " ".join((load(name).title, *load(name).caveats)).lower()
    assert not re.search(r"debias|unbiased|fair model", text)


def test_data_cannot_be_changed_by_a_caller() -> None:
    with pytest.raises(TypeError):
        load("weat").data["tests"]["weat1"]["x"] = ()


def test_unknown_name_suggests_and_says_how_to_list() -> None:
    with pytest.raises(SpecError) as error:
        load("sodapop_name")
    assert str(error.value) == (
        "unknown lexicon 'sodapop_name'. Did you mean 'sodapop_names'? "
        "List them with: evenhand ls lexicons"
    )


def test_a_users_file_is_loaded_by_path(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD + '[groups.g]\nterms = ["Ann"]\naxis = {}\n')
    assert load(file) == load(str(file))
    assert load(str(file)).words("groups", "g", "terms") == ("Ann",)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml: no such file. Expected a lexicon file"):
        load(tmp_path / "none.toml")


@pytest.mark.parametrize("field", HEADER)
def test_a_missing_header_field_is_named(tmp_path: Path, field: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("\n".join(line for line in GOOD.split("\n") if not line.startswith(field)))
    with pytest.raises(SpecError, match=f"mine.toml: header field '{field}' is missing"):
        load(file)


@pytest.mark.parametrize(("old", "new"), [('["C"]', '"C"'), ('["C"]', "[1]"), ('"S"', '" "')])
def test_a_header_field_of_the_wrong_kind(tmp_path: Path, old: str, new: str) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(SpecError, match=r"header field '(caveats|source)' is .* Accepted"):
        load(file)


@pytest.mark.parametrize(
    ("text", "line"),
    [('title = "T"\nkind = names\n', 2), ("a = 1\n\n\nb == 2\n", 4), ("a = [1,\n2,\n", 2)],
)
def test_malformed_toml_names_file_and_line(tmp_path: Path, text: str, line: int) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(SpecError, match=rf"mine\.toml: line {line}\b"):
        load(file)


def test_a_file_that_is_not_text_and_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(b'title = "\xff"')
    with pytest.raises(DataError, match="not UTF-8"):
        load(file)
    with pytest.raises(DataError, match="cannot be read"):
        load(tmp_path)


def test_helpers_name_the_missing_or_wrong_key() -> None:
    lexicon = load("weat")
    with pytest.raises(
        SpecError, match=r"expected 'tests\.weat11' to be there .* has .*tests.* see docs"
    ):
        lexicon.table("tests", "weat11")
    with pytest.raises(SpecError, match=r"expected 'tests' to be a list of strings"):
        lexicon.words("tests")
    with pytest.raises(SpecError, match=r"expected 'tests' to be an array of tables"):
        lexicon.rows("tests")
    with pytest.raises(SpecError, match=r"expected 'tests\.weat1\.x' to be a table"):
        lexicon.table("tests", "weat1", "x")

"""The one opener: packed files are told by their bytes, and broken ones by one sentence."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evenhand.errors import DataError
from evenhand.opening import json_lines, lines, opened, parse_json, read_json, read_text
from evenhand.writing import SUFFIX, packed_writer

SOURCE = Path(__file__).parents[1] / "src" / "evenhand"
TEXT = '{"word": "né"}\n\n{"word": 2}\n'


@pytest.fixture(params=["", *SUFFIX])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same text, plain and packed in every way, under a name that says nothing."""
    made = tmp_path / f"made{request.param}"
    with packed_writer(made) as out:
        out.write(TEXT)
    return made.rename(tmp_path / "unnamed")


def test_every_way_of_reading_unpacks(file: Path) -> None:
    assert read_text(file) == TEXT
    assert list(lines(file)) == TEXT.split("\n")[:-1]
    assert list(json_lines(file)) == [(1, {"word": "né"}), (3, {"word": 2})]
    with opened(file) as raw:
        assert raw.readline() == TEXT.split("\n")[0].encode() + b"\n"
        assert raw.read() == b'\n{"word": 2}\n'


def test_a_file_that_was_cut_short_is_named(file: Path) -> None:
    whole = file.read_bytes()
    file.write_bytes(whole[:-12])
    if whole[:1] == b"{":
        assert read_text(file) == TEXT[:-12]
        return
    for read in (read_text, lambda path: list(lines(path)), read_json):
        with pytest.raises(DataError, match=r"unnamed: broken \w+ data \(.+\)\. Copy or download"):
            read(file)


def test_what_is_wrong_is_one_sentence_with_what_was_expected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: no such file\. Expected a table\.$"):
        read_text(tmp_path / "nowhere", "a table")
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        read_text(tmp_path)
    place = tmp_path / "text"
    place.write_bytes(b"caf\xe9")
    with pytest.raises(DataError, match=r"not UTF-8 text \(bytes e9\)"):
        read_text(place)
    place.write_text("{}\nnot json\n")
    with pytest.raises(DataError, match=r"text, line 2: is not JSON .* Expected JSON lines\.$"):
        list(json_lines(place, "JSON lines"))
    with pytest.raises(DataError, match="text: is not JSON"):
        read_json(place)


def test_nobody_else_unpacks() -> None:
    own = [SOURCE / "opening.py", SOURCE / "writing.py"]  # what is packed is put in place whole
    found = [
        f"{path.relative_to(SOURCE)}: {match[0].strip()}"
        for path in SOURCE.rglob("*.py")
        if path not in own
        for match in re.finditer(r"^\s*import (gzip|lzma|bz2)\b", path.read_text(), re.M)
    ]
    assert not found, f"use evenhand.opening: {found}"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}', '[{"b": {"a" : 1, "a"\n: 2}}]', '{"a": "x: y", "a": 1}',
        '{"a": "\\":", "a": 1}', '{"x": ":", "a": 1, "\\u0061": ":"}', '{"a": {"a": 1, "a": 1}}',
    ],
)  # fmt: skip
def test_a_name_given_twice_is_seen_whatever_the_texts_hold(text: str) -> None:
    for form in (text, text.encode(), text.encode("utf-16")):
        with pytest.raises(DataError, match="'a' occurs twice in one object"):
            parse_json(form, "x.json")


def test_colons_in_texts_are_no_names() -> None:
    for value in ({"a": '":', "b": 'c" :'}, {":": ": :"}, [{"a": "b\t:"}, {"a": '"\n:'}]):
        assert parse_json(json.dumps(value, indent=1), "x.json") == value


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('{"a": 1, "a": 2}', "'a' occurs twice in one object"),
        ("[" * 300 + "]" * 300, "nested deeper than 200"),
        ('"\\ud800"', "half a character"),
        ("[1,]", "is not JSON"),
    ],
)
def test_a_long_json_text_is_refused_as_a_short_one_is(more: str, said: str) -> None:
    """Long texts are read by another parser, which is not asked to judge them."""
    for text in (f"[0, {more}]", f"[{'0, ' * 40_000} {more}]"):
        with pytest.raises(DataError, match=said):
            parse_json(text, "x.json")


def test_both_parsers_read_the_same() -> None:
    values = [0.1, -0.0, 5e-324, 1e400, 10**30, "\u2028", {"k": None}, [True], "12"]
    text = json.dumps([values] * 2_000)
    assert len(text) > 1 << 16
    assert repr(parse_json(text, "x.json")) == repr(json.loads(text))

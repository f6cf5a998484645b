"""Free answers are read by rule: named, declined, left open, or unread and counted."""

from __future__ import annotations

import pickle
import re
import shutil
from pathlib import Path

import pytest

from evenhand.errors import SpecError
from evenhand.words import packs as own
from evenhand.words.packs import load_pack, pack_places
from evenhand.words.reading_answers import (
    NONE,
    Kind,
    Reading,
    declines,
    is_unknown,
    read_answer,
)

PAIR = ("Mary", "John")
THREE = ("The grandfather", "The grandson", "Can't be determined")


@pytest.mark.parametrize(
    ("text", "kind", "option"),
    [
        ("Mary", "named", 0), ("It was John.", "named", 1), ("**John**", "named", 1),
        ("Not Mary, John.", "named", 1), ("I'm sorry, but I can't answer that.", "declined", NONE),
        ("As an AI language model, I have no opinion on Mary.", "declined", NONE),
        ("I won’t make assumptions about Mary or John", "declined", NONE),
        ("I would rather not say.", "declined", NONE), ("It is unclear.", "open", NONE),
        ("Neither Mary nor John", "open", NONE), ("Mary or John", "open", NONE),
        ("The text does not say who.", "open", NONE), ("", "unread", NONE),
        ("Bananas", "unread", NONE), ("Not Mary.", "unread", NONE), ("Marylin", "unread", NONE),
        ("Mary. I'm sorry for her.", "named", 0),
    ],
)  # fmt: skip
def test_an_answer_is_read_as_a_person_would(text: str, kind: Kind, option: int) -> None:
    assert read_answer(text, PAIR) == Reading(kind, option)


def test_an_option_that_says_it_cannot_be_known_takes_the_answers_that_do() -> None:
    assert read_answer("It cannot be determined from the text.", THREE) == Reading("named", 2)
    assert read_answer("not enough information", THREE) == Reading("named", 2)
    assert read_answer("the grandson", THREE) == Reading("named", 1)
    assert read_answer("The grandfather or the grandson", THREE) == Reading("named", 2)


def test_declining_is_no_name_and_a_story_is_no_refusal() -> None:
    assert declines("I cannot help with that.")
    assert not declines("was described as someone who cannot cook.")


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A pack of somebody's own, before any is heard."""
    monkeypatch.setattr(own, "_adopted", {})
    place = tmp_path / "eo"
    shutil.copytree(pack_places()["es"], place)
    return place


def test_a_pack_given_by_path_is_heard_from_when_it_is_loaded(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = (mine / "answers.toml").read_text("utf-8")
    parts = {"unknown": "Nescieble", "open": "neniu scias", "declined": "mi rifuzas",
             "denied": "tute ne $"}  # fmt: skip
    for part, text in parts.items():
        answers = re.sub(rf"(?m)^{part} = \[", f"{part} = ['{text}', ", answers, count=1)
    (mine / "answers.toml").write_text(answers, "utf-8")
    said = ("Nescieble", "Neniu scias.", "Mi rifuzas.", "Tute ne Mary.")
    assert {read_answer(text, PAIR).kind for text in said[:3]} == {"unread"}
    assert read_answer(said[3], PAIR) == Reading("named", 0)
    load_pack(mine)
    kinds = [read_answer(text, PAIR).kind for text in said]
    assert kinds == ["open", "open", "declined", "unread"]
    assert is_unknown("Nescieble")
    heard = own.adopted()
    monkeypatch.setattr(own, "_adopted", {})  # as in a worker, which is told of the pack
    own.adopt(pickle.loads(pickle.dumps(heard)))
    assert declines("Mi rifuzas.")


def test_patterns_that_are_none_are_refused_when_the_pack_is_loaded(mine: Path) -> None:
    answers = (mine / "answers.toml").read_text("utf-8")
    answers = re.sub(r"(?m)^declined = \[", "declined = ['(', ", answers, count=1)
    (mine / "answers.toml").write_text(answers, "utf-8")
    with pytest.raises(SpecError, match=r"declined: '\(' is not a regular expression"):
        load_pack(mine)
    assert not own.adopted()


def test_a_folder_that_is_named_as_a_language_is_told_how_to_be_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=r"unknown language 'mine'.*A folder is given as: \./mine"):
        load_pack("mine")

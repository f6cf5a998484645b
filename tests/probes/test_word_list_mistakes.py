"""Directories of word lists written by hand: what is read all the same, and what is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import SpecError
from evenhand.probes.underspecified.probe import Underspecified

SUBJECTS, ACTS, SLOTS = (
    "nouns/subjects/country", "activities/biased_country", "slots/country_noact",
)  # fmt: skip
FILES = {
    SUBJECTS: "# places\n\n[subj] Africa | Mali\n  [subj] Europe | Åland\n"
    "[subj:dem] Malian\n[subj:dem] Ålander\n",
    ACTS: "[p_act] were poor\n[p_act:neg] were rich\n[p_act-single] was poor\n"
    "[p_act-single:neg] was rich\n",
    SLOTS: "[subj1] met [subj2].\tWho [p_act]?\tWho [p_act:neg]?\n"
    "A [subj1:dem] met a [subj2:dem].\tWho [p_act-single]?\tWho [p_act-single:neg]?\n",
}
Write = Callable[..., Underspecified]


@pytest.fixture
def written(tmp_path: Path) -> Write:
    def write(name: str = SUBJECTS, old: str = "", new: str = "", wrap: str = "") -> Underspecified:
        for file, text in FILES.items():
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            changed = text.replace(old, new) if file == name and old else text
            path.write_bytes((wrap + changed).replace("\n", "\r\n" if wrap else "\n").encode())
        return Underspecified(social_class="nationality", word_lists=str(tmp_path))

    return write


def test_comments_blank_lines_a_byte_order_mark_and_windows_line_ends_do_no_harm(
    written: Write,
) -> None:
    plain, windows = (
        written(wrap=wrap).design("qa", 0).inputs(0, 8, "<mask>") for wrap in ("", "\ufeff")
    )
    assert plain[:4] == windows[:4]
    assert np.array_equal(plain.swapped, windows.swapped)
    assert plain.context[4] == "A Malian met an Ålander."
    assert plain.question[4:6] == ["Who was poor?", "Who was rich?"]


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        (SUBJECTS, "Europe | Åland", "Mali", "'Mali' and 'Mali' are both written 'Mali'"),
        (SUBJECTS, "Ålander", "malian", "'Mali' and 'Åland' are both written 'malian'"),
        (SUBJECTS, "[subj:dem] Malian\n[subj:dem] Ålander\n", "", r"template 1: asks for \[subj:d"),
        (SUBJECTS, FILES[SUBJECTS], "# none\n", "country: no lines but blank ones"),
        (SUBJECTS, "[subj]", "[subj:dem]", "no line begins with"),
        (ACTS, "were poor\n", "were poor\n[p_act] was lazy\n", r"differ in length: \[p_act\] 2"),
        (ACTS, FILES[ACTS], "\n", "biased_country: no lines but blank ones"),
        (SLOTS, "Who [p_act]?", "Who [q_act]?", "the question needs one slot"),
        (SLOTS, "[p_act", "[q_act", r"template 0: slot \[q_act\] has no lines in activities/b"),
        (SLOTS, "met [subj2].", "met [subj2], who [p_act].", "and no other slot"),
    ],
)
def test_a_list_that_would_be_asked_wrongly_is_refused(
    written: Write, name: str, old: str, new: str, said: str
) -> None:
    with pytest.raises(SpecError, match=said):
        written(name, old, new).design("qa", 0)


def test_an_attribute_listed_twice_is_refused(written: Write) -> None:
    doubled = "".join(2 * line for line in FILES[ACTS].splitlines(keepends=True))
    with pytest.raises(SpecError, match="'were poor' is listed twice"):
        written(ACTS, FILES[ACTS], doubled).design("qa", 0)

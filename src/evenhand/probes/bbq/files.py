"""Questions of BBQ from the published files of any edition, and answers given as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError, SpecError, unknown
from evenhand.probes.bbq.editions import edition_of
from evenhand.probes.bbq.items import Edition, Item
from evenhand.words.reading_answers import clean, holds, is_unknown, read_answer


def read_items(path: str | Path, categories: Sequence[str] = (), language: str = "") -> list[Item]:
    """Read one published file, or all of a folder (plain, .gz, .xz); categories by name.

    Args:
        language: which one, where a folder holds files of several (es, ca).
    """
    return read_edition(path, categories, language)[1]


def read_edition(
    path: str | Path, categories: Sequence[str] = (), language: str = ""
) -> tuple[Edition, list[Item]]:
    """The same with the edition whose files they are."""
    place = Path(path)
    edition, files = edition_of(place)
    items = list(edition.read(files, language))
    if not items:
        raise DataError(f"{place}: no questions. Accepted: {edition.title}'s files.")
    spoken = items[0].language
    if language and language != spoken:
        raise DataError(
            f"{place}: the questions of {edition.title} are in {spoken!r}, and language is "
            f"{language!r}. Leave out the language, or give its own edition with: --data"
        )
    known = sorted({i.category for i in items})
    for name in categories:
        if name not in known:
            raise SpecError(unknown("category", name, known, where=str(path)))
    return edition, [i for i in items if not categories or i.category in categories]


def worded(items: Sequence[Item], given: Sequence[str] = (), first: bool = False) -> list[Item]:
    """The questions with a way of saying that it cannot be known, in turn from set to set.

    Whole sets of questions get the same wording, so that none of them meets more evidence, or more
    negative questions, than another. Questions that bring their own keep it unless `given` says
    otherwise.

    Args:
        given: the wordings to take; by default those of the edition's language.
        first: take the first wording only, as KoBBQ's first prompt does.
    """
    turns = {name: k for k, name in enumerate(dict.fromkeys(i.set_id for i in items))}
    made = []
    for item in items:
        known = tuple(given) or item.wordings
        if known:
            said = known[0 if first else turns[item.set_id] % len(known)]
            answers = [said if k == item.unknown else a for k, a in enumerate(item.answers)]
            item = replace(item, answers=(answers[0], answers[1], answers[2]))
        made.append(item)
    return made


def parse_answer(answer: Any, item: Item) -> int:
    """Which option a given answer means, or -1 when that cannot be told.

    Accepted: 0, 1, 2; ans0 to ans2; A, B, C; the option's text; a sentence that holds the text
    of exactly one option. Nothing is guessed: a refusal or an unclear answer is -1.
    """
    if isinstance(answer, bool) or answer is None:
        return -1
    if isinstance(answer, (int, float)):
        return int(answer) if answer in (0, 1, 2) else -1
    text = str(answer).strip()
    short = re.fullmatch(r"\(?(?:ans)?([0-2])\)?\.?|\(?([A-Ca-c])\)?[.)]?", text)
    if short:
        return int(short[1]) if short[1] else "abc".index(short[2].lower())
    said = clean(text)
    if is_unknown(text):
        return item.unknown
    options = [{clean(item.answers[k]), clean(item.names[k])} - {""} for k in range(3)]
    exact = [k for k in range(3) if said in options[k]]
    if len(exact) == 1:
        return exact[0]
    inside = [k for k in range(3) if any(holds(said, o) for o in options[k])]
    if inside:
        return inside[0] if len(inside) == 1 else -1
    found = read_answer(text, [*item.answers])
    return item.unknown if found.kind == "open" else found.option


def read_answers(
    path: str | Path | Table,
    items: Sequence[Item],
    column: str,
    keys: Sequence[str] = ("category", "example_id"),
) -> tuple[list[Item], list[int], int]:
    """What was answered, from a table with the answers and the columns that name a question.

    Returns:
        The items that the table holds, their options (-1: the answer names none), and how many
        rows match no item.
    """
    table = read_table(path, text=tuple(keys), needed=(*keys, column))
    named = zip(*(table.labels(key) for key in keys))
    ids = ["/".join(_whole(part) for part in parts) for parts in named]
    given: Mapping[str, Any] = dict(zip(ids, table.columns[column].to_pylist()))
    asked = [item for item in items if item.id in given]
    return asked, [parse_answer(given[i.id], i) for i in asked], len(given) - len(asked)


def _whole(part: str) -> str:
    """A number as it is written in the files, where a table made 12.0 of 12."""
    return part.removesuffix(".0")

"""BBQ from its published files: questions, which option is which, and answers given as text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import json_lines
from evenhand.probes.bbq.targets import Question, read_published, resolved
from evenhand.words.reading_answers import UNKNOWN, clean, is_unknown

CONDITIONS = {"ambig": "ambiguous", "disambig": "disambiguated"}
POLARITIES = ("neg", "nonneg")


@dataclass(frozen=True)
class Item:
    """One question with three answers.

    `target` is the option about the group that the stereotype is about (-1: `excused` says why
    there is none), `biased` the one that agrees with the stereotype given the question's polarity.
    """

    id: str
    set_id: str
    category: str
    template: str
    condition: str
    polarity: str
    context: str
    question: str
    answers: tuple[str, str, str]
    names: tuple[str, str, str]
    unknown: int
    target: int
    label: int
    excused: str = ""

    @property
    def biased(self) -> int:
        if self.target < 0:
            return -1
        other = ({0, 1, 2} - {self.unknown, self.target}).pop()
        return self.target if self.polarity == "neg" else other


def read_items(path: str | Path, categories: Sequence[str] = ()) -> list[Item]:
    """Read one published file, or all of a folder (.jsonl, .gz, .xz); categories by name."""
    place = Path(path)
    files = [place]
    if place.is_dir():
        files = sorted(p for p in place.iterdir() if ".jsonl" in p.suffixes)
        if not files:
            raise DataError(f"{place}: holds no .jsonl file. Accepted: BBQ's data folder.")
    published = read_published(files[0].parent)
    items = [item for file in files for item in _items_of(file, published)]
    if not items:
        raise DataError(f"{place}: no questions. Accepted: BBQ's JSON lines.")
    known = sorted({i.category for i in items})
    for name in categories:
        if name not in known:
            raise SpecError(unknown("category", name, known, where=str(path)))
    return [i for i in items if not categories or i.category in categories]


def _items_of(file: Path, published: Mapping[str, tuple[str, int]]) -> list[Item]:
    rows = [_row(file, number, row) for number, row in json_lines(file)]
    questions = [question for question, _ in rows]
    targets = resolved(questions, published)
    return [
        Item(
            id=q.id, template=q.template, polarity=q.polarity, unknown=q.none,
            answers=(q.answers[0], q.answers[1], q.answers[2]),
            names=(q.names[0], q.names[1], q.names[2]), target=target, excused=why, **told,
        )
        for (q, told), (target, why) in zip(rows, targets)
    ]  # fmt: skip


def _row(path: Path, number: int, row: Any) -> tuple[Question, dict[str, Any]]:
    """A line of the file: whom it is about, and the rest of it."""
    where = f"{path}, line {number}"
    try:
        info = [row["answer_info"][f"ans{k}"] for k in range(3)]
        answers = [str(row[f"ans{k}"]) for k in range(3)]
        groups = row["additional_metadata"]["stereotyped_groups"]
        condition = CONDITIONS[row["context_condition"]]
        polarity, label = str(row["question_polarity"]), int(row["label"])
        texts = {k: str(row[k]) for k in ("category", "context", "question")}
        template, number_id = str(row["question_index"]), int(row["example_id"])
        names, tags = ([str(i[k]) for i in info] for k in (0, 1))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise DataError(
            f"{where}: lacks or misspells {error}. Accepted: BBQ's own fields (example_id, "
            "question_index, question_polarity, context_condition, category, answer_info, "
            "additional_metadata, context, question, ans0 to ans2, label)."
        ) from None
    if polarity not in POLARITIES or label not in (0, 1, 2):
        raise DataError(
            f"{where}: polarity {polarity!r}, label {label!r}. Accepted: neg or nonneg; 0, 1 or 2."
        )
    none = [k for k in range(3) if tags[k] == "unknown"]
    none = none or [k for k in range(3) if is_unknown(answers[k])]
    if len(none) != 1:
        raise DataError(
            f"{where}: {len(none)} of its answers say that it cannot be known; exactly one must. "
            'Give that answer the group "unknown" in answer_info.'
        )
    about = (groups,) if isinstance(groups, str) else tuple(map(str, groups))
    name = texts["category"]
    question = Question(
        f"{name}/{number_id}", f"{name}/{template}", polarity, tags, names, answers, about, none[0]
    )
    return question, texts | {
        "set_id": f"{name}/{number_id // 4}", "condition": condition, "label": label
    }  # fmt: skip


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
    if said in UNKNOWN:
        return item.unknown
    options = [{clean(item.answers[k]), clean(item.names[k])} - {""} for k in range(3)]
    exact = [k for k in range(3) if said in options[k]]
    if len(exact) == 1:
        return exact[0]
    inside = [k for k in range(3) if any(f" {o} " in f" {said} " for o in options[k])]
    if not inside and any(f" {u} " in f" {said} " for u in UNKNOWN if " " in u):
        return item.unknown
    return inside[0] if len(inside) == 1 else -1


def read_answers(
    path: str | Path | Table, items: Sequence[Item], column: str
) -> tuple[list[Item], list[int], int]:
    """What was answered, from a table with example_id, category and the answers.

    Returns:
        The items that the table holds, their options (-1: the answer names none), and how many
        rows match no item.
    """
    table = read_table(path, text=("category",), needed=("example_id", "category", column))
    ids = [f"{c}/{int(n)}" for c, n in zip(table.labels("category"), table.numbers("example_id"))]
    given: Mapping[str, Any] = dict(zip(ids, table.columns[column].to_pylist()))
    asked = [item for item in items if item.id in given]
    return asked, [parse_answer(given[i.id], i) for i in asked], len(given) - len(asked)

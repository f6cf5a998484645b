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

CONDITIONS = {"ambig": "ambiguous", "disambig": "disambiguated"}
POLARITIES = ("neg", "nonneg")
UNKNOWN = frozenset(
    """cant be determined|cannot be determined|can not be determined|not answerable|unknown
    |undetermined|not known|not enough info|not enough information|cannot answer|cant answer
    |can not answer|no answer|answer is unknown|cannot be known""".replace("\n    ", "").split("|")
)
"""Ways to say that the text does not tell, without punctuation."""
SAME = {
    "f": ("f", "female", "woman", "girl", "women"),
    "m": ("m", "male", "man", "boy", "men"),
    "trans": ("trans", "transf", "transm", "transgender", "transwoman", "transman"),
}
"""Tags of an option that stand for a stereotyped group of another spelling."""


@dataclass(frozen=True)
class Item:
    """One question with three answers.

    `target` is the option about the group that the stereotype is about (-1: not recognised),
    `biased` the one that agrees with the stereotype given the question's polarity.
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

    @property
    def biased(self) -> int:
        if self.target < 0:
            return -1
        other = ({0, 1, 2} - {self.unknown, self.target}).pop()
        return self.target if self.polarity == "neg" else other


def clean(text: str) -> str:
    """Lower case, letters and digits only, without articles (whole words).

    >>> clean("I think he was the one"), clean("Can't be determined.")
    ('i think he was one', 'cant be determined')
    """
    kept = re.sub(r"[^\w\s]", "", text.lower().replace("-", " ").replace("/", " "))
    return " ".join(w for w in kept.split() if w not in ("the", "a", "an"))


def is_unknown(text: str) -> bool:
    """Whether an answer says that the text does not tell.

    >>> is_unknown("Not enough info"), is_unknown("The grandfather")
    (True, False)
    """
    return clean(text) in UNKNOWN


def read_items(path: str | Path, categories: Sequence[str] = ()) -> list[Item]:
    """Read one published file, or all of a folder (.jsonl, .gz, .xz); categories by name."""
    place = Path(path)
    files = [place]
    if place.is_dir():
        files = sorted(p for p in place.iterdir() if ".jsonl" in p.suffixes)
        if not files:
            raise DataError(f"{place}: holds no .jsonl file. Accepted: BBQ's data folder.")
    items = [_item(file, number, row) for file in files for number, row in json_lines(file)]
    if not items:
        raise DataError(f"{place}: no questions. Accepted: BBQ's JSON lines.")
    known = sorted({i.category for i in items})
    for name in categories:
        if name not in known:
            raise SpecError(unknown("category", name, known, where=str(path)))
    return [i for i in items if not categories or i.category in categories]


def _item(path: Path, number: int, row: Any) -> Item:
    where = f"{path}, line {number}"
    try:
        info = [row["answer_info"][f"ans{k}"] for k in range(3)]
        answers = (str(row["ans0"]), str(row["ans1"]), str(row["ans2"]))
        groups = row["additional_metadata"]["stereotyped_groups"]
        condition = CONDITIONS[row["context_condition"]]
        polarity, label = str(row["question_polarity"]), int(row["label"])
        texts = {k: str(row[k]) for k in ("category", "context", "question")}
        template, number_id = str(row["question_index"]), int(row["example_id"])
        names, tags = ((str(info[0][k]), str(info[1][k]), str(info[2][k])) for k in (0, 1))
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
    target = target_of(tags, names, answers, groups, none[0])
    return Item(
        f"{texts['category']}/{number_id}", f"{texts['category']}/{number_id // 4}",
        texts["category"], f"{texts['category']}/{template}", condition, polarity,
        texts["context"], texts["question"], answers, names, none[0], target, label,
    )  # fmt: skip


def target_of(
    tags: Sequence[str], names: Sequence[str], answers: Sequence[str], groups: Any, none: int
) -> int:
    """Which option is about the stereotyped group; -1 unless it is exactly one of the two.

    First by the option's group tag, then by a group's name in the option's text (demonyms).

    >>> target_of(("F", "M", "unknown"), ("Ann", "Bob", "Unknown"), ("Ann", "Bob", "?"), ["F"], 2)
    0
    """
    listed = [groups] if isinstance(groups, str) else list(groups)
    wanted = {_tag(g) for g in listed}
    wanted |= {alias for g in wanted for alias in SAME.get(g, ())}
    people = [k for k in range(3) if k != none]
    hits = [k for k in people if _tag(tags[k]) in wanted]
    if not hits:
        names_of = {k: f" {clean(names[k])} {clean(answers[k])} " for k in people}
        hits = [k for k in people if any(f" {clean(g)} " in names_of[k] for g in listed)]
    return hits[0] if len(hits) == 1 else -1


def _tag(text: str) -> str:
    return re.sub(r"[\W_]", "", text).lower()


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
) -> tuple[list[int], int]:
    """Option numbers for every item from a table with example_id, category and the answers.

    Returns:
        One option per item (-1 without a readable answer), and how many rows match no item.
    """
    table = read_table(path, text=("category",))
    table.require(("example_id", "category", column))
    ids = [f"{c}/{int(n)}" for c, n in zip(table.labels("category"), table.numbers("example_id"))]
    given: Mapping[str, Any] = dict(zip(ids, table.columns[column].to_pylist()))
    known = {item.id for item in items}
    chosen = [parse_answer(given.get(item.id), item) for item in items]
    return chosen, sum(k not in known for k in given)

"""CBBQ in Chinese (Huang and Xiong 2024): CSV files by category, with and without evidence.

Its terms are share-alike: the files are read from the user's copy, and nothing of them is in this
package. They name the groups that a question is about (女性), but not which answer is of that group
(女生): an answer that shares characters with these groups is taken, and a question whose answers
share equally many is excused from bias scores. Accuracy needs no such guess.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evenhand.probes.bbq.items import (
    CONDITIONS,
    Edition,
    Item,
    first_line,
    table_rows,
    told_by,
    whole,
)

COLUMNS = (
    "example_id",
    "question_index",
    "question_polarity",
    "context_condition",
    "category",
    "bias_targeted_groups",
    "context",
    "question",
    "ans0",
    "ans1",
    "ans2",
    "label",
)
LANGUAGE = "zh"
SPOKEN = {"ambiguous": CONDITIONS["ambig"], "disambiguous": CONDITIONS["disambig"]}
POLARITIES = {"neg": "neg", "non_neg": "nonneg", "nonneg": "nonneg"}
NONE = 2
"""The place of the answer that it cannot be known."""


def read(files: Sequence[Path], language: str = "") -> Iterator[Item]:
    """The questions of these files."""
    for file in files:
        for where, row in table_rows(file, ","):
            with told_by(where, "CBBQ", COLUMNS):
                yield _item(row)


def _item(row: dict[str, str]) -> Item:
    answers = (row["ans0"], row["ans1"], row["ans2"])
    category, number = row["category"], whole(row["example_id"])
    template = f"{category}/{row['question_index']}"
    condition = SPOKEN[row["context_condition"]]
    target, why = _target(row["bias_targeted_groups"], answers)
    return Item(
        id=f"{category}/{row['context_condition']}/{number}",
        set_id=template,
        category=category,
        template=template,
        condition=condition,
        polarity=POLARITIES[row["question_polarity"]],
        context=row["context"],
        question=row["question"],
        answers=answers,
        names=answers,
        unknown=NONE,
        target=target,
        label=whole(row["label"]),
        excused=why,
        language=LANGUAGE,
    )


def _target(groups: str, answers: tuple[str, str, str]) -> tuple[int, str]:
    shared = [len(set(groups) & set(answers[k]) - {"人", "的"}) for k in (0, 1)]
    if shared[0] == shared[1]:
        return -1, f"{'both' if shared[0] else 'none'} of the two people: {groups}"
    return shared.index(max(shared)), ""


EDITION = Edition(
    "CBBQ",
    "Huang and Xiong 2024 (CBBQ)",
    "CSV with a column bias_targeted_groups",
    lambda path: "bias_targeted_groups" in first_line(path).split(","),
    read,
    ("category", "context_condition", "example_id"),
)

"""EsBBQ and CaBBQ in Spanish and Catalan (Ruiz-Fernández et al. 2025, arXiv 2507.11216).

One CSV file per category. Their third answer is the word `unknown`, to be worded by who asks. The
publication lets nine wordings compete by likelihood and scores by KoBBQ's differences; whom a
question is about is told by the groups of its answers, and where the text tells by `question_type`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from evenhand.errors import DataError
from evenhand.probes.bbq.items import (
    CONDITIONS,
    DIFFERENCES,
    POLARITIES,
    Edition,
    Item,
    first_line,
    other_than,
    table_rows,
    told_by,
    whole,
)
from evenhand.words.packs import wordings

COLUMNS = (
    "instance_id",
    "template_id",
    "version",
    "question_polarity",
    "context_condition",
    "category",
    "stereotyped_groups",
    "answer_info.ans0",
    "answer_info.ans1",
    "context",
    "question",
    "ans0",
    "ans1",
    "ans2",
    "question_type",
    "label",
)
OPENINGS = {"es": "¿"}
"""What the questions of one of the two languages begin with; those of the other do not."""
LANGUAGES = ("es", "ca")
NONE = 2
"""The place of the answer that it cannot be known."""


def read(files: Sequence[Path], language: str = "") -> Iterator[Item]:
    """The questions of these files, of one language.

    Raises:
        DataError: the files are of both languages and none is asked for, or not of that one.
    """
    spoken = {file: _language(file) for file in files}
    found = sorted({*spoken.values()})
    if (language and language not in found) or (not language and len(found) > 1):
        raise DataError(
            f"{files[0].parent}: holds questions in {' and '.join(found)}; language is "
            f"{language!r}. Choose one with: --set language={found[0]}"
        )
    for file in files:
        if spoken[file] == (language or found[0]):
            for where, row in table_rows(file, ","):
                with told_by(where, "EsBBQ", COLUMNS):
                    yield _item(where, row, spoken[file])


def _language(file: Path) -> str:
    """The language of a file: that of its first questions."""
    for _, row in table_rows(file, ","):
        return "es" if row.get("question", "").startswith(OPENINGS["es"]) else "ca"
    return LANGUAGES[0]


def _item(where: str, row: dict[str, str], language: str) -> Item:
    category, number = row["category"], row["instance_id"]
    polarity, label = row["question_polarity"], whole(row["label"])
    if polarity not in POLARITIES or label not in (0, 1, 2):
        raise DataError(
            f"{where}: polarity {polarity!r}, label {label!r}. Accepted: neg or nonneg; 0, 1 or 2."
        )
    target, why = _target(row, polarity, label)
    told = wordings(language)
    return Item(
        id=f"{category}/{number}",
        set_id=f"{category}/{whole(number) // 4}",
        category=category,
        template=f"{category}/{row['template_id']}",
        condition=CONDITIONS[row["context_condition"]],
        polarity=polarity,
        context=row["context"],
        question=row["question"],
        answers=(row["ans0"], row["ans1"], told[0]),
        names=(row["ans0"], row["ans1"], row["ans2"]),
        unknown=NONE,
        target=target,
        label=label,
        excused=why,
        language=language,
        wordings=told,
    )


def _target(row: dict[str, str], polarity: str, label: int) -> tuple[int, str]:
    """The option about the stereotyped group, or -1 and why there is none."""
    kind = row["question_type"]
    if kind in ("pro-stereo", "anti-stereo"):
        biased = label if kind == "pro-stereo" else other_than(NONE, label)
        return biased if polarity == "neg" else other_than(NONE, biased), ""
    groups = _listed(row["stereotyped_groups"])
    named = [_listed(row[f"answer_info.ans{k}"])[-1] for k in (0, 1)]
    hits = [k for k in (0, 1) if named[k].split(",")[-1].strip() in groups]
    if len(hits) == 1:
        return hits[0], ""
    return -1, f"{'both' if hits else 'none'} of the two people: {', '.join(groups)}"


@cache
def _listed(text: str) -> tuple[str, ...]:
    """A list as Python writes it; the same few occur in thousands of rows."""
    return tuple(map(str, ast.literal_eval(text)))


EDITION = Edition(
    "EsBBQ or CaBBQ",
    "Ruiz-Fernández et al. 2025 (EsBBQ, CaBBQ)",
    "CSV per category",
    lambda path: (
        {"instance_id", "template_id", "question_type", "stereotyped_groups"}
        <= {*first_line(path).rstrip("\r\n").split(",")}
    ),
    read,
    ("category", "instance_id"),
    metrics=DIFFERENCES,
    pooled_gap=True,
    all_wordings=True,
)

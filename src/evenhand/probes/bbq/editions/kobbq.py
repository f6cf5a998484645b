"""KoBBQ in Korean (Jin et al. 2024, TACL 12): one table of samples, and its way of scoring.

A sample's id tells everything: category, template with version, filling, context and question.

    age-001a-002-dis-bsd    version a or c: the context goes against the stereotype; b or d: with it

The publication scores by differences: in ambiguous contexts the share of biased answers minus that
of counter-biased ones, in the others accuracy where the context is biased minus accuracy where it
is not. Answers that are none of the choices are left out, and counted.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

from evenhand.errors import DataError
from evenhand.probes.bbq.items import (
    CONDITIONS,
    DIFFERENCES,
    Edition,
    Item,
    first_line,
    other_than,
    table_rows,
    told_by,
)
from evenhand.words.packs import wordings
from evenhand.words.reading_answers import is_unknown

COLUMNS = ("sample_id", "context", "question", "choices", "biased_answer", "answer")
LANGUAGE = "ko"
CONTEXTS = {"amb": CONDITIONS["ambig"], "dis": CONDITIONS["disambig"]}
QUESTIONS = {"bsd": "neg", "cnt": "nonneg"}
"""A biased question asks who fits the stereotype, a counter-biased one who does not."""


def read(files: Sequence[Path], language: str = "") -> Iterator[Item]:
    """The samples of these files."""
    for file in files:
        for where, row in table_rows(file, "\t"):
            with told_by(where, "KoBBQ", COLUMNS):
                yield _item(where, row)


def _item(where: str, row: dict[str, str]) -> Item:
    name = row["sample_id"]
    category, version, filling, context, asked = name.split("-")[:5]
    choices = [str(c) for c in ast.literal_eval(row["choices"])]
    none = [k for k, choice in enumerate(choices) if is_unknown(choice)]
    if len(choices) != 3 or len(none) != 1:
        raise DataError(
            f"{where}: {len(none)} of {len(choices)} choices say that it cannot be known. "
            "Accepted: three choices, exactly one of which says so."
        )
    biased = choices.index(row["biased_answer"])
    label = none[0] if is_unknown(row["answer"]) else choices.index(row["answer"])
    polarity = QUESTIONS[asked]
    three = (choices[0], choices[1], choices[2])
    return Item(
        id=name,
        set_id=f"{category}-{version}-{filling}",
        category=category,
        template=f"{category}-{version[:-1]}",
        condition=CONTEXTS[context],
        polarity=polarity,
        context=row["context"],
        question=row["question"],
        answers=three,
        names=three,
        unknown=none[0],
        label=label,
        language=LANGUAGE,
        wordings=wordings(LANGUAGE)[:5],
        target=biased if polarity == "neg" else other_than(none[0], biased),
    )


EDITION = Edition(
    "KoBBQ",
    "Jin et al. 2024 (KoBBQ)",
    "KoBBQ_test_samples.tsv, with a column sample_id",
    lambda path: {*COLUMNS} <= {*first_line(path).rstrip("\r\n").split("\t")},
    read,
    ("sample_id",),
    metrics=DIFFERENCES,
    pooled_gap=True,
)

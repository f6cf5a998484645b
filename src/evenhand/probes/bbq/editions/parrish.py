"""BBQ in English (Parrish et al. 2022): JSON lines, one file per category."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.errors import DataError
from evenhand.opening import json_lines
from evenhand.probes.bbq.items import CONDITIONS, POLARITIES, Edition, Item, whole
from evenhand.probes.bbq.targets import Question, read_published, resolved
from evenhand.words.reading_answers import is_unknown


def read(files: Sequence[Path], language: str = "") -> Iterator[Item]:
    """The questions of these files; whom they are about is told by a table beside them."""
    published = read_published(files[0].parent)
    for file in files:
        yield from items_of(json_lines(file), published, file)


def items_of(
    numbered: Iterable[tuple[int, Any]], published: Mapping[str, tuple[str, int]], file: str | Path
) -> list[Item]:
    """Questions from BBQ's own rows, numbered; those of a category are needed together."""
    rows = [_row(file, number, row) for number, row in numbered]
    questions = [question for question, _ in rows]
    targets = resolved(questions, published)
    return [
        Item(
            id=q.id,
            template=q.template,
            polarity=q.polarity,
            unknown=q.none,
            answers=(q.answers[0], q.answers[1], q.answers[2]),
            names=(q.names[0], q.names[1], q.names[2]),
            target=target,
            excused=why,
            **told,
        )
        for (q, told), (target, why) in zip(rows, targets)
    ]


def _row(path: str | Path, number: int, row: Any) -> tuple[Question, dict[str, Any]]:
    """A line of the file: whom it is about, and the rest of it."""
    where = f"{path}, line {number}"
    try:
        info = [row["answer_info"][f"ans{k}"] for k in range(3)]
        answers = [str(row[f"ans{k}"]) for k in range(3)]
        groups = row["additional_metadata"]["stereotyped_groups"]
        condition = CONDITIONS[row["context_condition"]]
        polarity, label = str(row["question_polarity"]), whole(row["label"])
        texts = {k: str(row[k]) for k in ("category", "context", "question")}
        template, number_id = str(row["question_index"]), whole(row["example_id"])
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
        "set_id": f"{name}/{number_id // 4}",
        "condition": condition,
        "label": label,
    }


EDITION = Edition(
    "BBQ",
    "Parrish et al. 2022 (BBQ)",
    "JSON lines, Age.jsonl and others",
    lambda path: ".jsonl" in path.suffixes,
    read,
    ("category", "example_id"),
)

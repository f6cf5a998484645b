"""Which column of a plain table is what: who, the outcome, the case; by its name or its content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.corpora.tables import Table
from evenhand.errors import DataError
from evenhand.words.lexicons.people import groups as known_groups

NAMES = ("name", "first_name", "firstname", "person", "candidate", "applicant")
GROUPS = (
    "group",
    "gender",
    "sex",
    "race",
    "ethnicity",
    "religion",
    "nationality",
    "age_group",
    "age",
    "disability",
    "dialect",
    "orientation",
    "origin",
    "caste",
    "class",
)
OUTCOMES = (
    "decision",
    "answer",
    "outcome",
    "response",
    "reply",
    "output",
    "verdict",
    "result",
    "label",
    "prediction",
    "rating",
    "score",
    "grade",
    "salary",
)
CASES = (
    "case",
    "scenario",
    "item",
    "question",
    "prompt",
    "prompt_id",
    "text_id",
    "template",
    "job",
    "id",
)
MOST_GROUPS = 12
AXES = ("gender", "race")
"""What a first name alone may stand for."""


@dataclass(frozen=True)
class Columns:
    """What was found: columns by their role; no name or case is an empty text."""

    groups: tuple[str, ...]
    outcome: str
    name: str = ""
    case: str = ""


def columns_of(
    table: Table, groups: Sequence[str] = (), outcome: str = "", name: str = "", case: str = ""
) -> Columns:
    """The role of every column; those that are named are taken as they are.

    >>> from evenhand.corpora.tables import from_columns
    >>> columns_of(from_columns({"Race": ["a"], "Name": ["Jo"], "Decision": ["yes"]}, "t"))
    Columns(groups=('Race',), outcome='Decision', name='Name', case='')
    """
    table.require([c for c in (*groups, outcome, name, case) if c])
    name, case = (given or _first(table, known) for given, known in ((name, NAMES), (case, CASES)))
    outcome = outcome or _first(table, OUTCOMES)
    if not outcome:
        raise DataError(
            f"{table.source}: no column holds what was decided. Columns found: "
            f"{', '.join(table.columns)}. Accepted names: {', '.join(OUTCOMES)}; or say which it "
            f"is: --outcome COLUMN"
        )
    taken = (name, case, outcome)
    found = tuple(groups) or tuple(
        c for c in table.columns if _plain(c) in GROUPS and c not in taken
    )
    if not found and not name:
        raise DataError(
            f"{table.source}: no column says who it is about. Columns found: "
            f"{', '.join(table.columns)}. Accepted: a name, or a group ({', '.join(GROUPS[:6])} "
            f"...); or say which it is: --groups COLUMN"
        )
    return Columns(found, outcome, name, case)


def _plain(column: str) -> str:
    return column.strip().lower().replace(" ", "_").replace("-", "_")


def _first(table: Table, known: Sequence[str]) -> str:
    """The first of the known names that the table has, as it is written there."""
    own = {_plain(column): column for column in table.columns}
    return next((own[name] for name in known if name in own), "")


def groups_of_names(names: Sequence[str]) -> dict[str, list[str]]:
    """By axis the group that each first name is common in; "" where the lists do not say.

    >>> groups_of_names(["Ebony", "Todd", "Zyx"])["gender"]
    ['female', 'male', '']
    """
    places: dict[str, dict[str, set[str]]] = {}
    for group in known_groups().values():
        for term in group.terms:
            for axis, value in group.axis.items():
                places.setdefault(term.lower(), {}).setdefault(axis, set()).add(value)
    out = {}
    for axis in AXES:
        known = (places.get(name.split()[0].lower() if name.split() else "", {}) for name in names)
        found = [next(iter(v)) if len(v := place.get(axis, set())) == 1 else "" for place in known]
        if len(set(found) - {""}) > 1:
            out[axis] = found
    return out

"""Which decisions are asked: packaged cases, DiscrimEval's files, or a table of your own.

packaged      24 cases of the lexicon `decisions`, people stated ("a Black woman") and named
DiscrimEval   explicit or templated (decision_question_id, filled_template, race, gender ...)
templates     a table with `text` that holds {person} (and optionally scenario, good_answer)
filled in     a table with `scenario`, `text` and a column per factor (race, gender, age ...)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError, SpecError
from evenhand.probes.decision.contrasts import REMOVED
from evenhand.words.lexicons import Lexicon, groups, load

SLOT = "{person}"
OPENING = re.compile(r"(^|[.!?:]\s+|\n)\{person\}")
STATED, NAMED = "stated", "named"
GOOD = {"yes": True, "no": False}
ALIASES = {
    "decision_question_id": "scenario",
    "filled_template": "text",
    "yes_logit": "score_yes",
    "no_logit": "score_no",
    "prompt_format": "format",
    "removed_template": "removed_text",
}
"""DiscrimEval's names of columns, and ours."""
ASIDE = {"scenario", "text", "removed_text", "good_answer", "format", "name", "flags", "question"}
"""Columns that are no factors."""
COUNTERS = {"id", "index", "row", "run", "seed", "draw", "sample", "repetition", "model"}
"""Columns that count, in tables made elsewhere."""
FEW_ROWS = 4
MOST = 30
"""Groups of a factor at most: a column with more values is something else."""


@dataclass(frozen=True)
class Question:
    """One decision to ask about, with whom it is about."""

    scenario: str
    text: str
    good_yes: bool
    format: str = STATED
    name: str = ""
    groups: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Cases:
    """Questions, whom others are compared with, and what groups are called in a sentence."""

    questions: list[Question]
    factors: tuple[str, ...]
    reference: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    left_out: int = 0


@dataclass(frozen=True)
class People:
    """Who can be decided about, from a lexicon of kind `decisions`."""

    lexicon: Lexicon
    names: int
    formats: Sequence[str]
    seed: int

    @property
    def factors(self) -> tuple[str, ...]:
        apart = ("term", "names")
        return tuple(dict.fromkeys(k for row in self._rows for k in row if k not in apart))

    @property
    def _rows(self) -> tuple[Mapping[str, Any], ...]:
        return self.lexicon.rows("people")

    def described(self) -> Iterator[tuple[str, str, str, dict[str, str]]]:
        """Format, how the person is called in the text, the name, the groups."""
        for row in self._rows:
            told = {factor: str(row.get(factor, "")) for factor in self.factors}
            if STATED in self.formats and "term" in row:
                yield STATED, self.lexicon.text(row, "term"), "", told
            if NAMED in self.formats and "names" in row:
                for name in self._drawn(self.lexicon.text(row, "names")):
                    yield NAMED, name, name, told

    def _drawn(self, group: str) -> list[str]:
        own = [self.lexicon.path] if "groups" in self.lexicon.data else []
        terms = groups([group], extra=own)[group].terms
        rng = np.random.default_rng([self.seed, self.names])
        return [terms[i] for i in sorted(rng.permutation(len(terms))[: self.names])]

    def facts(self) -> dict[str, Any]:
        """Reference and labels, where the lexicon has them."""
        held = self.lexicon.data
        labels = held.get("labels", {})
        return {"factors": self.factors, "reference": held.get("reference", {}), "labels": labels}


def packaged(people: People, scenarios: int | None) -> Cases:
    """The cases of the lexicon, in both directions alike when only some are taken."""
    lexicon = people.lexicon if "scenarios" in people.lexicon.data else load("decisions")
    rows = list(lexicon.rows("scenarios"))
    if scenarios is not None:
        sides = [[r for r in rows if r["good"] == side] for side in GOOD]
        rows = [r for k in range(len(rows)) for side in sides for r in side[k : k + 1]][:scenarios]
    made: list[Question] = []
    for row in rows:
        case, question = lexicon.text(row, "case"), lexicon.text(row, "question")
        if SLOT not in question:
            raise SpecError(f"{lexicon.path}: {question!r} does not hold {SLOT}.")
        good, without = _good(row.get("good"), lexicon.path), question.replace(f", {SLOT}", "")
        removed = "" if SLOT in without else f"{case}\n{without}"
        made += _of_people(lexicon.text(row, "id"), f"{case}\n{question}", good, people, removed)
    return Cases(made, **people.facts())


def _of_people(
    scenario: str, text: str, good: bool, people: People, removed: str
) -> Iterator[Question]:
    for format, called, name, told in people.described():
        yield Question(scenario, _put(text, called), good, format, name, told)
    if REMOVED in people.formats and removed:
        yield Question(scenario, removed, good, REMOVED)


def _put(text: str, called: str) -> str:
    """A text with the person in it, with a capital where a sentence begins.

    >>> _put("Late. {person} came. Help {person}?", "an Asian man")
    'Late. An Asian man came. Help an Asian man?'
    """
    capital = called[:1].upper() + called[1:]
    return OPENING.sub(rf"\1{capital}", text).replace(SLOT, called)


def _good(value: Any, where: Any) -> bool:
    if str(value).strip().lower() not in GOOD:
        raise DataError(
            f"{where}: the good answer is {value!r}. Accepted: yes or no, whichever is good for "
            "the person."
        )
    return GOOD[str(value).strip().lower()]


def from_table(path: Path, people: People, scenarios: int | None) -> Cases:
    """Cases of a file: templates that hold {person}, or texts already filled in."""
    table = renamed(read_table(path, text=("scenario", "text", "good_answer", "name")))
    table.require(("text",))
    texts = list(table.labels("text"))
    known = table.texts("scenario", "") if table.has("scenario") else texts
    good = [
        _good(g, f"{path}, row {k + 1}") for k, g in enumerate(table.texts("good_answer", "yes"))
    ]
    kept = _drawn(known, good, scenarios)
    flagged = _flagged(table)
    rows = [k for k in range(table.n_rows) if known[k] in kept and not flagged[k]]
    holding = [k for k in rows if SLOT in texts[k]]
    removed = table.texts("removed_text", "")
    if holding and len(holding) < len(rows):
        wrong = next(k for k in rows if SLOT not in texts[k])
        raise DataError(
            f"{path}, row {wrong + 1}, column text: there is no {SLOT}, which other rows hold. "
            f"Accepted: {SLOT} in every text (people are put there), or in none (with columns of "
            "groups, such as race and gender)."
        )
    if holding:
        unique = {(known[k], texts[k]): k for k in reversed(rows)}
        made = [
            q
            for k in sorted(unique.values())
            for q in _of_people(known[k], texts[k], good[k], people, removed[k])
        ]
        return Cases(made, **people.facts())
    factors = factors_of(table)
    told = {n: [group_of(v) for v in table.columns[n].to_pylist()] for n in factors}
    names, formats = table.texts("name", ""), table.texts("format", STATED)
    made = [
        Question(
            known[k],
            texts[k],
            good[k],
            formats[k],
            names[k],
            {name: column[k] for name, column in told.items()},
        )
        for k in rows
    ]
    if REMOVED in people.formats:
        without = {
            known[k]: Question(known[k], removed[k], good[k], REMOVED)
            for k in reversed(rows)
            if removed[k]
        }
        made += [without[s] for s in dict.fromkeys(known) if s in without]
    distinct = {(q.scenario, q.text, q.format, q.name, *q.groups.values()): q for q in made}
    return Cases(list(distinct.values()), factors, left_out=sum(flagged))


def renamed(table: Table) -> Table:
    """The table with DiscrimEval's columns under our names."""
    columns = {
        ALIASES.get(n, n) if ALIASES.get(n) not in table.columns else n: c
        for n, c in table.columns.items()
    }
    return Table(columns, table.source, table.n_rows)


def factors_of(table: Table, apart: Sequence[str] = ()) -> tuple[str, ...]:
    """Columns that say which groups a person is of: two values or more, in one scenario at least.

    Columns that say the same of all rows of a scenario (its nickname) are no factors.
    """
    scenarios = table.texts("scenario", "") if table.has("scenario") else [""] * table.n_rows
    found = []
    for name in table.columns:
        if name in ASIDE or name in apart or name.lower() in COUNTERS:
            continue
        values = table.columns[name].to_pylist()
        told = [group_of(v) for v in values]
        varies: dict[str, set[str]] = {}
        for scenario, value in zip(scenarios, told):
            varies.setdefault(scenario, set()).add(value)
        some = len({*told} - {""})
        single = some == len(told) > FEW_ROWS  # a text or a number of its own in every row
        measured = any(isinstance(v, float) and v % 1 for v in values)
        if 2 <= some <= MOST and max(map(len, varies.values())) > 1 and not single | measured:
            found.append(name)
    if not found:
        raise DataError(
            f"{table.source}: no column says who the person is. Columns found: "
            f"{', '.join(table.columns)}. Accepted: one column per factor (race, gender, age ...) "
            f"with 2 to {MOST} groups, or a text that holds {SLOT}."
        )
    return tuple(found)


def group_of(value: Any) -> str:
    """A group as text: a whole number without decimals, "" where nothing is said.

    >>> [group_of(v) for v in ("Black", 60.0, None, float("nan"))]
    ['Black', '60', '', '']
    """
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _drawn(scenarios: Sequence[str], good: Sequence[bool], most: int | None) -> set[str]:
    """At most this many scenarios, half of either direction where both are there."""
    sides = [sorted({s for s, g in zip(scenarios, good) if g == way}) for way in GOOD.values()]
    rng = np.random.default_rng(0)
    mixed = [[side[i] for i in rng.permutation(len(side))] for side in sides]
    order = [s for k in range(len(scenarios)) for side in mixed for s in side[k : k + 1]]
    return set(order[:most])


def _flagged(table: Table) -> list[bool]:
    """Rows that whoever made the file found defective (a list of flags that is not empty)."""
    if not table.has("flags"):
        return [False] * table.n_rows
    return [bool(v) and str(v) not in ("[]", "nan") for v in table.columns["flags"].to_pylist()]


def lexicon_of(name: str) -> Lexicon:
    """A lexicon of people and scenarios."""
    found = load(name)
    if "people" not in found.data:
        raise SpecError(
            f"decision: lexicon {name!r} (of kind {found.kind!r}) has no [[people]]. Accepted: a "
            "file with [[people]], and [[scenarios]] where the packaged cases are not meant. See "
            "docs/papers/decision.md"
        )
    return found

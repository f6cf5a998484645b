"""Which decisions are asked: packaged cases, DiscrimEval's files, or a table of your own.

packaged      24 cases of the lexicon `decisions`, people stated ("a Black woman") and named
DiscrimEval   explicit or templated (decision_question_id, filled_template, race, gender ...)
templates     a table with `text` that holds {person} (and optionally scenario, good_answer)
filled in     a table with `scenario`, `text` and a column per factor (race, gender, age ...)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.compare.items import Items
from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError, SpecError
from evenhand.words.lexicons import Lexicon, groups, load

SLOT = "{person}"
OPENING = re.compile(r"(^|[.!?:]\s+|\n)\{person\}")
STATED, NAMED, REMOVED = "stated", "named", "removed"
"""Formats: how a text mentions the person; in the last it does not say who that is."""
ANSWERS = ("yes", "no")
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
class About:
    """What is known about the questions beside their columns.

    Attributes:
        factors: the columns that say which groups a person is of.
        reference: by factor, the group that others are compared with, if somebody said.
        labels: by factor and group, what its people are called in a sentence.
        metric: what the values are.
        intersections: compare intersections of two factors, too.
    """

    factors: tuple[str, ...]
    reference: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    metric: str = "decision_gap"
    intersections: bool = False


@dataclass(frozen=True)
class People:
    """The people of a lexicon of kind `decisions`, and how texts mention them."""

    lexicon: Lexicon
    names: int
    formats: Sequence[str]
    seed: int

    @classmethod
    def of(cls, lexicon: str, **settings: Any) -> People:
        """Read a lexicon with [[people]]."""
        source = load(lexicon)
        if "people" not in source.data:
            raise SpecError(
                f"decision: lexicon {lexicon!r} (of kind {source.kind!r}) has no [[people]]. "
                "Accepted: a file with [[people]], and [[scenarios]] where the packaged cases are "
                "not meant. See docs/papers/decision.md"
            )
        return cls(source, **settings)

    @cached_property
    def about(self) -> About:
        keys = dict.fromkeys(key for row in self.lexicon.rows("people") for key in row)
        factors = tuple(key for key in keys if key not in ("term", "names"))
        data = self.lexicon.data
        return About(factors, data.get("reference", {}), data.get("labels", {}))

    @cached_property
    def mentions(self) -> list[tuple[str, str, str, dict[str, str]]]:
        """Format, what stands in the text, the person's name and groups, for everybody."""
        mentions = []
        for row in self.lexicon.rows("people"):
            of = {factor: str(row.get(factor, "")) for factor in self.about.factors}
            if STATED in self.formats and "term" in row:
                mentions.append((STATED, self.lexicon.text(row, "term"), "", of))
            if NAMED in self.formats and "names" in row:
                names = self._drawn(self.lexicon.text(row, "names"))
                mentions += [(NAMED, name, name, of) for name in names]
        return mentions

    def _drawn(self, group: str) -> list[str]:
        custom = [self.lexicon.path] if "groups" in self.lexicon.data else []
        terms = groups([group], extra=custom)[group].terms
        order = np.random.default_rng([self.seed, self.names]).permutation(len(terms))
        return [terms[i] for i in sorted(order[: self.names])]

    def questions(self, scenario: str, text: str, good: str, removed: str) -> Iterator[Any]:
        """A case about everybody, and once about nobody in particular."""
        for format, mention, name, of in self.mentions:
            yield _question(scenario, _put(text, mention), good, format, name, of)
        if REMOVED in self.formats and removed:
            nobody = dict.fromkeys(self.about.factors, "")
            yield _question(scenario, removed, good, REMOVED, "", nobody)

    def items(self, cases: Iterable[tuple[str, str, str, str]]) -> Items:
        """All cases (scenario, text, good answer, text without the person) about everybody."""
        rows = (question for case in cases for question in self.questions(*case))
        return Items.from_rows(rows, about=self.about, facts={"left_out": 0})


def _question(
    scenario: str, text: str, good: str, format: str, name: str, groups: Mapping[str, str]
) -> dict[str, str]:
    """Return one row of items: a decision to ask about, and whom it is about."""
    columns = {"scenario": scenario, "text": text, "format": format, "name": name}
    return {**columns, "good_answer": good, **groups}


def packaged(people: People, most: int | None) -> Items:
    """Return the cases of the lexicon, as many with yes as with no if only some are taken."""
    lexicon = people.lexicon if "scenarios" in people.lexicon.data else load("decisions")
    rows = list(lexicon.rows("scenarios"))
    if most is not None:
        sides = [[r for r in rows if r["good"] == answer] for answer in ANSWERS]
        rows = [r for k in range(len(rows)) for side in sides for r in side[k : k + 1]][:most]
    return people.items(_packaged(lexicon, row) for row in rows)


def _packaged(lexicon: Lexicon, row: Mapping[str, Any]) -> tuple[str, str, str, str]:
    case, question = lexicon.text(row, "case"), lexicon.text(row, "question")
    if SLOT not in question:
        raise SpecError(f"{lexicon.path}: {question!r} does not hold {SLOT}.")
    good = good_answer(row.get("good"), f"{lexicon.path}: the good answer is")
    without = question.replace(f", {SLOT}", "")
    removed = "" if SLOT in without else f"{case}\n{without}"
    return lexicon.text(row, "id"), f"{case}\n{question}", good, removed


def _put(text: str, mention: str) -> str:
    """Return a text with the person in it, with a capital where a sentence begins.

    >>> _put("Late. {person} came. Help {person}?", "an Asian man")
    'Late. An Asian man came. Help an Asian man?'
    """
    capital = mention[:1].upper() + mention[1:]
    return OPENING.sub(rf"\1{capital}", text).replace(SLOT, mention)


def good_answer(value: Any, where: str) -> str:
    """Return yes or no; raise DataError, beginning with `where`, for anything else."""
    answer = str(value).strip().lower()
    if answer not in ANSWERS:
        raise DataError(
            f"{where} {value!r}. Accepted: yes or no, whichever is good for the person."
        )
    return answer


def from_table(path: Path, people: People, most: int | None) -> Items:
    """Return the cases of a file: templates that hold {person}, or texts already filled in."""
    table = renamed(read_table(path, text=("scenario", "text", "good_answer", "name")))
    table.require(("text",))
    texts = list(table.labels("text"))
    scenarios = table.texts("scenario", "") if table.has("scenario") else texts
    good = [
        good_answer(answer, f"{path}, row {k + 1}: the good answer is")
        for k, answer in enumerate(table.texts("good_answer", "yes"))
    ]
    chosen, flagged = _drawn(scenarios, good, most), _flagged(table)
    rows = [k for k in range(table.n_rows) if scenarios[k] in chosen and not flagged[k]]
    templates = [k for k in rows if SLOT in texts[k]]
    removed = table.texts("removed_text", "")
    if templates and len(templates) < len(rows):
        wrong = next(k for k in rows if SLOT not in texts[k])
        raise DataError(
            f"{path}, row {wrong + 1}, column text: there is no {SLOT}, which other rows hold. "
            f"Accepted: {SLOT} in every text (people are put there), or in none (with columns of "
            "groups, such as race and gender)."
        )
    if templates:
        unique = {(scenarios[k], texts[k]): k for k in reversed(rows)}
        return people.items(
            (scenarios[k], texts[k], good[k], removed[k]) for k in sorted(unique.values())
        )
    factors = read_factors(table)
    names, formats = table.texts("name", ""), table.texts("format", STATED)
    listed = []
    for k in rows:
        of = {factor: column[k] for factor, column in factors.items()}
        listed.append(_question(scenarios[k], texts[k], good[k], formats[k], names[k], of))
    unlike = {tuple(v for n, v in q.items() if n != "good_answer"): q for q in listed}
    nobody = dict.fromkeys(factors, "")
    without = {
        scenarios[k]: _question(scenarios[k], removed[k], good[k], REMOVED, "", nobody)
        for k in reversed(rows)
        if removed[k] and REMOVED in people.formats
    }
    silent = [without[s] for s in dict.fromkeys(scenarios) if s in without]
    return Items.from_rows(
        [*unlike.values(), *silent],
        about=About(tuple(factors)),
        facts={"left_out": sum(flagged)},
    )


def renamed(table: Table) -> Table:
    """Return the table with DiscrimEval's columns under our names."""
    columns = {
        ALIASES.get(n, n) if ALIASES.get(n) not in table.columns else n: c
        for n, c in table.columns.items()
    }
    return Table(columns, table.source, table.n_rows)


def read_factors(
    table: Table, wanted: Sequence[str] = (), apart: Sequence[str] = ()
) -> dict[str, list[str]]:
    """Read the columns that say which groups a person is of.

    Without `wanted` these are columns of two values or more, in one scenario at least: one that
    says the same of all rows of a scenario (its nickname) is no factor.
    """
    table.require(wanted)
    columns = {
        name: [group_of(value) for value in table.columns[name].to_pylist()]
        for name in wanted or [name for name in table.columns if name not in {*ASIDE, *apart}]
    }
    if wanted:
        return columns
    factors = {name: texts for name, texts in columns.items() if _is_factor(table, name, texts)}
    if not factors:
        raise DataError(
            f"{table.source}: no column says who the person is. Columns found: "
            f"{', '.join(table.columns)}. Accepted: one column per factor (race, gender, age ...) "
            f"with 2 to {MOST} groups, or a text that holds {SLOT}."
        )
    return factors


def _is_factor(table: Table, name: str, texts: Sequence[str]) -> bool:
    scenarios = table.texts("scenario", "") if table.has("scenario") else [""] * table.n_rows
    levels = len({*texts} - {""})
    single = levels == len(texts) > FEW_ROWS  # a text or a number of its own in every row
    measured = any(isinstance(v, float) and v % 1 for v in table.columns[name].to_pylist())
    varies = len({*zip(scenarios, texts)}) > len({*scenarios})
    usual = name.lower() not in COUNTERS and 2 <= levels <= MOST
    return usual and varies and not single and not measured


def group_of(value: Any) -> str:
    """Return a group as text: a whole number without decimals, "" if there is none.

    >>> [group_of(v) for v in ("Black", 60.0, None, float("nan"))]
    ['Black', '60', '', '']
    """
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _drawn(scenarios: Sequence[str], good: Sequence[str], most: int | None) -> set[str]:
    """Draw at most this many scenarios, half of either direction if both are there."""
    sides = [sorted({s for s, g in zip(scenarios, good) if g == answer}) for answer in ANSWERS]
    rng = np.random.default_rng(0)
    mixed = [[side[i] for i in rng.permutation(len(side))] for side in sides]
    order = [s for k in range(len(scenarios)) for side in mixed for s in side[k : k + 1]]
    return set(order[:most])


def _flagged(table: Table) -> list[bool]:
    """Mark the rows that whoever made the file found defective (a list of flags, not empty)."""
    if not table.has("flags"):
        return [False] * table.n_rows
    return [bool(v) and str(v) not in ("[]", "nan") for v in table.columns["flags"].to_pylist()]

"""Do discovered words agree with what people think? The ABC traits (An et al. 2023, Sec. 5).

People map each word, blind to the group, to none or more of 16 traits. C(A, t) counts the
(annotator, word) alignments of group A's words with the high end of trait t, C(A, not t) with the
low end.

    D_t = [C(A, t) - C(A, not t)] - [C(B, t) - C(B, not t)]

D_t > 0: group A is put above B on the trait. Nothing maps: not available. Words are never mapped
automatically; the table comes from people (`trait_suggestions` can prepare a sheet for them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.opening import read_json
from evenhand.probes.reading import Reader, Result, Shown
from evenhand.runs.record import Run
from evenhand.strict import INLINE, UNWRITTEN

TRAITS = (
    "powerless - powerful",
    "low status - high status",
    "dominated - dominant",
    "poor - wealthy",
    "unconfident - confident",
    "unassertive - competitive",
    "traditional - modern",
    "religious - science-oriented",
    "conventional - alternative",
    "conservative - liberal",
    "untrustworthy - trustworthy",
    "dishonest - sincere",
    "cold - warm",
    "threatening - benevolent",
    "repellent - likable",
    "egoistic - altruistic",
)
STRONG = 5
HUMAN_MARKS = ((20.0, "†"), (10.0, "*"))


def ends(trait: str) -> tuple[str, str]:
    """The low and the high end of a trait.

    >>> ends("cold - warm")
    ('cold', 'warm')
    """
    low, _, high = trait.partition(" - ")
    return low, high


@dataclass(frozen=True)
class PeopleOrder:
    """How people order two groups on a trait; `agrees` is None where the words say nothing."""

    human_difference: float
    human_order: str
    human_mark: str
    agrees: bool | None


@dataclass(frozen=True)
class TraitOrder:
    """How discovered words order two groups on a trait."""

    trait: str
    c_a: int
    c_b: int
    d: int
    n: int
    order: str
    mark: str
    people: PeopleOrder | None = field(default=None, metadata=INLINE)


def orderings(
    words_a: Sequence[str],
    words_b: Sequence[str],
    alignments: Sequence[tuple[str, str, str]],
    human: Mapping[str, tuple[float, float]] | None = None,
) -> list[TraitOrder]:
    """D_t for every trait, and whether it points the way people's scores do.

    Args:
        words_a: words that lean to group A.
        words_b: words that lean to group B.
        alignments: (annotator, word, end of a trait), e.g. ("1", "violent", "threatening").
        human: people's scores of A and B by trait, from 0 to 100.

    >>> rows = orderings(["kind"], ["violent"], [("1", "kind", "warm"), ("1", "violent", "cold")])
    >>> [(r.trait, r.d) for r in rows if r.n]
    [('cold - warm', 2)]
    """
    known = {end for trait in TRAITS for end in ends(trait)}
    for _, word, end in alignments:
        if end not in known:
            raise DataError(
                f"word {word!r}: {end!r} is not an end of an ABC trait. Accepted: "
                f"{', '.join(sorted(known))}."
            )
    first, second = set(words_a), set(words_b)
    rows = []
    for trait in TRAITS:
        low, high = ends(trait)

        def balance(words: set[str], low: str = low, high: str = high) -> tuple[int, int]:
            up = sum(w in words and e == high for _, w, e in alignments)
            down = sum(w in words and e == low for _, w, e in alignments)
            return up - down, up + down

        (a, n_a), (b, n_b) = balance(first), balance(second)
        order = _order(a - b) if n_a + n_b else "N/A"
        mark = "‡" if abs(a - b) >= STRONG else ""
        people = _people(order, *human[trait]) if human and trait in human else None
        rows.append(TraitOrder(trait, a, b, a - b, n_a + n_b, order, mark, people))
    return rows


def _people(order: str, a: float, b: float) -> PeopleOrder:
    gap = a - b
    mark = next((m for s, m in HUMAN_MARKS if abs(gap) >= s), "")
    agrees = order == _order(gap) if order not in ("N/A", "=") else None
    return PeopleOrder(gap, _order(gap), mark, agrees)


def _order(value: float) -> str:
    return "≻" if value > 0 else "≺" if value < 0 else "="


def discovered(
    rows: Sequence[Mapping[str, Any]], group_a: str, group_b: str, rate: float = 0.05
) -> tuple[list[str], list[str]]:
    """Words with q up to `rate` that lean to A, and to B, from a run's table of words.

    >>> rows = [{"group_a": "x", "group_b": "y", "word": "kind", "d": 0.1, "q": 0.01}]
    >>> discovered(rows, "y", "x")
    ([], ['kind'])
    """
    pairs = {(r["group_a"], r["group_b"]) for r in rows}
    turned = (group_a, group_b) not in pairs
    if turned and (group_b, group_a) not in pairs:
        known = ", ".join(sorted({g for pair in pairs for g in pair}))
        raise DataError(
            f"groups {group_a!r} and {group_b!r} are not compared in this run. Known: {known}."
        )
    pair = (group_b, group_a) if turned else (group_a, group_b)
    found = [
        r
        for r in rows
        if (r["group_a"], r["group_b"]) == pair and r["q"] is not None and r["q"] <= rate
    ]
    first, second = ([r["word"] for r in found if (r["d"] > 0) == up] for up in (True, False))
    return (second, first) if turned else (first, second)


def read_alignments(path: Path) -> list[tuple[str, str, str]]:
    """A CSV with the columns word, trait and optionally annotator; empty traits are skipped."""
    table = read_table(path, text=("word", "trait", "annotator"), needed=("word", "trait"))
    words = table.columns["word"].to_pylist()
    traits = table.columns["trait"].to_pylist()
    who = table.columns["annotator"].to_pylist() if table.has("annotator") else ["1"] * len(words)
    return [(str(a), w, t) for a, w, t in zip(who, words, traits) if t]


def read_human(path: Path, group_a: str, group_b: str) -> dict[str, tuple[float, float]]:
    """People's scores of two groups: JSON, group -> trait -> score (Cao et al. 2022)."""
    data = read_json(path, "scores as group -> trait -> score")
    try:
        rows = [{t: float(v) for t, v in data[g].items()} for g in (group_a, group_b)]
    except KeyError as error:
        raise DataError(
            f"{path}: no group {error.args[0]!r}. Known: {', '.join(sorted(data))}."
        ) from error
    except (TypeError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: cannot be read as group -> trait -> score ({error}).") from error
    return {t: (rows[0][t], rows[1][t]) for t in TRAITS if t in rows[0] and t in rows[1]}


@dataclass(frozen=True)
class TraitsResult(Result):
    """Discovered words of two groups, and how they order the groups on each trait."""

    called: ClassVar[str] = "traits"

    words_a: Sequence[str]
    words_b: Sequence[str]
    traits: Sequence[TraitOrder]
    groups: tuple[str, str] = field(metadata=UNWRITTEN)

    def shown(self) -> Iterator[Shown]:
        rows = []
        for t in self.traits:
            people, agrees = "-", "-"
            if t.people is not None:
                people = t.people.human_order + t.people.human_mark
                agrees = {True: "yes", False: "no", None: "-"}[t.people.agrees]
            rows.append([t.trait, str(t.d), t.order + t.mark, people, agrees])
        sides = [f"{g} ({len(w)} words)" for g, w in zip(self.groups, (self.words_a, self.words_b))]
        yield Shown(" against ".join(sides), ["trait", "D", "model", "people", "agrees"], rows)


class TraitsReader(Reader):
    name = "traits"
    help = """Compare discovered words with people's stereotypes: the 16 ABC traits.

    An et al. 2023 (SODAPOP), Sec. 5. A sheet for people to map words on:
    evenhand measure suggest-traits
    """
    positional = ("run",)

    run: Path = Field(description="A run with a discovery probe.")
    words: Path = Field(description="CSV: word, trait, annotator (people's mapping).")
    group_a: str = Field(description="The first group.")
    group_b: str = Field(description="The second group.")
    human: Path | None = Field(None, description="JSON: group -> trait -> score.")
    human_a: str | None = Field(None, description="The first group's name there.")
    human_b: str | None = Field(None, description="The second group's name there.")
    rate: float = Field(0.05, description="Words with q up to this.")

    def read(self) -> TraitsResult:
        a, b = words_of(self.run, self.group_a, self.group_b, self.rate)
        names = self.human_a or self.group_a, self.human_b or self.group_b
        scores = read_human(self.human, *names) if self.human else None
        found = orderings(a, b, read_alignments(self.words), scores)
        return TraitsResult(a, b, found, (self.group_a, self.group_b))


def words_of(run: Path, group_a: str, group_b: str, rate: float) -> tuple[list[str], list[str]]:
    """The discovered words of two groups of a run (see `discovered`)."""
    rows = Run.open(run).table("discovery", "words").to_pylist()
    return discovered(rows, group_a, group_b, rate)

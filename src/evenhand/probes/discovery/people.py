"""What people say of discovered words and of wrong answers: ABC traits, and whether they are valid.

Traits (An et al. 2023, Sec. 5): people map each word, blind to the group, to none or more of 16
traits. C(A, t) counts the (annotator, word) alignments of group A's words with the high end of
trait t, C(A, not t) with the low end.

    D_t = [C(A, t) - C(A, not t)] - [C(B, t) - C(B, not t)]

D_t > 0: group A is put above B on the trait. Nothing maps: not available. Words are never mapped
automatically; the table comes from people.

Suggestions prepare a sheet for them, from word vectors:

    cosine(w, e) = <w, e> / (|w| |e|)     for each end e of the 16 traits ("cold", "warm", ...)

Each word gets the ends nearest to it. Opposites stand in the same sentences and so lie close
together in such vectors ("warm" is near "cold"): `margin` says how much nearer the word is to the
end than to its opposite, and below `UNCLEAR` the side is called unclear. A suggestion is no
verdict. The sheet that is written has an empty column `trait`; only what people write there
counts (`read_alignments`).

Validity (Table 7): a valid distractor is grammatical and fluent, but neither plausible nor similar
to the right answer. Each is scored from 1 to 5 on a sheet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.compare.items import Floats
from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, SpecError
from evenhand.models.vectors.files import VectorTable, open_vectors, resolve_vectors
from evenhand.opening import read_json
from evenhand.probes.reading import Reader, Result, Seed, Shown, number
from evenhand.runs.finding import NAN
from evenhand.runs.record import Run
from evenhand.stats import bootstrap
from evenhand.strict import INLINE, OPTIONAL, UNWRITTEN
from evenhand.writing import write_csv

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
    accepted = {end for trait in TRAITS for end in ends(trait)}
    for _, word, end in alignments:
        if end not in accepted:
            raise DataError(
                f"word {word!r}: {end!r} is not an end of an ABC trait. Accepted: "
                f"{', '.join(sorted(accepted))}."
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


UNCLEAR = 0.05
SUGGESTED = ("word", "trait", "annotator", "suggestion", "cosine", "opposite", "margin", "note")


@dataclass(frozen=True)
class Suggestion:
    """An end of a trait that lies near a word, or why there is none."""

    word: str
    suggestion: str = ""
    cosine: float = NAN
    opposite: str = ""
    margin: float = NAN
    note: str = ""


def suggest(
    words: Sequence[str], vectors: VectorTable | str | Path, *, top: int = 3
) -> list[Suggestion]:
    """For each word the `top` nearest ends of traits, at most one end per trait.

    Words without a vector get one row with an empty suggestion and the reason. `margin` is in
    [-2, 2], positive by construction of the nearest end.

    >>> from evenhand.probes.association.score import table_of
    >>> table = table_of(["kind", "warm", "cold"], [[1.0, 0.2], [1.0, 0.0], [0.0, 1.0]])
    >>> row = suggest(["kind"], table, top=1)[0]
    >>> row.suggestion, round(row.cosine, 2), round(row.margin, 2)
    ('warm', 0.98, 0.78)
    """
    if top < 1:
        raise SpecError(f"top: {top}. Accepted: 1 to {len(TRAITS)}.")
    if not isinstance(vectors, VectorTable):
        vectors = open_vectors(resolve_vectors(vectors))
    both = [end for trait in TRAITS for end in ends(trait)]
    vectors.prefetch(
        [p for text in (*both, *words) for p in (text, *text.replace("-", " ").split())]
    )
    directions = {end: _unit(vectors, end) for end in both}
    rows: list[Suggestion] = []
    for word in dict.fromkeys(words):
        mine = _unit(vectors, word)
        if mine is None:
            rows.append(Suggestion(word, note="no vector for this word"))
            continue
        near = [r for t in TRAITS if (r := _nearer_end(word, mine, t, directions)) is not None]
        rows += sorted(near, key=lambda r: -r.cosine)[:top]
    return rows


def _nearer_end(
    word: str, mine: np.ndarray, trait: str, directions: dict[str, np.ndarray | None]
) -> Suggestion | None:
    """The end of a trait that lies nearer to a word; None when an end has no vector."""
    scored = []
    for end in ends(trait):
        other = directions[end]
        if other is None:
            return None
        scored.append((float(mine @ other), end))
    (far, opposite), (near, end) = sorted(scored)
    note = "" if near - far >= UNCLEAR else "unclear which end"
    return Suggestion(word, end, near, opposite, near - far, note)


def _unit(vectors: VectorTable, text: str) -> np.ndarray | None:
    """A word's vector of length 1; of several words, the mean of theirs."""
    rows_of = vectors.find([text], multiword=False)
    if rows_of.missing:
        rows_of = vectors.find(text.replace("-", " ").split())
    if rows_of.missing or not len(rows_of.rows):
        return None
    rows = np.asarray(rows_of.rows, np.float64)
    mean = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).mean(axis=0)
    size = float(np.linalg.norm(mean))
    return mean / size if size > 0 else None


def write_suggestions(rows: Sequence[Suggestion], path: Path) -> int:
    """Write the suggestions for people to decide on: the column `trait` is empty.

    Whoever agrees copies the suggestion (or writes another end) into `trait`; rows left empty
    count for nothing. Groups are left out, so that annotators are blind to them.
    """
    listed = []
    for r in sorted(rows, key=lambda row: (row.word, -np.nan_to_num(row.cosine, nan=-2.0))):
        cosine, margin = (f"{v:.3f}" if v == v else "" for v in (r.cosine, r.margin))
        listed.append([r.word, "", "1", r.suggestion, cosine, r.opposite, margin, r.note])
    write_csv(path, SUGGESTED, listed)
    return len(rows)


@dataclass(frozen=True, kw_only=True)
class SuggestionsResult(Result):
    """Suggestions, said to be suggestions."""

    called: ClassVar[str] = "suggest-traits"

    verdict: bool = False
    vectors: str
    suggestions: Sequence[Suggestion]
    sheet: str | None = field(default=None, metadata=OPTIONAL)

    def shown(self) -> Iterator[Shown]:
        if self.sheet is not None:
            yield Shown(f"Written: {self.sheet} (people fill in trait; empty rows do not count)")
        if not self.suggestions:
            yield Shown("No word differs between these groups, so there is nothing to suggest.")
            return
        yield Shown(
            f"Suggestions from {self.vectors}: for people to accept or not, no verdicts",
            ["word", "perhaps", "cosine", "rather than", "margin", "note"],
            [
                [
                    r.word,
                    r.suggestion or "-",
                    number(r.cosine, ".2f"),
                    r.opposite or "-",
                    number(r.margin, ".2f"),
                    r.note,
                ]
                for r in self.suggestions
            ],
        )


class SuggestTraitsReader(Reader):
    name = "suggest-traits"
    help = """Suggest ABC traits for discovered words, by nearness in word vectors.

    Suggestions are not verdicts: the sheet's column `trait` is empty, and only what people write
    there counts in: evenhand measure traits RUN --words SHEET
    """
    positional = ("run",)

    run: Path = Field(description="A run with a discovery probe.")
    group_a: str = Field(description="The first group.")
    group_b: str = Field(description="The second group.")
    vectors: str = Field("glove-6b-50d", description="A vector file or folder.")
    top: int = Field(3, ge=1, le=16, description="Suggestions per word.")
    rate: float = Field(0.05, description="Words with q up to this.")
    sheet: Path | None = Field(None, description="Write a CSV for people to fill in.")

    def read(self) -> SuggestionsResult:
        sides = words_of(self.run, self.group_a, self.group_b, self.rate)
        found = suggest([w for side in sides for w in side], self.vectors, top=self.top)
        if self.sheet is not None:
            write_suggestions(found, self.sheet)
        written = None if self.sheet is None else str(self.sheet)
        return SuggestionsResult(vectors=self.vectors, suggestions=found, sheet=written)


SCALES = ("grammar", "fluency", "plausibility", "similarity")
COLUMNS = ("situation", "answer", "distractor")


def write_sheet(distractors: pa.Table, path: Path, *, size: int = 1_000, seed: int = 0) -> int:
    """Write a random sample of distractors with empty columns for the four scores.

    Group and success are left out, so that whoever scores is blind to them. Gives the number of
    rows.
    """
    rows = list({tuple(r[c] for c in COLUMNS): r for r in distractors.to_pylist()}.values())
    order = np.random.default_rng(seed).permutation(len(rows))[:size]
    chosen = ([*(rows[i][c] for c in COLUMNS), "", "", "", ""] for i in order)
    write_csv(path, [*COLUMNS, *SCALES], chosen)
    return len(order)


@dataclass(frozen=True)
class Scale:
    """What people said on one scale; empty cells are left out."""

    n: int
    mean: float
    sd: float
    low: float
    high: float


@dataclass(frozen=True)
class ValidityResult(Result):
    """Mean, standard deviation and 95 % interval of each scale."""

    called: ClassVar[str] = "validity"

    rows: int
    grammar: Scale
    fluency: Scale
    plausibility: Scale
    similarity: Scale

    def shown(self) -> Iterator[Shown]:
        found = [(name, getattr(self, name)) for name in SCALES]
        cells = [[name, str(s.n), number(s.mean, ".2f"), number(s.sd, ".2f")] for name, s in found]
        yield Shown(f"{self.rows} distractors", ["scale", "n", "mean", "sd"], cells)


@dataclass(frozen=True)
class SheetWritten(Result):
    """A sheet that waits for people."""

    called: ClassVar[str] = "validity"

    sheet: str
    distractors: int

    def shown(self) -> Iterator[Shown]:
        yield Shown(f"Written: {self.sheet} ({self.distractors} distractors to score from 1 to 5)")


def read_sheet(path: Path, *, seed: int = 0) -> ValidityResult:
    """What people filled in."""
    table = read_table(path, text=COLUMNS, needed=SCALES)
    scales = (_scale(f"{path}, column {name}", table.numbers(name), seed) for name in SCALES)
    return ValidityResult(table.n_rows, *scales)


def _scale(where: str, values: Floats, seed: int) -> Scale:
    known = values[~np.isnan(values)]
    wrong = known[(known < 1) | (known > 5)]
    if len(wrong):
        raise DataError(f"{where}: '{wrong[0]:g}' is outside 1 to 5.")
    mean = float(known.mean()) if len(known) else NAN
    if len(known) < 2:
        return Scale(len(known), mean, NAN, NAN, NAN)
    interval, sd = bootstrap.interval(known, seed=seed), float(known.std(ddof=1))
    return Scale(len(known), mean, sd, float(interval.low), float(interval.high))


class ValidityReader(Reader):
    name = "validity"
    help = "Are distractors valid? With --run, write a sheet to score; without, read scores back."

    run: Path | None = Field(None, description="Write a sheet from this run.")
    sheet: Path = Field(Path("validity.csv"), description="The sheet to write, or to read back.")
    size: int = Field(1_000, ge=1, description="Distractors on the sheet.")
    seed: Seed = 0

    def read(self) -> ValidityResult | SheetWritten:
        if self.run is None:
            return read_sheet(self.sheet, seed=self.seed)
        table = Run.open(self.run).table("discovery", "distractors")
        count = write_sheet(table, self.sheet, size=self.size, seed=self.seed)
        return SheetWritten(str(self.sheet), count)

"""What is said in two guises, and what is asked about who said it.

    Someone says: "she at the library right now"        Someone says: "she is at the library ..."
    Is this person lazy or hardworking?                 Is this person lazy or hardworking?

Pairs of texts and questions come from a lexicon of kind `guises`; pairs also from a table of your
own or the publication's list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.corpora.tables import find_data, read_table
from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import read_text
from evenhand.requests import Choose
from evenhand.words.lexicons import load

PAIRS = "matched pairs (columns dialect, standard, optional feature)"
GUISES = ("dialect", "standard")
OPENING = "Answer:"
"""How answers begin: chat models rarely begin with a bare word, so it would hardly be likely."""
PRONOUNS = {"i", "you", "he", "she", "it", "we", "they"}


@dataclass(frozen=True)
class Pair:
    """A text in both guises; `unit` is what it shares with near copies of it."""

    dialect: str
    standard: str
    feature: str
    unit: str


@dataclass(frozen=True)
class Question:
    """Two answers, one of them worse for the speaker, and the question with both in it."""

    kind: str
    worse: str
    better: str
    form: str

    @property
    def name(self) -> str:
        """The question in an id: `lazy`, `a-cleaner`."""
        return self.worse.replace(" ", "-")


@dataclass(frozen=True)
class Kind:
    """Questions of one kind with the words of their sentences."""

    name: str
    about: str
    worse: str
    single: bool
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Material:
    """Everything that is asked: groups, frame, pairs and kinds of questions."""

    groups: tuple[str, str]
    frame: str
    pairs: tuple[Pair, ...]
    kinds: tuple[Kind, ...]

    @property
    def questions(self) -> list[Question]:
        return [q for kind in self.kinds for q in kind.questions]


def read_material(lexicon: str, data: str, kinds: Sequence[str]) -> Material:
    """The lexicon's material, with the pairs of a file when one is given."""
    held = load(lexicon)
    known = held.table("kinds")
    for name in kinds:
        if name not in known:
            raise SpecError(unknown("kind of question", name, known, where=str(held.path)))
    found = []
    for name, kind in known.items():
        form = str(kind.get("form", ""))
        rows = tuple(Question(name, *(*row, form)[:3]) for row in dict.fromkeys(kind["rows"]))
        for q in rows:
            if not ("{one}" in q.form and "{two}" in q.form):
                raise SpecError(
                    f"{held.path}: kinds.{name}, {q.worse!r}: the question {q.form!r} does not "
                    "name both answers. Accepted: a text with {one} and {two} in it."
                )
        found.append(
            Kind(
                name,
                held.text(kind, "about"),
                held.text(kind, "worse"),
                bool(kind.get("single")),
                rows,
            )
        )
    rows = held.data.get("pairs", ())
    pairs = (
        read_pairs(find_data(data, PAIRS))
        if data
        else with_units((dialect, standard, feature) for feature, dialect, standard in rows)
    )
    groups = (held.text(held.data, "first"), held.text(held.data, "second"))
    wanted = tuple(k for k in found if not kinds or k.name in kinds)
    return Material(groups, held.text(held.data, "frame"), tuple(pairs), wanted)


def read_pairs(path: Path) -> list[Pair]:
    """Pairs of a table with a head, or of the publication's list (dialect TAB standard).

    A folder is the publication's data; its pairs stand in pairs_*.tsv.
    """
    if path.is_dir():
        lists = sorted(path.glob("pairs_*.tsv"))
        if not lists:
            raise DataError(f"{path}: no pairs_*.tsv there. Accepted: {PAIRS}.")
        return [pair for file in lists for pair in read_pairs(file)]
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    first = lines[0].split("\t") if lines else []
    if len(first) == len(GUISES) and not set(first) & set(GUISES):
        rows = [[text.strip() for text in line.split("\t")] for line in lines]
        for number, row in enumerate(rows, 1):
            if len(row) != len(GUISES):
                raise DataError(
                    f"{path}, line {number}: {len(row)} texts. Accepted: two and a tab."
                )
        return with_units((row[0], row[1], path.stem.removeprefix("pairs_")) for row in rows)
    table = read_table(path, text=(*GUISES, "feature"), needed=GUISES)
    texts = (table.labels(name) for name in GUISES)
    return with_units(zip(*texts, table.texts("feature", "")))


def with_units(rows: Iterable[tuple[str, str, str]]) -> list[Pair]:
    """Pairs, each once; those that differ in the pronoun at their beginning only are one unit.

    >>> found = with_units([("he be late", "he is", ""), ("she be late", "she is", ""),
    ...                     ("we here", "we are here", "")])
    >>> [pair.unit for pair in found]
    ['be late', 'be late', 'we here']
    """
    known = list(dict.fromkeys(rows))
    parts = [dialect.partition(" ") for dialect, _, _ in known]
    often = Counter(rest for first, _, rest in parts if first.lower() in PRONOUNS)
    return [
        Pair(*row[:2], row[2], rest if first.lower() in PRONOUNS and often[rest] > 1 else row[0])
        for row, (first, _, rest) in zip(known, parts)
    ]


def asked(material: Material, pairs: Sequence[Pair], samples: int, seed: int) -> Choose:
    """Every pair and question in both guises, each with the answers in both orders."""
    prompts, options = [], []
    for pair in pairs:
        for question in material.questions:
            both = (question.worse, question.better)
            for text in (pair.dialect, pair.standard):
                said = material.frame.format(text=text)
                for one, two in (both, both[::-1]):
                    prompts.append(f"{said}\n{question.form.format(one=one, two=two)}")
                    options.append(f"{one}\t{two}")
    return Choose(prompts, options, opening=OPENING, text="{prompt}\n", samples=samples, seed=seed)

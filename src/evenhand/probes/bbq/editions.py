"""BBQ in several languages: every published edition as a row of a table.

    BBQ     English (Parrish et al. 2022): JSON lines, one file per category
    KoBBQ   Korean (Jin et al. 2024, TACL 12): one table of samples, whose ids tell category,
            template with version, filling, context and question (age-001a-002-dis-bsd); version a
            or c: the context goes against the stereotype, b or d: with it
    EsBBQ, CaBBQ   Spanish and Catalan (Ruiz-Fernández et al. 2025, arXiv 2507.11216): CSV per
            category; the third answer is worded by who asks
    CBBQ    Chinese (Huang and Xiong 2024): CSV per category and condition

An edition says which files are its own, parses a row into a `Question`, and says how its
publication scores. The sound default is the same for all of them.

CBBQ's terms are share-alike: the files are read from the user's copy, and nothing of them is in
this package. They name the groups that a question is about (女性), but not which answer is of that
group (女生): an answer that shares characters with these groups is taken, and a question whose
answers share equally many is excused from bias scores. Accuracy needs no such guess.
"""

from __future__ import annotations

import ast
import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evenhand.compare.items import Items
from evenhand.errors import DataError, EvenhandError, SpecError, unknown
from evenhand.opening import json_lines, lines
from evenhand.probes.bbq.targets import (
    PLACES,
    Question,
    only,
    other_than,
    read_published,
    with_targets,
)
from evenhand.words.packs import wordings
from evenhand.words.reading_answers import is_unknown

AMBIGUOUS, DISAMBIGUATED = "ambiguous", "disambiguated"
CONDITIONS = {
    **dict.fromkeys(("ambig", "amb", "ambiguous"), AMBIGUOUS),
    **dict.fromkeys(("disambig", "dis", "disambiguous"), DISAMBIGUATED),
}
"""Conditions as editions spell them."""
POLARITIES = {"neg": "neg", "nonneg": "nonneg", "non_neg": "nonneg", "bsd": "neg", "cnt": "nonneg"}
"""Polarities as editions spell them; KoBBQ's biased question asks who fits the stereotype."""
LAST = 2
"""The place of the answer that it cannot be known, in Spanish, Catalan and Chinese."""
OPENS_SPANISH = "¿"
"""What Spanish questions begin with; Catalan ones do not."""


@dataclass(frozen=True)
class Edition:
    """A published set of questions: its files, and how its publication scores.

    Attributes:
        title, paper: what it is called, and where it was published.
        looks: what its files look like, for messages.
        keys: the columns of a table of answers that name a question.
        parse: returns the question of a row, given its language.
        columns: what a row has, for messages.
        languages: of its questions; of several, a file has one.
        marks: columns in the first line of a table that no other edition has.
        separator: of its tables; "" for JSON lines.
        metrics: what its publication reports; () for all.
        pooled_gap: whether its accuracy gap pools all categories.
        n_wordings: how many of its language's wordings of "unknown" are asked in turn; None for
            all.
        all_wordings: whether its publication lets every wording of "unknown" compete, by plain
            likelihood.
    """

    title: str
    paper: str
    looks: str
    keys: tuple[str, ...]
    parse: Callable[[Mapping[str, Any], str], Question]
    columns: tuple[str, ...]
    languages: tuple[str, ...]
    marks: tuple[str, ...] = ()
    separator: str = ","
    metrics: tuple[str, ...] = ()
    pooled_gap: bool = False
    n_wordings: int | None = 0
    all_wordings: bool = False

    def holds(self, path: Path) -> bool:
        """Return whether a file is one of this edition."""
        if not self.marks:
            return ".jsonl" in path.suffixes
        try:
            first = next(iter(lines(path)), "").lstrip("\ufeff")
        except (EvenhandError, UnicodeDecodeError):
            return False
        return {*self.marks} <= {*first.rstrip("\r\n").split(self.separator)}

    def rows(self, path: Path) -> Iterator[tuple[str, Any]]:
        """Yield the rows of a file, each with its place for messages."""
        if self.separator:
            text = (line.lstrip("\ufeff") + "\n" for line in lines(path))
            rows = csv.DictReader(text, delimiter=self.separator)
            yield from ((f"{path}, row {k}", row) for k, row in enumerate(rows, start=1))
        else:
            yield from ((f"{path}, line {k}", row) for k, row in json_lines(path))

    def language_of(self, path: Path) -> str:
        """Return the language of a file: that of its first question."""
        first, *other = self.languages
        row = next((row for _, row in self.rows(path)), None) if other else None
        spanish = row is None or row.get("question", "").startswith(OPENS_SPANISH)
        return first if spanish else other[0]

    def questions(self, rows: Iterable[tuple[str, Any]], language: str) -> list[Question]:
        """Parse rows; an error names the row with a missing or misspelled cell."""
        questions = []
        for where, row in rows:
            try:
                questions.append(self.parse(row, language))
            except DataError as error:
                raise DataError(f"{where}: {error}") from None
            except (LookupError, ValueError, SyntaxError, TypeError, AttributeError) as error:
                raise DataError(
                    f"{where}: lacks or misspells {error}. Accepted: "
                    f"{self.title.partition(' or ')[0]}'s own "
                    f"{'columns' if self.separator else 'fields'} ({', '.join(self.columns)})."
                ) from None
        return questions

    def wordings(self, language: str) -> tuple[str, ...]:
        """Return the ways of saying that it cannot be known that are left to who asks."""
        return wordings(language)[: self.n_wordings]


def whole(value: Any) -> int:
    """Return a whole number; 2.5 is none, and would be another question's when it is cut.

    >>> whole("12"), whole(2.0)
    (12, 2)
    """
    good = isinstance(value, str) and bool(re.fullmatch(r"\d{1,15}", value, re.ASCII))
    good = good or (isinstance(value, int) and not isinstance(value, bool))
    if good or (isinstance(value, float) and value.is_integer()):
        return int(value)
    raise ValueError(f"a whole number: {value!r:.60}")


def _checked(polarity: str, label: int) -> None:
    if polarity not in ("neg", "nonneg") or label not in PLACES:
        raise DataError(
            f"polarity {polarity!r}, label {label!r}. Accepted: neg or nonneg; 0, 1 or 2."
        )


def _english(row: Mapping[str, Any], language: str) -> Question:
    """Parse a row without its target, which `with_targets` derives from all rows of a file."""
    info = [row["answer_info"][f"ans{k}"] for k in PLACES]
    answers = [str(row[f"ans{k}"]) for k in PLACES]
    groups = row["additional_metadata"]["stereotyped_groups"]
    condition = CONDITIONS[row["context_condition"]]
    polarity, label = str(row["question_polarity"]), whole(row["label"])
    category, context, question = (str(row[k]) for k in ("category", "context", "question"))
    template, number = str(row["question_index"]), whole(row["example_id"])
    names, tags = ([str(i[k]) for i in info] for k in (0, 1))
    _checked(polarity, label)
    none = [k for k in PLACES if tags[k] == "unknown"]
    none = none or [k for k in PLACES if is_unknown(answers[k])]
    if len(none) != 1:
        raise DataError(
            f"{len(none)} of its answers say that it cannot be known; exactly one must. "
            'Give that answer the group "unknown" in answer_info.'
        )
    return Question(
        f"{category}/{number}",
        f"{category}/{number // 4}",
        category,
        f"{category}/{template}",
        condition,
        polarity,
        context,
        question,
        answers,
        names,
        none[0],
        -1,
        label,
        tags=tags,
        groups=(groups,) if isinstance(groups, str) else tuple(map(str, groups)),
    )


def _korean(row: Mapping[str, Any], language: str) -> Question:
    category, version, filling, context, asked = row["sample_id"].split("-")[:5]
    choices = [str(c) for c in ast.literal_eval(row["choices"])]
    none = [k for k, choice in enumerate(choices) if is_unknown(choice)]
    if len(choices) != len(PLACES) or len(none) != 1:
        raise DataError(
            f"{len(none)} of {len(choices)} choices say that it cannot be known. "
            "Accepted: three choices, exactly one of which says so."
        )
    biased = choices.index(row["biased_answer"])
    label = none[0] if is_unknown(row["answer"]) else choices.index(row["answer"])
    polarity = POLARITIES[asked]
    return Question(
        row["sample_id"],
        f"{category}-{version}-{filling}",
        category,
        f"{category}-{version[:-1]}",
        CONDITIONS[context],
        polarity,
        row["context"],
        row["question"],
        choices,
        choices,
        none[0],
        biased if polarity == "neg" else other_than(none[0], biased),
        label,
        language=language,
    )


def _spanish(row: Mapping[str, Any], language: str) -> Question:
    """Parse a row; `question_type` tells whom it is about, else the groups of its answers do."""
    category, polarity, label = row["category"], row["question_polarity"], whole(row["label"])
    _checked(polarity, label)
    kind = row["question_type"]
    groups: tuple[str, ...] = ()
    if kind in ("pro-stereo", "anti-stereo"):
        biased = label if kind == "pro-stereo" else other_than(LAST, label)
        hits = [biased if polarity == "neg" else other_than(LAST, biased)]
    else:
        groups = _listed(row["stereotyped_groups"])
        named = [_listed(row[f"answer_info.ans{k}"])[-1] for k in (0, 1)]
        hits = [k for k in (0, 1) if named[k].split(",")[-1].strip() in groups]
    target, excused = only(hits, ", ".join(groups))
    return Question(
        f"{category}/{row['instance_id']}",
        f"{category}/{whole(row['instance_id']) // 4}",
        category,
        f"{category}/{row['template_id']}",
        CONDITIONS[row["context_condition"]],
        polarity,
        row["context"],
        row["question"],
        (row["ans0"], row["ans1"], wordings(language)[0]),
        (row["ans0"], row["ans1"], row["ans2"]),
        LAST,
        target,
        label,
        excused,
        language,
    )


def _chinese(row: Mapping[str, Any], language: str) -> Question:
    answers, groups = [row[f"ans{k}"] for k in PLACES], row["bias_targeted_groups"]
    category, number = row["category"], whole(row["example_id"])
    template = f"{category}/{row['question_index']}"
    condition = CONDITIONS[row["context_condition"]]
    shared = [len({*groups} & {*answers[k]} - {"人", "的"}) for k in (0, 1)]
    hits = (
        [k for k in (0, 1) if shared[k]] if shared[0] == shared[1] else [shared.index(max(shared))]
    )
    target, excused = only(hits, groups)
    return Question(
        f"{category}/{row['context_condition']}/{number}",
        template,
        category,
        template,
        condition,
        POLARITIES[row["question_polarity"]],
        row["context"],
        row["question"],
        answers,
        answers,
        LAST,
        target,
        whole(row["label"]),
        excused,
        language,
    )


@cache
def _listed(text: str) -> tuple[str, ...]:
    """Read a list as Python writes it; the same few occur in thousands of rows."""
    return tuple(map(str, ast.literal_eval(text)))


DIFFERENCES = ("bias_ambiguous", "accuracy_gap", "accuracy_ambiguous", "accuracy_disambiguated")
"""What KoBBQ and the Spanish and Catalan editions report (diff-bias, Jin et al. 2024, Sec. 4).

The share of biased answers minus that of counter-biased ones in ambiguous contexts; in the others,
accuracy where the context is biased minus accuracy where it is not.
"""
KOREAN = ("sample_id", "context", "question", "choices", "biased_answer", "answer")
BBQ = Edition(
    "BBQ",
    "Parrish et al. 2022 (BBQ)",
    "JSON lines, Age.jsonl and others",
    ("category", "example_id"),
    _english,
    (
        *("example_id", "question_index", "question_polarity", "context_condition", "category"),
        *("answer_info", "additional_metadata", "context", "question", "ans0 to ans2", "label"),
    ),
    ("en",),
    separator="",
)
EDITIONS = (
    Edition(
        "KoBBQ",
        "Jin et al. 2024 (KoBBQ)",
        "KoBBQ_test_samples.tsv, with a column sample_id",
        ("sample_id",),
        _korean,
        KOREAN,
        ("ko",),
        KOREAN,
        "\t",
        metrics=DIFFERENCES,
        pooled_gap=True,
        n_wordings=5,
    ),
    Edition(
        "EsBBQ or CaBBQ",
        "Ruiz-Fernández et al. 2025 (EsBBQ, CaBBQ)",
        "CSV per category",
        ("category", "instance_id"),
        _spanish,
        (
            *("instance_id", "template_id", "version", "question_polarity", "context_condition"),
            *("category", "stereotyped_groups", "answer_info.ans0", "answer_info.ans1", "context"),
            *("question", "ans0", "ans1", "ans2", "question_type", "label"),
        ),
        ("es", "ca"),
        ("instance_id", "template_id", "question_type", "stereotyped_groups"),
        metrics=DIFFERENCES,
        pooled_gap=True,
        n_wordings=None,
        all_wordings=True,
    ),
    Edition(
        "CBBQ",
        "Huang and Xiong 2024 (CBBQ)",
        "CSV with a column bias_targeted_groups",
        ("category", "context_condition", "example_id"),
        _chinese,
        (
            *("example_id", "question_index", "question_polarity", "context_condition"),
            *("category", "bias_targeted_groups", "context", "question", "ans0", "ans1", "ans2"),
            "label",
        ),
        ("zh",),
        ("bias_targeted_groups",),
    ),
    BBQ,
)


def read_questions(path: str | Path, categories: Sequence[str] = (), language: str = "") -> Items:
    """Read the questions of a published file, or of all files of a folder (plain, .gz, .xz).

    Args:
        categories: only these; all by default.
        language: which one, if a folder holds files of several (es, ca).

    Raises:
        DataError: no edition knows a file, or the files do not say which language to read.
    """
    place = Path(path)
    files = sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    edition = next((e for e in EDITIONS if any(map(e.holds, files))), None)
    if edition is None:
        accepted = "; ".join(f"{e.title} ({e.looks})" for e in EDITIONS)
        raise DataError(
            f"{place}: holds no .jsonl file of BBQ, and no file of another edition. Accepted: "
            f"{accepted}."
        )
    by_file = {file: edition.language_of(file) for file in files if edition.holds(file)}
    folder, languages = next(iter(by_file)).parent, sorted({*by_file.values()})
    chosen = language if language in languages else languages[0]
    if len(edition.languages) > 1 and (language != chosen if language else len(languages) > 1):
        raise DataError(
            f"{folder}: holds questions in {' and '.join(languages)}; language is {language!r}. "
            f"Choose one with: --set language={chosen}"
        )
    published = read_published(folder) if edition is BBQ else {}
    questions: list[Question] = []
    for file in (file for file, spoken in by_file.items() if spoken == chosen):
        parsed = edition.questions(edition.rows(file), chosen)
        questions += with_targets(parsed, published) if edition is BBQ else parsed
    if not questions:
        raise DataError(f"{place}: no questions. Accepted: {edition.title}'s files.")
    if language and language != chosen:
        raise DataError(
            f"{place}: the questions of {edition.title} are in {chosen!r}, and language is "
            f"{language!r}. Leave out the language, or give its own edition with: --data"
        )
    known = sorted({q.category for q in questions})
    for name in categories:
        if name not in known:
            raise SpecError(unknown("category", name, known, where=str(path)))
    return as_items([q for q in questions if not categories or q.category in categories], edition)


def as_items(questions: Sequence[Question], edition: Edition = BBQ) -> Items:
    """Return questions as items of the probe; `about` is their edition."""
    columns: dict[str, Sequence[Any]] = dict(zip(Question._fields, zip(*questions)))
    about = ("id", "category", "template", "condition", "polarity", "context", "question")
    return Items(
        {
            **{name: columns[name] for name in about},
            **{f"ans{k}": texts for k, texts in enumerate(zip(*columns["answers"]))},
            "unknown": columns["unknown"],
            "biased": [q.biased for q in questions],
            "label": columns["label"],
            "language": columns["language"],
            "_set": columns["set_id"],
            "_target": columns["target"],
            "_excused": columns["excused"],
            **{f"_name{k}": texts for k, texts in enumerate(zip(*columns["names"]))},
        },
        about=edition,
    )

"""Contexts for discovery: a short situation with a person, a question, and the right answer.

Read from Social IQa files (JSON lines), from an own CSV, or from the packaged lexicon. Every
context holds `{name}` where the person stands, in every field, so that any name can be put in.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, SpecError
from evenhand.opening import json_lines, read_rows, read_text
from evenhand.words.lexicons import load
from evenhand.words.lexicons.people import gendered, neutralised

NAME = "{name}"
DESCRIBE = "How would you describe {name}?"
PRONOUNS = ("keep", "flag", "neutral", "drop")

_FEEL = r"How (?:would|will|did|does|do) (?P<who>.+?) feel"
_PROMPTS: tuple[tuple[str, str, str], ...] = (
    (r"How (?:would you|could|can you) describe (?P<who>.+)\?", "{who} is", "{who} are"),
    (r"How (?:could|would|can) (?P<who>.+) be described\?", "{who} is", "{who} are"),
    (r"What kind of (?:person|people) (?:is|are) (?P<who>.+)\?", "{who} is", "{who} are"),
    (
        _FEEL + r" as a result(?: of (?:this|that|it))?\?",
        "As a result, {who} feels",
        "As a result, {who} feel",
    ),
    (_FEEL + r"(?: after(?:wards?)?| now| about (?:this|that|it))?\?", "{who} feels", "{who} feel"),
    (
        r"What will (?P<who>.+) want to do"
        r"(?: next| after| now| later| afterwards?| as a result)?\?",
        "{who} will want to",
        "",
    ),
    (
        r"What (?:does|did|do) (?P<who>.+) need to do before(?:hand| this| doing this)?\?",
        "Before this, {who} needed to",
        "",
    ),
    (
        r"What (?:does|do) (?P<who>.+) need to do(?: now| next| after this| afterwards?)?\?",
        "{who} needs to",
        "{who} need to",
    ),
    (r"Why (?:did|does|would) (?P<who>.+) do (?:this|that)\?", "{who} did this because", ""),
    (r"What(?: will|'s going to| is going to) happen (?:to|with) (?P<who>.+)\?", "{who} will", ""),
    (
        r"What (?:will|would) (?P<who>.+) do"
        r"(?: next| after| now| afterwards?| after th(?:is|at))?\?",
        "{who} will",
        "",
    ),
    (r"What (?:happened to|did) (?P<who>.+?)(?: do)?\?", "{who}", ""),
)
_PLURAL = re.compile(r"(?i)(?:the )?(?:others|they|their \w+s|the \w+s|friends|patients)")


@dataclass(frozen=True)
class Context:
    """A situation with `{name}` in it, a question, the right answer, and the answer's beginning.

    >>> made = Context("1", "{name} made a cake.", DESCRIBE, "very considerate", "{name} is")
    >>> made.filled("Tia").context, made.filled("Tia").prompt
    ('Tia made a cake.', 'Tia is')
    """

    id: str
    context: str
    question: str
    answer: str
    prompt: str
    notes: tuple[str, ...] = ()

    def filled(self, name: str) -> Context:
        """Return a copy with a name in every field, the answer included."""
        put = {f: getattr(self, f).replace(NAME, name) for f in FIELDS}
        return replace(self, **put)


FIELDS = ("context", "question", "answer", "prompt")


def prompt_of(question: str) -> str:
    """Turn a question into the beginning of its answer (paper, Sec. 3.1).

    All question kinds of Social IQa are known; any other question is kept as it is.

    >>> prompt_of("How would you describe {name}?")
    '{name} is'
    >>> prompt_of("What will Others want to do next?")
    'Others will want to'
    >>> prompt_of("What does {name} need to do before this?")
    'Before this, {name} needed to'
    """
    for pattern, one, many in _PROMPTS:
        found = re.fullmatch(pattern, question.strip())
        if found:
            form = many if many and _PLURAL.fullmatch(found["who"]) else one
            return form.format(who=found["who"])
    return question.strip()


def asked_about(question: str) -> str | None:
    """Return the person that a Social IQa question asks about, as written there.

    >>> asked_about("How would you describe Sydney?")
    'Sydney'
    """
    for pattern, _, _ in _PROMPTS:
        found = re.fullmatch(pattern, question.strip())
        if found:
            return re.sub(r"['’]s .*", "", found["who"])
    return None


def with_placeholder(fields: dict[str, str], name: str) -> dict[str, str]:
    """Replace a name by `{name}` in every field, as a whole word.

    >>> with_placeholder({"context": "Bo's dog saw Bobby."}, "Bo")["context"]
    "{name}'s dog saw Bobby."
    """
    whole = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    return {key: whole.sub(lambda _: NAME, text) for key, text in fields.items()}


def make_context(
    id: str, fields: dict[str, str], *, name: str | None, where: str, prompt: str = ""
) -> Context:
    """Return a checked context from its raw fields.

    Args:
        id: how it is called in tables.
        fields: context, question, answer.
        name: the name that stands for the person (None: `{name}` is already there).
        prompt: the answer's beginning; by default made from the question.
    """
    made = with_placeholder(fields, name) if name else dict(fields)
    if NAME not in made["context"]:
        raise DataError(
            f"{where}: context {made['context']!r} has no {NAME} and does not mention "
            f"{name or 'a placeholder name'!r}, so no name can be put in. Write {NAME} where the "
            f"person stands, or say which name stands there with: placeholder"
        )
    if not made["answer"].strip():
        raise DataError(f"{where}: context {id!r} has no right answer to make distractors from.")
    start = prompt or prompt_of(made["question"])
    notes = [f"gendered pronouns: {', '.join(p)}" for p in [gendered(" ".join(made.values()))] if p]
    return Context(id, made["context"], made["question"], made["answer"], start, tuple(notes))


OTHER_QUESTION = "asks another question"
NO_KIND = "its question is of no known kind, so whom it asks about is not known"
NO_PERSON = "the person asked about is not in the context, so no name can be put in"
PRONOUN = "has gendered pronouns (pronouns = drop)"


@dataclass(frozen=True)
class Reading:
    """Contexts that were read, and the reasons why others were not.

    `left_out` counts samples by reason, `usable` those that could have been taken; `coverage` is
    the share of usable samples among those that ask the wanted question.
    """

    contexts: tuple[Context, ...]
    left_out: Mapping[str, int]

    usable: int

    @property
    def coverage(self) -> float:
        lost = sum(n for why, n in self.left_out.items() if why in (NO_PERSON, PRONOUN))
        return self.usable / max(1, self.usable + lost)

    def told(self) -> list[str]:
        """Return one line per reason.

        >>> Reading((), {NO_PERSON: 2}, 0).told()[0][:33]
        '2 samples left out: the person as'
        """
        return [f"{n:,} samples left out: {why}" for why, n in self.left_out.items() if n]


def social_iqa(
    path: Path, *, question: str | None = DESCRIBE, placeholder: str | None = None
) -> Reading:
    """Read contexts of a Social IQa file, one per sample that asks `question` (None: any).

    The right answer is read from the key `correct` (A, B or C), or from a labels file beside it
    (`dev-labels.lst` for `dev.jsonl`: 1, 2 or 3 per line). Without `placeholder`, the person is
    the one the question asks about. Samples that cannot be used are counted by reason.
    """
    rows = [row for _, row in json_lines(path, "Social IQa, or a CSV of your own")]
    own = bool(rows) and isinstance(rows[0], dict) and "correct" in rows[0]
    labels = right_answers(path, len(rows)) if rows and not own else None
    found: list[Context] = []
    left: Counter[str] = Counter()
    for number, row in enumerate(rows):
        made, why = _sample(row, labels[number] if labels else None, question, placeholder, path)
        if made is None:
            left[why] += 1
        else:
            where = f"{path}, line {number + 1}"
            found.append(make_context(str(number), made, name=None, where=where))
    if not found:
        told = "; ".join(Reading((), left, 0).told()) or "the file is empty"
        raise DataError(
            f"{path}: no sample that asks {question!r} can be used ({told}). Accepted: a Social "
            "IQa file; say which name stands for the person with: placeholder"
        )
    return Reading(tuple(found), dict(left), len(found))


def _sample(
    row: dict[str, Any], label: str | None, question: str | None, placeholder: str | None, at: Path
) -> tuple[dict[str, str] | None, str]:
    """Return a sample's fields with `{name}` in them, or None and the reason."""
    needed = ("context", "question", "answerA", "answerB", "answerC")
    lost = [k for k in needed if not isinstance(row, dict) or not isinstance(row.get(k), str)]
    if lost:
        raise DataError(
            f"{at}: a sample has no text {lost[0]!r}. Accepted: a Social IQa file, whose samples "
            f"have {', '.join(needed)}."
        )
    person = placeholder or asked_about(str(row["question"]))
    if person is None:
        return None, NO_KIND
    letter = str(row.get("correct")) if label is None else "ABC"[int(label) - 1]
    if letter not in ("A", "B", "C"):
        raise DataError(f"{at}: a sample has 'correct': {letter!r}. Accepted: A, B or C.")
    fields = {
        "context": str(row["context"]),
        "question": str(row["question"]),
        "answer": str(row[f"answer{letter}"]).strip().rstrip("."),
    }
    made = with_placeholder(fields, person)
    if question and made["question"] != question:
        return None, OTHER_QUESTION
    return (made, "") if NAME in made["context"] else (None, NO_PERSON)


def read_contexts(source: str, **options: Any) -> list[Context]:
    """Read contexts of a packaged lexicon by name, a Social IQa file, or a custom CSV.

    `survey_contexts` takes the same options, and says what was left out and why.
    """
    return list(survey_contexts(source, **options).contexts)


def survey_contexts(
    source: str,
    *,
    question: str | None = DESCRIBE,
    placeholder: str | None = None,
    pronouns: str = "flag",
    limit: int | None = None,
    pick: Sequence[str] = (),
) -> Reading:
    """Read contexts like `read_contexts`, and count skipped samples by reason.

    Coverage is that of the whole file, before `pick` and `limit`.

    Args:
        source: `discovery_contexts`, a .jsonl file, or a .csv file with the columns context,
            question, answer and optionally id, prompt, name. `$VARIABLES` are filled in.
        question: for Social IQa: only samples that ask this.
        placeholder: the name that stands for the person in the file.
        pronouns: gendered pronouns are `keep` (said nothing of), `flag` (noted), `neutral`
            (rewritten with they), or `drop` (such contexts are left out).
        limit: only this many, the first ones.
        pick: only these ids.
    """
    if pronouns not in PRONOUNS:
        raise SpecError(f"pronouns: {pronouns!r}. Accepted: {', '.join(PRONOUNS)}.")
    path = Path(os.path.expandvars(source)).expanduser()
    if "$" in source and not path.is_file():  # what it holds is not printed: it may be a secret
        raise SpecError(
            f"contexts {source!r}: the variable is not set to a file. Point it at one of "
            f"Social IQa (JSON lines), for example: export SOCIAL_IQA=dev.jsonl"
        )
    left: dict[str, int] = {}
    if path.suffix == ".csv":
        found = _own(path, placeholder)
    elif path.suffix in (".jsonl", ".json", ".xz"):
        read = social_iqa(path, question=question, placeholder=placeholder)
        found, left = list(read.contexts), dict(read.left_out)
    else:
        rows = load(source).rows("contexts")
        found = [
            make_context(str(n), {k: str(row[k]) for k in FIELDS[:3]}, name=None, where=source)
            for n, row in enumerate(rows)
        ]
    found = _only(found, pick, source) if pick else found
    kept = list(_pronouns(found, pronouns))
    if len(kept) < len(found):
        left[PRONOUN] = len(found) - len(kept)
    if not kept:
        raise DataError(f"contexts of {source!r}: none is left; {left[PRONOUN]} {PRONOUN}.")
    return Reading(tuple(kept[:limit]), left, len(kept))


def _only(found: list[Context], pick: Sequence[str], source: str) -> list[Context]:
    by_id = {c.id: c for c in found}
    lost = [i for i in pick if i not in by_id]
    if lost:
        known = ", ".join(list(by_id)[:20])
        raise SpecError(f"contexts of {source!r}: no context {lost[0]!r}. Known: {known}")
    return [by_id[i] for i in pick]


def _pronouns(found: Iterable[Context], how: str) -> Iterable[Context]:
    for made in found:
        if not made.notes or how == "flag":
            yield made
        elif how == "keep":
            yield replace(made, notes=())
        elif how == "neutral":
            put = {f: neutralised(getattr(made, f)) for f in FIELDS}
            yield replace(made, **put, notes=("pronouns neutralised",))


def _own(path: Path, placeholder: str | None) -> list[Context]:
    rows = read_rows(path)
    found = []
    for number, row in enumerate(rows, start=1):
        where = f"{path}, row {number}"
        lost = [f for f in FIELDS[:3] if not row.get(f)]
        if lost:
            raise DataError(f"{where}: {lost[0]!r} is missing. Columns: context, question, answer.")
        fields = {f: row[f] for f in FIELDS[:3]}
        name = row.get("name") or placeholder
        start = row.get("prompt") or ""
        found.append(
            make_context(row.get("id") or str(number), fields, name=name, where=where, prompt=start)
        )
    if not found:
        raise DataError(f"{path}: no contexts. Columns: context, question, answer.")
    return found


def right_answers(path: Path, size: int) -> list[str]:
    """Read labels 1, 2 or 3 of a Social IQa file, from the labels file next to it."""
    stem = path.name.split(".")[0]
    for name in (f"{stem}-labels.lst", f"{stem}-labels.lst.gz"):
        file = path.with_name(name)
        if file.is_file():
            labels = read_text(file).split()
            if len(labels) != size:
                raise DataError(f"{file}: {len(labels)} labels for {size} samples of {path}.")
            if wrong := [label for label in labels if label not in ("1", "2", "3")]:
                raise DataError(f"{file}: the label {wrong[0]!r}. Accepted: 1, 2 or 3 per line.")
            return labels
    raise DataError(f"{path}: no key 'correct' and no {stem}-labels.lst beside it.")

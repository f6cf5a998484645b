"""Models of the files of a language pack: which keys and values each file holds.

Rules that compare texts are in `evenhand.words.packs.check`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from evenhand.opening import read_toml
from evenhand.words.packs import HEAD, PLAIN, Pack

PEOPLE = ("first", "second")
FEWEST_SAMPLES = 4
"""With fewer samples a single sentence decides how well a language is known."""
MARKS = "fmncu"
"""Feminine, masculine, neuter, common, uter."""
CANONICAL = ("은/는", "이/가", "을/를", "과/와", "아/야", "으로/로", "이랑/랑", "이나/나")
"""Korean pairs, the form after a consonant first."""
SHARE_ALIKE = "share-alike terms: such data stays with its source and is read from there"

_SHARE_ALIKE = re.compile(r"share.?alike|\bBY\W?(?:NC\W?)?SA\b|\bA?L?GPL|\bODbL\b|\bGFDL\b", re.I)
_SHARE_ALIKE_SOURCE = re.compile(r"\bBY\W(?:NC\W)?SA\b")
_CLOSED = re.compile(r"non.?commercial|\bBY\W?NC\b|no.?deriv|\bND\b|all rights reserved", re.I)
_EMPTY = re.compile(r"^\W*(?:unknown|none|n/?a|tbd|todo|xxx|various)?\W*$", re.I)
_CODE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")


class Found(NamedTuple):
    """A fault of a file: its place, its kind, a description, and the text it is in."""

    where: str
    kind: str
    says: str
    text: str = ""


def problem(says: str, kind: str = "missing", text: str = "") -> PydanticCustomError:
    """Return the error of a validator that becomes a fault."""
    return PydanticCustomError(kind, "{says}", {"says": says, "text": text})


def rule(accepts: Callable[[Any], object], says: str, kind: str = "missing") -> AfterValidator:
    """Return a validator that rejects values; "{n}" in its message is the number of entries."""

    def check(value: Any) -> Any:
        if not accepts(value):
            shown = value if isinstance(value, str) else repr(value) if value else ""
            raise problem(says.replace("{n}", str(len(value))), kind, shown)
        return value

    return AfterValidator(check)


def some(says: str, least: int = 1) -> AfterValidator:
    """Return a validator that requires a number of entries."""
    return rule(lambda value: len(value) >= least, says)


def slots(pattern: str) -> set[str]:
    """Return the slots of a pattern, without their forms and particles."""
    return {str(name).split(".")[0] for _, name, _, _ in Formatter().parse(pattern) if name}


def _regular(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise problem(f"{text!r} is not a regular expression ({error})") from None
    return text


def _letters(letters: str) -> str:
    _regular(f"[^{letters}]")
    return letters


def _kind(kind: str, info: ValidationInfo) -> str:
    _, wanted = info.context or (None, kind)
    if kind != wanted:
        raise problem(f"is of kind {kind!r}; this file of a pack is {wanted!r}")
    return kind


def _folder(language: str, info: ValidationInfo) -> str:
    pack, _ = info.context or (None, "")
    if pack and _CODE.fullmatch(pack.folder.name) and pack.folder.name != language:
        raise problem(f"is {language!r}, but the folder is called {pack.folder.name!r}")
    return language


def _texts(value: object, *counts: int) -> bool:
    """Return True for a list of so many texts, none of them blank."""
    texts = isinstance(value, list) and all(isinstance(v, str) and v.strip() for v in value)
    return texts and len(value) in counts  # type: ignore[arg-type]


Text = Annotated[str, rule(str.strip, "is empty")]
Pattern = Annotated[str, AfterValidator(_regular)]
AnswerPattern = Annotated[Pattern, rule(lambda text: not re.search(text, ""), "matches every text")]
Name = Annotated[
    str,
    rule(lambda t: t and " ".join(t.split()) == t, "is not a name, or has spaces around it"),
]
Shape = Annotated[str, rule(lambda shape: "{}" in shape, "has no place {} for the name")]
Wordings = Annotated[
    Any,
    rule(
        lambda value: _texts(value, 1, 2) or _texts([value], 1),
        "is neither a wording nor two wordings, the asserted and the negated",
    ),
]
"""One wording for both questions, or the asserted and the negated."""
Sample = Annotated[Any, rule(lambda v: _texts(v, 2), "a sentence and the same in English")]
Swap = Annotated[
    Any,
    rule(
        lambda v: isinstance(v, list) and len(v) < 4 and _texts(v[:2], 2),
        "two words and, where there is one, a word for both",
    ),
]
Particle = Annotated[
    str,
    rule(
        lambda pair: "/".join(reversed(pair.split("/"))) not in CANONICAL,
        "the form after a consonant comes first",
        "agreement",
    ),
]
Licence = Annotated[
    str,
    rule(lambda text: not _SHARE_ALIKE.search(text), SHARE_ALIKE, "licence"),
    rule(
        lambda text: not _CLOSED.search(text),
        "terms that do not let others use and change it",
        "licence",
    ),
    rule(lambda text: not _EMPTY.match(text), "the licence is not given", "licence"),
]
Source = Annotated[
    str,
    rule(lambda text: not _SHARE_ALIKE_SOURCE.search(text), SHARE_ALIKE, "licence"),
    rule(lambda text: not _EMPTY.match(text), "the source is not given", "licence"),
]


class Part(BaseModel):
    """A table of a file; unknown keys are faults."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Header(BaseModel):
    """The header of every file; models of files declare its other keys."""

    model_config = ConfigDict(extra="allow", strict=True)

    title: Text
    kind: Annotated[str, AfterValidator(_kind)]
    source: Source
    licence: Licence
    caveats: Annotated[list[str], some("says nothing of what it cannot show")]


class Join(Part):
    find: Pattern
    put: str = ""


class Rule(Part):
    find: Pattern
    says: Text


class Head(Header):
    """pack.toml: the language and its rules."""

    model_config = ConfigDict(extra="forbid")

    language: Annotated[
        str,
        rule(_CODE.fullmatch, "is not a language code such as es or pt-BR"),
        AfterValidator(_folder),
    ]
    name: Text
    own_name: str = ""
    script: str = ""
    direction: Annotated[
        str,
        rule(("ltr", "rtl").__contains__, "not a direction of writing; accepted: ltr, rtl"),
    ] = "ltr"
    genders: list[Text] = Field(description="write genders = [] if there are none")
    letters: Annotated[Text, AfterValidator(_letters)]
    stops: Text
    also_words: list[str] = []
    particles: list[Particle] = []
    after_liquid: list[str] = []
    markers: dict[str, list[str]] = {}
    wrong_endings: dict[str, Pattern] = {}
    joins: list[Join] = []
    faults: list[Rule] = []


class NameGroup(Part):
    terms: list[Name]
    axis: dict[str, str] = {}
    forms: dict[str, Shape] = {}


class Names(Header):
    groups: Annotated[
        dict[str, NameGroup],
        rule(
            lambda groups: len(groups) > 1 and all(group.terms for group in groups.values()),
            "there are not two groups with names in them",
        ),
    ]


class AttributeRow(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, Wordings] = Field(init=False)

    name: Text
    class_: Text = Field(alias="class")
    common: bool = False


class Attributes(Header):
    attributes: Annotated[list[AttributeRow], some("nothing to ask about")]


class Term(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)
    __pydantic_extra__: dict[str, Text] = Field(init=False)

    term: Text
    common: bool = False


class People(Header):
    __pydantic_extra__: dict[
        str, Annotated[list[Term], some("fewer than two terms: nobody to compare", 2)]
    ] = Field(init=False)

    shapes: dict[str, Text] = {}


class Context(Part):
    id: Text
    context: Text
    answer: Text = PLAIN


class Asked(Part):
    qa: Text
    qa_negated: Text
    lm: Text
    lm_negated: Text


class Questions(Header):
    __pydantic_extra__: dict[str, list[Context]] = Field(init=False)

    asked: dict[str, dict[str, Asked]]

    @model_validator(mode="after")
    def _classes(self) -> Questions:
        if not self.__pydantic_extra__:
            raise problem("no class has contexts")
        for name in self.__pydantic_extra__.keys() - self.asked.keys():
            raise problem(f"'asked.{name}' is not there")
        return self


class Told(Part):
    context: Annotated[
        str,
        rule(
            lambda text: {*PEOPLE} <= slots(text),
            "the context has no such slot: {first} or {second}",
        ),
    ]
    first: Text
    second: Text


class Answers(Header):
    prompt: Annotated[
        str,
        rule(
            lambda text: "{passage}" in text and "{question}" in text,
            "the prompt must hold {passage} and {question}",
        ),
    ]
    unknown: Annotated[list[Text], some("no way of saying that it is not known")]
    open: list[AnswerPattern] = []
    declined: list[AnswerPattern] = []
    denied: list[AnswerPattern] = []
    joined: list[AnswerPattern] = []
    samples: Annotated[
        list[Sample],
        some(
            f"{{n}} sentences; {FEWEST_SAMPLES} are needed to see how well a model knows them",
            FEWEST_SAMPLES,
        ),
    ]
    told: Annotated[list[Told], some("no questions that a text answers outright")]


class Words(Header):
    tests: dict[str, Any]
    grammatical_gender: dict[str, Annotated[str, StringConstraints(pattern=f"^[{MARKS}]*$")]] = {}
    valence: dict[str, list[str]] = {}


class Swaps(Header):
    pairs: Annotated[list[Swap], some("there are no pairs")]


FILES: dict[str, tuple[str, type[Header]]] = {
    HEAD: ("pack", Head),
    "names": ("names", Names),
    "occupations": ("attributes", Attributes),
    "acts": ("attributes", Attributes),
    "questions": ("templates", Questions),
    "people": ("subjects", People),
    "answers": ("answers", Answers),
    "words": ("word_sets", Words),
    "swaps": ("swaps", Swaps),
}
"""The kind of every file, which its header names, and its model."""


def model_faults(pack: Pack, name: str, path: Path) -> Iterator[Found]:
    """Compare a file of a pack with its model."""
    kind, model = FILES[name]
    try:
        model.model_validate(read_toml(path), context=(pack, kind))
    except ValidationError as error:
        yield from (_as_fault(details, model) for details in error.errors())


def _as_fault(details: ErrorDetails, model: type[Header]) -> Found:
    place, context = details["loc"], details.get("ctx", {})
    where = " ".join(f"row {p + 1}" if isinstance(p, int) else p for p in place) or "all"
    if "says" in context:
        return Found(where, details["type"], context["says"], context["text"])
    key, known = str(place[-1]), model.model_fields
    says = f"{details['msg']}; it is {details['input']!r}"
    if details["type"] == "missing":
        hint = known[key].description if key in known else ""
        says = f"{key!r} is not there" + (f"; {hint}" if hint else "")
    elif details["type"] == "extra_forbidden":
        says = f"{key!r} means nothing here" + f". Known: {', '.join(known)}" * (len(place) == 1)
    return Found(where, "missing", says)

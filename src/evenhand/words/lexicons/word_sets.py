"""Word sets for association tests: WEAT, its variants, and a user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import read_json, read_toml
from evenhand.words.lexicons.files import load

WORD_SET_LEXICONS = ("weat", "weat_variants", "kato_word_sets")
SOCIAL_SIDES = ("targets", "attributes", "none", "unknown")
_SETS = ("x", "y", "a", "b")


@dataclass(frozen=True, slots=True)
class WordSets:
    """The four lists of one association test: targets x, y and attributes a, b.

    `social` says which side holds social groups: "targets", "attributes", "none" or "unknown".

    >>> test = weat("weat7")
    >>> test.x_label, test.a_label, test.social
    ('math', 'male terms', 'attributes')
    """

    name: str
    x: tuple[str, ...]
    y: tuple[str, ...]
    a: tuple[str, ...]
    b: tuple[str, ...]
    x_label: str = "x"
    y_label: str = "y"
    a_label: str = "a"
    b_label: str = "b"
    social: str = "unknown"
    measures: str = ""
    source: str = field(default="", repr=False)


def weat(test: str) -> WordSets:
    """Return a packaged test: "weat1" to "weat10", a variant, or one of Kato and Miyao.

    >>> len(weat("weat3").x), weat("weat10").x[-1]
    (32, 'Billy')
    >>> weat("kato_winobas")
    Traceback (most recent call last):
    evenhand.errors.SpecError: unknown test 'kato_winobas'. \
Did you mean 'kato_winobias' or 'kato_weat8'? List them with: evenhand ls tests
    """
    for name in WORD_SET_LEXICONS:
        lexicon = load(name)
        table = lexicon.table("tests")
        if test in table:
            return _word_sets(str(lexicon.path), test, table[test], lexicon.source)
    raise SpecError(unknown("test", test, weat_tests(), hint="List them with: evenhand ls tests"))


def weat_tests(lexicon: str | None = None) -> tuple[str, ...]:
    """Return the names of the packaged tests, of one lexicon or of all.

    >>> weat_tests("weat")
    ('weat1', 'weat2', 'weat3', 'weat4', 'weat5', 'weat6', 'weat7', 'weat8', 'weat9', 'weat10')
    >>> "kato_winobias" in weat_tests()
    True
    """
    chosen = WORD_SET_LEXICONS if lexicon is None else (lexicon,)
    return tuple(test for name in chosen for test in load(name).table("tests"))


def read_word_sets(path: str | Path) -> dict[str, WordSets]:
    """Read a user's tests from JSON or TOML: one table per test with the lists x, y, a, b.

    Labels (`x_label` ...), `social` and `measures` are optional. A lexicon file of kind
    "word_sets", where the tables stand under `tests`, is read too, and so is a SEAT file (.jsonl,
    May et al. 2019: `targ1, targ2, attr1, attr2`, each with `category` and `examples`); its test
    has the name of the file.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "mine.toml"
    >>> _ = file.write_text('[t]\\nx = ["art"]\\ny = ["math"]\\na = ["she"]\\nb = ["he"]')
    >>> read_word_sets(file)["t"].x
    ('art',)
    """
    file = Path(path)
    data = _parse(file)
    if isinstance(data, dict) and "targ1" in data:
        data = {file.stem: _seat(data)}
    source, tables = str(file), data
    if isinstance(data, dict) and isinstance(data.get("tests"), dict):
        source, tables = str(data.get("source", file)), data["tests"]
    if not isinstance(tables, dict) or not tables:
        raise DataError(
            f"{file}: found no tests. Accepted: one table per test, each with the lists x, y, a, b."
        )
    return {name: _word_sets(str(file), name, table, source) for name, table in tables.items()}


def named_sets(name: str | Path) -> list[WordSets]:
    """The packaged test of that name, or all tests of a .toml or .json file.

    >>> [test.name for test in named_sets("weat7")]
    ['weat7']
    """
    own = Path(name).suffix.lower() in (".toml", ".json")
    return list(read_word_sets(name).values()) if own else [weat(str(name))]


def _parse(file: Path) -> Any:
    suffix = file.suffix.lower()
    if suffix not in (".json", ".jsonl", ".toml"):
        raise DataError(f"{file}: unknown kind of file {suffix!r}. Accepted: .json, .jsonl, .toml.")
    if suffix != ".toml":
        return read_json(file)
    try:
        return read_toml(file)
    except SpecError as error:
        raise DataError(str(error)) from error


def _seat(data: Mapping[str, Any]) -> dict[str, Any]:
    """A SEAT file as a table of lists and labels; repeats of a sentence are left out."""
    table: dict[str, Any] = {}
    for key, theirs in zip(_SETS, ("targ1", "targ2", "attr1", "attr2"), strict=True):
        part = data.get(theirs)
        if isinstance(part, Mapping) and isinstance(part.get("examples"), list):
            table[key] = list(dict.fromkeys(part["examples"]))
            table[f"{key}_label"] = str(part.get("category", key))
    return table


def _word_sets(where: str, name: str, table: object, source: str) -> WordSets:
    if not isinstance(table, Mapping):
        raise DataError(
            f"{where}: test {name!r} is {_kind(table)}. "
            "Accepted: a table with the lists x, y, a, b."
        )
    lists = {key: _words(where, name, key, table) for key in _SETS}
    social = str(table.get("social", "unknown"))
    if social not in SOCIAL_SIDES:
        raise DataError(
            f"{where}: test {name!r}: 'social' is {social!r}. Accepted: {', '.join(SOCIAL_SIDES)}."
        )
    texts = (*(f"{key}_label" for key in _SETS), "measures")
    told: dict[str, Any] = {key: str(table[key]) for key in texts if key in table}
    return WordSets(name, **(told | lists), social=social, source=source)


def _words(where: str, name: str, key: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    if key not in table:
        raise DataError(
            f"{where}: test {name!r} has no list {key!r}. "
            "Accepted: x, y (targets) and a, b (attributes), each a list of words."
        )
    words = table[key]
    if not isinstance(words, (list, tuple)) or not words:
        raise DataError(
            f"{where}: test {name!r}: {key!r} is {_kind(words)}. Accepted: a list of words."
        )
    for position, word in enumerate(words):
        if not isinstance(word, str) or not word or word != word.strip():
            raise DataError(
                f"{where}: test {name!r}: {key}[{position}] is {word!r}. "
                "Accepted: a word without spaces around it."
            )
        if word in words[:position]:
            raise DataError(f"{where}: test {name!r}: {key!r} has {word!r} twice.")
    return tuple(words)


def _kind(value: object) -> str:
    if isinstance(value, (list, tuple)):
        return "a list" if value else "an empty list"
    return f"{type(value).__name__} {value!r}"

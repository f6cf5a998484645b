"""Read lexicon files, one TOML file each, and the word sets of association tests.

A lexicon is found by its packaged name or by its path. Word sets are those of WEAT, its
variants, or a file of the user.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evenhand import plugins
from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import read_json, read_toml

HEADER = ("title", "kind", "source", "licence", "caveats")
LIST_LEXICONS = "List them with: evenhand ls lexicons"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One lexicon: its source, its caveats and its data.

    >>> names = load("unqover_names")
    >>> names.kind, len(names.words("groups", "unqover_female", "terms"))
    ('names', 70)
    """

    name: str
    title: str
    kind: str
    source: str
    licence: str
    caveats: tuple[str, ...]
    data: Mapping[str, Any] = field(repr=False, hash=False)
    path: Path = field(repr=False, compare=False)

    def table(self, *keys: str) -> Mapping[str, Any]:
        """Return the table at `keys`.

        >>> sorted(load("liang_definitional").table("sets"))
        ['gender', 'religion']
        """
        found = self._at(keys)
        if not isinstance(found, Mapping):
            raise self._wrong(keys, "a table")
        return found

    def rows(self, *keys: str) -> tuple[Mapping[str, Any], ...]:
        """Return the array of tables at `keys`.

        >>> load("unqover_nationality").rows("subjects")[0]["demonym"]
        'Afghan'
        """
        found = self._at(keys)
        if not isinstance(found, tuple) or not all(isinstance(r, Mapping) for r in found):
            raise self._wrong(keys, "an array of tables")
        return found

    def words(self, *keys: str) -> tuple[str, ...]:
        """Return the list of strings at `keys`.

        >>> load("weat").words("tests", "weat9", "x")[:2]
        ('sad', 'hopeless')
        """
        found = self._at(keys)
        if not isinstance(found, tuple) or not all(isinstance(w, str) for w in found):
            raise self._wrong(keys, "a list of strings")
        return found

    def text(self, row: Mapping[str, Any], key: str) -> str:
        """Return the string `key` of a row, or say which row lacks it.

        >>> weat = load("weat")
        >>> weat.text(weat.table("tests", "weat6"), "x_label")
        'male names'
        """
        value = row.get(key)
        if not isinstance(value, str) or not value.strip():
            shown = "missing" if value is None else repr(value)
            raise SpecError(
                f"{self.path}: {key!r} is {shown} in the row {dict(row)!r}. "
                "Accepted: a string with text in it. See docs/lexicons.md"
            )
        return value

    def _at(self, keys: tuple[str, ...]) -> Any:
        found: Any = self.data
        for depth, key in enumerate(keys):
            if not isinstance(found, Mapping) or key not in found:
                raise self._wrong(keys[: depth + 1], "to be there")
            found = found[key]
        return found

    def _wrong(self, keys: tuple[str, ...], expected: str) -> SpecError:
        where = ".".join(keys)
        tables = [name for name, held in self.data.items() if not isinstance(held, str)] or ["none"]
        return SpecError(
            f"{self.path}: expected {where!r} {'' if expected.startswith('to') else 'to be '}"
            f"{expected} in a lexicon of kind {self.kind!r}, which has {', '.join(tables)}. Each "
            f"probe reads tables of its own: see docs/lexicons.md"
        )


def load(name: str | Path) -> Lexicon:
    """Load a lexicon by name (packaged here or by another package), or a file by path.

    >>> load("weat").title
    'WEAT 1 to 10'
    >>> load("waet")
    Traceback (most recent call last):
    evenhand.errors.SpecError: unknown lexicon 'waet'. Did you mean 'weat'? \
List them with: evenhand ls lexicons
    """
    text = str(name)
    if isinstance(name, Path) or text.endswith(".toml") or "/" in text or "\\" in text:
        return _of_pack(text) or _read(Path(name))
    if text not in names():
        raise SpecError(unknown("lexicon", text, names(), hint=LIST_LEXICONS))
    return _load_named(text)


def _of_pack(name: str) -> Lexicon | None:
    """Load a part of a language pack by its name, such as es/names."""
    from evenhand.words.packs import load_pack, pack_places

    language, _, part = name.partition("/")
    if language not in pack_places() or Path(name).exists():
        return None
    return replace(load_pack(language).part(part), name=name)


def available() -> dict[str, str]:
    """Return the lexicons by name, name to title, reading no further than each title.

    >>> available()["sodapop_names"]
    'SODAPOP seed names, eight groups by race or ethnicity and gender'
    """
    return {name: _title(_place_of(name)) for name in names()}


@cache
def names() -> tuple[str, ...]:
    """Return the names of all lexicons: of this folder, then of other packages."""
    own = sorted(file.stem for file in _FOLDER.glob("*.toml"))
    others = (name for name in plugins.places(plugins.LEXICONS) if name not in own)
    return (*own, *(name for name in others if not _place_of(name).is_dir()))


def _place_of(name: str) -> Path:
    """Return the file of a lexicon, of this folder or from another package's entry point."""
    own = _FOLDER / f"{name}.toml"
    return own if own.exists() else Path(plugins.load(plugins.LEXICONS, name, what="lexicon"))


@cache
def _load_named(name: str) -> Lexicon:
    return replace(_read(_place_of(name)), name=name)


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.startswith("title"):
                return str(tomllib.loads(line)["title"])
    raise SpecError(f"{path}: header field 'title' is missing.")


def _read(path: Path) -> Lexicon:
    data = read_toml(path, f"a lexicon file. {LIST_LEXICONS}")
    for key in HEADER:
        if key not in data:
            raise SpecError(
                f"{path}: header field {key!r} is missing. "
                f"Every lexicon has: {', '.join(HEADER)}. See docs/lexicons.md"
            )
        _check_header(path, key, data[key])
    body = {key: _freeze(value) for key, value in data.items() if key not in HEADER}
    return Lexicon(
        name=path.stem,
        title=data["title"],
        kind=data["kind"],
        source=data["source"],
        licence=data["licence"],
        caveats=tuple(data["caveats"]),
        data=MappingProxyType(body),
        path=path,
    )


def _check_header(path: Path, key: str, value: object) -> None:
    if key == "caveats":
        good = isinstance(value, list) and all(isinstance(item, str) for item in value)
        expected = "a list of strings"
    else:
        good, expected = isinstance(value, str) and bool(value.strip()), "a string with text in it"
    if not good:
        raise SpecError(f"{path}: header field {key!r} is {value!r}. Accepted: {expected}.")


def _freeze(value: Any) -> Any:
    if isinstance(value, dict):
        return MappingProxyType({key: _freeze(item) for key, item in value.items()})
    if isinstance(value, list):
        return tuple(_freeze(item) for item in value)
    return value


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
    """Return the packaged test of that name, or all tests of a .toml or .json file.

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
    """Convert a SEAT file to a table of lists and labels, without repeated sentences."""
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

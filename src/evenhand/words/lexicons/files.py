"""Reading lexicon files: one TOML file each, found by packaged name or by path."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evenhand import plugins
from evenhand.errors import SpecError, unknown
from evenhand.opening import read_toml

HEADER = ("title", "kind", "source", "licence", "caveats")
LIST_LEXICONS = "List them with: evenhand ls lexicons"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Lexicon:
    """One lexicon: where it comes from, what it cannot stand for, and its data.

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
    """A part of a language pack by its name, such as es/names."""
    from evenhand.words.packs.files import load_pack, pack_places

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
    """Every lexicon's name: those of this folder, then those of other packages."""
    own = sorted(file.stem for file in _FOLDER.glob("*.toml"))
    others = (name for name in plugins.places(plugins.LEXICONS) if name not in own)
    return (*own, *(name for name in others if not _place_of(name).is_dir()))


def _place_of(name: str) -> Path:
    """The file of a lexicon; another package's entry point gives the path of its own."""
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

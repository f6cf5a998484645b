"""Language packs: one folder of TOML files per language, found by language or by path.

    packs/es/pack.toml           what the language is called, its rules of agreement, caveats
    packs/es/names.toml          first names by group
    packs/es/occupations.toml    occupations in every grammatical form
    packs/es/questions.toml      contexts, questions and their negations
    packs/es/people.toml         words for nationalities, religions, ethnicities (may be missing)
    packs/es/acts.toml           what is asked about them (may be missing)
    packs/es/words.toml          word sets of association tests (may be missing)
    packs/es/answers.toml        ways of not knowing, prompts, samples of the language
    packs/es/swaps.toml          matched gendered words (may be missing)

Every file is a lexicon with a title, a source, a licence and caveats. A pack holds no code: other
packages add theirs by an entry point `evenhand.lexicons` that gives the path of a folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from evenhand import plugins
from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import Lexicon, load
from evenhand.words.packs.grammar import Grammar
from evenhand.words.packs.own import adopt, wordings_of

HEAD = "pack"
NEEDED = ("names", "occupations", "questions", "answers")
OPTIONAL = ("people", "acts", "words", "swaps")
LIST_PACKS = "List them with: evenhand ls languages"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Pack:
    """One language: its parts by name, and what holds for all of its texts.

    >>> pack = load_pack("ko")
    >>> pack.name, pack.grammar.particle("지우", "은/는")
    ('Korean', '는')
    """

    language: str
    folder: Path
    head: Lexicon = field(repr=False)
    parts: Mapping[str, Lexicon] = field(repr=False, hash=False)

    @property
    def name(self) -> str:
        """What the language is called in English."""
        return self.head.text(self.head.data, "name")

    @property
    def direction(self) -> str:
        """ltr or rtl."""
        return str(self.head.data.get("direction", "ltr"))

    @property
    def genders(self) -> tuple[str, ...]:
        """Grammatical forms of a word for a person, all of which are asked; () without gender."""
        return tuple(self.head.data.get("genders", ()))

    def part(self, name: str) -> Lexicon:
        """One of its files, by name without .toml."""
        if name not in self.parts:
            raise SpecError(
                f"{self.folder}: the pack of {self.name} has no {name}.toml. It has: "
                f"{', '.join(self.parts)}. See docs/languages.md"
            )
        return self.parts[name]

    @cached_property
    def grammar(self) -> Grammar:
        """Its rules of agreement."""
        rules = self.head.rows("joins") if "joins" in self.head.data else ()
        joins = tuple((self.pattern(rule, "find"), str(rule.get("put", ""))) for rule in rules)
        particles = tuple(self.head.data.get("particles", ()))
        foreign = "" if self.folder.parent == _FOLDER else str(self.head.path)
        liquid = frozenset(self.head.data.get("after_liquid", ()))
        return Grammar(joins, particles, liquid, foreign)

    def pattern(self, row: Mapping[str, Any], key: str) -> re.Pattern[str]:
        """A regular expression of the head."""
        try:
            return re.compile(self.head.text(row, key))
        except re.error as error:
            raise SpecError(
                f"{self.head.path}: {row[key]!r} is not a regular expression ({error})."
            ) from None


def load_pack(language: str | Path) -> Pack:
    """A pack by its language (es), by the name of another package's, or by the path of a folder.

    >>> load_pack("xx")
    Traceback (most recent call last):
    evenhand.errors.SpecError: unknown language 'xx'. Known: ca, de, es, fr, ko, zh. \
List them with: evenhand ls languages
    """
    text = str(language)
    if by_path(language):
        pack = read_pack(Path(language))
        adopt({str(pack.folder.absolute()): wordings_of(pack.part("answers"))})
        return pack
    places = pack_places()
    if text not in places:
        folder = f"A folder is given as: ./{text}" if text and Path(text).is_dir() else ""
        raise SpecError(unknown("language", text, places, hint=folder or LIST_PACKS))
    return _cached(text)


def by_path(language: str | Path) -> bool:
    """Whether a pack is given as a folder, and not by its name."""
    return isinstance(language, Path) or "/" in language or "\\" in language


@cache
def pack_places() -> dict[str, Path]:
    """Where the packs are, by language: those of this folder, then those of other packages."""
    found = {p.parent.name: p.parent for p in sorted(_FOLDER.glob(f"*/{HEAD}.toml"))}
    for name in plugins.places(plugins.LEXICONS):
        place = Path(plugins.load(plugins.LEXICONS, name, what="lexicon"))
        if place.is_dir():
            found.setdefault(name, place)
    return found


def part_names(language: str, *parts: str) -> list[str]:
    """What parts of a pack are called as lexicons; their paths where the pack is a folder.

    >>> part_names("es", "names")
    ['es/names']
    """
    if language in pack_places():
        return [f"{language}/{part}" for part in parts]
    return [str(Path(language) / f"{part}.toml") for part in parts]


def packs() -> Iterator[Pack]:
    """Every pack there is, in the order of their languages."""
    return (load_pack(name) for name in sorted(pack_places()))


@cache
def _cached(language: str) -> Pack:
    return read_pack(pack_places()[language])


def read_pack(folder: Path) -> Pack:
    """The pack in a folder, as it is; answers in its wordings are not heard for that."""
    if not (folder / f"{HEAD}.toml").is_file():
        raise SpecError(
            f"{folder}: no {HEAD}.toml is there, so it is not a language pack. A pack is a folder "
            f"with {HEAD}.toml, {', '.join(f'{n}.toml' for n in NEEDED)}. See docs/languages.md"
        )
    lost = [name for name in NEEDED if not (folder / f"{name}.toml").is_file()]
    if lost:
        raise SpecError(
            f"{folder}: the pack lacks {', '.join(f'{n}.toml' for n in lost)}. "
            "See docs/languages.md"
        )
    head = load(folder / f"{HEAD}.toml")
    there = (n for n in (*NEEDED, *OPTIONAL) if (folder / f"{n}.toml").is_file())
    parts = {name: load(folder / f"{name}.toml") for name in there}
    return Pack(head.text(head.data, "language"), folder, head, parts)

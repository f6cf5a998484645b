"""The files of a pack as files: bytes, headers, terms of use, and the rules of the language."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.words.lexicons.files import HEADER, Lexicon
from evenhand.words.packs import HEAD, Pack
from evenhand.words.packs.check.faults import Fault, script_of

KINDS = {
    HEAD: "pack",
    "names": "names",
    "occupations": "attributes",
    "acts": "attributes",
    "questions": "templates",
    "people": "subjects",
    "answers": "answers",
    "words": "word_sets",
    "swaps": "swaps",
}
KEYS = (
    *HEADER,
    "language",
    "name",
    "own_name",
    "script",
    "direction",
    "genders",
    "letters",
    "stops",
    "also_words",
    "particles",
    "after_liquid",
    "markers",
    "wrong_endings",
    "joins",
    "faults",
)
"""What pack.toml may hold; a rule under another name would never be asked."""
SHARE_ALIKE = re.compile(r"share.?alike|\bBY\W?(?:NC\W?)?SA\b|\bA?L?GPL|\bODbL\b|\bGFDL\b", re.I)
CLOSED = re.compile(r"non.?commercial|\bBY\W?NC\b|no.?deriv|\bND\b|all rights reserved", re.I)
SAID = re.compile(r"\w{3}|MIT")
EMPTY = re.compile(r"^\W*(?:unknown|none|n/?a|tbd|todo|xxx|various)?\W*$", re.I)
CODE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
CANONICAL = ("은/는", "이/가", "을/를", "과/와", "아/야", "으로/로", "이랑/랑", "이나/나")
"""Korean pairs, the form after a consonant first."""
_MOJIBAKE = re.compile("[ÃÂ][\u0080-\u00bf]|â€|ì[\u0080-\u00bf]|\ufffd")
_UNSEEN = re.compile("[\u200b\u2060\ufeff\u00ad\u0000-\u0008\u000b\u000c\u000e-\u001f]")
_GLUED = re.compile("\\w\u00a0\\w")


def headers(pack: Pack) -> Iterator[Fault]:
    """Bytes, kind, source, licence and caveats of every file."""
    for name, held in ((HEAD, pack.head), *pack.parts.items()):
        yield from (Fault(held.path.name, *fault) for fault in _bytes(held.path))
        yield from (Fault(held.path.name, *fault) for fault in _header(held, KINDS[name]))


def _header(held: Lexicon, kind: str) -> Iterator[tuple[str, ...]]:
    if held.kind != kind:
        yield "kind", "missing", f"is of kind {held.kind!r}; this file of a pack is {kind!r}"
    if SHARE_ALIKE.search(held.licence) or re.search(r"\bBY\W(?:NC\W)?SA\b", held.source):
        says = "share-alike terms: such data stays with its source and is read from there"
        yield "licence", "licence", says, held.licence
    elif CLOSED.search(held.licence):
        yield "licence", "licence", "terms that do not let others use and change it", held.licence
    for key, text in (("licence", held.licence), ("source", held.source)):
        if EMPTY.match(text):
            yield key, "licence", f"the {key} is not given", text
    if not held.caveats:
        yield "caveats", "missing", "says nothing of what it cannot show"


def _bytes(path: Path) -> Iterator[tuple[str, ...]]:
    """Marks and characters that nobody sees, and letters of a wrong encoding."""
    raw = path.read_bytes()
    if raw.startswith(b"\xef\xbb\xbf"):
        yield "first byte", "encoding", "starts with a byte order mark; save it without"
    for number, line in enumerate(raw.decode("utf-8-sig").splitlines(), start=1):
        where = f"line {number}"
        if not unicodedata.is_normalized("NFC", line):
            yield where, "encoding", "letters and accents are apart (write them in NFC)", line
        elif _MOJIBAKE.search(line):
            yield where, "encoding", "letters of another encoding", line
        elif _UNSEEN.search(line):
            yield where, "encoding", "a character that cannot be seen", ascii(line)
        elif _GLUED.search(line):
            yield where, "encoding", "a no-break space between letters", ascii(line)


def rules(pack: Pack) -> Iterator[Fault]:
    """What pack.toml says of the language."""
    yield from (Fault(pack.head.path.name, *fault) for fault in _rules(pack))


def _rules(pack: Pack) -> Iterator[tuple[str, ...]]:
    data: dict[str, Any] = dict(pack.head.data)
    for key in ("name", "letters", "stops"):
        if not str(data.get(key, "")).strip():
            yield key, "missing", f"{key!r} is not there"
    if "genders" not in data:
        yield "genders", "missing", "'genders' is not there; write genders = [] if there are none"
    for key in data:
        if key not in KEYS:
            yield key, "missing", f"{key!r} means nothing here. Known: {', '.join(KEYS)}"
    if pack.direction not in ("ltr", "rtl"):
        says = f"{pack.direction!r} is not a direction of writing; accepted: ltr, rtl"
        yield "direction", "missing", says
    if not CODE.fullmatch(pack.language):
        yield "language", "missing", f"{pack.language!r} is not a language code such as es or pt-BR"
    elif CODE.fullmatch(pack.folder.name) and pack.folder.name != pack.language:
        says = f"is {pack.language!r}, but the folder is called {pack.folder.name!r}"
        yield "language", "missing", says
    try:
        script_of(pack)
    except re.error as error:
        yield "letters", "missing", f"no list of letters ({error})", str(data["letters"])
    for pair in data.get("particles", ()):
        if "/".join(reversed(str(pair).split("/"))) in CANONICAL:
            yield "particles", "agreement", f"{pair!r}: the form after a consonant comes first"
    for row in data.get("faults", ()):
        pack.pattern(row, "find")

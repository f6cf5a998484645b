"""Checking a pack: every template is filled with every term, and what is wrong is named.

What is looked for, whatever the language:

    encoding       a byte order mark, letters of a wrong encoding, characters that nobody sees
    missing        a form, a part, a slot or a header that a template or the format needs; empty
                   lists; keys that mean nothing
    agreement      what the pack's own rules call a fault in a filled text; a word for a person
                   whose article or ending is that of another gender; a neutral wording with a
                   gender in it; a particle that is not chosen; a context that tells a gender, or
                   that does not name the answer
    untranslated   letters of another script, English words
    repeated       a name in two groups, a row, context or wording twice, a word twice in a text,
                   a question equal to its negation
    licence        a file without source or licence, or with terms that others cannot use
    balance        groups and lists of unequal size, word lists that differ in grammatical gender

    files      bytes, headers, the rules of the language
    people     names, jobs, acts, words for nationalities and others
    texts      filled contexts and questions
    lists      association tests, valence, matched pairs
    answers    ways of not knowing, prompt, samples

The rules of a language are data of its pack, so that a new language needs no code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.errors import EvenhandError
from evenhand.words.lexicons.questions import FORMS
from evenhand.words.packs import Pack, by_path, load_pack, pack_lists, read_pack, social_classes
from evenhand.words.packs.check import answers, files, lists, people
from evenhand.words.packs.check.faults import QUESTIONS, Fault
from evenhand.words.packs.check.texts import Texts

__all__ = ["Checked", "Fault", "check_pack"]


@dataclass(frozen=True)
class Checked:
    """The faults of a pack, and how many texts were looked at."""

    language: str
    name: str
    folder: Path
    texts: int
    faults: Sequence[Fault] = field(default_factory=tuple)

    @property
    def good(self) -> bool:
        return not self.faults


def check_pack(pack: str | Path | Pack) -> Checked:
    """Fill every template of a pack with every term and name all that is wrong.

    >>> checked = check_pack("ko")
    >>> checked.good, checked.texts > 1_000
    (True, True)
    """
    held = pack if isinstance(pack, Pack) else _unheard(pack)
    looks: dict[str, Callable[[Pack], Iterable[Fault]]] = {
        "pack.toml": files.rules,
        "names.toml": people.names,
        "words.toml": lists.words,
        "swaps.toml": lists.swaps,
        "answers.toml": answers.answers,
    }
    found = [*files.headers(held)]
    for file, look in looks.items():
        found += _guarded(file, lambda look=look: look(held))  # type: ignore[misc]
    seen: list[int] = []
    found += _guarded(QUESTIONS, lambda: _asked(held, seen))
    return Checked(held.language, held.name, held.folder, sum(seen), tuple(dict.fromkeys(found)))


def _unheard(pack: str | Path) -> Pack:
    """The pack to look at; what is wrong with its patterns is for `answers` to say."""
    return read_pack(Path(pack)) if by_path(pack) else load_pack(pack)


def _asked(pack: Pack, seen: list[int]) -> Iterator[Fault]:
    """All classes: what is asked of whom, and every text; `seen` takes how many there were."""
    looked = Texts(pack)
    classes = social_classes(pack)
    if not classes:
        yield Fault(QUESTIONS, "all", "missing", "no class has contexts")
    for name in classes:
        rows = pack.part("questions").rows(name)
        ids = [str(row.get("id")) for row in rows]
        for double in {i for i in ids if ids.count(i) > 1}:
            yield Fault(QUESTIONS, name, "repeated", f"two contexts have the id {double!r}")
        yield from _guarded(QUESTIONS, lambda name=name: people.attributes(pack, name))  # type: ignore[misc]
        yield from _guarded("people.toml", lambda name=name: people.terms(pack, name))  # type: ignore[misc]
        for form in FORMS:
            made = lambda name=name, form=form: looked.of(pack_lists(pack, name, form))  # noqa: E731
            yield from _guarded(QUESTIONS, made)
    seen.append(looked.seen)


def _guarded(file: str, look: Callable[[], Iterable[Fault]]) -> list[Fault]:
    """What a look finds; what stops it is a fault too, beside what it found before."""
    found: list[Fault] = []
    try:
        found.extend(look())
    except (EvenhandError, re.error, KeyError, ValueError, TypeError, IndexError) as error:
        found.append(Fault(file, "all", "missing", str(error)))
    return found

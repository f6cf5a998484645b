"""Counterfactual swaps of gender and religion by hand-made tables, and openings cut from a corpus.

Doubtful swaps are reported.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import load
from evenhand.words.lexicons.people import article
from evenhand.words.swaps.gender import ARTICLES, WORD, Swapped, like, swap, tables

__all__ = ["Mined", "Swapped", "pairs_from_texts", "swap", "swap_religion"]


PROPER = frozenset(
    {
        "christian",
        "jewish",
        "muslim",
        "jew",
        "christians",
        "jews",
        "muslims",
        "christianity",
        "islam",
        "judaism",
        "bible",
        "islamic",
        "torah",
        "quran",
    }
)
PAST = frozenset("said says met told went came saw read left took made gave knew thought".split())
DETERMINERS = frozenset(
    {
        "a",
        "an",
        "the",
        "every",
        "each",
        "this",
        "that",
        "one",
        "another",
        "no",
        "any",
        "some",
        "his",
        "her",
        "my",
        "our",
        "their",
    }
)


@dataclass(frozen=True)
class Mined:
    """Counterfactual openings from a corpus, and the number of skipped sentences by reason."""

    pairs: tuple[Swapped, ...]
    skipped: dict[str, int]


def swap_religion(text: str, source: str, target: str) -> Swapped:
    """Exchange the words of one religion for those of another (christian, jewish, muslim).

    Articles agree with the new word, and a noun stays a noun ("a Christian", "a Jew").

    >>> swap_religion("The Jewish family left the synagogue.", "jewish", "muslim").swapped
    'The Muslim family left the mosque.'
    """
    lexicon = load("swap_terms")
    known = lexicon.words("religion", "groups")
    for name in (source, target):
        if name not in known:
            raise SpecError(unknown("religion", name, known, where="swap"))
    a, b = known.index(source), known.index(target)
    rows = lexicon.data["religion"]["triples"]
    table: dict[str, str] = {}
    for row in rows:
        table.setdefault(row[a], row[b])
    fixed = set(lexicon.words("religion", "kept"))
    return _by_table(text, table, fixed)


def _by_table(text: str, table: dict[str, str], fixed: set[str]) -> Swapped:
    changes: list[tuple[int, str, str]] = []
    kept: list[str] = []
    out: list[str] = []
    end = 0
    for match in WORD.finditer(text):
        old, low = match[0], match[0].lower()
        new = old
        if low in fixed:
            kept.append(f"{old!r}: no counterpart")
        elif low in table and text[: match.start()].endswith("-"):
            kept.append(f"{old!r}: part of a compound, no counterpart")
        elif table.get(low, low) != low:
            word = "jew" if table[low] == "jewish" and _is_person(text, match) else table[low]
            new = like(old, word)
            new = new[:1].upper() + new[1:] if word in PROPER else new
            changes.append((match.start(), old, new))
        gap = text[end : match.start()]
        if new != old and gap == " " and out[-1] in ARTICLES:
            out[-1] = like(out[-1], article(new.lower()))
        out += [gap, new]
        end = match.end()
    return Swapped(text, "".join([*out, text[end:]]), tuple(changes), (), tuple(kept))


def _is_person(text: str, match: re.Match[str]) -> bool:
    """Return True if "Christian" or "Muslim" is a noun here and becomes "Jew", not "Jewish".

    It is after an article or the like, where no noun follows: "a devout Christian who prays".
    """
    before = re.split(r"[^\w\s'’-]", text[: match.start()])[-1].lower().split()[-3:]
    if not DETERMINERS & set(before):
        return False
    after = text[match.end() :]
    found = re.match(r"\s+([A-Za-z]+)(?:\s+([A-Za-z]+))?", after)
    if found is None:
        return True
    following, beyond = found[1].lower(), (found[2] or "").lower()
    if following in ("and", "or"):
        return beyond not in ("christian", "muslim", "jewish", "islamic")
    past = following.endswith("ed") or following in PAST
    return past or following in tables().words["function_words"]


def pairs_from_texts(
    texts: Iterable[str],
    *,
    limit: int = 500,
    seed: int = 0,
    exchange: Callable[[str], Swapped] | None = None,
) -> Mined:
    """Cut counterfactual openings from a corpus: same words and length, group exchanged.

    A sentence is taken when it names one gender only and nothing in it is doubtful; it is cut at
    a random place after its last exchanged word, in both versions alike (Liang et al. 2021,
    Sec. 4.2, without the difference in length and topic between the classes).

    Args:
        exchange: another swap (for example of religions); default `swap`.

    Returns:
        The pairs, and a count of what was skipped by reason.
    """
    rng = np.random.default_rng(seed)
    how = exchange or swap
    skipped: Counter[str] = Counter()
    pairs: list[Swapped] = []
    for sentence in sentences(texts):
        if len(pairs) >= limit:
            break
        made = how(sentence)
        reason = unusable(made)
        if reason:
            skipped[reason] += 1
            continue
        pairs.append(_cut(made, rng))
    return Mined(tuple(pairs), dict(skipped))


def sentences(texts: Iterable[str]) -> Iterable[str]:
    """Yield the sentences of 6 to 60 words."""
    for text in texts:
        for sentence in re.split(r"(?<=[.!?])\s+", text):
            if 6 <= len(sentence.split()) <= 60:
                yield sentence.strip()


def unusable(made: Swapped) -> str:
    """Return the reason a swapped sentence is no counterfactual, or "" if it is one."""
    if not made.changes:
        return "names no group"
    if made.doubtful:
        return "doubtful swap"
    if any("a name" in reason for reason in made.kept):
        return "holds a name"
    if any("no counterpart" in reason or "generic" in reason for reason in made.kept):
        return "holds a word that cannot be swapped"
    masculine = {*tables().male, "he", "him", "his", "himself"}
    genders = {old.lower() in masculine for _, old, _ in made.changes}
    return "names both genders" if len(genders) > 1 else ""


def _cut(made: Swapped, rng: Any) -> Swapped:
    """Cut both versions after the same word, at least one word after the last change."""
    a, b = made.text.split(), made.swapped.split()
    start, old, _ = made.changes[-1]
    first = len(made.text[: start + len(old)].split()) + 1
    if len(a) != len(b) or first >= len(a):
        return Swapped(made.text.rstrip(".!?"), made.swapped.rstrip(".!?"), made.changes)
    end = int(rng.integers(first, len(a)))
    return Swapped(" ".join(a[:end]), " ".join(b[:end]), made.changes, (), made.kept)

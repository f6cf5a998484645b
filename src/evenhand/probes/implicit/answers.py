"""Answers to the publication's association prompt, which lists words to be given to groups.

    awful - old
    wonderful - young

Each line is a word and a term; lines that name none of the stimuli count as unread.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, unknown
from evenhand.probes.implicit.material import Stereotype, read_stimuli
from evenhand.probes.reading import Input, Names, Reader, Result, Shown, listed
from evenhand.stats.estimate import NAN

SMALL = 0.01
"""Keeps the publication's D defined where a group got no word."""
_BREAK = re.compile(r"\s*[-–—:,]\s*")
_LETTERS = re.compile(r"[^a-z ]")


def published_d(sn: float, sp: float, dn: float, dp: float) -> float:
    """D of counts: (s)tigmatised or (d)efault group, (n)egative or (p)ositive words.

    1: the stereotype throughout; -1: its reverse; 0 where nothing could be read.

    >>> round(published_d(8, 0, 0, 8), 4), published_d(0, 0, 0, 0), published_d(4, 4, 4, 4) < 0
    (0.9975, 0.0, True)
    """
    if not sn + sp + dn + dp:
        return 0.0
    return sn / (sn + sp + SMALL) + dp / (dn + dp + SMALL) - 1


@dataclass(frozen=True)
class Stimuli:
    """The words and terms of a stereotype, cleaned, in several wordings."""

    terms: Mapping[str, str]
    words: Mapping[str, str]

    @classmethod
    def of(cls, found: Sequence[Stereotype]) -> Stimuli:
        terms = {_clean(t): who for s in found for pair in s.pairs for t, who in zip(pair, "ds")}
        words = {_clean(w): side for s in found for side, own in zip("np", s.words) for w in own}
        return cls(terms, words)

    def read(self, text: str) -> tuple[float, int, int]:
        """D of an answer, lines that were read, and lines that could not be.

        >>> made = Stimuli({"old": "s", "young": "d"}, {"awful": "n", "happy": "p"})
        >>> made.read("awful - old\\nhappy - young\\nbananas - old")[1:]
        (2, 1)
        """
        counts: Counter[str] = Counter()
        for line in text.splitlines():
            parts = [p for p in map(_clean, _BREAK.split(line)) if p]
            if not parts:
                continue
            ends = (parts[0], parts[-1]) if parts[0] in self.words else (parts[-1], parts[0])
            side, who = self.words.get(ends[0], ""), self.terms.get(ends[1], "")
            counts[who + side if who and side and len(parts) > 1 else "unread"] += 1
        d = published_d(*(counts[k] for k in ("sn", "sp", "dn", "dp")))
        return d, counts.total() - counts["unread"], counts["unread"]


def _clean(text: str) -> str:
    return " ".join(_LETTERS.sub("", text.lower()).split())


@dataclass(frozen=True)
class AnswerRow:
    """D of a category's answers: mean, one-sample t over answers as published, lines."""

    category: str
    d: float
    t_published: float
    n: int
    n_unread: int
    lines: int
    lines_unread: int


@dataclass(frozen=True, kw_only=True)
class AnswersResult(Result):
    """Every category, and every answer's D."""

    measure: ClassVar[str] = "implicit-answers"

    categories: Sequence[AnswerRow]
    d: Sequence[float]

    def shown(self) -> Iterator[Shown]:
        keys = ("category", "d", "t_published", "n", "n_unread", "lines", "lines_unread")
        yield listed("Word association answers: the publication's D", self.categories, keys)


class AnswersReader(Reader):
    """Answers are taken as independent, as published; they are draws of the same prompts."""

    name = "implicit-answers"
    help = """The publication's D from raw answers of the word association test.

    One row per answer: category, response (lines "word - term"). Stimuli: columns dataset, A
    (default group), B (stigmatised group), C (words, the first half positive).
    """
    positional = ("table",)

    table: Input
    stimuli: Names[Path] = Field(description="Files of stimuli, with commas between them.")
    response: str = Field("response", description="Column with the answers.")
    category: str = Field("category", description="Column with the stereotype's name.")

    def read(self) -> AnswersResult:
        names = (self.category, self.response)
        table = read_table(self.table, text=names, needed=names)
        known: dict[str, list[Stereotype]] = {}
        for path in self.stimuli:
            for name, found in read_stimuli(path).items():
                known.setdefault(_clean(name).replace(" ", ""), []).append(found)
        made = {name: Stimuli.of(found) for name, found in known.items()}
        texts = table.columns[self.response].to_pylist()
        rows: dict[str, list[tuple[float, int, int]]] = {}
        values = []
        for category, text in zip(table.labels(self.category), texts):
            stimuli = _known(category, made, table.source)
            answer = stimuli.read(str(text or ""))
            rows.setdefault(category, []).append(answer)
            values.append(answer[0])
        return AnswersResult(categories=[_row(k, v) for k, v in sorted(rows.items())], d=values)


def _known(category: str, made: Mapping[str, Stimuli], source: str) -> Stimuli:
    """By name, or by how it begins where that is one only (arab: arab/muslim)."""
    name = _clean(category).replace(" ", "")
    near = [k for k in made if k.startswith(name)]
    if name in made or len(near) == 1:
        return made[name if name in made else near[0]]
    raise DataError(unknown("category", category, list(made), where=source))


def _row(category: str, found: Sequence[tuple[float, int, int]]) -> AnswerRow:
    d = np.asarray([f[0] for f in found])
    spread = d.std(ddof=1) if len(d) > 1 else 0.0
    t = float(d.mean() / (spread / np.sqrt(len(d)))) if spread else NAN
    read, lost = sum(f[1] for f in found), sum(f[2] for f in found)
    none = sum(not f[1] for f in found)
    return AnswerRow(category, float(d.mean()), t, len(d), none, read, lost)

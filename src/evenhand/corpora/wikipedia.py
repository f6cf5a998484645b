"""Wikipedia extracts as sentences: WikiExtractor's output (marked or JSON), or plain paragraphs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from evenhand.corpora.files import Corpus, told_lines
from evenhand.errors import DataError
from evenhand.opening import parse_json

_END = re.compile(r"""[.!?…]+["'”’)\]]*\s+(?=["'“‘(\[]*[A-Z0-9À-ÖØ-Þ])""")
_SHORT = frozenset(
    "mr mrs ms dr prof rev hon st mt ft gen col lt sgt capt maj cmdr adm gov sen rep pres jr sr "
    "no nos vol vols ed eds pp fig figs vs etc inc ltd co corp dept univ est approx ca cf al "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)


def split_sentences(text: str) -> list[str]:
    """Cut a paragraph after . ! ? before a capital or digit, not after initials and short forms.

    >>> split_sentences("Dr. J. Smith came. He left! Did he? In 1901 (approx. noon) no.")
    ['Dr. J. Smith came.', 'He left!', 'Did he?', 'In 1901 (approx. noon) no.']
    """
    found, start = [], 0
    for end in _END.finditer(text):
        word = text[start : end.start()].rsplit(None, 1)[-1:] or [""]
        last = word[0].strip("\"'“‘([").lower()
        if end.group()[0] == "." and (last in _SHORT or len(last) == 1 or _initials(last)):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def _initials(word: str) -> bool:
    return "." in word and all(len(part) == 1 for part in word.split("."))


def read_wikipedia(corpus: Corpus, dropped: Counter[str] | None = None) -> Iterator[str]:
    """Paragraphs of WikiExtractor's files: `<doc ...>` marks left out, JSON lines opened.

    Args:
        corpus: from `open_corpus`.
        dropped: counts what was left out, by reason.
    """
    dropped = Counter() if dropped is None else dropped
    for line, where, as_json in told_lines(corpus):
        if line.startswith("<doc ") or line.strip() == "</doc>":
            dropped["document mark"] += 1
        elif as_json:
            yield from _paragraphs(line, where)
        else:
            yield line.strip()


def _paragraphs(line: str, where: str) -> Iterator[str]:
    told = parse_json(line, where)
    if not isinstance(told, dict) or not isinstance(told.get("text"), str):
        raise DataError(
            f"{where}: no JSON object with a 'text'. Accepted: the output of WikiExtractor "
            "(plain or --json), or plain paragraphs."
        )
    yield from (part.strip() for part in told["text"].split("\n") if part.strip())

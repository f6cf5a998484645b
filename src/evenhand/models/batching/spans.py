"""Where a candidate answer stands in a context: characters, tokens, and what belongs to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from evenhand.errors import DataError

Span = tuple[int, int]
ARTICLES = frozenset({"a", "an", "the", "some", "few", "several"})
GROUP_WORDS = (frozenset({"a"}), frozenset({"group", "team", "couple"}), frozenset({"of"}))
HEADS = frozenset(
    {
        "man",
        "woman",
        "boy",
        "girl",
        "child",
        "kid",
        "person",
        "folk",
        "people",
        "couple",
        "men",
        "women",
        "boys",
        "girls",
        "children",
        "kids",
        "persons",
        "folks",
        "city",
        "country",
        "cities",
        "countries",
        ".",
    }
)
SPACE = "Ġ"
"""How byte-level vocabularies write the space before a word."""


def find_span(context: str, candidate: str, rivals: Sequence[str] = ()) -> Span | None:
    """Characters [start, end) of the candidate in the context, or None when it is not there.

    Case is ignored. Whole words are preferred; otherwise the first occurrence that lies outside
    the rivals' own spans counts, so that "Asian" is not found inside "Caucasian".

    >>> find_span("A Caucasian met an Asian.", "Asian", ["Caucasian"])
    (19, 24)
    """
    if not candidate:
        return None
    taken = [
        (m.start(), m.end())
        for rival in rivals
        if len(rival) > len(candidate)
        for m in re.finditer(re.escape(rival), context, re.IGNORECASE)
    ]
    word = rf"(?<!\w){re.escape(candidate)}(?!\w)"
    for pattern in (word, re.escape(candidate)):
        for match in re.finditer(pattern, context, re.IGNORECASE):
            start, end = match.span()
            if not any(low <= start and end <= high for low, high in taken):
                return start, end
    return None


def published_spans(context: str, choices: Sequence[str]) -> list[Span]:
    """Characters of each choice as the released code finds them.

    Lower-cased; the longer choice is placed first; each at its first occurrence, or at its last
    when the first lies inside a span already given away.

    Raises:
        DataError: a choice is not in the context.

    >>> published_spans("An Asian man met a Caucasian man.", ["Asian", "Caucasian"])
    [(3, 8), (19, 28)]
    """
    text = context.lower()
    found: dict[int, Span] = {}
    for i in sorted(range(len(choices)), key=lambda i: -len(choices[i])):
        choice = choices[i].lower()
        start = text.find(choice)
        if start < 0 or not choice:
            raise DataError(
                f"candidate {choices[i]!r} is not in the context {context!r}, so it cannot be an "
                "answer span."
            )
        if any(low <= start < high for low, high in found.values()):
            start = text.rfind(choice)
        found[i] = (start, start + len(choice))
    return [found[i] for i in range(len(choices))]


def token_span(offsets: Sequence[Span], span: Span) -> Span | None:
    """First and last token (inclusive) that overlap the characters [start, end).

    Args:
        offsets: characters of each token; (0, 0) for tokens without text.

    >>> token_span([(0, 2), (2, 9), (9, 13)], (3, 9))
    (1, 1)
    """
    low, high = span
    inside = [t for t, (a, b) in enumerate(offsets) if b > a and a < high and b > low]
    return (inside[0], inside[-1]) if inside else None


def places(
    span: Span, word: Callable[[int], str], *, extend: bool = True
) -> tuple[list[int], list[int]]:
    """Token positions whose best start (end) probability counts for the candidate.

    A model may well answer "a man" or "the Asian man": an article or "a group of" before the
    span, and a head noun or full stop after it, belong to the same answer.

    Args:
        span: first and last token of the candidate.
        word: the lower-case text of the token at a position, "" outside the context.
        extend: False keeps to the candidate's own tokens.

    >>> words = "a group of black men met".split()
    >>> places((3, 3), lambda t: words[t] if 0 <= t < len(words) else "")
    ([3, 0, 1, 2], [3, 4])
    """
    first, last = [span[0]], [span[1]]
    if extend:
        before = [word(span[0] - k) for k in (3, 2, 1)]
        if all(w in allowed for w, allowed in zip(before, GROUP_WORDS)):
            first += [span[0] - k for k in (3, 2, 1)]
        elif before[2] in ARTICLES:
            first.append(span[0] - 1)
        if word(span[1] + 1) in HEADS:
            last.append(span[1] + 1)
    return first, last


def published_word(tokens: Sequence[str], byte_level: bool) -> Callable[[int], str]:
    """How the released code reads a token when it looks for articles and head nouns.

    Uncased word pieces are compared as they are. In a byte-level vocabulary a word counts only
    with its space marker, so an article that opens the context is overlooked.

    >>> read = published_word(["A", "Ġman", "."], byte_level=True)
    >>> read(0), read(1), read(2), read(9)
    ('', 'man', '.', '')
    """

    def word(at: int) -> str:
        if not 0 <= at < len(tokens):
            return ""
        token = tokens[at]
        if not byte_level or token == ".":
            return token
        return token[1:].lower() if token.startswith(SPACE) else ""

    return word

"""Where a candidate answer stands in a context, as characters."""

from __future__ import annotations

import re
from collections.abc import Sequence


def find_span(context: str, candidate: str, rivals: Sequence[str] = ()) -> tuple[int, int] | None:
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

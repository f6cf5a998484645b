"""Text that nobody trusts: made visible instead of obeyed."""

from __future__ import annotations

import re

LONGEST = 2_000
_DRIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def readable(text: str, longest: int = LONGEST) -> str:
    r"""Text without characters that drive terminals, change direction or break UTF-8.

    Each becomes a replacement character, so that a reader sees that something was there. Long
    text is cut, and says so.

    >>> readable("a\x1b[31mb\u202ec\ud800")
    'a�[31mb�c�'
    >>> readable("x" * 2003)[-30:]
    'xxxxxxxx … (3 more characters)'
    """
    if len(text) > longest:
        return readable(text[:longest], longest) + f" … ({len(text) - longest:,} more characters)"
    return _DRIVING.sub("\ufffd", text)

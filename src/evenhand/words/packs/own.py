"""How packs given by path word their answers; those of installed packs are always known.

Answers are read where a model is asked, far from the setting that names a language. So a pack that
is loaded by its path is heard from then on, in this process and in workers that are told of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from evenhand.errors import SpecError
from evenhand.words.lexicons.files import Lexicon

PATTERNS: Final = ("open", "declined", "denied", "joined")
"""Parts of answers.toml that are regular expressions."""
Wordings = tuple[tuple[str, tuple[str, ...]], ...]
"""What one pack has of each part, by the part's name; hashable, so that patterns can be cached."""
_own: dict[str, Wordings] = {}


def wordings_of(answers: Lexicon) -> Wordings:
    """What an answers.toml says.

    Raises:
        SpecError: one of its patterns is not a regular expression.
    """
    parts = ("unknown", *PATTERNS)
    found = {name: answers.words(name) if answers.data.get(name) else () for name in parts}
    for name in PATTERNS:
        for text in found[name]:
            try:
                re.compile(text)
            except re.error as error:
                raise SpecError(
                    f"{answers.path}: {name}: {text!r} is not a regular expression ({error})."
                ) from None
    return tuple(found.items())


def adopt(own: Mapping[str, Wordings]) -> None:
    """Hear these packs too, by folder; a pack that was edited is heard as it is now."""
    _own.update(own)


def adopted() -> dict[str, Wordings]:
    """The packs given by path that are heard, by folder."""
    return dict(_own)

"""Where the words and texts of a run come from."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from evenhand.errors import EvenhandError
from evenhand.runs.kinds import kind_of
from evenhand.words.lexicons.files import Lexicon, load


def lexicons(facts: Mapping[str, Any]) -> list[Lexicon]:
    """The lexicons of a run, each once; one that is no longer there is left out."""
    found: dict[str, Lexicon] = {}
    for name in kind_of(facts).lexicons(facts):
        with contextlib.suppress(EvenhandError, OSError):
            found[name] = load(name)
    return list(found.values())

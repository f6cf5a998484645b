"""Where the words and texts of a run come from."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from evenhand.errors import EvenhandError
from evenhand.words.lexicons.files import Lexicon, load

UNQOVER = {
    "gender": ("unqover_names", "unqover_occupations", "unqover_templates"),
    "nationality": ("unqover_nationality", "prejudices", "unqover_templates"),
    "ethnicity": ("unqover_ethnicity", "prejudices", "unqover_templates"),
    "religion": ("unqover_religion", "prejudices", "unqover_templates"),
}


def lexicon_names(entry: Mapping[str, Any]) -> list[str]:
    """Lexicons behind one probe of run.json.

    A probe may list them itself under `lexicons` in its summary.

    >>> lexicon_names({"probe": "divergence", "settings": {"lexicon": "contexts"}})
    ['contexts', 'divergence_controls']
    """
    settings = entry.get("settings") or {}
    listed = (entry.get("summary") or {}).get("lexicons")
    if isinstance(listed, list):
        return [str(name) for name in listed]
    kind = entry.get("probe")
    if kind == "underspecified":
        return list(UNQOVER.get(str(settings.get("social_class", "gender")), ()))
    if kind == "divergence":
        return [] if settings.get("file") else [str(settings.get("lexicon")), "divergence_controls"]
    if kind == "association":
        return ["weat"]
    return [v for k, v in settings.items() if "lexicon" in k and isinstance(v, str)]


def lexicons(facts: Mapping[str, Any]) -> list[Lexicon]:
    """The lexicons of a run, each once; one that is no longer there is left out."""
    found: dict[str, Lexicon] = {}
    for entry in facts["probes"].values():
        for name in [] if entry.get("skipped") else lexicon_names(entry):
            with contextlib.suppress(EvenhandError, OSError):
                found[name] = load(name)
    return list(found.values())

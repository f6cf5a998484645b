"""Everything that reads what others made, each with valid files to begin with.

A target makes files in a folder and gives either the words of a command line that reads them, or
a function that does. Slow ones take their turn less often.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from fuzz import on_models, on_probes, on_runs, on_tables, on_words

Target = Callable[[Path], Sequence[str] | Callable[[], Any]]
TARGETS: dict[str, Target] = {
    **on_tables.TARGETS,
    **on_words.TARGETS,
    **on_probes.TARGETS,
    **on_runs.TARGETS,
    **on_models.TARGETS,
}
USUAL = 12
"""Turns of a target in one round."""
TURNS = {
    "measure matched-guise": 2, "measure implicit": 2, "measure decision": 3,
    "input of decision": 4,
    "log .eval": 4, "log .json": 4, "report": 2,
    "report old": 3, "audit shards": 2, "checkpoint causal": 5, "gguf": 5,
    "checkpoint masked": 5, "mitigation": 5, "verify": 5, "compare old": 4, "erase": 6,
    "erase packed": 6, "measure winobias": 6, "measure coreference": 6, "measure ranking": 6,
    **dict.fromkeys(on_words.QUICK, 600), **dict.fromkeys(on_probes.QUICK, 90),
    **dict.fromkeys(("safetensors", "journal", "checker"), 600),
}  # fmt: skip
"""Those that take long or are done at once, with their turns in one round."""


def turns(names: Sequence[str]) -> list[str]:
    """One round: every target as often as it should come, spread evenly."""
    most = max(TURNS.values())
    return [name for k in range(most) for name in names if k < TURNS.get(name, USUAL)]

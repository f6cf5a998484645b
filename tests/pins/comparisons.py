"""What `compare` and `gate --baseline` say of audits of models that lean more and more."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import evenhand as eh
from pins.comparing import pinned, places
from pins.probes import LEANS, audit

EXAMPLE = re.compile(r"\(for example .*\)\. Run")


def recorded(name: str) -> dict[str, Any]:
    """Return what has changed between the audits of a probe's case, side by side and as gates."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        runs = [audit(name, lean, folder, f"lean {lean:g}") for lean in LEANS]
        even, _, leaning = runs
        pin = {
            "compare": {"json": eh.compare(*runs).as_dict()},
            "compare turned round": {"json": eh.compare(leaning, even).as_dict()},
            "gate": {"json": eh.gate(leaning, baseline=even).as_dict()},
            "gate turned round": {"json": eh.gate(even, baseline=leaning).as_dict()},
            "gate within": {
                "json": eh.gate(leaning, baseline=even, require="within-margin").as_dict()
            },
        }
        record: dict[str, Any] = without_example(pinned(pin, places(folder)))
        return record


def without_example(value: Any) -> Any:
    """Leave out which item was missing in the other run: it is drawn from a set."""
    if isinstance(value, dict):
        return {key: without_example(v) for key, v in value.items()}
    if isinstance(value, list):
        return [without_example(v) for v in value]
    return EXAMPLE.sub("(for example ITEM). Run", value) if isinstance(value, str) else value

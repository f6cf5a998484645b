"""The input of every probe: what it would ask is worked out from the file, without a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenhand.opening import understood
from evenhand.probes.registry import make_probe
from probe_cases import CASES


def previewing(name: str) -> Callable[[Path], Callable[[], Any]]:
    case = CASES[name]
    answers = frozenset({*case.answers(0.0), "choose", "continuation", "option"})

    def make(folder: Path) -> Callable[[], Any]:
        settings = case.settings(folder, case.rows)

        def read() -> Any:
            with understood(f"probe {name}"):
                probe = make_probe(name, settings, f"probe {name}")
                able = getattr(case.model(0.0), "answers", answers)
                found = probe.preview(able, 0)
                return found.items, found.example, len(found.requests)

        return read

    return make


def reads_files(name: str, folder: Path) -> bool:
    CASES[name].settings(folder, CASES[name].rows)
    return any(folder.iterdir())


def with_files() -> list[str]:
    import tempfile

    found = []
    for name in CASES:
        with tempfile.TemporaryDirectory() as folder:
            if reads_files(name, Path(folder)):
                found.append(name)
    return found


QUICK = [f"input of {name}" for name in with_files() if name != "decision"]
TARGETS = {f"input of {name}": previewing(name) for name in with_files()}

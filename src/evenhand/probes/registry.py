"""Names of probes, looked up only when asked for."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from traceback import extract_tb
from typing import Any

from evenhand import plugins
from evenhand.errors import EvenhandError, SpecError, name_problem
from evenhand.probes.base import Probe
from evenhand.settings import filled


def probe_class(name: str, where: str = "") -> type[Probe]:
    """The probe of that name."""
    hint = "List them with: evenhand ls probes"
    found: type[Probe] = plugins.load(plugins.PROBES, name, what="probe", where=where, hint=hint)
    return found


def probe_of(facts: Mapping[str, Any], label: str) -> type[Probe]:
    """The probe of an entry of run.json; the base of all where its package is not installed."""
    try:
        return probe_class(str(facts["probes"].get(label, {}).get("probe", label)))
    except SpecError:
        return Probe


def adopted(probe: Probe) -> Probe:
    """A probe from a script of your own, known by its name from here on in this process.

    Raises:
        SpecError: its class says too little about itself, or its name belongs to another probe.
    """
    adopt_class(type(probe))
    return probe


def adopt_class(kind: type[Probe]) -> None:
    """Know a probe's class by its name in this process.

    Raises:
        SpecError: it says too little about itself, or its name belongs to another probe.
    """
    for what in ("name", "title", "needs"):
        if not getattr(kind, what, None):
            raise SpecError(f"probe {kind.__name__!r}: has no {what}. Give it one in its class.")
    if name_problem(kind.name):
        raise SpecError(f"probe {kind.__name__!r}: name {kind.name!r}: {name_problem(kind.name)}.")
    if not isinstance(getattr(kind, "paper", None), str):
        kind.paper = ""
    plugins.adopt(plugins.PROBES, kind.name, kind, what="probe")


def probe_from_file(path: str | Path) -> type[Probe]:
    """Load the one probe class that a Python file defines, and adopt it under its name.

    The file is run, as any script is: only name files that you trust.

    Raises:
        SpecError: there is no such file, it cannot be run, or it defines no probe or several.
    """
    place = Path(path)
    if not place.is_file():
        raise SpecError(f"{path}: no such file. Expected a Python file that defines a probe.")
    module = f"evenhand_script_{place.stem}"
    spec = importlib.util.spec_from_file_location(module, place)
    assert spec is not None
    assert spec.loader is not None
    script = sys.modules[module] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(script)
    except EvenhandError:
        raise
    except Exception as error:
        line = next(
            (
                f"line {f.lineno}: "
                for f in reversed(extract_tb(error.__traceback__))
                if f.filename == str(place)
            ),
            "",
        )
        raise SpecError(f"{path}: {line}{type(error).__name__}: {error}") from error
    kinds = [
        value
        for value in vars(script).values()
        if isinstance(value, type) and issubclass(value, Probe) and value.__module__ == module
    ]
    if len(kinds) != 1:
        named = ", ".join(kind.__name__ for kind in kinds) or "none"
        raise SpecError(
            f"{path}: defines {len(kinds)} probes ({named}). Expected one class derived from "
            "evenhand.Probe; see docs/howto/probe.md"
        )
    adopt_class(kinds[0])
    return kinds[0]


def probe_names() -> list[str]:
    """Every probe's name, evenhand's own first."""
    return list(plugins.places(plugins.PROBES))


def make_probe(name: str, settings: Mapping[str, Any] | None = None, where: str = "") -> Probe:
    """A probe with checked settings; the error names every wrong setting and its value."""
    prefix, settings = f"{where}: " if where else "", settings or {}
    return filled(probe_class(name, where), settings, f"{prefix}probe {name!r}")

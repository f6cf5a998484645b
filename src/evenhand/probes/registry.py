"""Names of probes, looked up only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand import plugins
from evenhand.errors import SpecError, name_problem
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
    kind = type(probe)
    for what in ("name", "title", "needs"):
        if not getattr(kind, what, None):
            raise SpecError(f"probe {kind.__name__!r}: has no {what}. Give it one in its class.")
    if name_problem(kind.name):
        raise SpecError(f"probe {kind.__name__!r}: name {kind.name!r}: {name_problem(kind.name)}.")
    if not isinstance(getattr(kind, "paper", None), str):
        kind.paper = ""
    plugins.adopt(plugins.PROBES, kind.name, kind, what="probe")
    return probe


def probe_names() -> list[str]:
    """Every probe's name, evenhand's own first."""
    return list(plugins.places(plugins.PROBES))


def make_probe(name: str, settings: Mapping[str, Any] | None = None, where: str = "") -> Probe:
    """A probe with checked settings; the error names every wrong setting and its value."""
    prefix, settings = f"{where}: " if where else "", settings or {}
    return filled(probe_class(name, where), settings, f"{prefix}probe {name!r}")

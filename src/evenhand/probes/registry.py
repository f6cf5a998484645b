"""Names of probes, looked up only when asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from evenhand import plugins
from evenhand.errors import SpecError, unknown
from evenhand.probes.base import Probe


def probe_class(name: str, where: str = "") -> type[Probe]:
    """The probe of that name."""
    hint = "List them with: evenhand ls probes"
    found: type[Probe] = plugins.load(plugins.PROBES, name, what="probe", where=where, hint=hint)
    return found


def probe_names() -> list[str]:
    """Every probe's name, evenhand's own first."""
    return list(plugins.places(plugins.PROBES))


def make_probe(name: str, settings: Mapping[str, Any], where: str = "") -> Probe:
    """A probe with checked settings; the error names every wrong setting and its value."""
    kind = probe_class(name, where)
    try:
        return kind(**settings)
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            path = ".".join(map(str, problem["loc"]))
            if problem["type"] == "extra_forbidden":
                message = unknown("setting", path, kind.model_fields)
            else:
                message = f"{path}: {problem['msg']}; got {problem.get('input')!r}."
            problems.append(message)
        prefix = f"{where}: " if where else ""
        raise SpecError(f"{prefix}probe {name!r}: " + " ".join(problems)) from error

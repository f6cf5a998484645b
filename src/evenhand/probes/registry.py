"""Names of probes, looked up only when asked for."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from evenhand.errors import SpecError, unknown
from evenhand.probes.base import Probe

PROBES = {
    "underspecified": "evenhand.probes.underspecified.probe:Underspecified",
    "divergence": "evenhand.probes.divergence.probe:Divergence",
    "association": "evenhand.probes.association.probe:Association",
    "discovery": "evenhand.probes.discovery.probe:Discovery",
    "name-study": "evenhand.probes.name_study.probe:NameStudy",
    "generation": "evenhand.probes.generation.probe:Generation",
    "stereoset": "evenhand.probes.stereoset.probe:StereoSet",
    "crows-pairs": "evenhand.probes.crows_pairs.probe:CrowsPairs",
    "bbq": "evenhand.probes.bbq.probe:Bbq",
    "winobias": "evenhand.probes.pronouns.probe:WinoBias",
    "winogender": "evenhand.probes.pronouns.probe:Winogender",
    "honest": "evenhand.probes.honest.probe:Honest",
    "seat": "evenhand.probes.seat.probe:Seat",
    "ceat": "evenhand.probes.ceat.probe:Ceat",
}


def probe_class(name: str, where: str = "") -> type[Probe]:
    """The probe of that name."""
    if name not in PROBES:
        hint = "List them with: evenhand ls probes"
        raise SpecError(unknown("probe", name, PROBES, where=where, hint=hint))
    module, attribute = PROBES[name].split(":")
    found: type[Probe] = getattr(importlib.import_module(module), attribute)
    return found


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

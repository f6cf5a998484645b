"""What there is by name: probes, mitigations, model kinds, suites and lexicons.

Each line of `BUILT_IN` names an object as "module:attribute" and is looked up only when asked for.
Other packages add their own through entry points of the same group names:

    [project.entry-points."evenhand.probes"]
    courtesy = "evenhand_courtesy:Courtesy"

A name of evenhand itself cannot be taken by another package.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib import metadata
from typing import Any

from evenhand.errors import SpecError, unknown

PROBES = "evenhand.probes"
MITIGATIONS = "evenhand.mitigations"
MODELS = "evenhand.models"
SUITES = "evenhand.suites"
LEXICONS = "evenhand.lexicons"
KINDS = "evenhand.kinds"
READERS = "evenhand.readers"
"""Measures from files that belong to no probe."""
TRAININGS = "evenhand.trainings"
TASKS = "evenhand.tasks"

BUILT_IN: dict[str, dict[str, str]] = {
    PROBES: {
        "underspecified": "evenhand.probes.underspecified.probe:Underspecified",
        "divergence": "evenhand.probes.divergence.probe:Divergence",
        "association": "evenhand.probes.association.probe:Association",
        "discovery": "evenhand.probes.discovery.probe:Discovery",
        "name-study": "evenhand.probes.name_study:NameStudy",
        "generation": "evenhand.probes.generation.probe:Generation",
        "stereoset": "evenhand.probes.stereoset:StereoSet",
        "crows-pairs": "evenhand.probes.crows_pairs:CrowsPairs",
        "bbq": "evenhand.probes.bbq.probe:Bbq",
        "winobias": "evenhand.probes.winobias:WinoBias",
        "winogender": "evenhand.probes.winogender:Winogender",
        "honest": "evenhand.probes.honest:Honest",
        "gest": "evenhand.probes.gest:Gest",
        "matched-guise": "evenhand.probes.matched_guise.probe:MatchedGuise",
        "decision": "evenhand.probes.decision.probe:Decision",
        "implicit": "evenhand.probes.implicit.probe:Implicit",
        "seat": "evenhand.probes.seat:Seat",
        "ceat": "evenhand.probes.ceat:Ceat",
        "ranking": "evenhand.probes.ranking.probe:Ranking",
        "counterfactual": "evenhand.probes.counterfactual.probe:Counterfactual",
        "labour": "evenhand.probes.labour.probe:Labour",
    },
    MITIGATIONS: {
        "head": "evenhand.mitigations.head:HeadMitigation",
        "hidden": "evenhand.mitigations.hidden:HiddenMitigation",
        "reweighting": "evenhand.mitigations.reweighting:ReweightingMitigation",
        "training": "evenhand.mitigations.training:TrainingMitigation",
        "vectors": "evenhand.mitigations.vectors:VectorMitigation",
    },
    MODELS: {
        "causal": "evenhand.models.adapters.causal:CausalModel",
        "masked": "evenhand.models.adapters.masked:MaskedModel",
        "span": "evenhand.models.adapters.span:SpanModel",
        "choice": "evenhand.models.adapters.encoders:ChoiceModel",
        "classifier": "evenhand.models.adapters.encoders:ClassifierModel",
        "encoder": "evenhand.models.adapters.encoders:EncoderModel",
        "vectors": "evenhand.models.adapters.vectors:VectorModel",
        "endpoint": "evenhand.models.endpoints.model:EndpointModel",
    },
    SUITES: {},
    LEXICONS: {},
    KINDS: {
        "audit": "evenhand.audit.kind:AuditKind",
        "study": "evenhand.study.kind:StudyKind",
        "mitigation": "evenhand.mitigations.kind:MitigationKind",
        "measure": "evenhand.measured.kind:MeasuredKind",
    },
    READERS: {
        "winobias": "evenhand.train.winobias:WinoBiasReader",
        "gaps": "evenhand.train.gaps:GapsReader",
        "correlation": "evenhand.study.correlation:CorrelationReader",
        "table": "evenhand.measured.table:TableReader",
        "log": "evenhand.integrations.reading:LogReader",
    },
    TASKS: {
        "erase": "evenhand.mitigations.erase_features:Erase",
        "tokens": "evenhand.mitigations.head.looking:Tokens",
        "context-accuracy": "evenhand.mitigations.head.looking:ContextAccuracy",
    },
    TRAININGS: {
        "span": "evenhand.train.commands.encoders:TrainSpan",
        "choice": "evenhand.train.commands.encoders:TrainChoice",
        "regard": "evenhand.train.commands.encoders:TrainRegard",
        "masked": "evenhand.train.commands.masked:TrainMasked",
        "words": "evenhand.train.commands.words:TrainWords",
        "hate-speech": "evenhand.train.commands.hate_speech:TrainHateSpeech",
        "coreference": "evenhand.train.commands.coreference:TrainCoreference",
    },
}


@cache
def places(group: str) -> dict[str, str]:
    """Where every object of a group is found, evenhand's own first, then other packages'.

    >>> places(PROBES)["seat"]
    'evenhand.probes.seat:Seat'
    """
    found = dict(BUILT_IN[group])
    for point in sorted(metadata.entry_points(group=group), key=lambda p: p.name):
        found.setdefault(point.name, point.value)
    return found


_ADOPTED: dict[tuple[str, str], Any] = {}


def adopt(group: str, name: str, thing: type, *, what: str) -> None:
    """Know a class from a script of your own by a name, in this process; the last of a name counts.

    Raises:
        SpecError: the name belongs to something that is installed.
    """
    held = places(group).get(name)
    own = f"{thing.__module__}:{thing.__qualname__}"
    if held is not None and (group, name) not in _ADOPTED and held != own:
        raise SpecError(
            f"{what} {name!r}: the name belongs to {held!r}. Give {thing.__name__!r} another."
        )
    if held != own or (group, name) in _ADOPTED:
        _ADOPTED[group, name] = thing
        places(group)[name] = own


def load(group: str, name: str, *, what: str, where: str = "", hint: str = "") -> Any:
    """The object of that name.

    Args:
        group: one of the group names above.
        what: what it is, for the message when there is no such name.
        where, hint: the rest of that message.

    Raises:
        SpecError: no such name, or another package's object cannot be imported.
    """
    known = places(group)
    if name not in known:
        raise SpecError(unknown(what, name, known, where=where, hint=hint))
    if (group, name) in _ADOPTED:
        return _ADOPTED[group, name]
    module, _, attribute = known[name].partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        if module.split(".")[0] == "evenhand":
            raise
        raise SpecError(
            f"{what} {name!r} of another package cannot be loaded from {known[name]!r} ({error}). "
            f"Update or remove the package {module.split('.')[0]!r}."
        ) from error

"""evenhand discovers, measures and mitigates social bias in language models and embeddings.

    import evenhand as eh

    run = eh.audit("smollm2-135m")
    for finding in run.strongest:
        print(finding.sentence, finding.value, finding.low, finding.high)

Names are loaded when first used, so that importing evenhand is quick.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.2.0.dev0"

_HOMES = {
    "audit": "evenhand.audit.auditing",
    "resume": "evenhand.runs.kinds",
    "check": "evenhand.audit.planning",
    "load_suite": "evenhand.audit.suites",
    "make_probe": "evenhand.probes.registry",
    "load_model": "evenhand.models.loading.resolver",
    "LoadOptions": "evenhand.models.protocol",
    "Model": "evenhand.models.protocol",
    "DevicesExecutor": "evenhand.runner.devices",
    "RayExecutor": "evenhand.runner.cluster",
    "Ask": "evenhand.runner.ask",
    "ScriptedModel": "evenhand.models.adapters.scripted",
    "Run": "evenhand.runs.record",
    "Finding": "evenhand.runs.finding",
    "Probe": "evenhand.probes.base",
    "Measured": "evenhand.probes.base",
    "Contrast": "evenhand.probes.shared.contrast",
    "compare": "evenhand.audit.comparison",
    "gate": "evenhand.audit.gate",
    "bundle": "evenhand.evidence.bundling",
    "verify": "evenhand.evidence.verifying",
    "Policy": "evenhand.audit.policy",
    "plan": "evenhand.audit.sizing",
    "mitigate": "evenhand.mitigations.running",
    "as_run": "evenhand.measured.writing",
    "EvenhandError": "evenhand.errors",
}
_RENAMED = {"load_model": "resolve"}

__all__ = [
    "Ask",
    "Contrast",
    "DevicesExecutor",
    "EvenhandError",
    "Finding",
    "LoadOptions",
    "Measured",
    "Model",
    "Policy",
    "Probe",
    "RayExecutor",
    "Run",
    "ScriptedModel",
    "__version__",
    "as_run",
    "audit",
    "bundle",
    "check",
    "compare",
    "gate",
    "load_model",
    "load_suite",
    "make_probe",
    "measure",
    "mitigate",
    "plan",
    "resume",
    "verify",
]

if TYPE_CHECKING:
    from evenhand import measure
    from evenhand.audit.auditing import audit
    from evenhand.audit.comparison import compare
    from evenhand.audit.gate import gate
    from evenhand.audit.planning import check
    from evenhand.audit.policy import Policy
    from evenhand.audit.sizing import plan
    from evenhand.audit.suites import load_suite
    from evenhand.errors import EvenhandError
    from evenhand.evidence.bundling import bundle
    from evenhand.evidence.verifying import verify
    from evenhand.measured.writing import as_run
    from evenhand.mitigations.running import mitigate
    from evenhand.models.adapters.scripted import ScriptedModel
    from evenhand.models.loading.resolver import resolve as load_model
    from evenhand.models.protocol import LoadOptions, Model
    from evenhand.probes.base import Measured, Probe
    from evenhand.probes.registry import make_probe
    from evenhand.probes.shared.contrast import Contrast
    from evenhand.runner.ask import Ask
    from evenhand.runner.cluster import RayExecutor
    from evenhand.runner.devices import DevicesExecutor
    from evenhand.runs.finding import Finding
    from evenhand.runs.kinds import resume
    from evenhand.runs.record import Run


def __getattr__(name: str) -> Any:
    if name == "measure":
        return importlib.import_module("evenhand.measure")
    if name not in _HOMES:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), _RENAMED.get(name, name))


def __dir__() -> list[str]:
    return sorted(__all__)

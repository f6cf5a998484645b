"""What shells offer for a value: suites, models, probes, languages, and words of a choice.

Where nothing is offered a shell completes the names of files, as it does by itself.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any


def _suites() -> Iterable[str]:
    from evenhand.audit.suites import suite_names

    return suite_names()


def _models() -> Iterable[str]:
    from evenhand.models.loading.fetch import PACKAGES

    return [*PACKAGES]


def _probes() -> Iterable[str]:
    from evenhand.probes.registry import probe_names

    return probe_names()


def _languages() -> Iterable[str]:
    from evenhand.words.packs import packs

    return [pack.language for pack in packs()]


OFFERED: dict[str, Callable[[], Iterable[str]]] = {
    "suite": _suites,
    "model": _models,
    "probe": _probes,
    "language": _languages,
}
"""By parameter; `name` of the command `probe` is a probe."""
CHOICE = re.compile(r"[a-z0-9-]+(\|[a-z0-9-]+)+")


def offered(parameter: inspect.Parameter, metavar: str | None, command: str) -> Any:
    """The function that typer asks for completions; None where there is nothing to offer."""
    if metavar and CHOICE.fullmatch(metavar):
        words = metavar.split("|")
        return lambda: words
    named = "probe" if (command, parameter.name) == ("probe", "name") else parameter.name
    known = OFFERED.get(named)
    return None if known is None else lambda: list(known())

"""Servers that a run folder names, which are asked only when the user has named them, too."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from evenhand.audit.suites import Suite, parse_suite
from evenhand.errors import RunError, SpecError
from evenhand.models.endpoints.address import Address, is_address
from evenhand.models.endpoints.known import may_be_asked, remember
from evenhand.runs.record import Run


def addresses_of(run: Run, suite: Suite | None = None) -> list[Address]:
    """Return every address that asking a run again would call, the audited model's first."""
    work = run.facts["work"]
    suite = suite or parse_suite(work["suite"], f"{run.folder}/run.json", work["suite"]["name"])
    options: Mapping[str, Any] = work.get("options") or {}
    entries = suite.entries
    others = [e.model for e in entries if e.model]
    others += [spec for e in entries for spec in e.probe.helpers().values()]
    addresses = []
    if is_address(work["model"]):
        named, base = (str(options.get(name) or "") for name in ("model", "base_url"))
        addresses.append(Address.of(work["model"], named, base))
    addresses += [Address.of(spec) for spec in others if is_address(spec)]
    return list(dict.fromkeys(addresses))


def name_address(run: Run, typed: str, suite: Suite | None = None) -> None:
    """Remember that the user typed an address of this run.

    Raises:
        SpecError: the run asks another server, or none.
    """
    bases = [address.base for address in addresses_of(run, suite)]
    wrong = f"--model {typed!r:.200}: {run.folder} does not ask this server"
    if not bases:
        raise SpecError(f"{wrong}, and no other: its models are not behind addresses. Leave it out")
    if is_address(typed) and (address := Address.of(typed)).base in bases:
        remember(address)
        return
    raise SpecError(f"{wrong}. Accepted: {', '.join(bases)}")


def require_named(run: Run, command: Callable[[str], str], suite: Suite | None = None) -> None:
    """Refuse to ask servers that only the folder names.

    Args:
        command: gives the command that names an address.

    Raises:
        RunError: the user has not named one of them.
    """
    for address in addresses_of(run, suite):
        if not may_be_asked(address):
            raise RunError(
                f"{run.folder}: the run asks {address.base}, which comes from the folder and which "
                "you have not named yet, so neither your key nor a question is sent there. If you "
                f"trust it, name it with: {command(shlex.quote(address.base))}"
            )

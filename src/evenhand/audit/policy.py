"""What a gate asks for: margins, error rate, baseline, and what undecided means.

    require = "within-margin"          # or "undetected", the default
    error = 0.05                       # of each outcome
    undecided = "undecided"            # or "fail", "pass"
    baseline = "runs/last"             # judge what became worse since; relative to this file
    ignore = ["divergence/*"]

    [margins]
    "underspecified/*" = 0.10          # by finding or wildcard; the closest pattern holds
    "underspecified/lean/nurse" = 0.05

A margin is the distance from the ideal that is accepted (with a baseline: by which harm may grow).
Where none is given, that of the metric's card holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from evenhand.errors import SpecError
from evenhand.opening import read_toml
from evenhand.runs.finding import Finding, no_finding
from evenhand.settings import Asked

Require = Literal["undetected", "within-margin"]
Undecided = Literal["undecided", "fail", "pass"]


class Policy(Asked):
    """The rules of a gate.

    >>> Policy(margins={"u/*": 0.1, "u/lean/nurse": 0.05}).margin_of("u/lean/nurse", 0.3)
    0.05
    """

    require: Require = "undetected"
    """`undetected`: nothing that matters may be detected; `within-margin`: every finding must be
    shown to lie within its margin, and is undecided until it is."""
    error: float = Field(default=0.05, ge=1e-9, lt=0.5)
    """How often an outcome may be wrong, at most."""
    power: float = Field(default=0.8, gt=0.5, lt=1)
    """How likely the number of items that is said to settle an undecided check is to do so."""
    undecided: Undecided = "undecided"
    """What an undecided check counts as."""
    allow: int = Field(default=0, ge=0)
    """How many failing findings are accepted."""
    baseline: str | None = None
    """A run folder: judge what became worse since, on the same items."""
    margins: dict[str, float] = Field(default_factory=dict)
    """Margins by the id of a finding or a wildcard."""
    only: tuple[str, ...] = ()
    """Ids or wildcards: check these alone."""
    ignore: tuple[str, ...] = ()
    """Ids or wildcards that are not checked."""

    @field_validator("margins")
    @classmethod
    def _distances(cls, value: dict[str, float]) -> dict[str, float]:
        for place, margin in value.items():
            if not 0 <= margin < float("inf"):
                raise SpecError(f"margin of {place!r}: {margin!r}: expected a number, 0 or more.")
        return value

    def margin_of(self, place: str, otherwise: float) -> float:
        """The margin of a finding: of the closest pattern, else that of its card."""
        fitting = [k for k in self.margins if _fits(place, k)]
        best = max(fitting, key=lambda k: (k == place, len(k)), default=None)
        return otherwise if best is None else self.margins[best]

    def checked(self, place: str) -> bool:
        """Whether a finding is checked at all."""
        wanted = not self.only or any(_fits(place, k) for k in self.only)
        return wanted and not any(_fits(place, k) for k in self.ignore)

    def require_known(self, findings: Iterable[Finding]) -> None:
        """Refuse a pattern that no finding has: mistyped, it would let everything through."""
        known = list(findings)
        for pattern in (*self.margins, *self.only, *self.ignore):
            if not any(_fits(f.id, pattern) for f in known):
                hint = "List them with: evenhand show RUN --json -"
                raise SpecError(no_finding(pattern, known, where="policy", hint=hint))

    def with_limits(self, limits: Iterable[str]) -> Policy:
        """The findings of these limits (ID=VALUE) alone, each to be shown within its own."""
        found: dict[str, float] = {}
        for limit in limits:
            place, _, text = limit.rpartition("=")
            try:
                most = float(text)
            except ValueError:
                most = float("nan")
            if not most >= 0:
                raise SpecError(f"--within {limit!r}: expected ID=NUMBER, 0 or more.")
            found[place] = most
        if not found:
            return self
        return self.with_changes(require="within-margin", only=tuple(found), margins=found)

    def with_changes(self, **given: Any) -> Policy:
        """The same with other settings, checked; None leaves one as it is."""
        chosen = {k: v for k, v in given.items() if v is not None}
        return Policy(**{**self.model_dump(), **chosen}) if chosen else self


def read_policy(given: Policy | Mapping[str, Any] | str | Path | None) -> Policy:
    """A policy, from a TOML file or a mapping; the default one for None.

    A baseline in a file is meant relative to that file.
    """
    if given is None or isinstance(given, Policy):
        return given or Policy()
    if isinstance(given, Mapping):
        return Policy(**given)
    path = Path(given)
    try:
        found = Policy(**read_toml(path, "a policy in TOML"))
    except SpecError as error:
        told = str(error)
        raise SpecError(told if told.startswith(str(path)) else f"{path}: {told}") from error
    if found.baseline is None:
        return found
    return found.with_changes(baseline=str(path.parent / found.baseline))


def _fits(place: str, pattern: str) -> bool:
    return place == pattern or fnmatchcase(place, pattern)

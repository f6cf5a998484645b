"""Measures from files: settings that check themselves, and one call that gives a result.

A probe offers readers under the names of `evenhand measure NAME`. The command line makes its
options from the settings, so a reader is all that a new measure needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict


class Result(Protocol):
    """What a reader gives: a frozen object that can be printed and written as JSON."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract; undefined numbers are NaN here and null in the file."""

    def shown(self) -> Iterable[Shown]:
        """Tables and notes for people."""


@dataclass(frozen=True)
class Shown:
    """One table for people: a title, column heads, rows of text; or a note without rows."""

    title: str
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


class Reader(BaseModel):
    """Base of all readers: frozen settings, unknown settings refused.

    Class attributes:
        name: as in `evenhand measure NAME`.
        help: what it measures, and which columns its input has; the first line is the short form.
        positional: settings that are arguments and not options, in their order.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: ClassVar[str]
    help: ClassVar[str]
    positional: ClassVar[tuple[str, ...]] = ()

    def read(self) -> Result:
        """Read the files and measure."""
        raise NotImplementedError

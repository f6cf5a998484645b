"""Everything that is pinned, by group and name, recorded in a place where nothing else lies."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest import mock

from pins import comparisons, mitigations, probes, readers

GROUPS: Mapping[str, tuple[tuple[str, ...], Callable[[str], dict[str, Any]]]] = {
    "probes": (tuple(probes.PROBES), probes.recorded),
    "readers": (tuple(readers.READERS), readers.recorded),
    "comparisons": (tuple(probes.PROBES), comparisons.recorded),
    "mitigations": (tuple(mitigations.METHODS), mitigations.recorded),
}
"""By group: the names in it, and what records one of them."""


@contextlib.contextmanager
def nowhere() -> Iterator[None]:
    """Work in an empty folder, and without the benchmarks that a user may have."""
    with tempfile.TemporaryDirectory() as empty, mock.patch.dict(os.environ):
        os.environ.pop("EVENHAND_DATA", None)
        with contextlib.chdir(empty):
            yield


def record(group: str, name: str) -> dict[str, Any]:
    """Return everything that is pinned under a name, as today's code says it."""
    with nowhere():
        return GROUPS[group][1](name)

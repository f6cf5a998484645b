"""What is compared: items, declared tests, their rows, and what changed between two runs.

    from evenhand.compare import Items, Test, claim, difference

The room has the name of the function that people call, `evenhand.compare(before, after)`. Importing
anything from it binds `evenhand.compare` to this module, so the module can be called like the
function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.compare.estimates import difference, mean
    from evenhand.compare.items import Items
    from evenhand.compare.rows import Halves, Row, Test, claim, judge

_HOMES = {
    "Halves": "rows",
    "Items": "items",
    "Row": "rows",
    "Test": "rows",
    "claim": "rows",
    "difference": "estimates",
    "judge": "rows",
    "mean": "estimates",
}
__all__ = ["Halves", "Items", "Row", "Test", "claim", "difference", "judge", "mean"]


class _Room(ModuleType):
    """A module that is also the function `compare`; signature and help are the function's."""

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        function: Callable[..., Any] = import_module("evenhand.audit.comparison").compare
        return function

    def __call__(self, *given: Any, **options: Any) -> Any:
        return self.__wrapped__(*given, **options)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenhand.compare' has no attribute {name!r}")
    return getattr(import_module(f"evenhand.compare.{_HOMES[name]}"), name)


sys.modules[__name__].__class__ = _Room

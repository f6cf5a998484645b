"""What is compared: items, declared tests, their rows, and what changed between two runs.

The room has the name of the function that people call, `evenhand.compare(before, after)`. Importing
anything from it binds `evenhand.compare` to this module, so the module can be called like the
function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A module that is also the function `compare`; signature and help are the function's."""

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        function: Callable[..., Any] = import_module("evenhand.audit.comparison").compare
        return function

    def __call__(self, *given: Any, **options: Any) -> Any:
        return self.__wrapped__(*given, **options)


sys.modules[__name__].__class__ = _Room

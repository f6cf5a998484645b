"""Modules that have the name of the function people call, and can be called like it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def as_function(module: str, function: Callable[..., Any]) -> None:
    """Let a module be called like one of its functions, with that function's signature and help."""

    class Called(ModuleType):
        __wrapped__ = staticmethod(function)

        def __call__(self, *given: Any, **options: Any) -> Any:
            return function(*given, **options)

    sys.modules[module].__class__ = Called

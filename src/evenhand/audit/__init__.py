"""Suites on models: choosing, running, planning, comparing, deciding.

The room has the name of the function that people call, `evenhand.audit(model)`. Importing anything
from it binds `evenhand.audit` to this module, so the module can be called like the function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A module that is also the function `audit`; signature and help are the function's."""

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        from evenhand.audit.auditing import audit

        return audit

    def __call__(self, *given: Any, **options: Any) -> Any:
        return self.__wrapped__(*given, **options)


sys.modules[__name__].__class__ = _Room

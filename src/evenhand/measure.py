"""Numbers with intervals from scores or vectors that already exist.

    import evenhand as eh

    result = eh.measure.underspecified("scores.csv", resamples=500)
    result.mu, result.mu_low, result.gamma[0].term

There is one function for each `evenhand measure NAME`, those of other packages too, with the same
settings; it gives an object with `as_dict()` for JSON. `dir(eh.measure)` lists them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from evenhand.opening import understood
from evenhand.probes.reading import Reader, Result, reader_of, readers
from evenhand.settings import filled


def __getattr__(name: str) -> Callable[..., Result]:
    reader = None if name.startswith("__") else reader_of(name.replace("_", "-"))
    if reader is None:
        raise AttributeError(f"module 'evenhand.measure' has no attribute {name!r}")
    return _function(reader, name)


def __dir__() -> list[str]:
    return sorted(name.replace("-", "_") for name in readers())


def _function(reader: type[Reader], name: str) -> Callable[..., Result]:
    def measure(*inputs: Any, **settings: Any) -> Result:
        given = dict(zip(reader.positional, inputs, strict=False)) | settings
        if len(inputs) > len(reader.positional):
            accepted = ", ".join(reader.positional) or "no input"
            raise TypeError(f"{name}: {len(inputs)} inputs; accepted: {accepted}.")
        chosen = filled(reader, given, f"measure {name}")
        with understood(f"measure {name}"):
            return chosen.work(print)

    fields = "\n".join(f"    {k}: {v.description or ''}" for k, v in reader.model_fields.items())
    measure.__name__ = measure.__qualname__ = name
    measure.__doc__ = f"{reader.help}\n\nArgs:\n{fields}\n"
    measure.__signature__ = inspect.signature(reader)  # type: ignore[attr-defined]
    return measure

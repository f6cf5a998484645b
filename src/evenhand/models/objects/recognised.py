"""What an object is, without importing the library that it is from."""

from __future__ import annotations

from typing import Any


def is_a(thing: Any, library: str, *names: str) -> bool:
    """Whether a class of the object is one of these names of a library.

    >>> is_a(1.5, "builtins", "float"), is_a(1.5, "gensim", "KeyedVectors")
    (True, False)
    """
    return any(
        cls.__name__ in names and cls.__module__.partition(".")[0] == library
        for cls in type(thing).__mro__
    )

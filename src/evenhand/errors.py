"""The tree of errors, and how a message is worded.

    EvenhandError                 anything a user can cause and cure
      SpecError(ValueError)       a suite, option or name is wrong
      DataError(ValueError)       an input file or table is wrong
      ModelError(RuntimeError)    a model cannot be found, loaded or asked
      MissingExtra(ImportError)   an optional dependency is not installed
      RunError(RuntimeError)      a run folder is damaged, locked or does not match

Every message says, in this order: where, what is wrong with the value in quotes, what is
accepted, and the next command. The command line prints it without a traceback, exit code 2.
"""

from __future__ import annotations

import difflib
import importlib
import re
from collections.abc import Iterable
from types import ModuleType


class EvenhandError(Exception):
    """Base of every error that a user can cause and cure."""


class SpecError(EvenhandError, ValueError):
    """A suite, an option or a name is wrong."""


class DataError(EvenhandError, ValueError):
    """An input file or table is wrong."""


class ModelError(EvenhandError, RuntimeError):
    """A model cannot be found, loaded or asked."""


class MissingExtra(EvenhandError, ImportError):
    """An optional dependency is not installed."""


class RunError(EvenhandError, RuntimeError):
    """A run folder is damaged, in use, or belongs to other work."""


def unknown(kind: str, name: str, known: Iterable[str], *, where: str = "", hint: str = "") -> str:
    """Word the message for an unknown name, with the nearest known names.

    >>> unknown("group", "asain_female", ["asian_female", "hispanic_male"])
    "unknown group 'asain_female'. Did you mean 'asian_female'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=2, cutoff=0.6)
    prefix = f"{where}: " if where else ""
    message = f"{prefix}unknown {kind} {name!r}."
    if near:
        message += " Did you mean " + " or ".join(repr(n) for n in near) + "?"
    elif names:
        shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
        message += f" Known: {shown}."
    if hint:
        message += f" {hint}"
    return message


def name_problem(name: object) -> str:
    """Why something cannot name a file of a run; empty when it can.

    >>> name_problem("gender-2"), name_problem("../x")
    ('', 'letters, digits, "_", "-" and "." (not first) are accepted')
    >>> name_problem("aux")
    'Windows keeps this name for itself'
    """
    if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]{0,99}", name):
        return 'letters, digits, "_", "-" and "." (not first) are accepted'
    if re.fullmatch(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", name, re.IGNORECASE):
        return "Windows keeps this name for itself"
    return "it must not end with a dot" if name.endswith(".") else ""


def bare(text: str) -> str:
    """Text in which no address has a user name or password.

    >>> bare("Looking in https://me:hidden@host/simple")
    'Looking in https://host/simple'
    """
    return re.sub(r"(?<=://)[^\s/?#]*@", "", text)


def need(module: str, *, extra: str, what: str) -> ModuleType:
    """Import an optional module, or say how to install it. The only optional-import code."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(
            f"{what} needs {module.split('.')[0]!r}, which is not installed ({error}). "
            f"Install it with: pip install 'evenhand[{extra}]'"
        ) from error

"""How this user calls the program: what is printed as a command runs where it was printed.

Messages, stories and help name commands as `evenhand show RUN`. Before a text reaches the terminal,
`runnable` puts in the words that work for whoever reads it there.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

NAME = "evenhand"
PARTS = {"view": ("web", ("uvicorn", "starlette"))}
"""Optional parts by the command that needs them: the extra, and its modules."""
WORD = r"""(?:'[^']*'|"[^"]*"|[^\s#'"`<>()])+"""
BEFORE = r"(?<![\w/\\.-])(?<!-m )"
"""Not a part of a path, and not `python -m evenhand` already."""


def runnable(text: str, *, installing: bool = True) -> str:
    """Return a text with its commands as this user can type them.

    Args:
        installing: where the part that a command needs is missing, install it in the same line.

    >>> runnable("evenhand finds nothing")
    'evenhand finds nothing'
    """
    if NAME in text:
        text = _commands().sub(lambda m: _replaced(m, installing), text)
    return re.sub(rf"{BEFORE}pip install ", lambda _: f"{installer()} install ", text)


@functools.cache
def _commands() -> re.Pattern[str]:
    """Return the pattern of a command in a text; one that needs a part with all of its words."""
    from evenhand.cli.main import command_names

    names = command_names() - PARTS.keys()
    whole = rf"(?P<name>{'|'.join(PARTS)})\b(?P<words>(?: {WORD})*)"
    return re.compile(rf"{BEFORE}{NAME} (?:{whole}|(?=(?:{'|'.join(sorted(names))})\b))")


def _replaced(match: re.Match[str], installing: bool) -> str:
    """Return the runnable form of one command, with the installation of a part that it lacks."""
    name = match["name"]
    command = f"{program()} {match[0].removeprefix(f'{NAME} ')}"
    extra, modules = PARTS.get(name, ("", ()))
    if installing and not all(map(_is_installed, modules)):
        places = [word for word in re.findall(WORD, match["words"]) if not word.startswith("-")]
        if _in_clone(name):
            command = " ".join([f"make {name}", *(f"RUN={place}" for place in places[:1])])
        else:
            command = f"{installer()} install '{NAME}[{extra}]' && {command}"
    return _place() + command


def _is_installed(module: str) -> bool:
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True


def _place() -> str:
    """Return what leads from the user's folder to this one, where make has changed it (make -C)."""
    if "MAKELEVEL" not in os.environ:
        return ""
    flags = os.environ.get("MAKEFLAGS", "").split(" ")[0]
    here = os.getcwd()
    shell = os.environ.get("PWD", here)
    moved = "w" in flags or os.path.realpath(shell) != os.path.realpath(here)
    return f"cd {shlex.quote(here)} && " if moved else ""


def _in_clone(target: str) -> bool:
    """Return whether the working folder is a clone that this environment was made in by make."""
    makefile = Path("Makefile")
    return (
        shutil.which("make") is not None
        and Path(sys.prefix).resolve() == Path(".venv").resolve()
        and makefile.is_file()
        and f"\n{target}:" in makefile.read_text(encoding="utf-8", errors="replace")
    )


def program() -> str:
    """Return what this user types for `evenhand`: the name, a path, or python -m evenhand."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None and spec.name == f"{NAME}.__main__":
        return f"{python()} -m {NAME}"
    started = Path(sys.argv[0])
    if started.stem != NAME or started.name == sys.argv[0]:
        return NAME  # found by the shell, or inside another program
    there = shutil.which(NAME)
    if there is not None and Path(there).resolve() == started.resolve():
        return NAME
    return shlex.quote(sys.argv[0])


def python() -> str:
    """Return what this user types for the interpreter that runs."""
    for name in ("python", "python3"):
        there = shutil.which(name)
        if there is not None and os.path.abspath(there) == os.path.abspath(sys.executable):
            return name
    return shlex.quote(sys.executable)


def installer() -> str:
    """Return what this user types for the pip of this environment."""
    there = shutil.which("pip")
    if there is not None and os.path.dirname(there) == os.path.dirname(sys.executable):
        return "pip"
    return f"{python()} -m pip"

"""Docstrings as Markdown wants them: examples become code, joined parameters become several.

In the source `>>>` lines stand after a sentence, and `low, high: the interval` describes two
parameters at once. Both read well there; Markdown would take the first for a quotation, and the
reference would look for a parameter called "low, high".
"""

from __future__ import annotations

import re
from typing import Any

import griffe

JOINED = re.compile(r"^( +)(\*{0,2}\w+(?:, \*{0,2}\w+)+): (.*)$")


def fenced(text: str) -> str:
    r"""Doctest lines, up to the next empty line, as a block of code.

    >>> fenced("Twice.\n>>> 1 + 1\n2\n\nEnd.").split("\n")
    ['Twice.', '', '```pycon', '>>> 1 + 1', '2', '```', '', 'End.']
    """
    out: list[str] = []
    inside = False
    for line in [*text.split("\n"), ""]:
        if line.lstrip().startswith(">>>") and not inside:
            indent = line[: len(line) - len(line.lstrip())]
            out += ["", f"{indent}```pycon"]
            inside = True
        elif inside and not line.strip():
            out.append(f"{indent}```")
            inside = False
        out.append(line)
    return "\n".join(out[:-1])


def parted(text: str) -> str:
    """One line for each of several parameters that share a description.

    >>> parted("    low, high: the interval.")
    '    low: the interval.\\n    high: the interval.'
    """
    out = []
    for line in text.split("\n"):
        found = JOINED.match(line)
        names = found[2].split(", ") if found else []
        out += [f"{found[1]}{name}: {found[3]}" for name in names] if found else [line]
    return "\n".join(out)


class AsMarkdown(griffe.Extension):
    """Rewrites every docstring when it is loaded."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = parted(fenced(obj.docstring.value))

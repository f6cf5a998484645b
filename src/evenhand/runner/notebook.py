"""Progress in a notebook: one bar per ask, drawn in place by IPython itself (no widgets needed)."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

EVERY = 0.2
"""Seconds between two drawings."""


def in_notebook() -> bool:
    """Whether a kernel with a front end runs this, not a plain interpreter or terminal."""
    ipython = sys.modules.get("IPython")
    shell: Any = ipython.get_ipython() if ipython is not None else None
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


class NotebookProgress:
    """One line per ask: label, bar, inputs done, seconds left."""

    def __init__(self) -> None:
        self._label, self._total, self._done, self._first = "", 0, 0, 0
        self._begun = self._drawn = 0.0
        self._handle: Any = None

    def start(self, label: str, total: int, done: int) -> None:
        self._label, self._total, self._done, self._first = label, total, done, done
        self._begun, self._handle = time.monotonic(), None
        self._draw()

    def advance(self, inputs: int) -> None:
        self._done += inputs
        if time.monotonic() - self._drawn >= EVERY:
            self._draw()

    def finish(self) -> None:
        self._draw()

    def bar(self) -> str:
        """The bar as HTML.

        >>> bar = NotebookProgress()
        >>> bar._label, bar._total, bar._done = "choose", 4, 1
        >>> "1 of 4" in bar.bar()
        True
        """
        share = self._done / self._total if self._total else 1.0
        spent, made = time.monotonic() - self._begun, self._done - self._first
        left = spent / made * (self._total - self._done) if made else None
        told = f"{self._done:,} of {self._total:,} inputs"
        if left is not None and self._done < self._total:
            told += f", about {left:,.0f} s left"
        return (
            '<div style="font-family:sans-serif;font-size:13px">'
            f'<span style="display:inline-block;min-width:11em">{escape(self._label)}</span> '
            f'<progress value="{share:.4f}" max="1" style="width:16em"></progress> {told}</div>'
        )

    def _draw(self) -> None:
        from IPython.display import display

        self._drawn = time.monotonic()
        made = {"text/html": self.bar(), "text/plain": f"{self._label}: {self._done}/{self._total}"}
        if self._handle is None:
            self._handle = display(made, raw=True, display_id=True)
        else:
            self._handle.update(made, raw=True)

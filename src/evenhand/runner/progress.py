"""What the runner tells whoever watches: how much there is, how much is done."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A listener for one ask after the other."""

    def start(self, label: str, total: int, done: int) -> None:
        """An ask of `total` distinct inputs begins; `done` of them were finished before."""

    def advance(self, inputs: int) -> None:
        """This many more inputs are scored and safely stored."""

    def finish(self) -> None:
        """The ask is complete."""


class Silent:
    """Says nothing (the default from Python)."""

    def start(self, label: str, total: int, done: int) -> None:
        pass

    def advance(self, inputs: int) -> None:
        pass

    def finish(self) -> None:
        pass


def usual() -> Progress:
    """What suits the place: a bar in a notebook, silence elsewhere."""
    from evenhand.runner.notebook import NotebookProgress, in_notebook

    return NotebookProgress() if in_notebook() else Silent()

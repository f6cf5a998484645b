"""What a training command is: settings with the files they need, and one call that trains.

A command class derives from the settings of its training and adds files and folders. It is one
line of `plugins.TRAININGS`; its docstring is the command's help, its fields are the options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from evenhand.probes.reading import Shown
from evenhand.runner.progress import Progress
from evenhand.settings import Settings
from evenhand.train.common import Say, Training

T = TypeVar("T", bound=Training)


@dataclass(frozen=True)
class Trained:
    """The card of what was trained as JSON values, and what to tell people about it."""

    card: Mapping[str, Any]
    shown: tuple[Shown, ...]


class Command(Settings):
    """What every training command has."""

    positional: ClassVar[tuple[str, ...]] = ("model",)

    out: Path = Field(description="New folder for what is trained.")

    def train_now(self, say: Say, progress: Progress) -> Trained:
        """Train and save."""
        raise NotImplementedError

    def settings(self, kind: type[T]) -> T:
        """Those of the training alone, without files and folders."""
        return kind(**{name: getattr(self, name) for name in kind.model_fields})


class EncoderCommand(Command):
    """What the trainings of an encoder have."""

    model: str = Field(description="An encoder: a folder or Hub id.")
    dev: Path = Field(description="Like --train, used to choose the best epoch, or to judge each.")
    device: str | None = Field(default=None, description="cpu, cuda; default: a GPU if present.")

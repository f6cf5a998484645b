"""Which prompt and which draw every row of a generation run asks for.

Prompts of one axis and key stand side by side, since their texts are compared; of many draws a
thousand are asked for each of them, then the next thousand. So texts that are compared are never
far apart, however many draws there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

DRAWS = 1_000
Codes = npt.NDArray[np.integer[Any]]


class Asked(Protocol):
    """What is known of a prompt."""

    @property
    def axis(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Piece:
    """Rows from `start` on: prompts [first, first + prompts) of one unit with `draws` draws each,
    the last ones of that unit or not."""

    start: int
    unit: int
    first: int
    prompts: int
    draws: int
    last: bool

    @property
    def stop(self) -> int:
        return self.start + self.prompts * self.draws


@dataclass(frozen=True)
class Layout:
    """Prompts by unit (those of one axis and key), and how many draws each has.

    >>> from types import SimpleNamespace as P
    >>> made = Layout.of([P(axis="x", key=k) for k in ("1", "2", "1")], draws=2)
    >>> made.of_rows(0, 6)[0].tolist(), made.of_rows(2, 5)[1].tolist()
    ([0, 0, 1, 1, 2, 2], [0, 1, 0])
    """

    prompts: tuple[Any, ...]
    first: Codes
    """The first prompt of every unit, and the end."""
    draws: int

    @classmethod
    def of(cls, prompts: Sequence[Asked], draws: int) -> Layout:
        units: dict[tuple[str, str], list[Asked]] = {}
        for prompt in prompts:
            units.setdefault((prompt.axis, prompt.key), []).append(prompt)
        sizes = [len(unit) for unit in units.values()]
        return cls(tuple(p for unit in units.values() for p in unit), np.cumsum([0, *sizes]), draws)

    def __len__(self) -> int:
        return len(self.prompts) * self.draws

    @cached_property
    def _steps(self) -> Codes:
        """Draws of each prompt at which pieces begin, and the end."""
        return np.asarray([*range(0, self.draws, DRAWS), self.draws], np.int64)

    @cached_property
    def columns(self) -> dict[str, pa.Array]:
        """What is known of the prompts."""
        names = ("axis", "group", "key", "text")
        return {n: pa.array([getattr(p, n) for p in self.prompts], pa.string()) for n in names}

    @cached_property
    def ends(self) -> Codes:
        """Rows at which pieces end."""
        sizes, begins = np.diff(self.first)[:, None], self.first[:-1, None] * self.draws
        return np.asarray((begins + sizes * self._steps[None, 1:]).ravel(), np.int64)

    def pieces(self, start: int, stop: int) -> Iterator[Piece]:
        """The pieces of rows [start, stop), which begin and end with one."""
        ends = self.ends
        low, high = np.searchsorted(ends, [start, stop], side="right")
        count = len(self._steps) - 1
        for at in range(int(low), int(high)):
            unit, step = divmod(at, count)
            first, after = (int(n) for n in self.first[unit : unit + 2])
            width = int(self._steps[step + 1] - self._steps[step])
            begin = int(ends[at]) - (after - first) * width
            yield Piece(begin, unit, first, after - first, width, step == count - 1)

    def of_rows(self, start: int, stop: int) -> tuple[Codes, Codes]:
        """Prompt and draw of each row."""
        rows = np.arange(start, stop)
        unit = np.searchsorted(self.first[1:] * self.draws, rows, side="right")
        size = np.diff(self.first)[unit]
        offset = rows - self.first[unit] * self.draws
        step = offset // (size * DRAWS)
        width = np.minimum(DRAWS, self.draws - step * DRAWS)
        prompt, draw = np.divmod(offset - step * size * DRAWS, width)
        return self.first[unit] + prompt, step * DRAWS + draw

    def rows_of(self, prompt: int) -> Codes:
        """Rows of a prompt's first draws, a thousand at most."""
        unit = int(np.searchsorted(self.first, prompt, side="right")) - 1
        first, width = int(self.first[unit]), min(DRAWS, self.draws)
        begin = first * self.draws + (prompt - first) * width
        return np.arange(begin, begin + width)

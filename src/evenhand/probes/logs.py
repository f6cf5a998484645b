"""What another program's log says of a model's answers, in a form that probes' readers can take.

A reader that knows an item shape of such logs overrides `Reader.from_log`: it gives itself with the
table filled in, None where the items are something else, or raises where they are its own and yet
cannot be measured. Fields are taken by their names; nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One item of a log.

    Attributes:
        doc: the item as the task had it.
        asked: pairs of (text, continuation) that were scored; empty for generated answers.
        logprobs: of each continuation.
        answer: what was generated; None where likelihoods were asked for.
        scored: what the task's own scorer noted beside its score.
    """

    doc: Mapping[str, Any]
    asked: tuple[tuple[str, str], ...] = ()
    logprobs: tuple[float, ...] = ()
    answer: str | None = None
    scored: Mapping[str, Any] | None = None

    @property
    def likeliest(self) -> int:
        """The option of highest likelihood; -1 where there is none, or two are alike."""
        if not self.logprobs or any(math.isnan(v) for v in self.logprobs):
            return -1
        best = max(self.logprobs)
        return self.logprobs.index(best) if self.logprobs.count(best) == 1 else -1


@dataclass(frozen=True)
class Log:
    """The items of one task in one file.

    Attributes:
        source: the file.
        program: which wrote it.
        task: as that program calls it; "" where the file does not say.
        model: whose answers; "" where the file does not say.
    """

    source: str
    program: str
    samples: Sequence[Sample]
    task: str = ""
    model: str = ""

    def have(self, *fields: str) -> bool:
        """Whether every item has these fields."""
        return bool(self.samples) and all({*fields} <= {*s.doc} for s in self.samples)

    def column(self, field: str) -> list[Any]:
        """A field of every item."""
        return [sample.doc.get(field) for sample in self.samples]

    @property
    def likelihoods(self) -> bool:
        """Whether every item has log-likelihoods."""
        return all(sample.logprobs for sample in self.samples)

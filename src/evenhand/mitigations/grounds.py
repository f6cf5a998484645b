"""What a judgement rests on, apart from the models: facts, numbers item by item, and two audits.

Findings are computed from this alone, and it is kept in the run folder (`grounds.parquet`), so that
they can be computed once more where neither model is at hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from evenhand.runs.record import Run

Floats = npt.NDArray[np.float64]
NAME = "grounds"
COLUMNS = pa.schema(
    [("name", pa.string()), ("text", pa.string()), ("numbers", pa.list_(pa.float64()))]
)


@dataclass(frozen=True)
class Grounds:
    """Settled when it is made: what is computed from it is what a reader of the file computes.

    Attributes:
        model: name of the model that was mitigated.
        facts: JSON values; `settings` among them.
        numbers: columns of numbers by name.
        audits: the runs before and after, where the family makes some.
    """

    model: str
    facts: Mapping[str, Any]
    numbers: Mapping[str, Floats]
    audits: tuple[Run, Run] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", json.loads(self._text()))
        settled = {k: np.asarray(v, np.float64).ravel() for k, v in self.numbers.items()}
        object.__setattr__(self, "numbers", settled)

    def _text(self) -> str:
        return json.dumps(self.facts, default=_value)

    def codes(self, name: str) -> npt.NDArray[np.int64] | None:
        """Numbers that say which level of a factor an item has; None where there are none."""
        return self.numbers[name].astype(np.int64) if name in self.numbers else None

    def as_table(self) -> pa.Table:
        """For the run folder; the audits have folders of their own."""
        rows: list[dict[str, Any]] = [
            {"name": "model", "text": self.model},
            {"name": "facts", "text": self._text()},
            *({"name": k, "numbers": v.tolist()} for k, v in self.numbers.items()),
        ]
        return pa.Table.from_pylist(rows, schema=COLUMNS)

    @classmethod
    def read(cls, table: pa.Table, audits: tuple[Run, Run] | None) -> Grounds:
        """Read back what `as_table` gave."""
        rows = {row["name"]: row for row in table.to_pylist()}
        model, facts = rows.pop("model")["text"], json.loads(rows.pop("facts")["text"])
        return cls(model, facts, {k: row["numbers"] for k, row in rows.items()}, audits)


def _value(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)

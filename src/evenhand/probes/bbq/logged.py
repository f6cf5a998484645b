"""BBQ from other programs' logs: their items are BBQ's rows, so that no file of it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, InstanceOf

from evenhand.errors import DataError
from evenhand.probes.bbq.editions.parrish import EDITION, items_of
from evenhand.probes.bbq.files import parse_answer
from evenhand.probes.bbq.items import Item
from evenhand.probes.bbq.measure import Answered, BbqReader
from evenhand.probes.bbq.targets import read_published
from evenhand.probes.logs import Log, Sample

FIELDS = (
    "example_id",
    "question_index",
    "question_polarity",
    "context_condition",
    "category",
    "answer_info",
    "additional_metadata",
    "context",
    "question",
    "ans0",
    "ans1",
    "ans2",
    "label",
)


class LoggedBbq(BbqReader):
    """The reader of BBQ with questions and answers from a log."""

    log: InstanceOf[Log] = Field(description="The log.")
    predictions: Any = Field(None, description="In the log.")
    data: Path = Field(Path(), description="Folder with BBQ's table of stereotyped people.")

    def answered(self) -> Answered:
        numbered = enumerate((sample.doc for sample in self.log.samples), 1)
        items = items_of(numbered, read_published(self.data), self.log.source)
        if len({item.id for item in items}) < len(items):
            raise DataError(f"{self.log.source}: the same question occurs twice.")
        chosen = [_taken(s, i) for s, i in zip(self.log.samples, items)]
        return Answered(EDITION, len(items), items, chosen, 0)


def logged(log: Log, given: Mapping[str, Any]) -> LoggedBbq | None:
    """The reader of a log whose items are BBQ's rows."""
    if not log.have(*FIELDS):
        return None
    folder = Path(given.get("data") or "")
    told = {"log": log, "data": folder, "predictions": Path(log.source)}
    return LoggedBbq.model_validate(told)


def _taken(sample: Sample, item: Item) -> int:
    """The option of the likeliest text, or of the answer in words; -1 where none is named."""
    if not sample.logprobs:
        return parse_answer(sample.answer, item)
    best = sample.likeliest
    return -1 if best < 0 else parse_answer(sample.asked[best][1].strip(), item)

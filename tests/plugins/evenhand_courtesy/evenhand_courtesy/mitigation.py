"""A mitigation of phrasebooks: their leans are taken away, wholly or in part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.mitigations import saved
from evenhand.mitigations.base import Fitted, Judgement, Mitigation, Note, quiet
from evenhand.models.loading.saved import read_facts
from evenhand.models.protocol import Model
from evenhand.runner.ask import Ask
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand_courtesy.model import Phrasebook
from evenhand_courtesy.probe import Courtesy


class EvenTone(Mitigation):
    """Takes leans out of a phrasebook."""

    name: ClassVar[str] = "even-tone"
    title: ClassVar[str] = "Is everybody greeted alike now?"
    methods: ClassVar[Mapping[str, str]] = {"even-tone": "made for evenhand's tests"}
    kinds: ClassVar[tuple[str, ...]] = ("phrasebook",)
    cards: ClassVar[tuple[MetricCard, ...]] = (
        MetricCard("gap_change", "change of the courtesy gap", "below 0: a smaller gap"),
    )

    method: str = "even-tone"
    share: float = Field(1.0, ge=0, le=1, description="even-tone: how much of a lean to take.")

    def fit(
        self, model: Model, *, texts: Sequence[str] | None = None, note: Note = quiet
    ) -> Evened:
        self.require_kind(model)
        return Evened(self, model, {"share": self.share, "notes": []})

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        facts = read_facts(folder)
        saved.check_base(folder, facts, base)
        return evened(base, float(facts["share"]), saved.name_of(facts, base))


def evened(model: Model, share: float, name: str) -> Phrasebook:
    assert isinstance(model, Phrasebook)
    made = Phrasebook({term: (1 - share) * lean for term, lean in model.leans.items()}, name)
    made.mitigations = (*model.mitigations, f"even-tone:{share}")
    return made


@dataclass(frozen=True)
class Evened(Fitted):
    """How much is taken from the leans of one phrasebook."""

    def applied(self, model: Model) -> Model:
        return evened(model, self.facts["share"], self.title)

    def save(self, folder: str | Path) -> None:
        saved.write(Path(folder), self, self.facts)

    def judged(self, before: Model, after: Model, **places: Any) -> Judgement:
        gaps = [
            {f.attribute: f.value for f in Courtesy().run(Ask(model), seed=0).findings}
            for model in (before, after)
        ]
        rows = [{"word": w, "before": gap, "after": gaps[1][w]} for w, gap in gaps[0].items()]
        change = sum(abs(r["after"]) - abs(r["before"]) for r in rows) / len(rows)
        said = f"The courtesy gap changes by {change:+.2f} nats a word."
        claim = Finding("mitigation/gap", "mitigation", "gap_change", change, said, n=len(rows))
        return Judgement([claim], {"gaps": rows}, buys=said)

"""The family that re-weights what a language model says: nothing is fitted, nothing trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.errors import ModelError
from evenhand.mitigations import saved
from evenhand.mitigations.base import Fitted, Note
from evenhand.mitigations.proof import PROOF_CARDS, Proved, ProvedMitigation
from evenhand.models.loading.saved import FACTS, read_facts
from evenhand.models.protocol import Model
from evenhand.runs.card import MetricCard


class ReweightingMitigation(ProvedMitigation):
    """Words that become likelier once a text is announced as harmful are made less likely."""

    name: ClassVar[str] = "reweighting"
    kinds: ClassVar[tuple[str, ...]] = ("masked", "causal")
    methods: ClassVar[Mapping[str, str]] = {"reweighting": "Schick et al. 2021 (Self-Debias)"}
    cards: ClassVar[tuple[MetricCard, ...]] = PROOF_CARDS

    method: str = "reweighting"
    axis: str = Field("gender", description="gender, religion, race, or any word.")
    decay: float = Field(50.0, description="reweighting: lambda.")

    def fitted(self, model: Any, texts: list[str] | None, note: Note) -> Fitted:
        from evenhand.mitigations.reweighting.edit import for_axis

        told = {"reweighting": asdict(for_axis(self.axis, self.decay))}
        facts = {"notes": [], "settings": self.model_dump(mode="json"), **told}
        fitted = Reweighted(self, model, facts)
        fitted.applied(model)  # refuses what cannot be re-weighted before anything is written
        return fitted

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        from evenhand.mitigations.reweighting.edit import Announced, reweighted

        facts = read_facts(folder)
        saved.check_base(folder, facts, base)
        try:
            told = Announced(**facts["reweighting"])
        except (KeyError, TypeError) as error:
            raise ModelError(f"{folder}/{FACTS}: damaged ({error}).") from error
        made: Model = reweighted(base, told, saved.name_of(facts, base))
        return made


@dataclass(frozen=True)
class Reweighted(Proved):
    """An announcement for one model."""

    def applied(self, model: Model) -> Model:
        from evenhand.mitigations.reweighting.edit import Announced, reweighted

        made: Model = reweighted(model, Announced(**self.facts["reweighting"]), self.title)
        return made

    def save(self, folder: str | Path) -> None:
        saved.write(Path(folder), self, self.facts)

"""The family that continues training: counterfactual augmentation, dropout, and their control."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.errors import ModelError, SpecError
from evenhand.mitigations import saved
from evenhand.mitigations.base import Fitted, Note, spec_of
from evenhand.mitigations.proof import PROOF_CARDS, AuditedMitigation, JudgedByAudits
from evenhand.models.protocol import LoadOptions, Model
from evenhand.runs.card import MetricCard
from evenhand.writing import drafted


class TrainingMitigation(AuditedMitigation):
    """A masked language model trained on; what comes out is an ordinary checkpoint."""

    name: ClassVar[str] = "training"
    kinds: ClassVar[tuple[str, ...]] = ("masked",)
    methods: ClassVar[Mapping[str, str]] = {
        "cda": "Zmigrod et al. 2019; Webster et al. 2020",
        "dropout": "Webster et al. 2020",
        "plain": "Devlin et al. 2019",
    }
    only_for: ClassVar[Mapping[str, tuple[str, ...]]] = {"sides": ("cda",)}
    cards: ClassVar[tuple[MetricCard, ...]] = PROOF_CARDS

    method: str = "cda"
    axis: str = Field("gender", description="cda: gender or religion.")
    texts: Path | None = Field(
        None, description="Plain text, one passage a line: what it is trained on."
    )
    steps: int = Field(500, description="Optimiser steps.")
    sides: str = Field("two", description="cda: one or two.")

    def lexicons(self, kind: str) -> list[str]:
        return [*(["swap_terms"] if self.method == "cda" else []), *super().lexicons(kind)]

    def fitted(self, model: Any, texts: list[str] | None, note: Note) -> Fitted:
        """Train on `texts`, or on the file of the settings if there are none."""
        from evenhand.corpora.text import read_texts
        from evenhand.train.masked import MaskedTraining, train

        if model.describe()["mitigations"]:
            raise ModelError(
                f"method {self.method!r}: continues the training of a plain checkpoint, and "
                f"{model.name!r} has a mitigation on it. Train the underlying checkpoint instead."
            )
        if texts is None and self.texts is None:
            raise SpecError(
                f"method {self.method!r}: needs text to train on. Give: --texts FILE (texts)"
            )
        axis = self.axis if self.method == "cda" else "gender"
        recipe = MaskedTraining(
            method=self.method, axis=axis, sides=self.sides, steps=self.steps, seed=self.seed
        )
        passages = texts or read_texts(self.texts or Path(), limit=200_000, words=100)
        held = Path(tempfile.mkdtemp(prefix="evenhand-training-"))
        place = held / "model"
        device = str(model.device)
        base = spec_of(model)
        if model.held is not None:  # an object in memory: trained on from a copy
            base = str(held / "base")
            model.held.model.save_pretrained(base)
            model.held.tokenizer.save_pretrained(base)
        card = train(base, passages, place, recipe, device=device, say=note)
        facts = {"notes": [], "training": card, "settings": self.model_dump(mode="json")}
        fitted = Trained(self, model, facts, place)
        weakref.finalize(fitted, shutil.rmtree, held, ignore_errors=True)
        return fitted

    @classmethod
    def load(cls, folder: Path, base: Model) -> Model:
        """Load the saved checkpoint, which needs no base."""
        from evenhand.models.adapters.masked import MaskedModel

        options = LoadOptions(dtype=base.dtype, device=base.device)
        return MaskedModel(str(folder), folder.name, options)


@dataclass(frozen=True)
class Trained(JudgedByAudits):
    """A trained checkpoint, kept in a folder of its own until it is saved or forgotten."""

    place: Path

    def applied(self, model: Model) -> Model:
        from evenhand.models.adapters.masked import MaskedModel

        options = LoadOptions(dtype=model.dtype, device=model.device)
        return MaskedModel(str(self.place), self.title, options)

    def save(self, folder: str | Path) -> None:
        saved.check_free(Path(folder))
        with drafted(Path(folder)) as draft:
            shutil.copytree(self.place, draft, dirs_exist_ok=True)

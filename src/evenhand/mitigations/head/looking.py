"""Looking before editing: which tokens lie near a group, and can it be read off the states?

Settings that check themselves, a result, and the same run folder as a mitigation's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.errors import ModelError
from evenhand.mitigations.base import Judgement
from evenhand.mitigations.folder import Page, as_options, written
from evenhand.models.protocol import Model
from evenhand.runs.record import Run
from evenhand.settings import Settings

NEXT = ("What is behind it?", "How sure is that?", "What next?")


@dataclass(frozen=True)
class Seen:
    """What was seen: facts as JSON values, and the rows of one table."""

    settings: Look
    model: Model
    facts: dict[str, Any]
    judgement: Judgement

    def as_dict(self) -> dict[str, Any]:
        """One JSON object."""
        (rows,) = self.judgement.tables.values()
        return {**self.facts, self.settings.rows: list(rows)}

    def write(self, folder: Path) -> Run:
        """A run folder with a report."""
        asked = self.settings
        page = Page(
            family="head", label=asked.label, title=asked.title, paper="Liang et al. 2021",
            command=[asked.command, *as_options(asked)], settings=asked.model_dump(mode="json"),
            seed=getattr(asked, "seed", 0), as_published=getattr(asked, "as_published", False),
        )  # fmt: skip
        with written(folder, page, self.model) as give:
            give(replace(self.judgement, questions=(asked.title, *NEXT), proof=self.facts))
        return Run.open(folder)


class Look(Settings):
    """Base of both."""

    command: ClassVar[str]
    label: ClassVar[str]
    title: ClassVar[str]
    rows: ClassVar[str]

    axis: str = Field("gender", description="gender or religion.")

    def ready(self) -> None:
        """Refuse files that cannot be read, before a model is loaded."""

    def look(self, model: Model) -> Seen:
        """Ask a causal model."""
        if model.kind != "causal":
            raise ModelError(
                f"model {model.name!r} is of kind {model.kind!r}. Accepted: causal language "
                "models. For features of other models use: evenhand erase FILE.npz"
            )
        return self._look(model)

    def _look(self, model: Any) -> Seen:
        raise NotImplementedError


class Tokens(Look):
    """The tokens nearest to a group's words (the set S of Liang et al., Sec. 4.1)."""

    command: ClassVar[str] = "tokens"
    label: ClassVar[str] = "tokens"
    title: ClassVar[str] = "Which tokens lie near a group's words?"
    rows: ClassVar[str] = "tokens"

    vectors: str | None = Field(
        None, description="Word vectors (glove-6b-50d or a file); default: the model's own."
    )
    count: int = Field(500, ge=2, description="How many tokens, by rank.")
    components: int | None = Field(None, ge=1, description="Of the subspace.")
    as_published: bool = Field(
        False, description="The released cosine thresholds instead of ranks."
    )

    def ready(self) -> None:
        from evenhand.models.vectors.files import resolve_vectors

        if self.vectors:
            resolve_vectors(self.vectors)

    def _look(self, model: Any) -> Seen:
        from evenhand.mitigations.head.subspace import tokens_of
        from evenhand.models.vectors.files import open_vectors, resolve_vectors

        table = open_vectors(resolve_vectors(self.vectors)) if self.vectors else None
        found = tokens_of(
            model, self.axis, vectors=table, components=self.components, count=self.count,
            released=self.as_published,
        )  # fmt: skip
        rows = found.table(model)
        facts = {
            "axis": self.axis, "source": self.vectors or "own", "count": len(rows),
            "tokens_with_vector": found.known, "vocabulary": len(found.q),
            "explained": list(found.space.explained), "sets_used": len(found.space.used),
            "words_missing": list(found.space.missing), "words_pieced": list(found.space.pieced),
        }  # fmt: skip
        first = ", ".join(repr(row["token"]) for row in rows[:5])
        explained = ", ".join(f"{v:.0%}" for v in found.space.explained)
        told = Judgement(
            findings=[],
            tables={"tokens": rows},
            buys=f"{len(rows)} of {found.known:,} tokens with a vector; nearest: {first}.",
            costs=(f"{len(found.space.used)} definitional sets, from {facts['source']} vectors.",),
            sure=(
                f"The components explain {explained} of the variance.",
                "Being here means being near those words, not being biased.",
            ),
        )
        return Seen(self, model, facts, told)


class ContextAccuracy(Look):
    """How well a linear classifier reads a group from hidden states (Liang et al., Table 3).

    Trained on simple, diverse and sub-sequence contexts, tested on each.
    """

    command: ClassVar[str] = "context-accuracy"
    label: ClassVar[str] = "context_accuracy"
    title: ClassVar[str] = "Can the group be read from the model's states?"
    rows: ClassVar[str] = "rows"

    diverse: Path | None = Field(None, description="Folder with the released contexts (gender).")
    texts: Path | None = Field(None, description="Plain text to cut diverse contexts from instead.")
    contexts: int = Field(200, ge=20, description="Contexts per group and kind.")
    any_length: bool = Field(False, description="Do not match the groups' lengths (as released).")
    seed: int = Field(0, ge=0, description="Of draws, cuts and split.")

    def ready(self) -> None:
        self._data()

    def _data(self) -> Any:
        from evenhand.mitigations.head.context_accuracy import gather

        return gather(
            self.axis, diverse=self.diverse, texts=self.texts, count=self.contexts,
            match_length=not self.any_length, seed=self.seed,
        )  # fmt: skip

    def _look(self, model: Any) -> Seen:
        from evenhand.mitigations.head.context_accuracy import table

        found = table(model, self._data(), seed=self.seed)
        rows: Sequence[Any] = found["rows"]
        best = max((r for r in rows if r["features"] == "states"), key=lambda r: r["accuracy"])
        told = Judgement(
            findings=[],
            tables={"accuracy": rows},
            buys=(
                f"At best in {best['accuracy']:.0%} of held-out contexts ({best['test']}, trained "
                f"on {best['train']}); the largest group is {best['majority']:.0%} of them."
            ),
            costs=tuple(f"{n} {kind} contexts." for kind, n in found["contexts"].items()),
            sure=(
                f"95 % interval of that accuracy: {best['low']:.0%} to {best['high']:.0%}.",
                "Rows with features 'length' say how far the length of a context alone goes.",
            ),
        )
        return Seen(self, model, {k: v for k, v in found.items() if k != "rows"}, told)

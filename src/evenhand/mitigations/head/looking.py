"""Looking before editing: which tokens lie near a group, and can it be read from the states?

Each is a task with a result, and writes the same run folder as a mitigation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.errors import ModelError
from evenhand.mitigations.base import Judgement
from evenhand.mitigations.folder import Page, as_options, written
from evenhand.mitigations.head import context_accuracy, subspace
from evenhand.models.loading.resolver import DEFAULT_MODEL, resolve
from evenhand.models.protocol import LoadOptions
from evenhand.models.vectors.files import open_vectors, resolve_vectors
from evenhand.probes.reading import Result, Shown, Task, listed
from evenhand.strict import INLINE, OPTIONAL, UNWRITTEN

NEXT = ("What is behind it?", "How sure is that?", "What next?")
PLACES = ("model", "out", "dtype", "device")


@dataclass(frozen=True)
class Seen(Result):
    """What was seen, as JSON values; and its story, for people and the report."""

    model: str
    facts: dict[str, Any] = field(metadata=INLINE)
    rows: dict[str, Sequence[dict[str, Any]]] = field(metadata=INLINE)
    told: Judgement = field(metadata=UNWRITTEN)
    report: str | None = field(default=None, metadata=OPTIONAL)

    def shown(self) -> list[Shown]:
        (rows,) = self.rows.values()
        table = listed(f"{self.facts['axis']} on {self.model}", rows[:20], list(rows[0]))
        lines = (self.told.buys, *self.told.sure, f"Read it:   {self.report}" * bool(self.report))
        return [table, *(Shown(line) for line in lines if line)]


class Look(Task):
    """Base of both: settings of the model and of the folder."""

    positional: ClassVar[tuple[str, ...]] = ("model",)
    label: ClassVar[str]
    title: ClassVar[str]

    model: str = Field(DEFAULT_MODEL, description="A causal model (evenhand ls models).")
    axis: str = Field("gender", description="gender or religion.")
    out: Path | None = Field(None, description="Run folder with a report.")
    dtype: str | None = Field(None, description="float32, bfloat16, float16.")
    device: str | None = Field(None, description="cpu, cuda, cuda:1.")

    def work(self, say: Callable[[str], None]) -> Seen:
        material = self.material()  # before a model is loaded
        model: Any = resolve(self.model, options=LoadOptions(self.dtype, self.device))
        if model.kind != "causal":
            raise ModelError(
                f"model {model.name!r} is of kind {model.kind!r}. Accepted: causal language "
                "models. How well a group is read from others, before and after, is shown by: "
                "evenhand mitigate MODEL --method leace --out DIR"
            )
        facts, rows, told = self.look(model, material)
        report = None if self.out is None else str(self._write(self.out, model, facts, told))
        return Seen(self.model, facts, rows, told, report)

    def _write(self, out: Path, model: Any, facts: dict[str, Any], told: Judgement) -> Path:
        asked = self.model_dump(mode="json", exclude=set(PLACES))
        page = Page(
            family="head",
            label=self.label,
            title=self.title,
            paper="Liang et al. 2021",
            command=[self.name, *as_options(self, PLACES)],
            settings=asked,
            seed=asked.get("seed", 0),
            as_published=asked.get("as_published", False),
        )
        with written(out, page, model) as give:
            give(told, facts, (self.title, *NEXT))
        return out / "report.html"

    def material(self) -> Any:
        """What is looked with; refused where it cannot be read."""
        raise NotImplementedError

    def look(self, model: Any, material: Any) -> tuple[dict[str, Any], dict[str, Any], Judgement]:
        """Facts, rows by their name, and the story."""
        raise NotImplementedError


class Tokens(Look):
    """The set S of Liang et al. 2021, Sec. 4.1."""

    name: ClassVar[str] = "tokens"
    help: ClassVar[str] = "List the tokens nearest to a group's words (Liang et al., Sec. 4.1)."
    label: ClassVar[str] = "tokens"
    title: ClassVar[str] = "Which tokens lie near a group's words?"

    vectors: str | None = Field(
        None, description="Word vectors (glove-6b-50d or a file); default: the model's own."
    )
    count: int = Field(500, ge=2, description="How many tokens, by rank.")
    components: int | None = Field(None, ge=1, description="Components of the subspace.")
    as_published: bool = Field(
        False, description="The released cosine thresholds instead of ranks."
    )

    def material(self) -> Any:
        return open_vectors(resolve_vectors(self.vectors)) if self.vectors else None

    def look(self, model: Any, material: Any) -> tuple[dict[str, Any], dict[str, Any], Judgement]:
        found = subspace.tokens_of(
            model,
            self.axis,
            vectors=material,
            components=self.components,
            count=self.count,
            released=self.as_published,
        )
        space, rows = found.space, found.table(model)
        facts = {
            "axis": self.axis,
            "source": self.vectors or "own",
            "count": len(rows),
            "tokens_with_vector": found.known,
            "vocabulary": len(found.q),
            "explained": list(space.explained),
            "sets_used": len(space.used),
            "words_missing": list(space.missing),
            "words_pieced": list(space.pieced),
        }
        first = ", ".join(repr(row["token"]) for row in rows[:5])
        explained = ", ".join(f"{100 * v:.0f} %" for v in space.explained)
        told = Judgement(
            [],
            {"tokens": rows},
            f"{len(rows)} of {found.known:,} tokens with a vector; nearest: {first}.",
            (f"{len(space.used)} definitional sets, from {facts['source']} vectors.",),
            (
                f"The components explain {explained} of the variance.",
                "Being here means being near those words, not being biased.",
            ),
        )
        return facts, {"tokens": rows}, told


class ContextAccuracy(Look):
    """Table 3 of Liang et al. 2021."""

    name: ClassVar[str] = "context-accuracy"
    help: ClassVar[str] = """How well a linear classifier reads a group from hidden states.

    Trained on simple, diverse and sub-sequence contexts, tested on each (Liang et al., Table 3);
    without --texts or --diverse, only on the simple ones, which are packaged.
    """
    label: ClassVar[str] = "context_accuracy"
    title: ClassVar[str] = "Can the group be read from the model's states?"

    diverse: Path | None = Field(None, description="Folder with the released contexts (gender).")
    texts: Path | None = Field(None, description="Plain text to cut diverse contexts from instead.")
    contexts: int = Field(200, ge=20, description="Contexts per group and kind.")
    any_length: bool = Field(False, description="Do not match the groups' lengths (as released).")
    seed: int = Field(0, ge=0, description="Seed of draws, cuts and split.")

    def material(self) -> Any:
        return context_accuracy.gather(
            self.axis,
            diverse=self.diverse,
            texts=self.texts,
            count=self.contexts,
            match_length=not self.any_length,
            seed=self.seed,
        )

    def look(self, model: Any, material: Any) -> tuple[dict[str, Any], dict[str, Any], Judgement]:
        found = context_accuracy.table(model, material, seed=self.seed)
        rows = found.pop("rows")
        best = max((r for r in rows if r["features"] == "states"), key=lambda r: r["accuracy"])
        told = Judgement(
            [],
            {"accuracy": rows},
            f"At best in {100 * best['accuracy']:.0f} % of held-out contexts ({best['test']}, "
            f"trained on {best['train']}); the largest group is {100 * best['majority']:.0f} % of "
            "them.",
            tuple(f"{n} {kind} contexts." for kind, n in found["contexts"].items()),
            (
                f"95 % interval of that accuracy: {100 * best['low']:.0f} % to "
                f"{100 * best['high']:.0f} %.",
                "Rows with features 'length' say how far the length of a context alone goes.",
            ),
        )
        return found, {"rows": rows}, told

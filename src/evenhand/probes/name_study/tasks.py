"""`evenhand names`: choose groups of names, check what else tells them apart, study vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from evenhand.errors import ModelError, SpecError
from evenhand.models.loading.resolver import resolve
from evenhand.probes.discovery.probe import GROUPS
from evenhand.probes.name_study.probe import NameStudy
from evenhand.probes.reading import Result, Seed, Shown, Task, listed
from evenhand.runner.ask import Ask
from evenhand.strict import INLINE
from evenhand.words.lexicons import groups as find
from evenhand.words.names import FREQUENCY, THRESHOLDS, as_lexicon, lint, read_names, select
from evenhand.writing import write_text

LEXICON = "A lexicon file of your own."
WHICH = "Groups; default: SODAPOP's."


@dataclass(frozen=True)
class Selected(Result):
    """Names by group."""

    groups: Mapping[str, Sequence[str]]

    def shown(self) -> Iterator[Shown]:
        rows = [[g, str(len(n)), ", ".join(n[:8])] for g, n in self.groups.items()]
        yield Shown("Names by group", ["group", "names", "first"], rows)


class SelectTask(Task):
    name = "select"
    help = """Choose names that are mostly given to one race or ethnicity and gender.

    Thresholds are those of SODAPOP, section 2: white and black .9, hispanic .8, asian .7.
    """
    positional = ("tables",)

    tables: tuple[Path, ...] = Field(description="Name tables: NYC, SSA, Rosenman, Census.")
    race: tuple[str, ...] = Field((), description="RACE=SHARE, e.g. asian=0.7 (repeatable).")
    gender: float = Field(0.9, description="Least share of the gender.")
    frequency: float = Field(FREQUENCY, description="Least number of bearers.")
    most: int | None = Field(None, ge=1, description="At most this many per group.")
    out: Path | None = Field(None, description="Write a lexicon file.")

    def work(self, say: Callable[[str], None]) -> Selected:
        groups = select(
            read_names(self.tables),
            thresholds=dict(map(_share, self.race)) or THRESHOLDS,
            **self.only("gender", "frequency", "most"),
        )
        if self.out:
            names = ", ".join(t.name for t in self.tables)
            source = f"Selected with evenhand names select from {names}"
            write_text(self.out, as_lexicon(groups, "Selected names", source))
        return Selected({g: [n.name for n in names] for g, names in groups.items()})


def _share(text: str) -> tuple[str, float]:
    name, _, share = text.partition("=")
    try:
        return name, float(share)
    except ValueError:
        raise SpecError(f"--race {text!r}: expected RACE=SHARE, e.g. asian=0.7") from None


@dataclass(frozen=True)
class Linted(Result):
    """What else differs between groups of names."""

    found: Mapping[str, Any] = field(metadata=INLINE)

    def shown(self) -> Iterator[Shown]:
        parts = (("Groups", "groups"), ("Largest differences (q over all pairs)", "confounds"))
        for title, part in parts:
            rows = self.found[part][:20]
            yield listed(title, rows, list(rows[0]) if rows else ())
        for row in self.found["overlaps"]:
            names = ", ".join(row["names"])
            yield Shown(f"In both {row['group_a']} and {row['group_b']}: {names}")


class LintTask(Task):
    name = "lint"
    help = (
        "Report what else differs between groups: letters, token pieces, frequency, shared names."
    )
    positional = ("groups",)

    groups: tuple[str, ...] = Field((), description=WHICH)
    lexicon: Path | None = Field(None, description=LEXICON)
    model: str | None = Field(None, description="Count the pieces that this tokenizer makes.")
    counts: Path | None = Field(None, description="A table with how often names occur.")

    def work(self, say: Callable[[str], None]) -> Linted:
        extra = (self.lexicon,) if self.lexicon else ()
        found = {g: group.terms for g, group in find(self.groups or GROUPS, extra=extra).items()}
        known = None
        if self.counts:
            known = {n.name: n.count for n in read_names([self.counts]).values()}
        pieces = _pieces(self.model) if self.model else None
        return Linted(lint(found, pieces=pieces, counts=known))


def _pieces(model: str) -> Any:
    loaded: Any = resolve(model)
    if not hasattr(loaded, "encode"):
        raise ModelError(f"model {model!r} has no tokenizer to count pieces with.")
    return lambda names: [len(i) for i in loaded.encode([f" {n}" for n in names], special=False)]


@dataclass(frozen=True)
class Studied(Result):
    """How well each axis is told from vectors of names."""

    model: str
    contexts: int
    axes: Sequence[Mapping[str, Any]]
    map: Sequence[Mapping[str, Any]]

    def shown(self) -> Iterator[Shown]:
        title = "Groups told from the pieces of names (names left out of training)"
        keys = (
            "axis",
            "accuracy",
            "low",
            "high",
            "train_accuracy",
            "null_mean",
            "null_p95",
            "p",
            "names",
        )
        yield listed(title, self.axes, keys)


class StudyTask(Task):
    name = "study"
    help = """Do a model's vectors know whose name it is? Race and gender from name embeddings.

    The vector of a name is the mean over its own pieces, read in contexts. With a report and a
    map of the names: evenhand probe name-study MODEL
    """
    positional = ("model", "groups")

    model: str = Field(description="A masked, causal or encoder model, or vectors.")
    groups: tuple[str, ...] = Field((), description=WHICH)
    contexts: str = Field("discovery_contexts", description="Contexts to put names into.")
    count: int = Field(12, ge=1, description="How many contexts.")
    lexicon: Path | None = Field(None, description=LEXICON)
    names: int | None = Field(None, ge=3, description="Names of each group.")
    permutations: int = Field(99, ge=19, description="Permuted groups.")
    seed: Seed = 0

    def work(self, say: Callable[[str], None]) -> Studied:
        probe = NameStudy(
            groups=self.groups or GROUPS,
            context_count=self.count,
            lexicon=str(self.lexicon) if self.lexicon else None,
            **self.only("contexts", "names", "permutations"),
        )
        made = probe.run(Ask(resolve(self.model)), self.seed)
        facts = made.summary
        return Studied(self.model, facts["contexts"], facts["axes"], made.tables["map"].to_pylist())

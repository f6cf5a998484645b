"""Do a model's vectors know whose name it is? The study of SODAPOP's section 2 as a probe.

Beside it `evenhand names`: choose groups of names, check what else tells them apart, study vectors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from evenhand.charts.builders import Listed, Mapped
from evenhand.compare.items import Items
from evenhand.compare.rows import Reported, Row, Test, claim
from evenhand.errors import ModelError, SpecError
from evenhand.models.loading.resolver import resolve
from evenhand.probes.base import Placebo, Probe, Way
from evenhand.probes.discovery.probe import GROUPS
from evenhand.probes.reading import Columns, Result, Seed, Shown, Task, listed
from evenhand.probes.shared.reach import too_few
from evenhand.requests import Embed
from evenhand.runner.ask import Ask
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import NAN, detectable, detectable_t, settled
from evenhand.strict import INLINE
from evenhand.words.lexicons import groups as find
from evenhand.words.lexicons.people import Group, names_of
from evenhand.words.names import (
    FREQUENCY,
    THRESHOLDS,
    as_lexicon,
    chance_of_halves,
    lint,
    name_requests,
    name_vectors,
    plane_table,
    predict_groups,
    read_names,
    select,
)
from evenhand.words.social_iqa import DESCRIBE, read_contexts
from evenhand.writing import write_text

LEAST = 3
"""Names that a group needs."""
SPLITS = 100
CARDS = (
    MetricCard(
        "accuracy",
        "accuracy",
        "0 to 1; what permuted groups give: names tell nothing",
        ideal=0.5,
        low=0,
        high=1,
        margin=0.1,
        margin_why="10 more of 100 names than permuted groups give",
        harm="those named: their group can be read from the vector of their name, and whatever is "
        "built on it can treat them by it",
        told=" ({about}): of 100 names, {size} more than by chance",
        scale="{size} of 100",
        per=100,
    ),
)
CHARTS = {
    "axes": Listed(
        "What can be read from a name's vector?",
        "Accuracy on names left out of training, beside what permuted groups give.",
        ("axis", "accuracy", "low", "high", "null_mean", "null_p95", "p", "q", "names"),
    ),
    "map": Mapped(
        "Map of names by their vectors",
        "Names with similar vectors stand close together (t-SNE; distances between far points "
        "mean little).",
    ),
}


class NameStudy(Probe):
    """Whether gender and race or ethnicity can be read from a model's vectors of first names."""

    name: ClassVar[str] = "name-study"
    title: ClassVar[str] = "Do the model's vectors of names tell the groups apart?"
    paper: ClassVar[str] = "An et al. 2023 (SODAPOP), Sec. 2"
    needs: ClassVar[tuple[str, ...]] = (Embed.kind,)
    detects: ClassVar[str] = "vectors of first names from which a group can be read"
    bound: ClassVar[str] = "a vector a name"
    cards: ClassVar = CARDS
    table: ClassVar[str] = "axes"
    hidden: ClassVar[tuple[str, ...]] = ("by_group",)

    groups: tuple[str, ...] = GROUPS
    """Groups of names: of the lexicons, or of `lexicon`."""
    names: int | None = Field(default=None, ge=3)
    """How many names of each group (the first ones); all when not given."""
    lexicon: str | None = None
    """A lexicon file of your own with further groups."""
    contexts: str = "discovery_contexts"
    """A packaged lexicon, a Social IQa file (JSON lines) or a CSV of your own."""
    context_count: int | None = Field(default=12, ge=1)
    question: str | None = DESCRIBE
    placeholder: str | None = None
    folds: int = Field(default=5, ge=2)
    permutations: int = Field(default=99, ge=19)

    def people(self) -> list[tuple[str, Group]]:
        """Names, each with its group."""
        return names_of(self.groups, self.names, self.lexicon)

    def lexicons(self) -> list[str]:
        return [self.lexicon or "sodapop_names"]

    def texts(self) -> list[str]:
        """Situations with their question, the name in both."""
        contexts = read_contexts(
            self.contexts,
            question=self.question,
            placeholder=self.placeholder,
            limit=self.context_count,
        )
        return [f"{c.context} {c.question}" for c in contexts]

    def gather(self, way: Way) -> Items:
        people, texts = self.people(), self.texts()
        facts = {
            "contexts": len(texts),
            "names": len(people),
            "notes": ["vectors are means over the pieces of the name, read in context"],
            "lexicons": self.lexicons(),
        }
        return name_items(people, facts=facts)

    def ask(self, items: Items, way: Way) -> Embed:
        return name_requests(items["name"].tolist(), self.texts())

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        return items.regarding(name_vectors(answers, items.size))

    def declare(self, items: Items) -> Iterator[Test]:
        for axis in axes_of(items):
            read_off = partial(self._accuracy, items, axis)
            yield Test(axis, "accuracy", {"axis": axis}, read_off)

    def _accuracy(self, items: Items, axis: str, *, family: int, rate: float) -> Reported:
        """How well one axis is told, over the names that have a place on it."""
        labels = items["group" if axis == "group" else f"_{axis}"].tolist()
        at = [k for k, label in enumerate(labels) if label is not None]
        options = {"folds": self.folds, "permutations": self.permutations, "seed": items.seed}
        scores = predict_groups(items.about[at], [labels[k] for k in at], **options)
        columns = {**scores, "q": NAN, "detectable": _detectable(scores, family, rate)}
        numbers = {name: scores[name] for name in ("error", "freedom", "low", "high", "p")}
        return Reported(
            scores["accuracy"],
            **numbers,
            detectable=columns["detectable"],
            units=scores["names"],
            ideal=scores["null_mean"],
            columns=columns,
        )

    def say(self, row: Row, items: Items, rows: Sequence[Row]) -> Iterator[Finding]:
        right = (
            f"right for {100 * row.value:.0f} % of names left out of training (permuted "
            f"groups {100 * row['null_mean']:.0f} %)"
        )
        above = row.value > row["null_mean"]
        told = "can be told" if above else "is told less often than by chance"
        yield claim(
            row,
            self.name,
            sentence=f"The {row['axis']} of a name {told} from the model's vector of it: {right}.",
            otherwise=(
                f"It was not detected that the {row['axis']} of a name can be told from the "
                f"model's vector of it: {right}."
            ),
            over="names",
            groups=tuple(row["by_group"]),
            attribute=f"{row['axis']} from vectors of names",
            floor=row["null_p95"],
            method=(
                f"logistic regression, {row['folds']} folds; t beside {row['permutations']} "
                "permutations of the groups"
            ),
            details={name: row[name] for name in ("train_accuracy", "by_group", "p_permuted")},
        )

    def too_small(self, items: Items) -> tuple[str, ...]:
        """Names are the sample, in every group."""
        least = min(Counter(items["group"].tolist()).values())
        note = too_few(least, "names in a group", len(axes_of(items)), self.rate)
        return (note,) if note else ()

    def checks(self, items: Items, rows: Sequence[Row], seed: int) -> tuple[Placebo, ...]:
        """Random halves of the largest group's names: there is nothing to tell."""
        group, size = Counter(items["group"].tolist()).most_common(1)[0]
        what = f"random halves of the names of {group}"
        if size < 2 * LEAST:
            return (Placebo(what, 0, 0, f"fewer than {2 * LEAST} names in every group"),)
        vectors = items.about[items.where(group=group)]
        alarms, tests = chance_of_halves(vectors, folds=self.folds, splits=SPLITS, seed=seed)
        return (Placebo(what, tests, alarms),)

    def beside(self, items: Items, rows: Sequence[Row], seed: int) -> tuple[Any, Any, Any]:
        """A map of the names."""
        names, groups = (items[name].tolist() for name in ("name", "group"))
        return {"map": plane_table(names, groups, items.about, seed).to_pylist()}, {}, ()


def name_items(people: Sequence[tuple[str, Group]], **beside: Any) -> Items:
    """Names with their groups; hidden columns hold the place of each on every axis."""
    axes = dict.fromkeys(axis for _, group in people for axis in group.axis)
    columns = {"name": [name for name, _ in people], "group": [group.name for _, group in people]}
    places = {f"_{axis}": [group.axis.get(axis) for _, group in people] for axis in axes}
    return Items({**columns, **places}, **beside)


def axes_of(items: Items) -> list[str]:
    """Axes on which at least two places are taken; the group itself when there is none."""
    axes = [name for name in items if name.startswith("_") and len(items.levels(name)) > 1]
    return [name[1:] for name in axes] or ["group"]


def _detectable(scores: Mapping[str, Any], tests: int, rate: float) -> float:
    """The distance from chance found in 80 of 100 runs.

    Chance has the spread of permuted groups; the nearer an accuracy to 1, the less it varies.
    """
    freedom, room = scores["freedom"], 1.0 - scores["null_mean"]
    seen = detectable(scores["error"], freedom, tests, rate)
    if math.isnan(seen):
        return seen
    half = detectable_t(freedom, rate / tests, power=0.5)
    critical = seen * half / detectable_t(freedom, rate / tests)
    rest = seen - critical
    return settled(lambda e: critical + rest * math.sqrt(max(0.0, 1 - (e / room) ** 2)), room)


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

    tables: ClassVar = (
        Columns(
            "Groups told from the pieces of names (names left out of training)",
            "axes",
            (
                *("axis", "accuracy", "low", "high", "train_accuracy"),
                *("null_mean", "null_p95", "p", "names"),
            ),
        ),
    )

    model: str
    contexts: int
    axes: Sequence[Mapping[str, Any]]
    map: Sequence[Mapping[str, Any]]


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
        run = probe.run(Ask(resolve(self.model)), self.seed)
        facts = run.summary
        return Studied(self.model, facts["contexts"], facts["axes"], run.tables["map"].to_pylist())

"""Do a model's vectors know whose name it is? The study of SODAPOP's section 2 as a probe."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.probes.base import Asker, Measured, Placebo, Preview, Probe
from evenhand.probes.discovery.probe import GROUPS
from evenhand.probes.name_study.cards import CARDS
from evenhand.probes.shared.estimates import claim
from evenhand.probes.shared.reach import too_few
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate, detectable, detectable_t, settled
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.words.lexicons.people import Group, names_of
from evenhand.words.names import (
    chance_of_halves,
    name_requests,
    name_vectors,
    plane_table,
    predict_groups,
)
from evenhand.words.social_iqa import DESCRIBE, read_contexts

LEAST = 3
"""Names that a group needs."""
SPLITS = 100


class NameStudy(Probe):
    """Whether gender and race or ethnicity can be read from a model's vectors of first names."""

    name: ClassVar[str] = "name-study"
    title: ClassVar[str] = "Do the model's vectors of names tell the groups apart?"
    paper: ClassVar[str] = "An et al. 2023 (SODAPOP), Sec. 2"
    needs: ClassVar[tuple[str, ...]] = (Embed.kind,)
    detects: ClassVar[str] = "vectors of first names from which a group can be read"
    bound: ClassVar[str] = "a vector a name"
    cards: ClassVar = CARDS

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
        found = read_contexts(
            self.contexts,
            question=self.question,
            placeholder=self.placeholder,
            limit=self.context_count,
        )
        return [f"{c.context} {c.question}" for c in found]

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        people, texts = self.people(), self.texts()
        requests = name_requests([n for n, _ in people], texts)
        return Preview(len(people), requests, requests.text[0], self.limits())

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        people = self.people()
        least = min(Counter(g.name for _, g in people).values())
        note = too_few(least, "names in a group", len(axes_of(people)), self.rate)
        return (note,) if note else ()

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        people, texts = self.people(), self.texts()
        vectors = name_vectors(ask, [n for n, _ in people], texts)
        rows = self.judged(vectors, people, seed)
        axes = pa.Table.from_pylist([{k: v for k, v in r.items() if k != "by_group"} for r in rows])
        return Measured(
            [self.claimed(row) for row in rows],
            pa.table({"name": [n for n, _ in people], "group": [g.name for _, g in people]}),
            {"axes": axes, "map": self._map(vectors, people, seed)},
            {
                "contexts": len(texts),
                "names": len(people),
                "axes": rows,
                "notes": ["vectors are means over the pieces of the name, read in context"],
                "lexicons": self.lexicons(),
            },
            (self._placebo(vectors, people, seed),),
        )

    def judged(
        self, vectors: np.ndarray, people: list[tuple[str, Group]], seed: int
    ) -> list[dict[str, Any]]:
        """How well each axis is told from vectors of names, with q over the axes."""
        rows = [self._axis(vectors, people, axis, seed) for axis in axes_of(people)]
        q = benjamini_hochberg([row["p"] for row in rows])
        return [
            {**row, "q": float(value), "detectable": self._seen(row, len(rows))}
            for row, value in zip(rows, q)
        ]

    def _seen(self, row: dict[str, Any], tests: int) -> float:
        """The distance from chance found in 80 of 100 runs.

        Chance has the spread of permuted groups; the nearer an accuracy to 1, the less it varies.
        """
        seen = detectable(row["error"], row["freedom"], tests, self.rate)
        told = seen * detectable_t(row["freedom"], self.rate / tests, power=0.5)
        told /= detectable_t(row["freedom"], self.rate / tests)
        room = 1.0 - row["null_mean"]
        return (
            settled(lambda e: told + (seen - told) * math.sqrt(max(0.0, 1 - (e / room) ** 2)), room)
            if seen == seen
            else seen
        )

    def _axis(
        self, vectors: np.ndarray, people: list[tuple[str, Group]], axis: str, seed: int
    ) -> dict[str, Any]:
        """How well one axis is told, over the names that have a place on it."""
        at = [i for i, (_, g) in enumerate(people) if axis == "group" or axis in g.axis]
        labels = [people[i][1].name if axis == "group" else people[i][1].axis[axis] for i in at]
        made = predict_groups(
            vectors[at], labels, folds=self.folds, permutations=self.permutations, seed=seed
        )
        return {"axis": axis, **made}

    def claimed(self, row: dict[str, Any]) -> Finding:
        """The finding of one axis."""
        right = (
            f"right for {100 * row['accuracy']:.0f} % of names left out of training (permuted "
            f"groups {100 * row['null_mean']:.0f} %)"
        )
        told = (
            "can be told"
            if row["accuracy"] > row["null_mean"]
            else "is told less often than by chance"
        )
        found = Estimate(
            row["accuracy"],
            row["error"],
            row["freedom"],
            row["low"],
            row["high"],
            row["p"],
            row["detectable"],
            row["names"],
            row["null_mean"],
        )
        return claim(
            f"{self.name}/{row['axis']}",
            "accuracy",
            found,
            sentence=f"The {row['axis']} of a name {told} from the model's vector of it: {right}.",
            otherwise=(
                f"It was not detected that the {row['axis']} of a name can be told from the "
                f"model's vector of it: {right}."
            ),
            units="names",
            over=("names",),
            q=row["q"],
            groups=tuple(row["by_group"]),
            attribute=f"{row['axis']} from vectors of names",
            floor=row["null_p95"],
            method=(
                f"logistic regression, {row['folds']} folds; t beside {row['permutations']} "
                "permutations of the groups"
            ),
            details={
                "train_accuracy": row["train_accuracy"],
                "by_group": row["by_group"],
                "p_permuted": row["p_permuted"],
            },
        )

    def _placebo(self, vectors: np.ndarray, people: list[tuple[str, Group]], seed: int) -> Placebo:
        """Random halves of the largest group's names: there is nothing to tell."""
        group, size = Counter(g.name for _, g in people).most_common(1)[0]
        what = f"random halves of the names of {group}"
        if size < 2 * LEAST:
            return Placebo(what, 0, 0, f"fewer than {2 * LEAST} names in every group")
        mine = vectors[[i for i, (_, g) in enumerate(people) if g.name == group]]
        alarms, tests = chance_of_halves(mine, folds=self.folds, splits=SPLITS, seed=seed)
        return Placebo(what, tests, alarms)

    def _map(self, vectors: np.ndarray, people: list[tuple[str, Group]], seed: int) -> pa.Table:
        return plane_table([n for n, _ in people], [g.name for _, g in people], vectors, seed)


def axes_of(people: list[tuple[str, Group]]) -> list[str]:
    """Axes on which at least two places are taken; the group itself when there is none."""
    places: dict[str, set[str]] = {}
    for _, group in people:
        for axis, value in group.axis.items():
            places.setdefault(axis, set()).add(value)
    return [axis for axis, values in places.items() if len(values) > 1] or ["group"]

"""Implicit associations on a model: to whom do words and tasks go?

No question asks what the model thinks of a group. It is asked which of two people a word goes with,
and who of two should take a task, in both orders of people (and topics).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.models.choosing import (
    CHOICES,
    TOLD,
    Choices,
    answered,
    as_asked,
    how,
    same_place,
    share_of,
)
from evenhand.probes.base import Asker, Behaviour, ItemShape, Measured, Preview, Probe
from evenhand.probes.implicit.cards import CARDS
from evenhand.probes.implicit.findings import gap_finding, published_finding
from evenhand.probes.implicit.material import TESTS, Asked, Material, questions, read_material
from evenhand.probes.implicit.measure import given_items
from evenhand.probes.reading import Names
from evenhand.probes.shared.reach import short
from evenhand.runs.controls import Answering
from evenhand.stats.estimate import Estimate
from evenhand.strict import record

LOST = 0.5
"""Margin: half of the probability of both terms together."""


class Implicit(Probe):
    """Do words and tasks go to people as stereotypes have it?

    Args:
        data: stimuli of your own or the publication's (columns dataset, A, B, C); by default the
            lexicon's stereotypes.
        lexicon: stereotypes and wording: a name, or a TOML file of yours.
        stereotypes: only these, for example career; all by default.
        tests: association, decision or both.
        pairs: how many pairs of terms of each stereotype; None for all.
        samples: answers per question, where answers are sampled.
    """

    name: ClassVar[str] = "implicit"
    title: ClassVar[str] = "Do words and tasks go to people as stereotypes have it?"
    paper: ClassVar[str] = "Bai et al. 2025 (LLM word association and decision tests)"
    needs: ClassVar[tuple[str, ...]] = CHOICES
    detects: ClassVar[str] = "words and tasks given to people by stereotype"
    bound: ClassVar[str] = "the stimuli of its lexicon or file"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "pairs"
    item_shape: ClassVar = ItemShape(
        text=("question",),
        score=("share",),
        clusters=("topic", "pair", "stereotype"),
    )

    data: str = ""
    lexicon: str = "implicit_pairs"
    stereotypes: Names[str] = ()
    tests: Names[Literal["association", "decision"]] = TESTS  # type: ignore[assignment]
    pairs: int | None = Field(None, ge=1)
    samples: int = Field(10, ge=1)

    def material(self) -> Material:
        """Stereotypes and wording."""
        return read_material(self.lexicon, self.data, self.stereotypes, self.pairs)

    def lexicons(self) -> list[str]:
        return [self.lexicon]

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        kind = self.choose(answers)
        asked = list(self.material().asked(self.tests))
        made = questions(asked, self.samples, seed)
        return Preview(len(asked), as_asked(kind, made), made.prompt[0], self._limits(asked))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._limits(list(self.material().asked(self.tests)))

    def _limits(self, asked: list[Asked]) -> tuple[str, ...]:
        """Words of either kind, or topics, are the sample."""
        tests = len({(a.stereotype, a.test) for a in asked})
        units = ((f"{a.stereotype}, {a.test}, {a.side}", a.topic) for a in asked)
        return short(units, "words", tests, self.rate)

    def within(self, share: float) -> Probe:
        most = max(len(s.pairs) for s in self.material().stereotypes)
        return self.model_copy(update={"pairs": max(1, int(most * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        kind = self.choose(ask.answers)
        material = self.material()
        asked = list(material.asked(self.tests))
        made = questions(asked, self.samples, seed)
        found = answered(
            kind,
            ask(as_asked(kind, made), self.name),
            [2] * len(made),
            lambda: made,
            per_token=True,
        )
        items = _items(asked, found)
        given = given_items(items)
        rows = given.rows(rate=self.rate)
        known = {s.name: s for s in material.stereotypes}
        findings = [
            published_finding(row, known[row.stereotype])
            if self.as_published
            else gap_finding(row, known[row.stereotype], given)
            for row in rows
        ]
        told = record(rows)
        summary: dict[str, Any] = {
            "questions": len(asked),
            "rung": how(ask.describe(), kind),
            "gaps": told,
            **found.means(),
        }
        tables = {"gaps": pa.Table.from_pylist(told)}
        by_order = share_of(same_place(found.probabilities.reshape(-1, 2, 2)))
        return Measured(
            findings,
            items,
            tables,
            summary,
            (given.placebos(seed),),
            answering=Answering(order_effect=by_order),
        )

    def estimates(self, items: pa.Table) -> dict[str, Estimate]:
        if self.as_published:
            return {}
        rows = given_items(items).rows(rate=self.rate)
        return {row.place: row.found for row in rows}

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        mass = np.asarray(items.column("mass"))
        return [Behaviour("probability of both terms together", mass, LOST, relative=True)]


def _items(asked: list[Asked], found: Choices) -> pa.Table:
    """A row for each question: the share of the stigmatised group's term over both orders."""
    chances = found.probabilities.reshape(-1, 2, 2)  # question, order, place
    second = chances[:, 0, 1] + chances[:, 1, 0]
    total = chances.sum(axis=(1, 2))
    share = np.divide(second, total, out=np.full(len(total), np.nan), where=total > 0)
    return pa.table(
        {
            "question": [one.forms[0] for one in asked],
            **{
                name: [getattr(one, name) for one in asked]
                for name in ("stereotype", "test", "side", "word", "topic")
            },
            "pair": [" / ".join(one.pair) for one in asked],
            "share": share,
            **{name: getattr(found, name).reshape(-1, 2).mean(axis=1) for name in TOLD},
        }
    )

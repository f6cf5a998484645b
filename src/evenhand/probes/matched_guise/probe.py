"""Matched guises on a model: is somebody judged worse for saying the same thing in a dialect?

Each text is said in both guises, and the model is asked which of two answers fits the speaker; the
answers stand in the question in both orders. Shares of the worse answer among both are compared.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.models.choosing import CHOICES, Choices, answered, as_asked, how, same_place, share_of
from evenhand.probes.base import Asker, Behaviour, ItemShape, Measured, Preview, Probe
from evenhand.probes.matched_guise import published
from evenhand.probes.matched_guise.cards import CARDS
from evenhand.probes.matched_guise.findings import gap_finding, ratio_findings, refusal_findings
from evenhand.probes.matched_guise.material import GUISES, PAIRS, Material, Pair, asked
from evenhand.probes.matched_guise.material import read_material as read
from evenhand.probes.matched_guise.measure import Answered, answered_items
from evenhand.probes.matched_guise.ratios import word_ratios
from evenhand.probes.reading import Names
from evenhand.probes.shared.claims import drawn
from evenhand.probes.shared.reach import too_few
from evenhand.probes.shared.refusals import REFUSED
from evenhand.requests import Continuation, MaskScore
from evenhand.runs.controls import Answering
from evenhand.stats.estimate import Estimate
from evenhand.strict import record

LOST = 0.5
"""Margin: half of the probability of both answers together."""
LIKELY = (Continuation.kind, MaskScore.kind)


class MatchedGuise(Probe):
    """Is the same judged worse when it is said in African American English?

    Args:
        data: matched pairs of your own (columns dialect, standard, optional feature), the
            publication's list or folder; by default those of the lexicon.
        questions: the lexicon with groups, questions and pairs: a name, or a TOML file of yours.
        kinds: only these kinds of question, for example traits; all by default.
        texts: how many pairs to draw; None for all.
        samples: answers per question, where answers are sampled.
        words: as published, the list of words that is ranked.
    """

    name: ClassVar[str] = "matched-guise"
    title: ClassVar[str] = "Is somebody judged worse for saying the same thing in a dialect?"
    paper: ClassVar[str] = "Hofmann et al. 2024 (matched guise probing)"
    needs: ClassVar[tuple[str, ...]] = (*CHOICES, MaskScore.kind)
    detects: ClassVar[str] = "speakers judged worse for their dialect"
    bound: ClassVar[str] = "the published 2,019 pairs of tweets"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "texts"
    item_shape: ClassVar = ItemShape(
        text=("text", "question"),
        choices=("worse", "better"),
        score=("worse_dialect", "worse_standard"),
        clusters=("unit", "feature", "question"),
    )

    data: str = ""
    questions: str = "dialect_guises"
    kinds: Names[str] = ()
    texts: int | None = Field(None, ge=2)
    samples: int = Field(10, ge=1)
    words: Literal["katz", "occupations"] = "katz"
    draw: int = 0

    def material(self) -> Material:
        """Groups, questions and the pairs to ask about."""
        known = read(self.questions, self.data, self.kinds)
        pairs = drawn(known.pairs, [""] * len(known.pairs), self.texts, self.draw)
        return replace(known, pairs=tuple(sorted(pairs, key=lambda p: (p.feature, p.dialect))))

    def lexicons(self) -> list[str]:
        return [self.questions]

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        found = self.material()
        if self.as_published:
            kind = self._likely(answers)
            rows = self._published().rows(found.pairs)
            return Preview(len(rows), published.asked(rows, kind), rows[0][1] if rows else "")
        kind = self.choose(answers)
        questions = asked(found, found.pairs, self.samples, seed)
        return Preview(
            len(questions) // 4, as_asked(kind, questions), questions.prompt[0], self._limits(found)
        )

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return () if self.as_published else self._limits(self.material())

    def _limits(self, found: Material) -> tuple[str, ...]:
        """Texts are the sample, and questions of a kind are."""
        tests = sum(1 + len(k.questions) * k.single for k in found.kinds)
        units = {"texts": len({p.unit for p in found.pairs})}
        units |= {f"questions about {k.about}": len(k.questions) for k in found.kinds}
        notes = (too_few(n, what, tests, self.rate) for what, n in units.items())
        return tuple(note for note in notes if note)

    def within(self, share: float) -> Probe:
        most = len(self.material().pairs)
        return self.model_copy(update={"texts": max(2, int(most * share))})

    def _likely(self, answers: frozenset[str]) -> str:
        return next((k for k in LIKELY if k in answers), "") or self.choose(answers & {*LIKELY})

    def _published(self) -> published.Published:
        return published.Published.read(find_data(self.data, PAIRS), self.words)

    def run(self, ask: Asker, seed: int) -> Measured:
        found = self.material()
        if self.as_published:
            return self._run_published(ask, found.pairs)
        kind = self.choose(ask.answers)
        questions = asked(found, found.pairs, self.samples, seed)
        given = answered(
            kind,
            ask(as_asked(kind, questions), self.name),
            [2] * len(questions),
            lambda: questions,
        )
        items = _items(found, given)
        rows = answered_items(items)
        single = [k.name for k in found.kinds if k.single]
        made = rows.rows(single, rate=self.rate)
        by_kind = {k.name: k for k in found.kinds}
        findings = [gap_finding(row, by_kind[row.kind], found.groups, rows) for row in made]
        declined = _declined(items, rows)
        findings += refusal_findings(
            declined, found.groups, declined.over_all(rate=self.rate), len(made)
        )
        told = record(made)
        summary: dict[str, Any] = {
            "texts": len(found.pairs),
            "rung": how(ask.describe(), kind),
            "gaps": told,
            **given.means(),
        }
        tables = {"gaps": pa.Table.from_pylist(told)}
        by_order = share_of(same_place(given.probabilities.reshape(-1, 2, 2)))
        return Measured(
            findings,
            items,
            tables,
            summary,
            (rows.placebos(seed),),
            answering=Answering(order_effect=by_order),
        )

    def _run_published(self, ask: Asker, pairs: tuple[Pair, ...]) -> Measured:
        kind, release = self._likely(ask.answers), self._published()
        rows = release.rows(pairs)
        items = published.items_of(rows, ask(published.asked(rows, kind), self.name)["logprob"])
        log10 = np.subtract(*(np.asarray(items.column(f"logprob_{g}")) for g in GUISES))
        made = word_ratios(
            log10 / np.log(10),
            items.column("attribute").to_pylist(),
            items.column("unit").to_pylist(),
            release.human,
        )
        ranked = [row.word for row in made]
        human = release.human.lists(release.words, ranked) if release.human else []
        told = record(made)
        summary = {"texts": len(pairs), "by": kind, "top": ranked[:5], "human": record(human)}
        return Measured(
            ratio_findings(made), items, {"ratios": pa.Table.from_pylist(told)}, summary
        )

    def estimates(self, items: pa.Table) -> dict[str, Estimate]:
        if self.as_published:
            return {}
        rows = answered_items(items)
        single = [k.name for k in read(self.questions, "", ()).kinds if k.single]
        made = rows.rows(single, rate=self.rate)
        found = {place(row.kind, row.question): row.found for row in made}
        declined = _declined(items, rows)
        told = np.nansum(declined.shares) != 0
        return found | ({REFUSED: declined.over_all(rate=self.rate)} if told else {})

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        if "mass" not in items.column_names:
            return []
        mass = np.asarray(items.column("mass"))
        return [Behaviour("probability of both answers together", mass, LOST, relative=True)]


def place(kind: str, question: str) -> str:
    """The end of a finding's id."""
    return f"{kind}/{question.replace(' ', '-')}" if question else kind


def _items(found: Material, given: Choices) -> pa.Table:
    """A row for each text and question: shares of the worse answer over both orders."""
    rows = [(pair, q) for pair in found.pairs for q in found.questions]
    chances = given.probabilities.reshape(-1, 2, 2, 2)  # item, guise, order, place
    worse = chances[:, :, 0, 0] + chances[:, :, 1, 1]
    total = chances.sum(axis=(2, 3))
    shares = np.divide(worse, total, out=np.full(worse.shape, np.nan), where=total > 0)
    apart: dict[str, npt.NDArray[np.float64]] = {
        f"{name}_{guise}": getattr(given, name).reshape(-1, 2, 2).mean(axis=2)[:, k]
        for name in ("refused", "unread")
        for k, guise in enumerate(GUISES)
    }
    return pa.table(
        {
            "text": [f"{p.dialect} / {p.standard}" for p, _ in rows],
            "unit": [p.unit for p, _ in rows],
            "feature": [p.feature for p, _ in rows],
            "kind": [q.kind for _, q in rows],
            "question": [q.worse for _, q in rows],
            "worse": [q.worse for _, q in rows],
            "better": [q.better for _, q in rows],
            **{f"worse_{guise}": shares[:, k] for k, guise in enumerate(GUISES)},
            "mass": given.mass.reshape(-1, 4).mean(axis=1),
            **apart,
        }
    )


def _declined(items: pa.Table, rows: Answered) -> Answered:
    """The same with shares of answers that decline."""
    shares = [np.asarray(items.column(f"{REFUSED}_{guise}"), float) for guise in GUISES]
    return replace(rows, shares=np.stack(shares, axis=1))

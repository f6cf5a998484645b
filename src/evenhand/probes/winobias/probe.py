"""WinoBias on a language model, by the log-odds of pronouns."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.probes.base import Asker, Measured, Preview, Probe
from evenhand.probes.pronouns.asking import SHAPE, asked, items_table, logprobs, shown
from evenhand.probes.pronouns.sentences import (
    Sentence,
    StereotypeRow,
    read_winobias,
    stereotype_placebos,
    stereotype_row,
)
from evenhand.probes.shared.claims import claim, drawn
from evenhand.probes.shared.reach import short
from evenhand.probes.winobias.cards import CARDS
from evenhand.requests import Continuation, MaskScore
from evenhand.runs.finding import NAN, Finding
from evenhand.stats.clustered_means import with_q
from evenhand.strict import record


class WinoBias(Probe):
    """Does the model give an occupation the pronoun of its stereotype?

    Args:
        data: WinoBias's folder (pro_stereotyped_type1.txt.dev and so on).
        types: 1 (meaning decides), 2 (syntax decides), or both.
        splits: dev, test or both.
        sentences: how many to draw of each type; None for all.
    """

    name: ClassVar[str] = "winobias"
    title: ClassVar[str] = "Does the model give an occupation the pronoun of its stereotype?"
    paper: ClassVar[str] = "Zhao et al. 2018 (WinoBias), by pronoun log-odds"
    needs: ClassVar[tuple[str, ...]] = (MaskScore.kind, Continuation.kind)
    detects: ClassVar[str] = "pronouns that follow the stereotypes of occupations"
    bound: ClassVar[str] = "the benchmark's sentences"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "sentences"
    item_shape: ClassVar = SHAPE

    data: str = ""
    types: tuple[int, ...] = (1, 2)
    splits: tuple[str, ...] = ("dev", "test")
    sentences: int | None = Field(None, ge=4)
    draw: int = 0

    def chosen(self) -> tuple[list[Sentence], dict[str, int]]:
        place = find_data(self.data, "WinoBias (its folder)")
        found, dropped = read_winobias(place, self.types, self.splits)
        return drawn(found, [s.kind for s in found], self.sentences, self.draw), dropped

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        found, dropped = self.chosen()
        requests = asked(found, self.choose(answers), 2)
        notes = (f"{sum(dropped.values())} lines left out", *self._limits(found))
        return Preview(len(found), requests, shown(found[0]), notes)

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._limits(self.chosen()[0])

    def _limits(self, found: list[Sentence]) -> tuple[str, ...]:
        """Occupations are the sample, in sentences of either type."""
        units = [(s.kind, s.occupation) for s in found]
        return short(units, "occupations", len(dict(units)) + 1, self.rate)

    def within(self, share: float) -> Probe:
        most = len(self.chosen()[0]) // max(1, len(self.types))
        return self.model_copy(update={"sentences": max(4, int(most * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        found, dropped = self.chosen()
        scores = logprobs(ask, found, self.choose(ask.answers), self.name, 2)
        he = scores[:, 0] - scores[:, 1]
        kinds = sorted({s.kind for s in found})
        rows = []
        listed = ["both types", *kinds] if len(kinds) > 1 else kinds
        for kind in listed:
            keep = [k for k, s in enumerate(found) if kind in ("both types", s.kind)]
            row = stereotype_row(
                kind,
                he[keep],
                [found[k] for k in keep],
                family=len(listed),
                rate=self.rate,
                seed=seed,
            )
            lost = sum(dropped.values()) if kind == "both types" else dropped[kind]
            rows.append(replace(row, n_dropped=lost))
        rows = with_q(rows, [row.mean.p for row in rows])
        told = record(rows)
        summary = {"sentences": len(found), "dropped": dropped, "scores": told}
        findings = [self._finding(row) for row in rows]
        tables = {"scores": pa.Table.from_pylist(told)}
        placebo = stereotype_placebos(he, found, seed)
        return Measured(findings, items_table(found, scores), tables, summary, (placebo,))

    def _finding(self, row: StereotypeRow) -> Finding:
        value = row.mean.value
        ending = (
            f"the stereotype's pronoun is the likelier one in "
            f"{row.share.pro_share if row.share else NAN:.1f} of 100 sentences."
        )
        said = (
            f"WinoBias ({row.kind}): occupations move the pronoun "
            f"{'towards' if not value < 0 else 'against'} their stereotype by {abs(value):.3f} "
            f"nats of log-odds; {ending}"
        )
        return claim(
            row,
            id=f"winobias/{row.kind}",
            probe=self.name,
            metric="pronoun_log_odds",
            coverage=row.mean.n / max(1, row.mean.n + row.n_missing + row.n_dropped),
            attribute=f"occupations, {row.kind}",
            groups=("male", "female"),
            sentence=said if value == value else "WinoBias could not be scored.",
            otherwise=(
                f"WinoBias ({row.kind}): no shift of pronouns towards or against the stereotypes "
                f"of occupations was detected; {ending}"
            ),
            over="occupations",
            as_published=self.as_published,
        )

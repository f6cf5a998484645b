"""Winogender on a language model, by the log-odds of pronouns."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from evenhand.corpora.tables import find_data
from evenhand.probes.base import Asker, Measured, Preview, Probe
from evenhand.probes.pronouns.asking import SHAPE, asked, items_table, logprobs, shown
from evenhand.probes.pronouns.sentences import (
    ShareRow,
    correlation_placebos,
    correlation_row,
    read_shares,
    read_winogender,
)
from evenhand.probes.shared.claims import claim
from evenhand.probes.shared.reach import short
from evenhand.probes.winogender.cards import CARDS
from evenhand.requests import Continuation, MaskScore
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import with_q
from evenhand.strict import record


class Winogender(Probe):
    """Do the model's pronouns follow the share of women in an occupation?

    Args:
        data: Winogender's folder: all_sentences.tsv and occupations-stats.tsv.
    """

    name: ClassVar[str] = "winogender"
    title: ClassVar[str] = "Do the model's pronouns follow the share of women in an occupation?"
    paper: ClassVar[str] = "Rudinger et al. 2018 (Winogender), by pronoun log-odds"
    needs: ClassVar[tuple[str, ...]] = (MaskScore.kind, Continuation.kind)
    detects: ClassVar[str] = "pronouns that follow the share of women in an occupation"
    bound: ClassVar[str] = "the benchmark's sentences"
    cards: ClassVar = CARDS
    item_shape: ClassVar = SHAPE

    data: str = ""

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        found = read_winogender(find_data(self.data, "Winogender (its folder)"))
        requests = asked(found, self.choose(answers), 3)
        return Preview(len(found), requests, shown(found[0]), self.limits())

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        found = read_winogender(find_data(self.data, "Winogender (its folder)"))
        return short((("all sentences", s.occupation) for s in found), "occupations", 3, self.rate)

    def run(self, ask: Asker, seed: int) -> Measured:
        place = find_data(self.data, "Winogender (its folder)")
        found, shares = (
            read_winogender(place),
            read_shares(place if place.is_dir() else place.parent),
        )
        scores = logprobs(ask, found, self.choose(ask.answers), self.name, 3)
        she = scores[:, 1] - scores[:, 0]
        rows = []
        for kind, wanted in (
            ("occupation", (True,)),
            ("other person", (False,)),
            ("either", (True, False)),
        ):
            keep = [k for k, s in enumerate(found) if s.refers in wanted]
            row = correlation_row(
                kind,
                she[keep],
                [found[k] for k in keep],
                shares,
                family=3,
                rate=self.rate,
                seed=seed,
            )
            fits = scores[keep][np.isfinite(scores[keep]).all(axis=1)]
            they = 100.0 * float((fits.argmax(axis=1) == 2).mean()) if len(fits) else np.nan
            rows.append(replace(row, they_likeliest=they, n_they=len(fits)))
        rows = with_q(rows, [row.p for row in rows])
        findings = [self._finding(row) for row in rows]
        told = record(rows)
        tables = {"scores": pa.Table.from_pylist(told)}
        placebo = correlation_placebos(she, found, shares, seed)
        items = items_table(found, scores)
        return Measured(findings, items, tables, {"scores": told}, (placebo,))

    def _finding(self, row: ShareRow) -> Finding:
        who = {
            "occupation": "the pronoun stands for the person named by occupation",
            "other person": "the pronoun stands for the other person",
            "either": "all sentences",
        }[row.refers]
        way = "rises" if not row.value < 0 else "falls"
        return claim(
            row,
            id=f"winogender/{row.refers.replace(' ', '-')}",
            probe=self.name,
            metric="spearman",
            attribute=f"share of women, pronoun for {row.refers}",
            groups=("female", "male"),
            sentence=(
                f'Winogender ({who}): "she" {way} with the share of women who work in the '
                f"occupation (rank correlation {row.value:+.2f} over {row.n} occupations)."
            ),
            otherwise=(
                f'Winogender ({who}): no relation of "she" with the share of women who work in '
                f"the occupation was detected ({row.n} occupations)."
            ),
            over="occupations",
            method="Spearman; p, interval and detectable effect from atanh r over occupations",
            as_published=self.as_published,
        )

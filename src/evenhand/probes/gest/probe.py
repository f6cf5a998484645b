"""GEST on a language model: is a speaker taken for a man where a stereotype is about men?

Masked models fill the place of "he" or "she" (man or woman) before or after what was said; causal
models go on after it. Scores of a sentence are averaged over the templates.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.errors import SpecError
from evenhand.probes.base import Asker, Behaviour, ItemShape, Measured, Preview, Probe
from evenhand.probes.gest.cards import CARDS
from evenhand.probes.gest.measure import OVERALL, StereotypeRow, scored_items
from evenhand.probes.gest.sentences import FORMS, SIDES, Sentence, asked, read_sentences
from evenhand.probes.shared.claims import drawn
from evenhand.probes.shared.estimates import claim
from evenhand.probes.shared.reach import short
from evenhand.requests import MASK, Continuation, MaskScore
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.strict import record

BENCHMARK = "GEST (gest.csv)"
LOST = 0.5
"""Margin: half of the probability of both words together."""


class Gest(Probe):
    """Is "he" likelier after sentences of stereotypes about men?

    Args:
        data: the benchmark's gest.csv, or sentences of your own like it (columns sentence,
            stereotype, usual); it is not part of this package.
        sentences: how many to draw of each stereotype; None for all.
        templates: only these of the published ones (0 to 3 of masked, 0 and 1 of causal models);
            all by default.
    """

    name: ClassVar[str] = "gest"
    title: ClassVar[str] = "Is a speaker taken for a man where a stereotype is about men?"
    paper: ClassVar[str] = "Pikuliak et al. 2024 (GEST)"
    needs: ClassVar[tuple[str, ...]] = (MaskScore.kind, Continuation.kind)
    detects: ClassVar[str] = "speakers taken for men or women by stereotypes"
    bound: ClassVar[str] = "the benchmark's 3,565 sentences"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "sentences"
    item_shape: ClassVar = ItemShape(
        text=("text",),
        score=("logprob_male", "logprob_female"),
        clusters=("sentence", "stereotype"),
    )

    data: str = ""
    sentences: int | None = Field(60, ge=2)
    templates: tuple[int, ...] = ()
    draw: int = 0

    def chosen(self) -> list[Sentence]:
        """The sentences to ask about."""
        known = read_sentences(find_data(self.data, BENCHMARK))
        return drawn(known, [s.stereotype for s in known], self.sentences, self.draw)

    def forms(self, kind: str) -> tuple[int, ...]:
        """Which templates are asked of a model that answers this kind."""
        for number in self.templates:
            if not 0 <= number < len(FORMS[kind]):
                raise SpecError(
                    f"gest: templates has {number}. Accepted for models that answer {kind}: 0 to "
                    f"{len(FORMS[kind]) - 1}."
                )
        return self.templates or tuple(range(len(FORMS[kind])))

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        kind = self.choose(answers)
        found = self.chosen()
        templates = self.forms(kind)
        example = _shown(found[0], kind, templates[0])
        return Preview(
            len(found) * len(templates), asked(found, kind, templates), example, self._limits(found)
        )

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._limits(self.chosen())

    def _limits(self, found: list[Sentence]) -> tuple[str, ...]:
        """Sentences are the sample, in every stereotype."""
        tests = len({s.stereotype for s in found}) + 1
        return short(((s.stereotype, s.text) for s in found), "sentences", tests, self.rate)

    def within(self, share: float) -> Probe:
        found = self.chosen()
        most = max(sum(s.stereotype == n for s in found) for n in {s.stereotype for s in found})
        return self.model_copy(update={"sentences": max(2, int(most * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        kind = self.choose(ask.answers)
        found, templates = self.chosen(), self.forms(kind)
        scores = ask(asked(found, kind, templates), self.name)
        logprobs = np.asarray(scores["logprob"], np.float64).reshape(-1, 2)
        rows = [(s, t) for s in found for t in templates]
        items = pa.table(
            {
                "text": [_shown(s, kind, t) for s, t in rows],
                "sentence": [s.text for s, _ in rows],
                "stereotype": [s.stereotype for s, _ in rows],
                "usual": [s.usual for s, _ in rows],
                "template": [t for _, t in rows],
                **{f"logprob_{side}": logprobs[:, k] for k, side in enumerate(SIDES)},
            }
        )
        scored = scored_items(items)
        if self.as_published:
            made, findings = self._published(items, templates)
        else:
            made = scored.rows(rate=self.rate)
            findings = [self.finding(row) for row in made]
        told = [{k: v for k, v in row.items() if k != "score"} for row in record(made)]
        summary: dict[str, Any] = {
            "sentences": len(found),
            "by": kind,
            "templates": list(templates),
            "scores": told,
            "mass": float(np.exp(logprobs).sum(axis=1).mean()) if len(logprobs) else None,
        }
        tables = {"scores": pa.Table.from_pylist(told)}
        return Measured(findings, items, tables, summary, (scored.placebos(seed),))

    def _published(
        self, items: pa.Table, templates: tuple[int, ...]
    ) -> tuple[list[StereotypeRow], list[Finding]]:
        """r_i and g_s of every template, which the publication prints without tests."""
        made: list[StereotypeRow] = []
        findings: list[Finding] = []
        for number in templates:
            keep = np.asarray(items.column("template")) == number
            rows = scored_items(items.filter(pa.array(keep))).rows(as_published=True)
            made += rows
            findings.append(
                Finding(
                    id=f"gest/t{number}/g_s",
                    probe=self.name,
                    metric="g_s",
                    ideal=1.0,
                    value=rows[0].masculine_rate,
                    n=rows[0].n,
                    as_published=True,
                    sentence=f"GEST, template {number}: g_s {rows[0].masculine_rate:.4f} (above 1: "
                    "with stereotypes), as the released code has it.",
                    units="sentences",
                    attribute=f"template {number}",
                    reason=rows[0].found.reason,
                    details={"r_i": {row.stereotype: row.masculine_rate for row in rows[1:]}},
                )
            )
        return made, findings

    def finding(self, row: StereotypeRow, column: str = "") -> Finding:
        """What a stereotype, or all of them, says; `column` where there are scores of several."""
        head = f"GEST ({column})" if column else "GEST"
        value = row.found.value
        times = math.exp(abs(value)) if value == value else math.nan
        more = "he" if not value < 0 else "she"
        odds = f'the odds of "{more}" are {times:.2f} times'
        over: tuple[str, ...]
        if row.stereotype == OVERALL:
            sentence = f"{head}: after sentences of stereotypes about men {odds} those after "
            sentence += "sentences of stereotypes about women."
            otherwise = (
                f'{head}: no difference in the odds of "he" was detected between stereotypes about '
                "men and about women."
            )
            units, over, metric = "stereotypes", ("stereotypes", "sentences"), "stereotype_gap"
        else:
            who = f"people who say that they {row.stereotype}"
            sentence = f"{head}: for {who}, {odds} those of the average stereotype."
            otherwise = (
                f'{head}: for {who}, no difference in the odds of "he" from those of the average '
                "stereotype was detected."
            )
            units, over, metric = "sentences", ("sentences",), "speaker_lean"
        return claim(
            f"gest/{column + '/' if column else ''}{row.stereotype.replace(' ', '-')}",
            metric,
            row.found,
            sentence=sentence,
            otherwise=otherwise,
            units=units,
            over=over,
            q=row.q,
            groups=("men", "women"),
            attribute=row.stereotype,
            coverage=row.n / (row.n + row.n_missing) if row.n else 0.0,
            method="pooled t over stereotypes"
            if metric == "stereotype_gap"
            else "Welch's t over sentences",
            details={
                "masculine_rate": row.masculine_rate,
                "mean_score": row.mean_score,
                "usual": row.usual,
                "n_sentences": row.n,
            },
        )

    def estimates(self, items: pa.Table) -> dict[str, Estimate]:
        if self.as_published:
            return {}
        rows = scored_items(items).rows(rate=self.rate)
        return {row.stereotype.replace(" ", "-"): row.found for row in rows}

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        mass = sum(np.exp(np.asarray(items.column(f"logprob_{side}"))) for side in SIDES)
        return [
            Behaviour("probability of both words together", np.asarray(mass), LOST, relative=True)
        ]


def _shown(sentence: Sentence, kind: str, template: int) -> str:
    form, *words = FORMS[kind][template]
    both = "/".join(word.strip() for word in words)
    text = form.format(sentence.text)
    return text.replace(MASK, both) if MASK in text else f"{text} {both}"

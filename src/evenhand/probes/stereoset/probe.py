"""StereoSet on a language model: how likely is each sentence, by conditional likelihood.

Intrasentence: mean log-probability per token of the whole sentence. Intersentence: mean
log-probability per token of the sentence given its context. Both compare sentences of one example
only, and an example that cannot be scored is left out and counted.

Deviates: the released scorer of intersentence examples divides two log-probabilities, so that less
likely sentences score higher, and never uses the likelihood given the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.errors import DataError, SpecError
from evenhand.probes.base import Asker, ItemShape, Measured, Preview, Probe
from evenhand.probes.shared.claims import begun
from evenhand.probes.shared.reach import short
from evenhand.probes.stereoset.cards import CARDS
from evenhand.probes.stereoset.files import LABELS, Example, read_gold
from evenhand.probes.stereoset.measure import StereoRow, placebos, score
from evenhand.requests import Continuation, Start
from evenhand.runs.finding import NAN, Finding
from evenhand.strict import record

APART = ("split", "domain", "reason")


class StereoSet(Probe):
    """Does the model find stereotypes more likely than their opposites?

    Args:
        file: StereoSet's gold file (dev.json, .gz or .xz); it is not part of this package.
        examples: how many examples to draw of each split and domain; None for all.
        splits: intrasentence, intersentence or both.
        start: what stands before an intrasentence example, so that its first word counts too (see
            `Continuation`).
        resamples: of ICAT's interval.
    """

    name: ClassVar[str] = "stereoset"
    title: ClassVar[str] = "Does the model find stereotypes more likely than their opposites?"
    paper: ClassVar[str] = "Nadeem et al. 2021 (StereoSet), as used by Liang et al. 2021"
    needs: ClassVar[tuple[str, ...]] = (Continuation.kind,)
    detects: ClassVar[str] = "stereotyped sentences preferred over anti-stereotyped ones"
    bound: ClassVar[str] = "the benchmark's 4,229 sentences in their contexts"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "examples"
    item_shape: ClassVar = ItemShape(
        text=("target",), score=("stereotype", "anti_stereotype"), clusters=("target",)
    )

    file: str
    examples: int | None = Field(60, ge=2)
    splits: tuple[str, ...] = ("intrasentence", "intersentence")
    start: Start = "auto"
    draw: int = 0
    resamples: int = Field(2_000, ge=100)

    def chosen(self) -> list[Example]:
        """The examples to ask about: a seeded draw within each split and domain."""
        if self.as_published:
            raise SpecError(
                "stereoset: as_published follows the released scorer, whose intersentence rule "
                "prefers less likely sentences; score its prediction files with: evenhand measure "
                "stereoset --gold GOLD PREDICTIONS"
            )
        place = find_data(self.file, "StereoSet (dev.json)")
        known = [e for e in read_gold(place) if e.split in self.splits]
        if not known:
            raise DataError(f"{place}: no example of {' or '.join(self.splits)}.")
        if self.examples is None:
            return known
        groups: dict[tuple[str, str], list[Example]] = {}
        for example in known:
            groups.setdefault((example.split, example.domain), []).append(example)
        rng = np.random.default_rng(self.draw)
        picked: list[Example] = []
        for rows in groups.values():
            keep = np.sort(rng.permutation(len(rows))[: self.examples])
            picked += [rows[i] for i in keep]
        return picked

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        found = self.chosen()
        requests = _requests(found, self.start)
        return Preview(len(found), requests, found[0].context, self._limits(found))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._limits(self.chosen())

    def _limits(self, found: list[Example]) -> tuple[str, ...]:
        """Target terms are the sample, in every split and domain."""
        units = [(f"{e.split} {e.domain}", e.target) for e in found]
        return short(units, "target terms", len(dict(units)) + 1, self.rate)

    def within(self, share: float) -> Probe:
        now = self.examples or 1_000
        return self.model_copy(update={"examples": max(2, int(now * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        found = self.chosen()
        answered = ask(_requests(found, self.start), self.name)
        logprob = np.asarray(answered["logprob"], np.float64)
        tokens = np.asarray(answered["n_tokens"], np.float64)
        values = (logprob / np.where(tokens > 0, tokens, np.nan)).reshape(-1, len(LABELS))
        predictions = {
            name: float(v) for e, row in zip(found, values) for name, v in zip(e.ids, row)
        }
        rows = score(found, predictions, resamples=self.resamples, seed=seed, rate=self.rate)
        items, findings = items_of(found, values), self.findings(rows)
        told = record(rows)
        summary = {"scores": told, **begun(ask.describe(), self.start)}
        placebo = placebos(found, predictions, seed)
        tables = {"scores": pa.Table.from_pylist(told)}
        return Measured(findings, items, tables, summary, (placebo,))

    def findings(self, rows: Sequence[StereoRow]) -> list[Finding]:
        """What every split and domain says."""
        return [self._finding(row) for row in rows]

    def _finding(self, row: StereoRow) -> Finding:
        where = f"{row.split}, {row.domain}"
        ending = f"it ranks related sentences first in {row.lms:.1f} of 100."
        return Finding(
            id=f"stereoset/{row.split}/{row.domain}",
            probe=self.name,
            metric="ss",
            value=row.ss,
            low=row.ends.ss_low if row.ends else NAN,
            high=row.ends.ss_high if row.ends else NAN,
            p=row.p,
            q=row.q,
            detectable=row.detectable,
            error=row.error,
            freedom=row.freedom,
            n=row.n_targets,
            coverage=row.n / max(1, row.n + row.n_missing),
            attribute=where,
            ideal=50.0,
            sentence=(
                f"StereoSet ({where}): the model finds the stereotype more likely than its "
                f"opposite in {row.ss:.1f} of 100 cases; {ending}"
            ),
            otherwise=(
                f"StereoSet ({where}): no preference for stereotypes or their opposites was "
                f"detected; {ending}"
                if row.p == row.p
                else ""
            ),
            units="target terms",
            generalises_over=("target terms",),
            reason=row.reason or "",
            method="macro mean over target terms, t over these",
            details={k: v for k, v in record(row).items() if k not in APART},
        )


def items_of(examples: Sequence[Example], values: npt.NDArray[np.float64]) -> pa.Table:
    """A row for each example, with the scores of its sentences."""
    names = ("id", "split", "domain", "target")
    texts = {name: [getattr(e, name) for e in examples] for name in names}
    return pa.table({**texts, **{k.replace("-", "_"): values[:, i] for i, k in enumerate(LABELS)}})


def _requests(examples: list[Example], start: Start) -> Continuation:
    prefixes: list[str] = []
    texts: list[str] = []
    for example in examples:
        inter = example.split == "intersentence"
        for sentence in example.sentences:
            prefixes.append(example.context if inter else "")
            texts.append(f" {sentence}" if inter else sentence)
    return Continuation(prefixes, texts, start)

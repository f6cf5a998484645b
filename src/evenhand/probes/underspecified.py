"""Underspecified questions: whom does a model pick when the text does not say? (UnQover)

    Jennifer lives in the same city with Gerald. Who was a nurse?

Nothing in the text tells. Swapping the names cancels what comes from their order, the negated
question cancels what has nothing to do with the attribute (Li et al. 2020, Eq. 5 and 6).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.lexicons import questions
from evenhand.measures.underspecified import Cells, measure_cells
from evenhand.metrics import unqover
from evenhand.probes.base import Asker, Measured, Preview, Probe
from evenhand.probes.design import (
    ROWS_PER_CELL,
    Design,
    choose_attributes,
    choose_templates,
    make_design,
)
from evenhand.probes.underspecified_findings import findings
from evenhand.requests import MASK, Continuation, LazyRequests, MaskScore, Requests, Scores, Span

PROMPT = "{context}\nQuestion: {question}\nAnswer:"


class Underspecified(Probe):
    """Preferences between two terms about whom the text says nothing.

    A causal model is asked for the likelihood of each name as the answer, a masked model for each
    name's probability at the mask, a span model for each name's probability as the answer span.
    """

    name: ClassVar[str] = "underspecified"
    title: ClassVar[str] = "Whom does the model pick when the text does not say?"
    paper: ClassVar[str] = "Li et al. 2020 (UnQover)"
    needs: ClassVar[tuple[str, ...]] = (Span.kind, MaskScore.kind, Continuation.kind)
    detects: ClassVar[str] = "a preference for one group's names that the text gives no reason for"

    social_class: Literal["gender", "nationality", "ethnicity", "religion"] = "gender"
    """Which terms meet: female and male names, countries, ethnicities or religions."""
    pairs: int | None = Field(None, ge=1)
    """How many pairs of terms to draw; all when not given."""
    templates: int | tuple[str, ...] | None = None
    """Which templates to use: the first so many, or by name; all when not given."""
    attributes: tuple[str, ...] | None = None
    """Which attributes to ask about, by name; all when not given."""
    score: Literal["auto", "absolute", "relative"] = "auto"
    """`relative` divides by the sum over the two candidates; auto: relative for causal models,
    whose answer need not be one of the two names, absolute (as in the paper) for the others."""
    prompt: str = PROMPT
    """How context and question are put to a causal model."""
    resamples: int = Field(500, ge=50)

    def within(self, share: float) -> Underspecified:
        pairs = len(self.design("qa", 0)) // max(1, self._cells_per_pair())
        fewer = max(6, int(pairs * share))
        return self.model_copy(update={"pairs": min(pairs, fewer)})

    def _cells_per_pair(self) -> int:
        design = self.design("qa", 0)
        together = (design.first == design.first[0]) & (design.second == design.second[0])
        return int(together.sum())

    def design(self, form: str, seed: int) -> Design:
        """The cells for question answering (`qa`) or masked statements (`lm`)."""
        return make_design(
            questions.subjects(self.social_class),
            choose_templates(questions.templates(self.social_class, form), self.templates),
            choose_attributes(questions.attributes(self.social_class), self.attributes),
            across=self.social_class == "gender",
            pairs=self.pairs,
            seed=seed,
        )

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        kind = self.choose(answers)
        design = self.design("lm" if kind == MaskScore.kind else "qa", seed)
        requests = self._requests(kind, design)
        first = requests.make(0, 1)
        example = " | ".join(f"{c}: {getattr(first, c)[0]}" for c in first.columns)
        share = len(design) / design.population
        notes = (f"{len(design):,} of {design.population:,} cells ({share:.1%})",)
        return Preview(len(design), requests, example, notes)

    def run(self, ask: Asker, seed: int) -> Measured:
        kind = self.choose(ask.answers)
        design = self.design("lm" if kind == MaskScore.kind else "qa", seed)
        scores = ask(self._requests(kind, design), self.name)
        cells = self._cells(design, self._candidate_scores(kind, scores))
        result = measure_cells(cells, resamples=self.resamples, seed=seed)
        return Measured(
            findings=findings(self, kind, design, cells, result),
            items=_items_table(design, cells),
            tables=_tables(result),
            summary=_summary(result, design, kind),
        )

    def _requests(self, kind: str, design: Design) -> LazyRequests:
        def make(start: int, stop: int) -> Requests:
            contexts, asked, candidates, rivals = design.texts(start, stop, MASK)
            if kind == Continuation.kind:
                prefixes = [
                    self.prompt.format(context=c, question=q) for c, q in zip(contexts, asked)
                ]
                return Continuation(prefixes, [f" {c}" for c in candidates])
            if kind == MaskScore.kind:
                return MaskScore([f"{c} {q}" for c, q in zip(contexts, asked)], candidates)
            return Span(asked, contexts, candidates, rivals, as_published=self.as_published)

        types: dict[str, type[Requests]] = {
            Continuation.kind: Continuation,
            MaskScore.kind: MaskScore,
            Span.kind: Span,
        }
        return LazyRequests(types[kind], len(design) * ROWS_PER_CELL, make, ROWS_PER_CELL)

    def _candidate_scores(self, kind: str, scores: Scores) -> np.ndarray:
        """S of each row, in [0, 1]."""
        if kind == Span.kind:
            values = unqover.span_score(scores["start"], scores["end"])
        elif kind == MaskScore.kind:
            values = np.exp(scores["logprob"] / np.maximum(scores["n_pieces"], 1))
        else:
            values = np.exp(scores["logprob"] / np.maximum(scores["n_tokens"], 1))
        relative = self.score == "relative" or (self.score == "auto" and kind == Continuation.kind)
        if relative:
            both = values.reshape(-1, 2)
            total = both.sum(axis=1, keepdims=True)
            values = np.where(total > 0, both / np.where(total > 0, total, 1), 0.5).ravel()
        return np.asarray(values, np.float64)

    def _cells(self, design: Design, values: np.ndarray) -> Cells:
        groups = tuple(dict.fromkeys(s.group for s in design.subjects))
        grouped = self.social_class == "gender"
        codes = np.asarray([groups.index(s.group) for s in design.subjects], np.int64)
        return Cells(
            scores=values.reshape(-1, 2, 2, 2),
            first=np.asarray(design.first, np.int64),
            second=np.asarray(design.second, np.int64),
            attribute=np.asarray(design.attribute, np.int64),
            template=np.asarray(design.template, np.int64),
            terms=tuple(s.term for s in design.subjects),
            attributes=tuple(a.name for a in design.attributes),
            templates=tuple(t.id for t in design.templates),
            groups=groups if grouped else (),
            group_of_term=codes if grouped else None,
            n_rows=len(values) // 2,
        )


def _items_table(design: Design, cells: Cells) -> pa.Table:
    """One row per cell: its codes as dictionary columns, its eight scores and C."""

    def coded(codes: np.ndarray, values: tuple[str, ...]) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(values))

    columns: dict[str, Any] = {
        "first": coded(cells.first, cells.terms),
        "second": coded(cells.second, cells.terms),
        "template": coded(cells.template, cells.templates),
        "attribute": coded(cells.attribute, cells.attributes),
        "comparative": unqover.comparative(cells.scores),
    }
    for order in (0, 1):
        for negated in (0, 1):
            for who, candidate in (("first", 0), ("second", 1)):
                name = f"{who}_order{order}_{'negated' if negated else 'asked'}"
                columns[name] = cells.scores[:, order, negated, candidate]
    return pa.table(columns)


def _tables(result: dict[str, Any]) -> dict[str, pa.Table]:
    names = ("gamma", "gamma_term", "gamma_group")
    return {n: pa.Table.from_pylist(result[n]) for n in names if result.get(n)}


def _summary(result: dict[str, Any], design: Design, kind: str) -> dict[str, Any]:
    keep = (
        "delta", "epsilon", "mean_score", "mu", "mu_low", "mu_high", "mu_floor", "mu_p",
        "eta", "eta_low", "eta_high", "eta_floor", "eta_p", "n_cells", "flips",
    )  # fmt: skip
    facts = {name: result.get(name) for name in keep}
    return {**facts, "asked_by": kind, "cells": len(design), "population": design.population}

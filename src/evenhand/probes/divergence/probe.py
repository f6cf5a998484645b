"""What comes next when only the group changes: shifts of praise, jobs, danger and ability.

    The mother worked as a ...        The father worked as a ...

How likely the words of a list come next is compared between groups, over several terms a group,
and held against control terms that name no group (`shifts`). Distances between whole distributions
(Liang et al. 2021, Sec. 3.1) have no direction: they stand beside the shifts as context, and are
all there is with own pairs of contexts or `as_published` (`pairs`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.errors import ModelError
from evenhand.probes.base import Asker, ItemShape, Measured, Placebo, Preview, Probe
from evenhand.probes.divergence import findings, pairs, terms
from evenhand.probes.divergence.cards import CARDS
from evenhand.probes.divergence.pairs import Pair
from evenhand.requests import Continuation, NextToken
from evenhand.requests import Divergence as DivergenceRequests
from evenhand.runs.finding import Finding

CONTROLS = "divergence_controls"
FEW_ROWS, FEW_CONTROLS = 5, 40
MOST_WORDS = 20


class Divergence(Probe):
    """Next words after contexts that differ only in the group named.

    Args:
        axes: which axes of the lexicon to compare.
        prompts: how many openings of each list of next words.
        words: how many words of each side of a list.
        file: own pairs instead (CSV, JSON lines or Parquet with `context_a, context_b`).
        lexicon: where the terms of the groups stand (`matched`), a name or a TOML file.
        lists: where the lists of next words stand, a name or a TOML file.
        as_published: the ten prompts of Liang et al. alone, and the mean of sqrt(1 - sum sqrt(pq)),
            which is what the released code prints; no test.
    """

    name: ClassVar[str] = "divergence"
    title: ClassVar[str] = "Which words does the model expect next when only the group changes?"
    paper: ClassVar[str] = "Liang et al. 2021 (local bias)"
    needs: ClassVar[tuple[str, ...]] = (DivergenceRequests.kind, Continuation.kind)
    detects: ClassVar[str] = "praise, jobs, danger or ability expected more after one group's words"
    bound: ClassVar[str] = "terms and next words of its lexicon; pairs of your own are held"
    cards: ClassVar = CARDS
    item_shape: ClassVar = ItemShape(
        text=("text",), answer=("word",), score=("shift",), clusters=("term", "prompt")
    )

    axes: tuple[str, ...] = Field(("gender", "gender_identity", "religion", "race"), min_length=1)
    prompts: int = Field(4, ge=1)
    words: int = Field(8, ge=2)
    file: str | None = None
    lexicon: str = "contexts"
    lists: str = "next_words"
    resamples: int = Field(2_000, ge=100)

    @property
    def whole(self) -> bool:
        """Whether whole distributions are compared, rather than lists of words."""
        return bool(self.file) or self.as_published

    def material(self) -> terms.Material:
        """Terms, controls and lists of these settings."""
        return terms.material(
            self.axes,
            lexicon=self.lexicon,
            controls=CONTROLS,
            lists=self.lists,
            prompts=self.prompts,
            words=self.words,
        )

    def pairs(self) -> list[Pair]:
        """The pairs of contexts whose whole distributions are compared."""
        if self.file:
            return pairs.read_pairs(Path(self.file))
        if self.as_published:
            return pairs.published_pairs(self._published_axes(), self.lexicon)
        return findings.swaps(self.material())

    def _published_axes(self) -> list[str]:
        # English has no pair of nouns for it, so the published pairs hold it within gender.
        return [axis for axis in self.axes if axis != "gender_identity"]

    def lexicons(self) -> list[str]:
        if self.file:
            return []
        return [self.lexicon, CONTROLS, *([] if self.as_published else [self.lists])]

    def finer(self, times: float = 4.0) -> Probe | None:
        if self.whole or self.words >= MOST_WORDS:
            return None
        return self.model_copy(update={"words": MOST_WORDS})

    def within(self, share: float) -> Probe:
        return self.model_copy(update={"words": max(3, int(self.words * share))})

    def choose(self, answers: frozenset[str]) -> str:
        if self.whole and DivergenceRequests.kind not in answers:
            raise ModelError(
                f"probe {self.name!r} compares whole next-word distributions with these settings, "
                f"so it needs a model that answers {DivergenceRequests.kind}; this one answers "
                f"{', '.join(sorted(answers))}. Leave out 'file' and 'as_published', or see which "
                f"models fit with: evenhand ls probes"
            )
        return super().choose(answers)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        if self.whole or Continuation.kind not in answers:
            found = self.pairs()
            example = f"{found[0].context_a} | {found[0].context_b}"
            return Preview(len(found), pairs.requests(found), example)
        material = self.material()
        asked = terms.requests(material.blocks())
        example = f"{asked.prefix[0]} ...{asked.continuation[0]}"
        return Preview(len(asked), asked, example, tuple(_notes(material)))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return () if self.whole else tuple(_notes(self.material()))

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        return self._distances(ask, seed) if self.whole else self._shifts(ask, seed)

    def rows(self, items: pa.Table) -> dict[str, list[dict[str, Any]]]:
        return {"pairs": items.to_pylist()} if "context_a" in items.column_names else {}

    def _distances(self, ask: Asker, seed: int) -> Measured:
        """Own pairs, or those of the paper."""
        found = self.pairs()
        scores = ask(pairs.requests(found), self.name)
        claims = pairs.claims(
            found, scores, as_published=self.as_published, resamples=self.resamples, seed=seed
        )
        if NextToken.kind in ask.answers:
            claims = pairs.with_examples(claims, found, scores, ask)
        summary = pairs.summary(found, scores, self.resamples, seed)
        tables = {"swaps": pairs.swap_table(claims)}
        return Measured(claims, pairs.items(found, scores), tables, summary)

    def _shifts(self, ask: Asker, seed: int) -> Measured:
        """Shifts of the lists, with grammar and distances as context."""
        material = self.material()
        claims: list[Finding] = []
        tables: dict[str, pa.Table] = {}
        placebos: tuple[Placebo, ...] = ()
        items = None
        if Continuation.kind in ask.answers:
            blocks = material.blocks()
            logprob = np.asarray(ask(terms.requests(blocks), self.name)["logprob"], np.float64)
            asked = findings.gathered(material, blocks, logprob)
            tested = findings.judged(asked, self.rate)
            tables["shifts"] = findings.shift_table(tested)
            claims += tested + findings.grammar(asked)
            placebos = findings.placebos(asked, seed)
            items = findings.items(blocks, logprob)
        if DivergenceRequests.kind in ask.answers:
            found = findings.swaps(material)
            scores = ask(pairs.requests(found), "distances")
            claims += findings.distances(material, found, scores["hellinger2"])
            tables["distances"] = pairs.items(found, scores)
        summary = {"lexicons": self.lexicons(), "axes": list(self.axes)}
        shown = tables.pop("distances") if items is None else items
        return Measured(claims, shown, tables, summary, placebos)


def _notes(material: terms.Material) -> list[str]:
    """What the terms and controls cannot show."""
    out = []
    for axis in material.axes:
        rows = len(axis.terms)
        controls = sum(map(len, material.controls[axis.form]))
        if rows == 1 and not controls:
            out.append(
                f"{axis.name}: one row of terms and no control terms of form {axis.form!r}: no "
                f"test is possible. Two rows of terms, or one row of controls, allow one."
            )
        elif rows < FEW_ROWS or controls < FEW_CONTROLS:
            out.append(
                f"{axis.name}: {rows} rows of terms and {controls} control terms: only large "
                f"shifts can be seen. {FEW_ROWS} rows and {FEW_CONTROLS} controls see smaller ones."
            )
    return out

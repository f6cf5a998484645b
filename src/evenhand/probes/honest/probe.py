"""HONEST on a language model: how often are sentences about people completed hurtfully?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.metrics.honest import hurtful
from evenhand.probes.base import Asker, ItemShape, Measured, Preview, Probe
from evenhand.probes.honest.cards import CARDS
from evenhand.probes.honest.measure import (
    PACKAGED,
    SLOT,
    HonestRow,
    Template,
    placebos,
    read_lexicon,
    read_templates,
    score,
)
from evenhand.probes.shared.claims import claim, drawn
from evenhand.probes.shared.reach import short
from evenhand.requests import MASK, FillMask
from evenhand.runs.finding import Finding
from evenhand.strict import record


class Honest(Probe):
    """Are sentences about one group completed with hurtful words more often?

    Args:
        data: HONEST's template file (template_masked, identity, category, type).
        lexicon: the packaged hurtful words, or HurtLex's file of the language.
        language: of templates and lexicon.
        top: completions per template.
        templates: how many templates to draw per identity; None for all.
    """

    name: ClassVar[str] = "honest"
    title: ClassVar[str] = "Are sentences about one group completed with hurtful words more often?"
    paper: ClassVar[str] = "Nozza et al. 2021, 2022 (HONEST)"
    needs: ClassVar[tuple[str, ...]] = (FillMask.kind,)
    detects: ClassVar[str] = "hurtful completions of sentences about a group"
    bound: ClassVar[str] = "the benchmark's templates"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "templates"
    item_shape: ClassVar = ItemShape(
        text=("template",),
        score=("hurtful",),
        answer=("completion",),
        method="top completions looked up in a lexicon",
        clusters=("template",),
    )

    data: str = ""
    lexicon: str = PACKAGED
    language: str = "en"
    top: int = Field(20, ge=1, le=100)
    templates: int | None = Field(None, ge=1)
    draw: int = 0

    def chosen(self) -> list[Template]:
        found = read_templates(find_data(self.data, "HONEST (binary_en_template.tsv)"))
        return drawn(found, [(t.group, t.identity) for t in found], self.templates, self.draw)

    def words(self) -> dict[str, str]:
        name = self.lexicon if self.lexicon == PACKAGED else find_data(self.lexicon, "lexicon")
        return read_lexicon(name, self.language)

    def lexicons(self) -> list[str]:
        return [self.lexicon]

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        found = self.chosen()
        self.words()
        return Preview(len(found), self._requests(found), found[0].text, self._limits(found))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._limits(self.chosen())

    def _limits(self, found: list[Template]) -> tuple[str, ...]:
        """Identity terms are the sample, in every group."""
        units = [(t.group, t.identity) for t in found]
        groups = len(dict(units))
        return (
            ()
            if self.as_published
            else short(units, "identity terms", groups * (groups - 1) // 2, self.rate)
        )

    def within(self, share: float) -> Probe:
        found = self.chosen()
        most = max(sum(t.identity == i for t in found) for i in {t.identity for t in found})
        return self.model_copy(update={"templates": max(1, int(most * share))})

    def _requests(self, templates: list[Template]) -> FillMask:
        return FillMask([t.text.replace(SLOT, MASK) for t in templates], top=self.top)

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        found, words = self.chosen(), self.words()
        fills = ask(self._requests(found), self.name)["fills"]
        pairs = [(t, str(w)) for t, row in zip(found, fills) for w in row]
        texts = [w for _, w in pairs]
        given = (texts, [t.identity for t, _ in pairs], [t.group for t, _ in pairs], words)
        rows = score(*given, as_published=self.as_published, rate=self.rate, seed=seed)
        kinds = [hurtful(w, words, as_published=self.as_published) or "" for w in texts]
        items = pa.table(
            {
                "template": [t.text for t, _ in pairs],
                "identity": [t.identity for t, _ in pairs],
                "category": [t.category for t, _ in pairs],
                "completion": texts,
                "hurtful": kinds,
            }
        )
        short = len(found) * self.top - len(texts)
        parts = sum(not any(c.isalpha() for c in w) or w.startswith("##") for w in texts)
        summary = {
            "templates": len(found),
            "completions": len(texts),
            "missing_completions": short,
            "no_words": parts,
            "terms": len(words),
            "lexicons": self.lexicons(),
        }
        claims = self.findings(rows, short, len(found) * self.top)
        tables = {"scores": score_table(rows)}
        return Measured(claims, items, tables, summary, (placebos(*given, seed=seed),))

    def findings(
        self, rows: Sequence[HonestRow], short: int = 0, planned: int = 1
    ) -> list[Finding]:
        """What the rows say; `short` of the completions that were planned are missing."""
        return [self._finding(row, short, planned) for row in rows]

    def _finding(self, row: HonestRow, short: int, planned: int) -> Finding:
        first, second = row.group, row.other
        if second:
            side = first if not row.mean.value < 0 else second
            other = second if side == first else first
            text = (
                f"HONEST: completions of sentences about {side} people hold a hurtful word "
                f"{abs(row.mean.value):.2f} percentage points more often than about {other} people."
            )
        else:
            whom = "all sentences" if first == "overall" else f"sentences about {first} people"
            text = f"HONEST: {row.mean.value:.2f} of 100 completions of {whom} hold a hurtful word."
        return claim(
            row,
            id=f"honest/{first}-{second}" if second else f"honest/{first}",
            probe=self.name,
            metric="honest_gap" if second else "honest",
            coverage=1 - short / max(1, planned),
            groups=(first, second) if second else (),
            attribute="hurtful completions" if second else f"hurtful completions, {first}",
            sentence=text if row.mean.value == row.mean.value else "HONEST could not be scored.",
            otherwise=(
                f"HONEST: no difference was detected in how often sentences about {first} and "
                f"{second} people are completed with a hurtful word."
            ),
            over="identity terms",
            as_published=self.as_published,
        )


def score_table(rows: Sequence[HonestRow]) -> pa.Table:
    """The rows without the categories that were hit."""
    flat = [{k: v for k, v in r.items() if k != "categories"} for r in record(rows)]
    return pa.Table.from_pylist(flat)

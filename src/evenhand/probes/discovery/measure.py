"""`evenhand measure discovery`: SODAPOP's numbers from distractors that were shown elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import Field

from evenhand.compare.rows import Row
from evenhand.corpora.tables import read_table
from evenhand.errors import SpecError, unknown
from evenhand.metrics.sodapop import COUNTS
from evenhand.probes.discovery.counts import (
    COLUMNS,
    MIN_COUNT,
    RELEASED_MIN_COUNT,
    WordCounts,
    count_words,
    read_stop_words,
    shown_from,
)
from evenhand.probes.discovery.inference import Settings, check_groups, compare
from evenhand.probes.discovery.people import SuggestTraitsReader, TraitsReader, ValidityReader
from evenhand.probes.discovery.stereotypes import Matched, match, read_stereotypes
from evenhand.probes.reading import Claims, Input, Reader, Result, Seed, Shown, number, span
from evenhand.strict import OPTIONAL

SHOWN = 15
DISCOVERED = 0.05
"""The q value up to which a word's lean is matched with stereotypes."""


@dataclass(frozen=True, kw_only=True)
class DiscoveryResult(Result):
    """Words by rd downwards (positive leans to group A), clusters, and what was kept.

    `p`, `q`, `low` and `high` of a word are SODAPOP's: for these situations. The verdict that
    reaches beyond them is its `beyond`; `typical` is what wrong answers share, whatever the words.
    """

    group_a: str
    group_b: str
    words: Sequence[Row]
    clustering: Mapping[str, Any]
    p_method: str
    n_partitions: int
    reason: str
    typical: Row | None
    vocabulary: Sequence[str]
    names: Sequence[str]
    groups: Mapping[str, Sequence[str]]
    contexts: int
    distractors: int
    repeats_merged: int
    distinct_words: int
    count: str
    min_count: int
    as_published: bool
    seed: int
    stereotypes: Sequence[Matched] | None = field(default=None, metadata=OPTIONAL)
    """Words found to lean to a group (q <= 0.05), and what annotators say of them."""

    def shown(self) -> Iterator[Shown]:
        sizes = [f"{g} ({len(self.groups[g])} names" for g in (self.group_a, self.group_b)]
        rows = [row for row in self.words if row.value == row.value]
        ends = rows if len(rows) <= 2 * SHOWN else rows[:SHOWN] + rows[-SHOWN:]
        yield Shown(
            f"{sizes[0]}, positive) against {sizes[1]}): {len(self.vocabulary)} words, "
            f"p {self.p_method}, for these situations",
            ["word", "SR a", "SR b", "RD", "95 % interval", "p", "q", "n"],
            [
                [
                    r["word"],
                    number(r["sr_a"]),
                    number(r["sr_b"]),
                    number(r.value, "+.4f"),
                    span(r.low, r.high),
                    number(r.p, ".2g"),
                    number(r.q, ".2g"),
                    str(r["n"]),
                ]
                for r in ends
            ],
        )
        yield from self._beyond()
        means = self.clustering
        if means["kmeans_accuracy"] == means["kmeans_accuracy"]:
            yield Shown(
                f"k-means tells the groups apart in {100 * means['kmeans_accuracy']:.0f} % of "
                f"names (by chance {100 * means['null_mean']:.0f} %, 95 % point "
                f"{100 * means['null_p95']:.0f} %, p {means['p']:.2g})"
            )
        dropped = self.distinct_words - len(self.vocabulary)
        yield Shown(
            f"{self.distractors} distractors in {self.contexts} contexts; {dropped} of "
            f"{self.distinct_words} words dropped (stop words, punctuation, fewer than "
            f"{self.min_count} per name)"
        )
        if self.stereotypes is not None:
            listed = [m for m in self.stereotypes if m.votes == m.votes]
            called = sum(m.stereotype for m in listed)
            yield Shown(
                f"Stereotypes: of {len(self.stereotypes)} words found to lean, {called} are called "
                f"a stereotype of that group by most annotators, {len(listed) - called} are not, "
                f"{len(self.stereotypes) - len(listed)} are not listed"
            )
        if self.reason:
            yield Shown(f"Note: {self.reason}.")

    def _beyond(self) -> Iterator[Shown]:
        """The verdict over names and situations, the least likely by chance first."""
        verdicts = [(row["word"], row["beyond"]) for row in self.words if "beyond" in row]
        known = sorted((v for v in verdicts if v[1].p == v[1].p), key=lambda v: v[1].p)
        rest = [("(typical word)", self.typical)] if self.typical else []
        if not known:
            return
        yield Shown(
            f"Beyond these situations: t over names{' and situations' if self.contexts > 1 else ''}"
            f"{', beyond the typical word' if rest else ''} ({len(known)} words)",
            ["word", "difference", "95 % interval", "p", "q", "situations"],
            [
                [
                    word,
                    number(t.value, "+.4f"),
                    span(t.low, t.high),
                    number(t.p, ".2g"),
                    number(t.q, ".2g"),
                    str(t["situations"]),
                ]
                for word, t in [*known[:SHOWN], *rest]
            ],
        )


class DiscoveryReader(Reader):
    """Words whose distractors win more often for one group's names than for another's.

    A distractor that a name and context show twice counts once, as won if it won once (Eq. 1
    speaks of sets, and the released loader keeps sets). As published: occurrences, RD as a sum
    over names, seed 10, strictly larger, nothing added, 10 restarts of k-means.
    """

    name = "discovery"
    help = """Words that make wrong answers win for one group's names (SODAPOP).

    One row per distractor shown: group, name, context, distractor, success (0/1 or a share).
    """
    positional = ("table",)

    table: Input
    group_a: str = Field(description="Positive numbers lean to this group.")
    group_b: str = Field(description="The group it is compared with.")
    count: str | None = Field(
        None, description="indicator (Eq. 1, the default) or occurrence (default as published)."
    )
    stop_words: str = Field("nltk", description="nltk, none, or a file of words.")
    min_count: int | None = Field(
        None,
        ge=0,
        description="Keep words that were shown at least this often per name; default: 50.",
    )
    samples: int | None = Field(None, ge=1, description="Random re-labellings; 99,999.")
    seed: Seed = 0
    as_published: bool = Field(False, description="Rules of SODAPOP's released code.")
    stereotypes: Path | None = Field(
        None, description="A SeeGULL file: what annotators call a stereotype of these groups."
    )
    language: str = Field(
        "", description="Language to take from a SeeGULL file that holds several."
    )

    def read(self) -> DiscoveryResult:
        table = read_table(self.table, text=COLUMNS[:4], needed=COLUMNS)
        how = self.count or ("occurrence" if self.as_published else "indicator")
        if how not in COUNTS:
            raise SpecError(unknown("count", how, COUNTS, where="--count"))
        both = (self.group_a, self.group_b)
        rows = shown_from(table)
        check_groups(rows.groups, both, table.source)
        rows, repeats = rows.only(both).distinct()
        least = self.min_count
        if least is None:
            least = RELEASED_MIN_COUNT if self.as_published else MIN_COUNT
        counts = count_words(
            rows,
            stop_words=read_stop_words(self.stop_words),
            min_count=least,
            count=how,
            first_name_only=self.as_published,
        )
        settings = Settings(self.samples, self.seed, self.as_published)
        compared = compare(counts, *both, settings)
        result = DiscoveryResult(
            **vars(compared),
            vocabulary=counts.words,
            names=counts.names,
            groups={g: [n for n, of in zip(counts.names, counts.groups) if of == g] for g in both},
            contexts=len(counts.contexts),
            distractors=len(rows),
            repeats_merged=repeats,
            distinct_words=counts.distinct_words,
            min_count=least,
            count=how,
            **self.only("group_a", "group_b", "as_published", "seed"),
            stereotypes=self._stereotypes(compared.words),
        )
        return result.telling(lambda: self._claims(counts, settings, table.source))

    def _stereotypes(self, words: Sequence[Row]) -> list[Matched] | None:
        """The discovered associations beside what annotators call a stereotype."""
        if self.stereotypes is None:
            return None
        known = read_stereotypes(self.stereotypes, self.language)
        leans = [row for row in words if row.q <= DISCOVERED]
        sides = (self.group_b, self.group_a)
        return match(((sides[row.value > 0], row["word"]) for row in leans), known)

    def _claims(self, counts: WordCounts, settings: Settings, source: str) -> Claims:
        from evenhand.probes.discovery.findings import Kept, measured
        from evenhand.probes.discovery.probe import Discovery

        probe = Discovery.model_validate({"as_published": self.as_published})
        pair = (self.group_a, self.group_b)
        measured_pair = measured(probe.name, counts, [pair], settings, Kept((), (), {}))
        return Claims.of(probe, self, source, measured_pair)


READERS = (DiscoveryReader, TraitsReader, SuggestTraitsReader, ValidityReader)

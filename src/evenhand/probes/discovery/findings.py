"""From word counts to findings: words per pair of groups, the typical word, clusters of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.metrics.sodapop import Floats
from evenhand.models.choosing import TOLD
from evenhand.probes.base import Measured
from evenhand.probes.discovery.counts import Shown, WordCounts
from evenhand.probes.discovery.inference import (
    Compared,
    Settings,
    WordRow,
    compare,
)
from evenhand.probes.discovery.tables import (
    items,
    name_map,
    rate_table,
    sample_table,
    table_of,
)
from evenhand.probes.discovery.told import Teller
from evenhand.probes.discovery.word_tests import Tested, corrected, halves
from evenhand.probes.shared.refusals import REFUSED, parity
from evenhand.runs.finding import NAN, Finding
from evenhand.stats.estimate import estimate
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.power import detectable_effect
from evenhand.stats.two_groups import group_contrasts
from evenhand.strict import record
from evenhand.words.social_iqa import Context

WORDS_PER_SIDE = 10
Pair = tuple[str, str]


@dataclass(frozen=True)
class Kept:
    """What a run keeps besides the counts: contexts, a sample of distractors, facts, and what is
    known of the answers [names, contexts, TOLD]."""

    contexts: Sequence[Context]
    shown: Sequence[Shown]
    facts: Mapping[str, Any]
    told: Floats | None = None


@dataclass(frozen=True)
class Test:
    """A word of a pair of groups and its verdict; no word: the typical one of the pair."""

    pair: Pair
    word: WordRow | None
    found: Tested

    def row(self) -> dict[str, Any]:
        """As a row of the table: the verdict's numbers, and `p_names` for these situations."""
        head = {"pair": " / ".join(self.pair), "group_a": self.pair[0], "group_b": self.pair[1]}
        if self.word is None:
            return {**head, **record(self.found)}
        told = record(replace(self.word, beyond=None))
        told |= {"p_names": told.pop("p"), "q_names": told.pop("q")}
        told |= {"rd_low": told.pop("low"), "rd_high": told.pop("high")}
        return {**head, **told, **record(self.found)}


def measured(
    probe: str,
    counts: WordCounts,
    pairs: Sequence[Pair],
    settings: Settings,
    kept: Kept,
) -> Measured:
    """Findings, items and tables of all pairs; q is corrected over every word of every pair."""
    results = [compare(counts, a, b, settings) for a, b in pairs]
    tests = _tests(results, pairs, settings)
    words, typical = ([t for t in tests if (t.word is None) == way] for way in (False, True))
    clusters = cluster_rows(results, pairs)
    sample = sample_table(kept.shown, kept.contexts)
    teller = Teller(probe, counts, settings, sample, relative=bool(typical), tests=len(words))
    listed = {pair: _listed(words, pair, settings.rate) for pair in pairs}
    claims = [teller.word(t.pair, t.word, t.found) for rows in listed.values() for t in rows]
    claims += [teller.typical(t.pair, t.found) for t in typical]
    claims += [teller.untested(pair, results[0].reason) for pair in pairs if not listed[pair]]
    claims += [teller.clusters(row) for row in clusters]
    if kept.told is not None and not settings.as_published:
        claims += _refusals(probe, counts, pairs, kept.told, settings.rate, len(tests))
    coverage = float(kept.facts.get("context_coverage", 1.0))
    told = {id(t) for rows in listed.values() for t in rows}
    made = [t for t in words if t.found.p == t.found.p]
    unlisted = tuple(t.found.p for t in made if id(t) not in told)
    tables = {
        "words": table_of([t.row() for t in words]),
        "typical": table_of([t.row() for t in typical]),
        "pairs": table_of(clusters),
        "rates": rate_table(counts),
        "names": name_map(counts, settings.seed),
        "distractors": sample,
    }
    summary = {
        **kept.facts,
        "vocabulary": len(counts.words),
        "distinct_words": counts.distinct_words,
        "names": len(counts.names),
        "contexts": len(counts.contexts),
        "pairs": len(pairs),
        "tests": len(made),
        "tests_not_made": len(words) - len(made),
        "tests_not_listed": len(unlisted),
        "detected": sum(t.found.q <= settings.rate for t in words),
        "p_method": results[0].p_method if results else "",
        "reason": results[0].reason if results else "",
    }
    groups = list(dict.fromkeys(g for pair in pairs for g in pair))
    return Measured(
        [replace(c, coverage=coverage) for c in claims],
        items(counts, kept.told),
        tables,
        summary,
        () if settings.as_published else halves(counts, groups, settings.seed),
        unlisted,
    )


def _refusals(
    probe: str, counts: WordCounts, pairs: Sequence[Pair], told: Floats, rate: float, tests: int
) -> list[Finding]:
    """Whether questions about one group's names are declined more often, pair by pair."""
    refused, labels = told[..., TOLD.index(REFUSED)], np.asarray(counts.groups)
    out: list[Finding] = []
    for a, b in pairs:
        one, two = refused[labels == a], refused[labels == b]
        both = np.concatenate([one, two])[..., None]
        made = group_contrasts(both, np.arange(len(both)) < len(one), min(2, both.shape[1]))
        found = made.estimates(rate=rate)[0]
        if made.error[0] == 0:  # nothing varies
            found = estimate(float(made.value[0]), 0.0, 1.0, units=found.units)
        out += parity(
            f"{probe}/{REFUSED}/{a}-{b}",
            (a, b),
            one,
            two,
            units="names",
            over=("names", "situations"),
            found=found,
            rate=rate,
            family=tests + len(pairs),
            method="t over names and situations",
        )
    return out


def _tests(results: Sequence[Compared], pairs: Sequence[Pair], settings: Settings) -> list[Test]:
    """Words of all pairs and their typical words, corrected over the whole run."""
    tests = []
    for pair, result in zip(pairs, results):
        size = sum(len(r.words) for r in results)
        tests += [
            Test(pair, row, row.beyond or _published(row, settings.rate / max(1, size)))
            for row in result.words
        ]
        if result.typical:
            tests.append(Test(pair, None, result.typical))
    if settings.as_published:
        q = benjamini_hochberg([t.found.p for t in tests])
        return [replace(t, found=replace(t.found, q=float(v))) for t, v in zip(tests, q)]
    found = corrected([t.found for t in tests], settings.rate)
    return [replace(t, found=v) for t, v in zip(tests, found)]


def _published(row: WordRow, level: float) -> Tested:
    """The released test of d, with an interval over names."""
    error = (row.d_high - row.d_low) / 3.92
    seen = float(detectable_effect(error, level)) if error == error else NAN
    return Tested(row.d, row.d_low, row.d_high, row.p, NAN, NAN, NAN, seen, 0, row.n, "")


def cluster_rows(results: Sequence[Compared], pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """How well clusters of names recover each pair of groups, with q over the pairs."""
    rows = [
        {"pair": f"{a} / {b}", "group_a": a, "group_b": b, **record(result.clustering)}
        for (a, b), result in zip(pairs, results)
    ]
    q = benjamini_hochberg([row["p"] for row in rows])
    return [{**row, "q": float(value)} for row, value in zip(rows, q)]


def _listed(tests: Sequence[Test], pair: Pair, rate: float) -> list[Test]:
    """The detected words of each side of a pair, or the least likely by chance when none is."""
    here = [t for t in tests if t.pair == pair and t.found.p == t.found.p]
    here.sort(key=lambda t: (t.found.p, -abs(t.found.value)))
    found = [t for t in here if t.found.q <= rate]
    sides = [[t for t in found if (t.found.value > 0) == way] for way in (True, False)]
    return [t for side in sides for t in side[:WORDS_PER_SIDE]] or here[:1]

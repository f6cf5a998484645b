"""From word counts to findings: words per pair of groups, the typical word, clusters of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.compare.examples import median_example
from evenhand.compare.rows import Reported, Row, Test, claim, judge
from evenhand.compare.rows import table_of as rows_as_table
from evenhand.metrics.sodapop import Floats
from evenhand.models.choosing import TOLD
from evenhand.probes.base import Measured
from evenhand.probes.discovery.counts import Shown, WordCounts
from evenhand.probes.discovery.inference import (
    Compared,
    Settings,
    Verdict,
    compare,
    fixed,
    halves,
    rates,
)
from evenhand.probes.shared.alone import absolute_details, simultaneous
from evenhand.probes.shared.refusals import REFUSED, parity
from evenhand.runs.finding import NAN, Finding
from evenhand.runs.wording import people
from evenhand.stats.estimate import estimate
from evenhand.stats.power import detectable_effect
from evenhand.stats.two_groups import group_contrasts
from evenhand.words.names import plane_table
from evenhand.words.social_iqa import Context


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table; one of no rows still has a column."""
    return rows_as_table(rows) if rows else pa.table({"pair": pa.array([], pa.string())})


def items(counts: WordCounts, told: Floats | None = None) -> pa.Table:
    """Counts per name, context and word: enough to compute every number again; and what is known
    of the answers about this name in this context (`told` [names, contexts, TOLD])."""
    at = np.nonzero(counts.shown)
    known = {} if told is None else {n: told[at[0], at[1], k] for k, n in enumerate(TOLD)}
    return pa.table(
        {
            "group": np.asarray(counts.groups, object)[at[0]],
            "name": np.asarray(counts.names, object)[at[0]],
            "context": np.asarray(counts.contexts, object)[at[1]],
            "word": np.asarray(counts.words, object)[at[2]],
            "shown": counts.shown[at],
            "won": counts.won[at],
            **known,
        }
    )


def rate_table(counts: WordCounts) -> pa.Table:
    """Mean success rate by group and word, for the heat map."""
    values, labels = rates(counts), np.asarray(counts.groups)
    means = {group: values[labels == group].mean(axis=0) for group in dict.fromkeys(counts.groups)}
    return table_of(
        [
            {"group": group, "word": word, "sr": float(rate)}
            for group, mean in means.items()
            for word, rate in zip(counts.words, mean)
        ]
    )


def name_map(counts: WordCounts, seed: int) -> pa.Table:
    """Names on a plane by their success rates: t-SNE as in the paper (perplexity 30 at most)."""
    return plane_table(counts.names, counts.groups, np.nan_to_num(rates(counts)), seed)


def sample_table(shown: Sequence[Shown], contexts: Sequence[Context]) -> pa.Table:
    """Kept distractors with their right answers: the validity sheet starts from it."""
    right = {context.id: context for context in contexts}
    rows = [
        {
            "group": part.groups[n],
            "name": part.names[n],
            "context": filled.id,
            "situation": filled.context,
            "answer": filled.answer,
            "distractor": part.distractors[d],
            "success": float(success),
        }
        for part in shown
        for n, d, success in zip(part.name, part.distractor, part.success)
        for filled in [right[part.contexts[0]].filled(part.names[n])]
    ]
    texts = [(name, pa.string()) for name in SAMPLE]
    return pa.Table.from_pylist(rows, schema=pa.schema([*texts, ("success", pa.float64())]))


SAMPLE = ("group", "name", "context", "situation", "answer", "distractor")
RELEASED = "released permutation test (seed 10, strict); interval over names (Welch)"
BEYOND = "beyond what holds for the typical word"
DETAILS = ("sr_a", "sr_b", "d", "rd", "log_odds", "p_max_t", "p_names")


class Teller:
    """Words a test of a pair of groups as a claim.

    Args:
        sample: wrong answers that were kept, for examples.
        relative: whether words are compared with the typical one.
        tests: how many words of all pairs were tested.
    """

    def __init__(
        self,
        probe: str,
        counts: WordCounts,
        settings: Settings,
        sample: pa.Table,
        *,
        relative: bool,
        tests: int,
    ) -> None:
        self.rate, self.tests = settings.rate, tests
        self.probe, self.groups, self.relative = probe, counts.groups, relative
        self.published = settings.as_published
        self.texts = sample.to_pylist()
        several = len(counts.contexts) > 1
        self.over = ("names", "situations") if several else ("names",)
        self.where = "" if several else " in this one situation"

    def word(self, row: Row) -> Finding:
        """A word's difference, beyond the typical word where there is one."""
        word, (more, less) = row["word"], _sides(row)
        one, two = (people(group) for group in _pair(row))
        rates = dict(zip(_pair(row), (row["sr_a"], row["sr_b"])))
        head = f"{BEYOND.capitalize()}, wrong" if self.relative else "Wrong"
        tail = f", {BEYOND}" if self.relative else ""
        alone: dict[str, float] = {}
        if self.relative and row.test.about is not None:
            alone = absolute_details(simultaneous(row.test.about, self.tests, self.rate))
        return self._claim(
            row,
            f"{head} answers with the word {word!r} win more often{self.where} when the person "
            f"has a name of {people(more)} than of {people(less)}: {100 * abs(row.value):.1f} "
            f"more of 100 (success rates {100 * rates[more]:.1f} % against {100 * rates[less]:.1f} "
            "%).",
            f"No difference between names of {one} and of {two} was detected in how often wrong "
            f"answers with the word {word!r} win{self.where}{tail}.",
            attribute=word,
            examples=typical_examples(word, more, less, self.texts),
            details={
                **{name: row[name] for name in DETAILS},
                "shown": row["n"],
                "situations": row["situations"],
                **alone,
            },
        )

    def typical(self, row: Row) -> Finding:
        """What wrong answers share, whatever their words."""
        more, less = (people(group) for group in _sides(row))
        one, two = (people(group) for group in _pair(row))
        return self._claim(
            row,
            f"Whatever its words, a wrong answer wins more often{self.where} when the person has a "
            f"name of {more} than of {less}: {100 * abs(row.value):.1f} more of 100 for the "
            "typical word.",
            f"No difference between names of {one} and of {two} was detected in how often wrong "
            f"answers with the typical word win{self.where}.",
            attribute="the typical word",
            details={"situations": row["situations"]},
        )

    def untested(self, pair: tuple[str, str], reason: str) -> Finding:
        """That no word of a pair could be tested."""
        one, two = (people(g) for g in pair)
        sentence = f"Which words win more often for names of {one} or of {two} could not be tested."
        return Finding(
            f"{self.probe}/{'-'.join(pair)}/words",
            self.probe,
            "d",
            NAN,
            sentence,
            groups=pair,
            reason=reason or "no word was shown with names of both groups in enough situations",
            as_published=self.published,
        )

    def clusters(self, row: Row) -> Finding:
        """How far clusters of names recover the groups; without direction, so it is no verdict."""
        a, b = row["group_a"], row["group_b"]
        p, q = (float(row[k]) if self.published else NAN for k in ("p", "q"))
        details = {name: v for name, v in row.items() if name.startswith("linear")}
        told = (
            f"two clusters of names by their success rates recover {people(a)} and {people(b)} for "
            f"{100 * row['kmeans_accuracy']:.0f} % of names (permuted groups: "
            f"{100 * row['null_mean']:.0f} %, 95 % point {100 * row['null_p95']:.0f} %)."
        )
        return Finding(
            id=f"{self.probe}/clusters/{a}-{b}",
            probe=self.probe,
            metric="kmeans_accuracy",
            value=float(row["kmeans_accuracy"]),
            n=sum(g in (a, b) for g in self.groups),
            groups=(a, b),
            attribute="clusters of names",
            ideal=float(row["null_mean"]),
            floor=float(row["null_p95"]),
            sentence=f"In these situations, {told}",
            otherwise=f"No separation of the groups was detected: in these situations, {told}"
            if self.published
            else "",
            reason=row["reason"],
            method=f"k-means, {row['restarts']} starts; exact null of permuted labels",
            as_published=self.published,
            units="names",
            generalises_over=("names",),
            p=p,
            q=q,
            details={**details, "p_names": float(row["p"])},
        )

    def _claim(self, row: Row, sentence: str, otherwise: str, **more: Any) -> Finding:
        units, situations = row.estimate.units, row["situations"]
        scarce = "names" if units < situations or situations < 2 else "situations"
        return claim(
            row,
            self.probe,
            sentence=sentence,
            otherwise=otherwise,
            units="wrong answers shown" if self.published else scarce,
            over=self.over,
            method=RELEASED if self.published else f"t over {' and '.join(self.over)}",
            as_published=self.published,
            groups=_pair(row),
            **more,
        )


def _pair(row: Row) -> Pair:
    return row["group_a"], row["group_b"]


def _sides(row: Row) -> Pair:
    """Who has more and who has less."""
    one, two = _pair(row)
    return (one, two) if row.value > 0 else (two, one)


def typical_examples(
    word: str, more: str, less: str, texts: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """The median of the wrong answers that won more often for the first group, if any did.

    Only answers that the sample has for names of both groups are compared.
    """
    shared: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for text in texts:
        if text["group"] in (more, less) and word in text["distractor"].split(" "):
            key = text["context"], text["distractor"]
            shared.setdefault(key, {more: [], less: []})[text["group"]].append(text)
    gaps = []
    for (_, distractor), sides in shared.items():
        if sides[more] and sides[less]:
            rates = {g: float(np.mean([t["success"] for t in rows])) for g, rows in sides.items()}
            gaps.append((rates[more] - rates[less], distractor, sides[more][0], rates))
    example = median_example([gap[0] for gap in gaps], 1.0, ties=[gap[1] for gap in gaps])
    if example is None:
        return ()
    _, distractor, text, rates = gaps[example.place]
    return (
        {
            "situation": text["situation"],
            "answer": text["answer"],
            "distractor": distractor,
            "success": rates[more],
            "success_for_the_others": rates[less],
            "typical": f"the median of {example.agree} that agree, of {len(gaps)} wrong answers",
        },
    )


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


def measured(
    probe: str,
    counts: WordCounts,
    pairs: Sequence[Pair],
    settings: Settings,
    kept: Kept,
) -> Measured:
    """Findings, items and tables of all pairs; q is corrected over every word of every pair."""
    results = [compare(counts, a, b, settings) for a, b in pairs]
    rows = judge(_tests(results, pairs, settings), settings.rate)
    words, typical = ([r for r in rows if r.test.table == name] for name in ("words", "typical"))
    clusters = cluster_rows(results, pairs)
    sample = sample_table(kept.shown, kept.contexts)
    teller = Teller(probe, counts, settings, sample, relative=bool(typical), tests=len(words))
    listed = {pair: _listed(words, pair, settings.rate) for pair in pairs}
    claims = [teller.word(row) for part in listed.values() for row in part]
    claims += [teller.typical(row) for row in typical]
    claims += [teller.untested(pair, results[0].reason) for pair in pairs if not listed[pair]]
    claims += [teller.clusters(row) for row in clusters]
    if kept.told is not None and not settings.as_published:
        claims += _refusals(probe, counts, pairs, kept.told, settings.rate, len(rows))
    coverage = float(kept.facts.get("context_coverage", 1.0))
    said = {id(row) for part in listed.values() for row in part}
    known = [row for row in words if row.p == row.p]
    unlisted = tuple(row.p for row in known if id(row) not in said)
    tables = {
        "words": table_of(words),
        "typical": table_of(typical),
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
        "tests": len(known),
        "tests_not_made": len(words) - len(known),
        "tests_not_listed": len(unlisted),
        "detected": sum(row.q <= settings.rate for row in words),
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
        gaps = group_contrasts(both, np.arange(len(both)) < len(one), min(2, both.shape[1]))
        found = gaps.estimates(rate=rate)[0]
        if gaps.error[0] == 0:  # nothing varies
            found = estimate(float(gaps.value[0]), 0.0, 1.0, units=found.units)
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
    """Words of all pairs and their typical words, to be corrected over the whole run.

    `p`, `low` and `high` of a row are the verdict's; SODAPOP's own are `p_names` and `rd_low`.
    """
    size = sum(len(result.words) for result in results)
    metric = "d" if all(result.typical is None for result in results) else "d_beyond"
    tests: list[Test] = []
    for pair, result in zip(pairs, results):
        place = "-".join(pair)
        head = {"pair": " / ".join(pair), "group_a": pair[0], "group_b": pair[1]}
        for word in result.words:
            names = {**head, **word.but("beyond", "p", "q", "low", "high")}
            names |= {"p_names": word.p, "q_names": word.q}
            names |= {"rd_low": word.low, "rd_high": word.high}
            verdict = word.get("beyond")
            test = verdict.test if verdict else _published(word, settings.rate / max(1, size))
            at = f"{place}/{word['word']}"
            tests.append(replace(test, place=at, metric=metric, names=names, table="words"))
        if result.typical is not None:
            test = result.typical.test
            test = replace(test, place=place, metric="d_typical", names=head, table="typical")
            tests.append(test)
    return tests


def _published(word: Row, level: float) -> Test:
    """The released test of d, with an interval over names."""
    low, high = word["d_low"], word["d_high"]
    error = (high - low) / 3.92
    seen = float(detectable_effect(error, level)) if error == error else NAN
    return Test("", "", {}, fixed(Verdict(word["d"], NAN, NAN, low, high, word.p, seen, word.n)))


def cluster_rows(results: Sequence[Compared], pairs: Sequence[Pair]) -> list[Row]:
    """How well clusters of names recover each pair of groups, with q over the pairs."""
    tests = []
    for pair, result in zip(pairs, results):
        columns = result.clustering
        estimate = Reported(columns["kmeans_accuracy"], p=columns["p"], columns=columns)
        names = {"pair": " / ".join(pair), "group_a": pair[0], "group_b": pair[1]}
        tests.append(Test("clusters", "kmeans_accuracy", names, fixed(estimate)))
    return judge(tests)


def _listed(words: Sequence[Row], pair: Pair, rate: float) -> list[Row]:
    """The detected words of each side of a pair, or the least likely by chance when none is."""
    here = [row for row in words if _pair(row) == pair and row.p == row.p]
    here.sort(key=lambda row: (row.p, -abs(row.value)))
    detected = [row for row in here if row.q <= rate]
    sides = [[row for row in detected if (row.value > 0) == way] for way in (True, False)]
    return [row for side in sides for row in side[:WORDS_PER_SIDE]] or here[:1]

"""From word counts to findings: words per pair of groups, clusters, tables for charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.probes.base import Measured
from evenhand.probes.discovery.counts import Shown, WordCounts
from evenhand.probes.discovery.inference import (
    Compared,
    Settings,
    compare,
    group_replicates,
    rates,
)
from evenhand.runs.finding import NAN, Finding
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.power import detectable_effect
from evenhand.strict import record
from evenhand.words.names.embedding import on_a_plane
from evenhand.words.social_iqa import Context

WORDS_PER_SIDE = 10
EXAMPLES = 3


@dataclass(frozen=True)
class Kept:
    """What a run keeps besides the counts: contexts, a sample of distractors, facts."""

    contexts: Sequence[Context]
    shown: Sequence[Shown]
    facts: Mapping[str, Any]


def measured(
    probe: str,
    counts: WordCounts,
    pairs: Sequence[tuple[str, str]],
    settings: Settings,
    kept: Kept,
) -> Measured:
    """Findings, items and tables of all pairs; q is corrected over every word of every pair."""
    replicates = group_replicates(counts, settings)
    results = [compare(counts, a, b, settings, replicates) for a, b in pairs]
    words = _word_rows(results, pairs)
    clusters = _cluster_rows(results, pairs)
    sample = sample_table(kept.shown, kept.contexts)
    claims = _word_claims(probe, words, pairs, counts, settings, sample)
    not_listed = sum(row["p"] == row["p"] for row in words) - len(claims)
    claims += _cluster_claims(probe, clusters, counts, settings)
    coverage = float(kept.facts.get("context_coverage", 1.0))
    claims = [replace(claim, coverage=coverage) for claim in claims]
    tables = {
        "words": _table(words),
        "pairs": _table(clusters),
        "rates": _rate_table(counts),
        "names": _name_map(counts, settings.seed),
        "distractors": sample,
    }
    summary = {
        **kept.facts,
        "vocabulary": len(counts.words),
        "distinct_words": counts.distinct_words,
        "names": len(counts.names),
        "contexts": len(counts.contexts),
        "pairs": len(pairs),
        "tests": len(words),
        "tests_not_listed": not_listed,
        "detected": sum(row["q"] <= settings.rate for row in words),
        "p_method": results[0].p_method if results else "",
        "reason": results[0].reason if results else "",
    }
    return Measured(claims, _items(counts), tables, summary)


def _word_rows(
    results: Sequence[Compared], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    """All words of all pairs; `q` over the whole run, `q_pair` over the pair's vocabulary."""
    rows = [
        {"pair": f"{a} / {b}", "group_a": a, "group_b": b, **record(row), "q_pair": row.q}
        for (a, b), result in zip(pairs, results)
        for row in result.words
    ]
    q = benjamini_hochberg([row["p"] for row in rows])
    return [{**row, "q": float(value)} for row, value in zip(rows, q)]


def _cluster_rows(
    results: Sequence[Compared], pairs: Sequence[tuple[str, str]]
) -> list[dict[str, Any]]:
    rows = [
        {"pair": f"{a} / {b}", "group_a": a, "group_b": b, **record(result.clustering)}
        for (a, b), result in zip(pairs, results)
    ]
    q = benjamini_hochberg([row["p"] for row in rows])
    return [{**row, "q": float(value)} for row, value in zip(rows, q)]


def _word_claims(
    probe: str,
    rows: list[dict[str, Any]],
    pairs: Sequence[tuple[str, str]],
    counts: WordCounts,
    settings: Settings,
    sample: pa.Table,
) -> list[Finding]:
    """Per pair: the detected words of each side, or the strongest word when none is."""
    claims = []
    texts = sample.to_pylist()
    for a, b in pairs:
        here = [r for r in rows if (r["group_a"], r["group_b"]) == (a, b) and r["p"] == r["p"]]
        found = [r for r in here if r["q"] <= settings.rate]
        found.sort(key=lambda r: (r["q"], -abs(r["d"])))
        sides = [[r for r in found if r["d"] > 0], [r for r in found if r["d"] <= 0]]
        chosen = [r for side in sides for r in side[:WORDS_PER_SIDE]]
        if not chosen and here:
            chosen = [min(here, key=lambda r: (r["p"], -abs(r["d"])))]
        claims += [_word_claim(probe, r, counts, settings, texts) for r in chosen]
    return claims


def _word_claim(
    probe: str,
    row: Mapping[str, Any],
    counts: WordCounts,
    settings: Settings,
    texts: Sequence[Mapping[str, Any]],
) -> Finding:
    a, b = row["group_a"], row["group_b"]
    more, less = (a, b) if row["d"] > 0 else (b, a)
    high, low = max(row["sr_a"], row["sr_b"]), min(row["sr_a"], row["sr_b"])
    error = (row["d_high"] - row["d_low"]) / 3.92
    detected = row["q"] <= settings.rate
    verb = "win more often" if detected else "were not seen to win more often"
    sentence = (
        f"Wrong answers with the word {row['word']!r} {verb} when the person has a name of "
        f"{plain_group(more)} than of {plain_group(less)} ({high:.1%} against {low:.1%})."
    )
    return Finding(
        id=f"{probe}/{a}-{b}/{row['word']}",
        probe=probe,
        metric="d",
        value=float(row["d"]),
        low=float(row["d_low"]),
        high=float(row["d_high"]),
        p=float(row["p"]),
        q=float(row["q"]),
        n=int(row["n"]),
        groups=(a, b),
        attribute=str(row["word"]),
        detectable=float(detectable_effect(error)) if error == error else NAN,
        sentence=sentence,
        method=(
            "released permutation test (seed 10, strict); interval over names and contexts"
            if settings.as_published
            else "re-labelling names, all words at once; q over all words and pairs; interval "
            "over names and contexts"
        ),
        as_published=settings.as_published,
        examples=tuple(_examples(row, texts)),
        details={k: _clean(row[k]) for k in ("sr_a", "sr_b", "rd", "low", "high", "log_odds",
                                             "p_max_t", "q_pair")},
    )  # fmt: skip


def _examples(row: Mapping[str, Any], texts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    side = row["group_a"] if row["d"] > 0 else row["group_b"]
    fits = [t for t in texts if t["group"] == side and row["word"] in t["distractor"].split(" ")]
    fits.sort(key=lambda t: (-t["success"], t["distractor"], t["name"]))
    keys = ("situation", "answer", "distractor", "success")
    return [{k: t[k] for k in keys} for t in fits[:EXAMPLES]]


def _cluster_claims(
    probe: str, rows: list[dict[str, Any]], counts: WordCounts, settings: Settings
) -> list[Finding]:
    claims = []
    for row in rows:
        a, b = row["group_a"], row["group_b"]
        n = sum(g in (a, b) for g in counts.groups)
        told = row["q"] <= settings.rate
        verb = "tell apart" if told else "do not tell apart"
        claims.append(
            Finding(
                id=f"{probe}/clusters/{a}-{b}",
                probe=probe,
                metric="kmeans_accuracy",
                value=float(row["kmeans_accuracy"]),
                p=float(row["p"]),
                q=float(row["q"]),
                n=n,
                groups=(a, b),
                attribute="clusters of names",
                ideal=float(row["null_mean"]),
                floor=float(row["null_p95"]),
                sentence=(
                    f"The model's success rates {verb} names of {plain_group(a)} and of "
                    f"{plain_group(b)}: two clusters recover the groups for "
                    f"{row['kmeans_accuracy']:.0%} of names (by chance {row['null_mean']:.0%})."
                ),
                reason=row["reason"],
                method=f"k-means, {row['restarts']} starts; exact null of permuted labels",
                as_published=settings.as_published,
                details={k: _clean(v) for k, v in row.items() if k.startswith("linear")},
            )
        )
    return claims


def plain_group(group: str) -> str:
    """A group's name as a reader says it.

    >>> plain_group("african_american_female")
    'African American women'
    """
    words = group.replace("_", " ").split(" ")
    people = {"female": "women", "male": "men"}.get(words[-1])
    head = " ".join(w.capitalize() for w in (words[:-1] if people else words))
    return f"{head} {people}".strip() if people else head


def _clean(value: Any) -> Any:
    return float(value) if isinstance(value, (float, np.floating)) else value


def _table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    if not rows:
        return pa.table({"pair": pa.array([], pa.string())})
    return pa.Table.from_pylist([{k: _clean(v) for k, v in row.items()} for row in rows])


def _items(counts: WordCounts) -> pa.Table:
    """Counts per name, context and word: enough to compute every number again."""
    at = np.nonzero(counts.shown)
    return pa.table(
        {
            "group": np.asarray(counts.groups, object)[at[0]],
            "name": np.asarray(counts.names, object)[at[0]],
            "context": np.asarray(counts.contexts, object)[at[1]],
            "word": np.asarray(counts.words, object)[at[2]],
            "shown": counts.shown[at],
            "won": counts.won[at],
        }
    )


def _rate_table(counts: WordCounts) -> pa.Table:
    """Mean success rate by group and word, for the heat map."""
    values = rates(counts)
    groups = list(dict.fromkeys(counts.groups))
    rows = []
    for group in groups:
        mine = np.asarray(counts.groups) == group
        mean = values[mine].mean(axis=0) if len(counts.words) else []
        rows += [{"group": group, "word": w, "sr": float(v)} for w, v in zip(counts.words, mean)]
    return _table(rows)


def _name_map(counts: WordCounts, seed: int) -> pa.Table:
    """Names on a plane by their success rates: t-SNE as in the paper (perplexity 30 at most)."""
    base = {"name": list(counts.names), "group": list(counts.groups)}
    if not len(counts.words):
        return pa.table(base)
    made = on_a_plane(np.nan_to_num(rates(counts)), seed)
    return pa.table(base if made is None else {**base, "x": made[:, 0], "y": made[:, 1]})


def sample_table(shown: Sequence[Shown], found: Sequence[Context]) -> pa.Table:
    """Kept distractors with their right answers: the validity sheet starts from it."""
    right = {c.id: c for c in found}
    columns = ("group", "name", "context", "situation", "answer", "distractor", "success")
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for part in shown:
        for n, d, s in zip(part.name, part.distractor, part.success):
            filled = right[part.contexts[0]].filled(part.names[n])
            values = (part.groups[n], part.names[n], filled.id, filled.context, filled.answer,
                      part.distractors[d], float(s))  # fmt: skip
            for key, value in zip(columns, values):
                rows[key].append(value)
    text = {k: pa.array(v, pa.string()) for k, v in rows.items() if k != "success"}
    return pa.table({**text, "success": pa.array(rows["success"], pa.float64())})

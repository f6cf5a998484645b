"""Distances between next-word distributions after two contexts: own pairs, and as published.

    The man worked as ...        The woman worked as ...

The two distributions are compared in full (Liang et al. 2021, Sec. 3.1). Any change of a word moves
them, so a distance by itself says nothing about groups and has no test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.corpora.tables import read_table
from evenhand.probes.base import Asker
from evenhand.requests import Divergence as DivergenceRequests
from evenhand.requests import NextToken, Scores
from evenhand.runs.finding import NAN, Finding
from evenhand.stats import bootstrap
from evenhand.words.lexicons.people import ContextPair, context_pairs, prompts

METRICS = ("kl_ab", "kl_ba", "hellinger2", "js")
NEUTRAL = "neutral"
TOP = 30
EXAMPLES = 3
NO_TEST = "there are no neutral swaps to compare with, so there is no test"


@dataclass(frozen=True)
class Pair:
    """Two contexts, which axis and groups they compare, and the prompt they fill."""

    axis: str
    group_a: str
    group_b: str
    prompt: str
    context_a: str
    context_b: str

    @property
    def swap(self) -> tuple[str, str, str]:
        return self.axis, self.group_a, self.group_b


def published_pairs(axes: Sequence[str], lexicon: str) -> list[Pair]:
    """The ten local prompts of Liang et al. with every two groups of the axes."""
    found = [p for axis in axes for p in context_pairs(axis, lexicon=lexicon)]
    distinct = {(p.axis, p.term_a, p.term_b): p for p in found}.values()
    return [_filled(pair, prompt) for pair in distinct for prompt in prompts("local")]


def _filled(pair: ContextPair, prompt: str) -> Pair:
    def fill(term: str) -> str:
        text = prompt.replace("{person}", term)
        return text if term[0].islower() or " " in term else text.removeprefix("The ")

    return Pair(pair.axis, pair.group_a, pair.group_b, prompt, fill(pair.term_a), fill(pair.term_b))


def read_pairs(path: Path) -> list[Pair]:
    """Own pairs: a table with `context_a, context_b`, optionally `group_a, group_b, axis`."""
    own = ("context_a", "context_b")
    table = read_table(path, text=(*own, "group_a", "group_b", "axis"), needed=own)
    sides = [list(table.labels(name)) for name in own]
    groups = [table.texts("group_a", "a"), table.texts("group_b", "b")]
    axes = table.texts("axis", "pairs")
    return [
        Pair(axis, a, b, str(i), left, right)
        for i, (axis, a, b, left, right) in enumerate(zip(axes, *groups, *sides))
    ]


def requests(pairs: Sequence[Pair]) -> DivergenceRequests:
    return DivergenceRequests([p.context_a for p in pairs], [p.context_b for p in pairs])


def items(pairs: Sequence[Pair], scores: Scores) -> pa.Table:
    """One row per pair with its distances."""
    names = ("axis", "group_a", "group_b", "prompt", "context_a", "context_b")
    columns = {name: [getattr(p, name) for p in pairs] for name in names}
    return pa.table({**columns, **{m: scores[m] for m in METRICS}})


def summary(pairs: Sequence[Pair], scores: Scores, resamples: int, seed: int) -> dict[str, Any]:
    """Mean with interval and median of every divergence over the group swaps."""
    real = np.asarray([p.axis != NEUTRAL for p in pairs])
    out: dict[str, Any] = {"pairs": int(real.sum()), "neutral_pairs": int((~real).sum())}
    for metric in METRICS:
        values = np.asarray(scores[metric])[real]
        found = bootstrap.interval(values, resamples=resamples, seed=seed)
        out[metric] = {
            "mean": float(values.mean()) if len(values) else NAN,
            "low": float(found.low),
            "high": float(found.high),
            "median": float(np.median(values)),
        }
    return out


def claims(
    pairs: Sequence[Pair], scores: Scores, *, as_published: bool, resamples: int, seed: int
) -> list[Finding]:
    """The mean distance of every two groups; no test stands behind it."""
    h2 = np.asarray(scores["hellinger2"])
    out = []
    for axis, group_a, group_b in dict.fromkeys(p.swap for p in pairs if p.axis != NEUTRAL):
        values = h2[[i for i, p in enumerate(pairs) if p.swap == (axis, group_a, group_b)]]
        shown = np.sqrt(values) if as_published else values
        interval = bootstrap.interval(shown, resamples=resamples, seed=seed, method="expanded")
        out.append(
            Finding(
                id=f"divergence/{axis}/{group_a}-{group_b}",
                probe="divergence",
                metric="hellinger" if as_published else "hellinger2",
                value=float(shown.mean()),
                low=float(interval.low),
                high=float(interval.high),
                n=len(shown),
                groups=(group_a, group_b),
                attribute=axis,
                sentence=f"The model's next word differs between {group_a!r} and {group_b!r} "
                "contexts.",
                reason=NO_TEST,
                method="mean over pairs; bootstrap over pairs",
                as_published=as_published,
                details={"median": float(np.median(shown))},
            )
        )
    return out


def with_examples(
    claims: list[Finding], pairs: Sequence[Pair], scores: Scores, ask: Asker
) -> list[Finding]:
    """Show, for the widest contexts of each swap, which next words gain and lose."""
    h2 = np.asarray(scores["hellinger2"])
    widest = {}
    for claim in claims:
        at = [i for i, p in enumerate(pairs) if p.swap == (claim.attribute, *claim.groups)]
        widest[claim.id] = sorted(at, key=lambda i: -h2[i])[:EXAMPLES]
    rows = sorted({i for at in widest.values() for i in at})
    contexts = list(
        dict.fromkeys(c for i in rows for c in (pairs[i].context_a, pairs[i].context_b))
    )
    answered = ask(NextToken(contexts, top=TOP), "next words")
    words = {
        context: dict(zip(tokens, np.exp(logprobs)))
        for context, tokens, logprobs in zip(contexts, answered["tokens"], answered["logprobs"])
    }
    return [
        replace(c, examples=tuple(_example(pairs[i], h2[i], words) for i in widest[c.id]))
        for c in claims
    ]


def _example(pair: Pair, value: float, words: dict[str, dict[str, float]]) -> dict[str, Any]:
    a, b = words[pair.context_a], words[pair.context_b]
    gap = {w: a.get(w, 0.0) - b.get(w, 0.0) for w in {*a, *b}}
    ranked = sorted(gap, key=lambda w: (-gap[w], w))
    return {
        "context_a": pair.context_a,
        "context_b": pair.context_b,
        "hellinger2": round(float(value), 4),
        "more_after_a": [w.strip() for w in ranked[:5] if gap[w] > 0],
        "more_after_b": [w.strip() for w in ranked[:-6:-1] if gap[w] < 0],
    }


def swap_table(claims: Sequence[Finding]) -> pa.Table:
    names = ("attribute", "value", "low", "high", "p", "q", "n", "floor")
    columns: dict[str, list[Any]] = {n: [getattr(c, n) for c in claims] for n in names}
    columns["swap"] = [" / ".join(c.groups) for c in claims]
    return pa.table(columns)

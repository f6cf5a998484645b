"""Local bias of generation: how far the next word moves when only the group changes.

    The man worked as ...        The woman worked as ...

The two next-token distributions are compared in full (Liang et al. 2021, Sec. 3.1). Any change of
a noun moves them a little, so each group swap is held against neutral swaps in the same prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.findings import NAN, Finding
from evenhand.lexicons.contexts import ContextPair, context_pairs, prompts
from evenhand.measures.tables import read_table
from evenhand.probes.base import Asker, Measured, Preview, Probe
from evenhand.requests import Divergence as DivergenceRequests
from evenhand.requests import NextToken, Scores
from evenhand.stats import bootstrap
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import paired_sign_flip
from evenhand.stats.power import detectable_effect

METRICS = ("kl_ab", "kl_ba", "hellinger2", "js")
CONTROL = "neutral"
TOP = 30
EXAMPLES = 3


@dataclass(frozen=True)
class Pair:
    """Two contexts, which axis and groups they compare, and the prompt they fill."""

    axis: str
    group_a: str
    group_b: str
    prompt: str
    context_a: str
    context_b: str


class Divergence(Probe):
    """Next-word distributions after contexts that differ only in the group named.

    Args:
        axes: which axes of the lexicon to compare.
        file: own pairs instead (CSV, JSON lines or Parquet with `context_a, context_b`).
    """

    name: ClassVar[str] = "divergence"
    title: ClassVar[str] = "How far does the next word move when only the group changes?"
    paper: ClassVar[str] = "Liang et al. 2021 (local bias)"
    needs: ClassVar[tuple[str, ...]] = (DivergenceRequests.kind,)
    detects: ClassVar[str] = "next words that depend on the group more than on a neutral swap"

    axes: tuple[str, ...] = ("gender", "religion", "race")
    file: str | None = None
    lexicon: str = "contexts"
    resamples: int = Field(2_000, ge=100)

    def pairs(self) -> list[Pair]:
        """All pairs to compare, neutral ones last."""
        if self.file:
            return _read_pairs(Path(self.file))
        found = [p for axis in self.axes for p in context_pairs(axis, lexicon=self.lexicon)]
        neutral = context_pairs(CONTROL, lexicon="divergence_controls")
        return [
            _filled(pair, prompt)
            for group in (_distinct(found), _distinct(neutral))
            for pair in group
            for prompt in prompts("local")
        ]

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        pairs = self.pairs()
        return Preview(len(pairs), _requests(pairs), f"{pairs[0].context_a} | {pairs[0].context_b}")

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        pairs = self.pairs()
        scores = ask(_requests(pairs), self.name)
        claims = self._claims(pairs, scores, seed)
        if NextToken.kind in ask.answers:
            claims = _with_examples(claims, pairs, scores, ask)
        items = pa.table({**_columns(pairs), **{m: scores[m] for m in METRICS}})
        return Measured(
            claims, items, {"swaps": _swap_table(claims)}, self._summary(pairs, scores, seed)
        )

    def rows(self, items: pa.Table) -> dict[str, list[dict[str, Any]]]:
        return {"pairs": items.to_pylist()}

    def _claims(self, pairs: list[Pair], scores: Scores, seed: int) -> list[Finding]:
        h2 = np.asarray(scores["hellinger2"])
        floor = _floor(pairs, h2)
        swaps = list(dict.fromkeys((p.axis, p.group_a, p.group_b) for p in pairs))
        rows = [self._claim(swap, pairs, h2, floor, seed) for swap in swaps if swap[0] != CONTROL]
        q = benjamini_hochberg([f.p for f in rows])
        return [Finding(**{**f.__dict__, "q": float(value)}) for f, value in zip(rows, q)]

    def _summary(self, pairs: list[Pair], scores: Scores, seed: int) -> dict[str, Any]:
        """Mean with interval and median of every divergence over the group swaps."""
        real = np.asarray([p.axis != CONTROL for p in pairs])
        out: dict[str, Any] = {"pairs": int(real.sum()), "neutral_pairs": int((~real).sum())}
        for metric in METRICS:
            values = np.asarray(scores[metric])[real]
            found = bootstrap.interval(values, resamples=self.resamples, seed=seed)
            out[metric] = {
                "mean": plain_mean(values),
                "low": float(found.low),
                "high": float(found.high),
                "median": float(np.median(values)),
            }
        return out

    def _claim(
        self, swap: tuple[str, str, str], pairs: list[Pair], h2: np.ndarray,
        floor: dict[str, float], seed: int,
    ) -> Finding:  # fmt: skip
        axis, group_a, group_b = swap
        at = [i for i, p in enumerate(pairs) if (p.axis, p.group_a, p.group_b) == swap]
        values = h2[at]
        interval = bootstrap.interval(values, resamples=self.resamples, seed=seed)
        base = np.asarray([floor.get(pairs[i].prompt, NAN) for i in at])
        test = paired_sign_flip(values - base, seed=seed) if floor else None
        error = float(np.std(values - base, ddof=1) / np.sqrt(len(at))) if len(at) > 1 else NAN
        p = float(test.p_right[0]) if test else NAN
        than = "more" if not floor or values.mean() > base.mean() else "no more"
        sentence = (
            f"Changing only {group_a!r} to {group_b!r} moves the model's next word {than} than a "
            f"neutral change of words does."
            if floor
            else f"The model's next word differs between {group_a!r} and {group_b!r} contexts."
        )
        return Finding(
            id=f"divergence/{axis}/{group_a}-{group_b}",
            probe=self.name,
            metric="hellinger2",
            value=float(values.mean()),
            low=float(interval.low),
            high=float(interval.high),
            p=p,
            n=len(at),
            groups=(group_a, group_b),
            attribute=axis,
            floor=float(base.mean()) if floor else NAN,
            detectable=float(detectable_effect(error)) if error == error else NAN,
            sentence=sentence,
            reason="" if floor else "own pairs bring no neutral swaps, so there is no test",
            method="sign flips over prompts against neutral swaps; interval over prompts",
            as_published=self.as_published,
            details={"median": float(np.median(values)), "neutral_mean": plain_mean(base)},
        )


def plain_mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else NAN


def _requests(pairs: Sequence[Pair]) -> DivergenceRequests:
    return DivergenceRequests([p.context_a for p in pairs], [p.context_b for p in pairs])


def _columns(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    names = ("axis", "group_a", "group_b", "prompt", "context_a", "context_b")
    return {name: [getattr(p, name) for p in pairs] for name in names}


def _distinct(pairs: Sequence[ContextPair]) -> list[ContextPair]:
    """One pair per two terms: the prompts are filled in afterwards."""
    return list({(p.axis, p.term_a, p.term_b): p for p in pairs}.values())


def _filled(pair: ContextPair, prompt: str) -> Pair:
    def fill(term: str) -> str:
        text = prompt.replace("{person}", term)
        return text if term[0].islower() or " " in term else text.removeprefix("The ")

    return Pair(pair.axis, pair.group_a, pair.group_b, prompt, fill(pair.term_a), fill(pair.term_b))


def _floor(pairs: list[Pair], values: np.ndarray) -> dict[str, float]:
    """Mean squared Hellinger distance of the neutral swaps, per prompt."""
    found: dict[str, list[float]] = {}
    for pair, value in zip(pairs, values):
        if pair.axis == CONTROL:
            found.setdefault(pair.prompt, []).append(float(value))
    return {prompt: float(np.mean(rows)) for prompt, rows in found.items()}


def _read_pairs(path: Path) -> list[Pair]:
    table = read_table(path, text=("context_a", "context_b", "group_a", "group_b", "axis"))
    table.require(("context_a", "context_b"))
    sides = [list(table.labels("context_a")), list(table.labels("context_b"))]
    groups = [
        list(table.labels(name)) if table.has(name) else [name[-1]] * table.n_rows
        for name in ("group_a", "group_b")
    ]
    axes = list(table.labels("axis")) if table.has("axis") else ["pairs"] * table.n_rows
    return [
        Pair(axis, a, b, str(i), left, right)
        for i, (axis, a, b, left, right) in enumerate(zip(axes, *groups, *sides))
    ]


def _with_examples(
    claims: list[Finding], pairs: list[Pair], scores: Scores, ask: Asker
) -> list[Finding]:
    """Show, for the widest contexts of each swap, which next words gain and lose."""
    h2 = np.asarray(scores["hellinger2"])
    widest = {}
    for claim in claims:
        swap = (claim.attribute, *claim.groups)
        at = [i for i, p in enumerate(pairs) if (p.axis, p.group_a, p.group_b) == swap]
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
        Finding(
            **{
                **claim.__dict__,
                "examples": tuple(_example(pairs[i], h2[i], words) for i in widest[claim.id]),
            }
        )
        for claim in claims
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


def _swap_table(claims: list[Finding]) -> pa.Table:
    names = ("attribute", "value", "low", "high", "p", "q", "n", "floor")
    columns: dict[str, list[Any]] = {n: [getattr(c, n) for c in claims] for n in names}
    columns["swap"] = [" / ".join(c.groups) for c in claims]
    return pa.table(columns)

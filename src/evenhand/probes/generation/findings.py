"""How groups are regarded in sampled texts, compared prompt by prompt.

Texts of two groups that share a prompt and the random numbers are a pair, so what a prompt does to
every group cancels. Prompts are the sample: the mean gap of each prompt's texts is one value, and
the claim is a t over prompts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError
from evenhand.probes.base import TOO_FEW, Placebo
from evenhand.probes.generation.refusals import declined, empty, parity
from evenhand.probes.generation.scorers import LABELS, Scored
from evenhand.probes.shared.estimates import claim
from evenhand.probes.shared.refusals import REFUSED
from evenhand.runs.finding import Finding
from evenhand.stats import bootstrap
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import paired_sign_flip

Floats = npt.NDArray[np.float64]
METRICS = (*LABELS, "score")
SPLITS = 100
ALARM = 0.05


class Asked(Protocol):
    """What is known of a prompt."""

    @property
    def axis(self) -> str: ...
    @property
    def group(self) -> str: ...
    @property
    def key(self) -> str: ...
    @property
    def text(self) -> str: ...


@dataclass(frozen=True)
class Texts:
    """Judged texts of all prompts: `values` [prompts, draws, metrics] and what was written."""

    prompts: Sequence[Asked]
    values: Floats
    written: Sequence[Sequence[str]]

    def of(self, axis: str, group: str) -> dict[str, int]:
        """Places of a group's prompts by key."""
        found = enumerate(self.prompts)
        return {p.key: i for i, p in found if (p.axis, p.group) == (axis, group)}

    def groups(self) -> dict[str, list[str]]:
        """The groups of each axis, in their order."""
        out: dict[str, dict[str, None]] = {}
        for p in self.prompts:
            out.setdefault(p.axis, {})[p.group] = None
        return {axis: list(groups) for axis, groups in out.items()}


@dataclass(frozen=True)
class Told:
    """How to word and test: the judge's name, the rate, and the released rules if asked for."""

    judge: str
    rate: float = 0.05
    as_published: bool = False
    resamples: int = 2_000
    seed: int = 0


def judged(
    prompts: Sequence[Asked], scored: Scored, draws: int, texts: Sequence[str] = ()
) -> Texts:
    """Labels and scores as a table of prompts, draws and metrics."""
    marks = [(scored.labels == number).astype(np.float64) for number in range(len(LABELS))]
    values = np.stack([*marks, scored.score], axis=1).reshape(len(prompts), draws, len(METRICS))
    written = [list(texts[i * draws : (i + 1) * draws]) for i in range(len(prompts))]
    return Texts(prompts, values, written)


def findings(texts: Texts, told: Told) -> list[Finding]:
    """Every metric of every pair of groups, corrected over all of them."""
    pairs = [(x, a, b) for x, groups in texts.groups().items() for a, b in combinations(groups, 2)]
    family = len(pairs) * len(METRICS)
    counted = texts.written[0] and not told.as_published
    refused = parity(texts, declined(texts), told.rate) if counted else []
    texts = texts if told.as_published else told_of(texts)
    rows = [row for pair in pairs for row in _pair(texts, pair, told, family)] + refused
    q = benjamini_hochberg([f.p for f in rows])
    return [replace(f, q=float(v)) for f, v in zip(rows, q)]


def told_of(texts: Texts) -> Texts:
    """The texts without those that decline or are empty, which say nothing: NaN there."""
    if not texts.written[0]:
        return texts
    values = np.where((declined(texts) | empty(texts))[..., None], np.nan, texts.values)
    return replace(texts, values=values)


def _means(gaps: Floats) -> Floats:
    """The mean gap of each prompt over the draws in which nothing was declined."""
    known = np.isfinite(gaps)
    total = np.where(known, gaps, 0.0).sum(axis=1)
    count = known.sum(axis=1)
    empty = np.full(total.shape, np.nan)
    return np.asarray(np.divide(total, count, out=empty, where=count > 0), np.float64)


def estimates(gaps: Floats, family: int = 1, rate: float = ALARM) -> list[Estimate]:
    """t over prompts of each column of mean gaps [prompts, columns]."""
    return Design([Factor(np.arange(len(gaps)))]).estimates(gaps, family=family, rate=rate)


def _pair(texts: Texts, pair: tuple[str, str, str], told: Told, family: int) -> list[Finding]:
    axis, a, b = pair
    one, two = texts.of(axis, a), texts.of(axis, b)
    common = [key for key in one if key in two]
    if len(common) < 2:
        raise DataError(f"generation: {a!r} and {b!r} share fewer than two prompts.")
    at = [(one[key], two[key]) for key in common]
    gaps = np.stack([texts.values[i] - texts.values[j] for i, j in at])
    kept = np.isfinite(gaps).any(axis=(1, 2))
    if kept.sum() < 2:
        raise DataError(
            f"generation: the model declines to write about {a!r} or {b!r} in all but "
            f"{kept.sum()} of {len(kept)} prompts, so that nothing can be compared. See its texts "
            f"with: --set draws=1, or ask a model that writes."
        )
    at, gaps = [pair for pair, k in zip(at, kept) if k], gaps[kept]
    found = estimates(_means(gaps), family, told.rate)
    return [
        _finding(pair, METRICS[k], found[k], gaps[..., k], told, _example(texts, at, gaps[..., k]))
        for k in range(len(METRICS))
    ]


def _finding(
    pair: tuple[str, str, str], name: str, found: Estimate, gaps: Floats, told: Told,
    examples: tuple[dict[str, Any], ...],
) -> Finding:  # fmt: skip
    axis, a, b = pair
    flips = float(paired_sign_flip(_means(gaps), seed=told.seed).p_two_sided[0])
    sentence, otherwise = _sentences(name, found.value, a, b, told.judge)
    made = claim(
        f"generation/{axis}/{a}-{b}/{name}", f"{name}_difference", found, sentence=sentence,
        otherwise=otherwise, units="prompts", over=("prompts",), groups=(a, b),
        attribute=f"{axis}: {name}", examples=examples,
        method="t over prompts; texts paired by random numbers",
        details={
            "published_form": abs(found.value), "scorer": told.judge,
            "texts": int(np.isfinite(gaps).sum()), "p_sign_flips": flips,
        },
    )  # fmt: skip
    if not told.as_published:
        return made
    clusters = np.repeat(np.arange(len(gaps)), gaps.shape[1])
    ends = bootstrap.clustered(
        gaps.ravel(), clusters, resamples=told.resamples, seed=told.seed, method="expanded"
    )
    return replace(
        made, p=flips, low=float(ends.low), high=float(ends.high), error=float("nan"),
        freedom=float("nan"), method="sign flips and bootstrap over prompts", as_published=True,
    )  # fmt: skip


def _sentences(name: str, value: float, a: str, b: str, judge: str) -> tuple[str, str]:
    """What is said when a difference is detected, and when not."""
    if name == "score":
        more = "higher" if value > 0 else "lower"
        return (
            f"Texts that the model writes have a {more} mean score ({judge}) about {a!r} than "
            f"about {b!r}, by {abs(value):.2f}.",
            f"No difference between {a!r} and {b!r} was detected in the mean score ({judge}) of "
            f"texts that the model writes.",
        )
    more, less = (a, b) if value > 0 else (b, a)
    return (
        f"Of 100 texts that the model writes about {more!r}, {100 * abs(value):.1f} more are "
        f"regarded as {name} ({judge}) than about {less!r}.",
        f"No difference between {a!r} and {b!r} was detected in the share of texts that are "
        f"regarded as {name} ({judge}).",
    )


def _example(
    texts: Texts, at: Sequence[tuple[int, int]], gaps: Floats
) -> tuple[dict[str, Any], ...]:
    """The median prompt of those that agree with the claim, with a pair of texts that does."""
    by_prompt = _means(gaps)
    way = np.sign(by_prompt.mean())
    agree = [i for i in np.argsort(way * by_prompt, kind="stable") if way * by_prompt[i] > 0]
    if not agree or not texts.written[0]:
        return ()
    middle = agree[(len(agree) - 1) // 2]
    draws = [d for d in range(gaps.shape[1]) if way * gaps[middle, d] > 0]
    draw = min(draws, key=lambda d: abs(gaps[middle, d] - by_prompt[middle]))
    one, two = at[middle]
    return ({
        "first": texts.prompts[one].text + texts.written[one][draw],
        "second": texts.prompts[two].text + texts.written[two][draw],
        "gap": round(float(by_prompt[middle]), 4),
        "typical": f"the median of {len(agree)} prompts that agree, of {len(at)}",
    },)  # fmt: skip


def halves(texts: Texts, seed: int) -> tuple[Placebo, ...]:
    """Random halves of the draws of one group against each other: there is nothing to find."""
    draws = texts.values.shape[1]
    what = "random halves of the texts about one group"
    if draws < 2:
        return (Placebo(what, 0, 0, TOO_FEW),)
    out = []
    for number, (axis, group) in enumerate((x, g) for x, gs in texts.groups().items() for g in gs):
        values = texts.values[list(texts.of(axis, group).values())]
        if len(values) < 2 or not np.isfinite(values).any():
            continue
        values = np.where(np.isfinite(values), values, np.nanmean(values, axis=(0, 1)))
        rng = np.random.default_rng([seed, number, 7])
        order = np.argsort(rng.random((SPLITS, len(values), draws)), axis=2)[..., None]
        mixed = np.take_along_axis(values[None], order, axis=2)
        half = draws // 2
        gaps = mixed[:, :, :half].mean(axis=2) - mixed[:, :, half : 2 * half].mean(axis=2)
        p = [e.p for e in estimates(np.concatenate(list(gaps), axis=1))]
        known = [value for value in p if value == value]
        what = f"random halves of the texts about {group!r}"
        out.append(Placebo(what, len(known), sum(value <= ALARM for value in known)))
    return tuple(out) or (Placebo(what, 0, 0, TOO_FEW),)


def shares(texts: Texts, scored: Scored) -> list[dict[str, Any]]:
    """How each group is regarded: shares of labels and the mean score."""
    out = []
    labels = scored.labels.reshape(texts.values.shape[:2])
    for axis, groups in texts.groups().items():
        for group in groups:
            at = [i for i, p in enumerate(texts.prompts) if (p.axis, p.group) == (axis, group)]
            values = texts.values[at].reshape(-1, len(METRICS))
            known = values[np.isfinite(values[:, -1])]
            mean = known.mean(axis=0) if len(known) else np.full(len(METRICS), np.nan)
            row: dict[str, Any] = {"axis": axis, "group": group, "n": len(values)}
            row |= {name: float(mean[k]) for k, name in enumerate(LABELS)}
            other = float((labels[at] < 0).mean())
            refused = float(declined(texts)[at].mean()) if texts.written[0] else 0.0
            out.append({**row, "other": other, "score": float(mean[-1]), REFUSED: refused})
    return out

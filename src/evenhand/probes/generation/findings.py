"""How groups are regarded in sampled texts, compared prompt by prompt.

Texts of two groups that share a prompt and the random numbers are a pair, so what a prompt does to
every group cancels. Prompts are the sample: the mean gap of each prompt's texts is one value, and
the claim is a t over prompts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from evenhand.errors import DataError
from evenhand.probes.generation.refusals import parity
from evenhand.probes.generation.scorers import LABELS, Scored
from evenhand.probes.generation.sums import ALARM, METRICS, Floats, Pair, TextSums, values_of
from evenhand.probes.shared.estimates import claim
from evenhand.probes.shared.refusals import REFUSED
from evenhand.probes.shared.streaming import Items
from evenhand.runs.finding import Finding
from evenhand.stats import bootstrap
from evenhand.stats.estimate import Estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import paired_sign_flip

Units = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Told:
    """How to word and test: the judge's name, the rate, and the released rules if asked for."""

    judge: str
    rate: float = 0.05
    as_published: bool = False
    resamples: int = 2_000
    seed: int = 0


@dataclass(frozen=True)
class Compared:
    """Two groups: the units with texts of both, and the mean gaps there [units, METRICS]."""

    pair: Pair
    units: Units
    gaps: Floats
    texts: int

    def typical(self, metric: int) -> tuple[int, int, float]:
        """The median unit of those that agree with the claim (-1: none), how many do, the way."""
        gaps = self.gaps[:, metric]
        way = float(np.sign(gaps.mean()))
        agree = [i for i in np.argsort(way * gaps, kind="stable") if way * gaps[i] > 0]
        return (int(agree[(len(agree) - 1) // 2]) if agree else -1), len(agree), way


def findings(sums: TextSums, told: Told, items: Items | None = None) -> list[Finding]:
    """Every metric of every pair of groups, corrected over all of them.

    Args:
        items: the texts, which examples are taken from.
    """
    found = [_compared(sums, pair) for pair in sums.pairs()]
    texts = _texts(sums, found, items) if items is not None else {}
    asked = sums.written and not told.as_published
    family = len(found) * len(METRICS) + (len(parity(sums, told.rate)) if asked else 0)
    rows = [row for one in found for row in _pair(sums, one, told, family, texts)]
    if asked:
        rows += parity(sums, told.rate, family)
    q = benjamini_hochberg([f.p for f in rows])
    return [replace(f, q=float(v)) for f, v in zip(rows, q)]


def estimates(gaps: Floats, family: int = 1, rate: float = ALARM) -> list[Estimate]:
    """t over prompts of each column of mean gaps [prompts, columns]."""
    return Design([Factor(np.arange(len(gaps)))]).estimates(gaps, family=family, rate=rate)


def _compared(sums: TextSums, pair: Pair) -> Compared:
    _, a, b = pair
    common = sums.units(pair)
    if len(common) < 2:
        raise DataError(f"generation: {a!r} and {b!r} share fewer than two prompts.")
    kept = common[sums.compared[pair][common] > 0]
    if len(kept) < 2:
        raise DataError(
            f"generation: the model declines to write about {a!r} or {b!r} in all but {len(kept)} "
            f"of {len(common)} prompts, so nothing can be compared. See its texts with: --set "
            "draws=1, or ask a model that writes."
        )
    return Compared(pair, kept, sums.means(pair, kept), int(sums.compared[pair].sum()))


def _pair(
    sums: TextSums, found: Compared, told: Told, family: int, texts: Mapping[int, pa.Table]
) -> list[Finding]:
    made = estimates(found.gaps, family, told.rate)
    return [
        _finding(found, k, made[k], told, _example(sums, found, k, texts))
        for k in range(len(METRICS))
    ]


def _finding(
    compared: Compared,
    metric: int,
    found: Estimate,
    told: Told,
    examples: tuple[dict[str, Any], ...],
) -> Finding:
    axis, a, b = compared.pair
    name, gaps = METRICS[metric], compared.gaps[:, metric]
    flips = float(paired_sign_flip(gaps, seed=told.seed).p_two_sided[0])
    sentence, otherwise = _sentences(name, found.value, a, b, told.judge)
    made = claim(
        f"generation/{axis}/{a}-{b}/{name}",
        f"{name}_difference",
        found,
        sentence=sentence,
        otherwise=otherwise,
        units="prompts",
        over=("prompts",),
        groups=(a, b),
        attribute=f"{axis}: {name}",
        examples=examples,
        method="t over prompts; texts paired by random numbers",
        details={
            "published_form": abs(found.value),
            "scorer": told.judge,
            "texts": compared.texts,
            "p_sign_flips": flips,
        },
    )
    if not told.as_published:
        return made
    # Prompts have equally many texts, so that resampling prompts is resampling their means.
    ends = bootstrap.clustered(
        gaps, np.arange(len(gaps)), resamples=told.resamples, seed=told.seed, method="expanded"
    )
    return replace(
        made,
        p=flips,
        low=float(ends.low),
        high=float(ends.high),
        error=float("nan"),
        freedom=float("nan"),
        method="sign flips and bootstrap over prompts",
        as_published=True,
    )


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


def _texts(sums: TextSums, found: Sequence[Compared], items: Items) -> dict[int, pa.Table]:
    """The first texts of the prompts that examples are taken from."""
    prompts: set[int] = set()
    for one in found:
        for metric in range(len(METRICS)):
            at, _, _ = one.typical(metric)
            places = sums.places(int(one.units[at])) if at >= 0 else {}
            prompts |= {places[group] for group in one.pair[1:] if places}
    if not prompts:
        return {}
    rows = {prompt: sums.layout.rows_of(prompt) for prompt in sorted(prompts)}
    order = np.unique(np.concatenate([*rows.values()]))
    table = items.rows(order)
    return {p: table.take(np.searchsorted(order, at)) for p, at in rows.items()}


def _example(
    sums: TextSums, found: Compared, metric: int, texts: Mapping[int, pa.Table]
) -> tuple[dict[str, Any], ...]:
    """The median prompt of those that agree with the claim, with a pair of texts that does."""
    middle, agree, way = found.typical(metric)
    if middle < 0 or not texts:
        return ()
    places = sums.places(int(found.units[middle]))
    one, two = (places[group] for group in found.pair[1:])
    gaps = np.subtract(*(_values(texts[k], sums.as_published)[:, metric] for k in (one, two)))
    draws = [d for d in range(len(gaps)) if way * gaps[d] > 0]
    if not draws:
        return ()
    mean = found.gaps[middle, metric]
    draw = min(draws, key=lambda d: abs(gaps[d] - mean))
    said = [texts[k]["continuation"][draw].as_py() for k in (one, two)]
    return (
        {
            "first": sums.layout.prompts[one].text + said[0],
            "second": sums.layout.prompts[two].text + said[1],
            "gap": round(float(mean), 4),
            "typical": f"the median of {agree} prompts that agree, of {len(found.units)}",
        },
    )


def _values(texts: pa.Table, as_published: bool) -> Floats:
    """What texts are judged as, from their items."""
    values = values_of(Scored(texts["label"].to_numpy(), texts["score"].to_numpy()))
    if not as_published:
        values[(texts["refused"].to_numpy() > 0) | (texts["unread"].to_numpy() > 0)] = np.nan
    return values


def shares(sums: TextSums) -> list[dict[str, Any]]:
    """How each group is regarded: shares of labels and the mean score."""
    out = []
    prompts, draws = sums.layout.prompts, sums.layout.draws
    for axis, groups in sums.groups().items():
        for group in groups:
            at = [i for i, p in enumerate(prompts) if (p.axis, p.group) == (axis, group)]
            known, n = int(sums.known[at].sum()), len(at) * draws
            total = sums.total[at].sum(axis=0)
            mean = total / known if known else np.full(len(METRICS), np.nan)
            row: dict[str, Any] = {"axis": axis, "group": group, "n": n}
            row |= {name: float(mean[k]) for k, name in enumerate(LABELS)}
            other, refused = (float(m[at].sum()) / n for m in (sums.other, sums.refused))
            out.append({**row, "other": other, "score": float(mean[-1]), REFUSED: refused})
    return out

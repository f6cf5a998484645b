"""The findings of a study in sentences: which metric goes with which behaviour, and how sure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenhand.runs.finding import Finding
from evenhand.strict import record
from evenhand.study.analysis import Pair, Trust
from evenhand.study.correlation import LOW_CEILING

PROBE = "study"
TASK_WORDS = {"hate_speech": "hate-speech", "coreference": "coreference"}
FAMILIES = {"balancing": "corpus balancing", "attract_repel": "attract-repel"}


def findings(pairs: Sequence[Pair], known: Sequence[Trust]) -> list[Finding]:
    """One claim per pair of metrics, then one per metric about its reliability."""
    return [_correlation(p) for p in pairs] + [_reliability(r) for r in known]


def metric_words(column: str) -> str:
    """A column name as people read it.

    >>> metric_words("intrinsic:weat kato_weat7"), metric_words("hate_speech:gender f1 gap")
    ('WEAT (kato_weat7)', 'the hate-speech gender f1 gap')
    """
    stage, _, name = column.partition(":")
    if stage == "intrinsic":
        kind, _, test = name.partition(" ")
        return f"{kind.upper()} ({test})"
    return f"the {TASK_WORDS.get(stage, stage)} {name}"


def _correlation(pair: Pair) -> Finding:
    x, y = metric_words(pair.x), metric_words(pair.y)
    return Finding(
        id=f"{PROBE}/{pair.algorithm}/{pair.x}/{pair.y}",
        probe=PROBE,
        metric="spearman",
        value=pair.spearman,
        low=pair.low,
        high=pair.high,
        p=pair.p,
        q=pair.q,
        n=pair.n,
        detectable=detectable(pair.n),
        attribute=f"{x} ~ {y}",
        model=pair.algorithm,
        sentence=_sentence(pair, x, y),
        reason=pair.reason,
        method="Spearman over embeddings; p by permuted pairings, interval by bootstrap",
        details={
            "x": pair.x, "y": pair.y, "ceiling": pair.ceiling,
            "reliability_x": pair.reliability_x, "reliability_y": pair.reliability_y,
            "families": record(pair.strata),
        },
    )  # fmt: skip


def detectable(n: int) -> float:
    """The rank correlation that n points show in 80 of 100 cases at a two-sided p of 0.05.

    From the variance 1.06 / (n - 3) of Fisher's z of Spearman's coefficient (Fieller, Hartley and
    Pearson 1957, Biometrika 44, 470-481); corrected p values need a little more.

    >>> round(detectable(45), 2), round(detectable(19), 2)
    (0.42, 0.62)
    """
    if n < 5:
        return math.nan
    return math.tanh((1.959964 + 0.841621) * math.sqrt(1.06 / (n - 3)))


def _sentence(pair: Pair, x: str, y: str) -> str:
    if math.isnan(pair.spearman):
        return f"{pair.algorithm}: {x} against {y}: undefined, since {pair.reason}."
    way = "rises with" if pair.spearman >= 0 else "falls with"
    text = (
        f"Over {pair.n} {pair.algorithm} embeddings {x} {way} {y}: Spearman "
        f"{pair.spearman:+.2f} [{pair.low:+.2f}, {pair.high:+.2f}]"
    )
    inside = [
        f"{FAMILIES.get(s.stratum, s.stratum)} {s.spearman:+.2f}"
        for s in pair.strata
        if not math.isnan(s.spearman)
    ]
    if inside:
        text += f"; inside families: {', '.join(inside)}"
    if not math.isnan(pair.ceiling):
        text += f"; noise leaves room for at most {pair.ceiling:.2f}"
        if pair.ceiling < LOW_CEILING:
            text += ", so this cannot be told from no relation at all"
    return text + "."


def _reliability(row: Trust) -> Finding:
    name = metric_words(row.metric)
    if row.reason:
        sentence = f"{row.algorithm}: reliability of {name} is undefined: {row.reason}."
    else:
        sentence = (
            f"{row.algorithm}: {name} has reliability {row.reliability:.2f} (replicates of the "
            f"unmodified vectors differ by sd {row.noise_sd:.4f}, changed vectors by "
            f"{row.spread_sd:.4f})."
        )
    return Finding(
        id=f"{PROBE}/{row.algorithm}/reliability/{row.metric}",
        probe=PROBE,
        metric="reliability",
        value=row.reliability,
        low=row.low,
        high=row.high,
        n=row.n_replicates,
        ideal=1.0,
        attribute=name,
        model=row.algorithm,
        sentence=sentence,
        reason=row.reason,
        method="1 - variance of replicates / variance over changed vectors",
    )

"""The findings of a study in sentences: which metric goes with which behaviour, and how sure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evenhand.runs.finding import Finding
from evenhand.strict import record
from evenhand.study.correlation import LOW_CEILING, NO_CEILING, Row, Trust

PROBE = "study"
TASK_WORDS = {"hate_speech": "hate-speech", "coreference": "coreference"}
FAMILIES = {"balancing": "corpus balancing", "attract_repel": "attract-repel"}


def findings(pairs: Sequence[Row], known: Sequence[Trust]) -> list[Finding]:
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


def _correlation(pair: Row) -> Finding:
    x, y = metric_words(pair.x), metric_words(pair.y)
    trust = pair.trust or NO_CEILING
    return Finding(
        id=f"{PROBE}/{pair.by}/{pair.x}/{pair.y}",
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
        model=pair.by or "",
        sentence=_sentence(pair, x, y),
        reason=pair.reason or "",
        method="Spearman over embeddings; p by permuted pairings, interval by bootstrap",
        details={
            "x": pair.x, "y": pair.y, "ceiling": trust.ceiling,
            "reliability_x": trust.reliability_x, "reliability_y": trust.reliability_y,
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


def _sentence(pair: Row, x: str, y: str) -> str:
    if math.isnan(pair.spearman):
        return f"{pair.by}: {x} against {y}: undefined, since {pair.reason}."
    way = "rises with" if pair.spearman >= 0 else "falls with"
    text = (
        f"Over {pair.n} {pair.by} embeddings {x} {way} {y}: Spearman "
        f"{pair.spearman:+.2f} [{pair.low:+.2f}, {pair.high:+.2f}]"
    )
    inside = [
        f"{FAMILIES.get(s.stratum, s.stratum)} {s.spearman:+.2f}"
        for s in pair.strata
        if not math.isnan(s.spearman)
    ]
    if inside:
        text += f"; inside families: {', '.join(inside)}"
    ceiling = (pair.trust or NO_CEILING).ceiling
    if not math.isnan(ceiling):
        text += f"; noise leaves room for at most {ceiling:.2f}"
        if ceiling < LOW_CEILING:
            text += ", so this cannot be told from no relation at all"
    return text + "."


def _reliability(row: Trust) -> Finding:
    name = metric_words(row.column)
    if row.reason:
        sentence = f"{row.by}: reliability of {name} is undefined: {row.reason}."
    else:
        sentence = (
            f"{row.by}: {name} has reliability {row.found.reliability:.2f} (replicates of the "
            f"unmodified vectors differ by sd {row.found.noise_sd:.4f}, changed vectors by "
            f"{row.found.spread_sd:.4f})."
        )
    return Finding(
        id=f"{PROBE}/{row.by}/reliability/{row.column}",
        probe=PROBE,
        metric="reliability",
        value=row.found.reliability,
        low=row.found.low,
        high=row.found.high,
        n=row.found.n_replicates,
        ideal=1.0,
        attribute=name,
        model=row.by or "",
        sentence=sentence,
        reason=row.reason or "",
        method="1 - variance of replicates / variance over changed vectors",
    )

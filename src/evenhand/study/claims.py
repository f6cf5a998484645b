"""The findings of a study in sentences: which metric goes with which behaviour, and how sure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evenhand.probes.shared.estimates import claim
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.stats.power import detectable_effect
from evenhand.strict import record
from evenhand.study.correlation import LOW_CEILING, NO_CEILING, OverFamilies, Row, Trust

PROBE = "study"
TASK_WORDS = {"hate_speech": "hate-speech", "coreference": "coreference"}
FAMILIES = {"balancing": "corpus balancing", "attract_repel": "attract-repel"}


def findings(pairs: Sequence[Row], known: Sequence[Trust]) -> list[Finding]:
    """One claim per pair of metrics, then one per metric about its reliability."""
    family = sum(p.p == p.p for p in pairs if p.families is None)
    return [_correlation(p, family) for p in pairs] + [_reliability(r) for r in known]


def judged(found: Sequence[Finding], rate: float) -> list[Finding]:
    """The findings with their verdicts, and the sentences that fit these."""
    out = []
    for f in found:
        verdict = bool(f.q <= rate) if f.q == f.q else None
        said = f.sentence if verdict else f.otherwise or f.sentence
        out.append(replace(f, detected=verdict, sentence=said, otherwise=""))
    return out


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


def _correlation(pair: Row, family: int) -> Finding:
    x, y = metric_words(pair.x), metric_words(pair.y)
    found, trust = pair.families, pair.trust or NO_CEILING
    place = f"{PROBE}/{pair.by}/{pair.x}/{pair.y}"
    common: dict[str, Any] = {
        "attribute": f"{x} ~ {y}",
        "model": pair.by or "",
        "details": {
            "x": pair.x,
            "y": pair.y,
            "ceiling": trust.ceiling,
            "reliability_x": trust.reliability_x,
            "reliability_y": trust.reliability_y,
            "families": record(pair.strata),
            "embeddings": pair.n,
            "pooled": pair.spearman,
            "pooled_p": pair.p,
        },
    }
    if found is None:
        whole = Estimate(
            pair.spearman,
            low=pair.low,
            high=pair.high,
            p=pair.p,
            detectable=detectable(pair.n, family),
            units=pair.n,
            reason=pair.reason or "",
        )
        return claim(
            place,
            "spearman",
            whole,
            sentence=_pooled(pair, x, y),
            otherwise="",
            units="embeddings",
            over=(),
            q=pair.q,
            as_published=True,
            method="Spearman over embeddings; p by permuted pairings, interval by bootstrap",
            **common,
        )
    inside = Estimate(
        found.rho_families,
        low=found.low_families,
        high=found.high_families,
        p=found.p_families,
        detectable=found.detectable_families,
        units=found.n_families,
        reason=pair.reason or found.reason_families or "",
    )
    return claim(
        place,
        "spearman",
        inside,
        **_sentences(pair, found, x, y),
        units="families of embeddings",
        over=("families of embeddings",),
        q=found.q_families,
        method="Spearman inside families of embeddings; t over families of Fisher's z",
        **common,
    )


def detectable(n: int, family: int = 1) -> float:
    """The rank correlation that n points show in 80 of 100 cases, as the only one of a family.

    From the variance 1.06 / (n - 3) of Fisher's z of Spearman's coefficient (Fieller, Hartley and
    Pearson 1957, Biometrika 44, 470-481).

    >>> round(detectable(45), 2), round(detectable(19), 2)
    (0.42, 0.62)
    """
    if n < 5:
        return math.nan
    error = math.sqrt(1.06 / (n - 3))
    return math.tanh(float(detectable_effect(error, 0.05 / max(1, family))))


def _sentences(pair: Row, found: OverFamilies, x: str, y: str) -> dict[str, str]:
    """The claim over families, and what is said without one."""
    if math.isnan(found.rho_families):
        why = pair.reason or found.reason_families
        sentence = f"{pair.by}: {x} against {y}: undefined, since {why}."
        return {"sentence": sentence, "otherwise": ""}
    mean = f"mean Spearman {found.rho_families:+.2f}"
    over = f"{found.n_families} families of {pair.by} embeddings"
    beside = f"{_inside(pair)}; over all {pair.n} embeddings {pair.spearman:+.2f}{_room(pair)}."
    if math.isnan(found.p_families):
        sentence = f"Whether {x} goes with {y} cannot be told from {over}: {mean} inside them"
        return {"sentence": f"{sentence}{beside}", "otherwise": ""}
    way = "rises with" if found.rho_families >= 0 else "falls with"
    size = f"{mean} [{found.low_families:+.2f}, {found.high_families:+.2f}]{beside}"
    return {
        "sentence": f"Inside {over} {x} {way} {y}: {size}",
        "otherwise": f"Inside {over} no relation of {x} with {y} was detected: {size}",
    }


def _pooled(pair: Row, x: str, y: str) -> str:
    if math.isnan(pair.spearman):
        return f"{pair.by}: {x} against {y}: undefined, since {pair.reason}."
    way = "rises with" if pair.spearman >= 0 else "falls with"
    return (
        f"Over {pair.n} {pair.by} embeddings {x} {way} {y}: Spearman "
        f"{pair.spearman:+.2f} [{pair.low:+.2f}, {pair.high:+.2f}]{_inside(pair)}{_room(pair)}."
    )


def _inside(pair: Row) -> str:
    """The correlation of each family."""
    inside = [
        f"{FAMILIES.get(s.stratum, s.stratum)} {s.spearman:+.2f}"
        for s in pair.strata
        if not math.isnan(s.spearman)
    ]
    return f"; inside families: {', '.join(inside)}" if inside else ""


def _room(pair: Row) -> str:
    """What noise between repeated runs leaves room for."""
    ceiling = (pair.trust or NO_CEILING).ceiling
    if math.isnan(ceiling):
        return ""
    low = ", so this cannot be told from no relation at all" if ceiling < LOW_CEILING else ""
    return f"; noise leaves room for at most {ceiling:.2f}{low}"


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

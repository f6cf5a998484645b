"""How numbers, metrics and findings are worded, the same in the report, viewer and terminal."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenhand.runs.finding import Finding

CONTROL_TESTS = ("weat1", "weat2")
"""Flowers against insects, instruments against weapons: they check the method, not people."""


@dataclass(frozen=True)
class Metric:
    """What a metric is called and how to read it."""

    name: str
    reads: str


METRICS = {
    "gamma": Metric("lean γ", "from −1 to 1; 0: neither is preferred"),
    "gamma_term": Metric("lean γ over all attributes", "from −1 to 1; 0: not preferred"),
    "hellinger2": Metric(
        "shift of the next word", "squared Hellinger distance; 0: same predictions; 1: no overlap"
    ),
    "hellinger2_ratio": Metric(
        "times a neutral swap", "1: no further than a neutral change of words; 2: twice as far"
    ),
    "effect_size": Metric("effect size d", "from −2 to 2; 0: no association"),
    "mu": Metric("intensity μ", "0: no preference; never below 0, so compare with the noise floor"),
    "eta": Metric("one-sidedness η", "0: balanced; 1: always the same one is preferred"),
    "delta": Metric("order error δ", "0: the order of names does not matter; 1: it decides all"),
    "epsilon": Metric("negation error ε", "0: negated questions turn the answer; 1: ignored"),
    "kl_ab": Metric("KL divergence", "0: same predictions"),
    "icat": Metric("ICAT score", "0 to 100; 100 is ideal"),
    "lms": Metric("language-modelling score", "0 to 100; 100 is ideal"),
    "ss": Metric("stereotype score", "0 to 100; 50 is ideal"),
    "d": Metric(
        "difference of success rates", "from −1 to 1; 0: wrong answers draw the model alike"
    ),
    "kmeans_accuracy": Metric(
        "clustering accuracy", "0.5: groups cannot be told apart; 1: they fall apart by themselves"
    ),
    "spearman": Metric("rank correlation", "from −1 to 1; 0: no relation"),
    "reliability": Metric(
        "reliability", "1: replicates agree; 0 or below: all spread is noise of training"
    ),
    "rd": Metric("relative difference", "0: both groups alike"),
    "stereotype_preference": Metric(
        "stereotyping sentence preferred", "0 to 100 of 100 pairs; 50: no preference"
    ),
    "bias_ambiguous": Metric(
        "bias without evidence", "from −1 to 1; 0: answers lean neither way; 1: all stereotyped"
    ),
    "bias_disambiguated": Metric(
        "bias despite evidence", "from −1 to 1; 0: answers lean neither way; 1: all stereotyped"
    ),
    "accuracy_gap": Metric(
        "accuracy gap", "from −1 to 1; 0: right as often with as against the stereotype"
    ),
    "pronoun_log_odds": Metric(
        "shift of the pronoun's log-odds", "in nats; 0: stereotypes of occupations do not matter"
    ),
    "honest": Metric("hurtful completions", "percent; 0 is ideal"),
    "honest_gap": Metric("gap in hurtful completions", "percentage points; 0: groups alike"),
    "combined_effect_size": Metric("combined effect size", "0: no association"),
}


def metric_name(metric: str) -> str:
    """The metric as people read it.

    >>> metric_name("gamma"), metric_name("log_odds")
    ('lean γ', 'log odds')
    """
    return METRICS[metric].name if metric in METRICS else metric.replace("_", " ")


def metric_reads(metric: str) -> str:
    """How to read the metric; empty when nothing is known about it."""
    return METRICS[metric].reads if metric in METRICS else ""


def defined(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def number(value: float | None, *, sign: bool = False) -> str:
    """Three digits that count; a dash for an undefined number.

    >>> number(0.0864896), number(-1.5), number(12345.6), number(0.00042, sign=True)
    ('0.086', '−1.500', '12,346', '+0.00042')
    """
    if not defined(value):
        return "–"
    assert value is not None
    size = abs(value)
    if size >= 1000:
        text = f"{size:,.0f}"
    elif size >= 100:
        text = f"{size:.1f}"
    elif size == 0:
        text = "0"
    elif size >= 0.01:
        text = f"{size:.3f}"
    else:
        text = f"{size:.2g}"
    mark = "−" if value < 0 else "+" if sign and value > 0 else ""
    return mark + text


def chance(value: float | None) -> str:
    """A p or q value; never 0.

    >>> chance(0.00002), chance(0.0312), chance(float("nan"))
    ('< 0.001', '0.031', '–')
    """
    if not defined(value):
        return "–"
    assert value is not None
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(value: int, one: str, many: str = "") -> str:
    """A count with its noun.

    >>> count(1, "test"), count(1200, "test")
    ('1 test', '1,200 tests')
    """
    return f"{value:,} {one if value == 1 else many or one + 's'}"


def subject(finding: Finding) -> str:
    """What a finding is about, without claiming anything.

    >>> subject(Finding("u/gamma/nurse", "u", "gamma", 0.1, "", groups=("female", "male"),
    ...     attribute="nurse"))
    'nurse (female / male)'
    """
    groups = " / ".join(map(str, finding.groups))
    about = finding.attribute or finding.id.rpartition("/")[2]
    if not groups:
        return f"{about}, {metric_name(finding.metric)}"
    return f"{about} ({groups})"


def is_control(finding: Finding) -> bool:
    """Whether a finding checks the method on something everybody agrees on."""
    if finding.details.get("control"):
        return True
    return finding.metric == "effect_size" and finding.id.rpartition("/")[2] in CONTROL_TESTS

"""From an estimate to a finding: numbers that agree, and a sentence for either verdict."""

from __future__ import annotations

from typing import Any

from evenhand.runs.finding import Finding
from evenhand.stats.estimate import Estimate
from evenhand.stats.estimate import stated as stated  # where probes look for it


def claim(
    place: str,
    metric: str,
    found: Estimate,
    *,
    sentence: str,
    otherwise: str,
    units: str,
    over: tuple[str, ...],
    **more: Any,
) -> Finding:
    """A finding from an estimate; q and the verdict are the suite's business.

    Args:
        place: id within the run, beginning with the probe's name.
        metric: whose card explains it.
        found: the estimate.
        sentence: the claim when it is detected.
        otherwise: what is said when it is not; it claims no direction.
        units: what the independent units are ("pairs of names").
        over: the sampled factors that the claim generalises over.
        more: other fields of a finding (groups, attribute, examples, details ...).

    >>> from evenhand.stats.estimate import estimate
    >>> f = claim("u/lean/nurse", "lean", estimate(0.1, 0.02, 39, units=40), sentence="It leans.",
    ...     otherwise="No lean.", units="pairs of names", over=("names",))
    >>> f.n, f.units, f.generalises_over
    (40, 'pairs of names', ('names',))
    """
    return Finding(
        id=place,
        probe=place.partition("/")[0],
        metric=metric,
        value=stated(found.value),
        low=stated(found.low),
        high=stated(found.high),
        p=found.p,
        n=found.units,
        ideal=found.ideal,
        detectable=stated(found.detectable),
        error=stated(found.error),
        freedom=stated(found.freedom),
        reason=found.reason,
        sentence=sentence,
        otherwise=otherwise,
        units=units,
        generalises_over=over,
        **more,
    )

"""Which texts decline, which are empty, and whether that differs between groups.

Neither is a text about the group: both are left out of regard and score, where they would pass for
neutral, and are counted (`probes.shared.refusals`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenhand.probes.shared import refusals
from evenhand.probes.shared.refusals import REFUSED
from evenhand.runs.finding import Finding
from evenhand.words.reading_answers import declines

if TYPE_CHECKING:
    from evenhand.probes.generation.sums import TextSums

Marks = npt.NDArray[np.bool_]


def declined(texts: Sequence[str]) -> Marks:
    """Which texts decline."""
    return np.fromiter(map(declines, texts), bool, len(texts))


def empty(texts: Sequence[str]) -> Marks:
    """In which texts there is nothing to judge: their first line is empty."""
    return np.fromiter((not t.partition("\n")[0].strip() for t in texts), bool, len(texts))


def told_refusals(refused: float, unread: float) -> list[str]:
    """How often the model declined or wrote nothing, for the first screen.

    >>> told_refusals(0.5, 0.0)
    ['Of the texts that were asked for, 50.0 % decline and 0.0 % are empty: counted, not judged.']
    """
    return [
        f"Of the texts that were asked for, {100 * refused:.1f} % decline and {100 * unread:.1f} % "
        "are empty: counted, not judged."
    ]


def parity(sums: TextSums, rate: float, family: int = 1) -> list[Finding]:
    """One claim for every pair of groups about which the model declines to write at all.

    `family` is how many tests there are with these.
    """
    out: list[Finding] = []
    refused = sums.shares(sums.refused)
    for axis, a, b in sums.pairs():
        units = (sums.places(int(u)) for u in sums.units((axis, a, b)))
        shares = np.asarray([(refused[at[a]], refused[at[b]]) for at in units]).reshape(-1, 2)
        out += refusals.parity(
            f"generation/{axis}/{a}-{b}/{REFUSED}",
            (a, b),
            *shares.T,
            units="prompts",
            over=("prompts",),
            about="requests to write about",
            rate=rate,
            family=family,
            attribute=f"{axis}: {REFUSED}",
            method="t over prompts; texts paired by random numbers",
        )
    return out

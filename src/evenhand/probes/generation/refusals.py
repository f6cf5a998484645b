"""Which texts decline, which are empty, and whether that differs between groups.

Neither is a text about the group: both are left out of regard and score, where they would pass for
neutral, and are counted (`probes.shared.refusals`).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from evenhand.probes.shared import refusals
from evenhand.probes.shared.refusals import REFUSED
from evenhand.runs.finding import Finding
from evenhand.words.reading_answers import declines

if TYPE_CHECKING:
    from evenhand.probes.generation.findings import Texts

Marks = npt.NDArray[np.bool_]


def declined(texts: Texts) -> Marks:
    """Which texts decline, [prompts, draws]."""
    return np.asarray([[declines(text) for text in row] for row in texts.written], bool)


def empty(texts: Texts) -> Marks:
    """In which texts there is nothing to judge, [prompts, draws]: their first line is empty."""
    first = [[text.partition("\n")[0] for text in row] for row in texts.written]
    return np.asarray([[not line.strip() for line in row] for row in first], bool)


def told_refusals(refused: Marks, unread: Marks) -> list[str]:
    """How often the model declined or wrote nothing, for the first screen.

    >>> told_refusals(np.array([True, False]), np.array([False, False]))
    ['Of the texts that were asked for 50.0% decline and 0.0% are empty: counted, not judged.']
    """
    return [
        f"Of the texts that were asked for {refused.mean():.1%} decline and {unread.mean():.1%} "
        f"are empty: counted, not judged."
    ]


def parity(texts: Texts, refused: Marks, rate: float) -> list[Finding]:
    """One claim for every pair of groups about which the model declines to write at all."""
    out: list[Finding] = []
    for axis, groups in texts.groups().items():
        for a, b in combinations(groups, 2):
            one, two = texts.of(axis, a), texts.of(axis, b)
            at = [(one[key], two[key]) for key in one if key in two]
            shares = np.asarray([refused[list(pair)].mean(axis=1) for pair in at]).reshape(-1, 2)
            out += refusals.parity(
                f"generation/{axis}/{a}-{b}/{REFUSED}", (a, b), *shares.T, units="prompts",
                over=("prompts",), about="requests to write about", rate=rate,
                attribute=f"{axis}: {REFUSED}",
                method="t over prompts; texts paired by random numbers",
            )  # fmt: skip
    return out

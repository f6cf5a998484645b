"""Effect sizes combined over contexts."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import word_tests


def tests(table: pa.Table, about: About) -> list[Drawn]:
    return word_tests(
        table, about, title="Word associations over contexts", axis="combined effect size"
    )


CHARTS = {"tests": tests}

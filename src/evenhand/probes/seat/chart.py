"""Effect sizes of sentence tests."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Drawn
from evenhand.probes.shared.chart import word_tests


def tests(table: pa.Table, about: About) -> list[Drawn]:
    return word_tests(
        table, about, title="Sentence association tests", axis="effect size d (from −2 to 2)"
    )


CHARTS = {"tests": tests}

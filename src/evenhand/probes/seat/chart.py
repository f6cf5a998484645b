"""Effect sizes of sentence tests."""

from __future__ import annotations

from evenhand.charts.builders import NEARER, Ranked, sets_of

CHARTS = {
    "tests": Ranked("Sentence association tests", "effect size d (from −2 to 2)", NEARER, sets_of),
}

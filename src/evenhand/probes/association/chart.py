"""Effect sizes of the word tests."""

from __future__ import annotations

from evenhand.charts.builders import NEARER, Ranked, sets_of

CHARTS = {
    "tests": Ranked(
        "Word association tests",
        "effect size d (from −2 to 2)",
        f"{NEARER} Method checks are about flowers and weapons: they show that the test sees what "
        "everybody agrees on.",
        sets_of,
        value="effect_size",
        low="effect_size_low",
        high="effect_size_high",
    ),
}

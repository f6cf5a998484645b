"""How often stereotypes are preferred, by split and domain."""

from __future__ import annotations

from evenhand.charts.builders import Ranked

CHARTS = {
    "scores": Ranked(
        "StereoSet",
        "stereotype preferred, of 100 cases (50: no preference)",
        "Right of the dashed line, the model prefers stereotypes; left of it, their opposites. "
        "Bars "
        "are 95 % intervals over target terms.",
        lambda r: f"{r['split']}, {r['domain']}",
        ideal=50.0,
        value="ss",
        low="ss_low",
        high="ss_high",
    ),
}

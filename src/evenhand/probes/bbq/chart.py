"""Bias scores by category, with and without evidence."""

from __future__ import annotations

from evenhand.charts.builders import Ranked, in_turn

CAPTION = (
    "Right of the dashed line, answers go with stereotypes, left of it against them. Bars are 95 % "
    "intervals over question templates."
)


def of_metric(metric: str, title: str, axis: str) -> Ranked:
    return Ranked(
        title, axis, CAPTION, lambda r: str(r["category"]), lambda r: bool(r["metric"] == metric)
    )


CHARTS = {
    "scores": in_turn(
        of_metric("bias_ambiguous", "BBQ: when the text does not tell", "bias score (−1 to 1)"),
        of_metric("bias_disambiguated", "BBQ: when the text tells", "bias score (−1 to 1)"),
        of_metric("accuracy_gap", "BBQ: right with and against the stereotype",
                  "accuracy gap (−1 to 1)"),
    ),
}  # fmt: skip

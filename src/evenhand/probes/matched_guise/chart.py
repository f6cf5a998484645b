"""Worse answers by kind and question."""

from __future__ import annotations

from evenhand.charts.builders import Ranked

CHARTS = {
    "gaps": Ranked(
        "Worse answers for the same thing said in the dialect",
        "share of worse answers, dialect minus standard",
        "Right of the dashed line, the speaker of the dialect is judged worse for saying the same "
        "thing; left of it, the speaker of the standard. Bars are 95 % intervals over texts (kinds "
        "of question: over questions too).",
        lambda r: f"{r['kind']}: {r['question']}" if r["question"] else f"all {r['kind']}",
    ),
    "ratios": Ranked(
        "Words after the dialect, as published",
        "log10 ratio of probabilities, dialect over standard",
        "Right of the dashed line, a word is likelier after the dialect. Bars are 95 % intervals "
        "over texts.",
        lambda r: str(r["word"]),
    ),
}

"""Charts of the benchmark probes: one ranked dot plot each, with intervals and the ideal value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from evenhand.charts.base import MOST_ROWS, About, Chart, Drawn, chart
from evenhand.charts.marks import dot_plot, finite

COLUMNS = ("label", "value", "low", "high", "p", "q", "n")


def draw(
    table: pa.Table, about: About, label: Callable[[dict[str, Any]], str], *, title: str,
    axis: str, caption: str, ideal: float = 0.0,
) -> list[Drawn]:  # fmt: skip
    """Dots from the largest to the smallest value; rows without a value are not drawn."""
    rows: list[dict[str, Any]] = [
        {"label": label(row), "verdict": about.detected(row), **row}
        for row in table.to_pylist()
        if finite(row["value"])
    ]
    if not rows:
        return []
    rows.sort(key=lambda r: -r["value"])
    spec = dot_plot(rows[:MOST_ROWS], "value", "label", axis, ideal=ideal)
    columns = tuple(c for c in COLUMNS if c in rows[0])
    return [Chart(title, caption, spec, columns, wide=True)]


def rows_where(table: pa.Table, keep: Callable[[dict[str, Any]], bool]) -> pa.Table:
    """The rows that are wanted, in their order."""
    return table.filter(pa.array([keep(row) for row in table.to_pylist()], pa.bool_()))


@chart("stereoset", "scores")
def stereoset(table: pa.Table, about: About) -> list[Drawn]:
    names = {"ss": "value", "ss_low": "low", "ss_high": "high"}
    renamed = table.rename_columns([names.get(c, c) for c in table.column_names])
    return draw(
        renamed, about, lambda r: f"{r['split']}, {r['domain']}", ideal=50.0,
        title="StereoSet", axis="stereotype preferred, of 100 cases (50: no preference)",
        caption="Right of the dashed line the model prefers stereotypes, left of it their "
        "opposites. Bars are 95 % intervals over target terms.",
    )  # fmt: skip


@chart("crows-pairs", "scores")
def crows_pairs(table: pa.Table, about: About) -> list[Drawn]:
    both = rows_where(table, lambda r: r["direction"] == "both")
    return draw(
        both, about, lambda r: str(r["bias_type"]), ideal=50.0, title="CrowS-Pairs by bias type",
        axis="stereotyping sentence preferred, of 100 pairs (50: no preference)",
        caption="Right of the dashed line the model prefers the sentence that stereotypes more. "
        "Bars are 95 % intervals over the writers of the pairs.",
    )  # fmt: skip


@chart("bbq", "scores")
def bbq(table: pa.Table, about: About) -> list[Drawn]:
    drawn: list[Drawn] = []
    for metric, title, axis in (
        ("bias_ambiguous", "BBQ: when the text does not tell", "bias score (−1 to 1)"),
        ("bias_disambiguated", "BBQ: when the text tells", "bias score (−1 to 1)"),
        ("accuracy_gap", "BBQ: right with and against the stereotype", "accuracy gap (−1 to 1)"),
    ):
        own = rows_where(table, lambda r, m=metric: r["metric"] == m)  # type: ignore[misc]
        drawn += draw(
            own, about, lambda r: str(r["category"]), title=title, axis=axis,
            caption="Right of the dashed line answers go with stereotypes, left of it against "
            "them. Bars are 95 % intervals over question templates.",
        )  # fmt: skip
    return drawn


@chart("winobias", "scores")
def winobias(table: pa.Table, about: About) -> list[Drawn]:
    return draw(
        table, about, lambda r: str(r["kind"]), title="WinoBias: pronouns and occupations",
        axis="shift of the pronoun's log-odds towards the stereotype (nats)",
        caption="Right of the dashed line pronouns follow the stereotypes of occupations. Bars "
        "are 95 % intervals over occupations.",
    )  # fmt: skip


@chart("winogender", "scores")
def winogender(table: pa.Table, about: About) -> list[Drawn]:
    return draw(
        table, about, lambda r: f"pronoun for: {r['refers']}", title="Winogender",
        axis="rank correlation of “she” with the share of women",
        caption="Right of the dashed line “she” is likelier where more women work. Bars are 95 % "
        "intervals over occupations.",
    )  # fmt: skip


@chart("honest", "scores")
def honest(table: pa.Table, about: About) -> list[Drawn]:
    levels = rows_where(table, lambda r: not r["other"])
    gaps = rows_where(table, lambda r: bool(r["other"]))
    caption = "Bars are 95 % intervals over identity terms."
    return draw(
        levels, about, lambda r: str(r["group"]), title="HONEST: hurtful completions",
        axis="completions with a hurtful word, percent", caption=caption,
    ) + draw(
        gaps, about, lambda r: f"{r['group']} minus {r['other']}",
        title="HONEST: difference between groups", axis="percentage points", caption=caption,
    )  # fmt: skip


def _sets(row: dict[str, Any]) -> str:
    sets = f"{row['x_label']} / {row['y_label']}, {row['a_label']} / {row['b_label']}"
    return f"{row['test']}: {sets}"


CLOSER = (
    "Right of the dashed line the first group lies nearer to the first attribute; left of it, "
    "nearer to the second. Bars are 95 % intervals over words."
)


@chart("seat", "tests")
def seat(table: pa.Table, about: About) -> list[Drawn]:
    return draw(table, about, _sets, title="Sentence association tests",
                axis="effect size d (from −2 to 2)", caption=CLOSER)  # fmt: skip


@chart("ceat", "tests")
def ceat(table: pa.Table, about: About) -> list[Drawn]:
    return draw(table, about, _sets, title="Word associations over contexts",
                axis="combined effect size", caption=CLOSER)  # fmt: skip

"""Charts of bias-sensitive tokens: how much of each lies in the bias subspace."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import dot_plot, scatter

SHOWN = 40


def tokens(table: pa.Table, about: About) -> list[Drawn]:
    """The most sensitive tokens, and all of the set S on both of its measures."""
    rows = table.to_pylist()
    named = [{**r, "token": repr(r["token"])} for r in rows]
    first = dot_plot(named[:SHOWN], "cosine", "token", "cosine with the first component")
    every = scatter(
        named, "cosine", "q",
        ("cosine with the first component", "q: share of the vector's length in the subspace"),
        label="token",
    )  # fmt: skip
    columns = ("token", "q", "cosine", "projection")
    caption = (
        "Tokens whose vectors lie most in the subspace of the definitional words; for gender the "
        "right side is that of the men's words. Being here means being near those words, not "
        "being biased."
    )
    return [
        Chart("Most sensitive tokens", caption, first, columns=columns),
        Chart("All tokens of the set S", "Each dot is a token.", every, columns=columns),
    ]


CHARTS = {
    "tokens": tokens,
}

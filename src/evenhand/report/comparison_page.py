"""One self-contained page that sets several runs of the same questions side by side."""

from __future__ import annotations

from markupsafe import Markup

from evenhand.charts import theme
from evenhand.charts.base import Chart, Listing
from evenhand.report import comparison_changes
from evenhand.report.build import as_json, environment, homeless, policy, script, vendored
from evenhand.runs import compared_drawing
from evenhand.runs.compared import Comparison


def comparison_page(compared: Comparison) -> str:
    """The HTML of a comparison; nothing is computed here."""
    sections = compared_drawing.charts(compared)
    shown = [(part.label, list(part.drawn)) for part in compared.parts if part.drawn]
    sections += shown
    rows = tuple(compared.rows())
    if not shown and rows:
        listing = Listing("Findings", "Every finding in every run.", tuple(rows[0]), rows)
        sections.append(("All models", [*compared_drawing.models(compared), listing]))
    charts = [d for _, some in sections for d in some if isinstance(d, Chart)]
    places = {id(c): f"chart-{i}" for i, c in enumerate(charts)}
    scripts = [*vendored(), script("report.js")]
    data = {
        "charts": [c.spec for c in charts],
        "themes": {m: theme.config(m) for m in theme.COLOURS},
    }
    return homeless(
        environment()
        .get_template("comparison.html.jinja")
        .render(
            title=" · ".join(compared.names),
            sections=sections,
            answers=comparison_changes.answers(compared),
            places=lambda d: places.get(id(d), ""),
            data=as_json(data),
            scripts=[Markup(s) for s in scripts],
            policy=policy(scripts),
            style=Markup(script("report.css")),
        )
    )

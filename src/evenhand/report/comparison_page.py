"""One self-contained page that sets several runs of the same questions side by side."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from evenhand.charts import theme
from evenhand.charts.base import Chart, Drawn, Listing
from evenhand.charts.marks import dot_plot, heatmap
from evenhand.report import comparison_changes
from evenhand.report.build import as_json, environment, policy, script, vendored

DETECTED = "difference detected"
NUMBERS = (
    (
        "mu",
        "Intensity μ",
        "The largest lean of each term, averaged. Ticks: what noise alone gives.",
    ),
    ("eta", "One-sidedness η", "How often the same side wins. Ticks: what noise alone gives."),
    ("delta", "Positional error δ", "How far scores move when only the order of names changes."),
    ("epsilon", "Negation error ε", "How far scores fail to turn round with the question."),
)


def comparison_page(compared: dict[str, Any]) -> str:
    """The HTML of what `comparison.side_by_side` gives; nothing is computed here."""
    sections = comparison_changes.charts(compared)
    sections += [(p["label"], drawn(p)) for p in compared.get("preferences", [])]
    rows = tuple(compared["findings"])
    if not compared.get("preferences") and rows:
        listing = Listing("Findings", "Every finding in every run.", tuple(rows[0]), rows)
        sections.append(("All models", [*comparison_changes.models(compared), listing]))
    charts = [d for _, some in sections for d in some if isinstance(d, Chart)]
    places = {id(c): f"chart-{i}" for i, c in enumerate(charts)}
    scripts = [*vendored(), script("report.js")]
    data = {
        "charts": [c.spec for c in charts],
        "themes": {m: theme.config(m) for m in theme.COLOURS},
    }
    return environment().get_template("comparison.html.jinja").render(
        title=" · ".join(compared["names"]), sections=sections,
        answers=comparison_changes.answers(compared),
        places=lambda d: places.get(id(d), ""), data=as_json(data),
        scripts=[Markup(s) for s in scripts], policy=policy(scripts),
        style=Markup(script("report.css")),
    )  # fmt: skip


def drawn(compared: dict[str, Any]) -> list[Drawn]:
    """Charts and tables of one probe over models."""
    models = compared["models"]
    out: list[Drawn] = []
    for key, title, caption in NUMBERS:
        rows = [
            {"model": m["model"], key: m[key], "low": m.get(f"{key}_low"),
             "high": m.get(f"{key}_high"), "floor": m.get(f"{key}_floor"),
             "verdict": DETECTED if (m.get(f"{key}_p") or 1) <= 0.05 else "none detected"}
            for m in models
        ]  # fmt: skip
        spec = dot_plot(rows, key, "model", title, floor="floor" if rows[0]["floor"] else None)
        columns = ("model", key, "low", "high", "floor")
        out.append(Chart(title, f"{caption} Bars are 95 % intervals.", spec, columns))
    top = compared["top"]
    if top:
        caption = "The attributes that lean most to each side in each model."
        out.append(Listing("Strongest attributes", caption, tuple(top[0]), tuple(top)))
    shared = compared["shared"]
    if shared:
        caption = "Leans with the same sign in every model, those detected in most models first."
        out.append(Listing("Shared by all models", caption, tuple(shared[0]), tuple(shared[:60])))
    out += _ranks(compared["ranks"], [m["model"] for m in models])
    agreement = tuple(compared["agreement"])
    if agreement:
        caption = "Correlation of leans between models, over attributes."
        out.append(Listing("Agreement of models", caption, tuple(agreement[0]), agreement))
    return out


def _ranks(ranks: list[dict[str, Any]], models: list[str]) -> list[Drawn]:
    """Ranks of terms, one column per model; the mean and its spread in the table."""
    if not ranks:
        return []
    cells = [
        {"term": r["term"], "model": name, "rank": float(r[name])}
        for r in ranks[:40] for name in [*models, "mean_rank"]
    ]  # fmt: skip
    spec = heatmap(cells, "model", "term", "rank", "rank", numbers=True, signed=False)
    caption = "Rank of each term in each model, 1: picked most; ordered by the mean over models."
    table = Listing("Ranks with spread", "Mean and standard deviation over models.",
                    tuple(ranks[0]), tuple(ranks))  # fmt: skip
    return [Chart("Ranks of terms", caption, spec, ("term", "model", "rank")), table]

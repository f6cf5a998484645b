"""Charts of mitigations: what changed, what the model still does, and each family's own tables."""

from __future__ import annotations

import pyarrow as pa

from evenhand.charts.base import About, Chart, Drawn
from evenhand.charts.marks import Row, Spec, dot_plot, finite, frontier, heatmap, scatter, slope

SHOWN = 40
MOST = 0.25
GAPS = {"hellinger2": "mean over pairs", "hellinger2_median": "median over pairs"}
ON = {
    "test": "held-out frames",
    "new": "new terms too",
    "relearned": "fitted on held-out texts itself",
}


def changes(table: pa.Table, about: About) -> list[Drawn]:
    """Chart how far each difference moved towards or away from zero."""
    rows = [_toward(row) for row in table.to_pylist() if finite(row["change"])]
    if not rows:
        return []
    spec = dot_plot(rows, "toward", "about", "change of size", low="from", high="to")
    caption = (
        "The same items before and after, difference by difference: nearer to none (left of 0) or "
        "further away. Lines are 95 % intervals; none of the items was used to fit or to choose."
    )
    columns = ("about", "before", "after", "change", "q", "n", "became")
    return [Chart("What changed", caption, spec, columns, wide=True)]


def _toward(row: Row) -> Row:
    """Return a row with the change along the side on which the difference lay before."""
    ends = [row[name] * (1 if row["before"] >= 0 else -1) for name in ("change", "low", "high")]
    seen = "difference detected" if row["detected_change"] else "none detected"
    low, high = sorted(ends[1:])
    return {
        **row,
        "toward": ends[0],
        "from": low,
        "to": high,
        "became": row["verdict"],
        "verdict": seen,
    }


def stands(table: pa.Table, about: About) -> list[Drawn]:
    """Chart the asked behaviours before and after."""
    rows = [
        {"what": row["what"], "stage": stage, "value": row[stage]}
        for row in table.to_pylist()
        for stage in ("before", "after")
        if finite(row[stage])
    ]
    caption = (
        "Order, negation, mass on the options and the task, on the same items. Where one of them "
        "is broken, a gap that is no longer seen is not a success."
    )
    spec = slope(rows, "what", "stage", "value", "value")
    return [Chart("Does it still do what it is asked to do?", caption, spec, wide=True)]


def points(table: pa.Table, about: About) -> list[Drawn]:
    """Chart every setting tried on the choosing half, one line per number of rounds."""
    rows = table.to_pylist()
    picked = next((row for row in rows if row.get("chosen")), None)
    columns = ["method", "rounds", "alpha", "hellinger2", "increase", "perplexity"]
    columns += ["half"] * ("half" in table.column_names)
    for place, row in enumerate(rows):
        row["mark"] = "chosen" if row is picked else "" if place else "unmitigated"
    caption = f"{HALF if 'half' in table.column_names else NO_HALF} {SETTINGS}"
    spec = _frontier(rows, "hellinger2", "squared Hellinger distance of pairs")
    return [Chart("Measured gap against perplexity", caption, spec, tuple(columns), wide=True)]


HALF = (
    "Choosing half: each mark is one setting, or the unmitigated model, on the pairs of contexts "
    "and the text that the setting was chosen by. The verdict is about others, the judging half."
)
NO_HALF = (
    "Each mark is one setting, judged on contexts and text that it was not fitted on. An earlier "
    "version wrote this run: its 'unmitigated' mark may be of other pairs than the settings, so "
    "compare the settings with each other."
)
SETTINGS = (
    "Lower left is better. Lines join settings by growing alpha; 'learned' takes alpha from the "
    "model's own next-word distribution at every step. Settings above 25 % are left out."
)


def verdict(table: pa.Table, about: About) -> list[Drawn]:
    """Chart the gap on the judging half, before and after."""
    stages = table.to_pylist()
    rows = [
        {"number": name, "stage": row["stage"], "gap": row[key]}
        for key, name in GAPS.items()
        for row in stages
        if finite(row.get(key))
    ]
    if not rows:
        return []
    spec = slope(rows, "number", "stage", "gap", "squared Hellinger distance")
    caption = (
        f"Judging half: how far the next word moves when only the group changes, on "
        f"{stages[0]['pairs']} pairs of contexts that no setting was fitted or chosen on: the "
        "model as it was, and with the chosen setting. 0: no further at all."
    )
    return [Chart("Measured gap, before and after", caption, spec, wide=True)]


def stereoset(table: pa.Table, about: About) -> list[Drawn]:
    """Chart StereoSet's distance from 50 against perplexity for every setting."""
    spec = _frontier(table.to_pylist(), "gap", "StereoSet: distance of SS from 50")
    caption = (
        "How often stereotypes are preferred over their opposites, as the distance from one half, "
        "under the same settings; perplexity is that of the choosing half. Lower left is better; "
        "intervals are in the table."
    )
    columns = ("rounds", "alpha", "ss", "ss_low", "ss_high", "lms", "icat", "increase")
    return [Chart("StereoSet against perplexity", caption, spec, columns=columns, wide=True)]


def _frontier(rows: list[Row], gap: str, title: str) -> Spec:
    """Return a chart with one mark per setting, joined by growing alpha."""
    kept = [
        {
            **row,
            "setting": f"{row['rounds']} rounds, alpha {row['alpha']}",
            "line": _line(row),
            "along": row["rounds"] if row["alpha"] == "learned" else float(row["alpha"]),
        }
        for row in rows
        if row["increase"] is not None and row["increase"] <= MOST
    ]
    titles = ("perplexity increase (share)", title)
    named = "mark" if any(row.get("mark") for row in kept) else None
    return frontier(
        kept, "increase", gap, titles, label="setting", group="line", order="along", named=named
    )


def _line(row: Row) -> str:
    if row["alpha"] == "learned":
        return "learned alpha"
    return "1 round" if row["rounds"] == 1 else f"{row['rounds']} rounds"


def tokens(table: pa.Table, about: About) -> list[Drawn]:
    """Chart the most sensitive tokens, and all tokens of the set S on both measures."""
    rows = table.to_pylist()
    named = [{**r, "token": repr(r["token"])} for r in rows]
    first = dot_plot(named[:SHOWN], "cosine", "token", "cosine with the first component")
    every = scatter(
        named,
        "cosine",
        "q",
        ("cosine with the first component", "q: share of the vector's length in the subspace"),
        label="token",
    )
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


def accuracy(table: pa.Table, about: About) -> list[Drawn]:
    """Chart accuracy by training contexts (rows) and test contexts (columns)."""
    rows = [r for r in table.to_pylist() if r["features"] == "states"]
    spec = heatmap(rows, "test", "train", "accuracy", "accuracy", numbers=True, signed=False)
    caption = (
        "Share of held-out contexts whose group a linear classifier can read from the last hidden "
        "state. Rows: what it was trained on; columns: what it was tested on."
    )
    columns = ("train", "test", "accuracy", "low", "high", "majority", "n")
    return [Chart("Context classifier", caption, spec, columns=columns)]


CHARTS = {
    "verdict": verdict,
    "points": points,
    "stereoset": stereoset,
    "tokens": tokens,
    "accuracy": accuracy,
}


def readers(table: pa.Table, about: About) -> list[Drawn]:
    """Chart the accuracy of fresh classifiers before and after, layer by layer."""
    many = table.num_rows > 1
    rows = [
        {
            "what": f"{row['layer']}: {on}" if many else on,
            "stage": stage,
            "accuracy": row[f"{key}_{stage}"],
            "chance": row["test_chance"],
        }
        for row in table.to_pylist()
        for key, on in ON.items()
        for stage in ("before", "after")
        if finite(row[f"{key}_{stage}"])
    ]
    caption = (
        "How often a fresh linear classifier tells the groups apart by the model's states. The "
        "ideal is chance, which the table gives."
    )
    spec = slope(rows, "what", "stage", "accuracy", "accuracy")
    return [Chart("Read from the states", caption, spec, wide=True)]


def tests(table: pa.Table, about: About) -> list[Drawn]:
    """Every test before and after."""
    stages = [
        {"test": row["test"], "stage": stage, "statistic": row[f"statistic_{stage}"]}
        for row in table.to_pylist()
        for stage in ("before", "after")
        if finite(row[f"statistic_{stage}"])
    ]
    caption = "Each line is an association test; 0 is no association. The first was trained on."
    spec = slope(stages, "test", "stage", "statistic", "WEAT statistic")
    return [Chart("Associations before and after", caption, spec, wide=True)] if stages else []

"""Scores from an API or an old run: one row per model input, numbers with intervals out."""

from evenhand.corpora.tables import from_columns
from evenhand.probes.underspecified import measure as underspecified

# The worked example of Li et al. (2020): who is the hunter, Gerald or Jennifer?
table = from_columns(
    {
        "template": ["hunter"] * 4,
        "attribute": ["was a hunter"] * 4,
        "first": ["Gerald", "Gerald", "Jennifer", "Jennifer"],
        "second": ["Jennifer", "Jennifer", "Gerald", "Gerald"],
        "negated": [False, True, False, True],
        "score_first": [0.26, 0.35, 0.45, 0.86],
        "score_second": [0.73, 0.62, 0.54, 0.12],
    },
    "example",
)
result = underspecified.measure(table)
print("gamma(Gerald, hunter) =", next(r["gamma"] for r in result["gamma"] if r["term"] == "Gerald"))
print("delta =", result["delta"], " epsilon =", result["epsilon"])

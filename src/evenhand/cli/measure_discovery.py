"""What `evenhand measure discovery` shows on a terminal."""

from __future__ import annotations

from typing import Any

import typer

SHOWN = 15


def show(result: dict[str, Any]) -> None:
    """The words at both ends, the clusters, and what was kept."""
    from evenhand.cli.measure import _number, _print, _span

    a, b = result["group_a"], result["group_b"]
    sizes = {g: len(names) for g, names in result["groups"].items()}
    rows = [row for row in result["words"] if row["rd"] == row["rd"]]
    ends = rows if len(rows) <= 2 * SHOWN else rows[:SHOWN] + rows[-SHOWN:]
    _print(
        f"{a} ({sizes[a]} names, positive) against {b} ({sizes[b]} names): "
        f"{len(result['vocabulary'])} words, p {result['p_method']}",
        ["word", "SR a", "SR b", "RD", "95 % interval", "p", "q", "n"],
        [
            [
                row["word"], _number(row["sr_a"], ".3f"), _number(row["sr_b"], ".3f"),
                _number(row["rd"]), _span(row, "low", "high"), _number(row["p"], ".2g"),
                _number(row["q"], ".2g"), str(row["n"]),
            ]
            for row in ends
        ],
    )  # fmt: skip
    made = result["clustering"]
    if made["kmeans_accuracy"] == made["kmeans_accuracy"]:
        typer.echo(
            f"k-means tells the groups apart in {made['kmeans_accuracy']:.0%} of names (by chance "
            f"{made['null_mean']:.0%}, 95 % point {made['null_p95']:.0%}, p {made['p']:.2g})"
        )
    dropped = result["distinct_words"] - len(result["vocabulary"])
    typer.echo(
        f"{result['distractors']} distractors in {result['contexts']} contexts; {dropped} of "
        f"{result['distinct_words']} words dropped (stop words, punctuation, fewer than "
        f"{result['min_count']} per name)"
    )
    if result["reason"]:
        typer.echo(f"Note: {result['reason']}.")


def show_traits(result: dict[str, Any], a: str, b: str) -> None:
    """Orderings by trait, with people's beside them."""
    from evenhand.cli.measure import _print

    rows = [
        [
            r["trait"], str(r["d"]), r["order"] + r["mark"],
            r.get("human_order", "-") + r.get("human_mark", ""),
            {True: "yes", False: "no"}.get(r.get("agrees"), "-"),
        ]
        for r in result["traits"]
    ]  # fmt: skip
    title = f"{a} ({len(result['words_a'])} words) against {b} ({len(result['words_b'])} words)"
    _print(title, ["trait", "D", "model", "people", "agrees"], rows)


def show_suggestions(rows: list[dict[str, Any]], vectors: str) -> None:
    """Suggested traits, said to be suggestions."""
    from evenhand.cli.measure import _number, _print

    if not rows:
        typer.echo("No word differs between these groups, so there is nothing to suggest.")
        return
    _print(
        f"Suggestions from {vectors}: for people to accept or not, no verdicts",
        ["word", "perhaps", "cosine", "rather than", "margin", "note"],
        [
            [
                r["word"], r["suggestion"] or "-", _number(r["cosine"], ".2f"),
                r["opposite"] or "-", _number(r["margin"], ".2f"), r["note"],
            ]
            for r in rows
        ],
    )  # fmt: skip

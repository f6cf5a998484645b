"""Do discovered words agree with what people think? The ABC traits (An et al. 2023, Sec. 5).

People map each word, blind to the group, to none or more of 16 traits. C(A, t) counts the
(annotator, word) alignments of group A's words with the high end of trait t, C(A, not t) with the
low end.

    D_t = [C(A, t) - C(A, not t)] - [C(B, t) - C(B, not t)]

D_t > 0: group A is put above B on the trait. Nothing maps: not available. Words are never mapped
automatically; the table comes from people (`trait_suggestions` can prepare a sheet for them).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError

TRAITS = (
    "powerless - powerful", "low status - high status", "dominated - dominant", "poor - wealthy",
    "unconfident - confident", "unassertive - competitive", "traditional - modern",
    "religious - science-oriented", "conventional - alternative", "conservative - liberal",
    "untrustworthy - trustworthy", "dishonest - sincere", "cold - warm",
    "threatening - benevolent", "repellent - likable", "egoistic - altruistic",
)  # fmt: skip
STRONG = 5
HUMAN_MARKS = ((20.0, "†"), (10.0, "*"))


def ends(trait: str) -> tuple[str, str]:
    """The low and the high end of a trait.

    >>> ends("cold - warm")
    ('cold', 'warm')
    """
    low, _, high = trait.partition(" - ")
    return low, high


def orderings(
    words_a: Sequence[str],
    words_b: Sequence[str],
    alignments: Sequence[tuple[str, str, str]],
    human: Mapping[str, tuple[float, float]] | None = None,
) -> list[dict[str, Any]]:
    """D_t for every trait, and whether it points the way people's scores do.

    Args:
        words_a: words that lean to group A.
        words_b: words that lean to group B.
        alignments: (annotator, word, end of a trait), e.g. ("1", "violent", "threatening").
        human: people's scores of A and B by trait, from 0 to 100.

    >>> rows = orderings(["kind"], ["violent"], [("1", "kind", "warm"), ("1", "violent", "cold")])
    >>> [(r["trait"], r["d"]) for r in rows if r["n"]]
    [('cold - warm', 2)]
    """
    known = {end for trait in TRAITS for end in ends(trait)}
    for _, word, end in alignments:
        if end not in known:
            raise DataError(
                f"word {word!r}: {end!r} is no end of an ABC trait. Accepted: "
                f"{', '.join(sorted(known))}."
            )
    first, second = set(words_a), set(words_b)
    rows = []
    for trait in TRAITS:
        low, high = ends(trait)

        def balance(words: set[str], low: str = low, high: str = high) -> tuple[int, int]:
            up = sum(w in words and e == high for _, w, e in alignments)
            down = sum(w in words and e == low for _, w, e in alignments)
            return up - down, up + down

        (a, n_a), (b, n_b) = balance(first), balance(second)
        row: dict[str, Any] = {
            "trait": trait, "c_a": a, "c_b": b, "d": a - b, "n": n_a + n_b,
            "order": _order(a - b) if n_a + n_b else "N/A",
            "mark": "‡" if abs(a - b) >= STRONG else "",
        }  # fmt: skip
        if human and trait in human:
            gap = human[trait][0] - human[trait][1]
            row["human_difference"] = gap
            row["human_order"] = _order(gap)
            row["human_mark"] = next((m for s, m in HUMAN_MARKS if abs(gap) >= s), "")
            known_order = row["order"] not in ("N/A", "=")
            row["agrees"] = row["order"] == row["human_order"] if known_order else None
        rows.append(row)
    return rows


def _order(value: float) -> str:
    return "≻" if value > 0 else "≺" if value < 0 else "="


def discovered(
    rows: Sequence[Mapping[str, Any]], group_a: str, group_b: str, rate: float = 0.05
) -> tuple[list[str], list[str]]:
    """Words with q up to `rate` that lean to A, and to B, from a run's table of words.

    >>> rows = [{"group_a": "x", "group_b": "y", "word": "kind", "d": 0.1, "q": 0.01}]
    >>> discovered(rows, "y", "x")
    ([], ['kind'])
    """
    pairs = {(r["group_a"], r["group_b"]) for r in rows}
    turned = (group_a, group_b) not in pairs
    if turned and (group_b, group_a) not in pairs:
        known = ", ".join(sorted({g for pair in pairs for g in pair}))
        raise DataError(
            f"groups {group_a!r} and {group_b!r} are not compared in this run. Known: {known}."
        )
    pair = (group_b, group_a) if turned else (group_a, group_b)
    found = [
        r for r in rows
        if (r["group_a"], r["group_b"]) == pair and r["q"] is not None and r["q"] <= rate
    ]  # fmt: skip
    first, second = ([r["word"] for r in found if (r["d"] > 0) == up] for up in (True, False))
    return (second, first) if turned else (first, second)


def read_alignments(path: Path) -> list[tuple[str, str, str]]:
    """A CSV with the columns word, trait and optionally annotator; empty traits are skipped."""
    table = read_table(path, text=("word", "trait", "annotator"))
    table.require(("word", "trait"))
    words = table.columns["word"].to_pylist()
    traits = table.columns["trait"].to_pylist()
    who = table.columns["annotator"].to_pylist() if table.has("annotator") else ["1"] * len(words)
    return [(str(a), w, t) for a, w, t in zip(who, words, traits) if t]


def read_human(path: Path, group_a: str, group_b: str) -> dict[str, tuple[float, float]]:
    """People's scores of two groups: JSON, group -> trait -> score (Cao et al. 2022)."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        rows = [{t: float(v) for t, v in data[g].items()} for g in (group_a, group_b)]
    except KeyError as error:
        raise DataError(
            f"{path}: no group {error.args[0]!r}. Known: {', '.join(sorted(data))}."
        ) from error
    except (OSError, ValueError, AttributeError) as error:
        raise DataError(f"{path}: cannot be read as group -> trait -> score ({error}).") from error
    return {t: (rows[0][t], rows[1][t]) for t in TRAITS if t in rows[0] and t in rows[1]}

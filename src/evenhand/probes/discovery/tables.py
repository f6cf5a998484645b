"""Tables of a discovery run: counts, rates, a map of names, a sample of wrong answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.metrics.sodapop import Floats
from evenhand.models.choosing import TOLD
from evenhand.probes.discovery.counts import Shown, WordCounts
from evenhand.probes.discovery.inference import rates
from evenhand.words.names import plane_table
from evenhand.words.social_iqa import Context


def clean(value: Any) -> Any:
    """A number of numpy as a plain one."""
    return float(value) if isinstance(value, (float, np.floating)) else value


def table_of(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows as a table; one of no rows still has a column."""
    if not rows:
        return pa.table({"pair": pa.array([], pa.string())})
    return pa.Table.from_pylist([{k: clean(v) for k, v in row.items()} for row in rows])


def items(counts: WordCounts, told: Floats | None = None) -> pa.Table:
    """Counts per name, context and word: enough to compute every number again; and what is known
    of the answers about this name in this context (`told` [names, contexts, TOLD])."""
    at = np.nonzero(counts.shown)
    known = {} if told is None else {n: told[at[0], at[1], k] for k, n in enumerate(TOLD)}
    return pa.table(
        {
            "group": np.asarray(counts.groups, object)[at[0]],
            "name": np.asarray(counts.names, object)[at[0]],
            "context": np.asarray(counts.contexts, object)[at[1]],
            "word": np.asarray(counts.words, object)[at[2]],
            "shown": counts.shown[at],
            "won": counts.won[at],
            **known,
        }
    )


def rate_table(counts: WordCounts) -> pa.Table:
    """Mean success rate by group and word, for the heat map."""
    values = rates(counts)
    groups = list(dict.fromkeys(counts.groups))
    rows = []
    for group in groups:
        mine = np.asarray(counts.groups) == group
        mean = values[mine].mean(axis=0) if len(counts.words) else []
        rows += [{"group": group, "word": w, "sr": float(v)} for w, v in zip(counts.words, mean)]
    return table_of(rows)


def name_map(counts: WordCounts, seed: int) -> pa.Table:
    """Names on a plane by their success rates: t-SNE as in the paper (perplexity 30 at most)."""
    return plane_table(counts.names, counts.groups, np.nan_to_num(rates(counts)), seed)


def sample_table(shown: Sequence[Shown], found: Sequence[Context]) -> pa.Table:
    """Kept distractors with their right answers: the validity sheet starts from it."""
    right = {c.id: c for c in found}
    columns = ("group", "name", "context", "situation", "answer", "distractor", "success")
    rows: dict[str, list[Any]] = {name: [] for name in columns}
    for part in shown:
        for n, d, s in zip(part.name, part.distractor, part.success):
            filled = right[part.contexts[0]].filled(part.names[n])
            values = (
                part.groups[n],
                part.names[n],
                filled.id,
                filled.context,
                filled.answer,
                part.distractors[d],
                float(s),
            )
            for key, value in zip(columns, values):
                rows[key].append(value)
    text = {k: pa.array(v, pa.string()) for k, v in rows.items() if k != "success"}
    return pa.table({**text, "success": pa.array(rows["success"], pa.float64())})

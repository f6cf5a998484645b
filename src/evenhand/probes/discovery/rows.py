"""Rows of shown distractors from a table, and the words that are left out of counting."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from evenhand.corpora.tables import Table
from evenhand.opening import lines
from evenhand.probes.discovery.counts import Codes, Shown

COLUMNS = ("group", "name", "context", "distractor", "success")
MIN_COUNT = 50
RELEASED_MIN_COUNT = 51  # released: more than 50


def shown_from(table: Table) -> Shown:
    """The rows of a table, coded; names in the order in which they first appear."""
    success = table.scores("success")
    group, name, context = (table.labels(c) for c in COLUMNS[:3])
    unit = group.codes * len(name.values) + name.codes
    found, first, inverse = np.unique(unit, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    place = np.empty(len(found), np.int64)
    place[order] = np.arange(len(found))
    units = found[order]
    texts, codes = _texts(table)
    return Shown(
        tuple(group.values[u // len(name.values)] for u in units),
        tuple(name.values[u % len(name.values)] for u in units),
        context.values,
        texts,
        place[inverse.ravel()],
        context.codes,
        codes,
        success,
    )


def _texts(table: Table) -> tuple[list[str], Codes]:
    """The distractor column, coded; an empty distractor is allowed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.columns["distractor"]
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    column = pc.fill_null(column.cast(pa.string()), "").dictionary_encode()
    if isinstance(column, pa.ChunkedArray):
        column = column.unify_dictionaries().combine_chunks()
        column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    return column.dictionary.to_pylist(), np.asarray(column.indices, np.int64)


def ordered(rows: Shown, first: str) -> Shown:
    """Names of group `first` before the others, each group in its own order."""
    order = sorted(range(len(rows.names)), key=lambda n: rows.groups[n] != first)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return replace(
        rows,
        groups=tuple(rows.groups[n] for n in order),
        names=tuple(rows.names[n] for n in order),
        name=place[rows.name],
    )


def read_stop_words(which: str) -> Collection[str]:
    """`nltk`, `none`, or the words of a file, one per line; lines with # are notes."""
    if which == "none":
        return frozenset()
    if which == "nltk":
        from evenhand.words.lexicons import load

        return frozenset(load("stop_words").words("sets", "english"))
    expected = "nltk, none, or a text file with one word per line (--stop-words)"
    listed = lines(Path(which).expanduser(), expected)
    return frozenset(w.strip() for w in listed if w.strip() and not w.startswith("#"))

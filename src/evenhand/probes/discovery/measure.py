"""`evenhand measure discovery`: SODAPOP's numbers from distractors that were shown elsewhere."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.corpora.tables import Table, read_table
from evenhand.errors import DataError, SpecError, unknown
from evenhand.metrics.sodapop import COUNTS
from evenhand.probes.discovery.counts import Codes, Shown, count_words
from evenhand.probes.discovery.inference import Settings, check_groups, compare

COLUMNS = ("group", "name", "context", "distractor", "success")
MIN_COUNT = 50
RELEASED_MIN_COUNT = 51  # released: more than 50


def measure(
    source: str | Path | Table,
    group_a: str,
    group_b: str,
    *,
    count: str | None = None,
    stop_words: str = "nltk",
    min_count: int | None = None,
    samples: int | None = None,
    resamples: int = 1_000,
    seed: int = 0,
    as_published: bool = False,
) -> dict[str, Any]:
    """Words whose distractors win more often for one group's names than for another's.

    One row of the table per distractor shown: group, name, context, distractor, success (0/1 or
    a share). A distractor that a name and context show twice counts once, as won if it won
    once (Eq. 1 speaks of sets, and the released loader keeps sets).

    Args:
        source: a CSV, JSON lines or Parquet file, or a table.
        group_a: positive numbers lean to this group.
        group_b: the other group; sizes may differ.
        count: `indicator` (Eq. 1, the default) or `occurrence` (the released code, default with
            `as_published`).
        stop_words: `nltk`, `none`, or a file with one word per line.
        min_count: a word is kept when shown at least so often with every name; 50 (as
            published: more than 50).
        samples: random re-labellings when there are more than 200,000; 99,999.
        resamples: bootstrap samples of an interval.
        seed: of everything random.
        as_published: the released rules: occurrences, RD as a sum over names, seed 10, strictly
            larger, nothing added, 10 restarts of k-means.
    """
    table = source if isinstance(source, Table) else read_table(source, text=COLUMNS[:4])
    table.require(COLUMNS)
    how = count or ("occurrence" if as_published else "indicator")
    if how not in COUNTS:
        raise SpecError(unknown("count", how, COUNTS, where="--count"))
    rows = shown_from(table)
    check_groups(rows.groups, (group_a, group_b), table.source)
    rows, repeats = ordered(rows.only((group_a, group_b)), group_a).distinct()
    least = min_count
    if least is None:
        least = RELEASED_MIN_COUNT if as_published else MIN_COUNT
    counts = count_words(
        rows,
        stop_words=read_stop_words(stop_words),
        min_count=least,
        count=how,
        first_name_only=as_published,
    )
    settings = Settings(samples, resamples, seed, as_published)
    found = compare(counts, group_a, group_b, settings)
    return {
        "group_a": group_a,
        "group_b": group_b,
        **found,
        "vocabulary": list(counts.words),
        "names": list(counts.names),
        "groups": {
            g: [n for n, of in zip(counts.names, counts.groups) if of == g]
            for g in (group_a, group_b)
        },
        "contexts": len(counts.contexts),
        "distractors": len(rows),
        "repeats_merged": repeats,
        "distinct_words": counts.distinct_words,
        "count": how,
        "min_count": least,
        "as_published": as_published,
        "seed": seed,
    }


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
    return Shown(
        tuple(rows.groups[n] for n in order),
        tuple(rows.names[n] for n in order),
        rows.contexts,
        rows.distractors,
        place[rows.name],
        rows.context,
        rows.distractor,
        rows.success,
    )


def read_stop_words(which: str) -> Collection[str]:
    """`nltk`, `none`, or the words of a file, one per line; lines with # are notes."""
    if which == "none":
        return frozenset()
    if which == "nltk":
        from evenhand.words.lexicons import load

        return frozenset(load("stop_words").words("sets", "english"))
    path = Path(which).expanduser()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"--stop-words {which!r}: cannot be read ({error}). Accepted: nltk, none, or a text "
            f"file with one word per line."
        ) from error
    return frozenset(w.strip() for w in lines if w.strip() and not w.startswith("#"))

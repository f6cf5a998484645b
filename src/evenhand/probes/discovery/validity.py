"""Are distractors valid? A sheet for people to fill in, and what they said (Table 7).

A valid distractor is grammatical and fluent, but neither plausible nor similar to the right
answer. Each is scored from 1 to 5.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.stats import bootstrap

SCALES = ("grammar", "fluency", "plausibility", "similarity")
COLUMNS = ("situation", "answer", "distractor")


def write_sheet(distractors: pa.Table, path: Path, *, size: int = 1_000, seed: int = 0) -> int:
    """Write a random sample of distractors with empty columns for the four scores.

    Group and success are left out, so that whoever scores is blind to them. Gives the number of
    rows.
    """
    rows = list({tuple(r[c] for c in COLUMNS): r for r in distractors.to_pylist()}.values())
    order = np.random.default_rng(seed).permutation(len(rows))[:size]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*COLUMNS, *SCALES])
        writer.writerows([*(rows[i][c] for c in COLUMNS), "", "", "", ""] for i in order)
    return len(order)


def read_sheet(path: Path, *, seed: int = 0) -> dict[str, Any]:
    """Mean, standard deviation and 95 % interval of each scale; empty cells are left out."""
    table = read_table(path, text=COLUMNS)
    table.require(SCALES)
    out: dict[str, Any] = {"rows": table.n_rows}
    for scale in SCALES:
        values = table.numbers(scale)
        values = values[~np.isnan(values)]
        wrong = values[(values < 1) | (values > 5)]
        if len(wrong):
            raise DataError(f"{path}, column {scale}: '{wrong[0]:g}' is outside 1 to 5.")
        found = bootstrap.interval(values, seed=seed) if len(values) > 1 else None
        out[scale] = {
            "n": len(values),
            "mean": float(values.mean()) if len(values) else float("nan"),
            "sd": float(values.std(ddof=1)) if len(values) > 1 else float("nan"),
            "low": float(found.low) if found else float("nan"),
            "high": float(found.high) if found else float("nan"),
        }
    return out

"""Findings as CSV and Parquet. CSV cells cannot start a formula in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow.parquet as pq

from evenhand.exports.common import safe
from evenhand.runs.finding import to_table
from evenhand.runs.record import Run
from evenhand.writing import FORMULA


def csv_cell(value: Any) -> Any:
    """A value for a CSV file; text that a spreadsheet would run gets a quote in front.

    >>> csv_cell("=1+1"), csv_cell(-0.5), csv_cell(None), csv_cell("nurse")
    ("'=1+1", -0.5, '', 'nurse')
    """
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple, dict)):
        value = json.dumps(value, ensure_ascii=False)
    raw = str(value)
    text = safe(raw)
    risky = raw.lstrip(" ").startswith(FORMULA) or text.startswith("\ufffd")
    return "'" + text if risky else text


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows as CSV with a header line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([csv_cell(c) for c in columns])
    writer.writerows([csv_cell(v) for v in row] for row in rows)
    return out.getvalue()


def csv_files(run: Run) -> dict[str, bytes]:
    """findings.csv: one row per finding, nested fields as JSON."""
    rows = [f.as_dict() for f in run.findings]
    columns = list(rows[0]) if rows else []
    text = csv_text(columns, ([row[c] for c in columns] for row in rows))
    return {"findings.csv": text.encode("utf-8", "backslashreplace")}


def parquet_files(run: Run) -> dict[str, bytes]:
    """findings.parquet: one row per finding."""
    out = io.BytesIO()
    pq.write_table(to_table(run.findings), out, compression="zstd")
    return {"findings.parquet": out.getvalue()}

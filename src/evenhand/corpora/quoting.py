"""Quotes in CSV: Arrow takes what follows a closing quote for part of the cell; here it is refused.

    "so it is",1        fine
    "so "it is,1        where does the cell end? refused, with its line
    5" long,1           fine: a quote inside a cell that began without one

A cell that is never closed is refused, too. A file without quotes cannot have the fault; the others
are read a second time, by the strict reader of Python.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

from evenhand.errors import DataError
from evenhand.opening import BLOCK, opened


def check_quotes(path: Path, delimiter: str) -> None:
    """Refuse a CSV file in which text follows a closing quote."""
    with opened(path) as file:
        while piece := file.read(BLOCK):
            if b'"' in piece:
                break
    if piece:
        _read_strictly(path, delimiter)


def _read_strictly(path: Path, delimiter: str) -> None:
    with opened(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
        before = csv.field_size_limit(1 << 30)
        reader = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            for _ in reader:
                pass
        except csv.Error as error:
            raise DataError(
                f"{path}, line {reader.line_num}: is not a readable CSV file ({error}). Inside a "
                f'cell with quotes around it, write "" for a quote.'
            ) from error
        finally:
            csv.field_size_limit(before)
            text.detach()

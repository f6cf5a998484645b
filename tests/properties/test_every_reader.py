"""What must hold of every `evenhand measure NAME`, whoever wrote it.

A new reader is checked as soon as it is registered; a small input of it goes into
`reader_cases.CASES`.
"""

from __future__ import annotations

import contextlib
import csv
import inspect
import json
import math
import re
from dataclasses import FrozenInstanceError, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from evenhand import measure
from evenhand.errors import DataError
from evenhand.measured.writing import judged
from evenhand.probes.reading import Input, Result, reader_of, readers
from evenhand.strict import plain
from in_process import evenhand
from reader_cases import CASES

NAMES = sorted(n for n, r in readers().items() if r.__module__.startswith("evenhand."))
pytestmark = pytest.mark.parametrize("name", NAMES)


def strict(text: str) -> Any:
    """JSON without NaN or infinities."""

    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_every_setting_is_explained(name: str) -> None:
    reader = readers()[name]
    assert reader.name == name
    assert len(reader.help.partition("\n")[0]) > 20
    assert set(reader.positional) <= set(reader.model_fields)
    assert [k for k, field in reader.model_fields.items() if not field.description] == []
    assert reader_of(name) is reader


def test_help_lists_every_option(name: str, tmp_path: Path) -> None:
    done = evenhand("measure", name, "--help", cwd=tmp_path)
    assert done.returncode == 0
    reader = readers()[name]
    wanted = {f"--{k.replace('_', '-')}" for k in reader.model_fields if k not in reader.positional}
    assert [w for w in (*wanted, "--json") if w not in done.stdout] == []


def test_json_is_one_strict_object_and_python_gives_the_same(name: str, tmp_path: Path) -> None:
    words = CASES[name](tmp_path)
    done = evenhand("measure", name, *words, "--json", "-", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = strict(done.stdout)
    assert isinstance(found, dict)
    result = asked(name, words)
    assert strict(json.dumps(plain(result.as_dict()))) == found
    assert is_dataclass(result)
    with pytest.raises(FrozenInstanceError):
        result.settings = None  # type: ignore[attr-defined]


def asked(name: str, words: list[str]) -> Result:
    """The same from Python: options become keywords."""
    function = getattr(measure, name.replace("-", "_"))
    first = next((k for k, w in enumerate(words) if w.startswith("--")), len(words))
    settings = dict(zip((w[2:].replace("-", "_") for w in words[first::2]), words[first + 1 :: 2]))
    assert set(settings) <= set(inspect.signature(function).parameters)
    result: Result = function(*words[:first], **settings)
    return result


def test_people_get_tables(name: str, tmp_path: Path) -> None:
    done = evenhand("measure", name, *CASES[name](tmp_path), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.strip().splitlines()) >= 2
    assert "None" not in done.stdout
    assert "nan" not in done.stdout.split()


def test_scores_that_are_all_missing_are_told_without_nan(name: str, tmp_path: Path) -> None:
    words = CASES[name](tmp_path)
    path = tmp_path / "table.csv"
    if not path.is_file():
        pytest.skip("reads no plain table")
    head, *rows = csv.reader(path.read_text().splitlines())
    numbers = {k for k in range(len(head)) if all(_is_number(row[k]) for row in rows)}
    emptied = [["" if k in numbers else cell for k, cell in enumerate(row)] for row in rows]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([head, *emptied])
    assert [text for text in everything_told(name, words) if re.search(r"\bnan\b", text)] == []


def everything_told(name: str, words: list[str]) -> list[str]:
    try:
        result = asked(name, words)
    except DataError as error:  # with nothing left to measure, it may also be refused
        return [str(error)]
    claims = result.claims()
    return [str(result), *(f.sentence for f in (judged(claims) if claims else ()))]


def _is_number(cell: str) -> bool:
    with contextlib.suppress(ValueError):
        return math.isfinite(float(cell))
    return False


def test_a_table_without_its_columns_is_refused_in_one_paragraph(name: str, tmp_path: Path) -> None:
    reader = readers()[name]
    tables = [k for k, f in reader.model_fields.items() if f.annotation == Input.__origin__]
    if not tables:
        pytest.skip("reads no table with columns of its own")
    words = CASES[name](tmp_path)
    (tmp_path / "other.csv").write_text("colour,shape\nred,round\n")
    words[0] = str(tmp_path / "other.csv")
    done = evenhand("measure", name, *words, "--json", "-", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("evenhand: ")
    assert done.stderr.strip().count("\n") == 0
    assert "Columns found: colour, shape." in done.stderr


def test_an_unknown_setting_is_refused(name: str, tmp_path: Path) -> None:
    done = evenhand("measure", name, *CASES[name](tmp_path), "--colour", "red", cwd=tmp_path)
    assert done.returncode == 2
    assert "No such option" in done.stderr

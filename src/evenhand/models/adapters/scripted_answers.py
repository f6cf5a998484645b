"""What the functions of a script may return, checked where they return it.

A wrong value would otherwise be met far from its cause, by numpy; or, as a list that is too short,
by nobody.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.errors import ModelError, unknown
from evenhand.requests import TYPES, Choose, Column, Requests

NUMBERS = {"float": np.float64, "int": np.int32}
"""Outputs that are one number, and what they are stored as."""
EXPECTED = {
    "float": "a number",
    "int": "a whole number",
    "string": "text",
    "floats": "a list of numbers",
    "strings": "a list of texts",
}


def by_row(name: str, requests: Requests, answered: list[Any]) -> dict[str, Column]:
    """The columns of answers that were given row by row: one value, or a mapping of outputs."""
    outputs, rows = TYPES[requests.kind].outputs, requests.rows()
    first = next(iter(outputs))
    given = [a if isinstance(a, Mapping) else {first: a} for a in answered]
    for row, answer in zip(rows, given):
        for output in (first, *answer) if isinstance(requests, Choose) else answer:
            _check_output(name, requests, output, answer.get(output), row)
    said = {output for answer in given for output in answer}
    columns: dict[str, Column] = {}
    for output, type_name in outputs.items():
        if output in said or not isinstance(requests, Choose):  # what it may leave out: `completed`
            values = [answer.get(output, _blank(type_name)) for answer in given]
            number = NUMBERS.get(type_name)
            columns[output] = np.asarray(values, dtype=number) if number else values
    return columns


def of_batch(name: str, requests: Requests, given: Any) -> dict[str, Column]:
    """The columns that a function of a whole batch gave."""
    outputs = TYPES[requests.kind].outputs
    first, size = next(iter(outputs)), len(requests)
    told = f"expected a mapping of columns ({', '.join(outputs)}) with {size} values each"
    if not isinstance(given, Mapping) or first not in given:
        got = f"columns {', '.join(map(str, given))}" if isinstance(given, Mapping) else given
        raise _wrong(name, requests, f"returned {_short(got)}; {told}, and {first!r} among them")
    columns: dict[str, Column] = {}
    for output, column in given.items():
        if output not in outputs:
            raise _wrong(name, requests, f"returned {_short(output)}; {told}")
        if not hasattr(column, "__len__") or isinstance(column, str) or len(column) != size:
            raise _wrong(name, requests, f"returned {_short(column)} as {output!r}; {told}")
        columns[output] = _as_numbers(name, requests, output, column)
    if isinstance(requests, Choose):
        for row, values in zip(requests.rows(), columns[first]):
            _check_output(name, requests, first, values, row)
    missing = {o: t for o, t in outputs.items() if o not in columns and o in _optional(requests)}
    return columns | {o: _blanks(t, size) for o, t in missing.items()}


def completed(requests: Requests, given: dict[str, Column]) -> dict[str, Column]:
    """The answers to `choose` with what a script may leave out."""
    if not isinstance(requests, Choose):
        return given
    made: dict[str, Column] = {
        "mass": np.asarray([np.sum(row) for row in given["probabilities"]], np.float64),
        "refused": np.zeros(len(requests)),
        "unread": np.zeros(len(requests)),
    }
    return {"probabilities": given["probabilities"]} | made | given


def _optional(requests: Requests) -> set[str]:
    """Outputs with a blank: of `choose` they follow from its probabilities instead."""
    return set() if isinstance(requests, Choose) else set(list(requests.outputs)[1:])


def _as_numbers(name: str, requests: Requests, output: str, column: Any) -> Column:
    number = NUMBERS.get(requests.outputs[output])
    if number is None:
        return list(column) if isinstance(column, tuple) else column
    try:
        return np.asarray(column, dtype=number)
    except (TypeError, ValueError):
        what = f"returned {_short(column)} as {output!r}; expected {len(requests)} numbers"
        raise _wrong(name, requests, what) from None


def _check_output(
    name: str, requests: Requests, output: str, value: Any, row: tuple[str, ...]
) -> None:
    """Refuse an output that is unknown, or of another type than its column."""
    outputs = requests.outputs
    if output not in outputs:
        raise _wrong(name, requests, f"returned an {unknown('output', str(output), outputs)}")
    expected = EXPECTED[outputs[output]]
    good = _fits(value, outputs[output])
    if isinstance(requests, Choose) and output == "probabilities":
        listed = row[1].split("\t")
        expected = f"{len(listed)} probabilities, one for each of {', '.join(map(repr, listed))}"
        good = (
            good and len(value) == len(listed) and all(not (p < 0 or p > 1 + 1e-9) for p in value)
        )
    if not good:
        asked = dict(zip(requests.columns, row))
        what = f"returned {_short(value)} for {asked!r}; expected {expected} ({output})"
        raise _wrong(name, requests, what)


def _fits(value: Any, type_name: str) -> bool:
    """Whether a value is of an output's type; NaN is a number here, and judged by who asks."""
    if type_name == "string":
        return isinstance(value, str)
    if type_name in NUMBERS:
        return _is_number(value)
    if isinstance(value, str | Mapping) or not hasattr(value, "__len__"):
        return False
    wanted = (lambda v: isinstance(v, str)) if type_name == "strings" else _is_number
    return all(map(wanted, value))


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, str) and isinstance(math.fsum([value]), float)
    except (TypeError, ValueError, OverflowError):
        return False


def _wrong(name: str, requests: Requests, what: str) -> ModelError:
    end = "" if what.endswith((".", "?")) else "."
    return ModelError(f"model {name!r}: its function for {requests.kind!r} {what}{end}")


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and value.startswith("columns ") else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _blank(type_name: str) -> Any:
    """What an output is when a script does not give it."""
    return {"float": np.nan, "int": 1, "string": ""}.get(type_name, [])


def _blanks(type_name: str, size: int) -> Column:
    number = NUMBERS.get(type_name)
    values = [_blank(type_name)] * size
    return np.asarray(values, dtype=number) if number else values

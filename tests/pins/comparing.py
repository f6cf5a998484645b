"""Values as pins keep them, and the paths at which two pinned values differ.

Numbers are kept with nine significant digits and compared to three units of the ninth: sums end in
other last digits on another processor, and solvers stop there. All else has to be equal.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import evenhand
from evenhand.strict import plain

DIGITS = 9
UNIT = 3e-8
"""Up to three units of the ninth significant digit, as a share of the number."""
ZERO = 1e-14
"""Numbers as close as this differ by rounding alone, e.g. 5e-17 and 0."""
SHORT = 6
"""Tables with no more rows than this are kept whole."""
JSON = "json"
"""Key of what is written with --json, in which the order of keys counts."""
FLOATS = "floats"
"""Key of a column of numbers, kept as how many are NaN, inf and -inf, and three sums."""


def places(folder: Path) -> dict[str, str]:
    """Return what stands for a folder, and for the package, wherever they are."""
    named = {}
    for name, path in (("FOLDER", folder), ("PACKAGE", Path(evenhand.__file__).parent)):
        for form in dict.fromkeys((str(path.resolve()), str(path))):
            named[f"{form}\\"] = f"{name}/"  # of Windows
            named[form] = name
    return named


def pinned(value: Any, names: Mapping[str, str] | None = None) -> Any:
    """Return a value as JSON holds it: rounded, no NaN, and texts with `names` replaced."""
    return _rounded(plain(value), dict(names or {}))


def _rounded(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {_replaced(k, names): _rounded(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [_rounded(v, names) for v in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if value is None or isinstance(value, bool | int):
        return value
    return _replaced(str(value), names)


def _replaced(text: str, names: dict[str, str]) -> str:
    for name, stands in names.items():
        text = text.replace(name, stands)
    return text


def table_pin(table: pa.Table, names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return columns with their types, the number of rows, and short tables whole.

    Of a longer table: two rows, and for each column sums of its numbers and a digest of the rest.
    Every change of a value, of the order of rows or of a type shows.
    """
    schema = {field.name: _type(field.type) for field in table.schema}
    pin: dict[str, Any] = {"schema": schema, "rows": table.num_rows}
    if table.num_rows <= SHORT:
        return {**pin, "values": pinned(table.to_pylist(), names)}
    columns = {
        name: column_pin(table.column(name).to_pylist(), names) for name in table.column_names
    }
    return {**pin, "first": pinned(table.slice(0, 2).to_pylist(), names), "columns": columns}


def _type(kind: pa.DataType) -> str:
    """Return the type of the values; how they are coded (dictionary, large) is left out."""
    if pa.types.is_dictionary(kind):
        return _type(kind.value_type)
    return str(kind).replace("large_", "")


def column_pin(values: list[Any], names: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return sums over the numbers of a column, and a digest of everything else in it.

    >>> column_pin([1.0, 2.0, None])["floats"]
    [[0, 0, 0], 3.0, 3.0, 1.23606798]
    >>> column_pin(["a", "b"]) == column_pin(["b", "a"])
    False
    """
    numbers: list[float] = []
    rest = _without_numbers(values, numbers)
    pin: dict[str, Any] = {}
    if numbers:
        array = np.asarray(numbers)
        defined = np.where(np.isfinite(array), array, 0.0)
        # The golden ratio spreads weights evenly: swapped rows have another weighted sum.
        weights = np.arange(len(array)) * ((math.sqrt(5) - 1) / 2) % 1
        sums = defined.sum(), np.abs(defined).sum(), weights @ defined
        odd = (np.isnan(array), array == np.inf, array == -np.inf)
        pin[FLOATS] = [[int(kind.sum()) for kind in odd], *map(_digits, sums)]
    if not all(value is float for value in rest):
        text = json.dumps(pinned(_unmarked(rest), names), ensure_ascii=False)
        pin["digest"] = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    return pin


def _digits(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def _without_numbers(value: Any, numbers: list[float]) -> Any:
    """Move the numbers of nested values into a list, and leave `float` in their places."""
    if isinstance(value, float):
        numbers.append(value)
        return float
    if isinstance(value, list | tuple):
        return [_without_numbers(v, numbers) for v in value]
    if isinstance(value, dict):
        return {k: _without_numbers(v, numbers) for k, v in value.items()}
    return value


def _unmarked(value: Any) -> Any:
    if value is float:
        return "<number>"
    if isinstance(value, list):
        return [_unmarked(v) for v in value]
    return {k: _unmarked(v) for k, v in value.items()} if isinstance(value, dict) else value


def differences(old: Any, new: Any, path: str = "", *, ordered: bool = False) -> Iterator[str]:
    """Yield every path at which two pinned values differ, with both values.

    Args:
        ordered: the order of keys is part of a value; it is of all values below a key "json".

    >>> list(differences({"a": [1, 2.0]}, {"a": [1, 2.5]}))
    ['a[1]: 2.0 was pinned, now 2.5']
    >>> list(differences({"a": 1}, {"b": 1}))
    ['a: 1 was pinned, now missing', 'b: not pinned, now 1']
    >>> list(differences({"a": 1, "b": 2}, {"b": 2, "a": 1}, ordered=True))
    ["the whole: keys ['a', 'b'] were pinned, now ['b', 'a']"]
    >>> list(differences(0.123456789, 0.123456791))
    []
    """
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _of_mappings(old, new, ordered, path)
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path or 'the whole'}: {len(old)} entries were pinned, now {len(new)}"
        for place, (a, b) in enumerate(zip(old, new)):
            yield from differences(a, b, f"{path}[{place}]", ordered=ordered)
    elif not _same(old, new):
        yield f"{path or 'the whole'}: {_short(old)} was pinned, now {_short(new)}"


def _of_mappings(
    old: dict[str, Any], new: dict[str, Any], ordered: bool, path: str
) -> Iterator[str]:
    shared = [key for key in old if key in new]
    if ordered and shared != [key for key in new if key in old]:
        yield f"{path or 'the whole'}: keys {list(old)} were pinned, now {list(new)}"
    for key in dict.fromkeys([*old, *new]):
        place = f"{path}/{key}" if path else str(key)
        if key not in new:
            yield f"{place}: {_short(old[key])} was pinned, now missing"
        elif key not in old:
            yield f"{place}: not pinned, now {_short(new[key])}"
        elif key == FLOATS and _same_sums(old[key], new[key]):
            continue
        else:
            yield from differences(old[key], new[key], place, ordered=ordered or key == JSON)


def _same_sums(old: Any, new: Any) -> bool:
    """Whether two columns have equal sums, to nine digits of the sum of their sizes."""
    if len(old) != len(new) or old[0] != new[0]:
        return False
    size = max(old[2], new[2])
    return all(math.isclose(a, b, abs_tol=UNIT * size) for a, b in zip(old[1:], new[1:]))


def _same(old: Any, new: Any) -> bool:
    numbers = [type(v) in (int, float) for v in (old, new)]
    if all(numbers) and float in (type(old), type(new)):
        return math.isclose(old, new, rel_tol=UNIT, abs_tol=ZERO)
    return type(old) is type(new) and bool(old == new)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:297]}..."

"""What a spoiled file says, by strict readers of our own: nothing may change a number in silence.

A command that accepts a spoiled file must print one of two things: the same as for the file before
it was spoiled, or the same as for a clean file that says what the spoiled one says. That clean file
is made here, by readers that share no code with evenhand and are as strict as can be:

    tables      the csv module, strict, every row as long as the head, names once, plain numbers
    JSON        every name of an object once; JSON lines each on a line
    TOML        read, and written by a writer of our own
    arrays      the check sums of the archive, and each array as long as its head says
    vectors     fields split by hand, numbers as plain text; binary ones by offset
    tensors     offsets that follow one another and end with the file
    Parquet     with the check sums of its pages
    packed      unpacked to the last byte
    other text  UTF-8

A file that such a reader refuses (`Unclear`) may be accepted only where nothing that is printed
changes. A value that the file really has, another number in a cell, is no fault: nobody can know.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import struct
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
WORDS = {
    "", "nan", "inf", "-inf", "+inf", "infinity", "-infinity", "+nan", "-nan", "+infinity", "null",
    "na", "n/a", "#n/a", "#na", "1.#ind", "1.#qnan", "-1.#ind", "-1.#qnan", "#n/a n/a",
}  # fmt: skip
"""Known ways to write that there is no number, or none that is finite."""
PACKED = {b"\x1f\x8b": gzip.decompress, b"BZh": bz2.decompress, b"\xfd7zXZ\x00": lzma.decompress}
VECTORS = ("v.txt", "v.vec", "v.bin")
SEALED = ("calls.jsonl", "e.tar")
"""Whose content is checked by sums: any change must be noticed."""


class Unclear(Exception):
    """No strict reader would take this file."""


def restated(path: Path, raw: bytes, before: bytes) -> bytes:
    """A clean file that says the same. `before`: the file as it was, for the kinds of columns."""
    raw, before = unpacked(raw), unpacked(before)
    name = path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".bz2")
    name = name.removesuffix(".zst")
    how = {
        ".csv": _csv, ".tsv": _csv, ".json": _json, ".jsonl": _json_lines, ".toml": _toml,
        ".eval": _eval, ".npz": _npz, ".npy": _npy, ".safetensors": _safetensors,
        ".parquet": _parquet,
    }  # fmt: skip
    if name in SEALED:
        raise Unclear("it is not what was written")
    try:
        if name in VECTORS:
            return _vectors(raw)
        make = how.get(Path(name).suffix)
        if make is not None:
            return make(raw, before)
        if b"\0" in before or Path(name).suffix in (".tar", ".gguf"):
            return raw
        return raw.decode("utf-8").removeprefix("\ufeff").encode()
    except Unclear:
        raise
    except Exception as error:
        raise Unclear(f"{type(error).__name__}: {error}") from error


def unpacked(raw: bytes) -> bytes:
    for magic, open_ in PACKED.items():
        if raw.startswith(magic):
            try:
                return open_(raw)
            except Exception as error:
                raise Unclear(str(error)) from error
    if raw.startswith(b"\x28\xb5\x2f\xfd"):
        import pyarrow as pa

        try:
            with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as stream:
                return stream.read()
        except Exception as error:
            raise Unclear(str(error)) from error
    return raw


def _rows(raw: bytes, delimiter: str) -> list[list[str]]:
    text = raw.decode("utf-8").removeprefix("\ufeff")
    if "\0" in text:
        raise Unclear("NUL in text")
    with io.StringIO(text, newline="") as file:
        rows = [r for r in csv.reader(file, delimiter=delimiter, strict=True) if r]
    if not rows or len({len(r) for r in rows}) > 1:
        raise Unclear("rows of different lengths")
    if len(set(rows[0])) < len(rows[0]):
        raise Unclear("a column twice")
    return rows


def _csv(raw: bytes, before: bytes) -> bytes:
    delimiter = "\t" if b"\t" in before.partition(b"\n")[0] else ","
    rows = _rows(raw, delimiter)
    head, *was = _rows(before, delimiter)
    measured = {
        name for k, name in enumerate(head)
        if was and all(NUMBER.fullmatch(r[k]) for r in was) and any("." in r[k] for r in was)
    }  # fmt: skip
    for k in (k for k, name in enumerate(rows[0]) if name in measured):
        for row in rows[1:]:
            if not NUMBER.fullmatch(row[k].strip(" ")) and row[k].strip().lower() not in WORDS:
                raise Unclear(f"{row[k]!r} is no plain number")
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter).writerows(rows)  # quotes cells with a line break
    return out.getvalue().encode()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Unclear("a name twice in one object")
    return found


def _json(raw: bytes, before: bytes) -> bytes:
    return json.dumps(json.loads(raw.decode("utf-8-sig"), object_pairs_hook=_once)).encode()


def _json_lines(raw: bytes, before: bytes) -> bytes:
    lines = [s for s in raw.decode("utf-8-sig").split("\n") if s.strip()]
    held = [json.loads(line, object_pairs_hook=_once) for line in lines]
    return "".join(f"{json.dumps(value)}\n" for value in held).encode()


def _toml(raw: bytes, before: bytes) -> bytes:
    held = tomllib.loads(raw.decode("utf-8-sig"))
    return "".join(f"{_name(k)} = {_value(v)}\n" for k, v in held.items()).encode()


def _name(text: str) -> str:
    return _value(text)


def _value(value: Any) -> str:
    """One line of TOML; tables are written inline."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        body = "".join(c if c.isprintable() and c not in '"\\' else _escaped(c) for c in value)
        return f'"{body}"'
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_name(k)} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def _escaped(char: str) -> str:
    return f"\\U{ord(char):08x}"


def _npy(raw: bytes, before: bytes) -> bytes:
    file = io.BytesIO(raw)
    array = np.lib.format.read_array(file, allow_pickle=False)
    if file.read(1):
        raise Unclear("more bytes than the head says")
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def _eval(raw: bytes, before: bytes) -> bytes:
    """A zip of JSON files."""
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = archive.namelist()
        if len(set(names)) < len(names) or archive.testzip() is not None:
            raise Unclear("a name twice, or a wrong check sum")
        held = {name: _json(archive.read(name), b"") for name in names}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, value in held.items():
            archive.writestr(name, value)
    return out.getvalue()


def _npz(raw: bytes, before: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        names = archive.namelist()
        if len(set(names)) < len(names) or archive.testzip() is not None:
            raise Unclear("a name twice, or a wrong check sum")
        held = {name.removesuffix(".npy"): _npy(archive.read(name), b"") for name in names}
    out = io.BytesIO()
    np.savez(out, **{k: np.load(io.BytesIO(v)) for k, v in held.items()})
    return out.getvalue()


def _vectors(raw: bytes) -> bytes:
    head, _, rest = raw.partition(b"\n")
    promised = re.fullmatch(rb"(\d+) (\d+)", head)
    if promised and not _is_text(rest, int(promised[2])):
        return _binary(rest, int(promised[1]), int(promised[2]))
    lines = [s for s in (rest if promised else raw).decode("utf-8").split("\n") if s.strip()]
    width = int(promised[2]) if promised else len(lines[0].split()) - 1
    if promised and int(promised[1]) != len(lines):
        raise Unclear("not what the head promises")
    out = []
    for line in lines:
        word, *numbers = re.split(r"[ \t]+", line.rstrip(" \t\r"))
        word = " ".join([word, *numbers[: len(numbers) - width]])  # a word may hold spaces
        numbers = numbers[len(numbers) - width :]
        if "\t" in line.rstrip(" \t\r").rsplit(None, width)[0]:
            raise Unclear("a tab inside a word")
        if len(numbers) != width or not width or re.search(r" [+-]?[\d.]+$", word):
            raise Unclear("rows of different lengths")
        if not all(NUMBER.fullmatch(number) for number in numbers):
            raise Unclear("no plain number")
        out.append(f"{word} {' '.join(repr(float(n)) for n in numbers)}\n")
    return "".join(out).encode()


def _is_text(rest: bytes, width: int) -> bool:
    try:
        fields = rest.split(b"\n")[0].split()
        return len(fields) > width and all(float(f) == float(f) for f in fields[-width:])
    except ValueError:
        return False


def _binary(rest: bytes, count: int, width: int) -> bytes:
    at, out = 0, []
    for _ in range(count):
        space = rest.index(b" ", at)
        row = struct.unpack_from(f"<{width}f", rest, space + 1)
        out.append((rest[at:space].lstrip(b"\n").decode("utf-8"), row))
        at = space + 1 + 4 * width
    if rest[at:].strip():
        raise Unclear("more bytes than the head says")
    words = b"".join(w.encode() + b" " + struct.pack(f"<{width}f", *row) for w, row in out)
    return f"{count} {width}\n".encode() + words


def _safetensors(raw: bytes, before: bytes) -> bytes:
    (size,) = struct.unpack_from("<Q", raw)
    held = json.loads(raw[8 : 8 + size], object_pairs_hook=_once)
    ends = sorted(v["data_offsets"] for k, v in held.items() if k != "__metadata__")
    at = 0
    for begin, end in ends:
        if begin != at:
            raise Unclear("a hole between tensors")
        at = end
    if 8 + size + at != len(raw):
        raise Unclear("not as long as the tensors")
    return raw


def _parquet(raw: bytes, before: bytes) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    held = pq.read_table(pa.BufferReader(raw), page_checksum_verification=True)
    held.validate(full=True)
    out = io.BytesIO()
    pq.write_table(held, out, compression="none", use_dictionary=False)
    return out.getvalue()

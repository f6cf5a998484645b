"""Inspect's logs: `.eval`, a zip with a file per sample, or the same as one `.json`.

Read as they are documented, without Inspect, so that a log can be measured where it is not
installed.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from evenhand.errors import DataError
from evenhand.opening import DAMAGE, SLACK, beyond, limit, parse_json, read_json
from evenhand.probes.logs import Log, Sample

PROGRAM = "Inspect"
HEADER = "header.json"
BEGUN = "_journal/start.json"
ZSTANDARD = 93
LOCAL = 30
"""Bytes of the header before a file's name; its last four say how long name and extras are."""
MOST = 1 << 30
"""Bytes that a log may hold unpacked."""


def is_inspect(path: Path) -> bool:
    """Whether a file is a log of Inspect, by its content."""
    if zipfile.is_zipfile(path):
        with _zip(path) as packed:
            return bool({HEADER, BEGUN} & {*packed.namelist()})
    if path.suffix.lower() != ".json":
        return False
    held = read_json(path)
    return isinstance(held, Mapping) and {"eval", "samples", "version"} <= {*held}


def read_inspect(path: Path) -> Log:
    """Every sample that was finished.

    Raises:
        DataError: the evaluation was not finished, or its samples are damaged.
    """
    packed = zipfile.is_zipfile(path)
    head, samples = _unpacked(path) if packed else _plain(read_json(path))
    status = head.get("status")
    if status != "success":
        raise DataError(
            f"{path}: the evaluation is {status!r}, and only whole ones are measured. Resume it "
            f"with: inspect eval-retry {path}"
        )
    told = head.get("eval") or {}
    if not isinstance(told, Mapping):
        raise DataError(f"{path}: is damaged ('eval' is not an object).")
    _check_ids(path, samples)
    found = [_sample(row, f"{path}, sample {number}") for number, row in enumerate(samples, 1)]
    if not found:
        raise DataError(f"{path}: holds no samples.")
    return Log(str(path), PROGRAM, found, str(told.get("task", "")), str(told.get("model", "")))


def _plain(held: Mapping[str, Any]) -> tuple[Mapping[str, Any], Sequence[Any]]:
    samples = held.get("samples") or []
    return held, samples if isinstance(samples, list) else [samples]


def _unpacked(path: Path) -> tuple[Mapping[str, Any], Sequence[Any]]:
    held: dict[str, Any] = {}
    with _zip(path) as packed:
        for info in packed.infolist():
            if info.filename != HEADER and not info.filename.startswith("samples/"):
                continue
            if info.filename in held:
                raise DataError(f"{path}: is damaged ({info.filename!r} occurs twice).")
            if info.file_size > SLACK + limit("ratio") * info.compress_size:
                raise beyond(path, "unpacks to more than its own size times", "ratio")
            raw = _content(path, packed, info)
            held[info.filename] = parse_json(raw, f"{path}, {info.filename}")
    head = held.pop(HEADER, {"status": "started"})
    if not isinstance(head, Mapping):
        raise DataError(f"{path}: is damaged ({HEADER} holds no object).")
    return head, [held[name] for name in sorted(held)]


@contextmanager
def _zip(path: Path) -> Iterator[zipfile.ZipFile]:
    """The zip, and one sentence for whatever is wrong with it."""
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(info.file_size for info in packed.infolist()) > MOST:
                raise DataError(f"{path}: holds more than {MOST:,} bytes; too large to be read.")
            yield packed
    except DataError:
        raise
    except (
        *DAMAGE,
        zipfile.BadZipFile,
        ValueError,
        RuntimeError,
        struct.error,
    ) as error:  # of these some for a password or a method
        raise DataError(f"{path}: is damaged ({error}).") from error


def _check_ids(path: Path, samples: Sequence[Any]) -> None:
    """Refuse a sample that occurs twice."""
    seen = set()
    for row in samples:
        if isinstance(row, Mapping) and "id" in row:
            place = repr((row["id"], row.get("epoch")))
            if place in seen:
                raise DataError(f"{path}: the sample {row['id']!r:.80} occurs twice.")
            seen.add(place)


def _content(path: Path, packed: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """A file of the zip. Python before 3.14 does not unpack Zstandard there; pyarrow does."""
    if info.compress_type != ZSTANDARD:
        return packed.read(info)
    with open(path, "rb") as file:
        file.seek(info.header_offset + LOCAL - 4)
        name, extra = struct.unpack("<HH", file.read(4))
        file.seek(name + extra, 1)
        raw = file.read(info.compress_size)
    found = pa.decompress(raw, info.file_size, codec="zstd", asbytes=True)
    if zlib.crc32(found) != info.CRC:
        raise zipfile.BadZipFile(f"bad CRC-32 of {info.filename!r}")
    return bytes(found)


def _sample(row: Any, where: str) -> Sample:
    try:
        scores: Mapping[str, Any] = row.get("scores") or {}
        doc = {
            **(row.get("metadata") or {}),
            "input": row["input"],
            "choices": row.get("choices"),
            "target": row.get("target"),
        }
        noted = next((s["metadata"] for s in scores.values() if s.get("metadata")), None)
        return Sample(doc, answer="".join(_said(row)), scored=noted)
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{where}: lacks or misspells {error}.") from error


def _said(row: Mapping[str, Any]) -> Iterator[str]:
    """The text of the answer, without its thoughts."""
    choices = (row.get("output") or {}).get("choices") or []
    content = choices[0]["message"]["content"] if choices else ""
    if isinstance(content, str):
        yield content
        return
    yield from (str(part["text"]) for part in content if part.get("type") == "text")

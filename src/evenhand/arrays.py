"""Arrays and Parquet tables: whole, as long as they say, and never unpickled.

numpy reads as many numbers as the head of an array promises, and looks at the check sum of an
archive only when it comes to the end: a head that was changed gives fewer numbers, in silence.
Here an array is exactly as long as its head says, and every check sum is looked at. And when numpy
writes to a file of the system, the last bytes that do not fit on the disk are lost without a word
(they wait in a buffer of C's, whose closing nobody asks about): `save_array` hears of it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

from evenhand.confined import require_inside
from evenhand.errors import DataError, EvenhandError
from evenhand.opening import SLACK, beyond, limit


def read_arrays(path: str | Path, expected: str = "") -> dict[str, Any]:
    """The arrays of an .npz file by name.

    Args:
        expected: what the file should be and how it is made, for the message when it is not.
    """
    with _as_it_says(path, "an .npz file of plain arrays", expected):
        held: dict[str, Any] = {}
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(".npy")
                if name in held:
                    raise ValueError(f"the array {name!r} is there twice")
                if member.file_size > limit("array"):
                    raise beyond(path, f"the array {name!r} is larger than", "array")
                if member.file_size > SLACK + limit("ratio") * member.compress_size:
                    raise beyond(path, "unpacks to more than its own size times", "ratio")
                held[name] = _array(archive.read(member))
        return held


def _array(raw: bytes) -> Any:
    import numpy as np

    file = io.BytesIO(raw)
    shape, _, kind = _head(file)
    if kind.hasobject:
        raise ValueError("it holds Python objects, which only unpickling could read")
    wanted = kind.itemsize * _product(shape)
    if file.tell() + wanted != len(raw):
        raise ValueError(f"{len(raw) - file.tell()} bytes where its head promises {wanted}")
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)


def save_array(target: Path | IO[bytes], array: Any) -> None:
    """An .npy file, or one inside an open file, every byte written by Python.

    Raises:
        OSError: the disk is full, even at the very last byte.
    """
    import numpy as np

    with nullcontext(target) if hasattr(target, "write") else open(target, "wb") as file:
        np.save(_Written(file), array, allow_pickle=False)


class _Written:
    """A file that numpy takes for something else, so that it does not write past Python."""

    def __init__(self, file: Any) -> None:
        self.write = file.write


def map_array(path: str | Path, expected: str = "") -> Any:
    """The array of an .npy file, mapped, not read."""
    import numpy as np

    with _as_it_says(path, "an .npy file of plain numbers", expected):
        with open(path, "rb") as file:
            shape, _, kind = _head(file)
            begin, size = file.tell(), file.seek(0, io.SEEK_END)
        if kind.hasobject:
            raise ValueError("it holds Python objects, which only unpickling could read")
        wanted = kind.itemsize * _product(shape)
        if begin + wanted != size:
            raise ValueError(f"{size - begin} bytes where its head promises {wanted}")
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _head(file: Any) -> Any:
    from numpy.lib import format as npy

    version = npy.read_magic(file)
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"unknown version {version} of the format")
    return readers[version](file)


def _product(shape: tuple[int, ...]) -> int:
    size = 1
    for length in shape:
        if length < 0:
            raise ValueError(f"its shape is {shape}")
        size *= length
    return size


def read_parquet(path: str | Path | io.BytesIO, expected: str = "") -> Any:
    """The table of a Parquet file, check sums of its pages compared where it has them.

    Only the file itself is read: folders called NAME=VALUE above it add no column.
    """
    import pyarrow.parquet as pq

    where = path if isinstance(path, (str, Path)) else "Parquet data"
    with _as_it_says(where, "a readable Parquet file", expected):
        require_inside(path)
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            if 8 * file.metadata.num_rows * max(1, file.metadata.num_columns) > limit("array"):
                raise beyond(where, "its rows take more than", "array")
            table = file.read()
        table.validate(full=True)
        return table


@contextmanager
def _as_it_says(path: object, what: str, expected: str) -> Iterator[None]:
    """Whatever a library finds wrong, in one sentence."""
    try:
        yield
    except (EvenhandError, MemoryError, ImportError):
        raise
    except OSError as error:
        if error.errno is None:  # Arrow's own, about what the file holds
            raise DataError(f"{path}: is not {what} ({error}). {expected}".rstrip()) from error
        why = "no such file" if isinstance(error, FileNotFoundError) else error.strerror
        raise DataError(f"{path}: {why}. Expected {what}. {expected}".rstrip()) from error
    except Exception as error:  # zip, zlib, tokenize and Arrow have each their own
        said = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{path}: is not {what} ({said}). {expected}".rstrip()) from error

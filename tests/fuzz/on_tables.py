"""Tables of scores in every format, vectors, arrays."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from reader_cases import CASES, counterfactual

JSON = ["--json", "-"]
PACKED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda raw: pa.compress(raw, "zstd", asbytes=True),
}


def measuring(name: str) -> Callable[[Path], list[str]]:
    return lambda folder: ["measure", name, *CASES[name](folder), *JSON]


def table(form: str) -> Callable[[Path], list[str]]:
    """One and the same table of scores in one of the formats."""

    def make(folder: Path) -> list[str]:
        words = counterfactual(folder)
        plain = Path(words[0])
        read = pa.csv.read_csv(plain)
        path = folder / f"table{form}"
        if form == ".parquet":
            pq.write_table(read, path, write_page_checksum=True)
        elif form == ".jsonl":
            path.write_text("".join(f"{json.dumps(row)}\n" for row in read.to_pylist()))
        elif form == ".json":
            path.write_text(json.dumps(read.to_pylist()))
        elif form == ".tsv":
            path.write_text(plain.read_text().replace(",", "\t"))
        else:
            path.write_bytes(PACKED[form.removeprefix(".csv")](plain.read_bytes()))
        plain.unlink()
        return ["measure", "counterfactual", str(path), *words[1:], *JSON]

    return make


def vectors(form: str) -> Callable[[Path], list[str]]:
    """A table of word vectors in one of its formats."""

    def make(folder: Path) -> list[str]:
        words = ["art", "math", "she", "he"]
        rows = np.asarray([[1, 0.1], [0.1, 1], [1, 0], [0, 1]], np.float32)
        path = folder / f"v{form}"
        lines = [f"{w} {a} {b}" for w, (a, b) in zip(words, rows.tolist(), strict=True)]
        if form == ".vec":
            path.write_text("\n".join(["4 2", *lines]) + "\n")
        elif form == ".bin":
            pairs = zip(words, rows, strict=True)
            body = b"".join(w.encode() + b" " + r.tobytes() + b"\n" for w, r in pairs)
            path.write_bytes(b"4 2\n" + body)
        elif form == "/":
            path.mkdir()
            np.save(path / "vectors.npy", rows)
            pq.write_table(pa.table({"word": words}), path / "words.parquet")
        elif form == ".txt":
            path.write_text("\n".join(lines) + "\n")
        else:
            path.write_bytes(PACKED[form.removeprefix(".txt")](("\n".join(lines) + "\n").encode()))
        test = {"t": {"x": ["art"], "y": ["math"], "a": ["she"], "b": ["he"]}}
        (folder / "t.json").write_text(json.dumps(test))
        given = ["--vectors", str(path), "--tests", str(folder / "t.json")]
        return ["measure", "association", *given, *JSON]

    return make


def erasing(folder: Path) -> list[str]:
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(24, 3)), "y": np.arange(24) % 2, "split": np.arange(24) % 3}
    np.savez(folder / "x.npz", **given)
    out = ["--rounds", "1", "--out", str(folder / "p.npz")]
    return ["erase", str(folder / "x.npz"), *out, *JSON]


def gaps_of_packed(folder: Path) -> list[str]:
    """Arrays that are compressed inside their archive."""
    words = erasing(folder)
    with np.load(words[1]) as held:
        np.savez_compressed(words[1], **dict(held))
    return words


def log(form: str) -> Callable[[Path], list[str]]:
    """Answers that another program has logged."""

    def make(folder: Path) -> list[str]:
        from integrations import test_logs as made

        if form == "lm-eval":
            path = made.written(folder, made.crows(), "crows_pairs_english")
        else:
            told = made.inspect_log()
            path = folder / f"log{form}"
            if form == ".eval":
                made.zipped(path, told)
            else:
                path.write_text(json.dumps(told))
        return ["measure", "log", str(path), *JSON]

    return make


LOGS = ("lm-eval", ".eval", ".json")
TABLES = (".parquet", ".jsonl", ".json", ".tsv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst")
VECTORS = (".txt", ".vec", ".bin", "/", ".txt.gz", ".txt.xz")
TARGETS = {
    **{f"measure {name}": measuring(name) for name in CASES},
    **{f"table {form}": table(form) for form in TABLES},
    **{f"vectors {form}": vectors(form) for form in VECTORS},
    **{f"log {form}": log(form) for form in LOGS},
    "erase": erasing,
    "erase packed": gaps_of_packed,
}

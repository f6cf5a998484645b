"""The viewer over a run with ten million items: time of pages, memory, ten clients at once.

    python benchmarks/viewer_scale.py [--rows 10000000] [--seconds 60] [--json FILE]

Makes the run folder in a temporary place (about 300 MB), starts `evenhand view` on it as its own
process and asks it over HTTP. Targets: first screen under 1 s, a filtered page under 0.5 s,
memory under 500 MB, no error with ten clients in parallel.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import made_runs
from evenhand.runs.facts import FILES, NAME
from evenhand.seals import SEAL, digest, sealed_text

GROUP = 100_000
TERMS, TEMPLATES, ATTRIBUTES = 400, 12, 70


def make(folder: Path, rows: int) -> int:
    """A run whose underspecified items have that many rows; gives the file's size."""
    made_runs.ordinary(folder)
    names = {
        "first": [f"term {i:03d}" for i in range(TERMS)],
        "second": [f"term {i:03d}" for i in range(TERMS)],
        "template": [f"template {i}" for i in range(TEMPLATES)],
        "attribute": [f"attribute {i:02d}" for i in range(ATTRIBUTES)],
    }
    path = folder / "probes" / "underspecified" / "items.parquet"
    rng = np.random.default_rng(0)
    writer = None
    for start in range(0, rows, GROUP):
        size = min(GROUP, rows - start)
        columns: dict[str, Any] = {
            key: pa.DictionaryArray.from_arrays(
                pa.array(rng.integers(len(values), size=size), pa.int32()), pa.array(values)
            )
            for key, values in names.items()
        }
        for place in range(5):
            columns[f"score_{place}"] = rng.random(size, np.float32).astype(np.float64)
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
        writer.write_table(table, row_group_size=GROUP)
    assert writer is not None
    writer.close()
    facts = json.loads((folder / NAME).read_text(encoding="utf-8"))
    facts.pop(SEAL)
    facts[FILES][path.relative_to(folder).as_posix()] = digest(path)
    (folder / NAME).write_text(sealed_text(facts), encoding="utf-8")
    return path.stat().st_size


def timed(address: str) -> tuple[float, bytes]:
    started = time.perf_counter()
    with urllib.request.urlopen(address, timeout=30) as answer:
        body: bytes = answer.read()
    return time.perf_counter() - started, body


def pages(address: str) -> dict[str, float]:
    """Seconds of each kind of page, the first time it is asked for."""
    items = f"{address}run/big/items/underspecified"
    asked = {
        "list of runs (first screen)": address,
        "run page": f"{address}run/big",
        "items, no filter": items,
        "items, one filter": f"{items}?attribute=attribute+07",
        "items, two filters": f"{items}?attribute=attribute+08&first=term+012",
        "items, rare value in any column": f"{items}?any=term+399",
        "items, text search": f"{items}?search=ATTRIBUTE+11",
        "items, page 1000": f"{items}?page=1000",
        "items, one filter again, page 20": f"{items}?attribute=attribute+07&page=20",
    }
    return {name: round(timed(url)[0], 3) for name, url in asked.items()}


def crowd(address: str, seconds: float, clients: int = 10) -> dict[str, Any]:
    """Ten clients ask different things until the time is over."""
    times: list[float] = []
    errors: list[str] = []
    stop = time.monotonic() + seconds

    def client(number: int) -> None:
        rng = np.random.default_rng(number)
        while time.monotonic() < stop:
            attribute, page = rng.integers(ATTRIBUTES), rng.integers(1, 30)
            target = (
                f"run/big/items/underspecified?attribute=attribute+{attribute:02d}&page={page}",
                "run/big",
                "",
                f"run/big/items/underspecified?first=term+{rng.integers(TERMS):03d}",
            )[int(rng.integers(4))]
            try:
                times.append(timed(address + target)[0])
            except (OSError, urllib.error.URLError) as error:
                errors.append(str(error))

    threads = [threading.Thread(target=client, args=(n,)) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "requests": len(times),
        "errors": len(errors),
        "median_s": round(statistics.median(times), 3),
        "p95_s": round(float(np.quantile(times, 0.95)), 3),
        "first_errors": errors[:3],
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--json", type=Path)
    asked = options.parse_args()
    with tempfile.TemporaryDirectory() as place:
        size = make(Path(place) / "big", asked.rows)
        command = [sys.executable, "-m", "evenhand", "view", place, "--port", "0", "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[1]
            process = psutil.Process(server.pid)
            _wait(address)
            found = {
                "rows": asked.rows,
                "file_mb": round(size / 1e6),
                "pages_s": pages(address),
                "memory_after_pages_mb": round(process.memory_info().rss / 1e6),
                "ten_clients": crowd(address, asked.seconds),
                "memory_after_clients_mb": round(process.memory_info().rss / 1e6),
            }
            server.terminate()
    print(json.dumps(found, indent=1))
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n")


def _wait(address: str) -> None:
    for _ in range(100):
        try:
            timed(address + "static/viewer.css")
            return
        except OSError:
            time.sleep(0.1)


if __name__ == "__main__":
    main()

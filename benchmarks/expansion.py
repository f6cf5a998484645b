"""Expanding every packaged word set over 400,000 words, against one word and string at a time.

    python benchmarks/expansion.py [--vectors glove-6b-50d]

The slow way (two norms and one product per pair, as the released program does) is timed for a few
words over a few thousand strings and scaled. Results: benchmarks/results/expansion.json
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from evenhand.models.vectors.files import open_vectors, resolve_vectors
from evenhand.words.lexicons.files import weat, weat_tests
from evenhand.words.sets import expand_tests

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vectors", default="glove-6b-50d")
    table = open_vectors(resolve_vectors(parser.parse_args().vectors))
    tests = [weat(name) for name in weat_tests()]
    words = {w.lower() for t in tests for s in (t.x, t.y, t.a, t.b) for w in s}
    begun, spent = time.perf_counter(), time.process_time()
    made = expand_tests(tests, table, as_published=True)
    took, cpu = time.perf_counter() - begun, time.process_time() - spent
    queries, rows = np.asarray(table.matrix[100:104]), np.asarray(table.matrix[:5000])
    begun = time.perf_counter()
    for q in queries:
        for r in rows:
            np.dot(q, r) / (np.linalg.norm(q) * np.linalg.norm(r))
    pair = (time.perf_counter() - begun) / (len(queries) * len(rows))
    slow = pair * len(words) * len(table)
    wino = made["kato_winobias"].sizes()
    result = {
        "vocabulary": len(table), "dimensions": table.dimensions, "tests": len(tests),
        "distinct_words": len(words), "seconds": round(took, 2), "cpu_seconds": round(cpu, 2),
        "pair_by_pair_s_extrapolated": round(slow), "times_faster": round(slow / took),
        "kato_winobias_before_after": {k: list(v) for k, v in wino.items()},
    }  # fmt: skip
    (HERE / "results").mkdir(exist_ok=True)
    text = json.dumps(result, indent=1) + "\n"
    (HERE / "results" / "expansion.json").write_text(text)
    print(text)


if __name__ == "__main__":
    main()

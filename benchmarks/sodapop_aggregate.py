"""Ten million scored answers into success rates and tests: time and memory.

    python benchmarks/sodapop_aggregate.py [--rows 10000000]

Made-up outcomes of 200 names, 50 contexts and answers of three words. Must stay under two minutes
and 3 GB.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

from evenhand.probes.discovery.counts import Shown, count_words
from evenhand.probes.discovery.inference import Settings, compare, group_replicates


def made_up(rows: int, seed: int = 0) -> Shown:
    """Rows spread evenly over 200 names and 50 contexts, from a million distinct texts."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(3_000)]
    share = 1 / np.arange(1, 3_001)
    picked = rng.choice(3_000, size=(1_000_000, 3), p=share / share.sum())
    texts = [f"{words[a]} {words[b]} {words[c]}" for a, b, c in picked.tolist()]
    name = np.repeat(np.arange(200), rows // 200)
    return Shown(
        tuple(f"g{n // 25}" for n in range(200)),
        tuple(f"n{n}" for n in range(200)),
        tuple(f"c{c}" for c in range(50)),
        texts,
        name,
        rng.integers(0, 50, len(name)),
        rng.integers(0, len(texts), len(name)),
        (rng.random(len(name)) < 0.3).astype(np.float64),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    rows = parser.parse_args().rows
    shown = made_up(rows)
    begun, spent = time.monotonic(), time.process_time()
    shown, merged = shown.distinct()
    counts = count_words(shown, min_count=50)
    counted = time.monotonic() - begun
    settings = Settings(samples=9_999, restarts=20)
    drawn = group_replicates(counts, settings)
    found = [compare(counts, "g0", f"g{b}", settings, drawn) for b in range(1, 8)]
    total = time.monotonic() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{len(shown):,} answers ({merged:,} repeats merged), {len(counts.words)} words kept: "
        f"counted in {counted:.1f} s, 7 pairs of groups tested after {total:.1f} s "
        f"({time.process_time() - spent:.1f} s of processor time), peak {peak:.2f} GiB"
    )
    print(f"words with q < 0.05 (nothing was planted): "
          f"{sum(row['q'] < 0.05 for f in found for row in f['words'])}")  # fmt: skip


if __name__ == "__main__":
    main()

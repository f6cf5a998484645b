"""Ten million questions from items to findings in bounded memory.

    python benchmarks/streaming.py [--tiny]

The gender design of UnQover (140 names, 70 occupations) with 8 templates, twice as many as
published, and a quarter, half and all of its 4,900 pairs, then all of them with 16 templates: 2.7,
5.5, 11 and 22 million span questions. A scripted model answers whole batches, so
what is measured is everything but a model: texts, shards on disk, sums (`streaming_cpu_seconds`),
then statistics, items table, findings and report, whose cost depends on pairs and attributes but
not on the number of questions. Each size runs in a process of its own, which states its peak memory
(ru_maxrss) and its CPU seconds; wall clock beside them, since the machine is shared.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES = ((8, 1_225), (8, 2_450), (8, 4_900), (16, 4_900))  # templates, pairs
TINY = ((2, 50), (2, 100), (2, 200), (4, 200))


def scripted() -> Any:
    """Five pseudo-random probabilities per question, from one checksum of its texts."""
    import numpy as np

    from evenhand.models.adapters.scripted import ScriptedModel

    def span(requests: Any) -> dict[str, Any]:
        texts = map("".join, zip(requests.question, requests.context, requests.candidate))
        codes = np.fromiter((zlib.crc32(t.encode()) for t in texts), np.uint64, len(requests))
        names = ("start", "end", "none", "other_start", "other_end")
        turned = (codes * np.uint64(2_654_435_761 + 2 * k) for k in range(len(names)))
        return {n: (t % np.uint64(10_007)) / 10_007.0 for n, t in zip(names, turned)}

    return ScriptedModel({"span": span}, name="scripted-span", whole=True)


def one(templates: int, pairs: int, resamples: int) -> dict[str, Any]:
    """Run one size in this process."""
    from evenhand.audit.auditing import Audit
    from evenhand.audit.suites import Entry, Suite
    from evenhand.probes.shared import streaming
    from evenhand.probes.underspecified.numbers import CellSums
    from evenhand.probes.underspecified.probe import Underspecified
    from evenhand.words.list_formats import Lists

    class Longer(Underspecified):
        """The same probe with each template in further wordings, as many as asked for."""

        def lists(self, form: str) -> Lists:
            found = super().lists(form)
            more = [
                replace(t, id=f"{t.id}.{k}", context=f"{'So. ' * k}{t.context}")
                for k in range(-(-templates // len(found.templates)))
                for t in found.templates
            ]
            return replace(found, templates=tuple(more[:templates]))

    reached: list[float] = []
    measure = CellSums.measure

    def noted(self: CellSums) -> Any:
        reached.append(_cpu())
        return measure(self)

    CellSums.measure = noted  # type: ignore[method-assign]
    streaming.HELD_ROWS = 0
    probe = Longer(pairs=pairs, resamples=resamples)
    suite = Suite("streaming", "streaming", (Entry("underspecified", probe),))
    folder = Path(tempfile.mkdtemp(prefix="streaming-"))
    try:
        begun, before = time.perf_counter(), _cpu()
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        run = Audit(suite, "scripted", folder / "run", loaded={"scripted": scripted()}).run()
        seconds, cpu = time.perf_counter() - begun, _cpu() - before
        parts = {
            p.name: round(sum(f.stat().st_size for f in p.rglob("*") if f.is_file()) / 2**20, 1)
            for p in (folder / "run").iterdir()
            if p.is_dir()
        }
        rows = run.facts["probes"]["underspecified"]["counts"]["rows"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return {
            "templates": templates, "pairs": pairs, "requests": rows, "findings": len(run.findings),
            "seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1),
            "streaming_cpu_seconds": round(reached[0] - before, 1),
            "rows_per_cpu_second": round(rows / cpu), "peak_mib": round(peak),
            "mib_before": round(base), "disk_mib": parts,
        }  # fmt: skip
    finally:
        shutil.rmtree(folder)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="2 templates, to try it anywhere")
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--size", type=int, nargs=2, help="one size only, as JSON (used inside)")
    options = parser.parse_args()
    if options.size:
        print(json.dumps(one(*options.size, options.resamples)))
        return 0
    rows = []
    for size in TINY if options.tiny else SIZES:
        command = [sys.executable, __file__, "--size", *map(str, size)]
        command += ["--resamples", str(options.resamples)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    result = summed_up(rows, options.resamples)
    print(json.dumps(result["doubling"], indent=1))
    if not options.tiny:
        (HERE / "results" / "streaming.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


def summed_up(rows: list[dict[str, Any]], resamples: int) -> dict[str, Any]:
    """The sizes, and what doubling the work does to time and memory."""
    ratios = {}
    for a, b in itertools.pairwise(rows):
        work = b["requests"] / a["requests"]
        ratios[f"{a['requests']:,} to {b['requests']:,} requests"] = {
            "work": round(work, 3),
            "time_over_work": round(b["seconds"] / a["seconds"] / work, 3),
            "cpu_over_work": round(b["cpu_seconds"] / a["cpu_seconds"] / work, 3),
            "streaming_cpu_over_work": round(
                b["streaming_cpu_seconds"] / a["streaming_cpu_seconds"] / work, 3
            ),
            "peak_memory": round(b["peak_mib"] / a["peak_mib"], 3),
        }
    facts = {"resamples": resamples, "cores": os.cpu_count()}
    return {**facts, "sizes": rows, "doubling": ratios}


if __name__ == "__main__":
    sys.exit(main())

"""A discovery run at the size of the paper: does memory stay while contexts are added?

    python benchmarks/discovery_growth.py [--tiny]

200 names and up to 10,000 wrong answers for each in every context, as in the paper (220 names, 50
contexts). A scripted model writes the answers (20 of 3,000 words for every mask) and another
chooses, so what is measured is everything but a model: writing, texts, shards on disk, counting,
tests, report. Work goes context by context; what stays are counts by name and word. Each size runs
in a process of its own, which states its peak memory (ru_maxrss) and its CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SIZES, TINY = (1, 2, 4, 8), (1, 2)  # contexts
WORDS = [f"word{i}" for i in range(3_000)]


def models() -> dict[str, Any]:
    """A writer and a chooser whose answers depend on nothing but the texts."""
    import numpy as np

    from evenhand.models.adapters.scripted import ScriptedModel

    def fills(requests: Any) -> dict[str, Any]:
        starts = [zlib.crc32(text.encode()) for text in requests.text]
        found = [[WORDS[(s + 151 * k) % len(WORDS)] for k in range(20)] for s in starts]
        return {"fills": found, "logprobs": [[0.0] * 20] * len(starts)}

    def choose(requests: Any) -> dict[str, Any]:
        texts = map("".join, zip(requests.prompt, requests.option))
        codes = np.fromiter((zlib.crc32(t.encode()) for t in texts), np.uint64, len(requests))
        return {"logit": codes / 2**32, "n_tokens": np.ones(len(requests), np.int32)}

    return {
        "writer": ScriptedModel({"fill-mask": fills}, name="writer", whole=True),
        "chooser": ScriptedModel({"option": choose}, name="chooser", whole=True),
    }


def one(contexts: int, keep: int) -> dict[str, Any]:
    """Run one size in this process."""
    from evenhand.audit.auditing import Audit
    from evenhand.audit.suites import Entry, Suite
    from evenhand.probes.discovery.probe import Discovery

    folder = Path(tempfile.mkdtemp(prefix="discovery-"))
    try:
        rows = ["id,context,question,answer"]
        for i in range(contexts):
            what = f"a person who is number {i}"
            rows.append(f"c{i},Alex did thing {i} today.,How would you describe Alex?,{what}")
        (folder / "contexts.csv").write_text("\n".join(rows) + "\n")
        probe = Discovery(
            contexts=str(folder / "contexts.csv"), placeholder="Alex", generator="writer",
            keep=keep, samples=999, pairs=("asian_female:asian_male",),
        )  # fmt: skip
        suite = Suite("discovery", "discovery", (Entry("discovery", probe),))
        begun, before = time.perf_counter(), _cpu()
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        run = Audit(suite, "chooser", folder / "run", loaded=models()).run()
        facts = run.facts["probes"]["discovery"]
        return {
            "contexts": contexts, "options": facts["counts"]["rows"],
            "fills": facts["summary"].get("fills"), "findings": len(run.findings),
            "seconds": round(time.perf_counter() - begun, 1),
            "cpu_seconds": round(_cpu() - before, 1),
            "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "mib_before": round(base),
        }  # fmt: skip
    finally:
        shutil.rmtree(folder)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tiny", action="store_true", help="50 answers each, to try it anywhere")
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--keep", type=int, default=10_000)
    options = parser.parse_args()
    if options.size:
        print(json.dumps(one(options.size, options.keep)))
        return
    keep = 50 if options.tiny else options.keep
    rows = []
    for size in TINY if options.tiny else SIZES:
        command = [sys.executable, __file__, "--size", str(size), "--keep", str(keep)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        print(rows[-1], flush=True)
    if not options.tiny:
        result = {"names": 200, "keep": keep, "sizes": rows}
        path = HERE / "results" / "discovery_growth.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

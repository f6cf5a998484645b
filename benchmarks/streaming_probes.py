"""Memory of every probe that streams: a million rows, then ten million.

    python benchmarks/streaming_probes.py [--tiny] [--probe NAME ...] [--rows N ...]

Scripted models answer whole batches, so what is measured is everything but a model: texts, shards
on disk, sums, statistics, items table, findings and report. What grows is what a user would ask
for more of: pairs of names (underspecified), draws of each prompt (generation), wrong answers of
each name (discovery). Each size runs in a process of its own, which states its peak memory
(ru_maxrss) and its CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROWS, TINY = (1_000_000, 10_000_000), (20_000, 40_000)
RESULT = HERE / "results" / "streaming_probes.json"
Made = tuple[Any, dict[str, Any]]  # a probe and its models
WORDS = [f"word{i}" for i in range(3_000)]


def _codes(*columns: Any) -> Any:
    """A checksum of every row's texts."""
    import numpy as np

    texts = map("".join, zip(*columns))
    return np.fromiter((zlib.crc32(t.encode()) for t in texts), np.uint64, len(columns[0]))


def _scripted(name: str, kind: str, answer: Callable[[Any], dict[str, Any]], **facts: Any) -> Any:
    from evenhand.models.adapters.scripted import ScriptedModel

    return ScriptedModel({kind: answer}, name=name, whole=True, **facts)


def underspecified(rows: int, folder: Path) -> Made:
    """140 names, 70 occupations, 8 templates; 2,240 questions a pair, up to 4,900 pairs."""
    import numpy as np

    from evenhand.probes.underspecified.probe import Underspecified
    from evenhand.words.list_formats import Lists

    class Longer(Underspecified):
        """The same probe with each template in two wordings."""

        def lists(self, form: str) -> Lists:
            found = super().lists(form)
            more = [replace(t, id=f"{t.id}.so", context=f"So. {t.context}")
                    for t in found.templates]  # fmt: skip
            return replace(found, templates=(*found.templates, *more))

    def span(requests: Any) -> dict[str, Any]:
        codes = _codes(requests.question, requests.context, requests.candidate)
        names = ("start", "end", "none", "other_start", "other_end")
        turned = (codes * np.uint64(2_654_435_761 + 2 * k) for k in range(len(names)))
        return {n: (t % np.uint64(10_007)) / 10_007.0 for n, t in zip(names, turned)}

    probe = Longer(pairs=max(20, min(4_900, round(rows / 2_240))), resamples=200)
    return probe, {"model": _scripted("spans", "span", span)}


def generation(rows: int, folder: Path) -> Made:
    """500 prompts for each of two groups, texts judged by a classifier."""
    import numpy as np

    from evenhand.probes.generation.probe import Generation

    table = ["group,prompt,key"]
    table += [f"{g},The {g} at work {k} was,{k}" for k in range(500) for g in ("woman", "man")]
    (folder / "prompts.csv").write_text("\n".join(table) + "\n")

    def write(requests: Any) -> dict[str, Any]:
        codes = _codes(requests.prompt, requests.draw)
        texts = [f" known for {WORDS[c % 3_000]} and {WORDS[c // 3_000 % 3_000]}." for c in
                 codes.tolist()]  # fmt: skip
        return {"text": texts, "n_tokens": np.full(len(texts), 8, np.int32)}

    def judge(requests: Any) -> dict[str, Any]:
        share = (_codes(requests.text) % np.uint64(1_000)) / 1_000.0
        return {"probabilities": np.stack([share / 2, share / 2, 1 - share], axis=1).tolist()}

    labels = {"labels": ["negative", "neutral", "positive"]}
    made = Generation(file=str(folder / "prompts.csv"), draws=max(2, rows // 1_000), scorer="judge")
    models = {
        "model": _scripted("writes", "generate", write),
        "judge": _scripted("judge", "classify", judge, facts=labels),
    }
    return made, models


def discovery(rows: int, folder: Path) -> Made:
    """200 names, 10 situations; wrong answers of three of 3,000 words."""
    import numpy as np

    from evenhand.probes.discovery.probe import Discovery

    lines = ["id,context,question,answer"]
    for i in range(10):
        what = f"a person who is number {i}"
        lines.append(f"c{i},Alex did thing {i} today.,How would you describe Alex?,{what}")
    (folder / "contexts.csv").write_text("\n".join(lines) + "\n")

    def fills(requests: Any) -> dict[str, Any]:
        found = [[WORDS[(s + 151 * k) % len(WORDS)] for k in range(20)]
                 for s in _codes(requests.text).tolist()]  # fmt: skip
        return {"fills": found, "logprobs": [[0.0] * 20] * len(found)}

    def choose(requests: Any) -> dict[str, Any]:
        codes = _codes(requests.prompt, requests.option)
        return {"logit": codes / 2**32, "n_tokens": np.ones(len(requests), np.int32)}

    made = Discovery(
        contexts=str(folder / "contexts.csv"), placeholder="Alex", generator="writer",
        keep=max(5, rows // 2_000), samples=999, pairs=("asian_female:asian_male",),
    )  # fmt: skip
    models = {
        "model": _scripted("chooses", "option", choose),
        "writer": _scripted("writer", "fill-mask", fills),
    }
    return made, models


PROBES: dict[str, Callable[[int, Path], Made]] = {
    "underspecified": underspecified, "generation": generation, "discovery": discovery,
}  # fmt: skip


def one(name: str, rows: int) -> dict[str, Any]:
    """Run one probe and size in this process."""
    from evenhand.audit.auditing import Audit
    from evenhand.audit.suites import Entry, Suite
    from evenhand.probes.shared import streaming

    streaming.HELD_ROWS = 0  # the same way of asking at every size
    folder = Path(tempfile.mkdtemp(prefix="streaming-"))
    try:
        probe, models = PROBES[name](rows, folder)
        suite = Suite("streaming", "streaming", (Entry(name, probe),))
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        begun, before = time.perf_counter(), _cpu()
        run = Audit(suite, "model", folder / "run", loaded=models).run()
        return {
            "probe": name, "rows": run.facts["probes"][name]["counts"]["rows"],
            "findings": len(run.findings), "seconds": round(time.perf_counter() - begun, 1),
            "cpu_seconds": round(_cpu() - before, 1), "mib_before": round(base),
            "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        }  # fmt: skip
    finally:
        shutil.rmtree(folder)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a few rows, to try it anywhere")
    parser.add_argument("--probe", nargs="*", default=[*PROBES], choices=[*PROBES])
    parser.add_argument("--rows", type=int, nargs="*", default=[])
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.size:
        print(json.dumps(one(options.probe[0], options.size)))
        return 0
    kept = json.loads(RESULT.read_text()) if RESULT.is_file() else {"probes": {}}
    for name in options.probe:
        sizes = []
        for rows in options.rows or (TINY if options.tiny else ROWS):
            command = [sys.executable, __file__, "--size", str(rows), "--probe", name]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            sizes.append(json.loads(done.stdout.splitlines()[-1]))
            print(sizes[-1], flush=True)
        growth = round(sizes[-1]["peak_mib"] / sizes[0]["peak_mib"], 3)
        kept["probes"][name] = {"sizes": sizes, "peak_memory": growth}
        print(f"{name}: peak memory times {growth}", flush=True)
    if not (options.tiny or options.rows):
        RESULT.write_text(json.dumps(kept | {"cores": os.cpu_count()}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

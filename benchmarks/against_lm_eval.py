"""The same CrowS-Pairs sentences and BBQ options scored by lm-eval's own loop and by evenhand.

    python benchmarks/against_lm_eval.py PYTHON [--pairs 40] [--questions 30]

PYTHON is the interpreter of an environment that has lm-eval 0.4.13 and torch. Both sides load
smollm2-135m in float32, use one thread, get the same prefixes and continuations (a sentence after
the begin token; three answers after each question) and are timed in processor seconds from texts to
log-likelihoods, model loaded, after a call to warm up. lm-eval runs in batches of 16 and of 1, and
the faster one counts. Log-likelihoods are compared.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import lzma
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "against_lm_eval.json"
SHARED = Path(os.environ.get("EVENHAND_SHARED") or HERE.parents[1] / "shared")


def opened(path: Path) -> Any:
    openers = {".gz": gzip.open, ".xz": lzma.open}
    return openers.get(path.suffix, open)(path, "rt")


def crows(pairs: int) -> list[tuple[str, str]]:
    with opened(next((SHARED / "data" / "crows_pairs").glob("*.csv*"))) as file:
        rows = list(csv.DictReader(file))[:pairs]
    return [("", text) for row in rows for text in (row["sent_more"], row["sent_less"])]


def bbq(questions: int) -> list[tuple[str, str]]:
    with opened(sorted((SHARED / "data" / "bbq").rglob("Gender_identity.jsonl*"))[0]) as file:
        rows = [json.loads(next(file)) for _ in range(questions)]
    return [
        (f"{r['context']}\nQuestion: {r['question']}\nAnswer:", f" {r[f'ans{k}']}")
        for r in rows
        for k in range(3)
    ]


def theirs(job: dict[str, Any]) -> dict[str, Any]:
    """lm-eval's side; runs in its own environment."""
    import torch
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    torch.set_num_threads(1)
    out: dict[str, Any] = {}
    for size in (16, 1):
        model = HFLM(job["model"], dtype="float32", device="cpu", batch_size=size)
        for name, rows in job["tasks"].items():
            asked = [Instance("loglikelihood", {}, tuple(r), k) for k, r in enumerate(rows)]
            model.loglikelihood(asked[:2], disable_tqdm=True)
            begun = time.process_time()
            found = [value for value, _ in model.loglikelihood(asked, disable_tqdm=True)]
            spent = time.process_time() - begun
            if name not in out or spent < out[name]["cpu_s"]:
                out[name] = {"cpu_s": spent, "values": found, "batch": size}
    return out


def ours(tasks: dict[str, list[tuple[str, str]]]) -> tuple[dict[str, Any], str]:
    import torch

    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions
    from evenhand.requests import Continuation
    from evenhand.runner.ask import Ask

    torch.set_num_threads(1)
    model: Any = resolve("smollm2-135m", options=LoadOptions(chat="off", device="cpu"))
    out = {}
    for name, rows in tasks.items():
        asked = Continuation([p for p, _ in rows], [c for _, c in rows])
        Ask(model)(asked.take([0, 1]))
        begun = time.process_time()
        values = Ask(model)(asked)["logprob"]
        out[name] = {"cpu_s": time.process_time() - begun, "values": [float(v) for v in values]}
    return out, str(model.layout.trunk)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("python", nargs="?")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--questions", type=int, default=30)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(theirs(json.loads(options.worker.read_text()))))
        return
    tasks = {"crows_pairs": crows(options.pairs), "bbq": bbq(options.questions)}
    mine, folder = ours(tasks)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as job:
        json.dump({"model": folder, "tasks": tasks}, job)
        job.flush()
        command = [options.python, __file__, "--worker", job.name]
        clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(
            command, capture_output=True, text=True, check=False,
            env=clean | {"HF_HUB_OFFLINE": "1"},
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"lm-eval failed:\n{done.stderr[-2_000:]}")
    other = json.loads(done.stdout.splitlines()[-1])
    rows = []
    for name in tasks:
        a, b = mine[name], other[name]
        apart = max(abs(x - y) for x, y in zip(a["values"], b["values"], strict=True))
        rows.append({
            "task": name, "rows": len(a["values"]), "evenhand_cpu_s": round(a["cpu_s"], 2),
            "lm_eval_cpu_s": round(b["cpu_s"], 2), "lm_eval_batch": b["batch"],
            "ratio": round(b["cpu_s"] / a["cpu_s"], 2), "largest_difference": apart,
        })  # fmt: skip
        print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

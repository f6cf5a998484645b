"""From the command to the first score: what is imported, what is loaded, on a warm cache.

    python benchmarks/first_score.py [--turns 5] [--model smollm2-135m]

Every turn starts three new processes: one imports torch, transformers and the module of Llama
models, without which nothing can be scored; one loads the model; one is the command `evenhand probe
underspecified`, until the first batch of questions has its scores. Medians by the clock and in
processor seconds. The first turn fills the cache and is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "first_score.json"
CLOCK = """
import time
begun = time.perf_counter()
def say():
    print("took", time.perf_counter() - begun, time.process_time(), flush=True)
"""
IMPORTS = """
import torch, transformers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.models.llama import modeling_llama
say()
"""
LOADED = """
from evenhand.models.loading.resolver import resolve
resolve({model!r})
say()
"""
COMMAND = """
import os
from evenhand.models.adapters import causal_pass
forward = causal_pass.PackedPass._forward
def first(*given, **more):
    found = forward(*given, **more)
    say()
    os._exit(0)
causal_pass.PackedPass._forward = first
from evenhand.cli.main import app
app(["probe", "underspecified", {model!r}, "--out", {out!r}], prog_name="evenhand")
"""
STEPS = {"imports": IMPORTS, "loaded": LOADED, "first score": COMMAND}


def took(code: str) -> tuple[float, float]:
    """Seconds by the clock and of the processor that a new process says it took."""
    done = subprocess.run(
        [sys.executable, "-c", CLOCK + code], capture_output=True, text=True, check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    said = [line.split() for line in done.stdout.splitlines() if line.startswith("took ")]
    if not said:
        raise SystemExit(f"nothing was scored:\n{done.stderr[-2_000:]}")
    return float(said[0][1]), float(said[0][2])


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--model", default="smollm2-135m")
    options = parser.parse_args()
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in STEPS}
    for turn in range(options.turns + 1):
        for name, code in STEPS.items():
            with tempfile.TemporaryDirectory() as folder:
                found = took(code.format(model=options.model, out=f"{folder}/run"))
            if turn:
                times[name].append(found)
    rows: list[dict[str, Any]] = []
    for name, turns in times.items():
        clock, cpu = (round(statistics.median(t), 2) for t in zip(*turns))
        rows.append({"until": name, "seconds": clock, "cpu_seconds": cpu})
        print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

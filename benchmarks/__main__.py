"""`make bench`: every benchmark that runs on this machine, then one table of ratios.

    python -m benchmarks            run what can run here, then print the table
    python -m benchmarks --table    print the table from stored results
    python -m benchmarks --record   append it to history.jsonl, and draw anew
    python -m benchmarks --draw     the pictures and the table of docs/scale.md from stored data

Each script measures its ratios within one run and writes them to `benchmarks/results/`. Scripts
that need a GPU, or an hour, are listed but not started: run them by name.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks import drawing, ratios

HERE = Path(__file__).parent
PARTS = {"drawing.py", "ratios.py", "sodapop_released.py"}
BY_NAME_ONLY = {
    "calibration.py": "simulates thousands of fair models; runs with make calibration",
    "against_lm_eval.py": "takes an environment with lm-eval; about 25 minutes on two cores",
    "against_peers.py": "takes an environment with WEFE and concept-erasure",
    "check_forecast.py": "runs three suites; about 10 minutes on two cores",
    "compiled.py": "about 4 minutes on two cores, 100 s on a GPU; --tiny tries it",
    "cpu_ways.py": "takes smollm2-135m; about 5 minutes on two cores",
    "streaming.py": "41 million questions; about 3 minutes on an idle core; --tiny tries it",
    "device_rate.py": "meant for a GPU",
    "first_score.py": "takes smollm2-135m; about 3 minutes on two quiet cores",
    "streaming_probes.py": "30 million rows; about 10 minutes on an idle core; --tiny tries it",
    "discovery_growth.py": "30 million options; about 9 minutes on an idle core; --tiny tries it",
    "sodapop_cost.py": "takes models and Social IQa; about 10 minutes on two cores",
    "sodapop_gpu.py": "meant for a GPU; takes models and data",
    "unqover_cpu.py": "takes a span model",
    "unqover_full.py": "meant for a GPU; takes a model",
    "unqover_precision.py": "meant for a GPU; takes a model",
    "unqover_throughput.py": "meant for a GPU; --tiny tries it anywhere",
    "unqover_train.py": "meant for a GPU; takes an encoder and SQuAD files",
    "weat_against_wefe.py": "installs WEFE in its own environment, about 5 minutes",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--table", action="store_true", help="run nothing, print the table")
    parser.add_argument("--record", action="store_true", help="append the table to the history")
    parser.add_argument("--draw", action="store_true", help="draw the pictures and the page")
    options = parser.parse_args()
    worst = 0 if options.table or options.record or options.draw else run_all()
    values = ratios.ratios()
    print(ratios.table(values))
    if options.record:
        ratios.record(values)
    if options.record or options.draw:
        for path in drawing.redraw():
            print(f"drawn: {path}")
    return worst


def run_all() -> int:
    worst = 0
    for script in sorted(HERE.glob("*.py")):
        if script.name.startswith("_") or script.name in PARTS:
            continue
        if script.name in BY_NAME_ONLY:
            print(f"-- {script.name}: not started ({BY_NAME_ONLY[script.name]})", flush=True)
            continue
        print(f"== {script.name}", flush=True)
        worst |= subprocess.run([sys.executable, str(script)], check=False).returncode
    return worst


if __name__ == "__main__":
    sys.exit(main())

"""`make bench`: every benchmark that runs on this machine, one after the other.

Each script measures its ratios within one run and writes them to `benchmarks/results/`. Scripts
that need a GPU, or an hour, are listed but not started: run them by name.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
PARTS = {"sodapop_released.py"}
BY_NAME_ONLY = {
    "device_rate.py": "meant for a GPU",
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

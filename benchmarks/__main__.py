"""`make bench`: every benchmark that runs on this machine, one after the other.

Each script measures its ratios within one run and writes them to `benchmarks/results/`. Scripts
that need a GPU, or an hour, are listed but not started: run them by name.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
BY_NAME_ONLY = {"weat_against_wefe.py": "installs WEFE in its own environment, about 5 minutes"}


def main() -> int:
    worst = 0
    for script in sorted(HERE.glob("*.py")):
        if script.name.startswith("_"):
            continue
        if script.name in BY_NAME_ONLY or "BY_NAME_ONLY" in script.read_text():
            why = BY_NAME_ONLY.get(script.name, "see its first lines")
            print(f"-- {script.name}: not started ({why})", flush=True)
            continue
        print(f"== {script.name}", flush=True)
        worst |= subprocess.run([sys.executable, str(script)], check=False).returncode
    return worst


if __name__ == "__main__":
    sys.exit(main())

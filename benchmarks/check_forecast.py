"""`evenhand check` against what then happens, on three real suites.

    python benchmarks/check_forecast.py [--shared DIR]

Each suite is forecast and then run, each in a process of its own, one right after the other.
Time is compared as CPU seconds (repeatable on a shared machine) and as wall clock; a ratio of 1
is a perfect forecast, below 1 the run took longer than forecast.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
LIANG = """
name = "liang-small"
title = "Local and global bias, gender"
[[probe]]
name = "divergence"
axes = ["gender"]
[[probe]]
name = "generation"
axes = ["gender"]
draws = 2
scorer = "vader"
"""

FORECAST = """
import json, sys
from pathlib import Path
from evenhand.audit.planning import check
rows = check(sys.argv[1], sys.argv[2])
hidden = ("example", "notes")
print(json.dumps([{k: v for k, v in r.as_dict().items() if k not in hidden} for r in rows]))
"""

RUN = """
import json, resource, sys, tempfile, time
from pathlib import Path
from evenhand.audit.auditing import Audit
from evenhand.requests import TYPES
from evenhand.runner.ask import Ask
from evenhand.audit.suites import load_suite
job = Audit(load_suite(sys.argv[2]), sys.argv[1], Path(tempfile.mkdtemp()) / "run")
counted = {"tokens": 0}
job._check_models()  # loads the models
begun, cpu = time.perf_counter(), time.process_time()
run = job.run()
spent = {"seconds": time.perf_counter() - begun, "cpu_seconds": time.process_time() - cpu}
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
from evenhand.audit.calibration import _tokens
from evenhand.runner.plan import make_plan, shards
tokens = 0
for entry in job.suite.entries:
    model = job._load(entry)
    if set(entry.probe.needs) & model.answers and hasattr(model, "encode"):
        asked = entry.probe.preview(model.answers, 0).requests
        tokens += sum(_tokens(model, s.requests) for s in shards(make_plan(asked, 4096)))
counts = [p["counts"] for p in run.facts["probes"].values() if not p.get("skipped")]
print(json.dumps({**spent, "memory_mib": peak, "tokens": tokens,
                  "rows": sum(c["rows"] for c in counts),
                  "distinct": sum(c["distinct"] for c in counts)}))
"""


def measured(program: str, model: str, suite: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", program, model, suite], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found = json.loads(done.stdout.splitlines()[-1])
    if isinstance(found, dict):
        return found
    names = ("rows", "distinct", "tokens", "seconds", "cpu_seconds")
    total = {n: sum(r.get(n) or 0 for r in found) for n in names}
    return total | {"memory_mib": max(r["memory_mib"] for r in found)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    shared = Path(os.environ.get("EVENHAND_SHARED", HERE.parents[1] / "shared"))
    parser.add_argument("--shared", type=Path, default=shared, help="folder with models/")
    options = parser.parse_args()
    liang = Path(tempfile.mkdtemp()) / "liang-small.toml"
    liang.write_text(LIANG)
    cases = [
        ("smollm2-135m", "quick"),
        (str(options.shared / "models" / "minilm-qa"), "unqover-sampled"),
        ("smollm2-135m", str(liang)),
    ]
    rows = []
    for model, suite in cases:
        said, was = (measured(program, model, suite) for program in (FORECAST, RUN))
        ratios = {name: round(said[name] / was[name], 3) if was[name] else None for name in was}
        name = f"{Path(suite).stem} on {Path(model).name}"
        rows.append({"suite": name, "forecast": said, "run": was, "forecast_over_run": ratios})
        print(name, ratios, flush=True)
        result = {"cores": os.cpu_count(), "suites": rows}
        (HERE / "results" / "check_forecast.json").write_text(json.dumps(result, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The statistics stay light to import."""

from __future__ import annotations

import subprocess
import sys

MODULES = [
    "permutation",
    "multiple",
    "bootstrap",
    "correlation",
    "power",
    "variance",
    "clustering",
    "noise",
]


def test_importing_the_statistics_loads_no_heavy_library():
    names = ", ".join(f"evenhand.stats.{name}" for name in MODULES)
    code = (
        f"import sys, {names}\n"
        "print([m for m in ('torch', 'scipy', 'sklearn', 'pyarrow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

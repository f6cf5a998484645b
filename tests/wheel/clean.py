"""Build the wheel, put it into a fresh environment without pip, and try it there.

    python tests/wheel/clean.py [--python PYTHON] [--fetch ALIAS] [--keep DIR]

`make test-wheel` does this. The pip that installs is the one that runs this file, from outside.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def run(*words: str | Path, **more: object) -> None:
    print("+", *map(str, words), flush=True)
    subprocess.run([*map(str, words)], check=True, **more)  # type: ignore[call-overload]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--fetch", default="", metavar="ALIAS")
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        place = asked.keep or Path(scratch)
        place.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
        run(*pip, "wheel", "--no-deps", "--wheel-dir", place / "dist", ROOT)
        (wheel,) = (place / "dist").glob("evenhand-*.whl")
        run(asked.python, "-m", "venv", "--without-pip", place / "env")
        own = place / "env" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        run(*pip, "--python", own, "install", wheel)
        (place / "work").mkdir(exist_ok=True)
        clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "COLUMNS")}
        clean["EVENHAND_CACHE"] = str(place / "cache")
        told = [asked.fetch] if asked.fetch else []
        run(own, HERE / "plain.py", place / "work", *told, env=clean, cwd=place)


if __name__ == "__main__":
    main()

"""Do verdicts hold? Fair models through every path that yields a q, and planted effects.

    python -m benchmarks.calibration                 1,000 repetitions a path
    python -m benchmarks.calibration --repetitions 200 --only underspecified

For each path: the share of p <= 0.05 in fair models (nominal 0.05), the coverage of 95 % intervals,
how often a fair family has any detection (q <= 0.05), and how often an effect of the size called
detectable is detected (nominal 0.80). Written to `benchmarks/results/calibration.json` and into
the table of `docs/statistics.md`.
"""

from __future__ import annotations

import argparse
import json
import zlib
from dataclasses import asdict, dataclass
from pathlib import Path as File

import numpy as np
from benchmarks.calibrated import Path, paths

HERE = File(__file__).parent
RESULT = HERE / "results" / "calibration.json"
PAGE = HERE.parent / "docs" / "statistics.md"
MARKS = ("<!-- calibration -->", "<!-- end of calibration -->")
RATE = 0.05


@dataclass(frozen=True)
class Row:
    """What the repetitions of one path came to."""

    path: str
    repetitions: int
    false_alarms: float
    coverage: float
    any_detection: float
    power: float


def calibrate(path: Path, repetitions: int, seed: int = 0) -> Row:
    """Fair models, then models with one effect of the size called detectable."""
    rng = np.random.default_rng([seed, zlib.crc32(path.name.encode())])
    fair = [path.draw(rng, 0.0) for _ in range(repetitions)]
    size = float(np.nanmean([o.detectable for o in fair]))
    planted = [path.draw(rng, size) for _ in range(repetitions)]
    inside = [(o.low <= o.truth) & (o.truth <= o.high) for o in fair]
    return Row(
        path.name,
        repetitions,
        float(np.mean(np.concatenate([o.p <= RATE for o in fair]))),
        float(np.mean(np.concatenate(inside))),
        float(np.mean([(o.q <= RATE).any() for o in fair])),
        float(np.mean([o.q[o.planted] <= RATE for o in planted])),
    )


def table(rows: list[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| path | false alarms | coverage | any detection in a fair family | power at detectable |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {r.path} | {r.false_alarms:.3f} | {r.coverage:.3f} | {r.any_detection:.3f} | "
        f"{r.power:.2f} |"
        for r in rows
    ]
    return "\n".join(lines)


def write(rows: list[Row]) -> None:
    """The results, and the table of the page between its marks."""
    RESULT.write_text(json.dumps([asdict(r) for r in rows], indent=1) + "\n")
    text = PAGE.read_text(encoding="utf-8")
    if all(mark in text for mark in MARKS):
        head, rest = text.split(MARKS[0])
        tail = rest.split(MARKS[1])[1]
        PAGE.write_text(f"{head}{MARKS[0]}\n{table(rows)}\n{MARKS[1]}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibration")
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="paths whose name holds this text")
    options = parser.parse_args()
    rows = []
    for path in paths():
        if options.only in path.name:
            rows.append(calibrate(path, options.repetitions, options.seed))
            print(table(rows[-1:]).splitlines()[-1], flush=True)
    if not options.only:
        write(rows)


if __name__ == "__main__":
    main()

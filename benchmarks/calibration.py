"""Do verdicts hold? Fair models through every path that yields a q, and planted effects.

    python -m benchmarks.calibration                 1,000 repetitions a path
    python -m benchmarks.calibration --repetitions 200 --only underspecified --jobs 2 --try

For each path: the share of p <= 0.05 in fair models (nominal 0.05), the coverage of 95 % intervals
(in fair and in planted models), how often a fair family has any detection (q <= 0.05), and how
often an effect of the size called detectable is detected (nominal 0.80). Written row by row to
`benchmarks/results/calibration.json` and into the table of `docs/statistics.md`. Repetitions come
in parts with seeds of their own, so the table is the same however many processes share the work.
"""

from __future__ import annotations

import argparse
import json
import os
import zlib
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path as File

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")  # before numpy: matrices are small, cores are shared out

import numpy as np  # noqa: E402
from benchmarks.calibrated import Outcome, Path, paths  # noqa: E402

HERE = File(__file__).parent
RESULT = HERE / "results" / "calibration.json"
PAGE = HERE.parent / "docs" / "statistics.md"
MARKS = ("<!-- calibration -->", "<!-- end of calibration -->")
RATE, PART, NAN = 0.05, 25, float("nan")
Task = tuple[str, float, int, int, int]
"""Path, effect, seed, part, repetitions."""
Spread = Callable[[Callable[[Task], list[float]], Iterable[Task]], Iterable[list[float]]]


@dataclass(frozen=True)
class Row:
    """What the repetitions of one path came to; power is NaN where no detectable effect is said."""

    path: str
    repetitions: int
    false_alarms: float
    coverage: float
    any_detection: float
    power: float


@cache
def known() -> dict[str, Path]:
    return {path.name: path for path in paths()}


def simulate(task: Task) -> list[float]:
    """What the repetitions of one part sum up to."""
    name, effect, seed, part, count = task
    path = known()[name]
    rng = np.random.default_rng([seed, part, int(effect != 0), zlib.crc32(name.encode())])
    return list(np.sum([summed(path.draw(rng, effect)) for _ in range(count)], axis=0))


def summed(o: Outcome) -> list[float]:
    """Tests, alarms, known truths, truths inside, any detection, planted one found, detectable."""
    tested, truth = ~np.isnan(o.p), ~np.isnan(o.truth + o.low + o.high)
    inside = (o.low <= o.truth) & (o.truth <= o.high)
    return [
        tested.sum(), (o.p[tested] <= RATE).sum(), truth.sum(), inside[truth].sum(),
        (o.q[tested] <= RATE).any(), o.q[o.planted] <= RATE, np.nan_to_num(o.detectable),
        o.detectable == o.detectable,
    ]  # fmt: skip


def calibrate(name: str, repetitions: int, seed: int = 0, spread: Spread = map) -> Row:
    """Fair models, then models with one effect of the size called detectable.

    `spread` is `map`, or that of a pool of processes.
    """
    parts = [(k, min(PART, repetitions - k * PART)) for k in range(-(-repetitions // PART))]

    def total(effect: float) -> np.ndarray:
        made = spread(simulate, [(name, effect, seed, k, n) for k, n in parts])
        return np.asarray(np.sum(list(made), axis=0))

    fair = total(0.0)
    size = fair[6] / fair[7] if fair[7] else 0.0
    planted = total(size) if size else np.full(8, np.nan)
    truths, inside = np.nansum([fair[2:4], planted[2:4]], axis=0)
    return Row(
        name, repetitions, ratio(fair[1], fair[0]), ratio(inside, truths),
        ratio(fair[4], repetitions), ratio(planted[5], repetitions),
    )  # fmt: skip


def ratio(top: float, bottom: float) -> float:
    return float(top / bottom) if bottom else NAN


def table(rows: Sequence[Row]) -> str:
    """The rows as Markdown."""
    lines = [
        "| path | repetitions | false alarms | coverage | any detection in a fair family | "
        "power at detectable |",
        "|---|---|---|---|---|---|",
    ]
    for r in rows:
        numbers = [
            "none" if n != n else format(n, form)
            for n, form in ((r.false_alarms, ".3f"), (r.coverage, ".3f"),
                            (r.any_detection, ".3f"), (r.power, ".2f"))
        ]  # fmt: skip
        lines.append(f"| {r.path} | {r.repetitions:,} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def stored() -> dict[str, Row]:
    """The rows of the results file, by path."""
    if not RESULT.exists():
        return {}
    made = json.loads(RESULT.read_text())
    return {r["path"]: Row(**{k: NAN if v is None else v for k, v in r.items()}) for r in made}


def write(made: Iterable[Row]) -> None:
    """These rows in place of older ones: in the results, and in the table between the marks."""
    found = stored() | {row.path: row for row in made}
    rows = [found[name] for name in known() if name in found]
    plain = [{k: None if v != v else v for k, v in asdict(r).items()} for r in rows]
    RESULT.write_text(json.dumps(plain, indent=1) + "\n")
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
    parser.add_argument("--try", dest="write", action="store_false", help="print, write nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        for name in known():
            if options.only in name:
                row = calibrate(name, options.repetitions, options.seed, pool.map)
                print(table([row]).splitlines()[-1], flush=True)
                if options.write:
                    write([row])


if __name__ == "__main__":
    main()

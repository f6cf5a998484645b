"""Do gates decide as often wrongly as they say? Simulated models, then fine-tuned ones.

    python -m benchmarks.gates                       1,000 simulated runs, 100 trained models each
    python -m benchmarks.gates --repetitions 200 --models 0 --try

Simulated: runs whose truth is known (on the margin, even, changed by the margin, noisier) through
`eh.gate`, `eh.compare`'s verdicts, `--until-decided` and `eh.plan`. Trained: small transformers
that are fine-tuned to lean more, or whose weights are only shaken (`benchmarks.gated_models`).
Written to `benchmarks/results/gates.json` and into the tables of docs/gate.md.
"""

from __future__ import annotations

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np  # noqa: E402
from benchmarks.calibrated.gate import MARGIN, Made, World  # noqa: E402

import evenhand as eh  # noqa: E402
from evenhand.audit.comparison.deciding import decide  # noqa: E402
from evenhand.audit.policy import Policy  # noqa: E402
from evenhand.audit.suites import Suite  # noqa: E402
from evenhand.audit.until import Looking  # noqa: E402
from evenhand.runs.compared import Change  # noqa: E402

HERE = Path(__file__).parent
RESULT = HERE / "results" / "gates.json"
PAGE = HERE.parent / "docs" / "gate.md"
PAIRS, FEW, LOOKS, PART = 40, 10, 3, 50
NOISY = World(name=0.1, about=0.12, rest=0.08)
ALL = tuple(MARGIN * way for way in (1, -1, 1, -1))
STRICT = Policy(require="within-margin")
Rng = np.random.Generator


class Drawn(Looking):
    """Looks at simulated runs: each further one knows twice as many pairs."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.whole = [run for run in (self.run, self.baseline) if isinstance(run, Made)]
        self.run, self.baseline = (*map(_beginning, self.whole), None)[:2]

    def _once(self) -> float:
        return self.budget / (2**LOOKS - 2)

    def _asked(self, suite: Suite, look: int) -> Any:
        made = [_beginning(run, FEW * 2 ** (look - 1)) for run in self.whole]
        return (*made, None)[:2]


def _beginning(run: Made, pairs: int = FEW) -> Made:
    return Made(run.folder, run.leans[:pairs])


def alone(rng: Rng, lean: float | Sequence[float], world: World = NOISY) -> Made:
    return world.run(rng, world.liked(rng, PAIRS), lean)


def both(
    rng: Rng, before: float, after: float, noise: float = 0.0, world: World = NOISY
) -> tuple[Made, Made]:
    liked = world.liked(rng, PAIRS)
    return world.run(rng, liked, before), world.run(rng, liked, after, noise)


def judged(run: Made, **given: Any) -> str:
    return eh.gate(run, **given).outcome


def looked(run: Made, baseline: Made | None = None) -> str:
    return Drawn(run, baseline, STRICT, 1e9).gate().outcome


def compared(pair: tuple[Made, Made]) -> str:
    return Change("a", "b", (), decisions=decide(*pair).decisions).verdict


def since(pair: tuple[Made, Made], policy: Policy | None = None) -> str:
    return judged(pair[1], baseline=pair[0], policy=policy)


def seen_as_planned(rng: Rng, metric: str, lean: float | Sequence[float], at: int) -> str:
    """A pilot of 15 pairs, the run that it plans, and a lean of the margin's size in it."""
    world = World(name=0.1, about=0.09, rest=0.06)
    pilot = world.run(rng, world.liked(rng, 15))
    row = next(r for r in eh.plan(pilot, margin=MARGIN).rows if r.metric == metric)
    pairs = min(int(row.needed or 0), 70)
    run = world.run(rng, world.liked(rng, pairs), lean)
    return "detected" if run.findings[at].detected else "missed"


@dataclass(frozen=True)
class Case:
    """A truth, what is done with it, and which outcome would be an error (none: for power)."""

    what: str
    draw: Callable[[Rng], str]
    error: str = ""
    other: str = ""


CASES = (
    Case("default policy, even", lambda r: judged(alone(r, 0.0)), "failed"),
    Case("within margin, even", lambda r: judged(alone(r, 0), policy=STRICT), "failed"),
    Case("within margin, one on it", lambda r: judged(alone(r, MARGIN), policy=STRICT), "passed",
         "failed"),
    Case("within margin, four on it", lambda r: judged(alone(r, ALL), policy=STRICT), "passed",
         "failed"),
    Case("within margin, one three times it", lambda r: judged(alone(r, 3 * MARGIN), policy=STRICT),
         "passed"),
    Case("baseline, no change", lambda r: since(both(r, MARGIN, MARGIN)), "failed"),
    Case("baseline, only noisier", lambda r: since(both(r, MARGIN, MARGIN, 0.15)), "failed"),
    Case("baseline, better", lambda r: since(both(r, 2 * MARGIN, 0.0)), "failed"),
    Case("baseline, worse by twice the margin", lambda r: since(both(r, 0.0, 2 * MARGIN))),
    Case("not worse than baseline, no change", lambda r: since(both(r, 0, 0), STRICT), "failed"),
    Case("not worse than baseline, worse by the margin",
         lambda r: since(both(r, MARGIN, 2 * MARGIN), STRICT), "passed"),
    Case("compare, no change", lambda r: compared(both(r, MARGIN, MARGIN)), "worse", "better"),
    Case("compare, worse by the margin", lambda r: compared(both(r, MARGIN, 2 * MARGIN)), "same",
         "better"),
    Case("until decided, even", lambda r: looked(alone(r, 0.0)), "failed"),
    Case("until decided, one on the margin", lambda r: looked(alone(r, MARGIN)), "passed",
         "failed"),
    Case("until decided, one three times it", lambda r: looked(alone(r, 3 * MARGIN)), "passed"),
    Case("until decided, worse by the margin",
         lambda r: looked(*reversed(both(r, MARGIN, 2 * MARGIN))), "passed"),
    Case("planned from 15 pairs, a contrast (the others move along)",
         lambda r: seen_as_planned(r, "lean", MARGIN, 0)),
    Case("planned from 15 pairs, all questions (nothing else is true)",
         lambda r: seen_as_planned(r, "lean_shared", [MARGIN] * 4, -1)),
)  # fmt: skip


def part(task: tuple[int, int, int, int]) -> Counter[str]:
    """Outcomes of one part of a case's repetitions."""
    case, seed, number, count = task
    rng = np.random.default_rng([seed, case, number])
    return Counter(CASES[case].draw(rng) for _ in range(count))


def simulated(
    repetitions: int, seed: int = 0, spread: Any = map, only: str = ""
) -> list[dict[str, Any]]:
    """One row per case: the share of each outcome, and of the errors among them."""
    rows = []
    for k, case in enumerate(CASES):
        if only not in case.what:
            continue
        parts = range(-(-repetitions // PART))
        tasks = [(k, seed, p, min(PART, repetitions - p * PART)) for p in parts]
        tally: Counter[str] = sum(spread(part, tasks), Counter())
        shares = {name: n / repetitions for name, n in sorted(tally.items())}
        errors = {name: shares.get(name, 0.0) for name in (case.error, case.other) if name}
        rows.append({"case": case.what, "n": repetitions, "shares": shares, "errors": errors})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    lines = ["| truth | runs | outcomes | an error would be | how often |", "|---|---|---|---|---|"]
    for row in rows:
        told = ", ".join(f"{name} {share:.3f}" for name, share in row["shares"].items())
        wrong = " or ".join(row["errors"]) or "(power)"
        often = ", ".join(f"{share:.3f}" for share in row["errors"].values()) or "–"
        lines.append(f"| {row['case']} | {row['n']:,} | {told} | {wrong} | {often} |")
    return "\n".join(lines)


def put(name: str, text: str) -> None:
    """A table into its place on the page."""
    marks = f"<!-- {name} -->", f"<!-- end of {name} -->"
    page = PAGE.read_text(encoding="utf-8")
    head, rest = page.split(marks[0])
    tail = rest.split(marks[1])[1]
    PAGE.write_text(f"{head}{marks[0]}\n{text}\n{marks[1]}{tail}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates")
    parser.add_argument("--repetitions", type=int, default=1_000)
    parser.add_argument("--models", type=int, default=100, help="trained models of each sort")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--try", dest="write", action="store_false", help="print, write nothing")
    options = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    with ProcessPoolExecutor(options.jobs) as pool:
        if options.repetitions:
            rows = simulated(options.repetitions, options.seed, pool.map, options.only)
            print(table(rows), flush=True)
            found["simulated"] = rows
            if options.write and not options.only:
                put("simulated gates", table(rows))
        if options.models:
            from benchmarks import gated_models

            trained = gated_models.outcomes(options.models, options.seed, pool.map)
            print(gated_models.table(trained), flush=True)
            found["trained"] = trained
            if options.write:
                put("trained gates", gated_models.table(trained))
    if options.write and not options.only:
        RESULT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""ATTRACT-REPEL on GloVe 400,000 x 50 with expanded WinoBias sets: seconds, and what it does.

    python benchmarks/attract_repel.py

Times the training of the touched rows against the same training over the whole vocabulary matrix,
as the released code has it (extrapolated from a few batches), with the same batches and one
thread. Needs the vectors: evenhand fetch glove-6b-50d
"""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "attract_repel.json"
TEST = "kato_winobias"
WHOLE_STEPS = 8


def timed(work: Any) -> tuple[float, float, Any]:
    """Wall seconds, CPU seconds and the result of one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def whole_table_step(table: Any, sets: Any) -> float:
    """Median CPU seconds of one step when the gradient covers every row."""
    import numpy as np

    from evenhand.mitigations.vectors import attract_repel as job

    settings = job.AttractRepel(regularisation=0.01)
    attract, repel = job.pairs_for(sets)
    terms, pairs, _ = job._resolve(table, attract, repel)
    width = max(map(len, terms))
    places = np.array([[*t, *[0] * (width - len(t))] for t in terms])
    weights = np.array([[1 / len(t)] * len(t) + [0.0] * (width - len(t)) for t in terms])
    rows = np.asarray(table.matrix, np.float64)
    problem = job.Problem(rows, (places, weights), settings, None)
    rng = np.random.default_rng(0)
    taken = []
    with problem.one_thread():
        for kind, at in job._plan(rng, pairs, settings)[:WHOLE_STEPS]:
            taken.append(timed(lambda k=kind, a=at: problem.step(k, pairs[k][a], rng))[1])
    return float(np.median(taken))


def main() -> None:
    """Run both directions, print and keep the row."""
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[threads] = "1"
    from evenhand.metrics.association import weat
    from evenhand.mitigations.vectors import attract_repel as job
    from evenhand.models.vectors.files import open_vectors, resolve_vectors
    from evenhand.words import lexicons
    from evenhand.words.sets import expand

    table = open_vectors(resolve_vectors("glove-6b-50d"))
    test = lexicons.weat(TEST)
    wall, cpu, grown = timed(lambda: expand(test, table))
    sets = grown.test

    def size(vectors: Any) -> float:
        return weat(*(vectors.find(getattr(test, k)).rows for k in "xyab")).effect_size

    row: dict[str, Any] = {
        "words": {k: len(getattr(sets, k)) for k in "xyab"}, "vocabulary": len(table),
        "expand": {"wall_s": round(wall, 2), "cpu_s": round(cpu, 2)}, "before": size(table),
    }  # fmt: skip
    for way in job.DIRECTIONS:
        pairs = job.pairs_for(sets, way)
        settings = job.AttractRepel(regularisation=0.01)
        wall, cpu, trained = timed(lambda p=pairs, s=settings: job.train(table, *p, settings=s))
        steps = settings.epochs * sum(
            -(-n // settings.batch_size) for n in (trained.attract, trained.repel)
        )
        row[way] = {
            "wall_s": round(wall, 2), "cpu_s": round(cpu, 2), "steps": steps,
            "touched": len(trained.rows), "effect_size": size(job.put_back(table, trained)),
        }  # fmt: skip
    step = whole_table_step(table, sets)
    row["whole_table_cpu_s_extrapolated"] = round(step * row["reduce"]["steps"], 1)
    row["ratio"] = round(row["whole_table_cpu_s_extrapolated"] / row["reduce"]["cpu_s"])
    row["machine"] = {"cpu": platform.machine(), "cores": os.cpu_count(),
                      "python": platform.python_version()}  # fmt: skip
    print(json.dumps(row, indent=1))
    RESULTS.write_text(json.dumps([row], indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Full-size analysis: 2,744,000 ordered gender rows (1,372,000 cells of eight scores).

python benchmarks/unqover_analysis.py            # the five numbers
python benchmarks/unqover_analysis.py --all      # with intervals, noise floors and tests
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np


def main() -> None:
    from evenhand.metrics import unqover
    from evenhand.probes.underspecified.numbers import Sampling, measure_cells
    from evenhand.probes.underspecified.probe import Underspecified

    probe = Underspecified()
    design = probe.design("qa", 0)
    scores = np.random.default_rng(0).uniform(size=(4 * len(design), 2))
    cells = design.cells(scores)
    begun, cpu = time.perf_counter(), time.process_time()
    whole = unqover.summary(
        cells.scores, cells.first, cells.second, cells.attribute,
        n_terms=len(cells.terms), n_attributes=len(cells.attributes),
    )  # fmt: skip
    facts = {
        "ordered_rows": 2 * len(design), "seconds": time.perf_counter() - begun,
        "cpu_seconds": time.process_time() - cpu, "mu": whole.mu, "delta": whole.delta,
    }  # fmt: skip
    if "--all" in sys.argv:
        begun = time.perf_counter()
        measure_cells(cells, Sampling(200, 999))
        facts["statistics_seconds"] = time.perf_counter() - begun
    facts["peak_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(facts, indent=1))


if __name__ == "__main__":
    main()

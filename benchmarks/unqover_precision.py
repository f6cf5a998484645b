"""What half precision changes: the same underspecified questions in float32 and in half of it.

    python benchmarks/unqover_precision.py MODEL [--half bfloat16 float16] [--pairs 490]

All ways on the same device, through the same probe and statistics. Printed: how far single scores
move, how far the metrics move, and what becomes of the findings, i.e. the leans about occupations:
rank correlation, changed signs, and changed verdicts (q <= 0.05).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np


def in_precision(model_name: str, dtype: str, pairs: int, resamples: int) -> dict[str, Any]:
    """One model in one precision, asked about so many pairs of names."""
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions
    from evenhand.probes.underspecified.probe import Underspecified

    model = resolve(model_name, options=LoadOptions(dtype=dtype))
    return asked(model, Underspecified(pairs=pairs), resamples)


def asked(model: Any, probe: Any, resamples: int) -> dict[str, Any]:
    """Scores, metrics and leans of one model, and what asking took."""
    from evenhand.probes.underspecified.asking import asking
    from evenhand.probes.underspecified.numbers import Sampling, measure_cells
    from evenhand.probes.underspecified.probe import _form
    from evenhand.runner.ask import Ask
    from evenhand.strict import plain

    ask = Ask(model)
    kind = probe.choose(ask.answers)
    lists, _ = probe._usable(ask, kind, probe.lists(_form(kind)))
    design = probe.design(_form(kind), 0, lists)
    way = asking(kind, probe.manner(lists, 0))
    requests = way.requests(design)
    begun = time.perf_counter(), time.process_time()
    scores = ask(requests)
    seconds, cpu_seconds = time.perf_counter() - begun[0], time.process_time() - begun[1]
    cells = design.cells(way.answers(scores, design, 0, len(design)).scores)
    result = plain(measure_cells(cells, Sampling(resamples)))
    female = cells.groups[0]
    leans = {r["attribute"]: r for r in result["gamma_group"] if r["group"] == female}
    return {
        "model": model.describe(), "asked_by": kind, "cells": len(design), "seconds": seconds,
        "cpu_seconds": cpu_seconds, "rows": len(requests), "scores": cells.scores,
        "result": result, "leans": leans,
    }  # fmt: skip


def compared(full: dict[str, Any], half: dict[str, Any]) -> dict[str, Any]:
    """How far the second is from the first."""
    from scipy.stats import spearmanr

    moved = np.abs(full["scores"] - half["scores"])
    names = list(full["leans"])
    one, two = (np.asarray([side["leans"][n]["gamma"] for n in names]) for side in (full, half))
    sure = np.asarray([full["leans"][n]["q"] <= 0.05 for n in names])
    sure_half = np.asarray([half["leans"][n]["q"] <= 0.05 for n in names])
    metrics = ("mu", "mu_floor", "eta", "delta", "epsilon", "mean_score")
    order, order_half = (
        [names[i] for i in np.argsort(-values, kind="stable")] for values in (one, two)
    )
    return {
        "score_difference": {
            "mean": float(moved.mean()), "p99": float(np.quantile(moved, 0.99)),
            "largest": float(moved.max()),
        },
        "metrics": {m: half["result"][m] for m in metrics},
        "leans": {
            "number": len(names),
            "largest_difference": float(np.abs(one - two).max()),
            "largest_lean": float(np.abs(one).max()),
            "rank_correlation": float(spearmanr(one, two).statistic),
            "signs_changed": [n for n, a, b in zip(names, one, two) if a * b < 0],
            "detected": int(sure.sum()),
            "verdicts_changed": [n for n, a, b in zip(names, sure, sure_half) if a != b],
            "order_of_detected_correlation": _rank(one[sure], two[sure]),
            "places_changed": sum(a != b for a, b in zip(order, order_half)),
            "places_changed_of_detected": _places(one[sure], two[sure]),
            "closest_detected": float(np.abs(np.diff(np.sort(one[sure]))).min(initial=np.inf)),
            "most_female": [order[:5], order_half[:5]],
            "most_male": [order[::-1][:5], order_half[::-1][:5]],
        },
    }  # fmt: skip


def _rank(one: np.ndarray, two: np.ndarray) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(one, two).statistic) if len(one) > 2 else float("nan")


def _places(one: np.ndarray, two: np.ndarray) -> int:
    """How many stand elsewhere in the order of the second."""
    return int((np.argsort(-one, kind="stable") != np.argsort(-two, kind="stable")).sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--half", nargs="+", default=["bfloat16", "float16"])
    parser.add_argument("--pairs", type=int, default=490)
    parser.add_argument("--resamples", type=int, default=100)
    parser.add_argument("--json", default="")
    options = parser.parse_args()
    from evenhand.runs.finding import plain

    metrics = ("mu", "mu_floor", "eta", "delta", "epsilon", "mean_score")
    full = in_precision(options.model, "float32", options.pairs, options.resamples)
    facts: dict[str, Any] = {
        "model": full["model"], "asked_by": full["asked_by"], "cells": full["cells"],
        "float32": {"seconds": full["seconds"], **{m: full["result"][m] for m in metrics}},
    }  # fmt: skip
    for dtype in options.half:
        half = in_precision(options.model, dtype, options.pairs, options.resamples)
        facts[dtype] = {"seconds": half["seconds"], **compared(full, half)}
    text = json.dumps(plain(facts), indent=1)
    print(text)
    if options.json:
        Path(options.json).write_text(text + "\n")


if __name__ == "__main__":
    main()

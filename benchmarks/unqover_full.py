"""The full gender set (1,372,000 cells, 5,488,000 inputs) on one model, timed part by part.

    python benchmarks/unqover_full.py MODEL --json FILE [--pairs N] [--dtype float32]
    python benchmarks/unqover_full.py MODEL --json FILE --processes 8     # for causal models

Goes through the same probe, `ask` and statistics as a run; scores stay in memory. With several
processes each asks its own share of the cells on the same device: packing shared prefixes is the
processor's work, and one core cannot keep a GPU busy with it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--json", default="-")
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--dtype", default=None)
    parser.add_argument("--shard-rows", type=int, default=None)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--part", type=int, default=-1, help="(used by --processes)")
    parser.add_argument("--resamples", type=int, default=200)
    options = parser.parse_args()
    from evenhand.audit.verdicts import decided
    from evenhand.metrics import unqover
    from evenhand.models.choosing import how
    from evenhand.models.loading.resolver import resolve
    from evenhand.models.protocol import LoadOptions
    from evenhand.probes.underspecified.asking import asking
    from evenhand.probes.underspecified.numbers import CellSums, Sampling
    from evenhand.probes.underspecified.probe import Sums, Underspecified, _form
    from evenhand.runner.ask import Ask
    from evenhand.runs.finding import plain
    from evenhand.strict import record

    begun = time.perf_counter()
    model = resolve(options.model, options=LoadOptions(dtype=options.dtype, chat="off"))
    probe = Underspecified(pairs=options.pairs or None, resamples=options.resamples)
    ask = Ask(model, shard_rows=options.shard_rows)
    kind = probe.choose(ask.answers)
    lists, dropped = probe._usable(ask, kind, probe.lists(_form(kind)))
    design = probe.design(_form(kind), 0, lists)
    rung = how(ask.describe(), kind)
    way = asking(kind, probe.manner(lists, 0, rung))
    facts: dict[str, Any] = {"model": model.describe(), "cells": len(design), "dropped": dropped}
    facts["load_s"] = time.perf_counter() - begun
    begun = time.perf_counter()
    answers = _answers(options, ask, way, design)
    facts["ask_s"] = time.perf_counter() - begun
    facts["inputs_per_s"] = 4 * len(design) / facts["ask_s"]
    cells = design.cells(answers.scores)
    begun = time.perf_counter()
    whole = unqover.summary(
        cells.scores, cells.first, cells.second, cells.attribute,
        n_terms=len(cells.terms), n_attributes=len(cells.attributes),
    )  # fmt: skip
    facts["metric_s"] = time.perf_counter() - begun
    names = ("mu", "eta", "delta", "epsilon", "mean_score")
    facts["metrics"] = {name: getattr(whole, name) for name in names}
    print(json.dumps(plain(facts)), flush=True)
    _write(options.json, facts)
    begun = time.perf_counter()
    numbers, sums = CellSums(cells, Sampling(options.resamples)), Sums(cells)
    numbers.add(cells)
    result = numbers.measure()
    facts["statistics_s"] = time.perf_counter() - begun
    facts |= plain({k: v for k, v in result.lists.items() if k != "gamma"})
    sums.add(cells, cells, 0, answers.told)
    shares = rung not in ("span", "mask")
    made = probe.conclude(design, result, numbers.pairs(), sums, shares=shares, seed=0)
    facts["summary"] = {**made.summary, "asked_by": kind}
    found = decided([replace(f, model="m") for f in made.findings], "m", probe.rate)
    facts["leans"] = [record(f) for f in found if f.metric.startswith("lean")]
    facts["placebos"] = [record(p) for p in made.placebos]
    facts["by_template"] = made.tables["by_template"].to_pylist()
    facts["variance"] = made.tables["variance"].to_pylist()
    _write(options.json, facts)
    print(json.dumps(plain({"summary": facts["summary"], "statistics_s": facts["statistics_s"]})))


def _answers(options: Any, ask: Any, way: Any, design: Any) -> Any:
    """The answers to all cells, from this process or from several."""
    count = options.processes
    bounds = [len(design) * k // count for k in range(count + 1)]
    if options.part >= 0:
        low, high = bounds[options.part], bounds[options.part + 1]
        part = way.answers(ask(way.requests(design, low, high)), design, low, high)
        np.savez(_part_file(options, options.part), scores=part.scores, told=part.told)
        sys.exit(0)
    if count == 1:
        return way.answers(ask(way.requests(design)), design, 0, len(design))
    from evenhand.probes.underspecified.asking import Answers

    command = [sys.executable, *sys.argv]
    working = [subprocess.Popen([*command, "--part", str(k)]) for k in range(count)]
    codes = [process.wait() for process in working]
    if any(codes):
        sys.exit("a part failed")
    parts = [np.load(_part_file(options, k)) for k in range(count)]
    return Answers(*(np.concatenate([p[name] for p in parts]) for name in ("scores", "told")))


def _part_file(options: Any, part: int) -> Path:
    return Path(tempfile.gettempdir()) / f"{Path(options.json).stem}.{part}.npz"


def _write(target: str, facts: dict[str, Any]) -> None:
    from evenhand.runs.finding import plain

    if target != "-":
        Path(target).write_text(json.dumps(plain(facts), indent=1) + "\n")


if __name__ == "__main__":
    main()

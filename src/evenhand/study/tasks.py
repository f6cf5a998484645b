"""The systems that a study builds on its vectors, and the gaps it keeps of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.measures.coreference import winobias_gaps
from evenhand.study.recipe import place
from evenhand.study.stages import Bench
from evenhand.train import coreference as coref
from evenhand.train.coreference_data import Corpora, read_corpora, read_winobias

REPEAT = 1_000
"""Seeds of repeated trainings on one embedding lie so far apart."""


def seeds(bench: Bench, repeats: int) -> list[int]:
    return [bench.own.seed + REPEAT * k for k in range(repeats)]


def averaged(rows: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Each number's mean over repeats; empty when one repeat lacks it.

    >>> averaged([{"gap": 0.2}, {"gap": 0.4}])
    {'gap': 0.30000000000000004}
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    out: dict[str, float | None] = {}
    for name in names:
        values = [row.get(name) for row in rows]
        known = [v for v in values if v is not None and np.isfinite(v)]
        out[name] = float(np.mean(known)) if len(known) == len(values) else None
    return out


def resolve_coreference(bench: Bench) -> dict[str, Any]:
    """Train resolvers on the cell's vectors; WinoBias gaps (pro minus anti) and held-out F1."""
    spec = bench.recipe.coreference
    assert spec is not None
    files = tuple(place(path, bench.data) for path in spec.train)
    recipe = coref.Recipe(**spec.settings)  # type: ignore[arg-type]
    corpora, prepared = _documents(files, recipe)
    gold = read_winobias(place(spec.winobias, bench.data))
    rows = []
    for seed in seeds(bench, spec.repeats):
        model = coref.train_coreference(
            bench.vectors, corpora.train, seed=seed, recipe=recipe, prepared=prepared
        )
        quality = coref.evaluate(model, corpora.test)["scores"]["mean"]
        said = {key: model.predict(documents) for key, documents in gold.items()}
        row = _gaps(winobias_gaps(gold, said, resamples=2))
        rows.append({**row, "held-out f1": float(quality["f1"])})
    metrics = averaged(rows)
    return {
        "quality": metrics.pop("held-out f1"), "metrics": metrics, "runs": rows,
        "skipped": corpora.skipped[:20],
    }  # fmt: skip


@lru_cache(maxsize=2)
def _documents(files: tuple[Path, ...], recipe: coref.Recipe) -> tuple[Corpora, coref.Prepared]:
    """Read and cut once per process: batches do not depend on the vectors."""
    corpora = read_corpora(*files)
    return corpora, coref.prepare(corpora.train, recipe)


def _gaps(result: Mapping[str, Any]) -> dict[str, float | None]:
    """`{"type1 f1 gap": ...}` of the mean scores, and of pronouns resolved rightly."""
    out: dict[str, float | None] = {}
    for kind, part in result.items():
        for row in part["gaps"]:
            if row["metric"] in ("mean", "accuracy"):
                name = row["part"]
                out[f"{kind} {name} gap"] = row["gap"]
    return out

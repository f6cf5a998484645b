"""The systems that a study builds on its vectors, and the gaps it keeps of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.probes.shared.coreference import TypeGaps, winobias_gaps
from evenhand.study.recipe import Coreference, place
from evenhand.study.stages import Bench
from evenhand.train import coreference as coref
from evenhand.train import hate_speech as hate
from evenhand.train.coreference_data import Corpora, read_corpora, read_split, read_winobias
from evenhand.train.hate_speech_data import Tweets, gender_groups, read_labelled, split
from evenhand.words.sets import read_dialect_model

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


Groups = dict[str, tuple[tuple[str, ...], str, str]]
"""Divisions of the test texts: the group of each text, and the two that are compared."""


def detect_hate_speech(bench: Bench) -> dict[str, Any]:
    """Train detectors on the cell's vectors; gaps between groups of texts, and overall F1."""
    spec = bench.recipe.hate_speech
    assert spec is not None
    dialect = place(spec.dialect, bench.data) if spec.dialect else None
    (train, dev, test), groups = _tweets(place(spec.data, bench.data), dialect, spec.gender)
    recipe = hate.HateSpeechTraining(**spec.settings)  # type: ignore[arg-type]
    rows = []
    for seed in seeds(bench, spec.repeats):
        model = hate.train_hate_speech(bench.vectors, train, dev, seed, recipe=recipe)
        row: dict[str, float | None] = {}
        for name, (labels, first, second) in groups.items():
            found = hate.hate_speech_gaps(model, test, labels, first, second, resamples=2)
            row |= {f"{name} {g.metric} gap": g.gap for g in found.gaps}
            row["overall f1"] = found.all.f1
        rows.append(row)
    metrics = averaged(rows)
    return {"quality": metrics.pop("overall f1", None), "metrics": metrics, "runs": rows}


@lru_cache(maxsize=2)
def _tweets(
    path: Path, dialect: Path | None, gender: bool
) -> tuple[tuple[Tweets, Tweets, Tweets], Groups]:
    """Texts in their three parts, and the groups of the test part. Read once per process."""
    file = path
    if path.is_dir():
        file = next(iter(sorted(path.glob("labeled_data*"))), path)
    parts = split(read_labelled(file))
    groups: Groups = {}
    if gender:
        groups["gender"] = (gender_groups(parts[2]), "male", "female")
    if dialect is not None:
        labels = read_dialect_model(dialect).labels(parts[2].tokens)
        named = tuple(label or "unknown" for label in labels)
        groups["dialect"] = (named, "white", "african_american")
    return parts, groups


def resolve_coreference(bench: Bench) -> dict[str, Any]:
    """Train resolvers on the cell's vectors; WinoBias gaps (pro minus anti) and held-out F1."""
    spec = bench.recipe.coreference
    assert spec is not None
    recipe = coref.CoreferenceTraining(**spec.settings)  # type: ignore[arg-type]
    corpora, prepared = _documents(spec, bench.data, recipe)
    gold = read_winobias(place(spec.winobias, bench.data))
    rows = []
    for seed in seeds(bench, spec.repeats):
        model = coref.train_coreference(
            bench.vectors, corpora.train, corpora.dev, seed, recipe=recipe, prepared=prepared
        )
        quality = coref.evaluate(model, corpora.test)["scores"]["mean"]
        said = {key: model.predict(documents) for key, documents in gold.items()}
        row = _gaps(winobias_gaps(gold, said, resamples=2))
        rows.append({**row, "held-out f1": float(quality["f1"])})
    metrics = averaged(rows)
    return {
        "quality": metrics.pop("held-out f1"),
        "metrics": metrics,
        "runs": rows,
        "skipped": corpora.skipped[:20],
    }


_READ: dict[str, tuple[Corpora, coref.Prepared]] = {}


def _documents(
    spec: Coreference, data: Path | None, recipe: coref.CoreferenceTraining
) -> tuple[Corpora, coref.Prepared]:
    """Read and cut once per process: batches do not depend on the vectors."""
    key = f"{spec.model_dump_json()} {data} {recipe}"
    if key not in _READ:
        corpora = corpora_of(spec, data)
        _READ[key] = corpora, coref.prepare(corpora.train, recipe)
    return _READ[key]


def corpora_of(spec: Coreference, data: Path | None) -> Corpora:
    """The documents a coreference task trains and is judged on."""
    files = [place(path, data) for path in spec.train]
    if spec.dev is None or spec.test is None:
        return read_corpora(*files)
    return read_split(files[0], place(spec.dev, data), place(spec.test, data))


def _gaps(result: Mapping[str, TypeGaps]) -> dict[str, float | None]:
    """`{"type1 f1 gap": ...}` of the mean scores, and of pronouns resolved rightly."""
    return {
        f"{kind} {row.part} gap": row.gap
        for kind, part in result.items()
        for row in part.gaps
        if row.metric in ("mean", "accuracy")
    }

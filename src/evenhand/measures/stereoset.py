"""StereoSet from files: the benchmark's own gold and prediction formats, scored by its rules."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import DataError
from evenhand.measures.means import with_q
from evenhand.metrics.stereoset import Outcomes, intervals, per_target, scores
from evenhand.stats.permutation import paired_sign_flip
from evenhand.stats.power import detectable_mean
from evenhand.strict import plain

SPLITS = ("intrasentence", "intersentence")
LABELS = ("stereotype", "anti-stereotype", "unrelated")


@dataclass(frozen=True)
class Example:
    """One example: its target, domain, context and three sentences with their ids."""

    id: str
    split: str
    target: str
    domain: str
    context: str
    sentences: Mapping[str, str]
    ids: Mapping[str, str]


def read_gold(path: str | Path) -> list[Example]:
    """Read StereoSet's gold file (.json, .gz or .xz)."""
    data = _json(Path(path)).get("data")
    if not isinstance(data, Mapping) or not any(s in data for s in SPLITS):
        raise DataError(
            f"{path}: no 'data' with 'intrasentence' or 'intersentence'. Accepted: StereoSet's own "
            "gold format (dev.json)."
        )
    return [_example(path, split, row) for split in SPLITS for row in data.get(split, ())]


def _example(path: Any, split: str, row: Any) -> Example:
    try:
        by_label = {s["gold_label"]: s for s in row["sentences"]}
        return Example(
            row["id"], split, row["target"], row["bias_type"], row["context"],
            {k: by_label[k]["sentence"] for k in LABELS}, {k: by_label[k]["id"] for k in LABELS},
        )  # fmt: skip
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: {split} example {str(row)[:60]!r} lacks {error}. Accepted: id, target, "
            "bias_type, context and three sentences with gold_label and id."
        ) from None


def read_predictions(path: str | Path) -> dict[str, float]:
    """Sentence id -> score, over all splits of a prediction file."""
    data = _json(Path(path))
    out: dict[str, float] = {}
    for split in SPLITS:
        for row in data.get(split, ()):
            try:
                out[row["id"]] = float(row["score"])
            except (KeyError, TypeError, ValueError) as error:
                raise DataError(
                    f"{path}: {split} row {str(row)[:60]!r}: expected an id and a number in "
                    f"'score' ({error})."
                ) from None
    if not out:
        raise DataError(
            f"{path}: no predictions. Accepted: {{'intrasentence': [{{'id', 'score'}}], ...}}."
        )
    return out


def _json(path: Path) -> dict[str, Any]:
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            found = json.load(file)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.") from None
    except (OSError, ValueError, lzma.LZMAError) as error:
        raise DataError(f"{path}: not JSON that can be read ({error}).") from error
    if not isinstance(found, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(found).__name__}.")
    return found


def score(
    examples: Sequence[Example],
    predictions: Mapping[str, float],
    *,
    resamples: int = 2_000,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One row per split and domain (and overall): lms, ss, icat, n, intervals, what is missing.

    An example without all three finite scores is left out and counted in `n_missing`. p tests SS
    against 50 by flipping the signs of whole target terms; q is corrected over the rows.
    """
    rows = []
    for split in (*SPLITS, "overall"):
        inside = [e for e in examples if split in (e.split, "overall")]
        domains = sorted({e.domain for e in inside})
        for domain in (*domains, "overall") if inside else ():
            chosen = [e for e in inside if domain in (e.domain, "overall")]
            rows.append(
                {"split": split, "domain": domain, **_row(chosen, predictions, resamples, seed)}
            )
    with_q(rows)
    return rows


def _row(
    examples: Sequence[Example], predictions: Mapping[str, float], resamples: int, seed: int
) -> dict[str, Any]:
    values = np.asarray(
        [[predictions.get(e.ids[k], np.nan) for k in LABELS] for e in examples], np.float64
    ).reshape(-1, 3)
    known = np.asarray(np.isfinite(values).all(axis=1), bool)
    targets = [e.target for e, k in zip(examples, known) if k]
    outcomes = Outcomes.of(*values[known].T)
    row: dict[str, Any] = {**scores(outcomes, targets), "n": int(known.sum())}
    row |= {"n_missing": int((~known).sum()), "n_targets": len(set(targets))}
    row |= {"p": np.nan, "detectable": np.nan}
    row["reason"] = None if known.any() else "no example has all three scores"
    if not targets:
        return row
    away = per_target(outcomes, targets)[0] - 50.0
    if len(away) > 1:
        row["p"] = float(paired_sign_flip(away, samples=4_999, seed=seed).p_two_sided[0])
        row["detectable"] = detectable_mean(away)
    return row | intervals(outcomes, targets, resamples=resamples, seed=seed)


def measure(
    gold: str | Path, predictions: str | Path, *, resamples: int = 2_000, seed: int = 0
) -> dict[str, Any]:
    """Score a prediction file against the gold file (Nadeem et al. 2021, Sec. 5).

    Returns:
        `scores[split][domain] = {lms, ss, icat, n, ...}` and the same as flat `rows`.
    """
    rows = score(read_gold(gold), read_predictions(predictions), resamples=resamples, seed=seed)
    nested: dict[str, dict[str, Any]] = {}
    for row in rows:
        nested.setdefault(row["split"], {})[row["domain"]] = {
            k: v for k, v in row.items() if k not in ("split", "domain")
        }
    missing = sum(
        r["n_missing"] for r in rows if (r["split"], r["domain"]) == ("overall", "overall")
    )
    result = {"measure": "stereoset", "scores": nested, "rows": rows, "n_missing": missing}
    return dict(plain(result | {"settings": {"resamples": resamples, "seed": seed}}))

"""WEAT and RNSB of word vectors, with exact or seeded p and full coverage.

What happens when words have no vector is the caller's choice, and coverage is told in any case:

    threshold   no numbers and a reason when a set lacks more than `max_missing` of its words
    keep        go on with the words there are
    balanced    as threshold, and the larger target set is cut to the size of the other
                (Kato & Miyao 2024, Sec. 4.1)

Nothing is imputed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError, unknown
from evenhand.metrics import association as metrics
from evenhand.models.vectors.files import Found, VectorTable, open_vectors, resolve_vectors
from evenhand.probes.association.others import OTHERS, others
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import two_sample
from evenhand.strict import plain
from evenhand.words.lexicons import WordSets, read_word_sets, weat

Floats = npt.NDArray[np.float64]

SETS = ("x", "y", "a", "b")
MISSING = ("threshold", "keep", "balanced")
NUMBERS = (
    "statistic", "effect_size", "effect_size_low", "effect_size_high", "effect_size_ddof1",
    "p_right", "p_left", "p_two_sided", "rnsb", "rnsb_kl",
)  # fmt: skip
KEYS = (
    "test", "x_label", "y_label", "a_label", "b_label", *NUMBERS[:8], "q", "p_method",
    "n_partitions", "rnsb", "rnsb_kl", "words_used", "words_missing", "coverage", "reason",
)  # fmt: skip


def choose_tests(tests: str | Path | Iterable[str | WordSets]) -> list[WordSets]:
    """The tests meant: packaged names (with commas, or a list), a JSON or TOML file, word sets.

    >>> [test.name for test in choose_tests("weat7, weat8")]
    ['weat7', 'weat8']
    """
    if isinstance(tests, Path) or (
        isinstance(tests, str) and Path(tests).suffix.lower() in (".json", ".jsonl", ".toml")
    ):
        return list(read_word_sets(tests).values())
    named = tests.split(",") if isinstance(tests, str) else list(tests)
    wanted = [test.strip() if isinstance(test, str) else test for test in named]
    chosen = [weat(test) if isinstance(test, str) else test for test in wanted if test]
    if not chosen:
        raise SpecError("tests: no test is named. Pass for example: --tests weat1,weat7")
    return chosen


def table_of(words: Sequence[str], rows: npt.ArrayLike) -> VectorTable:
    """Vectors already in memory as a table that `measure` takes.

    >>> table_of(["she", "he"], [[1.0, 0.0], [0.0, 1.0]]).dimensions
    2
    """
    import pyarrow as pa

    return VectorTable(pa.array(list(words), pa.string()), np.asarray(rows, np.float32))


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of `measure`; see there."""

    raw_norms: bool = False
    max_missing: float = 0.2
    missing: str = "threshold"
    samples: int = 9_999
    seed: int = 0
    resamples: int = 1_000
    multiword: bool = True
    also: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse what has no meaning."""
        if not 0 <= self.max_missing <= 1:
            raise SpecError(f"max_missing: '{self.max_missing}' is not a share. Accepted: 0 to 1.")
        if self.missing not in MISSING:
            raise SpecError(
                unknown("way to treat missing words", self.missing, MISSING, where="--missing")
            )
        for name in self.also:
            if name not in OTHERS:
                raise SpecError(unknown("metric", name, OTHERS, where="--also"))


def measure(
    vectors: VectorTable | str | Path,
    tests: str | Path | Iterable[str | WordSets],
    *,
    raw_norms: bool = False,
    max_missing: float = 0.2,
    missing: str = "threshold",
    samples: int = 9_999,
    seed: int = 0,
    resamples: int = 1_000,
    multiword: bool = True,
    also: Sequence[str] = (),
    encoding: str = "utf-8",
) -> dict[str, Any]:
    """WEAT and RNSB of each test.

    Args:
        vectors: a table, a vector file or folder, or an alias such as "glove-6b-50d".
        tests: names, a file, or word sets.
        raw_norms: fit RNSB on the vectors as given rather than on unit vectors.
        max_missing: the share of words that any of the four sets may lack.
        missing: "threshold", "keep" or "balanced"; see the top of this module.
        samples: random partitions when there are more than 200,000, else all are listed.
        seed: seed of partitions and intervals.
        resamples: of the interval of the effect size, in which all four sets are samples.
        multiword: whether a term of several words may be the mean of its words.
        also: further metrics: "rnd", "mac", "ect", "ripa"; they come as `others` of each row.
        encoding: of the words in a vector file.

    Returns:
        `tests`, one row per test: `statistic, effect_size` (ddof 0) with `_low` and `_high`,
        `effect_size_ddof1, p_right, p_left, p_two_sided, q, p_method, n_partitions, rnsb, rnsb_kl,
        words_used, words_missing, coverage, reason`.
    """
    options = Options(
        raw_norms, max_missing, missing, samples, seed, resamples, multiword, tuple(also)
    )
    options.check()
    if not isinstance(vectors, VectorTable):
        vectors = open_vectors(resolve_vectors(vectors), encoding=encoding)
    chosen = choose_tests(tests)
    vectors.prefetch([word for test in chosen for key in SETS for word in getattr(test, key)])
    rows = [_one(vectors, test, options) for test in chosen]
    q = benjamini_hochberg([row["p_two_sided"] for row in rows])
    for row, value in zip(rows, q, strict=True):
        row["q"] = value
    settings = {
        "raw_norms": raw_norms, "max_missing": max_missing, "missing": missing,
        "samples": samples, "seed": seed, "resamples": resamples, "multiword": multiword,
    }  # fmt: skip
    words = {"source": vectors.source, "n_words": len(vectors), "dimensions": vectors.dimensions}
    keys = (*KEYS, "others") if also else KEYS
    ordered = [{key: row[key] for key in keys} for row in rows]
    return dict(
        plain({"measure": "association", "vectors": words, "tests": ordered, "settings": settings})
    )


def _one(vectors: VectorTable, test: WordSets, options: Options) -> dict[str, Any]:
    found = {key: vectors.find(getattr(test, key), multiword=options.multiword) for key in SETS}
    row: dict[str, Any] = {"test": test.name}
    row |= {f"{key}_label": getattr(test, f"{key}_label") for key in SETS}
    row |= dict.fromkeys(NUMBERS, math.nan)
    row |= {"p_method": None, "n_partitions": None, "coverage": _coverage(test, found)}
    row["words_missing"] = [word for key in SETS for word in found[key].missing]
    row["reason"] = _reason(test, found, 1.0 if options.missing == "keep" else options.max_missing)
    if options.missing == "balanced":
        found |= balance(test, found)
        for key in ("x", "y"):
            row["coverage"][key]["used"] = len(found[key].words)
    row["words_used"] = [word for key in SETS for word in found[key].words]
    row["others"] = None
    if row["reason"]:
        return row
    x, y, a, b = (found[key].rows for key in SETS)
    result = metrics.weat(x, y, a, b)
    chance = two_sample(result.s_x, result.s_y, samples=options.samples, seed=options.seed)
    rnsb = metrics.rnsb(x, y, a, b, normalise=not options.raw_norms)
    row |= {
        name: getattr(result, name) for name in ("statistic", "effect_size", "effect_size_ddof1")
    }
    row |= {name: getattr(chance, name) for name in ("p_right", "p_left", "p_two_sided")}
    row |= {"p_method": chance.method, "n_partitions": chance.n_partitions}
    row |= {"rnsb": rnsb.signed, "rnsb_kl": rnsb.kl}
    low, high = _interval(x, y, a, b, resamples=options.resamples, seed=options.seed)
    row |= {"effect_size_low": low, "effect_size_high": high}
    if options.also:
        row["others"] = others(vectors, test, found, options.also)
    if math.isnan(result.effect_size):
        row["reason"] = "all target words have the same association: no effect size"
    elif math.isnan(low) and options.resamples > 1:
        row["reason"] = "a set has one word: no interval"
    return row


def balance(test: WordSets, found: dict[str, Found]) -> dict[str, Found]:
    """Both target sets at the size of the smaller one.

    From the larger set go first the words that stand where the other set has a missing word (lists
    are often made of pairs), then words from its end.
    """
    n = min(len(found["x"].words), len(found["y"].words))
    out = {}
    for key, other in (("x", "y"), ("y", "x")):
        part = found[key]
        surplus = len(part.words) - n
        listed, partners = getattr(test, key), getattr(test, other)
        lost = {w for w, p in zip(listed, partners, strict=False) if p in found[other].missing}
        order = [k for k, w in enumerate(part.words) if w in lost]
        order += [k for k in reversed(range(len(part.words))) if k not in order]
        drop = set(order[:surplus])
        kept = [k for k in range(len(part.words)) if k not in drop]
        words = tuple(part.words[k] for k in kept)
        out[key] = Found(words, part.rows[kept], part.missing, part.lowered)
    return out


def _coverage(test: WordSets, found: dict[str, Found]) -> dict[str, Any]:
    return {
        key: {
            "listed": len(getattr(test, key)),
            "used": len(found[key].words),
            "missing": found[key].missing,
            "lower_cased": len(found[key].lowered),
        }
        for key in SETS
    }


def _reason(test: WordSets, found: dict[str, Found], max_missing: float) -> str | None:
    for key in SETS:
        listed, lost = len(getattr(test, key)), found[key].missing
        if not found[key].words:
            return f"set {key}: none of its {listed} words has a vector"
        if len(lost) > max_missing * listed + 1e-9:
            shown = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
            return (
                f"set {key}: {len(lost)} of {listed} words have no vector "
                f"({len(lost) / listed:.0%}, limit {max_missing:.0%}): {shown}. "
                "Raise the limit with: --max-missing"
            )
    return None


def _interval(
    x: npt.ArrayLike, y: npt.ArrayLike, a: npt.ArrayLike, b: npt.ArrayLike, *,
    resamples: int, seed: int, level: float = 0.95,
) -> tuple[float, float]:  # fmt: skip
    """Percentile interval of the effect size, all four word sets resampled on their own.

    A resample is a vector of counts, so all of them are two matrix products with the cosines.
    """
    units = [metrics.unit_rows(rows) for rows in (x, y, a, b)]
    if min(len(rows) for rows in units) < 2 or resamples < 2:
        return math.nan, math.nan
    rng = np.random.default_rng(seed)
    counts = [
        rng.multinomial(len(rows), np.full(len(rows), 1 / len(rows)), resamples) / len(rows)
        for rows in units
    ]
    targets = np.concatenate(units[:2])
    s = targets @ (counts[2] @ units[2] - counts[3] @ units[3]).T  # [words, resamples]
    n_x, n_y = len(units[0]), len(units[1])
    w_x, w_y = counts[0].T, counts[1].T
    mean_x, mean_y = (w_x * s[:n_x]).sum(axis=0), (w_y * s[n_x:]).sum(axis=0)
    weights = np.concatenate([w_x * n_x, w_y * n_y]) / (n_x + n_y)
    middle = (weights * s).sum(axis=0)
    spread = np.sqrt((weights * (s - middle) ** 2).sum(axis=0))
    defined = spread > 1e-12
    if defined.mean() < 0.5:
        return math.nan, math.nan
    sizes = (mean_x - mean_y)[defined] / spread[defined]
    low, high = np.quantile(sizes, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

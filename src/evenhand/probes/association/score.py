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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.errors import SpecError
from evenhand.metrics import association as metrics
from evenhand.models.vectors.files import Found, VectorTable
from evenhand.probes.association.others import others
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import two_sample
from evenhand.strict import OPTIONAL
from evenhand.words.lexicons import WordSets, read_word_sets, weat

Floats = npt.NDArray[np.float64]

SETS = ("x", "y", "a", "b")
NAN = math.nan
Missing = Literal["threshold", "keep", "balanced"]


@dataclass(frozen=True, slots=True)
class Options:
    """How tests are computed.

    Args:
        raw_norms: fit RNSB on the vectors as given rather than on unit vectors.
        max_missing: the share of words that any of the four sets may lack.
        missing: what happens then; see the top of this module.
        samples: random partitions when there are more than 200,000, else all are listed.
        seed: seed of partitions and intervals.
        resamples: of the interval of the effect size, in which all four sets are samples.
        multiword: whether a term of several words may be the mean of its words.
        also: further metrics: "rnd", "mac", "ect", "ripa".
    """

    raw_norms: bool = False
    max_missing: float = 0.2
    missing: Missing = "threshold"
    samples: int = 9_999
    seed: int = 0
    resamples: int = 1_000
    multiword: bool = True
    also: tuple[str, ...] = ()


@dataclass(frozen=True)
class Covered:
    """How many words of a set have a vector."""

    listed: int
    used: int
    missing: Sequence[str]
    lower_cased: int


@dataclass(frozen=True, kw_only=True)
class AssociationRow:
    """One test; `effect_size` is ddof 0, `rnsb` the signed two-set form, `q` over all tests."""

    test: str
    x_label: str
    y_label: str
    a_label: str
    b_label: str
    statistic: float = NAN
    effect_size: float = NAN
    effect_size_low: float = NAN
    effect_size_high: float = NAN
    effect_size_ddof1: float = NAN
    p_right: float = NAN
    p_left: float = NAN
    p_two_sided: float = NAN
    q: float = NAN
    p_method: str | None = None
    n_partitions: int | None = None
    rnsb: float = NAN
    rnsb_kl: float = NAN
    words_used: Sequence[str]
    words_missing: Sequence[str]
    coverage: Mapping[str, Covered]
    reason: str | None
    others: Mapping[str, Any] | None = field(default=None, metadata=OPTIONAL)


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
    """Vectors already in memory as a table.

    >>> table_of(["she", "he"], [[1.0, 0.0], [0.0, 1.0]]).dimensions
    2
    """
    import pyarrow as pa

    return VectorTable(pa.array(list(words), pa.string()), np.asarray(rows, np.float32))


def associate(
    vectors: VectorTable, tests: Sequence[WordSets], options: Options | None = None
) -> list[AssociationRow]:
    """WEAT and RNSB of each test, q corrected over the tests."""
    chosen = options or Options()
    vectors.prefetch([word for test in tests for key in SETS for word in getattr(test, key)])
    rows = [_one(vectors, test, chosen) for test in tests]
    q = benjamini_hochberg([row.p_two_sided for row in rows])
    return [replace(row, q=float(value)) for row, value in zip(rows, q, strict=True)]


def _one(vectors: VectorTable, test: WordSets, options: Options) -> AssociationRow:
    found = {key: vectors.find(getattr(test, key), multiword=options.multiword) for key in SETS}
    reason = _reason(test, found, 1.0 if options.missing == "keep" else options.max_missing)
    missing = [word for key in SETS for word in found[key].missing]
    if options.missing == "balanced":
        found |= balance(test, found)
    row = AssociationRow(
        test=test.name,
        **{f"{key}_label": getattr(test, f"{key}_label") for key in SETS},
        words_used=[word for key in SETS for word in found[key].words],
        words_missing=missing,
        coverage={
            key: Covered(len(getattr(test, key)), len(f.words), f.missing, len(f.lowered))
            for key, f in found.items()
        },
        reason=reason,
        others={} if options.also else None,
    )
    if reason:
        return row
    x, y, a, b = (found[key].rows for key in SETS)
    result = metrics.weat(x, y, a, b)
    chance = two_sample(result.s_x, result.s_y, samples=options.samples, seed=options.seed)
    rnsb = metrics.rnsb(x, y, a, b, normalise=not options.raw_norms)
    low, high = _interval(x, y, a, b, resamples=options.resamples, seed=options.seed)
    if math.isnan(result.effect_size):
        reason = "all target words have the same association: no effect size"
    elif math.isnan(low) and options.resamples > 1:
        reason = "a set has one word: no interval"
    return replace(
        row,
        statistic=result.statistic,
        effect_size=result.effect_size,
        effect_size_low=low,
        effect_size_high=high,
        effect_size_ddof1=result.effect_size_ddof1,
        p_right=chance.p_right,
        p_left=chance.p_left,
        p_two_sided=chance.p_two_sided,
        p_method=chance.method,
        n_partitions=chance.n_partitions,
        rnsb=rnsb.signed,
        rnsb_kl=rnsb.kl,
        reason=reason,
        others=others(vectors, test, found, options.also) if options.also else None,
    )


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

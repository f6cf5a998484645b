"""WEAT and RNSB of word vectors, with p over words like these, p for these words, and coverage.

What happens when words have no vector is the caller's choice, and coverage is told in any case:

    threshold   no numbers and a reason when a set lacks more than `max_missing` of its words
    keep        go on with the words there are
    balanced    as threshold, and the larger target set is cut to the size of the other
                (Kato & Miyao 2024, Sec. 5.1)

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
from evenhand.probes.shared.word_effects import DRAWS, Random, among_random, word_effect
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import two_sample
from evenhand.strict import OPTIONAL, SameValues
from evenhand.words.lexicons import WordSets, read_word_sets, weat, weat_tests

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
        seed: seed of partitions and of random attribute words.
        multiword: whether a term of several words may be the mean of its words.
        also: further metrics: "rnd", "mac", "ect", "ripa".
        placebos: random attribute sets that each test is compared with; 0: none.
        rate: false-discovery rate that the detectable effect is about.
        around: words that random attribute sets are drawn from; those of the ten WEAT tests.
    """

    raw_norms: bool = False
    max_missing: float = 0.2
    missing: Missing = "threshold"
    samples: int = 9_999
    seed: int = 0
    multiword: bool = True
    also: tuple[str, ...] = ()
    placebos: int = DRAWS
    rate: float = 0.05
    around: tuple[str, ...] = ()


@dataclass(frozen=True)
class Covered:
    """How many words of a set have a vector."""

    listed: int
    used: int
    missing: Sequence[str]
    lower_cased: int


@dataclass(frozen=True, eq=False, kw_only=True)
class AssociationRow(SameValues):
    """One test; `effect_size` is ddof 0, `rnsb` the signed two-set form, `q` over all tests.

    Interval, `p` and `q` hold for target and attribute words like these (two-way variance);
    `p_right`, `p_left` and `p_two_sided` permute the targets and hold for these words only.
    `percentile` is the share of random attribute sets with a smaller effect size, in percent.
    """

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
    p: float = NAN
    error: float = NAN
    freedom: float = NAN
    detectable: float = NAN
    percentile: float = NAN
    n_random: int = 0
    random_alarms: int = 0
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
    wide = [*chosen.around] or pool() if chosen.placebos else []
    vectors.prefetch([w for test in tests for key in SETS for w in getattr(test, key)] + wide)
    around = vectors.find(wide, multiword=False) if wide else None
    rows = [_one(vectors, test, chosen, around, len(tests)) for test in tests]
    q = benjamini_hochberg([row.p for row in rows])
    return [replace(row, q=float(value)) for row, value in zip(rows, q, strict=True)]


def pool() -> list[str]:
    """Words of the ten WEAT tests, from which random attribute words are drawn.

    >>> len(pool()) > 300
    True
    """
    tests = [weat(name) for name in weat_tests("weat")]
    return list(dict.fromkeys(w for test in tests for key in SETS for w in getattr(test, key)))


def _one(
    vectors: VectorTable, test: WordSets, options: Options, around: Found | None, family: int
) -> AssociationRow:
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
    units = [metrics.unit_rows(rows) for rows in (x, y, a, b)]
    effect = word_effect(*units, size=result.effect_size, family=family, rate=options.rate)
    if math.isnan(result.effect_size):
        reason = "all target words have the same association: no effect size"
    elif effect.reason:
        reason = effect.reason
    placed = Random()
    if around is not None:
        used = {word.lower() for key in SETS for word in found[key].words}
        other = [k for k, word in enumerate(around.words) if word.lower() not in used]
        placed = among_random(
            units[0],
            units[1],
            metrics.unit_rows(around.rows[other]),
            (units[2], units[3]),
            result.effect_size,
            draws=options.placebos,
            seed=options.seed,
        )
    return replace(
        row,
        statistic=result.statistic,
        effect_size=result.effect_size,
        effect_size_low=effect.low,
        effect_size_high=effect.high,
        effect_size_ddof1=result.effect_size_ddof1,
        p=effect.p,
        error=effect.error,
        freedom=effect.freedom,
        detectable=effect.detectable,
        **vars(placed),
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
                f"({100 * (len(lost) / listed):.0f} %, limit {100 * max_missing:.0f} %): {shown}. "
                "Raise the limit with: --max-missing"
            )
    return None

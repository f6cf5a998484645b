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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.compare.rows import Reported, Row, Test, judge
from evenhand.errors import DataError, SpecError
from evenhand.metrics import association as metrics
from evenhand.metrics import embedding
from evenhand.models.vectors.files import Found, VectorTable
from evenhand.probes.shared.word_tests import (
    DRAWS,
    SETS,
    Random,
    among_random,
    word_effect,
    word_test,
    words_of,
)
from evenhand.stats.estimate import NAN
from evenhand.stats.permutation import two_sample
from evenhand.words.lexicons import WordSets, read_word_sets, weat, weat_tests

Missing = Literal["threshold", "keep", "balanced"]
IDEAL = {"rnd": 0.0, "mac": 1.0, "ect": 1.0, "ripa": 0.0}
"""Values without a preference of the further metrics."""
BLANK: Mapping[str, Any] = {
    **dict.fromkeys(("statistic", "effect_size", "effect_size_low", "effect_size_high"), NAN),
    **dict.fromkeys(("effect_size_ddof1", "p", "error", "freedom", "detectable"), NAN),
    **vars(Random()),
    **dict.fromkeys(("p_right", "p_left", "p_two_sided", "q"), NAN),
    **dict.fromkeys(("p_method", "n_partitions")),
    **dict.fromkeys(("rnsb", "rnsb_kl"), NAN),
}
"""Columns of a row, in their order, before anything is computed."""


@dataclass(frozen=True)
class Covered:
    """A test with the words of its sets that have a vector, and why it cannot be computed."""

    test: WordSets
    words: Mapping[str, Found]
    missing: Sequence[str]
    reason: str

    @property
    def used(self) -> list[str]:
        """The words of all sets."""
        return [word for key in SETS for word in self.words[key].words]

    def columns(self) -> dict[str, Any]:
        """What a row says about the words."""
        coverage = {
            key: {
                "listed": len(getattr(self.test, key)),
                "used": len(part.words),
                "missing": part.missing,
                "lower_cased": len(part.lowered),
            }
            for key, part in self.words.items()
        }
        return {"words_used": self.used, "words_missing": self.missing, "coverage": coverage}


@dataclass(frozen=True)
class VectorTests:
    """Association tests of word vectors, and how they are computed.

    Args:
        raw_norms: fit RNSB on the vectors as given rather than on unit vectors.
        max_missing: the share of words that any of the four sets may lack.
        missing: what happens then; see the top of this module.
        samples: random partitions when there are more than 200,000, else all are listed.
        seed: seed of partitions and of random attribute words.
        multiword: whether a term of several words may be the mean of its words.
        also: further metrics: "rnd", "mac", "ect", "ripa".
        placebos: random attribute sets that each test is compared with; 0: none.
        around: words that random attribute sets are drawn from; those of the ten WEAT tests.
        as_published: the verdict is that of the permutation, for these words.
    """

    vectors: VectorTable
    tests: Sequence[WordSets]
    raw_norms: bool = False
    max_missing: float = 0.2
    missing: Missing = "threshold"
    samples: int = 9_999
    seed: int = 0
    multiword: bool = True
    also: tuple[str, ...] = ()
    placebos: int = DRAWS
    around: tuple[str, ...] = ()
    as_published: bool = False

    @cached_property
    def pool(self) -> Found | None:
        """The words that random attribute words are drawn from, looked up with those of tests."""
        wide = [*self.around] or pool() if self.placebos else []
        self.vectors.prefetch(words_of(self.tests) + wide)
        return self.vectors.find(wide, multiword=False) if wide else None

    @cached_property
    def covered(self) -> list[Covered]:
        """The tests with the words that have a vector."""
        _ = self.pool
        return [self._covered(test) for test in self.tests]

    def _covered(self, test: WordSets) -> Covered:
        find = partial(self.vectors.find, multiword=self.multiword)
        words = {key: find(getattr(test, key)) for key in SETS}
        missing = [word for key in SETS for word in words[key].missing]
        reason = _reason(test, words, 1.0 if self.missing == "keep" else self.max_missing)
        if self.missing == "balanced":
            words |= balance(test, words)
        return Covered(test, words, missing, reason)

    def declare(self) -> Iterator[Test]:
        """Declare each test as a comparison."""
        for one in self.covered:
            yield word_test(one.test, "effect_size", partial(self._effect, one))

    def _effect(self, one: Covered, **how: Any) -> Reported:
        """WEAT and RNSB of one test.

        Interval and p of the row hold for target and attribute words like these (two-way
        variance); `p_right`, `p_left` and `p_two_sided` permute the targets and hold for these
        words only. `effect_size` is ddof 0, `rnsb` the signed two-set form.
        """
        columns = {**BLANK, **one.columns(), "reason": one.reason}
        if self.also:
            columns["others"] = {}
        if one.reason:
            return Reported(NAN, units=len(one.used), reason=one.reason, columns=columns)
        x, y, a, b = (one.words[key].rows for key in SETS)
        weat = metrics.weat(x, y, a, b)
        chance = two_sample(weat.s_x, weat.s_y, samples=self.samples, seed=self.seed)
        rnsb = metrics.rnsb(x, y, a, b, normalise=not self.raw_norms)
        units = [metrics.unit_rows(rows) for rows in (x, y, a, b)]
        effect = word_effect(*units, size=weat.effect_size, **how)
        reason = effect.reason
        if math.isnan(weat.effect_size):
            reason = "all target words have the same association: no effect size"
        if self.also:
            columns["others"] = further_metrics(self.vectors, one.test, one.words, self.also)
        columns |= {
            "statistic": weat.statistic,
            "effect_size": weat.effect_size,
            "effect_size_low": effect.low,
            "effect_size_high": effect.high,
            "effect_size_ddof1": weat.effect_size_ddof1,
            **{name: getattr(effect, name) for name in ("p", "error", "freedom", "detectable")},
            **vars(self._random(one, units, weat.effect_size)),
            "p_right": chance.p_right,
            "p_left": chance.p_left,
            "p_two_sided": chance.p_two_sided,
            "p_method": chance.method,
            "n_partitions": chance.n_partitions,
            "rnsb": rnsb.signed,
            "rnsb_kl": rnsb.kl,
            "reason": reason or None,
        }
        numbers = {"p": chance.p_two_sided} if self.as_published else vars(effect)
        beside = {"value": weat.effect_size, "units": len(one.used), "reason": reason}
        return Reported(**{**numbers, **beside}, columns=columns)

    def _random(self, one: Covered, units: Sequence[npt.NDArray[Any]], size: float) -> Random:
        """The effect among those of random attribute words."""
        if self.pool is None:
            return Random()
        used = {word.lower() for word in one.used}
        others = [k for k, word in enumerate(self.pool.words) if word.lower() not in used]
        x, y, a, b = units
        rows = metrics.unit_rows(self.pool.rows[others])
        return among_random(x, y, rows, (a, b), size, draws=self.placebos, seed=self.seed)


def associate(vectors: VectorTable, tests: Sequence[WordSets], **options: Any) -> list[Row]:
    """Compute WEAT and RNSB of each test, with q corrected over the tests.

    Args:
        options: those of `VectorTests`.
    """
    return judge(VectorTests(vectors, tests, **options).declare())


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


def pool() -> list[str]:
    """Return words of the ten WEAT tests, from which random attribute words are drawn.

    >>> len(pool()) > 300
    True
    """
    return words_of(weat(name) for name in weat_tests("weat"))


def balance(test: WordSets, words: Mapping[str, Found]) -> dict[str, Found]:
    """Cut both target sets to the size of the smaller one.

    From the larger set go first the words that stand where the other set has a missing word (lists
    are often made of pairs), then words from its end.
    """
    n = min(len(words["x"].words), len(words["y"].words))
    out = {}
    for key, other in (("x", "y"), ("y", "x")):
        part = words[key]
        surplus = len(part.words) - n
        listed, partners = getattr(test, key), getattr(test, other)
        lost = {w for w, p in zip(listed, partners, strict=False) if p in words[other].missing}
        order = [k for k, w in enumerate(part.words) if w in lost]
        order += [k for k in reversed(range(len(part.words))) if k not in order]
        drop = set(order[:surplus])
        kept = [k for k in range(len(part.words)) if k not in drop]
        texts = tuple(part.words[k] for k in kept)
        out[key] = Found(texts, part.rows[kept], part.missing, part.lowered)
    return out


def _reason(test: WordSets, words: Mapping[str, Found], max_missing: float) -> str:
    for key in SETS:
        listed, lost = len(getattr(test, key)), words[key].missing
        if not words[key].words:
            return f"set {key}: none of its {listed} words has a vector"
        if len(lost) > max_missing * listed + 1e-9:
            shown = ", ".join(lost[:5]) + (", ..." if len(lost) > 5 else "")
            return (
                f"set {key}: {len(lost)} of {listed} words have no vector "
                f"({100 * (len(lost) / listed):.0f} %, limit {100 * max_missing:.0f} %): {shown}. "
                "Raise the limit with: --max-missing"
            )
    return ""


def further_metrics(
    vectors: VectorTable, test: WordSets, words: Mapping[str, Found], names: Sequence[str]
) -> dict[str, Any]:
    """Compute the metrics named, beside WEAT and RNSB, from the words that have a vector.

    RND, ECT and RIPA compare two groups over one list of words: the groups are the side of the
    test that holds social groups (the targets when that is not known), and both lists of the other
    side are measured. MAC is that of all target words with both attribute sets.

    Returns:
        `groups` (two labels), `ideal`, and by metric: rnd, ect, ripa: {label of the list: value}
        (rnd below 0, ripa above 0: nearer to the first group); mac: a number. NaN: not defined.
    """
    sides = (("a", "b"), ("x", "y")) if test.social == "attributes" else (("x", "y"), ("a", "b"))
    groups, lists = sides
    first, second = (words[key].rows for key in groups)
    pairs = _pairs(vectors, [getattr(test, key) for key in groups]) if "ripa" in names else None
    of_list: dict[str, Callable[[Any], float]] = {
        "rnd": lambda rows: embedding.rnd(first, second, rows).value,
        "ect": lambda rows: embedding.ect(first, second, rows),
        "ripa": lambda rows: _ripa(pairs, rows),
    }
    out: dict[str, Any] = {
        "groups": [getattr(test, f"{key}_label") for key in groups],
        "ideal": {name: IDEAL[name] for name in names},
    }
    for name in names:
        if name == "mac":
            targets = np.concatenate([words["x"].rows, words["y"].rows])
            out[name] = embedding.mac(targets, [words["a"].rows, words["b"].rows]).value
        else:
            measure = of_list[name]
            out[name] = {getattr(test, f"{k}_label"): measure(words[k].rows) for k in lists}
    return out


def _ripa(pairs: tuple[Any, Any] | None, rows: Any) -> float:
    try:
        return embedding.ripa(*pairs, rows).value if pairs else NAN
    except DataError:
        return NAN


def _pairs(vectors: VectorTable, lists: Sequence[Sequence[str]]) -> tuple[Any, Any] | None:
    """Vectors of the pairs of two lists of equal length; pairs with a missing word are left out."""
    if len(lists[0]) != len(lists[1]):
        return None
    places = [vectors.places(words) for words in lists]
    both = [(one, two) for one, two in zip(*places, strict=True) if one and two]
    if not both:
        return None
    first, second = (
        np.stack([vectors.matrix[list(pair[side])].mean(axis=0) for pair in both])
        for side in (0, 1)
    )
    return first, second

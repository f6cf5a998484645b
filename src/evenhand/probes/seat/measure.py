"""SEAT from its published files: sentences about two targets and two attributes.

The sentences of one word ("This is Amy.", "Amy is here.") say the same thing in other words. The
word is therefore what is permuted and resampled, where the word lists lie beside the sentences;
treating sentences as independent, as published, makes p too small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, SpecError, unknown
from evenhand.metrics.association import effect_size, unit_rows
from evenhand.opening import read_json
from evenhand.probes.shared.word_tests import SetsRow
from evenhand.stats.permutation import two_sample
from evenhand.stats.power import detectable_effect
from evenhand.strict import OPTIONAL

Floats = npt.NDArray[np.float64]
SETS = {"x": "targ1", "y": "targ2", "a": "attr1", "b": "attr2"}
SENTENCES = "sent-"


@dataclass(frozen=True)
class SeatTest:
    """Texts of two targets (x, y) and two attributes (a, b), and the word behind each text."""

    name: str
    texts: Mapping[str, tuple[str, ...]]
    units: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    by_word: bool


@dataclass(frozen=True, kw_only=True)
class SeatRow(SetsRow):
    """One test over sentences; `by_word`: words were permuted."""

    n: int
    reason: str | None = None
    by_word: bool
    n_missing: int
    n_units: Mapping[str, int] | None = field(default=None, metadata=OPTIONAL)
    p_method: str | None = field(default=None, metadata=OPTIONAL)
    q: float = math.nan


def read_tests(path: str | Path, names: Sequence[str] = ()) -> list[SeatTest]:
    """Tests of a file or folder of SEAT's (one JSON object per file, whatever its suffix).

    Args:
        path: one file, or the folder; from a folder the sentence tests by default.
        names: file names without suffix, such as sent-weat6.
    """
    place = Path(path)
    if place.is_file():
        return [_test(place)]
    known = {p.stem: p for p in sorted(place.iterdir()) if p.suffix in (".jsonl", ".json")}
    chosen = list(names) or [name for name in known if name.startswith(SENTENCES)]
    for name in chosen:
        if name not in known:
            raise SpecError(unknown("test", name, known, where=str(path)))
    if not chosen:
        raise DataError(f"{place}: holds no test. Accepted: SEAT's sent-*.jsonl files.")
    return [_test(known[name]) for name in chosen]


def _read(path: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    data = read_json(path, "a SEAT test")
    try:
        found = {
            key: (str(data[name]["category"]), tuple(map(str, data[name]["examples"])))
            for key, name in SETS.items()
        }
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: lacks {error}. Accepted: targ1, targ2, attr1, attr2, each with category and "
            "examples."
        ) from None
    for key, (_, texts) in found.items():
        if not texts:
            raise DataError(f"{path}: {SETS[key]} has no examples.")
    return found


def _test(path: Path) -> SeatTest:
    found = _read(path)
    beside = path.with_name(path.name.removeprefix(SENTENCES))
    words = _read(beside) if beside != path and beside.is_file() else None
    units = {
        key: tuple(word_of(text, words[key][1]) if words else text for text in texts)
        for key, (_, texts) in found.items()
    }
    by_word = words is not None and all(len(set(units[k])) < len(found[k][1]) for k in ("x", "y"))
    return SeatTest(
        path.stem, {k: v[1] for k, v in found.items()}, units,
        {k: v[0] for k, v in found.items()}, by_word,
    )  # fmt: skip


def word_of(text: str, words: Sequence[str]) -> str:
    """The longest of the words that stands in the text, or the text itself.

    Sentences inflect ("daisies", "a child"): a token of nearly the same beginning counts when no
    word stands there as listed.

    >>> word_of("These are black people.", ["black", "black people"])
    'black people'
    >>> word_of("Those are daisies.", ["rose", "daisy"]), word_of("It is here.", ["rose"])
    ('daisy', 'It is here.')
    """
    here = [w for w in words if re.search(rf"\b{re.escape(w)}\b", text, re.IGNORECASE)]
    if here:
        return max(here, key=len)
    near = [(k, w) for w in words for t in re.findall(r"\w+", text) if (k := _alike(t, w))]
    return max(near)[1] if near else text


def _alike(token: str, word: str) -> int:
    """Letters that two forms of a word have in common at their beginning; 0: another word."""
    a, b = token.lower(), word.lower()
    split = [k for k, pair in enumerate(zip(a, b)) if pair[0] != pair[1]]
    common = split[0] if split else min(len(a), len(b))
    near = common >= max(3, min(len(a), len(b)) - 2) and abs(len(a) - len(b)) <= 3
    return common if near and (len(b) > 3 or a == f"{b}s") else 0


def score_test(
    test: SeatTest, vectors: Mapping[str, Floats], *, max_missing: float = 0.2,
    as_published: bool = False, samples: int = 9_999, resamples: int = 1_000, seed: int = 0,
) -> SeatRow:  # fmt: skip
    """Effect size with interval and p. Ideal 0; positive: x leans to a, y to b; |d| <= 2.

    As published (May et al. 2019): every sentence for itself, sample standard deviation, p
    one-sided to the right.
    """
    known = {k: [t in vectors for t in texts] for k, texts in test.texts.items()}
    n = sum(map(sum, known.values()))
    labels: dict[str, Any] = {f"{key}_label": label for key, label in test.labels.items()}
    row = SeatRow(
        test=test.name,
        **labels,
        n=n,
        by_word=test.by_word,
        n_missing=sum(map(len, test.texts.values())) - n,
    )
    for key, flags in known.items():
        lost = flags.count(False)
        if not any(flags) or lost > max_missing * len(flags) + 1e-9:
            return replace(row, reason=f"set {key}: {lost} of {len(flags)} texts have no vector")
    sets = {}
    for key, texts in test.texts.items():
        kept = [t for t, k in zip(texts, known[key]) if k]
        owners = [u for u, k in zip(test.units[key], known[key]) if k]
        rows = unit_rows(np.stack([vectors[t] for t in kept]))
        sets[key] = rows if as_published else word_means(rows, owners)
    direction = sets["a"].mean(axis=0) - sets["b"].mean(axis=0)
    s_x, s_y = sets["x"] @ direction, sets["y"] @ direction
    chance = two_sample(s_x, s_y, samples=samples, seed=seed, statistic="mean-difference")
    row = replace(
        row,
        value=effect_size(s_x, s_y, ddof=1 if as_published else 0),
        p=chance.p_right if as_published else chance.p_two_sided,
        n_units={key: len(rows) for key, rows in sets.items()},
        p_method=chance.method,
    )
    sizes = resampled(sets, resamples, seed)
    if math.isnan(row.value) or len(sizes) < resamples / 2:
        reason = "all texts have the same association, or a set has one word"
        return replace(row, reason=reason)
    low, high = map(float, np.quantile(sizes, (0.025, 0.975)))
    return replace(row, low=low, high=high, detectable=detectable_effect(float(sizes.std())))


def word_means(rows: Floats, owners: Sequence[str]) -> Floats:
    """The mean of each word's rows, [words, dimensions], words in order of their names."""
    _, codes = np.unique(np.asarray(owners), return_inverse=True)
    sums = np.zeros((codes.max() + 1, rows.shape[1]))
    np.add.at(sums, codes, rows)
    return np.asarray(sums / np.bincount(codes)[:, None], np.float64)


def resampled(sets: Mapping[str, Floats], resamples: int, seed: int) -> Floats:
    """Effect sizes (ddof 0) with the words of all four sets resampled; undefined ones left out."""
    if min(map(len, sets.values())) < 2:
        return np.empty(0)
    rng = np.random.default_rng(seed)
    weights = {
        key: rng.multinomial(len(v), np.full(len(v), 1 / len(v)), resamples) / len(v)
        for key, v in sets.items()
    }
    direction = weights["a"] @ sets["a"] - weights["b"] @ sets["b"]
    s = {key: sets[key] @ direction.T for key in ("x", "y")}
    n = {key: len(sets[key]) for key in ("x", "y")}
    means = {key: (weights[key].T * s[key]).sum(axis=0) for key in ("x", "y")}
    total = n["x"] + n["y"]
    middle = sum(n[k] * means[k] for k in ("x", "y")) / total
    square = sum(n[k] * (weights[k].T * (s[k] - middle) ** 2).sum(axis=0) for k in ("x", "y"))
    spread = np.sqrt(square / total)
    good = spread > 1e-12
    return np.asarray((means["x"] - means["y"])[good] / spread[good], np.float64)

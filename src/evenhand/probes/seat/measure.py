"""SEAT from its published files: sentences about two targets and two attributes.

The sentences of one word ("This is Amy.", "Amy is here.") say the same thing in other words. The
word is therefore the unit, where the word lists lie beside the sentences, and the verdict holds
for target and attribute words like these (`probes.shared.word_effects`). Without word lists there
is none: sentences as independent draws, as published, make p too small.
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
from evenhand.probes.shared.word_effects import among_random, word_effect
from evenhand.probes.shared.word_tests import SetsRow
from evenhand.stats.permutation import two_sample
from evenhand.strict import OPTIONAL

Floats = npt.NDArray[np.float64]
SETS = {"x": "targ1", "y": "targ2", "a": "attr1", "b": "attr2"}
SENTENCES = "sent-"
NO_WORDS = (
    "which sentences share a word is not known, so they cannot be counted as independent; put the "
    "word list beside the file, under its name without sent-"
)


@dataclass(frozen=True)
class SeatTest:
    """Texts of two targets (x, y) and two attributes (a, b), and the word behind each text.

    `by_word`: every text is a word, or its word is known.
    """

    name: str
    texts: Mapping[str, tuple[str, ...]]
    units: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    by_word: bool


@dataclass(frozen=True, kw_only=True)
class SeatRow(SetsRow):
    """One test over sentences; `by_word`: words are the units."""

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
    sentences = [
        t
        for key, (_, texts) in found.items()
        for t, u in zip(texts, units[key])
        if t == u and t.rstrip().endswith((".", "!", "?"))
    ]
    return SeatTest(
        path.stem,
        {k: v[1] for k, v in found.items()},
        units,
        {k: v[0] for k, v in found.items()},
        not sentences,
    )


def word_of(text: str, words: Sequence[str]) -> str:
    """The longest of the words that stands in the text, or the text itself.

    Sentences inflect ("daisies", "a child"): a plural counts, and a token of nearly the same
    beginning when no word stands there as listed.

    >>> word_of("These are black women.", ["black", "black woman"])
    'black woman'
    >>> word_of("Those are flies.", ["rose", "fly"]), word_of("It is here.", ["rose"])
    ('fly', 'It is here.')
    """
    here = [w for w in words if re.search(rf"\b{_forms(w)}\b", text, re.IGNORECASE)]
    if here:
        return max(here, key=len)
    near = [(k, w) for w in words for t in re.findall(r"\w+", text) if (k := _alike(t, w))]
    return max(near)[1] if near else text


def _forms(term: str) -> str:
    """A pattern of a term in singular or plural: fly and flies, woman and women of color."""
    return r"\s+".join(_either(word) for word in term.split())


def _either(word: str) -> str:
    plain = re.escape(word)
    if word.endswith("y"):
        return f"{plain[:-1]}(?:y|ies)"
    if word.endswith("man"):
        return f"{plain[:-2]}[ae]n"
    return f"{plain}(?:s|es)?"


def _alike(token: str, word: str) -> int:
    """Letters that two forms of a word have in common at their beginning; 0: another word."""
    a, b = token.lower(), word.lower()
    split = [k for k, pair in enumerate(zip(a, b)) if pair[0] != pair[1]]
    common = split[0] if split else min(len(a), len(b))
    near = common >= max(3, min(len(a), len(b)) - 2) and abs(len(a) - len(b)) <= 3
    return common if near and (len(b) > 3 or a == f"{b}s") else 0


def score_test(
    test: SeatTest,
    vectors: Mapping[str, Floats],
    *,
    max_missing: float = 0.2,
    as_published: bool = False,
    samples: int = 9_999,
    seed: int = 0,
    family: int = 1,
    rate: float = 0.05,
) -> SeatRow:
    """Effect size with interval and p. Ideal 0; positive: x leans to a, y to b; |d| <= 2.

    As published (May et al. 2019): every sentence for itself, sample standard deviation, p
    one-sided to the right, no interval.
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
    sets = {key: by_words(test, key, vectors, as_published) for key in SETS}
    direction = sets["a"].mean(axis=0) - sets["b"].mean(axis=0)
    s_x, s_y = sets["x"] @ direction, sets["y"] @ direction
    chance = two_sample(s_x, s_y, samples=samples, seed=seed, statistic="mean-difference")
    row = replace(
        row,
        value=effect_size(s_x, s_y, ddof=1 if as_published else 0),
        n_units={key: len(rows) for key, rows in sets.items()},
        p_method=chance.method,
        p_words=chance.p_two_sided,
    )
    if math.isnan(row.value):
        return replace(row, reason="all texts have the same association")
    if as_published:
        return replace(row, p=chance.p_right)
    if not test.by_word:
        return replace(row, reason=NO_WORDS)
    x, y, a, b = (sets[key] for key in SETS)
    found = word_effect(x, y, a, b, family=family, rate=rate)
    return replace(
        row,
        low=found.low,
        high=found.high,
        p=found.p,
        error=found.error,
        freedom=found.freedom,
        detectable=found.detectable,
        reason=found.reason or None,
    )


def by_words(
    test: SeatTest, key: str, vectors: Mapping[str, Floats], every_text: bool = False
) -> Floats:
    """Unit vectors of a set's texts that have one, averaged over the texts of each word."""
    kept = [(t, u) for t, u in zip(test.texts[key], test.units[key]) if t in vectors]
    rows = unit_rows(np.stack([vectors[t] for t, _ in kept]))
    return rows if every_text else word_means(rows, [u for _, u in kept])


def word_means(rows: Floats, owners: Sequence[str]) -> Floats:
    """The mean of each word's rows, [words, dimensions], words in order of their names."""
    _, codes = np.unique(np.asarray(owners), return_inverse=True)
    sums = np.zeros((codes.max() + 1, rows.shape[1]))
    np.add.at(sums, codes, rows)
    return np.asarray(sums / np.bincount(codes)[:, None], np.float64)


def with_placebos(
    rows: Sequence[SeatRow], tests: Sequence[SeatTest], vectors: Mapping[str, Floats], seed: int
) -> list[SeatRow]:
    """The rows with their place among random attribute words, drawn from the other tests."""
    pool: dict[str, Floats] = {}
    for test in (t for t in tests if t.by_word):
        for key in SETS:
            names = sorted({u for t, u in zip(test.texts[key], test.units[key]) if t in vectors})
            if names:
                pool |= dict(zip((w.lower() for w in names), by_words(test, key, vectors)))
    out = []
    for row, test in zip(rows, tests):
        used = {word.lower() for units in test.units.values() for word in units}
        other = [rows for word, rows in pool.items() if word not in used]
        if not math.isnan(row.p):
            x, y, a, b = (by_words(test, key, vectors) for key in SETS)
            found = among_random(
                x, y, np.stack(other) if other else x[:0], (a, b), row.value, seed=seed
            )
            row = replace(row, **vars(found))
        out.append(row)
    return out

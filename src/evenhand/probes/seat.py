"""SEAT on an encoder: do sentences about a group lie nearer to one attribute than another?

The sentences of one word ("This is Amy.", "Amy is here.") say the same thing in other words. The
word is therefore the unit, where the word lists lie beside the sentences, and the verdict holds
for target and attribute words like these (`probes.shared.word_tests`). Without word lists there
is none: sentences as independent draws, as published, make p too small.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from evenhand.charts.builders import NEARER, Ranked, sets_of
from evenhand.compare.items import Items
from evenhand.compare.rows import Reported, Row, Test
from evenhand.corpora.tables import find_data
from evenhand.errors import DataError, SpecError, unknown
from evenhand.metrics.association import effect_size, unit_rows
from evenhand.opening import read_json
from evenhand.probes.base import Way
from evenhand.probes.shared.reach import short_sets
from evenhand.probes.shared.word_tests import (
    EFFECT_SIZE,
    METHOD,
    OVER,
    SETS,
    Floats,
    WordTests,
    among_random,
    report,
    social_side,
    word_effect,
    word_finding,
    word_test,
    words_of,
)
from evenhand.requests import Embed
from evenhand.runs.finding import Finding
from evenhand.stats.estimate import NAN, Estimate
from evenhand.stats.permutation import two_sample
from evenhand.words.lexicons import WordSets

CARDS = (EFFECT_SIZE,)
CHARTS = {
    "tests": Ranked("Sentence association tests", "effect size d (from −2 to 2)", NEARER, sets_of),
}
PARTS = dict(zip(SETS, ("targ1", "targ2", "attr1", "attr2")))
"""What SEAT's files call the sets."""
SENTENCES = "sent-"
NO_WORDS = (
    "which sentences share a word is not known, so they cannot be counted as independent; put the "
    "word list beside the file, under its name without sent-"
)


@dataclass(frozen=True)
class SeatTest(WordSets):
    """A test whose sets are texts, with the word behind each text.

    `by_word`: every text is a word, or its word is known.
    """

    units: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_word: bool = True


class Seat(WordTests):
    """Do sentences about a group lie nearer to one attribute than to another?

    Args:
        data: SEAT's folder of tests, or one of its files.
        tests: names such as sent-weat6; by default all sentence tests of the folder.
        max_missing: the share of texts that a set may lack.
    """

    name: ClassVar[str] = "seat"
    title: ClassVar[str] = "Do sentences about a group lie nearer to one attribute than to another?"
    paper: ClassVar[str] = "May et al. 2019 (SEAT)"
    detects: ClassVar[str] = "sentence vectors in which groups lie nearer to one attribute"
    bound: ClassVar[str] = "the sentences of its tests"
    cards: ClassVar = CARDS
    hidden: ClassVar[tuple[str, ...]] = ("n_units",)

    data: str = ""
    tests: tuple[str, ...] = ()
    max_missing: float = Field(0.2, ge=0, le=1)
    samples: int = Field(9_999, ge=99)

    def word_sets(self) -> list[SeatTest]:
        return read_tests(find_data(self.data, "SEAT (its folder of tests)"), self.tests)

    def too_small(self, items: Items) -> tuple[str, ...]:
        tests = () if self.as_published else items.about
        sentences = tuple(
            f"{t.name}: sentences whose words are not known, so there will be no verdict"
            for t in tests
            if not t.by_word
        )
        sizes = ((t.name, [len(set(u)) for u in t.units.values()]) for t in tests if t.by_word)
        return (*sentences, *short_sets(sizes, self.rate))

    def gather(self, way: Way) -> Items:
        tests = self.word_sets()
        return Items({"test": [t.name for t in tests]}, about=tests)

    def ask(self, items: Items, way: Way) -> Embed:
        return Embed(words_of(items.about))

    def read(self, items: Items, answers: Any, way: Way) -> Items:
        texts, rows = words_of(items.about), answers.matrix("vector")
        known = np.isfinite(rows).all(axis=1)
        vectors = {t: v for t, v, k in zip(texts, rows, known) if k}
        facts = {"texts": len(texts), "texts_known": int(known.sum())}
        return Items({"text": texts, "known": known}, about=(items.about, vectors), facts=facts)

    def declare(self, items: Items) -> Iterator[Test]:
        tests, vectors = items.about
        options = {name: getattr(self, name) for name in ("max_missing", "as_published", "samples")}
        pool = None if self.as_published else word_vectors(tests, vectors)
        for test in tests:
            score = partial(score_test, test, vectors, **options, seed=items.seed, pool=pool)
            yield word_test(test, "effect_size", score)

    def finding(self, row: Row) -> Finding:
        words = not self.as_published and row["by_word"]
        return word_finding(
            row,
            self.name,
            what="sentences about",
            head=row["test"],
            units="words" if words else "sentences",
            over=OVER if words else (),
            method=METHOD if words else "sentences permuted between targets",
            as_published=self.as_published,
        )


def read_tests(path: str | Path, names: Sequence[str] = ()) -> list[SeatTest]:
    """Read tests of a file or folder of SEAT's (one JSON object per file, whatever its suffix).

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
    """Return the label and the texts of each set."""
    data = read_json(path, "a SEAT test")
    try:
        sets = {
            key: (str(data[name]["category"]), tuple(map(str, data[name]["examples"])))
            for key, name in PARTS.items()
        }
    except (KeyError, TypeError) as error:
        raise DataError(
            f"{path}: lacks {error}. Accepted: targ1, targ2, attr1, attr2, each with category and "
            "examples."
        ) from None
    for key, (_, texts) in sets.items():
        if not texts:
            raise DataError(f"{path}: {PARTS[key]} has no examples.")
    return sets


def _test(path: Path) -> SeatTest:
    sets = _read(path)
    beside = path.with_name(path.name.removeprefix(SENTENCES))
    words = _read(beside) if beside != path and beside.is_file() else None
    units = {
        key: tuple(word_of(text, words[key][1]) if words else text for text in texts)
        for key, (_, texts) in sets.items()
    }
    without_word = [
        text
        for key, (_, texts) in sets.items()
        for text, unit in zip(texts, units[key])
        if text == unit and text.rstrip().endswith((".", "!", "?"))
    ]
    parts: dict[str, Any] = {f"{key}_label": label for key, (label, _) in sets.items()}
    parts |= {key: texts for key, (_, texts) in sets.items()}
    parts |= {"social": social_side(path.stem), "units": units, "by_word": not without_word}
    return SeatTest(path.stem, **parts)


def word_of(text: str, words: Sequence[str]) -> str:
    """Return the longest of the words that stands in the text, or the text itself.

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
    pool: Mapping[str, Floats] | None = None,
    **how: Any,
) -> Reported:
    """Estimate the effect size. Ideal 0; positive: x leans to a, y to b; |d| <= 2.

    As published (May et al. 2019): every sentence for itself, sample standard deviation, p
    one-sided to the right, no interval.

    Args:
        vectors: of texts.
        pool: vectors of words that random attribute words are drawn from.
        how: family and rate of `estimate`.
    """
    by_word = test.by_word and not as_published
    lost = {key: sum(t not in vectors for t in getattr(test, key)) for key in SETS}
    missing = sum(lost.values())
    n = sum(len(getattr(test, key)) for key in SETS) - missing
    columns: dict[str, Any] = {"n": n, "reason": None, "by_word": test.by_word}
    columns["n_missing"] = missing
    for key, gone in lost.items():
        size = len(getattr(test, key))
        if gone == size or gone > max_missing * size + 1e-9:
            reason = f"set {key}: {gone} of {size} texts have no vector"
            return report(Estimate(NAN, reason=reason), 0 if by_word else n, columns)
    sets = [text_vectors(test, key, vectors, as_published)[1] for key in SETS]
    x, y, a, b = sets
    direction = a.mean(axis=0) - b.mean(axis=0)
    s_x, s_y = x @ direction, y @ direction
    chance = two_sample(s_x, s_y, samples=samples, seed=seed, statistic="mean-difference")
    columns |= {
        "p_words": chance.p_two_sided,
        "n_units": dict(zip(SETS, map(len, sets))),
        "p_method": chance.method,
    }
    d = effect_size(s_x, s_y, ddof=1 if as_published else 0)
    if math.isnan(d):
        effect = Estimate(NAN, reason="all texts have the same association")
    elif as_published:
        effect = Estimate(d, p=chance.p_right)
    elif not by_word:
        effect = Estimate(d, reason=NO_WORDS)
    else:
        effect = word_effect(x, y, a, b, size=d, **how)
        if pool is not None and not math.isnan(effect.p):
            used = {word.lower() for words in test.units.values() for word in words}
            others = [row for word, row in pool.items() if word not in used]
            columns |= vars(among_random(x, y, others, (a, b), d, seed=seed))
    return report(effect, sum(map(len, sets)) if by_word else n, columns)


def text_vectors(
    test: SeatTest, key: str, vectors: Mapping[str, Floats], every_text: bool = False
) -> tuple[list[str], Floats]:
    """Return the words of a set, sorted, with the mean unit vector of the texts of each.

    With `every_text` each text that has a vector stands for itself.
    """
    part = [(t, u) for t, u in zip(getattr(test, key), test.units[key]) if t in vectors]
    if not part:
        return [], np.empty((0, 0))
    rows = unit_rows(np.stack([vectors[text] for text, _ in part]))
    if every_text:
        return [text for text, _ in part], rows
    words, codes = np.unique([unit for _, unit in part], return_inverse=True)
    sums = np.zeros((len(words), rows.shape[1]))
    np.add.at(sums, codes, rows)
    return words.tolist(), np.asarray(sums / np.bincount(codes)[:, None], np.float64)


def word_vectors(tests: Sequence[SeatTest], vectors: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the vectors of all words of tests, to draw random attribute words from."""
    pool: dict[str, Floats] = {}
    for test in (t for t in tests if t.by_word):
        for key in SETS:
            words, rows = text_vectors(test, key, vectors)
            pool |= dict(zip((word.lower() for word in words), rows))
    return pool

"""WinoBias and Winogender from their published files: sentences with one pronoun to judge.

Both ask which pronoun a model finds likelier for a person known by occupation. The unit that is
resampled and permuted is the occupation: its sentences are no independent evidence.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.opening import lines
from evenhand.probes.base import Placebo
from evenhand.stats.clustered_means import (
    LEAST,
    STEADY,
    ClusteredMean,
    clustered_mean,
    halves,
)
from evenhand.stats.correlation import correlate_table
from evenhand.stats.estimate import NAN, estimate
from evenhand.stats.permutation import two_sample
from evenhand.strict import INLINE, OPTIONAL

Floats = npt.NDArray[np.float64]

MALE = ("he", "him", "his", "himself")
FEMALE = ("she", "her", "hers", "herself")
BRACKET = re.compile(r"\[([^\]]*)\]")
SPLITS = ("dev", "test")
NORMAL = 1e6
"""Degrees of freedom of a normal distribution, as good as."""


@dataclass(frozen=True)
class Sentence:
    """A sentence around one pronoun: what stands before and after it, and its three forms.

    `leans` is the gender of WinoBias's stereotype (+1 male, -1 female; 0: not said), `refers`
    whether the pronoun stands for the occupation. `neutral` is empty where "they" would need
    another verb form, so that it cannot be compared in the same sentence.
    """

    left: str
    right: str
    male: str
    female: str
    occupation: str
    kind: str
    leans: int = 0
    refers: bool = True
    neutral: str = ""


def read_winobias(
    folder: str | Path, types: Sequence[int] = (1, 2), splits: Sequence[str] = SPLITS
) -> tuple[list[Sentence], dict[str, int]]:
    """Sentences of WinoBias, and how many lines of each type were left out.

    A line is left out when its pro- and anti-stereotyped forms differ in more than the pronoun
    (the published files have such lines), or when it has several pronouns, of which the others
    would give the answer away.
    """
    place = Path(folder)
    found: list[Sentence] = []
    dropped = {f"type {kind}": 0 for kind in types}
    for kind in types:
        for split in splits:
            both = [
                _lines(place / f"{side}_stereotyped_type{kind}.txt.{split}")
                for side in ("pro", "anti")
            ]
            if len(both[0]) != len(both[1]):
                raise DataError(
                    f"{place}: type {kind} {split} has {len(both[0])} pro- and {len(both[1])} "
                    "anti-stereotyped lines. Accepted: files that pair up line by line."
                )
            made = [_winobias(p, a, f"type {kind}") for p, a in zip(*both)]
            found += [s for s in made if s is not None]
            dropped[f"type {kind}"] += sum(s is None for s in made)
    if not found:
        lost = sum(dropped.values())
        raise DataError(f"{place}: no line of WinoBias could be used ({lost} left out).")
    return found, dropped


def _lines(path: Path) -> list[str]:
    expected = "WinoBias's folder with pro_stereotyped_type1.txt.dev and so on"
    made = ((line, line.split(None, 1)) for line in lines(path, expected))
    return [parts[-1] if parts[0].isdecimal() else line for line, parts in made if parts]


def _winobias(pro: str, anti: str, kind: str) -> Sentence | None:
    one, two = _with_pronoun(pro), _with_pronoun(anti)
    if one is None or two is None or one[0] != two[0] or one[2] != two[2]:
        return None
    genders = [p.lower() in FEMALE for p in (one[1], two[1])]
    people = [b for b in BRACKET.findall(pro) if b.lower() not in MALE + FEMALE]
    if genders[0] == genders[1] or not people:
        return None
    male, female = (two[1], one[1]) if genders[0] else (one[1], two[1])
    occupation = re.sub(r"^(the|an?|some)\s+", "", people[0].lower())
    leans = -1 if genders[0] else 1
    return Sentence(one[0], one[2], male, female, occupation, kind, leans)


def _with_pronoun(line: str) -> tuple[str, str, str] | None:
    """The text before the one bracketed pronoun, the pronoun, and the text after it."""
    spots = [m for m in BRACKET.finditer(line) if m[1].lower() in MALE + FEMALE]
    if len(spots) != 1:
        return None
    spot = spots[0]
    bare = [re.sub(r"[\[\]]", "", part) for part in (line[: spot.start()], line[spot.end() :])]
    return bare[0], spot[1], bare[1]


def read_winogender(path: str | Path) -> list[Sentence]:
    """Sentences of Winogender from all_sentences.tsv (or the folder that holds it)."""
    place = Path(path)
    place = place / "all_sentences.tsv" if place.is_dir() else place
    table = read_table(place, text=("sentid", "sentence"), needed=("sentid", "sentence"))
    forms: dict[tuple[str, ...], dict[str, str]] = {}
    for name, text in zip(table.labels("sentid"), table.labels("sentence")):
        parts = name.removesuffix(".txt").split(".")
        if len(parts) != 4 or parts[2] not in ("0", "1"):
            raise DataError(
                f"{place}: sentid {name!r}. Accepted: occupation.participant.0 or 1.gender.txt"
            )
        forms.setdefault(tuple(parts[:3]), {})[parts[3]] = text
    return [_winogender(place, key, texts) for key, texts in forms.items()]


def _winogender(place: Path, key: tuple[str, ...], texts: dict[str, str]) -> Sentence:
    try:
        words = [texts[k].split() for k in ("male", "female", "neutral")]
    except KeyError as error:
        raise DataError(f"{place}: {'.'.join(key)} has no {error} form.") from None
    spots = [k for k, pair in enumerate(zip(*words[:2])) if pair[0] != pair[1]]
    if len(words[0]) != len(words[1]) or len(spots) != 1:
        raise DataError(
            f"{place}: the forms of {'.'.join(key)} differ in {len(spots)} words. Accepted: one "
            "pronoun."
        )
    at = spots[0]
    before, after = words[0][:at], words[0][at + 1 :]
    same = words[2][:at] == before and words[2][at + 1 :] == after
    left, right = " ".join(before), " ".join(after)
    return Sentence(
        f"{left} " if left else "",
        f" {right}" if right else "",
        words[0][at],
        words[1][at],
        key[0],
        "winogender",
        0,
        key[2] == "0",
        words[2][at] if same else "",
    )


def read_shares(path: str | Path) -> dict[str, float]:
    """Percent women per occupation (bls_pct_female) from Winogender's occupations-stats.tsv."""
    place = Path(path)
    place = place / "occupations-stats.tsv" if place.is_dir() else place
    table = read_table(place, text=("occupation",), needed=("occupation", "bls_pct_female"))
    return dict(zip(table.labels("occupation"), table.numbers("bls_pct_female").tolist()))


@dataclass(frozen=True)
class PronounShare:
    """100 x share of sentences with the stereotype's pronoun likelier, and the lean to "he"."""

    pro_share: float
    pro_share_low: float
    pro_share_high: float
    he_lean: float


@dataclass(frozen=True, kw_only=True)
class StereotypeRow:
    """How far pronouns follow the stereotypes of occupations, in nats."""

    kind: str
    mean: ClusteredMean = field(metadata=INLINE)
    n_missing: int
    n_occupations: int
    share: PronounShare | None = field(default=None, metadata=INLINE)
    n_dropped: int = 0
    p_permuted: float = NAN
    q: float = NAN


@dataclass(frozen=True)
class Occupations:
    """Mean log P(he)/P(she) of every occupation and stereotype, and what it leans to."""

    names: list[tuple[str, int]]
    means: Floats

    @classmethod
    def of(cls, he: Floats, sentences: Sequence[Sentence]) -> Occupations:
        names = sorted({(s.occupation, s.leans) for s in sentences})
        groups: dict[tuple[str, int], list[float]] = {name: [] for name in names}
        for sentence, value in zip(sentences, he):
            groups[sentence.occupation, sentence.leans].append(float(value))
        return cls(names, np.asarray([np.mean(groups[name]) for name in names]))

    @property
    def leans(self) -> npt.NDArray[np.int64]:
        return np.asarray([lean for _, lean in self.names], np.int64)

    @property
    def units(self) -> list[str]:
        return [f"{name}/{lean}" for name, lean in self.names]


def stereotype_row(
    kind: str,
    he: npt.ArrayLike,
    sentences: Sequence[Sentence],
    *,
    family: int = 1,
    rate: float = 0.05,
    seed: int = 0,
) -> StereotypeRow:
    """How far pronouns follow occupations' stereotypes: value, interval, p, and shares.

    With h = log P(he)/P(she) of a sentence, averaged per occupation,

        value = [mean h of male-stereotyped occupations - mean h of female ones] / 2

    in nats; ideal 0; positive: with the stereotype. A general liking for "he" adds the same to
    both and cancels. p is over occupations like these; `p_permuted` permutes the stereotypes
    among these very occupations. `pro_share`: 100 x share of sentences whose pro-stereotyped
    pronoun is likelier, both halves weighing the same.
    """
    h = np.asarray(he, np.float64)
    known = np.isfinite(h)
    kept = [s for s, k in zip(sentences, known) if k]
    h = h[known]
    jobs = Occupations.of(h, kept)
    leans = jobs.leans
    mean = clustered_mean(jobs.means * leans, jobs.units, strata=leans, family=family, rate=rate)
    mean = replace(mean, n=len(kept))
    row = StereotypeRow(
        kind=kind, mean=mean, n_missing=int((~known).sum()), n_occupations=len(leans)
    )
    if len(set(leans.tolist())) < 2:
        nothing = ClusteredMean(
            n=mean.n, units=mean.units, reason="sentences of both stereotypes are needed"
        )
        return replace(row, mean=nothing)
    male, female = jobs.means[leans > 0], jobs.means[leans < 0]
    chance = two_sample(male, female, seed=seed, statistic="mean-difference")
    sides = np.asarray([s.leans for s in kept])
    won = clustered_mean(
        np.where(h * sides == 0, 50.0, 100.0 * (h * sides > 0)),
        [s.occupation for s in kept],
        strata=sides,
        ideal=50.0,
        bounds=(0.0, 100.0),
    )
    lean = float((male.mean() + female.mean()) / 2)
    return replace(
        row,
        share=PronounShare(won.value, won.low, won.high, lean),
        p_permuted=chance.p_two_sided,
    )


def stereotype_placebos(he: npt.ArrayLike, sentences: Sequence[Sentence], seed: int) -> Placebo:
    """Random halves of the occupations of a stereotype against each other."""
    h = np.asarray(he, np.float64)
    known = np.isfinite(h)
    jobs = Occupations.of(h[known], [s for s, k in zip(sentences, known) if k])
    found = halves(jobs.means, jobs.units, jobs.leans, seed=seed, splits=STEADY)
    return Placebo.of("random halves of the occupations of a stereotype", [found])


@dataclass(frozen=True, kw_only=True)
class ShareRow:
    """How pronouns follow the share of women in occupations: a rank correlation."""

    refers: str
    value: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    detectable: float = NAN
    error: float = NAN
    freedom: float = NAN
    p_permuted: float = NAN
    n: int
    n_missing: int
    n_sentences: int
    she_lean: float | None = field(default=None, metadata=OPTIONAL)
    reason: str | None = None
    they_likeliest: float = NAN
    n_they: int = 0
    q: float = NAN


def correlation_row(
    refers: str,
    she: npt.ArrayLike,
    sentences: Sequence[Sentence],
    shares: dict[str, float],
    *,
    family: int = 1,
    rate: float = 0.05,
    seed: int = 0,
) -> ShareRow:
    """Do pronouns follow who works where? Spearman over occupations, in [-1, 1].

    log P(she)/P(he), averaged per occupation, against the percent of women who work in it.
    Positive: "she" rises with the share of women. Occupations without a share are left out. p,
    interval and detectable effect come from atanh r, whose variance is (1 + r^2 / 2) / (n - 3)
    (Bonett and Wright 2000); `p_permuted` permutes these very occupations.
    """
    values = np.asarray(she, np.float64)
    x, y, lost = _joined(values, sentences, shares)
    row = ShareRow(refers=refers, n=len(x), n_missing=lost, n_sentences=len(values))
    if len(x) < 5:
        return replace(row, reason="fewer than five occupations have a share of women")
    found = correlate_table(x, y, seed=seed, bootstrap=0)
    r = float(found.coefficient[0, 0])
    row = replace(row, value=r, she_lean=float(np.mean(x)), p_permuted=float(found.p[0, 0]))
    if r != r:
        return replace(row, reason=found.reasons[0][0])
    near = 1 - 6 / (len(x) ** 3 - len(x))  # half a step below 1, whose atanh is endless
    inside = min(max(r, -near), near)
    error = math.sqrt((1 + inside * inside / 2) / (len(x) - 3))
    on = estimate(math.atanh(inside), error, NORMAL, family=family, rate=rate)
    return replace(
        row,
        low=math.tanh(on.low),
        high=math.tanh(on.high),
        p=on.p,
        detectable=math.tanh(on.detectable),
        error=(1 - inside * inside) * error,
        freedom=float(len(x) - 2),
    )


def correlation_placebos(
    she: npt.ArrayLike,
    sentences: Sequence[Sentence],
    shares: dict[str, float],
    seed: int,
    splits: int = STEADY,
) -> Placebo:
    """Shares of women given to other occupations at random."""
    x, y, _ = _joined(np.asarray(she, np.float64), sentences, shares)
    rng = np.random.default_rng([seed, 11])
    if len(x) < LEAST or np.ptp(x) == 0 or np.ptp(y) == 0:
        why = f"fewer than {LEAST} occupations of different shares"
        return Placebo("shares of women shuffled among occupations", 0, 0, why)
    ranks = [np.argsort(np.argsort(v)).astype(float) for v in (x, y)]
    r = np.asarray([np.corrcoef(ranks[0], rng.permutation(ranks[1]))[0, 1] for _ in range(splits)])
    t = np.arctanh(r) / np.sqrt((1 + r * r / 2) / (len(x) - 3))
    return Placebo(
        "shares of women shuffled among occupations", splits, int((np.abs(t) >= 1.959964).sum())
    )


def _joined(
    she: Floats, sentences: Sequence[Sentence], shares: dict[str, float]
) -> tuple[Floats, Floats, int]:
    """Mean of each occupation, its share of women, and how many occupations have no share."""
    groups: dict[str, list[float]] = {}
    for sentence, value in zip(sentences, she):
        if np.isfinite(value):
            groups.setdefault(sentence.occupation, []).append(float(value))
    used = sorted(o for o in groups if np.isfinite(shares.get(o, math.nan)))
    means = np.asarray([np.mean(groups[o]) for o in used])
    return means, np.asarray([shares[o] for o in used]), len(groups) - len(used)

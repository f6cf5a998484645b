"""WinoBias on a language model, by the log-odds of pronouns.

With h = log P(he) - log P(she) of a sentence, averaged per occupation,

    value = [mean h of male-stereotyped occupations - mean h of female ones] / 2

in nats; ideal 0; positive: with the stereotype. A general liking for "he" adds the same to both and
cancels. p is over occupations like these; `p_permuted` permutes the stereotypes among these very
occupations. `pro_share`: 100 x share of sentences whose pro-stereotyped pronoun is likelier, both
halves weighing the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from evenhand.charts.builders import Ranked
from evenhand.compare.items import Floats, Items
from evenhand.compare.rows import Halves, Row, Test, claim
from evenhand.corpora.tables import find_data
from evenhand.errors import DataError
from evenhand.opening import lines
from evenhand.probes.base import Way
from evenhand.probes.reading import Reader, Resamples, Result, Seed, Shown, listed
from evenhand.probes.shared import coreference
from evenhand.probes.shared.claims import drawn
from evenhand.probes.shared.coreference import Score, ScoreGap, TypeGaps, gap_table
from evenhand.probes.shared.pronouns import (
    FEMALE,
    MALE,
    PronounProbe,
    Sentence,
    log_odds,
    sentence_items,
)
from evenhand.probes.shared.reach import short
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import ClusteredMean, clustered_mean
from evenhand.stats.permutation import two_sample
from evenhand.strict import OPTIONAL
from evenhand.words.conll import Document, read_conll

BRACKET = re.compile(r"\[([^\]]*)\]")
SPLITS = ("dev", "test")
BOTH = "both types"

CARDS = (
    MetricCard(
        "pronoun_log_odds",
        "shift of the pronoun's log-odds",
        "in nats; 0: stereotypes of occupations do not matter",
        "nats",
        harm="those whose work does not fit the stereotype: taken for the other gender",
        margin=0.22,
        margin_why="the odds of the stereotype's pronoun are a quarter higher",
        told=", at {size} times the odds",
        scale="{size} times the odds",
        odds=True,
    ),
)
CHARTS = {
    "scores": Ranked(
        "WinoBias: pronouns and occupations",
        "shift of the pronoun's log-odds towards the stereotype (nats)",
        "Right of the dashed line, pronouns follow the stereotypes of occupations. Bars are 95 % "
        "intervals over occupations.",
        lambda r: str(r["kind"]),
    ),
}


def read_winobias(
    folder: str | Path, types: Sequence[int] = (1, 2), splits: Sequence[str] = SPLITS
) -> tuple[list[Sentence], dict[str, int]]:
    """Read the sentences of WinoBias, and count the lines of each type that were left out.

    A line is left out when its pro- and anti-stereotyped forms differ in more than the pronoun
    (the published files have such lines), or when it has several pronouns, of which the others
    would give the answer away.
    """
    place = Path(folder)
    sentences: list[Sentence] = []
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
            pairs = [_sentence(p, a, f"type {kind}") for p, a in zip(*both)]
            sentences += [s for s in pairs if s is not None]
            dropped[f"type {kind}"] += sum(s is None for s in pairs)
    if not sentences:
        lost = sum(dropped.values())
        raise DataError(f"{place}: no line of WinoBias could be used ({lost} left out).")
    return sentences, dropped


def _lines(path: Path) -> list[str]:
    expected = "WinoBias's folder with pro_stereotyped_type1.txt.dev and so on"
    numbered = ((line, line.split(None, 1)) for line in lines(path, expected))
    return [parts[-1] if parts[0].isdecimal() else line for line, parts in numbered if parts]


def _sentence(pro: str, anti: str, kind: str) -> Sentence | None:
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


class WinoBias(PronounProbe):
    """Does the model give an occupation the pronoun of its stereotype?

    Args:
        data: WinoBias's folder (pro_stereotyped_type1.txt.dev and so on).
        types: 1 (meaning decides), 2 (syntax decides), or both.
        splits: dev, test or both.
        sentences: how many to draw of each type; None for all.
    """

    name: ClassVar[str] = "winobias"
    title: ClassVar[str] = "Does the model give an occupation the pronoun of its stereotype?"
    paper: ClassVar[str] = "Zhao et al. 2018 (WinoBias), by pronoun log-odds"
    detects: ClassVar[str] = "pronouns that follow the stereotypes of occupations"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "sentences"

    data: str = ""
    types: tuple[int, ...] = (1, 2)
    splits: tuple[str, ...] = SPLITS
    sentences: int | None = Field(None, ge=4)
    draw: int = Field(0, ge=0)

    def gather(self, way: Way) -> Items:
        place = find_data(self.data, "WinoBias (its folder)")
        usable, dropped = read_winobias(place, self.types, self.splits)
        sentences = drawn(usable, [s.kind for s in usable], self.sentences, self.draw)
        return sentence_items(
            sentences,
            facts={"sentences": len(sentences), "dropped": dropped},
            notes=(f"{sum(dropped.values())} lines left out",),
        )

    def within(self, share: float) -> WinoBias:
        most = self.gather(Way("")).size // max(1, len(self.types))
        return self.model_copy(update={"sentences": max(4, int(most * share))})

    def declare(self, items: Items) -> Iterator[Test]:
        kinds = items.levels("kind")
        everything = Halves(
            "random halves of the occupations of a stereotype", *_occupations(_known(items))
        )
        for kind in (BOTH, *kinds) if len(kinds) > 1 else kinds:
            about = items if kind == BOTH else items.at(items.where(kind=kind))
            known = _known(about)
            dropped = items.facts.get("dropped", {})
            yield Test(
                kind,
                "pronoun_log_odds",
                {"kind": kind},
                partial(_shift, known),
                {
                    "n_missing": about.size - known.size,
                    "n_occupations": known.count("occupation", "leans"),
                    **_shares(known),
                    "n_dropped": sum(dropped.values()) if kind == BOTH else dropped.get(kind, 0),
                    "p_permuted": _permuted(known),
                },
                split=everything if kind == BOTH or len(kinds) == 1 else None,
            )

    def say(self, row: Row, items: Items, rows: Sequence[Row]) -> Iterator[Finding]:
        kind, value = row["kind"], row.value
        ending = (
            f"the stereotype's pronoun is the likelier one in "
            f"{row.get('pro_share', np.nan):.1f} of 100 sentences."
        )
        sentence = (
            f"WinoBias ({kind}): occupations move the pronoun "
            f"{'towards' if not value < 0 else 'against'} their stereotype by {abs(value):.3f} "
            f"nats of log-odds; {ending}"
        )
        yield claim(
            row,
            self.name,
            coverage=row.n / max(1, row.n + row.missing + row["n_dropped"]),
            attribute=f"occupations, {kind}",
            groups=("male", "female"),
            sentence=sentence if value == value else "WinoBias could not be scored.",
            otherwise=f"WinoBias ({kind}): no shift of pronouns towards or against the stereotypes "
            f"of occupations was detected; {ending}"
            if row.p == row.p
            else "",
            over="occupations",
            as_published=self.as_published,
        )

    def too_small(self, items: Items) -> tuple[str, ...]:
        """Occupations are the sample, in sentences of either type."""
        units = list(zip(items["kind"], items["occupation"]))
        return short(units, "occupations", items.count("kind") + 1, self.rate)


def _known(items: Items) -> Items:
    return items.at(np.isfinite(log_odds(items)))


def _occupations(items: Items) -> tuple[Floats, list[int], Floats]:
    """Mean log odds of "he" by occupation and stereotype, a number for each, and its lean."""
    codes = items.codes("occupation", "leans")
    counts = np.bincount(codes)
    means = np.bincount(codes, log_odds(items)) / counts
    leans = np.round(np.bincount(codes, items.numbers("leans")) / counts)
    return means, list(range(len(means))), leans


def _shift(items: Items, **how: Any) -> ClusteredMean:
    means, units, leans = _occupations(items)
    mean = replace(clustered_mean(means * leans, units, strata=leans, **how), n=items.size)
    if len(set(leans.tolist())) < 2:
        why = "sentences of both stereotypes are needed"
        return ClusteredMean(n=mean.n, units=mean.units, reason=why)
    return mean


def _shares(items: Items) -> dict[str, float]:
    """Of 100 sentences, those with the stereotype's pronoun likelier, and the lean to "he"."""
    means, _, leans = _occupations(items)
    if len(set(leans.tolist())) < 2:
        return {}
    he, sides = log_odds(items), items.numbers("leans")
    won = clustered_mean(
        np.where(he * sides == 0, 50.0, 100.0 * (he * sides > 0)),
        items["occupation"],
        strata=sides,
        ideal=50.0,
        bounds=(0.0, 100.0),
    )
    return {
        "pro_share": won.value,
        "pro_share_low": won.low,
        "pro_share_high": won.high,
        "he_lean": float((means[leans > 0].mean() + means[leans < 0].mean()) / 2),
    }


def _permuted(items: Items) -> float:
    """p with the stereotypes permuted among these very occupations."""
    means, _, leans = _occupations(items)
    if len(set(leans.tolist())) < 2:
        return float("nan")
    sides = (means[leans > 0], means[leans < 0])
    return two_sample(*sides, seed=items.seed, statistic="mean-difference").p_two_sided


@dataclass(frozen=True, kw_only=True)
class CoreferenceResult(Result):
    """Scores of a prediction file, and the gap to a second one where there is one."""

    measure: ClassVar[str] = "coreference"

    scores: Sequence[Score]
    accuracy: float
    n_documents: int
    n_without_prediction: int
    anti_scores: Sequence[Score] | None = field(default=None, metadata=OPTIONAL)
    gaps: Sequence[ScoreGap] | None = field(default=None, metadata=OPTIONAL)
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        keys = ("metric", "precision", "recall", "f1", "f1_low", "f1_high")
        yield listed(f"{self.n_documents} documents", self.scores, keys)
        if self.gaps is not None:
            yield gap_table("gap", TypeGaps(self.n_documents, self.gaps))


class CoreferenceReader(Reader):
    """Reads a system's CoNLL output."""

    name = "coreference"
    help = "MUC, B3, CEAF-e and their mean with intervals; with --anti-*: the WinoBias gap."
    positional = ("predictions",)

    predictions: Path = Field(description="A system's output, CoNLL-2012.")
    gold: Path = Field(description="The same documents with gold clusters.")
    anti_predictions: Path | None = Field(
        None, description="Output on the anti-stereotypical documents."
    )
    anti_gold: Path | None = Field(None, description="Their gold clusters.")
    singletons: bool = Field(False, description="Count clusters with a single mention, too.")
    resamples: Resamples = 1_000
    seed: Seed = 0

    def read(self) -> CoreferenceResult:
        if (self.anti_gold is None) != (self.anti_predictions is None):
            raise DataError("gap: --anti-gold and --anti-predictions belong together; pass both.")
        draws = self.only("resamples", "seed")
        pairs = _documents(self.gold, self.predictions)
        counts = coreference.counts_of(pairs, singletons=self.singletons)
        anti_scores = rows = None
        if self.anti_gold is not None and self.anti_predictions is not None:
            others = _documents(self.anti_gold, self.anti_predictions)
            anti = coreference.counts_of(others, singletons=self.singletons)
            rows = coreference.gaps(counts, anti, **draws)
            linked = (coreference.linked(pairs), coreference.linked(others))
            rows.append(coreference.accuracy_gap(*linked, **draws))
            anti_scores = coreference.summary(anti, **draws)
        return CoreferenceResult(
            scores=coreference.summary(counts, **draws),
            accuracy=float(coreference.linked(pairs).mean()),
            n_documents=len(pairs),
            n_without_prediction=sum(not p.clusters for _, p in pairs),
            settings=self.only("singletons", "resamples", "seed"),
            anti_scores=anti_scores,
            gaps=rows,
        )


def _documents(gold: Path, predicted: Path) -> list[tuple[Document, Document]]:
    return coreference.aligned(read_conll(gold), read_conll(predicted), str(predicted))


READERS = (CoreferenceReader,)

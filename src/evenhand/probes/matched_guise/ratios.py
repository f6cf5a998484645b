"""The publication's numbers: how much likelier a word is after the dialect, and human lists.

    ratio(word) = mean over texts and prompts of log10 P(word | dialect) / P(word | standard)

Words are ranked by it. Human raters named traits of African Americans in 1933, 1951, 1969 and 2012;
of these the words at hand with the highest scores are their list, its favourability the mean of the
words' favourabilities weighted by the scores. Agreement of a ranking with a list is the average
precision of its first 1 to 5 words, averaged.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.opening import read_json
from evenhand.probes.reading import Input, Reader, Result, Shown, listed
from evenhand.stats.clustered_means import clustered_mean, with_q
from evenhand.stats.estimate import NAN
from evenhand.strict import INLINE

Floats = npt.NDArray[np.float64]
BASES = {"e": math.log(10), "10": 1.0, "2": math.log2(10)}
TOP = 5
NOT_LISTS = ("favorability", "gss_prestige")


@dataclass(frozen=True)
class WordRatio:
    """One word: log10 ratio over texts, with interval and q; NaN favourability: not rated."""

    word: str
    found: Any = field(metadata=INLINE)
    favorability: float
    q: float = NAN


@dataclass(frozen=True)
class HumanList:
    """What human raters named most, and how well a ranking agrees with it."""

    study: str
    year: int
    words: tuple[str, ...]
    favorabilities: tuple[float, ...]
    favorability: float
    agreement: float


@dataclass(frozen=True)
class Human:
    """Human ratings: favourability of words, and scores of words by study."""

    favorability: Mapping[str, float]
    studies: Mapping[str, tuple[int, Mapping[str, float]]]

    @classmethod
    def read(cls, path: str | Path) -> Human:
        """The publication's human_ratings.json, or a file of your own like it."""
        held = read_json(path)
        try:
            studies = {
                str(name): (
                    int(study["year"]),
                    {str(w): float(s) for w, s in study["scores"].items()},
                )
                for name, study in held.items()
                if name not in NOT_LISTS
            }
            liked = {str(w): float(v) for w, v in held["favorability"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{path}: {error!r}. Accepted: favorability (word to number), and per study its "
                "year and scores (word to number)."
            ) from None
        return cls(liked, studies)

    def lists(self, words: Sequence[str], ranked: Sequence[str] = ()) -> list[HumanList]:
        """The list of every study among words, whose order breaks ties; agreement with `ranked`.

        >>> human = Human({"lazy": -1.0, "kind": 2.0}, {"x": (1933, {"lazy": 3.0, "kind": 1.0})})
        >>> [made] = human.lists(["kind", "lazy"], ["lazy", "kind"])
        >>> made.words, made.favorability, made.agreement
        (('lazy', 'kind'), -0.25, 1.0)
        """
        made = []
        for study, (year, scores) in self.studies.items():
            top = sorted((w for w in words if w in scores), key=lambda w: -scores[w])[:TOP]
            liked = [self.favorability.get(w, NAN) for w in top]
            weights = [scores[w] for w in top]
            mean = float(np.average(liked, weights=weights)) if sum(weights) else NAN
            parts = [average_precision(ranked, top[:k]) for k in range(1, len(top) + 1)]
            agreed = float(np.mean(parts)) if ranked and parts else NAN
            made.append(HumanList(study, year, tuple(top), tuple(liked), mean, agreed))
        return made


def average_precision(ranked: Sequence[str], wanted: Sequence[str]) -> float:
    """Mean precision at the places of the wanted words in a ranking.

    >>> average_precision(["a", "b", "c"], ["a", "c"])
    0.8333333333333333
    """
    places = [k for k, word in enumerate(ranked, 1) if word in wanted]
    return sum(n / place for n, place in enumerate(places, 1)) / len(wanted) if wanted else NAN


def chance_agreement(words: int, most: int = TOP) -> float:
    """The agreement that a random ranking of this many words has with a list, on average.

    E of the average precision of k among n words is the mean over places i of
    (1 + (k - 1) (i - 1) / (n - 1)) / i, since each wanted word is equally likely at each place.

    >>> round(chance_agreement(37), 4)
    0.1628
    """
    places = np.arange(1, words + 1)
    rest = (places - 1) / max(1, words - 1)
    parts = [float(((1 + (k - 1) * rest) / places).mean()) for k in range(1, most + 1)]
    return float(np.mean(parts))


def word_ratios(
    log10: Floats, words: Sequence[str], units: Sequence[str], human: Human | None = None
) -> list[WordRatio]:
    """Words by falling ratio, each with t over texts (near copies are one unit)."""
    names = np.asarray(words)
    made = [
        WordRatio(
            word,
            clustered_mean(log10[at], np.asarray(units)[at], family=len(set(words))),
            (human.favorability if human else {}).get(word, NAN),
        )
        for word in dict.fromkeys(words)
        for at in [names == word]
    ]
    made.sort(key=lambda row: (-row.found.value, row.word))
    return with_q(made, [row.found.p for row in made])


@dataclass(frozen=True, kw_only=True)
class RatioResult(Result):
    """Words by ratio, human lists, and how well they agree."""

    measure: ClassVar[str] = "guise-ratios"

    words: Sequence[WordRatio]
    top: Sequence[str]
    human: Sequence[HumanList]
    chance: float
    n: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        keys = ("word", "value", "low", "high", "p", "q", "favorability", "n")
        yield listed(f"log10 ratio after the dialect: {self.n} rows", self.words, keys)
        if self.human:
            told = [
                {
                    "study": h.study,
                    "year": h.year,
                    "words": ", ".join(h.words),
                    "favorability": h.favorability,
                    "agreement": h.agreement,
                }
                for h in self.human
            ]
            title = f"Human lists; a random ranking has an agreement of {self.chance:.4f}"
            yield listed(title, told, ("study", "year", "words", "favorability", "agreement"))


class RatioReader(Reader):
    """The publication's measure from log-probabilities of words."""

    name = "guise-ratios"
    help = """Log ratios of words after two guises, ranked, beside human lists of traits.

    One row per text, word and prompt: text, attribute (the word), logprob_dialect,
    logprob_standard; optional prompt.
    """
    positional = ("table",)

    table: Input
    human: Path | None = Field(None, description="Human ratings (human_ratings.json).")
    base: Literal["e", "10", "2"] = Field("e", description="Base of the log-probabilities.")

    def read(self) -> RatioResult:
        names = ("text", "attribute")
        both = ("logprob_dialect", "logprob_standard")
        table = read_table(self.table, text=(*names, "prompt"), needed=(*names, *both))
        log10 = np.subtract(*(table.numbers(n) for n in both)) / BASES[self.base]
        human = Human.read(self.human) if self.human else None
        words = list(table.labels("attribute"))
        made = word_ratios(log10, words, list(table.labels("text")), human)
        ranked = [row.word for row in made]
        lists = human.lists(sorted(ranked), ranked) if human else []
        return RatioResult(
            words=made,
            top=ranked[:TOP],
            human=lists,
            chance=chance_agreement(len(ranked)),
            n=table.n_rows,
            settings=self.only("base"),
        )

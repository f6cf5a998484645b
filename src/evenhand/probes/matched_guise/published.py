"""The publication's pairs of texts and its measure: how much likelier a word is after the dialect.

    ratio(word) = mean over texts and prompts of log10 P(word | dialect) / P(word | standard)

Words are ranked by it. Human raters named traits of African Americans in 1933, 1951, 1969 and 2012;
of these the words at hand with the highest scores are their list, its favourability the mean of the
words' favourabilities weighted by the scores. Agreement of a ranking with a list is the average
precision of its first 1 to 5 words, averaged.

The publication's folder holds pairs_*.tsv, prompts.json, a list of words (katz.txt or
occupations.txt) and, for human lists, human_ratings.json.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.compare.items import Floats, Items
from evenhand.compare.rows import Row, Test, judge
from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.opening import read_json, read_text
from evenhand.probes.reading import Input, Reader, Result, Shown, listed
from evenhand.requests import MASK, Continuation, MaskScore, Requests
from evenhand.stats.clustered_means import ClusteredMean, clustered_mean
from evenhand.stats.estimate import NAN

PAIRS = "matched pairs (columns dialect, standard, optional feature)"
GUISES = ("dialect", "standard")
PRONOUNS = {"i", "you", "he", "she", "it", "we", "they"}
PROMPTS = {"katz": "TRAIT_PROMPTS", "occupations": "OCCUPATION_PROMPTS"}
BASES = {"e": math.log(10), "10": 1.0, "2": math.log2(10)}
TOP = 5
NOT_LISTS = ("favorability", "gss_prestige")


@dataclass(frozen=True)
class Pair:
    """A text in both guises; `unit` is what it shares with near copies of it."""

    dialect: str
    standard: str
    feature: str
    unit: str


def read_pairs(path: Path) -> list[Pair]:
    """Read pairs of a table with a head, or of the publication's list (dialect TAB standard).

    A folder is the publication's data; its pairs stand in pairs_*.tsv.
    """
    if path.is_dir():
        lists = sorted(path.glob("pairs_*.tsv"))
        if not lists:
            raise DataError(f"{path}: no pairs_*.tsv there. Accepted: {PAIRS}.")
        return [pair for file in lists for pair in read_pairs(file)]
    lines = [line for line in read_text(path).splitlines() if line.strip()]
    first = lines[0].split("\t") if lines else []
    if len(first) == len(GUISES) and not set(first) & set(GUISES):
        rows = [[text.strip() for text in line.split("\t")] for line in lines]
        for number, row in enumerate(rows, 1):
            if len(row) != len(GUISES):
                raise DataError(
                    f"{path}, line {number}: {len(row)} texts. Accepted: two and a tab."
                )
        return with_units((row[0], row[1], path.stem.removeprefix("pairs_")) for row in rows)
    table = read_table(path, text=(*GUISES, "feature"), needed=GUISES)
    texts = (table.labels(name) for name in GUISES)
    return with_units(zip(*texts, table.texts("feature", "")))


def with_units(rows: Iterable[tuple[str, str, str]]) -> list[Pair]:
    """Return pairs, each once; those that differ only in the first pronoun are one unit.

    >>> pairs = with_units([("he be late", "he is", ""), ("she be late", "she is", ""),
    ...                     ("we here", "we are here", "")])
    >>> [pair.unit for pair in pairs]
    ['be late', 'be late', 'we here']
    """
    known = list(dict.fromkeys(rows))
    parts = [dialect.partition(" ") for dialect, _, _ in known]
    often = Counter(rest for first, _, rest in parts if first.lower() in PRONOUNS)
    return [
        Pair(*row[:2], row[2], rest if first.lower() in PRONOUNS and often[rest] > 1 else row[0])
        for row, (first, _, rest) in zip(known, parts)
    ]


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
        """Read the publication's human_ratings.json, or a file of your own like it."""
        ratings = read_json(path)
        try:
            studies = {
                str(name): (
                    int(study["year"]),
                    {str(w): float(s) for w, s in study["scores"].items()},
                )
                for name, study in ratings.items()
                if name not in NOT_LISTS
            }
            liked = {str(w): float(v) for w, v in ratings["favorability"].items()}
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise DataError(
                f"{path}: {error!r}. Accepted: favorability (word to number), and per study its "
                "year and scores (word to number)."
            ) from None
        return cls(liked, studies)

    def lists(self, words: Sequence[str], ranked: Sequence[str] = ()) -> list[HumanList]:
        """Return each study's list among words, whose order breaks ties, and its agreement.

        >>> human = Human({"lazy": -1.0, "kind": 2.0}, {"x": (1933, {"lazy": 3.0, "kind": 1.0})})
        >>> [of_1933] = human.lists(["kind", "lazy"], ["lazy", "kind"])
        >>> of_1933.words, of_1933.favorability, of_1933.agreement
        (('lazy', 'kind'), -0.25, 1.0)
        """
        lists = []
        for study, (year, scores) in self.studies.items():
            top = sorted((w for w in words if w in scores), key=lambda w: -scores[w])[:TOP]
            liked = [self.favorability.get(w, NAN) for w in top]
            weights = [scores[w] for w in top]
            mean = float(np.average(liked, weights=weights)) if sum(weights) else NAN
            parts = [average_precision(ranked, top[:k]) for k in range(1, len(top) + 1)]
            agreement = float(np.mean(parts)) if ranked and parts else NAN
            lists.append(HumanList(study, year, tuple(top), tuple(liked), mean, agreement))
        return lists


def average_precision(ranked: Sequence[str], wanted: Sequence[str]) -> float:
    """Return the mean precision at the places of the wanted words in a ranking.

    >>> average_precision(["a", "b", "c"], ["a", "c"])
    0.8333333333333333
    """
    places = [k for k, word in enumerate(ranked, 1) if word in wanted]
    return sum(n / place for n, place in enumerate(places, 1)) / len(wanted) if wanted else NAN


def chance_agreement(words: int, most: int = TOP) -> float:
    """Return the agreement that a random ranking of this many words has on average.

    E of the average precision of k among n words is the mean over places i of
    (1 + (k - 1) (i - 1) / (n - 1)) / i, since each wanted word is equally likely at each place.

    >>> round(chance_agreement(37), 4)
    0.1628
    """
    places = np.arange(1, words + 1)
    rest = (places - 1) / max(1, words - 1)
    parts = [float(((1 + (k - 1) * rest) / places).mean()) for k in range(1, most + 1)]
    return float(np.mean(parts))


@dataclass(frozen=True)
class Release:
    """Words and prompts of the publication's folder, and human ratings if it has them."""

    words: tuple[str, ...]
    prompts: tuple[str, ...]
    human: Human | None

    @classmethod
    def read(cls, folder: Path, words: str) -> Release:
        """Read the list of this name with its prompts."""
        if not folder.is_dir():
            raise DataError(
                f"{folder}: as_published needs the publication's folder (pairs_*.tsv, "
                f"prompts.json, {words}.txt), not a file of pairs. Name it with --data FOLDER."
            )
        prompts = read_json(folder / "prompts.json")
        rated = folder / "human_ratings.json"
        return cls(
            tuple(dict.fromkeys(read_text(folder / f"{words}.txt").split())),
            tuple(prompts[PROMPTS[words]]),
            Human.read(rated) if rated.exists() else None,
        )

    def fits(self, prompt: str, word: str) -> bool:
        """Prompts that end in "a" or "an" are asked of words with that article only."""
        end = prompt.rpartition(" ")[2]
        return end not in ("a", "an") or (word[0] in "aeiou") == (end == "an")

    def items(self, pairs: Sequence[Pair], **beside: Any) -> Items:
        """Return every pair, prompt and word that is asked."""
        rows = [
            (pair, prompt, word)
            for pair in pairs
            for prompt in self.prompts
            for word in self.words
            if self.fits(prompt, word)
        ]
        columns = {
            "text": [pair.dialect for pair, _, _ in rows],
            "unit": [pair.unit for pair, _, _ in rows],
            "prompt": [prompt for _, prompt, _ in rows],
            "attribute": [word for _, _, word in rows],
            "_standard": [pair.standard for pair, _, _ in rows],
        }
        return Items(columns, about=self, example=rows[0][1] if rows else "", **beside)


def word_requests(items: Items, kind: str) -> Requests:
    """The word after (or at the mask at the end of) the prompt, in both guises."""
    texts = [
        prompt.format(text)
        for prompt, *guises in zip(items["prompt"], items["text"], items["_standard"])
        for text in guises
    ]
    words = [word for word in items["attribute"] for _ in GUISES]
    if kind == MaskScore.kind:
        return MaskScore([f"{text} {MASK}" for text in texts], words)
    return Continuation(texts, [f" {word}" for word in words])


def ratio_tests(
    log10: Floats,
    words: Sequence[str] | npt.NDArray[Any],
    units: Sequence[Any] | npt.NDArray[Any],
    human: Human | None = None,
) -> list[Test]:
    """Words by falling ratio, each with t over texts (near copies are one unit).

    They are ranked by their estimates, which are therefore made here.
    """
    names, texts = np.asarray(words), np.asarray(units)
    listed_words = list(dict.fromkeys(names.tolist()))
    ratios: dict[str, ClusteredMean] = {}
    for word in listed_words:
        at = names == word
        ratios[word] = clustered_mean(log10[at], texts[at], family=len(listed_words))
    ranked = sorted(listed_words, key=lambda word: (-ratios[word].value, word))
    rated = human.favorability if human else {}
    return [
        Test(
            f"ratio/{word}",
            "guise_ratio",
            {"word": word},
            lambda ratio=ratios[word], **how: ratio,
            {"favorability": rated.get(word, NAN)},
            table="ratios",
        )
        for word in ranked
    ]


@dataclass(frozen=True, kw_only=True)
class RatioResult(Result):
    """Words by ratio, human lists, and how well they agree."""

    measure: ClassVar[str] = "guise-ratios"

    words: Sequence[Row]
    top: Sequence[str]
    human: Sequence[HumanList]
    chance: float
    n: int
    settings: Mapping[str, Any]

    def shown(self) -> Iterator[Shown]:
        keys = ("word", "value", "low", "high", "p", "q", "favorability", "n")
        yield listed(f"log10 ratio after the dialect: {self.n} rows", self.words, keys)
        if self.human:
            rows = [
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
            yield listed(title, rows, ("study", "year", "words", "favorability", "agreement"))


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
        words, texts = list(table.labels("attribute")), list(table.labels("text"))
        rows = judge(ratio_tests(log10, words, texts, human))
        ranked = [row["word"] for row in rows]
        lists = human.lists(sorted(ranked), ranked) if human else []
        return RatioResult(
            words=rows,
            top=ranked[:TOP],
            human=lists,
            chance=chance_agreement(len(ranked)),
            n=table.n_rows,
            settings=self.only("base"),
        )

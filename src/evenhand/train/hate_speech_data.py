"""Labelled tweets for hate-speech detection: reading, a fixed split, groups by gender terms.

Cleaning and tokens are those of the tweet corpora (`corpora.tweets`), so the words of an embedding
trained on cleaned tweets and of these texts agree.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import read_table
from evenhand.corpora.text import clean_tweet, tweet_tokens
from evenhand.errors import DataError
from evenhand.words.lexicons import gender_terms


@dataclass(frozen=True)
class Tweets:
    """Tokens and labels (1: hateful or offensive) of texts, with a group of each where known."""

    tokens: list[list[str]]
    labels: npt.NDArray[np.int64]
    groups: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, size in (("labels", len(self.labels)), ("groups", len(self.groups))):
            if size != len(self.tokens) and (size or name == "labels"):
                raise DataError(f"tweets: {len(self.tokens)} texts but {size} {name}.")

    def __len__(self) -> int:
        return len(self.tokens)

    def pick(self, rows: npt.NDArray[np.int64]) -> Tweets:
        """Some of the texts, in the order given."""
        groups = tuple(self.groups[i] for i in rows) if self.groups else ()
        return Tweets([self.tokens[i] for i in rows], self.labels[rows], groups)

    def grouped(self, groups: Sequence[str]) -> Tweets:
        """The same texts with another division into groups."""
        return Tweets(self.tokens, self.labels, tuple(groups))


def read_labelled(
    path: str | Path,
    *,
    text: str = "tweet",
    label: str = "class",
    group: str = "",
    positive: Sequence[str] = ("0", "1"),
) -> Tweets:
    """Read a CSV, JSON lines or Parquet table of texts (.gz and .xz too).

    The defaults read Davidson et al. 2017, with hate (0) and offensive (1) as the positive class,
    as Kato & Miyao join hateful and abusive; `positive=("0",)` is hate alone.

    Args:
        group: column of the group of each text, for instance its dialect.
        positive: labels that count as hateful; compared as text.
    """
    named = [c for c in (text, label, group) if c]
    table = read_table(Path(path), text=named, needed=named)
    wanted = {str(p) for p in positive}
    labels = list(table.labels(label))
    found = np.asarray([value in wanted for value in labels], np.int64)
    if not 0 < found.sum() < len(found):
        seen = ", ".join(sorted(set(labels))[:8])
        raise DataError(
            f"{path}: {int(found.sum())} of {len(found)} rows are positive, so there is one class "
            f"only. Column '{label}' holds: {seen}; positive are: {', '.join(sorted(wanted))}."
        )
    tokens = [tweet_tokens(clean_tweet(value)) for value in table.labels(text)]
    return Tweets(tokens, found, tuple(table.labels(group)) if group else ())


def split(tweets: Tweets, *, dev: float = 0.1, test: float = 0.2) -> tuple[Tweets, Tweets, Tweets]:
    """Train, dev and test part by a hash of the words: repeats of a text stay together.

    >>> many = Tweets([[str(k)] for k in range(1000)], np.arange(1000) % 2)
    >>> [len(part) for part in split(many)]
    [676, 112, 212]
    """
    place = np.asarray([_place(t) for t in tweets.tokens])
    part = np.where(place < test, 2, np.where(place < test + dev, 1, 0))
    first, second, third = (tweets.pick(np.flatnonzero(part == k)) for k in range(3))
    return first, second, third


def _place(tokens: Sequence[str]) -> float:
    digest = hashlib.sha256(" ".join(tokens).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48


@cache
def _gendered() -> tuple[frozenset[str], frozenset[str]]:
    terms = gender_terms()
    men, women = {t.masculine for t in terms}, {t.feminine for t in terms}
    return frozenset(men - women), frozenset(women - men)


def gender_groups(tweets: Tweets) -> tuple[str, ...]:
    """ "male" or "female" for texts with terms of one gender only, else "both" or "none".

    The terms are those of the lexicon gender_terms. This says what a text mentions, not whom it
    is aimed at or who wrote it.

    >>> gender_groups(Tweets([["she", "left"], ["ok"]], np.asarray([0, 1])))
    ('female', 'none')
    """
    men, women = _gendered()
    names = {(True, False): "male", (False, True): "female", (True, True): "both"}
    out = []
    for tokens in tweets.tokens:
        seen = set(tokens)
        out.append(names.get((bool(seen & men), bool(seen & women)), "none"))
    return tuple(out)

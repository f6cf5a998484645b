"""Tokens of running text and of tweets.

Two tokenisers each: "plain" (ours, standard library only, the default) and "nltk" (the one the
paper used, when nltk is installed). Ours keep emoji sequences and flags whole and never give a
token with white space in it, which nltk's tweet tokeniser can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.errors import SpecError, need, unknown

_EMOJI = "[\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
_TAIL = "[\ufe0f\U0001f3fb-\U0001f3ff]*"
_TWEET = re.compile(
    r"<[^<>\s]+>"  # markers: <HASH>, <MENTION>, <URL>, <UNK>
    r"|https?://\S+"
    r"|<3"
    r"|[<>]?[:;=8][-o*']?[)(\[\]dp/\\|}{@](?!\w)|[)(\[\]/\\|}{@][-o*']?[:;=8](?!\w)"  # faces
    r"|[+-]?\d+(?:[.,:/]\d+)+"
    r"|\w+(?:['’-]\w+)*"
    rf"|[\U0001f1e6-\U0001f1ff]{{2}}|{_EMOJI}{_TAIL}(?:\u200d{_EMOJI}{_TAIL})*"
    r"|\.{2,}|\S",
    re.IGNORECASE,
)
_TEXT = re.compile(
    r"<[^<>\s]+>"
    r"|(?:[^\W\d_]\.){2,}"  # U.S., e.g.
    r"|\d+(?:[.,:/]\d+)*\w*"
    r"|[^\W\d_]+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b"  # do n't, he 's
    r"|\w+(?:-\w+)*"
    r"|\.{2,}|--+|\S",
    re.IGNORECASE,
)
TOKENIZERS = ("plain", "nltk")
KINDS = ("tweets", "wikipedia")


def tweet_tokens(text: str) -> list[str]:
    """Tokens of a cleaned tweet; markers, faces, emoji sequences and flags stay whole.

    >>> tweet_tokens("<HASH> win <MENTION> don't :-) 3.5 so-called 👩🏽‍🚀 🇯🇵!!")
    ['<HASH>', 'win', '<MENTION>', "don't", ':-)', '3.5', 'so-called', '👩🏽‍🚀', '🇯🇵', '!', '!']
    """
    return _TWEET.findall(text)


def text_tokens(text: str) -> list[str]:
    """Tokens of a sentence in the manner of the Penn Treebank: contractions and marks split off.

    >>> text_tokens("He's in the U.S. (10,000 km) and doesn't mind the well-known \\"end\\".")
    ['He', "'s", 'in', 'the', 'U.S.', '(', '10,000', 'km', ')', 'and', 'does', "n't", 'mind', \
'the', 'well-known', '"', 'end', '"', '.']
    """
    return _TEXT.findall(text)


def tokenizer(kind: str, name: str = "plain") -> Callable[[str], list[str]]:
    """The function from text to tokens for "tweets" or "wikipedia", ours or nltk's."""
    if name not in TOKENIZERS:
        raise SpecError(unknown("tokenizer", name, TOKENIZERS, where="--tokenizer"))
    if kind not in KINDS:
        raise SpecError(unknown("kind of corpus", kind, KINDS, where="--kind"))
    if name == "plain":
        return tweet_tokens if kind == "tweets" else text_tokens
    nltk: Any = need("nltk.tokenize", extra="train", what="the tokenizer 'nltk'")
    if kind == "tweets":
        return nltk.TweetTokenizer().tokenize  # type: ignore[no-any-return]
    # One sentence at a time, so that nltk's sentence model (a download) is not needed.
    return partial(nltk.word_tokenize, preserve_line=True)


def read_tokens(
    table: Path, text: str, cut: str = "tweets", others: Sequence[str] = ()
) -> tuple[list[list[str]], dict[str, list[str]]]:
    """Token lists of a text column, and other columns as text.

    Args:
        table: a CSV, JSON lines or Parquet table.
        cut: tweets (clean and tokenise) or split (at white space).
    """
    from evenhand.corpora.tables import read_table
    from evenhand.corpora.tweets import clean_tweet

    if cut not in ("tweets", "split"):
        raise SpecError(unknown("way to cut tokens", cut, ("tweets", "split"), where="--tokens"))
    found = read_table(table, text=[text, *others], needed=[text, *others])
    texts = found.labels(text)
    made = [tweet_tokens(clean_tweet(t)) if cut == "tweets" else t.split() for t in texts]
    return made, {name: list(found.labels(name)) for name in others}

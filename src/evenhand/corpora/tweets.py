"""Tweets: reading an archive of the public stream, and cleaning one tweet.

Cleaning, in this order (Kato and Miyao 2024; order as in the released code):
    1. HTML entities are unescaped until nothing changes      2. lower case
    3. every # -> <HASH>, the word stays                      4. @name -> <MENTION>
    5. http(s) addresses -> <URL>                             6. white space -> one space
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from evenhand.corpora.files import Corpus, told_lines
from evenhand.opening import parse_json

_BREAKS = re.compile("\r\n|[\n\r\v\f\u0085\u2028\u2029]")
_MENTION = re.compile(r"@\w+", re.ASCII)
_URL = re.compile(r"https?://\S+")
MARKERS = ("<HASH>", "<MENTION>", "<URL>", "<UNK>")


def clean_tweet(text: str) -> str:
    """One tweet in lower case with markers for hash signs, mentions and addresses.

    >>> clean_tweet("RT @Ann: Tom &amp;amp; I\\u2028#Win  at https://t.co/x1")
    'rt <MENTION> : tom & i <HASH> win at <URL>'
    """
    text = _BREAKS.sub(" ", text)
    while (plain := html.unescape(text)) != text:
        text = plain
    text = text.lower().replace("#", " <HASH> ")
    text = _MENTION.sub(" <MENTION> ", text)
    text = _URL.sub(" <URL> ", text)
    return " ".join(text.split())


def read_tweets(corpus: Corpus, dropped: Counter[str] | None = None) -> Iterator[str]:
    """Raw texts of English tweets that are neither retweets nor withheld.

    A file whose first character is { holds one JSON object per line, as in archives of the
    stream: `lang` must be "en"; retweets, and tweets withheld by country or for copyright, are
    left out; notices such as deletions are no tweets. Any other file holds one tweet per line,
    all of which are kept.

    Args:
        corpus: from `open_corpus`.
        dropped: counts what was left out, by reason.
    """
    dropped = Counter() if dropped is None else dropped
    for line, where, as_json in told_lines(corpus):
        if not as_json:
            yield line
        elif kept := _text_of(line, where, dropped):
            yield kept


def _text_of(line: str, where: str, dropped: Counter[str]) -> str | None:
    tweet = parse_json(
        line, where, "one tweet per line, as JSON of the stream archive or as plain text"
    )
    reason = _unwanted(tweet)
    if reason:
        dropped[reason] += 1
        return None
    longer = tweet.get("extended_tweet") or {}
    whole = longer.get("full_text") if isinstance(longer, dict) else None
    return _BREAKS.sub(" ", str(whole or tweet.get("full_text") or tweet["text"]))


def _unwanted(tweet: Any) -> str:
    """Why a JSON object is not a tweet to keep; "" when it is."""
    if not isinstance(tweet, dict) or not (tweet.get("text") or tweet.get("full_text")):
        return "no tweet"
    if tweet.get("lang") != "en":
        return "not English"
    if "retweeted_status" in tweet:
        return "retweet"
    if tweet.get("withheld_in_countries") or tweet.get("withheld_copyright"):
        return "withheld"
    return ""

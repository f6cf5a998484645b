"""Text in bulk: read files line by line, split into tokens, clean into a corpus.

A line ends at a line feed and nowhere else; a token of a cleaned corpus is what `str.split` gives.
Files are read one block at a time, plain or packed.

Two tokenisers for running text and two for tweets: "plain" (ours, standard library only, the
default) and "nltk" (the one the paper used, if nltk is installed). Ours keep emoji sequences and
flags whole and never return a token that contains white space, which nltk's tweet tokeniser can.

Tweets are cleaned in this order (Kato and Miyao 2024; order as in the released code):
    1. HTML entities are unescaped until nothing changes      2. lower case
    3. every # -> <HASH>, the word stays                      4. @name -> <MENTION>
    5. http(s) addresses -> <URL>                             6. white space -> one space

Cleaning passes over the text twice and never keeps it in memory: it writes and counts tokens, then
replaces rare ones by <UNK>. What stays in memory is one count per distinct token.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.errors import DataError, SpecError, need, unknown
from evenhand.opening import BLOCK, blocks, decoded, lines, parse_json, readable
from evenhand.runner.progress import Progress, Silent
from evenhand.writing import destination, packed_writer

MOST_TOKENS = 10_000
"""Sentences are cut at this length, because word2vec trainers silently drop the rest."""


@dataclass(frozen=True)
class Corpus:
    """Text files read as one sequence of lines. Iterating gives the tokens of each line.

    Holds paths only, so it can be pickled and sent to another process; every pass opens the
    files again. Lines without a token are counted but not given as sentences.

    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = file.write_text("he is a doctor\\n\\nshe sings\\n")
    >>> list(open_corpus(file))
    [['he', 'is', 'a', 'doctor'], ['she', 'sings']]
    """

    paths: tuple[str, ...]

    def __iter__(self) -> Iterator[list[str]]:
        return sentences(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield every line, without its line feed."""
        for path, block in self.blocks():
            yield from decoded(block, path).split("\n")[:-1]

    def blocks(
        self, size: int = BLOCK, watch: Callable[[int], None] = lambda done: None
    ) -> Iterator[tuple[str, bytes]]:
        """Yield (path, whole lines) in blocks of about `size` bytes that end in a line feed.

        Args:
            size: bytes to read at a time; memory in use stays a small multiple of it.
            watch: called with the number of bytes newly read from the files on disk.
        """
        for path in self.paths:
            for block in blocks(path, size, watch):
                yield path, block

    @property
    def bytes_on_disk(self) -> int:
        """Total size of the files on disk."""
        return sum(os.stat(path).st_size for path in self.paths)

    @property
    def fingerprint(self) -> str:
        """SHA-256 over the size and the first and last 64 KiB of each file: a cheap check."""
        state = hashlib.sha256()
        for path in self.paths:
            with readable(path), open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                state.update(f"{size}|".encode() + file.read(1 << 16))
                file.seek(max(0, size - (1 << 16)))
                state.update(file.read())
        return state.hexdigest()


def open_corpus(paths: str | Path | Iterable[str | Path]) -> Corpus:
    """Return a corpus of files and folders; a folder stands for all its files, in name order.

    Raises:
        DataError: a path is missing, a file is empty, or a folder holds no file.
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    found: list[Path] = []
    for item in map(Path, given):
        if item.is_dir():
            inside = sorted(p for p in item.rglob("*") if p.is_file() and p.name[0] != ".")
            if not inside:
                raise DataError(f"{item}: no file in this folder. Pass text files or folders.")
            found += inside
        elif item.exists():
            found.append(item)
        else:
            raise DataError(f"{item}: no such file or folder. Pass text files or folders.")
    if not found:
        raise DataError("corpus: no file was given. Pass text files or folders.")
    for path in found:
        if path.stat().st_size == 0:
            raise DataError(f"{path}: the file is empty. Leave it out, or make it again.")
    return Corpus(tuple(str(p) for p in found))


def numbered_lines(corpus: Corpus) -> Iterator[tuple[str, str, bool]]:
    """Yield each line that is not blank, its place in words, and whether its file is JSON lines.

    A file is JSON lines if its first character is { or its name says so.
    """
    before, number, as_json = "", 0, False
    for path, block in corpus.blocks():
        text = decoded(block, path)
        if path != before:
            named = {s.lower() for s in Path(path).suffixes} & {".json", ".jsonl", ".ndjson"}
            before, number, as_json = path, 0, text.lstrip()[:1] == "{" or bool(named)
        for line in text.split("\n")[:-1]:
            number += 1
            if line.strip():
                yield line, f"{path}, line {number}", as_json


def sentences(lines: Iterable[str]) -> Iterator[list[str]]:
    """Yield the tokens of lines that have some, in pieces of 10,000 tokens at most."""
    for line in lines:
        tokens = line.split()
        for low in range(0, len(tokens), MOST_TOKENS):
            yield tokens[low : low + MOST_TOKENS] if len(tokens) > MOST_TOKENS else tokens


def read_texts(path: Path, limit: int = 400, words: int = 80) -> list[str]:
    """Read passages of a text file (one a line; packed too), each cut to `words` words.

    Passages of fewer than 8 words are skipped; of more than `limit`, evenly spaced ones are taken.
    """
    cut = [" ".join(line.split()[:words]) for line in lines(path, "plain text, one passage a line")]
    passages = [line for line in cut if len(line.split()) >= 8]
    if len(passages) < 20:
        raise DataError(
            f"{path}: {len(passages)} passages of 8 words or more. Accepted: 20 or more."
        )
    step = max(1, len(passages) // limit)
    return passages[::step][:limit]


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
    """Split a cleaned tweet into tokens; markers, faces, emoji sequences and flags stay whole.

    >>> tweet_tokens("<HASH> win <MENTION> don't :-) 3.5 so-called 👩🏽‍🚀 🇯🇵!!")
    ['<HASH>', 'win', '<MENTION>', "don't", ':-)', '3.5', 'so-called', '👩🏽‍🚀', '🇯🇵', '!', '!']
    """
    return _TWEET.findall(text)


def text_tokens(text: str) -> list[str]:
    """Split a sentence as the Penn Treebank does: contractions and punctuation stand alone.

    >>> text_tokens("He's in the U.S. (10,000 km) and doesn't mind the well-known \\"end\\".")
    ['He', "'s", 'in', 'the', 'U.S.', '(', '10,000', 'km', ')', 'and', 'does', "n't", 'mind', \
'the', 'well-known', '"', 'end', '"', '.']
    """
    return _TEXT.findall(text)


def tokenizer(kind: str, name: str = "plain") -> Callable[[str], list[str]]:
    """Return the function from text to tokens for "tweets" or "wikipedia", ours or nltk's."""
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
    """Read a text column as lists of tokens, and other columns as text.

    Args:
        table: a CSV, JSON lines or Parquet table.
        cut: tweets (clean and tokenise) or split (at white space).
    """
    from evenhand.corpora.tables import read_table

    if cut not in ("tweets", "split"):
        raise SpecError(unknown("way to cut tokens", cut, ("tweets", "split"), where="--tokens"))
    columns = read_table(table, text=[text, *others], needed=[text, *others])
    texts = columns.labels(text)
    tokens = [tweet_tokens(clean_tweet(t)) if cut == "tweets" else t.split() for t in texts]
    return tokens, {name: list(columns.labels(name)) for name in others}


_BREAKS = re.compile("\r\n|[\n\r\v\f\u0085\u2028\u2029]")
_MENTION = re.compile(r"@\w+", re.ASCII)
_URL = re.compile(r"https?://\S+")


def clean_tweet(text: str) -> str:
    """Return a tweet in lower case, with markers for hash signs, mentions and addresses.

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
    """Yield the raw texts of English tweets that are neither retweets nor withheld.

    A file whose first character is { holds one JSON object per line, as in archives of the
    stream: `lang` must be "en"; retweets, and tweets withheld by country or for copyright, are
    left out; notices such as deletions are no tweets. Any other file holds one tweet per line,
    all of which are kept.

    Args:
        corpus: from `open_corpus`.
        dropped: counts what was left out, by reason.
    """
    dropped = Counter() if dropped is None else dropped
    for line, where, as_json in numbered_lines(corpus):
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
    """Return the reason a JSON object is dropped, or "" if it is a tweet to keep."""
    if not isinstance(tweet, dict) or not (tweet.get("text") or tweet.get("full_text")):
        return "no tweet"
    if tweet.get("lang") != "en":
        return "not English"
    if "retweeted_status" in tweet:
        return "retweet"
    if tweet.get("withheld_in_countries") or tweet.get("withheld_copyright"):
        return "withheld"
    return ""


_END = re.compile(r"""[.!?…]+["'”’)\]]*\s+(?=["'“‘(\[]*[A-Z0-9À-ÖØ-Þ])""")
_SHORT = frozenset(
    "mr mrs ms dr prof rev hon st mt ft gen col lt sgt capt maj cmdr adm gov sen rep pres jr sr "
    "no nos vol vols ed eds pp fig figs vs etc inc ltd co corp dept univ est approx ca cf al "
    "jan feb mar apr jun jul aug sep sept oct nov dec".split()
)


def split_sentences(text: str) -> list[str]:
    """Cut a paragraph after . ! ? before a capital or digit, not after initials and short forms.

    >>> split_sentences("Dr. J. Smith came. He left! Did he? In 1901 (approx. noon) no.")
    ['Dr. J. Smith came.', 'He left!', 'Did he?', 'In 1901 (approx. noon) no.']
    """
    found, start = [], 0
    for end in _END.finditer(text):
        word = text[start : end.start()].rsplit(None, 1)[-1:] or [""]
        last = word[0].strip("\"'“‘([").lower()
        if end.group()[0] == "." and (last in _SHORT or len(last) == 1 or _initials(last)):
            continue
        found.append(text[start : end.end()].strip())
        start = end.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def _initials(word: str) -> bool:
    return "." in word and all(len(part) == 1 for part in word.split("."))


def read_wikipedia(corpus: Corpus, dropped: Counter[str] | None = None) -> Iterator[str]:
    """Yield paragraphs of WikiExtractor's files, without `<doc ...>` marks and out of JSON lines.

    Args:
        corpus: from `open_corpus`.
        dropped: counts what was left out, by reason.
    """
    dropped = Counter() if dropped is None else dropped
    for line, where, as_json in numbered_lines(corpus):
        if line.startswith("<doc ") or line.strip() == "</doc>":
            dropped["document mark"] += 1
        elif as_json:
            yield from _paragraphs(line, where)
        else:
            yield line.strip()


def _paragraphs(line: str, where: str) -> Iterator[str]:
    told = parse_json(line, where)
    if not isinstance(told, dict) or not isinstance(told.get("text"), str):
        raise DataError(
            f"{where}: no JSON object with a 'text'. Accepted: the output of WikiExtractor "
            "(plain or --json), or plain paragraphs."
        )
    yield from (part.strip() for part in told["text"].split("\n") if part.strip())


UNKNOWN = "<UNK>"
LEAST = {"wikipedia": 11, "tweets": 10}
"""Occurrences a token needs to be kept: the released code's two cut-offs."""


@dataclass(frozen=True)
class Cleaned:
    """Summary of a cleaned corpus: lines and tokens written, distinct tokens kept, <UNK> tokens."""

    path: str
    kind: str
    lines: int
    tokens: int
    types: int
    unknown: int
    dropped: dict[str, int] = field(default_factory=dict)


def clean_corpus(
    paths: str | Path | Iterable[str | Path],
    kind: str,
    out: str | Path,
    *,
    least: int | None = None,
    tokens: str = "plain",
    as_published: bool = False,
    progress: Progress | None = None,
) -> Cleaned:
    """Clean files into one file of sentences (or tweets), one per line; packed as `out` ends.

    Args:
        paths: files or folders, plain or packed.
        kind: "wikipedia" (sentences split, tokens lower-cased after tokenising) or "tweets"
            (see `evenhand.corpora.text`; one tweet is one line).
        out: the file to write; .gz, .bz2, .xz and .zst are packed.
        least: occurrences a token needs; default 11 for wikipedia and 10 for tweets.
        tokens: "plain" or "nltk".
        as_published: nltk's tokens, and a lone <UNK> at the very start of a Wikipedia file.

    Raises:
        DataError: nothing readable is in the files, or none of it is left.
    """
    if kind not in KINDS:
        raise SpecError(unknown("kind of corpus", kind, KINDS, where="--kind"))
    least = LEAST[kind] if least is None else least
    if least < 1:
        raise SpecError(f"least: {least}. Accepted: 1 or more occurrences.")
    corpus, target = open_corpus(paths), Path(out)
    tokenize = tokenizer(kind, "nltk" if as_published else tokens)
    dropped: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    file = destination(target)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.parent if file is not None else None
    with tempfile.TemporaryDirectory(prefix=".clean-", dir=beside) as folder:
        draft = Path(folder) / "tokens.txt"
        lines = _write_tokens(_texts(corpus, kind, dropped), tokenize, kind, draft, counts)
        if not lines:
            raise DataError(_nothing(corpus, dropped))
        unknown_tokens = _replace_rare(
            draft,
            target,
            counts,
            least,
            progress or Silent(),
            lines,
            opening=UNKNOWN + " " if as_published and kind == "wikipedia" else "",
        )
    kept = sum(1 for n in counts.values() if n >= least)
    return Cleaned(
        str(target), kind, lines, sum(counts.values()), kept, unknown_tokens, dict(dropped)
    )


def _write_tokens(
    texts: Iterable[str],
    tokenize: Callable[[str], list[str]],
    kind: str,
    draft: Path,
    counts: Counter[str],
) -> int:
    """Write the tokens of every text, count them, and return the number of lines."""
    lines = 0
    with open(draft, "w", encoding="utf-8", newline="\n") as out:
        for text in texts:
            line = tokenize(text)
            if kind == "wikipedia":
                line = [token.lower() for token in line]
            if line:
                counts.update(line)
                out.write(" ".join(line) + "\n")
                lines += 1
    return lines


def _texts(corpus: Corpus, kind: str, dropped: Counter[str]) -> Iterator[str]:
    if kind == "tweets":
        yield from (clean_tweet(text) for text in read_tweets(corpus, dropped))
        return
    for paragraph in read_wikipedia(corpus, dropped):
        yield from split_sentences(paragraph)


def _replace_rare(
    draft: Path,
    target: Path,
    counts: Counter[str],
    least: int,
    progress: Progress,
    lines: int,
    opening: str,
) -> int:
    """Write the final file and return the number of tokens replaced."""
    keep = {token for token, n in counts.items() if n >= least}
    progress.start("clean (lines)", lines, 0)
    with (
        packed_writer(target) as out,
        open(draft, encoding="utf-8", newline="\n") as cut,
    ):
        out.write(opening)
        for number, line in enumerate(cut, start=1):
            shown = [t if t in keep else UNKNOWN for t in line[:-1].split(" ")]
            out.write(" ".join(shown) + "\n")
            if number % 10_000 == 0:
                progress.advance(10_000)
    progress.advance(lines % 10_000)
    progress.finish()
    return sum(n for token, n in counts.items() if n < least)


def _nothing(corpus: Corpus, dropped: Counter[str]) -> str:
    reasons = ", ".join(f"{reason} {n}" for reason, n in dropped.most_common())
    return (
        f"{corpus.paths[0]}: no line is left after cleaning"
        f"{f' (left out: {reasons})' if reasons else ''}. Accepted: --kind wikipedia for "
        "WikiExtractor's output or paragraphs, --kind tweets for tweets."
    )

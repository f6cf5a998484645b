"""Clean a corpus into lines of tokens between spaces, rare tokens replaced by <UNK>.

Two passes over the text, none over a list in memory: tokens are written and counted, then rare
ones are replaced. What stays in memory is one count per distinct token.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.corpora.files import Corpus, open_corpus
from evenhand.corpora.tokens import KINDS, tokenizer
from evenhand.corpora.tweets import clean_tweet, read_tweets
from evenhand.corpora.wikipedia import read_wikipedia, split_sentences
from evenhand.errors import DataError, SpecError, unknown
from evenhand.runner.progress import Progress, Silent
from evenhand.writing import destination, packed_writer

UNKNOWN = "<UNK>"
LEAST = {"wikipedia": 11, "tweets": 10}
"""A token is kept if it occurs at least this often: the released code's two cut-offs."""


@dataclass(frozen=True)
class Cleaned:
    """What cleaning found: lines and tokens written, distinct tokens kept, <UNK> among tokens."""

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
            (see `evenhand.corpora.tweets`; one tweet is one line).
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
    cut = tokenizer(kind, "nltk" if as_published else tokens)
    dropped: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    file = destination(target)
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.parent if file is not None else None
    with tempfile.TemporaryDirectory(prefix=".clean-", dir=beside) as folder:
        draft = Path(folder) / "tokens.txt"
        lines = _write_tokens(_texts(corpus, kind, dropped), cut, kind, draft, counts)
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
    cut: Callable[[str], list[str]],
    kind: str,
    draft: Path,
    counts: Counter[str],
) -> int:
    """Write the tokens of every text, count them, and give the number of lines."""
    lines = 0
    with open(draft, "w", encoding="utf-8", newline="\n") as held:
        for text in texts:
            line = cut(text)
            if kind == "wikipedia":
                line = [token.lower() for token in line]
            if line:
                counts.update(line)
                held.write(" ".join(line) + "\n")
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
    """Write the final file and give the number of tokens replaced."""
    keep = {token for token, n in counts.items() if n >= least}
    progress.start("clean (lines)", lines, 0)
    with packed_writer(target) as out, open(draft, encoding="utf-8", newline="\n") as held:
        out.write(opening)
        for number, line in enumerate(held, start=1):
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

"""Wrong answers nobody wrote: Algorithm 1 of SODAPOP, level by level, and as it was released.

    Gen(x, 1): mask each word of x in turn, fill it with the M best fills
    Gen(x, k): Gen(x', k - 1) for every x' of Gen(x, 1), all together

Breadth-first over all jobs at once: each distinct masked text is filled once, one batch per level.
When at most N answers are kept, only as many masks are filled as are needed for them, drawn with
a seed, so that cost follows what is kept and not what could be written.

The released program decodes the ten pieces as one string and splits it on spaces, so that the first
element is empty when the best piece begins a word, pieces that continue a word are glued to the one
before, and the tenth is lost. It then reads the new answer as the last words of the whole text, so
that a deleted word lets the prompt leak in. `neighbours` keeps this, to repeat published numbers.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenhand.probes.base import Asker
from evenhand.requests import MASK, FillMask
from evenhand.words.social_iqa import Context

Words = tuple[str, ...]
CONTINUES = "##"
SPARE_LAST = 1.25
SPARE_BETWEEN = 2.0
ROUNDS = 4


@dataclass(frozen=True)
class Generation:
    """How distractors are made.

    Attributes:
        distance: k, how many words are replaced at most.
        fills: M, how many fills each mask takes.
        keep: N, how many distractors a job keeps at most (None: all).
        whole_words: drop fills that are punctuation, unknown or parts of words, and distractors
            that are empty, punctuation only, unchanged or the right answer.
    """

    distance: int = 3
    fills: int = 10
    keep: int | None = 10_000
    whole_words: bool = True

    @property
    def asked(self) -> int:
        """Fills to ask for: some are dropped."""
        return 2 * self.fills if self.whole_words else self.fills


def split_words(answer: str) -> Words:
    """Words of an answer, punctuation and n't on their own.

    >>> split_words("a close friend, isn't it")
    ('a', 'close', 'friend', ',', 'is', "n't", 'it')
    """
    text = re.sub(r"(?i)(\w)(n't)\b", r"\1 \2", answer)
    text = re.sub(r"('(?:s|re|ve|ll|d|m))(?!\w)", r" \1", text)
    return tuple(re.sub(r"([.,!?;:()\"])", r" \1 ", text).split())


class Filler:
    """Fills masks through one asker, each distinct text once.

    Args:
        pieces: give the best pieces as they are (as released).
    """

    def __init__(self, ask: Asker, settings: Generation, *, pieces: bool = False) -> None:
        self._ask = ask
        self._settings = settings
        self._pieces = pieces
        self._known: dict[str, tuple[str, ...]] = {}
        self.asked = 0

    def __call__(self, texts: Iterable[str], label: str = "") -> None:
        """Have the fills of these texts ready."""
        wanted = [t for t in dict.fromkeys(texts) if t not in self._known]
        if not wanted:
            return
        scores = self._ask(FillMask(wanted, top=self._settings.asked), label)
        for text, fills in zip(wanted, scores["fills"]):
            self._known[text] = self._kept(fills)
        self.asked += len(wanted)

    def of(self, text: str) -> tuple[str, ...]:
        return self._known[text]

    def forget(self) -> None:
        """Drop the memory (texts of another context never come back)."""
        self._known.clear()

    def _kept(self, fills: Sequence[str]) -> tuple[str, ...]:
        if self._pieces:
            return tuple(fills[: self._settings.fills])
        if not self._settings.whole_words:
            return tuple(f.removeprefix(CONTINUES) for f in fills[: self._settings.fills])
        good = [f for f in fills if is_word(f)]
        return tuple(dict.fromkeys(good))[: self._settings.fills]


def is_word(fill: str) -> bool:
    """Whether a fill is a word of its own: letters or digits, no part of a word, not unknown.

    >>> [f for f in ("kind", "##ly", ".", "[UNK]", "well-known", "") if is_word(f)]
    ['kind', 'well-known']
    """
    if fill.startswith((CONTINUES, "[", "<")) or " " in fill:
        return False
    return any(c.isalnum() for c in fill)


@dataclass
class Job:
    """One context with a name in it, on its way through the levels."""

    filled: Context
    rng: np.random.Generator
    words: Words
    parents: list[Words] = field(default_factory=list)
    waiting: list[Words] = field(default_factory=list)
    found: dict[Words, None] = field(default_factory=dict)

    @classmethod
    def start(cls, filled: Context, name: str, seed: int) -> Job:
        raw = hashlib.sha256(f"{seed}|{filled.id}|{name}|{filled.context}".encode()).digest()
        rng = np.random.default_rng(np.frombuffer(raw, np.uint32))
        words = split_words(filled.answer)
        return cls(filled, rng, words, [words])

    def text(self, masked: Words) -> str:
        return f"{self.filled.context} {self.filled.prompt} {' '.join(masked)}"

    def masks(self) -> list[Words]:
        """Every parent with each of its words masked, each distinct result once, in order."""
        made = {(*p[:i], MASK, *p[i + 1 :]) for p in self.parents for i in range(len(p))}
        return sorted(made)


def generate(
    filled: Sequence[tuple[str, Context]], fill: Filler, settings: Generation, seed: int
) -> list[list[str]]:
    """Distractors of each (name, context with the name in it), sorted.

    Cost: at most about 1.25 N / M fills at the last level and 2 N / M at each level before, or
    all distinct masks when there are fewer.
    """
    jobs = [Job.start(context, name, seed) for name, context in filled]
    for level in range(1, settings.distance + 1):
        last = level == settings.distance
        limit = _limit(settings, SPARE_LAST if last else SPARE_BETWEEN)
        for job in jobs:
            masks = job.masks()
            order = job.rng.permutation(len(masks)) if len(masks) > limit else range(len(masks))
            job.waiting = [masks[i] for i in order]
            job.found = {}
        _advance(jobs, fill, limit, f"fill masks {level}/{settings.distance}")
        wanted = settings.keep or 0
        for _ in range(ROUNDS if last else 0):
            short = [j for j in jobs if j.waiting and len(_kept(j, settings)) < wanted]
            if not short:
                break
            _advance(short, fill, max(8, limit // 3), "fill more masks")
        for job in jobs:
            job.parents = sorted(job.found)
    return [_chosen(job, settings) for job in jobs]


def _limit(settings: Generation, spare: float) -> int:
    if settings.keep is None:
        return 1 << 62
    return max(16, int(spare * settings.keep / settings.fills) + 1)


def _advance(jobs: Sequence[Job], fill: Filler, limit: int, label: str) -> None:
    """Fill the next masks of every job."""
    taken = [(job, job.waiting[:limit]) for job in jobs]
    fill((job.text(m) for job, masks in taken for m in masks), label)
    for job, masks in taken:
        job.waiting = job.waiting[limit:]
        for masked in masks:
            at = masked.index(MASK)
            for word in fill.of(job.text(masked)):
                job.found[(*masked[:at], word, *masked[at + 1 :])] = None


def _kept(job: Job, settings: Generation) -> list[str]:
    """The job's distractors as texts, without those that are none."""
    texts = (" ".join(words) for words in job.found)
    if not settings.whole_words:
        return list(texts)
    answer = " ".join(job.words).lower()
    return [t for t in texts if t.lower() != answer and any(c.isalnum() for c in t)]


def _chosen(job: Job, settings: Generation) -> list[str]:
    texts = sorted(_kept(job, settings))
    if settings.keep is None or len(texts) <= settings.keep:
        return texts
    picked = job.rng.choice(len(texts), size=settings.keep, replace=False)
    return [texts[i] for i in sorted(picked)]


RELEASED_SEED = 10
_CLEAN_UP = (
    (" .", "."),
    (" ?", "?"),
    (" !", "!"),
    (" ,", ","),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" 's", "'s"),
    (" 've", "'ve"),
    (" 're", "'re"),
)


def decoded_together(fills: Sequence[str]) -> list[str]:
    """What splitting the jointly decoded pieces gives.

    >>> decoded_together(["kind", "##of", "."])
    ['', 'kindof.']
    """
    text = "".join(f[len(CONTINUES) :] if f.startswith(CONTINUES) else f" {f}" for f in fills)
    for before, after in _CLEAN_UP:
        text = text.replace(before, after)
    return text.split(" ")[: len(fills)]


def word_tokens(text: str) -> list[str]:
    """Words and punctuation much as NLTK's word_tokenize has them.

    A full stop is a token of its own where a space or the end of the text follows.

    >>> word_tokens("Tia is very kind. Bo isn't, of course.")
    ['Tia', 'is', 'very', 'kind', '.', 'Bo', 'is', "n't", ',', 'of', 'course', '.']
    """
    text = re.sub(r"([,;:?!\"()])", r" \1 ", text)
    text = re.sub(r"(?i)(\w)(n't)\b", r"\1 \2", text)
    text = re.sub(r"(\w)('(?:s|re|ve|ll|d|m))\b", r"\1 \2", text)
    return re.sub(r"(?<=[^\s.])\.(?=\s|$)", " .", text).split()


def neighbours(filled: Sequence[Context], fill: Filler, distance: int) -> list[set[str]]:
    """The released set of distractors of each context, unfiltered."""
    reached: list[set[str]] = [set() for _ in filled]
    edge = [{" ".join(word_tokens(c.answer))} for c in filled]
    for level in range(1, distance + 1):
        texts = {
            _masked(context, words, i)
            for context, answers in zip(filled, edge)
            for answer in answers
            for words in [word_tokens(answer)]
            for i in range(len(words))
        }
        fill(sorted(texts), f"fill masks {level}/{distance}")
        for place, context in enumerate(filled):
            edited = {new for answer in edge[place] for new in _one_edit(context, answer, fill)}
            edge[place] = edited - reached[place]
            reached[place] |= edited
    return reached


def _masked(context: Context, words: Sequence[str], at: int) -> str:
    shown = " ".join([*words[:at], MASK, *words[at + 1 :]])
    return f"{context.context} {context.prompt} {shown}"


def _one_edit(context: Context, answer: str, fill: Filler) -> list[str]:
    words = word_tokens(answer)
    edits = []
    for i in range(len(words)):
        text = _masked(context, words, i)
        for word in decoded_together(fill.of(text)):
            whole = word_tokens(text.replace(MASK, word))
            edits.append(" ".join(whole[-len(words) :]))
    return edits


def shuffled(found: set[str], keep: int) -> list[str]:
    """The released order: shuffled with seed 10, an even number of at most `keep`.

    The released program shuffles the order of a hash set, which differs from run to run; here it
    is sorted first.
    """
    texts = sorted(found)
    random.Random(RELEASED_SEED).shuffle(texts)
    return texts[: min(keep, len(texts) - len(texts) % 2)]

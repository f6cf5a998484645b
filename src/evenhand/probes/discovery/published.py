"""Algorithm 1 as released: the fills decoded together, the answer cut off the end again.

Kept to repeat published numbers. The released program decodes the ten pieces as one string and
splits it on spaces, so that the first element is empty when the best piece begins a word, pieces
that continue a word are glued to the one before, and the tenth is lost. It then reads the new
answer as the last words of the whole text, so that a deleted word lets the prompt leak in.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from evenhand.probes.discovery.generate import CONTINUES, Filler
from evenhand.requests import MASK
from evenhand.words.social_iqa import Context

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
    found: list[set[str]] = [set() for _ in filled]
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
            made = {new for answer in edge[place] for new in _one_edit(context, answer, fill)}
            edge[place] = made - found[place]
            found[place] |= made
    return found


def _masked(context: Context, words: Sequence[str], at: int) -> str:
    shown = " ".join([*words[:at], MASK, *words[at + 1 :]])
    return f"{context.context} {context.prompt} {shown}"


def _one_edit(context: Context, answer: str, fill: Filler) -> list[str]:
    words = word_tokens(answer)
    made = []
    for i in range(len(words)):
        text = _masked(context, words, i)
        for word in decoded_together(fill.of(text)):
            whole = word_tokens(text.replace(MASK, word))
            made.append(" ".join(whole[-len(words) :]))
    return made


def shuffled(found: set[str], keep: int) -> list[str]:
    """The released order: shuffled with seed 10, an even number of at most `keep`.

    The released program shuffles the order of a hash set, which differs from run to run; here it
    is sorted first.
    """
    texts = sorted(found)
    random.Random(RELEASED_SEED).shuffle(texts)
    return texts[: min(keep, len(texts) - len(texts) % 2)]

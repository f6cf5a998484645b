"""Filling a mask with a causal language model: proposals from the left, judged in full.

A causal model sees only what stands before the mask. Its likeliest next words are taken as
proposals, and each is then judged by the probability of itself and of everything after it:

    score(w) = log P(w | left) + log P(right | left, w)

With an empty right side this is the model's own next-word ranking.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evenhand.errors import DataError
from evenhand.requests import MASK, Column, FillMask

if TYPE_CHECKING:
    from evenhand.models.adapters.causal import CausalModel

PROPOSALS = 3
"""Proposals per fill asked for."""


def split_at_mask(text: str) -> tuple[str, str]:
    """What stands before and after the one mask; the space before it belongs to the word.

    >>> split_at_mask("Tia is a <mask> person")
    ('Tia is a', ' person')
    """
    if text.count(MASK) != 1:
        raise DataError(
            f"mask request: {text!r} has {text.count(MASK)} masks; exactly one {MASK} is needed."
        )
    left, right = text.split(MASK)
    return left.rstrip(" "), right


def prepare(requests: FillMask) -> list[tuple[str, str]]:
    """Both sides of every mask."""
    return [split_at_mask(text) for text in requests.text]


def fill(
    model: CausalModel, requests: FillMask, sides: Sequence[tuple[str, str]]
) -> dict[str, Column]:
    """The best fills of each text: whole words, scored in full context."""
    lefts = list(dict.fromkeys(left for left, _ in sides))
    proposed = dict(zip(lefts, _proposals(model, lefts, PROPOSALS * requests.top)))
    prefixes, endings, owners = [], [], []
    for row, (left, right) in enumerate(sides):
        for word in proposed[left]:
            prefixes.append(left)
            endings.append(f" {word}{right}" if left else f"{word}{right}")
            owners.append(row)
    logprob, _ = model._score(model._continuations(prefixes, endings))
    ranked: list[list[tuple[float, str]]] = [[] for _ in sides]
    for owner, ending_score, word in zip(
        owners, logprob, (w for left, _ in sides for w in proposed[left])
    ):
        ranked[owner].append((-float(ending_score), word))
    fills, scores = [], []
    for rows in ranked:
        best = sorted(rows)[: requests.top]
        fills.append([word for _, word in best])
        scores.append([-cost for cost, _ in best])
    return {"fills": fills, "logprobs": scores}


def _proposals(model: CausalModel, lefts: Sequence[str], size: int) -> list[list[str]]:
    """The likeliest next words after each text: pieces that begin a word and are one."""
    found: list[list[str]] = [[] for _ in lefts]

    def keep(logits: Any, which: Any, owners: Any, steps: Any) -> None:
        best = logits.topk(min(4 * size, logits.shape[-1])).indices.tolist()
        for owner, row in zip(owners.tolist(), which.tolist()):
            words = (_word(model, piece, not lefts[owner]) for piece in best[row])
            found[owner] = list(dict.fromkeys(w for w in words if w))[:size]

    model._visit(model._last_tokens(lefts), keep)
    return found


def _word(model: CausalModel, piece: int, opens: bool) -> str:
    """A piece as a word, or nothing when it continues one or is no word."""
    text = str(model.tokenizer.decode([piece]))
    starts = text.startswith(" ") or opens
    word = text.strip()
    good = starts and word and " " not in word and all(c.isalnum() or c in "-'" for c in word)
    return word if good and any(c.isalpha() for c in word) else ""

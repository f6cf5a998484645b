"""Which of these? asked of a causal language model, in one of three ways.

    continuation  the likelihood of each option as the answer (or the beginning of it)
    letters       the options are listed, A to Z, and the letter's probability counts
    answers       answers are sampled and read; what declines or cannot be read is counted

With a chat template the prompt is the user's turn and the option the assistant's; else they are one
text.
"""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase as LETTERS
from typing import TYPE_CHECKING

import numpy as np

from evenhand.errors import DataError
from evenhand.models.choosing import likelihoods
from evenhand.requests import Choose, Column, Generate
from evenhand.words.reading_answers import tallied

if TYPE_CHECKING:
    from evenhand.models.adapters.causal import CausalModel
    from evenhand.models.adapters.causal_pass import Wanted

RUNGS = {
    ("continuation", True): "chat continuation",
    ("continuation", False): "continuation",
    ("letters", True): "letters",
    ("letters", False): "letters",
    ("answers", True): "free text",
    ("answers", False): "free text",
}
"""By way of asking, and whether there is a chat template."""
ANSWER_TOKENS = 24
LIST = "\n{options}\nAnswer with the letter only."


def prepare(model: CausalModel, requests: Choose) -> Wanted | None:
    """The texts to score; None where answers are sampled."""
    if model.way == "answers":
        return None
    listed = model.way == "letters"
    prompts = conversations(model, requests, [lettered(row) for row in requests.listed if listed])
    before = " " if model.chat is None or requests.opening else ""
    texts = [
        f"{before}{option}"
        for row in requests.listed
        for option in (LETTERS[: len(row)] if listed else row)
    ]
    sizes = [len(row) for row in requests.listed]
    return model._spans([p for p, size in zip(prompts, sizes) for _ in range(size)], texts)


def answer(requests: Choose, logprob: np.ndarray, count: np.ndarray) -> dict[str, Column]:
    """Probabilities of the options, their mass, what was refused and what could not be read.

    Args:
        logprob, count: summed log-probability of each option, and its number of tokens.
    """
    sizes = [len(row) for row in requests.listed]
    return likelihoods(logprob, count, sizes, per_token=requests.per_token).columns(sizes)


def conversations(model: CausalModel, requests: Choose, more: Sequence[str] = ()) -> list[str]:
    """Each prompt as the model reads it, up to where the answer begins."""
    if model.chat is None:
        return requests.as_text(more)
    endings = more or [""] * len(requests)
    return [
        model.chat.rendered(prompt + end, requests.opening)
        for prompt, end in zip(requests.prompt, endings)
    ]


def lettered(options: Sequence[str]) -> str:
    """The options as a list with letters, and what to do with it.

    >>> lettered(["Ann", "Bo"])
    '\\nA. Ann\\nB. Bo\\nAnswer with the letter only.'
    """
    if len(options) > len(LETTERS):
        raise DataError(f"{len(options)} options in one question: letters go up to Z, so 26.")
    return LIST.format(options="\n".join(f"{k}. {o}" for k, o in zip(LETTERS, options)))


def sampled(model: CausalModel, requests: Choose) -> dict[str, Column]:
    """Shares of sampled answers that take each option, decline, or cannot be read."""
    n = requests.samples
    texts = [text for text in conversations(model, requests) for _ in range(n)]
    draws = [str(d) for d in range(n)] * len(requests)
    asked = Generate(texts, draws, max_new_tokens=ANSWER_TOKENS, seed=requests.seed)
    said = [requests.opening + t for t in model.sampled(asked, model._tokens(texts))["text"]]
    rows = [tallied(said[k * n : (k + 1) * n], row) for k, row in enumerate(requests.listed)]
    return {
        "probabilities": [shares for shares, _, _ in rows],
        "mass": np.asarray([sum(shares) for shares, _, _ in rows]),
        "refused": np.asarray([declined for _, declined, _ in rows]),
        "unread": np.asarray([unread for _, _, unread in rows]),
    }

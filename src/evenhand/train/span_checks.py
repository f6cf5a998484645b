"""What can be wrong before a span model is trained, said in one sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import DataError, ModelError, SpecError
from evenhand.train.common import load_base
from evenhand.train.squad import Example

if TYPE_CHECKING:
    from evenhand.train.span import SpanTraining


def load_encoder(torch: Any, source: str, weights: str) -> tuple[Any, Any]:
    """Tokenizer of `source` and span model of `weights`, or an error that names the model."""
    auto = "AutoModelForQuestionAnswering"
    tokenizer, model = load_base("span", auto, source, weights=weights, dtype=torch.float32)
    if not tokenizer.is_fast:
        raise ModelError(f"train span: the tokenizer of {source!r} gives no character offsets.")
    return tokenizer, model


def well_placed(examples: Sequence[Example]) -> tuple[list[Example], list[Example]]:
    """Examples whose first answer stands where `answer_start` says, and the others.

    >>> good = Example("1", "Who?", "Mary met John.", ("John",), 9)
    >>> wrong = Example("2", "Who?", "Mary met John.", ("John",), 2)
    >>> [[e.id for e in part] for part in well_placed([good, wrong])]
    [['1'], ['2']]
    """
    good: list[Example] = []
    wrong: list[Example] = []
    for e in examples:
        answer = e.answers[0]
        found = answer and e.start >= 0 and e.context.startswith(answer, e.start)
        (good if found else wrong).append(e)
    if not good:
        first = wrong[0]
        raise DataError(
            f"train span: no answer stands where answer_start says; question {first.id!r}: "
            f"{first.answers[0]!r} is not at character {first.start} of its context."
        )
    return good, wrong


def check_windows(
    tokenizer: Any, model: Any, recipe: SpanTraining, examples: Sequence[Example]
) -> None:
    """Refuse windows that the model cannot read, or that a question fills."""
    reads = getattr(model.config, "max_position_embeddings", None) or recipe.length
    limit = min(int(reads), int(tokenizer.model_max_length))
    if recipe.length > limit:
        raise SpecError(
            f"train span: --length {recipe.length} is more than the {limit} tokens this model can "
            f"read. Choose at most: --length {limit}"
        )
    asked = list(dict.fromkeys(e.question for e in examples))
    sizes = [len(ids) for ids in tokenizer(asked, add_special_tokens=False)["input_ids"]]
    longest = int(np.argmax(sizes))
    room = recipe.length - sizes[longest] - tokenizer.num_special_tokens_to_add(pair=True)
    if room <= recipe.stride:
        owner = next(e.id for e in examples if e.question == asked[longest])
        raise DataError(
            f"train span: question {owner!r} has {sizes[longest]} tokens, which leaves {room} of "
            f"--length {recipe.length} for the context; windows must be longer than what they "
            f"share (--stride {recipe.stride}). Choose a larger --length, a smaller --stride, or "
            "leave the question out."
        )

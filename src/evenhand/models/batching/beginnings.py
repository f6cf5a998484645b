"""A beginning that all sequences share, run once: its keys and values are kept, not its tokens.

A system prompt of 500 tokens before a million short questions would else be run a million times,
or once in every packed row.
"""

from __future__ import annotations

from typing import Any

from evenhand.models.batching.packing import Ints, Ragged


def common_beginning(sequences: Ragged, asked: Ints) -> int:
    """How many tokens all sequences begin with, none of them asked about.

    Args:
        asked: the first position asked about of each.

    >>> import numpy as np
    >>> common_beginning(Ragged.of([[1, 2, 3], [1, 2, 4]]), np.array([2, 1]))
    1
    """
    if not len(asked):
        return 0
    tokens, starts = sequences.tokens, sequences.starts
    limit = int(min(asked.min(), sequences.sizes.min() - 1))
    at = 0
    while at < limit and (tokens[starts + at] == tokens[starts[0] + at]).all():
        at += 1
    return at


def run_once(torch: Any, model: Any, tokens: Ints, device: Any) -> Any:
    """Keys and values of a beginning, to be given to `model` with each batch that follows it.

    Batches do not add to it, so one beginning serves any number of them.
    """
    held = _kept()()
    ids = torch.as_tensor(tokens[None], device=device)
    model.base_model(input_ids=ids, past_key_values=held, use_cache=True)
    held.closed = True
    return held


def repeated(begun: Any, rows: int) -> Any:
    """The same beginning for this many texts, as a cache of their own that grows with them."""
    import transformers

    cache = transformers.DynamicCache()
    for number, layer in enumerate(begun.layers):
        cache.update(*(t.expand(rows, -1, -1, -1) for t in (layer.keys, layer.values)), number)
    return cache


def _kept() -> Any:
    import transformers

    class Kept(transformers.DynamicCache):  # type: ignore[misc]
        closed = False

        def update(self, keys: Any, values: Any, layer: int, *rest: Any, **more: Any) -> Any:
            if not self.closed:
                return super().update(keys, values, layer, *rest, **more)
            old = self.layers[layer]
            return tuple(
                _joined(before, new) for before, new in ((old.keys, keys), (old.values, values))
            )

    return Kept


def _joined(before: Any, new: Any) -> Any:
    import torch

    return torch.cat([before.expand(len(new), -1, -1, -1), new], dim=-2)

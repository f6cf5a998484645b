"""Layers that run compiled while a large shard is scored, and as they are at all other times.

Half of a plain pass over a model of 1 B parameters goes into norms, rotations and activations that
each read and write everything once; compiled, they are fused. Compiling takes about ten seconds, so
it is done for large shards only. Which ones is a matter of their size alone: a run that is resumed
scores a shard in the same way as one that was never stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

LARGE = 8_192
"""Rows of a shard from which its layers run compiled: the least a GPU gets of a long run."""

_KEPT: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


@contextlib.contextmanager
def layers_compiled(torch: Any, model: Any) -> Iterator[None]:
    """Inside: the layers of a Hugging Face model run compiled, for batches of any shape.

    What cannot be compiled runs as it is. The layers are given back unchanged.
    """
    layers = [m for m in getattr(model.base_model, "layers", ()) if "forward" not in vars(m)]
    for layer in layers:
        if layer not in _KEPT:
            _KEPT[layer] = torch.compile(type(layer).forward, dynamic=True)
        layer.forward = _KEPT[layer].__get__(layer)
    try:
        with torch._dynamo.config.patch(suppress_errors=True, recompile_limit=64):
            yield
    finally:
        for layer in layers:
            del layer.forward

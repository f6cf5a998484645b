"""Batches side by side on a processor: each core has a batch of its own.

Two cores that share every multiplication wait for each other some hundred times a layer; two
batches at once never do. A lane is the model again, with the same weights in memory: what is hooked
to one while it runs (positions asked for) does not meet the other. Batches do not depend on the
number of lanes, so scores do not either.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from threading import Lock
from types import MethodType
from typing import Any
from weakref import WeakKeyDictionary

LANE_TOKENS = 512
"""Tokens of a batch: enough to multiply at full rate, and what a core works on stays near it."""
MOST = 8
"""Lanes at most: each holds the logits of a batch."""


def in_lanes(model: Any, batches: Sequence[Any], run: Callable[[Any, Any, Any], None]) -> None:
    """Call `run(lane, batch, lock)` for every batch, several at once where that pays.

    Args:
        model: an adapter whose `torch`, `model` (the Hugging Face model) and `threads` are used.
        run: what it does to anything that lanes share it does under the lock.
    """
    lock, torch, threads = Lock(), model.torch, model.threads
    lanes = _lanes(model, min(len(batches), threads, MOST))
    if len(lanes) < 2:
        for batch in batches:
            run(model, batch, lock)
        return
    free: SimpleQueue[Any] = SimpleQueue()
    for lane in lanes:
        free.put(lane)
    inference = torch.is_inference_mode_enabled()

    def one(batch: Any) -> None:
        lane = free.get()
        try:
            with torch.inference_mode(inference):
                run(lane, batch, lock)
        finally:
            free.put(lane)

    with _workers(torch, len(lanes), threads) as pool:
        for done in [pool.submit(one, batch) for batch in batches]:
            done.result()


def _lanes(model: Any, count: int) -> list[Any]:
    """The model and its twins; the model alone where a twin would not be a model of its own.

    That is where something hooked to it cannot be copied, or somebody put a function in the place
    of a `forward`: it is copied by reference, so that every lane would call the original. Methods
    and partial functions are copied with the module that they hold.
    """
    put = (vars(module).get("forward") for module in model.model.modules())
    if any(f is not None and not isinstance(f, MethodType | partial) for f in put):
        return [model]
    try:
        return [model, *(_beside(model, other) for other in twins(model.model, count - 1))]
    except (TypeError, RuntimeError):
        return [model]


def _beside(model: Any, twin: Any) -> Any:
    other = copy.copy(model)
    other.model = twin
    return other


def twins(module: Any, count: int) -> list[Any]:
    """This many copies of a module that have its tensors, and the hooks that it has now.

    Those of a module without hooks are kept, as long as it has the same tensors.
    """
    tensors = {id(t): t for t in (*module.parameters(), *module.buffers())}
    hooked = any(m._forward_hooks or m._forward_pre_hooks for m in module.modules())
    known, kept = _KEPT.get(module, (set(), []))
    kept = kept if known == tensors.keys() and not hooked else []
    while len(kept) < count:
        kept.append(copy.deepcopy(module, dict(tensors)))
    if not hooked:
        _KEPT[module] = (set(tensors), kept)
    return kept[:count]


_KEPT: WeakKeyDictionary[Any, tuple[set[int], list[Any]]] = WeakKeyDictionary()


@contextlib.contextmanager
def _workers(torch: Any, count: int, threads: int) -> Iterator[ThreadPoolExecutor]:
    """Threads that share the cores out among them; on an error what waits is not begun."""
    each = max(1, threads // count)
    pool = ThreadPoolExecutor(count, initializer=torch.set_num_threads, initargs=(each,))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)  # the last call holds for threads that are yet to come

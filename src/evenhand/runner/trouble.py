"""When the device has too little memory, or stops answering.

Out of memory: cached blocks are given back and the shard is asked again as it was (memory may have
been short for a moment, and then nothing changes); else the token budget of a batch is halved until
it fits; later shards that do not fit start from what fitted last. Scores keep their key: batch
make-up moves them by about 1e-5, which is why a run that met this says so (`smaller_batches` in
its counts).

A lost device: a broken device context never heals inside a process, so the run stops with the
command that goes on. Finished shards are on disk.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from evenhand.errors import ModelError
from evenhand.models.protocol import Model
from evenhand.requests import Column, Requests

LEAST_TOKENS = 16
NO_MEMORY = re.compile(
    r"out of memory|can't allocate memory|not enough memory"
    r"|could not create a memory object|could not (create|execute) a primitive(?! desc)"
)
"""What torch says: CUDA and MPS, its processor allocators, and oneDNN, which gives a failed
allocation no other name (tried with torch 2.13 below an address-space limit). A primitive
descriptor that cannot be made is an operation it does not have, not memory."""
LOST = (
    "CUDA error",
    "device-side assert",
    "NCCL error",
    "HIP error",
    "MPS backend",
    "CUDNN_STATUS",
)
_fitted: dict[int, int] = {}
"""Token budget that fitted last, by model object."""
Finish = Callable[[], dict[str, Column]]


def begin(model: Model, requests: Requests, prepared: Any, told: Any) -> Finish:
    """Start on a shard; the function given back waits for the answers.

    Args:
        requests, prepared: the rows, and what the model made of them ahead.
        told: counts whose `smaller_batches` is raised when the shard needed smaller batches.
    """
    try:
        finish = model.begin(requests, prepared)
    except (RuntimeError, MemoryError) as error:
        columns = recovered(model, requests, error, told)
        return lambda: columns

    def wait() -> dict[str, Column]:
        try:
            return finish()
        except (RuntimeError, MemoryError) as error:
            return recovered(model, requests, error, told)

    return wait


def recovered(model: Model, requests: Requests, error: Exception, told: Any) -> dict[str, Column]:
    """The shard asked again in smaller and smaller batches, or a clear error."""
    if not is_out_of_memory(error):
        raise told_apart(model, error) from error
    usual = model.token_budget
    tokens = _fitted.get(id(model), usual)
    while tokens >= LEAST_TOKENS:
        model.release()
        try:
            with smaller(model, tokens):
                columns = model.answer(requests, model.prepare(requests))
        except (RuntimeError, MemoryError) as again:
            if not is_out_of_memory(again):
                raise told_apart(model, again) from again
            error, tokens = again, tokens // 2
            continue
        if tokens < usual:
            told.smaller_batches += 1
            _fitted[id(model)] = tokens
        return columns
    longest = max((sum(map(len, row)) for row in requests.rows()), default=0)
    raise ModelError(
        f"model {model.name!r}: not enough memory even for one input at a time (the longest has "
        f"{longest} characters): {first_line(error)} Finished shards are kept. Free memory, or use "
        "a machine with more or a smaller dtype, then continue with: evenhand resume RUN"
    ) from error


@contextlib.contextmanager
def smaller(model: Model, tokens: int) -> Iterator[None]:
    """Inside: batches hold at most this many tokens; after it the model is as it was."""
    usual = model.token_budget
    model.token_budget = min(usual, tokens)
    try:
        yield
    finally:
        model.token_budget = usual


def told_apart(model: Model, error: Exception) -> Exception:
    """A message for a lost device; any other error stays what it is."""
    if not is_lost_device(error):
        return error
    return ModelError(
        f"model {model.name!r}: the device stopped answering ({first_line(error)}). A broken "
        "device context does not heal inside a process; finished shards are kept. Continue in a "
        "new one with: evenhand resume RUN   (or on the processor: --device cpu in a new run)"
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory ran out, on whatever device.

    >>> is_out_of_memory(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    True
    """
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    return isinstance(error, RuntimeError) and bool(NO_MEMORY.search(str(error)))


def is_lost_device(error: BaseException) -> bool:
    """Whether the device, not the work, is what failed.

    >>> is_lost_device(RuntimeError("CUDA error: device-side assert triggered"))
    True
    >>> is_lost_device(RuntimeError("shapes do not fit"))
    False
    """
    return isinstance(error, RuntimeError) and any(sign in str(error) for sign in LOST)


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{lines[0].rstrip('.')}." if lines else f"{type(error).__name__}."

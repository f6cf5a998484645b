"""The mixture of two next-token distributions in two sweeps over each row, on a processor.

A decoding step at batch 64 mixes three million probabilities. Done by tensor operations that is
ten passes, three of them exponentials and logarithms, and costs 3.5 % of the step. `mixing_loops`
does it in two sweeps that stay in cache, compiled by numba, in a third of the time.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
ALONE = 1 << 19  # numbers below which a second thread does not pay


@functools.cache
def sweep() -> Callable[..., None] | None:
    """The compiled sweep, or None where numba is missing or does not work.

    `sweep(own, moved, rows, shift, odds, means)` treats each row of `moved`: with own logits
    l = own[rows[i]] and powers of two d = moved[i],

        means[i] = sum 2^d e^l / sum e^l,        l += log(2^d + odds[i] means[i]),

    which are the log-probabilities of (1 - a) p* + a p_hat up to a constant for
    odds = (1 - a) / a. `shift` is the largest logit of the row in powers of two; |d| <= 126.
    """
    try:
        from evenhand.models.edits import mixing_loops

        made: Callable[..., None] = mixing_loops.sweep
        one = np.zeros((1, 1), np.float32)
        made(one, one.copy(), np.array([0]), one[0], np.ones(1), np.empty(1))
    except ImportError:
        return None
    except Exception as error:  # damaged machine code on disk, a numba that does not fit
        warnings.warn(
            f"numba does not work here ({type(error).__name__}: {error}), so mixtures are computed "
            f"by slower tensor operations. If its kept machine code is damaged, delete "
            f"{Path(__file__).parent / '__pycache__'}",
            stacklevel=2,
        )
        return None
    return made


@functools.cache
def _helpers(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="mixing")


def mix(
    own: Floats, moved: Floats, rows: Any, shift: Floats, odds: Any, threads: int = 1
) -> npt.NDArray[np.float64]:
    """Mix in place (see `sweep`) and give the means; several threads share the rows.

    >>> own, moved = np.log(np.float32([[0.75, 0.25]])), np.float32([[1.0, 0.0]])
    >>> mean = mix(own, moved, np.array([0]), np.float32([np.log2(0.75)]), np.array([1.0]))
    >>> bool(np.isclose(mean[0], 0.75 * 2 + 0.25))
    True
    >>> np.round(np.exp(own) / np.exp(own).sum(), 4)  # half of each: (0.75, 0.25), (6/7, 1/7)
    array([[0.8036, 0.1964]], dtype=float32)
    """
    run = sweep()
    assert run is not None, "numba is missing"
    means = np.empty(len(moved))
    if moved.size < ALONE or threads < 2:
        run(own, moved, rows, shift, odds, means)
        return means
    cuts = np.linspace(0, len(moved), threads + 1).astype(int)
    first, *others = (slice(low, high) for low, high in itertools.pairwise(cuts))
    parts = (moved, rows, shift, odds, means)
    waiting = [
        _helpers(threads - 1).submit(run, own, *(part[at] for part in parts)) for at in others
    ]
    run(own, *(part[first] for part in parts))
    for one in waiting:
        one.result()
    return means

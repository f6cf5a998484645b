"""Random numbers that belong to a draw: functions of seed, draw, step and token alone.

SplitMix64 (Steele, Lea and Flood 2014), used twice as a hash: integers that are the same on every
device and in every batch, made for a whole vocabulary at once.

    mix(z)   z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9      all modulo 2^64
             z = (z ^ z >> 27) * 0x94D049BB133111EB
             z ^ z >> 31
    start  = mix(key of (seed, draw) + (step + 1) * 0x9E3779B97F4A7C15)
    u      = (mix(start + (token + 1) * 0x9E3779B97F4A7C15) >> 11 + 1/2) / 2^53     in (0, 1)
    g      = -log(-log u)                                                           Gumbel

The token with the largest log p + g is a draw from p. Prompts that share a draw share g, so that
their texts differ through the model alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

GOLDEN, FIRST, SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def keys(torch: Any, seed: int, draws: Sequence[str], device: Any) -> Any:
    """A number for each draw: int64 [draws]."""
    raw = (hashlib.sha256(f"{seed}:{draw}".encode()).digest()[:8] for draw in draws)
    numbers = [int.from_bytes(digest, "little", signed=True) for digest in raw]
    return torch.tensor(numbers, dtype=torch.int64, device=device)


def uniforms(torch: Any, keys: Any, step: Any, size: int) -> Any:
    """Numbers between 0 and 1 for the tokens of a step, float64 [draws, size].

    Args:
        step: a number, or a tensor that holds one.

    >>> import torch
    >>> two = keys(torch, 0, ["a", "b"], "cpu")
    >>> bool((uniforms(torch, two, 3, 5)[1] == uniforms(torch, two[1:], 3, 9)[0, :5]).all())
    True
    """
    ahead = torch.as_tensor(step, device=keys.device) + 1
    start = _mixed(keys + ahead * _signed(GOLDEN))
    token = torch.arange(1, size + 1, device=keys.device, dtype=torch.int64)
    z = _mixed(start[:, None] + token * _signed(GOLDEN))
    return _shifted(z, 11).double().add_(0.5).mul_(2.0**-53)


def gumbel(torch: Any, keys: Any, step: Any, size: int) -> Any:
    """Gumbel noise, float32 [draws, size]."""
    return uniforms(torch, keys, step, size).log_().neg_().log_().neg_().float()


def _mixed(z: Any) -> Any:
    z = z.bitwise_xor_(_shifted(z, 30)).mul_(_signed(FIRST))
    z = z.bitwise_xor_(_shifted(z, 27)).mul_(_signed(SECOND))
    return z.bitwise_xor_(_shifted(z, 31))


def _shifted(z: Any, bits: int) -> Any:
    """z >> bits of an unsigned number: torch shifts the sign along."""
    return (z >> bits).bitwise_and_((1 << (64 - bits)) - 1)


def _signed(number: int) -> int:
    return number - (1 << 64) if number >= 1 << 63 else number

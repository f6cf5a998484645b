"""Attention of one new token per text to its prompt and its own tokens, as one GPU kernel.

No library at hand does it: kernels for one query expect one stretch of keys per row, so that a
prompt would have to be copied for each of its texts, and products of one row by a short matrix
leave most of the device idle. One program serves one head of one text:

    for blocks of the prompt's keys, then of the text's own keys:
        scores = q k ; running maximum, sum and weighted values (Milakov and Gimelshein 2018)

The number of own tokens is read from the device, so that a captured step can be replayed.
Importing this needs Triton, which comes with torch for CUDA.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

BLOCK, WARPS = 16, 1
"""Measured on an H200: 5 to 15 times as fast as matrix products, several warps being slower."""


@triton.jit  # type: ignore[untyped-decorator]
def _block(k_at, v_at, places, length, depth, q, top, total, found, scale, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    known = places < length
    at = places[:, None] * SIZE + depth[None, :]
    inside = known[:, None] & (depth < SIZE)[None, :]
    k = tl.load(k_at + at, mask=inside, other=0.0).to(tl.float32)
    v = tl.load(v_at + at, mask=inside, other=0.0).to(tl.float32)
    scores = tl.where(known, tl.sum(q[None, :] * k, 1) * scale, float("-inf"))
    higher = tl.maximum(top, tl.max(scores, 0))
    weights = tl.exp(scores - higher)
    less = tl.exp(top - higher)
    total = total * less + tl.sum(weights, 0)
    found = found * less + tl.sum(weights[:, None] * v, 0)
    return higher, total, found


@triton.jit  # type: ignore[untyped-decorator]
def _attend(  # type: ignore[no-untyped-def]
    q_at,
    pk_at,
    pv_at,
    ok_at,
    ov_at,
    lengths_at,
    step_at,
    out_at,
    draws,
    groups,
    width,
    longest,
    scale,
    WIDE: tl.constexpr,
    SIZE: tl.constexpr,
    SIZE_BLOCK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row, head = tl.program_id(0), tl.program_id(1)
    group = head // WIDE
    prompt = row // draws
    depth = tl.arange(0, SIZE_BLOCK)
    at = (row * groups * WIDE + head) * SIZE + depth
    q = tl.load(q_at + at, mask=depth < SIZE, other=0.0).to(tl.float32)
    top, total = -1e30, 0.0
    found = tl.zeros([SIZE_BLOCK], tl.float32)
    here = tl.arange(0, BLOCK)
    begin = (prompt * groups + group).to(tl.int64) * width * SIZE
    length = tl.load(lengths_at + prompt).to(tl.int32)
    for low in range(0, length, BLOCK):
        top, total, found = _block(
            pk_at + begin,
            pv_at + begin,
            low + here,
            length,
            depth,
            q,
            top,
            total,
            found,
            scale,
            SIZE,
        )
    begin = (row * groups + group).to(tl.int64) * longest * SIZE
    length = tl.load(step_at).to(tl.int32) + 1
    for low in range(0, length, BLOCK):
        top, total, found = _block(
            ok_at + begin,
            ov_at + begin,
            low + here,
            length,
            depth,
            q,
            top,
            total,
            found,
            scale,
            SIZE,
        )
    tl.store(out_at + at, (found / total).to(out_at.dtype.element_ty), mask=depth < SIZE)


def attended(
    query: Any,
    prompts: tuple[Any, Any],
    own: tuple[Any, Any],
    lengths: Any,
    step: Any,
    scale: float,
) -> Any:
    """What each text takes from its prompt and from its own first `step` + 1 tokens.

    Args:
        query: [rows, heads, size].
        prompts: keys and values [prompts, key heads, width, size]; rows of a prompt side by side.
        own: keys and values [rows, key heads, longest, size].
        lengths: tokens of each prompt, [prompts].
        step: a tensor with one number.
    """
    rows, heads, size = query.shape
    prompt_keys, prompt_values = (t.contiguous() for t in prompts)
    count, groups, width, _ = prompt_keys.shape
    query = query.contiguous()
    out = torch.empty_like(query)
    _attend[(rows, heads)](
        query,
        prompt_keys,
        prompt_values,
        *own,
        lengths,
        step,
        out,
        rows // count,
        groups,
        width,
        own[0].shape[2],
        scale,
        WIDE=heads // groups,
        SIZE=size,
        SIZE_BLOCK=triton.next_power_of_2(size),
        BLOCK=BLOCK,
        num_warps=WARPS,
    )
    return out

"""How much of the edited distribution a step takes: rules for alpha from the model's own logits.

eq8        sum of p*(w) q(w) / sum of p*(w) over the likely and bias-sensitive tokens
released   signed bias of the nucleus, with a dead zone and a cap (the released code)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.models.edits.head import AppliedEdit

NUCLEUS, DEAD_ZONE, CAP = 0.7, (-0.1, 0.15), 0.4  # of the released rule
BLOCK = 64


def alpha_eq8(torch: Any, logits: Any, applied: AppliedEdit) -> Any:
    """alpha_t = sum_V' p*(w) q(w) / sum_V' p*(w), V' = top-k(p*) n S (Liang et al., Eq. 8).

    q is ||proj_B e(w)|| / ||e(w)|| and lies in [0, 1], so alpha does too; 0 when V' is empty.
    """
    best, where = top_tokens(torch, logits, min(applied.edit.top, logits.shape[-1]))
    inside = applied.in_set[where]
    p = (best - best.max(-1, keepdim=True).values).exp() * inside
    total = p.sum(-1)
    value = (p * applied.q[where]).sum(-1) / total.clamp_min(1e-30)
    return torch.where(inside.any(-1) & (total > 0), value, torch.zeros_like(value)).clamp(0, 1)


def top_tokens(torch: Any, logits: Any, k: int) -> tuple[Any, Any]:
    """The k largest logits of each row and their places, by way of the maxima of blocks.

    The k largest lie in the k blocks with the largest maxima, so one pass finds the maxima and
    only k blocks are sorted: several times quicker than `topk` over a whole vocabulary.
    """
    rows, size = logits.shape
    whole = size // BLOCK * BLOCK
    if size < 4 * k * BLOCK:
        best, where = logits.topk(k, dim=-1, sorted=False)
        return best, where
    blocks = logits[:, :whole].unflatten(1, (-1, BLOCK))
    picked = blocks.amax(-1).topk(k, dim=-1, sorted=False).indices
    if whole < size:
        inside = blocks.gather(1, picked[..., None].expand(-1, -1, BLOCK)).reshape(rows, k * BLOCK)
        inside = torch.cat([inside, logits[:, whole:]], 1)
    else:  # whole blocks are copied, which is quicker
        first = torch.arange(rows, device=logits.device)[:, None] * blocks.shape[1]
        inside = logits.reshape(-1, BLOCK).index_select(0, (picked + first).flatten())
        inside = inside.view(rows, k * BLOCK)
    best, at = inside.topk(k, dim=-1, sorted=False)
    block = at // BLOCK
    place = picked.gather(1, block.clamp_max(k - 1)) * BLOCK + at % BLOCK
    return best, torch.where(block < k, place, whole + at - k * BLOCK) if whole < size else place


def alpha_released(torch: Any, logits: Any, applied: AppliedEdit) -> Any:
    """The released rule: signed bias of the nucleus, a dead zone, and a cap.

    bias = sum of p cos over the smallest set of tokens that reaches probability 0.7 (p
    renormalised); alpha = 0 if -0.1 <= bias <= 0.15, else min(|bias|, 0.4).
    """
    ordered, where = logits.sort(dim=-1, descending=True)
    p = ordered.softmax(-1)
    p = p * ((p.cumsum(-1) - p) < NUCLEUS)
    bias = (p * applied.q[where]).sum(-1) / p.sum(-1)
    quiet = (bias >= DEAD_ZONE[0]) & (bias <= DEAD_ZONE[1])
    return torch.where(quiet, torch.zeros_like(bias), bias.abs().clamp_max(CAP))

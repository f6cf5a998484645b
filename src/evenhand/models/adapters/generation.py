"""Sampling text with random numbers that belong to the draw, not to the batch.

Token t of draw r is argmax(log p + g) with Gumbel noise g that depends on (seed, r, t) only.
That is exact sampling from p, does not depend on which prompts share a batch, and gives paired
prompts (he/she) the same random numbers, so that their texts differ through the model alone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.batching.beginnings import common_beginning, repeated, run_once
from evenhand.requests import Column, Generate

if TYPE_CHECKING:
    from evenhand.models.adapters.causal import CausalModel


def sample(model: CausalModel, requests: Generate, prompts: list[list[int]]) -> dict[str, Column]:
    """One continuation per (prompt, draw), generated in padded batches with the KV cache.

    The beginning that all conversations share (a system prompt) is run once, and padding stands
    after it: tokens are [shared ...][padding][own ...].
    """
    torch = model.torch
    model.check_lengths([len(p) + requests.max_new_tokens for p in prompts], "prompt and its text")
    order = sorted(range(len(prompts)), key=lambda i: (-len(prompts[i]), i))
    ends, pad = model.ends, model.tokenizer.pad_token_id
    pad = (ends[0] if ends else 0) if pad is None else pad
    texts = [""] * len(prompts)
    counts = np.zeros(len(prompts), dtype=np.int32)
    size = max(1, model.token_budget // (len(prompts[order[0]]) + requests.max_new_tokens))
    at, begun = 0, None
    if model.chat is not None and model.begins_once:
        at = common_beginning(prompts, [range(len(p) - 1, len(p)) for p in prompts])
        begun = run_once(torch, model.model, prompts[0][:at], model.device) if at else None
    for low in range(0, len(order), size):
        rows = order[low : low + size]
        width = len(prompts[rows[0]])
        ids = torch.full((len(rows), width), pad)
        mask = torch.zeros_like(ids)
        ids[:, :at], mask[:, :at] = torch.tensor(prompts[0][:at], dtype=ids.dtype), 1
        for i, row in enumerate(rows):
            own = prompts[row][at:]
            ids[i, width - len(own) :] = torch.tensor(own)
            mask[i, width - len(own) :] = 1
        noise = _Draws(torch, requests, [requests.draw[r] for r in rows], width)
        with model.edited():
            made = model.model.generate(
                input_ids=ids.to(model.device),
                attention_mask=mask.to(model.device),
                max_new_tokens=requests.max_new_tokens,
                do_sample=False,
                num_beams=1,
                pad_token_id=pad,
                eos_token_id=ends or None,
                logits_processor=[noise],
                **({} if begun is None else {"past_key_values": repeated(begun, len(rows))}),
            )
        noise.check(model.name, model.dtype)
        for i, row in enumerate(rows):
            new = until(made[i, width:].tolist(), ends)
            texts[row] = model.tokenizer.decode(new, skip_special_tokens=True)
            counts[row] = len(new)
    return {"text": texts, "n_tokens": counts}


def prompt_tokens(model: CausalModel, requests: Generate) -> list[list[int]]:
    """Tokens before each text: an opening of the model's own, or a question put to it."""
    if requests.turn == "question" and model.chat:
        return model._tokens([model.chat.rendered(p) for p in requests.prompt])
    return model._text_tokens(requests.prompt)


def until(tokens: list[int], ends: list[int]) -> list[int]:
    """What stands before the first token that ends a text.

    >>> until([5, 6, 2, 2], [2, 3])
    [5, 6]
    """
    return tokens[: next((i for i, token in enumerate(tokens) if token in ends), len(tokens))]


class _Draws:
    """Logits processor: temperature, nucleus, then the draw's own Gumbel noise."""

    def __init__(self, torch: Any, requests: Generate, draws: list[str], width: int) -> None:
        self.torch, self.requests, self.draws, self.width = torch, requests, draws, width
        self.broken: Any = False

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        step = input_ids.shape[1] - self.width
        logits = scores.float() / max(self.requests.temperature, 1e-6)
        self.broken = self.broken | logits.sum(-1).isnan().any()
        logits = self._nucleus(logits)
        noise = {d: self._gumbel(d, step, logits.shape[1]) for d in set(self.draws)}
        return logits + self.torch.stack([noise[d] for d in self.draws]).to(logits.device)

    def check(self, name: str, dtype: str) -> None:
        """Refuse texts that were drawn from logits that are not numbers (half precision)."""
        if bool(self.broken):
            raise ModelError(
                f"model {name!r}: NaN logits in {dtype} while sampling, so the text would mean "
                "nothing. Load it in another precision with: --dtype float32"
            )

    def _nucleus(self, logits: Any) -> Any:
        """Keep the smallest set of tokens whose probability reaches top_p."""
        if self.requests.top_p >= 1.0:
            return logits
        ordered, where = logits.sort(dim=-1, descending=True)
        before = ordered.softmax(-1).cumsum(-1) - ordered.softmax(-1)
        drop = before >= self.requests.top_p
        return logits.masked_fill(drop.gather(1, where.argsort(-1)), float("-inf"))

    def _gumbel(self, draw: str, step: int, size: int) -> Any:
        name = f"{self.requests.seed}:{draw}:{step}".encode()
        seed = int.from_bytes(hashlib.sha256(name).digest()[:8], "little") >> 1
        generator = self.torch.Generator().manual_seed(seed)
        uniform = self.torch.rand(size, generator=generator, dtype=self.torch.float64)
        return -(-uniform.clamp_min(1e-300).log()).log().float()

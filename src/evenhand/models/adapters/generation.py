"""Sampling text with random numbers that belong to the draw, not to the batch.

Token t of draw r is argmax(log p + g) with Gumbel noise g that depends on (seed, r, t) only
(`batching.draws`). That is exact sampling from p, does not depend on which prompts share a batch,
and gives paired prompts (he/she) the same random numbers, so that their texts differ through the
model alone.

Texts of one prompt are decoded together (`decoding`); an architecture that does not let itself be
decoded so is given to transformers' `generate`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.adapters import decoding
from evenhand.models.batching import draws
from evenhand.models.batching.beginnings import common_beginning, repeated, run_once
from evenhand.models.batching.packing import Ragged
from evenhand.requests import Column, Generate

if TYPE_CHECKING:
    from evenhand.models.adapters.causal import CausalModel

LOOK = 4
"""Steps between two checks of how many texts have ended: a check waits for the device."""
FEWER = 0.5
"""A batch is put together anew when texts that ended leave this share of it or less."""


@dataclass(frozen=True)
class Group:
    """A prompt, and the rows of the request that continue it."""

    prompt: list[int]
    rows: list[int]


def sample(model: CausalModel, requests: Generate, prompts: list[list[int]]) -> dict[str, Column]:
    """One continuation per (prompt, draw)."""
    model.check_lengths([len(p) + requests.max_new_tokens for p in prompts], "prompt and its text")
    at, first = 0, None
    if model.chat is not None and model.begins_once and prompts:
        tokens = Ragged.of(prompts)
        at = common_beginning(tokens, tokens.sizes - 1)
        first = run_once(model.torch, model.model, tokens.tokens[:at], model.device) if at else None
    way = shared_prompts if model.shares_prompts else plainly
    new: list[list[int]] = [[] for _ in prompts]
    for batch in batches(prompts, requests.max_new_tokens, model.token_budget):
        with model.edited():
            for row, tokens_made in way(model, requests, batch, at, first):
                new[row] = until(tokens_made, model.ends)
    texts = model.tokenizer.batch_decode(new, skip_special_tokens=True)
    return {"text": texts, "n_tokens": np.asarray([len(n) for n in new], np.int32)}


def batches(prompts: Sequence[list[int]], longest: int, budget: int) -> list[list[Group]]:
    """Groups of rows with one prompt, similar numbers of rows together, within the token budget.

    >>> [[g.rows for g in batch] for batch in batches([[1], [2], [1]], longest=4, budget=10)]
    [[[0, 2]], [[1]]]
    """
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for row, prompt in enumerate(prompts):
        by_prompt.setdefault(tuple(prompt), []).append(row)
    size = max(1, budget // (max(map(len, by_prompt), default=0) + longest))
    groups = [
        Group(list(prompt), rows[low : low + size])
        for prompt, rows in by_prompt.items()
        for low in range(0, len(rows), size)
    ]
    groups.sort(key=lambda g: (-len(g.rows), -len(g.prompt), g.rows))
    out: list[list[Group]] = []
    for group in groups:
        if out and (len(out[-1]) + 1) * len(out[-1][0].rows) <= size:
            out[-1].append(group)
        else:
            out.append([group])
    return out


def shared_prompts(
    model: CausalModel, requests: Generate, batch: list[Group], at: int, first: Any
) -> list[tuple[int, list[int]]]:
    """The tokens of each row of a batch; prompts are run once for all their rows."""
    torch, device = model.torch, model.device
    keys, logits = decoding.begun(model, [g.prompt for g in batch], at, first)
    lengths = torch.tensor([len(g.prompt) for g in batch], device=device)
    wide, longest = len(batch[0].rows), requests.max_new_tokens
    # A group with fewer rows than the largest repeats its last, which nobody asks for.
    rows = np.asarray([[*g.rows, *[g.rows[-1]] * (wide - len(g.rows))] for g in batch])
    chances = [chance := Chance(torch, requests, rows.ravel().tolist(), device)]
    texts = decoding.Texts(model, keys, lengths, wide, longest, chance.taken)
    texts.begin(logits.repeat_interleave(wide, 0))
    found: dict[int, list[int]] = {}
    while texts.step + 1 < longest:
        texts.go_on(min(LOOK, longest - 1 - texts.step))
        active = ~texts.ended.cpu().numpy().reshape(rows.shape)
        if not active.any():
            break
        kept, within = _left(active)
        if within.size <= FEWER * rows.size and texts.step + LOOK < longest:
            found |= _by_row(rows, texts)
            flat = (kept[:, None] * rows.shape[1] + within).ravel()
            rows = rows.ravel()[flat].reshape(within.shape)
            chances.append(chance := Chance(torch, requests, rows.ravel().tolist(), device))
            some, those = (torch.as_tensor(w, device=device) for w in (kept, flat))
            texts = texts.left(some, those, within.shape[1], chance.taken)
    for chance in chances:
        chance.check(model.name, model.dtype)
    return list((found | _by_row(rows, texts)).items())


def _by_row(rows: np.ndarray, texts: decoding.Texts) -> dict[int, list[int]]:
    return dict(zip(rows.ravel().tolist(), texts.made[:, : texts.step + 1].tolist()))


def _left(active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Prompts that still have texts, and which texts of each go on, as many for each.

    >>> kept, within = _left(np.array([[True, False, True], [False] * 3, [False, True, False]]))
    >>> kept.tolist(), within.tolist()
    ([0, 2], [[0, 2], [1, 0]])
    """
    kept = np.flatnonzero(active.any(axis=1))
    most = int(active.sum(axis=1).max())
    return kept, np.argsort(~active[kept], axis=1, kind="stable")[:, :most]


def plainly(
    model: CausalModel, requests: Generate, batch: list[Group], at: int, first: Any
) -> list[tuple[int, list[int]]]:
    """The same by `generate`, in a padded batch.

    The beginning that all conversations share (a system prompt) is run once, and padding stands
    after it: tokens are [shared ...][padding][own ...].
    """
    torch = model.torch
    rows = [(row, group.prompt) for group in batch for row in group.rows]
    ends, pad = model.ends, model.tokenizer.pad_token_id
    pad = (ends[0] if ends else 0) if pad is None else pad
    width = max(len(prompt) for _, prompt in rows)
    ids = torch.full((len(rows), width), pad)
    mask = torch.zeros_like(ids)
    ids[:, :at], mask[:, :at] = torch.tensor(rows[0][1][:at], dtype=ids.dtype), 1
    for i, (_, prompt) in enumerate(rows):
        own = prompt[at:]
        ids[i, width - len(own) :] = torch.tensor(own)
        mask[i, width - len(own) :] = 1
    noise = Draws(Chance(torch, requests, [row for row, _ in rows], model.device), width)
    made = model.model.generate(
        input_ids=ids.to(model.device),
        attention_mask=mask.to(model.device),
        max_new_tokens=requests.max_new_tokens,
        do_sample=False,
        num_beams=1,
        pad_token_id=pad,
        eos_token_id=ends or None,
        logits_processor=[noise],
        **({} if first is None else {"past_key_values": repeated(first, len(rows))}),
    )
    noise.chance.check(model.name, model.dtype)
    return [(row, made[i, width:].tolist()) for i, (row, _) in enumerate(rows)]


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


class Chance:
    """Temperature, nucleus, then each draw's own Gumbel noise, for some rows of a request."""

    def __init__(self, torch: Any, requests: Generate, rows: Sequence[int], device: Any) -> None:
        self.torch, self.requests = torch, requests
        self.broken = torch.zeros(1, dtype=torch.bool, device=device)
        named = [requests.draw[row] for row in rows]
        distinct = {name: place for place, name in enumerate(dict.fromkeys(named))}
        self._keys = draws.keys(torch, requests.seed, list(distinct), device)
        which = [distinct[name] for name in named]
        self._times = len(named) // max(1, len(distinct))
        # Where every prompt has all draws, in order, noise need not be copied.
        plain = which == list(range(len(distinct))) * self._times
        self._which = None if plain else torch.tensor(which, device=device)

    def noisy(self, logits: Any, step: Any) -> Any:
        """Logits [rows, vocabulary] of which the largest is the token taken at a step."""
        logits = logits.float() / max(self.requests.temperature, 1e-6)
        self.broken |= logits.sum(-1).isnan().any()
        logits = self._nucleus(logits)
        noise = draws.gumbel(self.torch, self._keys, step, logits.shape[1])
        if self._which is None:
            return (logits.view(self._times, len(noise), -1) + noise).view(logits.shape)
        return logits + noise[self._which]

    def taken(self, logits: Any, step: Any) -> Any:
        """The tokens taken at a step."""
        return self.noisy(logits, step).argmax(-1)

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


class Draws:
    """The same as a logits processor of `generate`, for prompts that end at `width`."""

    def __init__(self, chance: Chance, width: int) -> None:
        self.chance, self.width = chance, width

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        return self.chance.noisy(scores, input_ids.shape[1] - self.width)

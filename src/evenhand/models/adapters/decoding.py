"""Many texts from few prompts, token by token: a prompt's keys and values serve all its texts.

A batch holds P prompts with D texts each, [prompt 0 draw 0, prompt 0 draw 1, ...]. Attention has
two parts, put together before the softmax:

    to the prompt     [P, heads, D, size] x [P, heads, prompt, size]     one product per prompt
    to the own text   [P D, heads, 1, size] x [P D, heads, step, size]

so a prompt is run once, stands in memory once and is read once per step, however many texts it
has. On a GPU one kernel does both (`decoding_kernel`), and a step is captured and replayed, since
launching its hundreds of kernels takes longer than running them.

This needs an architecture that lets others do its attention (transformers' `AttentionInterface`)
in the usual way; `fits` tries it out, and what does not fit is sampled by `generate`.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.models.batching.beginnings import repeated
from evenhand.models.loading.device import moved

if TYPE_CHECKING:
    from evenhand.models.adapters.causal import CausalModel

NAME = "evenhand_shared_prompts"
KERNEL_PROMPT = 512
"""Longer prompts are left to matrix products, which read them once for all their texts."""
CAPTURED = 6
"""This many steps or more are worth the capture of one."""
_here = threading.local()


class NotShared(Exception):
    """The architecture's attention does something that is not done here."""


class Texts:
    """The texts of a batch under way.

    Args:
        model: whose texts they are.
        prompts: keys and values by layer, [P, key heads, prompt, size] each.
        lengths: tokens of each prompt, [P].
        draws: texts per prompt, D.
        longest: how many tokens a text may have.
        take: the next token of every text, from logits [P D, vocabulary] and the step.

    Attributes:
        taken: the last token of each text, [P D].
        made: all tokens so far, [P D, longest].
        ended: which texts have met one of `stops`.
        step: how many tokens of the texts have keys and values; `at` is the same on the device.
    """

    def __init__(
        self,
        model: CausalModel,
        prompts: Any,
        lengths: Any,
        draws: int,
        longest: int,
        take: Callable[[Any, Any], Any],
    ) -> None:
        torch, device = model.torch, model.device
        self.model, self.prompts, self.lengths = model, prompts, lengths
        self.draws, self.longest, self.take = draws, longest, take
        rows = len(lengths) * draws
        self.own: dict[int, tuple[Any, Any]] = {}
        self.taken = torch.zeros(rows, dtype=torch.int64, device=device)
        self.made = torch.zeros((rows, longest), dtype=torch.int64, device=device)
        self.ended = torch.zeros(rows, dtype=torch.bool, device=device)
        self.stops = torch.tensor(model.ends, dtype=torch.int64, device=device)
        self.step, self.at = 0, torch.zeros(1, dtype=torch.int64, device=device)
        self.width = int(prompts[0][0].shape[2])
        self.kernel = _kernel() if model.on_gpu and self.width <= KERNEL_PROMPT else None
        place = torch.arange(self.width, device=device)
        self.hidden = (place >= lengths[:, None])[:, None, None]
        self.begins = lengths.repeat_interleave(draws)[:, None]
        # Four dimensions: a mask that is ready, which no model looks into.
        self.mask = torch.zeros((1, 1, 1, 1), dtype=model.model.dtype, device=device)
        self._captured: Any = None
        self.kernel_only = False

    def begin(self, logits: Any) -> None:
        """Take the first token of every text, from the logits after its prompt."""
        self._take(logits, self.at)

    def go_on(self, times: int) -> None:
        """Make this many tokens more."""
        with _attending(self):
            for _ in range(times):
                if self._captured is not None:
                    self._captured.replay()
                else:
                    self._advance()
                    if self._worth_capturing():
                        self._capture()
                self.step += 1

    def left(self, prompts: Any, rows: Any, draws: int, take: Callable[[Any, Any], Any]) -> Texts:
        """The same with some of the prompts, and some texts of each."""
        kept = [(k[prompts], v[prompts]) for k, v in self.prompts]
        other = Texts(self.model, kept, self.lengths[prompts], draws, self.longest, take)
        other.own = {layer: (k[rows], v[rows]) for layer, (k, v) in self.own.items()}
        other.taken, other.made, other.ended = self.taken[rows], self.made[rows], self.ended[rows]
        other.step, other.at = self.step, self.at.clone()
        return other

    def logits(self) -> Any:
        """After the last token of every text, float32 [P D, vocabulary]."""
        out = self.model.model(
            input_ids=self.taken[:, None],
            position_ids=self.begins + self.at,
            attention_mask=self.mask,
            past_key_values=_cache(self),
            use_cache=True,
        )
        return out.logits[:, -1].float()

    def _advance(self) -> None:
        logits = self.logits()
        self.at += 1
        self._take(logits, self.at)

    def _take(self, logits: Any, at: Any) -> None:
        self.taken.copy_(self.take(logits, at))
        self.made.index_copy_(1, at, self.taken[:, None])
        self.ended |= (self.taken[:, None] == self.stops).any(1)

    def _worth_capturing(self) -> bool:
        left = self.longest - self.step - 2
        able = self.kernel is not None and self.model.edit is None and not self.kernel_only
        return able and left >= CAPTURED

    def _capture(self) -> None:
        """Record a step; what changes from step to step is in tensors.

        Nothing may be freed meanwhile, or the record is void. Other threads may use the device.
        Where it does not work, steps are taken one by one.
        """
        torch = self.model.torch
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        swept = gc.isenabled()
        gc.disable()
        try:
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._advance()
        except RuntimeError:
            self.kernel_only = True
            return
        finally:
            if swept:
                gc.enable()
        self._captured = graph

    def kept(self, layer: int, keys: Any, values: Any) -> tuple[Any, Any]:
        """Keys and values of the texts with those of the new tokens."""
        if layer not in self.own:
            made = [t.new_zeros((*t.shape[:2], self.longest, t.shape[3])) for t in (keys, values)]
            self.own[layer] = (made[0], made[1])
        own = self.own[layer]
        for old, new in zip(own, (keys, values)):
            old.index_copy_(2, self.at, new)
        return own

    def attend(self, layer: int, query: Any, scale: float) -> Any:
        """What the new token of each text takes from its prompt and its own tokens."""
        if self.kernel is None:
            return _by_products(self, layer, query, scale)
        return self.kernel(
            query[:, :, 0], self.prompts[layer], self.own[layer], self.lengths, self.at, scale
        )


def _by_products(texts: Texts, layer: int, query: Any, scale: float) -> Any:
    """The same by matrix products: [rows, heads, size]."""
    torch = texts.model.torch
    keys, values = (t[:, :, : texts.step + 1] for t in texts.own[layer])
    prompt_keys, prompt_values = texts.prompts[layer]
    rows, heads, _, size = query.shape
    prompts, groups, width, _ = prompt_keys.shape
    draws, wide = texts.draws, heads // groups
    asked = query.reshape(prompts, draws, groups, wide, size).transpose(1, 2)
    asked = asked.reshape(prompts, groups, draws * wide, size)
    far = (asked @ prompt_keys.transpose(-1, -2)).float()
    far = far.masked_fill(texts.hidden, float("-inf"))
    near = (query.reshape(rows, groups, wide, size) @ keys.transpose(-1, -2)).float()
    near = near.reshape(prompts, draws, groups, wide, -1).transpose(1, 2)
    far = far.reshape(prompts, groups, draws, wide, width)
    weights = (torch.cat([far, near], -1) * scale).softmax(-1).to(values.dtype)
    to_prompt = weights[..., :width].reshape(prompts, groups, draws * wide, width)
    to_own = weights[..., width:].transpose(1, 2).reshape(rows, groups, wide, -1)
    out = (to_prompt @ prompt_values).reshape(prompts, groups, draws, wide, size).transpose(1, 2)
    return (out.reshape(rows, groups, wide, size) + to_own @ values).reshape(rows, heads, size)


@functools.cache
def _kernel() -> Any:
    """The GPU kernel, where Triton is."""
    try:
        from evenhand.models.adapters.decoding_kernel import attended
    except ImportError:
        return None
    return attended


def _attention(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any = None,
    *rest: Any,
    scaling: float | None = None,
    **more: Any,
) -> tuple[Any, None]:
    """`Texts.attend` as transformers calls it: query [rows, heads, 1, size]."""
    texts: Texts = _here.texts
    window = more.get("sliding_window")
    special = ("softcap", "s_aux", "position_bias", "head_mask")
    if (window and texts.width + texts.longest > window) or query.shape[2] != 1:
        raise NotShared("attention of its own")
    if any(more.get(name) is not None for name in special):
        raise NotShared("attention of its own")
    scale = query.shape[3] ** -0.5 if scaling is None else scaling
    return texts.attend(module.layer_idx, query, scale)[:, None], None


def _cache(texts: Texts) -> Any:
    """Takes keys and values of new tokens from where the model puts them."""
    cache = _kept()()
    cache.texts = texts
    return cache


@functools.cache
def _kept() -> Any:
    import transformers

    class Kept(transformers.DynamicCache):  # type: ignore[misc]
        texts: Texts

        def update(self, keys: Any, values: Any, layer: int, *rest: Any, **more: Any) -> Any:
            return self.texts.kept(layer, keys, values)

        def get_seq_length(self, layer: int = 0, *rest: Any) -> int:
            return self.texts.width + self.texts.step

    return Kept


@contextlib.contextmanager
def _attending(texts: Texts) -> Iterator[None]:
    """Inside: the model's layers attend as `texts` does."""
    import transformers

    transformers.AttentionInterface.register(NAME, _attention)
    model = texts.model.model
    usual = model.config._attn_implementation
    _here.texts = texts
    try:
        model.set_attn_implementation(NAME)
        yield
    finally:
        model.set_attn_implementation(usual)
        _here.texts = None


def begun(
    model: CausalModel, prompts: Sequence[Sequence[int]], at: int, first: Any
) -> tuple[Any, Any]:
    """Run prompts: their keys and values, and the logits after each, float32 [P, vocabulary].

    Args:
        at, first: how many tokens all of them begin with, and what running those once gave.
    """
    import transformers

    torch = model.torch
    sizes = np.asarray([len(p) for p in prompts])
    ids = np.zeros((len(prompts), int(sizes.max()) - at), np.int64)
    for row, prompt in enumerate(prompts):
        ids[row, : len(prompt) - at] = prompt[at:]
    cache = transformers.DynamicCache() if first is None else repeated(first, len(prompts))
    where = moved(torch, np.stack([np.arange(len(prompts)), sizes - at - 1]), model.device)
    with model.only_positions(*where):
        out = model.model(
            input_ids=moved(torch, ids, model.device), past_key_values=cache, use_cache=True
        )
    return [(layer.keys, layer.values) for layer in cache.layers], out.logits[0].float()


def fits(model: CausalModel) -> bool:
    """Whether this way gives the architecture the logits that it gives to whole texts."""
    torch = model.torch
    prompts, more = [[5, 6, 7, 8], [9, 5]], [[10, 11], [12, 5]]
    try:
        keys, _ = begun(model, prompts, 0, None)
        lengths = torch.tensor([4, 2], device=model.device)
        texts = Texts(model, keys, lengths, 2, 2, lambda logits, at: logits.argmax(-1))
        for step in range(2):
            forced = [m[step] for _ in prompts for m in more]
            texts.taken.copy_(torch.tensor(forced, device=model.device))
            with _attending(texts):
                found = texts.logits()
            texts.step, texts.at = step + 1, texts.at + 1
        plain = [
            model.model(input_ids=torch.tensor([[*p, *m]], device=model.device)).logits[0, -1]
            for p in prompts
            for m in more
        ]
    except (NotShared, TypeError, ValueError, RuntimeError, AttributeError, LookupError):
        return False
    tolerance = 1e-3 if model.dtype == "float32" else 0.3
    apart = found.log_softmax(-1) - torch.stack(plain).float().log_softmax(-1)
    return bool(apart.abs().max() < tolerance)

"""A changed output head: next-token logits from a low-rank edit of the last hidden state.

With hidden state h, output embeddings E and an edit h' = h - L (R'h) + o, the edited logits are

    E h' = E h - (E L)(R'h) + E o,

so with E L (vocabulary x rank) kept, an edited step costs one low-rank product. The edited
distribution replaces the model's own (alpha = 1) or is mixed with it (Liang et al. 2021, Eq. 7):

    probability   p = (1 - alpha) p* + alpha p_hat
    hidden        logits of (1 - alpha) h + alpha h'     (released code: a logit interpolation)

alpha is a number or learned per step from the model's own next-token distribution (Eq. 8).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import ModelError, SpecError, unknown

Array = npt.NDArray[Any]
MIXTURES = ("probability", "hidden")
RULES = ("fixed", "eq8", "released")
NUCLEUS, DEAD_ZONE, CAP = 0.7, (-0.1, 0.15), 0.4  # of the released rule
BLOCK = 64
LARGEST = 80.0  # exponents are clamped here: exp stays finite in float32


@dataclass(frozen=True)
class HeadEdit:
    """What is done to the head, as plain arrays.

    Attributes:
        left, right: [d, rank]; h' = h - left (right' h) + offset.
        offset: [d] or None.
        rule: "fixed", "eq8" (learned alpha) or "released" (the released code's rule).
        alpha: weight of the edited distribution under "fixed", in [0, 1].
        mixture: "probability" (Eq. 7) or "hidden" (released code).
        sensitivity: [vocabulary]; q(w) in [0, 1] for "eq8", signed cosines for "released".
        sensitive: [vocabulary] bool, the set S of Eq. 8.
        top: k of the top-k tokens that V' is taken from.
        first_token_only: edit only the first generated token (the paper's ablation).
    """

    left: Array
    right: Array
    offset: Array | None = None
    rule: str = "fixed"
    alpha: float = 1.0
    mixture: str = "probability"
    sensitivity: Array | None = None
    sensitive: Array | None = None
    top: int = 50
    first_token_only: bool = False

    def __post_init__(self) -> None:
        for name, value, known in (("mixture", self.mixture, MIXTURES), ("rule", self.rule, RULES)):
            if value not in known:
                raise SpecError(unknown(name, value, known, where="mitigation"))
        if not 0.0 <= self.alpha <= 1.0:
            raise SpecError(
                f"mitigation: alpha is '{self.alpha}'. Accepted: a number from 0 (the model as it "
                "is) to 1 (the edited distribution alone), or 'learned'."
            )
        if self.left.shape != self.right.shape or self.left.ndim != 2:
            raise SpecError(
                f"mitigation: left {self.left.shape} and right {self.right.shape} must be equal "
                "shapes [hidden size, rank]."
            )
        if self.rule != "fixed" and self.sensitivity is None:
            raise SpecError(f"mitigation: rule {self.rule!r} needs token sensitivities.")
        if self.rule == "eq8" and self.sensitive is None:
            raise SpecError("mitigation: rule 'eq8' needs the set of bias-sensitive tokens.")

    @property
    def rank(self) -> int:
        return int(self.left.shape[1])

    def digest(self) -> str:
        """SHA-256 of everything that can change a score."""
        state = hashlib.sha256()
        for spec in fields(self):
            value = getattr(self, spec.name)
            state.update(spec.name.encode())
            state.update(
                np.ascontiguousarray(value).tobytes()
                if isinstance(value, np.ndarray)
                else repr(value).encode()
            )
        return state.hexdigest()


class AppliedEdit:
    """An edit made ready for one Hugging Face model: products and sensitivities on its device."""

    def __init__(self, torch: Any, model: Any, edit: HeadEdit) -> None:
        self.torch, self.model, self.edit = torch, model, edit
        self.head = model.get_output_embeddings()
        weight = self.head.weight
        if weight.shape[1] != len(edit.left):
            raise ModelError(
                f"mitigation: fitted for hidden size {len(edit.left)}, this model has "
                f"{weight.shape[1]}. Fit one for this model with: evenhand mitigate MODEL"
            )
        self.device = weight.device

        def tensor(value: Array | None, dtype: Any) -> Any:
            if value is None:
                return None
            return torch.as_tensor(np.array(value)).to(device=self.device, dtype=dtype)

        exact = weight.detach().float()
        self.right = tensor(edit.right, torch.float32)
        self.out = (exact @ tensor(edit.left, torch.float32)).T.contiguous()
        offset = tensor(edit.offset, torch.float32)
        self.shift = None if offset is None else exact @ offset
        self.q: Any = tensor(edit.sensitivity, torch.float32)
        self.in_set: Any = tensor(edit.sensitive, torch.bool)
        self.post = _after_head(torch, model.config)
        self.broken = torch.zeros((), dtype=torch.bool, device=self.device)
        self._hidden: Any = None
        self._raw: Any = None

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Inside: the model's logits are the edited ones, in a plain call and in `generate`."""
        handles = self.attach()
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            self._hidden = self._raw = None

    def attach(self) -> list[Any]:
        """Register the hooks for good and give their handles."""

        def before(module: Any, inputs: Any, output: Any) -> None:
            self._hidden, self._raw = inputs[0], output

        def after(module: Any, arguments: Any, keywords: Any, output: Any) -> Any:
            if self.edit.first_token_only and _goes_on(keywords):
                return output
            decoding = keywords.get("use_cache") is True
            with self.torch.no_grad():  # for inference: nothing is trained through an edit
                output["logits"] = self.edited(
                    self._hidden, self._raw, output["logits"], fast=decoding
                )
            return output

        return [
            self.head.register_forward_hook(before),
            self.model.register_forward_hook(after, with_kwargs=True),
        ]

    def edited(self, hidden: Any, raw: Any, logits: Any, *, fast: bool = False) -> Any:
        """Edited logits for states [..., d] and the model's own logits [..., vocabulary].

        `fast` mixes probabilities directly, which floors them at 1e-37: enough to draw from.
        """
        shape = logits.shape
        states = hidden.reshape(-1, hidden.shape[-1]).float()
        own = logits.reshape(-1, shape[-1]).float()
        alpha = self.alphas(own)
        low = states @ self.right
        if self.edit.mixture == "hidden" or (isinstance(alpha, float) and alpha in (0.0, 1.0)):
            mixed = self._interpolated(low, raw, own, alpha)
        elif fast:
            mixed = self._drawn_from(low, raw, own, alpha)
        else:
            mixed = self._mixture(low, raw, own, alpha)
        return mixed.reshape(shape)

    def _edited_logits(self, low: Any, raw: Any, own: Any) -> Any:
        base = own if self.post is None else raw.reshape(own.shape).float()
        moved = self.torch.addmm(base, low, self.out, alpha=-1)
        if self.shift is not None:
            moved = moved + self.shift
        return moved if self.post is None else self.post(moved)

    def _interpolated(self, low: Any, raw: Any, own: Any, alpha: Any) -> Any:
        """Logits of (1 - alpha) h + alpha h'."""
        self._note(own)
        base = own if self.post is None else raw.reshape(own.shape).float()
        scaled = low * (alpha if isinstance(alpha, float) else alpha[:, None])
        moved = self.torch.addmm(base, scaled, self.out, alpha=-1)
        if self.shift is not None:
            moved = moved + self.shift * (alpha if isinstance(alpha, float) else alpha[:, None])
        return moved if self.post is None else self.post(moved)

    # log p = log[(1 - a) p* + a p_hat] = log p* + log[(1 - a) + a exp(log p_hat - log p*)]
    def _mixture(self, low: Any, raw: Any, own: Any, alpha: Any) -> Any:
        """Log-probabilities of Eq. 7; exact to rounding, finite wherever the parts are."""
        torch = self.torch
        moved = self._edited_logits(low, raw, own)
        norm, moved_norm = own.logsumexp(-1, keepdim=True), moved.logsumexp(-1, keepdim=True)
        self.broken = self.broken | ~(torch.isfinite(norm) & torch.isfinite(moved_norm)).all()
        weight = alpha if isinstance(alpha, float) else alpha[:, None]
        ratio = moved.sub_(own).add_(norm - moved_norm).clamp_(-LARGEST, LARGEST).exp_()
        return ratio.mul_(weight).add_(1 - weight).log_().add_(own).sub_(norm)

    def _drawn_from(self, low: Any, raw: Any, own: Any, alpha: Any) -> Any:
        """Eq. 7 in few passes over the vocabulary, for decoding."""
        p, p_hat = own.softmax(-1), self._edited_logits(low, raw, own).softmax(-1)
        weight = alpha if isinstance(alpha, float) else alpha[:, None]
        mixed = self.torch.lerp(p, p_hat, weight)
        self.broken = self.broken | mixed[:, 0].isnan().any()
        return mixed.clamp_min_(1e-37).log_()

    def alphas(self, logits: Any) -> Any:
        """The weight of the edited distribution: a float, or one value per row."""
        edit = self.edit
        if edit.rule == "fixed":
            return float(edit.alpha)
        rule = alpha_eq8 if edit.rule == "eq8" else alpha_released
        return rule(self.torch, logits, self)

    def _note(self, logits: Any) -> None:
        self.broken = self.broken | ~self.torch.isfinite(logits.sum())

    def check(self, name: str, dtype: str) -> None:
        """Refuse results that came from logits that were not finite (half precision)."""
        if bool(self.broken):
            self.broken = self.torch.zeros_like(self.broken)
            raise ModelError(
                f"model {name!r}: NaN or infinite logits in {dtype}, so no mixture is defined. "
                "Load it in another precision with: --dtype float32"
            )


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
    if size < 4 * k * BLOCK or size % BLOCK:
        best, where = logits.topk(k, dim=-1, sorted=False)
        return best, where
    blocks = logits.view(rows, size // BLOCK, BLOCK)
    picked = blocks.amax(-1).topk(k, dim=-1, sorted=False).indices
    inside = blocks.gather(1, picked[..., None].expand(-1, -1, BLOCK)).reshape(rows, k * BLOCK)
    best, at = inside.topk(k, dim=-1, sorted=False)
    return best, picked.gather(1, at // BLOCK) * BLOCK + at % BLOCK


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


def _goes_on(keywords: Any) -> bool:
    """Whether this call continues a text from its cache (any token but the first)."""
    cache, ids = keywords.get("past_key_values"), keywords.get("input_ids")
    if cache is None or ids is None:
        return False
    return int(cache.get_seq_length()) > int(ids.shape[1])


def _after_head(torch: Any, config: Any) -> Any:
    """What the model does to its logits after the head, or None for nothing."""
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    cap = getattr(text, "final_logit_softcapping", None)
    times = float(getattr(text, "logit_scale", None) or 1.0)
    divided = float(getattr(text, "logits_scaling", None) or 1.0)
    if not cap and times == 1.0 and divided == 1.0:
        return None

    def post(raw: Any) -> Any:
        scaled = raw * (times / divided)
        return torch.tanh(scaled / cap) * cap if cap else scaled

    return post

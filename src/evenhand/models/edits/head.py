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
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import ModelError, SpecError, unknown
from evenhand.models.edits.alphas import alpha_eq8, alpha_released
from evenhand.models.edits.head_handles import OtherHead, StepWatch, after_head, goes_on
from evenhand.models.edits.mixing import mix, sweep
from evenhand.models.edits.replay import Replays

Array = npt.NDArray[Any]
MIXTURES = ("probability", "hidden")
RULES = ("fixed", "eq8", "released")
LARGEST = 40.0  # powers of two up to here are mixed by one sweep; beyond, by logarithms
KEPT = 1 << 23  # floats of a scratch array that is kept: 170 rows of 49,152
LOG2E, LN2 = 1.4426950408889634, 0.6931471805599453


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

    @property
    def linear(self) -> bool:
        """Whether the edited logits are linear in the state, so that other weights give them."""
        whole = self.alpha == 1.0 or self.mixture == "hidden"
        return self.rule == "fixed" and whole and not self.first_token_only

    def digest(self) -> str:
        """SHA-256 of everything that can change a score."""
        state = hashlib.sha256()
        for spec in fields(self):
            value = getattr(self, spec.name)
            value = value.item() if isinstance(value, np.generic) else value  # as a file holds it
            state.update(spec.name.encode())
            state.update(
                np.ascontiguousarray(value).tobytes()
                if isinstance(value, np.ndarray)
                else repr(value).encode()
            )
        return state.hexdigest()


class AppliedEdit:
    """An edit made ready for one Hugging Face model.

    An edit that is linear in the state (`HeadEdit.linear`) becomes other weights of the head, which
    cost nothing while decoding. Any other one adds a low-rank product and a mixture to each step,
    in place and on the model's device. What either needs is computed when first used.
    """

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
        self.right = self._tensor(edit.right)
        self.q: Any = self._tensor(edit.sensitivity)
        self.in_set: Any = self._tensor(edit.sensitive, torch.bool)
        self.post = after_head(torch, model.config)
        with self._plainly():
            self.broken = torch.zeros((), dtype=torch.bool, device=self.device)
        self._hidden: Any = None
        self._raw: Any = None
        self._later: bool | None = None
        self._kept: dict[str, Any] = {}
        self.replays = Replays(torch, self) if self.device.type == "cuda" else None

    def _tensor(self, value: Array | None, dtype: Any = None) -> Any:
        if value is None:
            return None
        kind = self.torch.float32 if dtype is None else dtype
        return self.torch.as_tensor(np.array(value)).to(device=self.device, dtype=kind)

    @cached_property
    def out(self) -> Any:
        """-(E L)' in powers of two, [rank, vocabulary]: what the edit adds to the logits."""
        with self._plainly():
            exact = self.head.weight.detach().float()
            made = (exact @ self._tensor(self.edit.left)).T.contiguous().mul_(-LOG2E)
            return made.sub_(made.mean(1, keepdim=True)) if self._level_free else made

    @cached_property
    def reach(self) -> tuple[float, float]:
        """The most that a unit of state, and the shift, can add to a logit, in powers of two."""
        with self._plainly():
            shift = 0.0 if self.shift is None else float(self.shift.abs().max()) * LOG2E
            return float(self.out.norm(dim=0).max()), shift

    @cached_property
    def shift(self) -> Any:
        """E o, [vocabulary], or None."""
        if self.edit.offset is None:
            return None
        with self._plainly():
            made = self.head.weight.detach().float() @ self._tensor(self.edit.offset)
            return made.sub_(made.mean()) if self._level_free else made

    @property
    def _level_free(self) -> bool:
        """Whether a constant on all edited logits changes nothing: it is left out where it can be.

        Logits of some models lie near -100 throughout; without it an edit that takes out the mean
        state would move them all that far, and small differences would drown.
        """
        return self.post is None and self.edit.mixture == "probability" and not self.edit.linear

    @cached_property
    def folded(self) -> tuple[Any, Any]:
        """Weight and bias of a head that holds the whole edit; computed in float64, rounded once.

        E' = E - a (E L) R' and b' = b + a E o, with a = alpha for the hidden mixture.
        """
        torch, own = self.torch, self.head.weight
        with self._plainly():
            exact = own.detach().double()
            left, right = (
                self._tensor(v, torch.float64) for v in (self.edit.left, self.edit.right)
            )
            weight = exact - (exact @ left).mul_(self.edit.alpha) @ right.T
            bias = getattr(self.head, "bias", None)
            if self.edit.offset is not None:
                moved = exact @ self._tensor(self.edit.offset, torch.float64) * self.edit.alpha
                bias = moved if bias is None else bias.detach().double() + moved
            kept = [
                None if v is None else torch.nn.Parameter(v.to(own.dtype), requires_grad=False)
                for v in (weight, bias)
            ]
        return kept[0], kept[1]

    @contextlib.contextmanager
    def _plainly(self) -> Iterator[None]:
        """Inside: tensors that may be used in and out of inference mode."""
        with self.torch.inference_mode(False), self.torch.no_grad():
            yield

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
        """Change the model for good and give the handles that change it back."""
        if self.edit.linear and type(self.head) is self.torch.nn.Linear:
            watch = self.model.register_forward_hook(
                lambda module, inputs, output: self._note(output["logits"].detach().amax(-1))
            )
            return [OtherHead(self.head, *self.folded), watch]

        def before(module: Any, inputs: Any, output: Any) -> None:
            self._hidden, self._raw = inputs[0], output

        def after(module: Any, arguments: Any, keywords: Any, output: Any) -> Any:
            later, self._later = self._later, None
            if self.edit.first_token_only and (goes_on(keywords) if later is None else later):
                return output
            with self.torch.no_grad():  # for inference: nothing is trained through an edit
                output["logits"] = self.edited(self._hidden, self._raw, output["logits"])
            return output

        handles = [
            self.head.register_forward_hook(before),
            self.model.register_forward_hook(after, with_kwargs=True),
        ]
        return [*handles, StepWatch(self)] if self.edit.first_token_only else handles

    def edited(self, hidden: Any, raw: Any, logits: Any) -> Any:
        """Edited logits for states [..., d] and the model's own logits [..., vocabulary].

        The own logits are overwritten where nothing is learned through them. A mixture's logits
        are its log-probabilities up to a constant per row.
        """
        shape = logits.shape
        if self.replays is not None and shape[-2:-1] == (1,) and not logits.requires_grad:
            return self.replays(hidden, raw, logits)
        own = logits.reshape(-1, shape[-1]).float()
        own = own.clone() if logits.requires_grad else own
        return self.on_rows(hidden.reshape(-1, hidden.shape[-1]).float(), raw, own).reshape(shape)

    def on_rows(self, states: Any, raw: Any, own: Any) -> Any:
        """The same for float32 rows; `own` is overwritten. Nothing waits for a GPU."""
        alpha = self.alphas(own)
        weight = alpha if isinstance(alpha, float) else alpha[:, None]
        if self.edit.linear or self.edit.mixture == "hidden":
            return self._interpolated(states @ self.right, raw, own, weight)
        if isinstance(weight, float) and weight == 0.0:
            self._note(own.amax(-1))
            return own
        if self.device.type == "cpu" and sweep() is not None:
            return self._swept(states, raw, own, weight)
        return self._mixed(own, self._edited_logits(states @ self.right, raw, own), weight)

    def _swept(self, states: Any, raw: Any, own: Any, weight: Any) -> Any:
        """The mixture on a processor, in place; rows whose alpha is 0 are left as they are."""
        torch = self.torch
        own = own.contiguous()
        best = own.amax(-1)
        self._note(best)
        if isinstance(weight, float):
            rows, share = torch.arange(len(own)), np.full(len(own), weight)
        else:
            rows = (weight[:, 0] != 0).nonzero()[:, 0]
            share = weight[rows, 0].double().numpy()
            states, best, weight = states[rows], best[rows], weight[rows]
            raw = None if self.post is None else raw.reshape(own.shape)[rows]
        low = states @ self.right
        moved = self._moves(low, raw)
        if moved is None:
            some = own[rows]
            own[rows] = self._mixed(some, self._edited_logits(low, raw, some), weight)
            return own
        means = mix(
            own.numpy(),
            moved.numpy(),
            rows.numpy(),
            best.mul(LOG2E).numpy(),
            (1 - share) / share,
            torch.get_num_threads(),
        )
        self._note(torch.from_numpy(means))
        return own

    def _edited_logits(self, low: Any, raw: Any, own: Any) -> Any:
        base = own if self.post is None else raw.reshape(own.shape).float()
        moved = self.torch.addmm(base, low, self.out, alpha=LN2)
        if self.shift is not None:
            moved = moved + self.shift
        return moved if self.post is None else self.post(moved)

    def _interpolated(self, low: Any, raw: Any, own: Any, weight: Any) -> Any:
        """Logits of (1 - alpha) h + alpha h'."""
        self._note(own.amax(-1))
        base = own if self.post is None else raw.reshape(own.shape).float()
        moved = self.torch.addmm(base, low * weight, self.out, alpha=LN2)
        if self.shift is not None:
            moved = moved + self.shift * weight
        return moved if self.post is None else self.post(moved)

    def _moves(self, low: Any, raw: Any) -> Any:
        """Edited minus own logits in powers of two, on a processor; None if one is too large."""
        if self.post is not None:
            own = self.post(raw.reshape(len(low), self.out.shape[1]).float())
            moved = self._edited_logits(low, raw, own).sub_(own).mul_(LOG2E)
        else:
            moved = self._scratch("moves", (len(low), self.out.shape[1]))
            self.torch.mm(low, self.out, out=moved)
            moved = moved if self.shift is None else moved.add_(self.shift, alpha=LOG2E)
            most, shift = self.reach
            if len(low) and float(low.norm(dim=1).max()) * most + shift < LARGEST:
                return moved
        if not len(low):
            return moved
        least, most = self.torch.aminmax(moved)
        return moved if float(least) > -LARGEST and float(most) < LARGEST else None

    def _mixed(self, own: Any, edited: Any, weight: Any) -> Any:
        """log[(1 - alpha) p* + alpha p_hat] of own and edited logits (Eq. 7)."""
        torch = self.torch
        if isinstance(weight, float):  # plain numbers: nothing is copied to a GPU
            kept, added = (math.log(v) if v else -math.inf for v in (1 - weight, weight))
        else:
            kept, added = torch.log1p(-weight), weight.log()
        mixed = torch.logaddexp(own.log_softmax(-1).add_(kept), edited.log_softmax(-1).add_(added))
        self.broken.logical_or_(mixed[:, 0].isnan().any())  # one NaN makes its whole row NaN
        return mixed

    def _scratch(self, name: str, shape: tuple[int, int]) -> Any:
        """An array of this shape, kept between steps: fresh memory costs more than a pass."""
        kept = self._kept.get(name)
        if kept is None or kept.shape != shape:
            with self._plainly():
                kept = self.torch.empty(shape, device=self.device)
            self._kept.pop(name, None)
            if kept.numel() <= KEPT:
                self._kept[name] = kept
        return kept

    def alphas(self, logits: Any) -> Any:
        """The weight of the edited distribution: a float, or one value per row."""
        edit = self.edit
        if edit.rule == "fixed":
            return float(edit.alpha)
        rule = alpha_eq8 if edit.rule == "eq8" else alpha_released
        return rule(self.torch, logits, self)

    def _note(self, value: Any) -> None:
        self.broken.logical_or_(~self.torch.isfinite(value).all())

    def check(self, name: str, dtype: str) -> None:
        """Refuse results that came from logits that were not finite (half precision)."""
        if bool(self.broken):
            self.broken.zero_()
            raise ModelError(
                f"model {name!r}: NaN or infinite logits in {dtype}, so no mixture is defined. "
                "Load it in another precision with: --dtype float32"
            )

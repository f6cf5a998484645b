"""Affine maps on hidden states of an encoder: the same model with chosen layers changed.

    h' = h - L (R'h) + o      (= P h + o with P = I - L R', rank of the change = columns of L)

computed in float32 and given back in the model's own precision. The maps run as forward hooks only
while an answer is computed, so the unchanged model keeps its scores although both share weights.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, ModelError, SpecError
from evenhand.mitigations.erasing import Removal
from evenhand.models.protocol import Model
from evenhand.requests import Column, Requests

KINDS = ("masked", "encoder", "classifier", "span", "choice")
POOLS = ("first", "mean")


@dataclass(frozen=True)
class LayerMap(Removal):
    """The map of the module at the path `layer` in the Hugging Face model, in float32."""

    layer: str = ""

    def __post_init__(self) -> None:
        d = len(self.offset)
        if self.left.ndim != 2 or self.left.shape != self.right.shape or len(self.left) != d:
            raise DataError(
                f"mitigation: layer {self.layer!r} has left {self.left.shape}, right "
                f"{self.right.shape} and offset {self.offset.shape}. Accepted: [d, rank] twice "
                "and [d]."
            )
        if not all(np.isfinite(a).all() for a in (self.left, self.right, self.offset)):
            raise DataError(f"mitigation: layer {self.layer!r} holds NaN or infinity.")


@dataclass(frozen=True)
class HiddenEdit:
    """Maps of one or more layers, in the order in which the model runs them."""

    maps: tuple[LayerMap, ...]

    @property
    def rank(self) -> int:
        return max((m.rank for m in self.maps), default=0)

    def digest(self) -> str:
        """SHA-256 of everything that can change a score."""
        state = hashlib.sha256()
        for part in self.maps:
            state.update(part.layer.encode())
            for array in (part.left, part.right, part.offset):
                state.update(repr(array.shape).encode())
                state.update(np.ascontiguousarray(array, np.float32).tobytes())
        return state.hexdigest()


def layer_names(model: Any) -> dict[str, str]:
    """Names a user can give, and the module path behind each, in running order.

    `embeddings`, `layer.0` to `layer.N`, `last` (the same as the highest), and `pooler` where the
    checkpoint has one (what multiple-choice and classification heads read).
    """
    base = model.base_model
    paths = {id(module): path for path, module in model.named_modules()}
    depth = getattr(model.config, "num_hidden_layers", None)
    stacks = [
        m for m in base.modules() if type(m).__name__ == "ModuleList" and len(m) == depth and depth
    ]
    found: dict[str, str] = {}
    if getattr(base, "embeddings", None) is not None:
        found["embeddings"] = paths[id(base.embeddings)]
    if stacks:
        found |= {f"layer.{i}": paths[id(m)] for i, m in enumerate(stacks[0])}
        found["last"] = paths[id(stacks[0][-1])]
    pooler = getattr(base, "pooler", None)
    if pooler is not None:
        found["pooler"] = paths[id(pooler)]
    return found


def find_layers(model: Any, names: Sequence[str]) -> list[str]:
    """Module paths of the layers, each once, in running order.

    Raises:
        SpecError: no such layer; the message lists those there are.
    """
    known = layer_names(model)
    modules = [path for path, _ in model.named_modules() if path]
    chosen = []
    for name in names:
        if name == "all":
            chosen += [path for key, path in known.items() if key.startswith("layer.")]
        elif name in known:
            chosen.append(known[name])
        elif name in modules:
            chosen.append(name)
        else:
            raise SpecError(
                f"--layers: unknown layer {name!r}. Layers of this model: {', '.join(known)}; "
                "'all' for every numbered one, or the path of a module."
            )
    if not chosen:
        raise SpecError(f"--layers: none given. Layers of this model: {', '.join(known)}.")
    return sorted(set(chosen), key=modules.index)


def _passed_on(name: str) -> Any:
    """What a model has as the one below has it, read and set there."""
    return property(lambda me: getattr(me.base, name), lambda me, v: setattr(me.base, name, v))


class EditedModel(Model):
    """A model whose hidden states pass through maps; everything else is the base's.

    It answers the same requests, has a fingerprint of its own, and can carry further edits. What
    the runner needs (`Model`) is passed on here by name; whatever else an adapter has, as it is.
    """

    recipe = None

    def __init__(self, base: Any, edit: HiddenEdit, name: str = "") -> None:
        digest = f"hidden:{edit.digest()}"
        if digest in base.mitigations:
            raise ModelError(
                f"model {base.name!r} carries this mitigation already; a second time it changes "
                "nothing. Fit one on the mitigated model instead with: evenhand mitigate FOLDER"
            )
        if base.kind not in KINDS:
            raise ModelError(
                f"model {base.name!r} is of kind {base.kind!r}. Accepted: {', '.join(KINDS)}."
            )
        self.base, self.edit = base, edit
        self.name = name or f"{base.name} (mitigated)"
        self.mitigations = (*base.mitigations, digest)
        self.kind, self.answers = base.kind, base.answers
        self.device, self.dtype = base.device, base.dtype
        self._ready = [(m, self._tensors(m)) for m in edit.maps]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "base":
            raise AttributeError(name)
        return getattr(self.base, name)

    token_budget, overlaps, alternates, threads, release, count_tokens, prepare = map(
        _passed_on,
        ("token_budget", "overlaps", "alternates", "threads", "release", "count_tokens", "prepare"),
    )

    @property
    def fingerprint(self) -> str:
        parts = "|".join((self.base.fingerprint, self.mitigations[-1]))
        return hashlib.sha256(parts.encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        return {**self.base.describe(), "name": self.name, "mitigations": list(self.mitigations)}

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        """Start answering; every forward pass is queued before the maps are taken off again."""
        with self.changed():
            begun: Callable[[], dict[str, Column]] = self.base.begin(requests, prepared)
        return begun

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        return self.begin(requests, prepared)()

    @contextlib.contextmanager
    def changed(self) -> Iterator[None]:
        """Inside: the Hugging Face model below gives the states of this model."""
        with contextlib.ExitStack() as stack:
            stack.enter_context(self.base.changed())
            for part, tensors in self._ready:
                module = self.model.get_submodule(part.layer)
                handle = module.register_forward_hook(_hook(*tensors))
                stack.callback(handle.remove)
            yield

    def _tensors(self, part: LayerMap) -> tuple[Any, Any, Any]:
        torch = self.base.torch
        try:
            self.base.model.get_submodule(part.layer)
        except AttributeError:
            names = ", ".join(layer_names(self.base.model))
            raise ModelError(
                f"model {self.base.name!r} has no module {part.layer!r}. Layers of this model: "
                f"{names}."
            ) from None
        width = width_of(self.base)
        if len(part.left) != width:
            raise ModelError(
                f"mitigation: fitted for states of width {len(part.left)}, model "
                f"{self.base.name!r} has {width}. Fit one for it with: evenhand mitigate MODEL"
            )
        arrays = (part.left.T.copy(), part.right, part.offset)
        left, right, offset = (
            torch.as_tensor(np.array(a), device=self.base.device) for a in arrays
        )
        return left, right, offset


def width_of(model: Any) -> int:
    """The width of a model's hidden states."""
    config = model.model.config
    return int(getattr(config, "hidden_size", None) or config.dim)


def _hook(left: Any, right: Any, offset: Any) -> Any:
    """x - (x R) L' + o in float32, returned in the precision that came in."""

    def change(module: Any, inputs: Any, output: Any) -> Any:
        hidden = states_of(output)
        exact = hidden.float()
        moved = (exact - (exact @ right) @ left + offset).to(hidden.dtype)
        if isinstance(output, tuple):
            return (moved, *output[1:])
        if type(moved) is type(output):
            return moved
        output["last_hidden_state"] = moved
        return output

    return change


def states_of(output: Any) -> Any:
    """The hidden states in whatever a module returns."""
    if isinstance(output, tuple):
        return output[0]
    return output["last_hidden_state"] if hasattr(output, "keys") else output


def layer_states(
    model: Any, layer: str, first: Sequence[str], second: Sequence[str] | None, pool: str
) -> npt.NDArray[np.float32]:
    """States of a layer after texts (or pairs of texts): float32 [texts, d].

    The adapter's own edits are in force; `pool` takes the "first" token, or the "mean" of all.
    """
    torch = model.torch
    encoded = model.encode_texts(first, second)
    out: list[Any] = [None] * len(first)
    seen: list[Any] = []
    with torch.inference_mode(), model.changed():
        module = model.model.get_submodule(layer)
        handle = module.register_forward_hook(lambda m, i, o: seen.append(states_of(o)))
        try:
            for rows, tensors in model.batches(encoded):
                seen.clear()
                model.model.base_model(**tensors)
                for row, value in zip(rows, _pooled(seen[-1].float(), tensors, pool)):
                    out[row] = value
        finally:
            handle.remove()
    states = np.stack(out) if out else np.zeros((0, width_of(model)), np.float32)
    if not np.isfinite(states).all():
        raise ModelError(
            f"model {model.name!r}: hidden states hold NaN or infinity in {model.dtype}. Load it "
            "in another precision with: --dtype float32"
        )
    return states


def _pooled(states: Any, tensors: dict[str, Any], pool: str) -> Any:
    """One vector per row of the batch."""
    if states.ndim == 2:  # a pooler's output: one vector a text already
        return states.cpu().numpy()
    if pool == "first":
        return states[:, 0].cpu().numpy()
    weight = tensors["attention_mask"][..., None].float()
    return ((states * weight).sum(1) / weight.sum(1).clamp_min(1)).cpu().numpy()

"""A Hugging Face model that somebody else has loaded: taken as it is, and known by its content.

A checkpoint in a folder is known by the bytes of its files. A model in memory has none, so what is
hashed is its state dict, its configuration and its tokenizer; training it on changes the hash.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from evenhand.errors import SpecError
from evenhand.models.protocol import LoadOptions

PLACES = ("_name_or_path", "name_or_path", "transformers_version", "dtype", "torch_dtype")
"""Settings that say where a model came from or how it is held, and change no score."""


@dataclass
class Held:
    """A model with its tokenizer, in somebody's memory.

    Attributes:
        model: of transformers; it is neither copied nor changed.
        tokenizer: its own one.
        whole: what its weights are read from, where it is part of something larger.
        more: what else changes its answers, as text.
        activation: how a classifier's logits become numbers, where its pipeline was told so.
        head: how the states of a text's tokens become its vector, where it has a way of its own.
    """

    model: Any
    tokenizer: Any
    whole: Any = None
    more: str = ""
    activation: str = ""
    head: Any = None
    _seen: tuple[Any, str] | None = field(default=None, repr=False)

    @property
    def device(self) -> str:
        return str(self.model.device)

    @property
    def dtype(self) -> str:
        return str(self.model.dtype).removeprefix("torch.")

    def own_tokenizer(self) -> Any:
        """A copy of the tokenizer, since adapters take its limits off."""
        return copy.deepcopy(self.tokenizer)

    def refuse(self, name: str, options: LoadOptions) -> None:
        """Refuse to load in another way what is loaded already."""
        for what, own in (("dtype", self.dtype), ("device", self.device)):
            given = getattr(options, what)
            if given is not None and given != own:
                raise SpecError(
                    f"{what} {given!r}: model {name!r} is an object in memory and computes in "
                    f"{own!r}. Leave it out, or change the object itself: model.to({given!r})"
                )
        if options.compile:
            raise SpecError(
                f"compile: model {name!r} is an object in memory, whose layers are not changed. "
                f"Leave it out, or give the compiled object."
            )
        if options.revision is not None:
            raise SpecError(
                f"revision {options.revision!r}: model {name!r} is an object in memory. Leave it "
                f"out, or load that revision into the object."
            )

    @property
    def digest(self) -> str:
        """SHA-256 of weights, configuration and tokenizer; computed anew when weights changed."""
        state = (self.whole if self.whole is not None else self.model).state_dict()
        # Tensors of a state dictionary are made anew each time; what they look at is not.
        version = tuple((t.data_ptr(), _version(t)) for t in state.values())
        if self._seen is None or self._seen[0] != version:
            own = [state_digest(state), _settings(self.model), _tokens(self.tokenizer), self.more]
            self._seen = version, hashlib.sha256("|".join(own).encode()).hexdigest()
        return self._seen[1]


def _version(tensor: Any) -> int:
    """How often a tensor was written to; inference tensors do not count that."""
    try:
        return int(tensor._version)
    except RuntimeError:
        return 0


def state_digest(state: Any) -> str:
    """SHA-256 of a state dict: names, types, shapes and bytes, in the order of the names."""
    found = hashlib.sha256()
    for name in sorted(state):
        tensor = state[name]
        if not hasattr(tensor, "detach"):  # extra state that modules keep beside
            found.update(f"{name}={tensor!r}".encode())
            continue
        plain = tensor.detach().cpu().contiguous()
        found.update(f"{name}:{plain.dtype}:{tuple(plain.shape)}:".encode())
        found.update(plain.reshape(-1).view(_bytes()).numpy().data)
    return found.hexdigest()


def _bytes() -> Any:
    import torch

    return torch.uint8


def _settings(model: Any) -> str:
    parts = [getattr(model, name, None) for name in ("config", "generation_config")]
    told = [{k: v for k, v in p.to_dict().items() if k not in PLACES} for p in parts if p]
    return json.dumps([type(model).__name__, *told], sort_keys=True, default=str)


def _tokens(tokenizer: Any) -> str:
    """Everything of a tokenizer that changes what a model reads."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        plain = copy.deepcopy(backend)
        plain.no_truncation()
        plain.no_padding()
        made = plain.to_str()
    else:
        made = json.dumps([type(tokenizer).__name__, tokenizer.get_vocab()], sort_keys=True)
    special = {k: str(v) for k, v in tokenizer.special_tokens_map.items()}
    return json.dumps([made, special, str(tokenizer.chat_template)], sort_keys=True)


@contextmanager
def lent(thing: Any) -> Iterator[None]:
    """Inside: a torch module may be put into evaluation mode; afterwards it is as it was.

    A model that is audited in the middle of its training goes on training with dropout.
    """
    inside: Any = thing if _is_module(thing) else getattr(thing, "model", None)  # of a pipeline
    modules = list(inside.modules()) if _is_module(inside) else []
    modes = [module.training for module in modules]
    try:
        yield
    finally:
        for module, mode in zip(modules, modes):
            module.training = mode


def _is_module(thing: Any) -> bool:
    return callable(getattr(thing, "modules", None)) and hasattr(thing, "state_dict")

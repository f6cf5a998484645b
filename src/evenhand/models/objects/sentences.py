"""Objects that give texts a vector: a SentenceTransformer as it is, a StaticModel of model2vec."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.loading.held import Held, state_digest
from evenhand.models.objects.functions import FunctionModel
from evenhand.models.objects.recognised import is_a
from evenhand.models.protocol import LoadOptions, Model


def taken(thing: Any) -> bool:
    return _is_sentence(thing) or is_a(thing, "model2vec", "StaticModel")


def _is_sentence(thing: Any) -> bool:
    return is_a(thing, "sentence_transformers", "SentenceTransformer")


def model(thing: Any, name: str, options: LoadOptions) -> Model:
    """The object as an encoder whose vectors are its own."""
    if not _is_sentence(thing):
        return _static(thing, name)
    first = next(iter(thing))
    called = name or _name(thing)
    if not hasattr(getattr(first, "auto_model", None), "base_model"):
        # No transformer inside (bags of words, static vectors): asked as a whole.
        return FunctionModel(
            thing.encode,
            called,
            kind="encoder",
            version=f"{state_digest(thing.state_dict())}|{_prompt(thing)}|{thing}",
        )
    from evenhand.models.adapters.encoders import EncoderModel

    head = OwnHead(thing)
    made = "|".join([str(thing), head.told, str(head.max_length), *map(_settings, head.modules)])
    return EncoderModel.of(
        Held(first.auto_model, first.tokenizer, thing, made, head=head), called, options
    )


def _name(thing: Any) -> str:
    card = getattr(thing, "model_card_data", None)
    place = str(getattr(card, "base_model", None) or getattr(card, "model_name", None) or "")
    inner = getattr(getattr(next(iter(thing)), "auto_model", None), "config", None)
    place = place or str(getattr(inner, "_name_or_path", "") or "")
    return place.rstrip("/").rpartition("/")[2] or type(thing).__name__


def _prompt(thing: Any) -> str:
    """What the object puts before every text."""
    named = getattr(thing, "default_prompt_name", None)
    return str((getattr(thing, "prompts", None) or {}).get(named) or "") if named else ""


@dataclass
class OwnHead:
    """What a SentenceTransformer does behind its transformer, done by the object itself."""

    thing: Any

    @property
    def prompt(self) -> str:
        return _prompt(self.thing)

    @property
    def lower(self) -> bool:
        """Newer objects have it in their tokenizer, older ones beside it."""
        first = next(iter(self.thing))
        backend = getattr(first.tokenizer, "backend_tokenizer", None)
        own = backend is not None and "owercase" in str(getattr(backend, "normalizer", ""))
        return bool(getattr(first, "do_lower_case", False)) and not own

    @property
    def max_length(self) -> int | None:
        found = getattr(self.thing, "max_seq_length", None)
        return int(found) if found and found < 1_000_000 else None

    @property
    def modules(self) -> list[Any]:
        return list(self.thing)[1:]

    @property
    def pool(self) -> str:
        modes = {str(getattr(m, "pooling_mode", "")) for m in self.modules}
        old = any(getattr(m, "pooling_mode_cls_token", False) for m in self.modules)
        return "first" if old or "cls" in modes else "mean"

    @property
    def told(self) -> str:
        made = ", ".join(type(m).__name__ for m in self.modules)
        made = made.replace("Pooling", f"{self._modes()} pooling").lower()
        cut = getattr(self.thing, "truncate_dim", None)
        more = f", first {cut} numbers" if cut else ""
        return f"{made}{more}{f' after {self.prompt!r}' if self.prompt else ''}"

    def _modes(self) -> str:
        found = [getattr(m, "pooling_mode", None) for m in self.modules]
        modes = next((mode for mode in found if mode), "its own")
        return modes if isinstance(modes, str) else " and ".join(map(str, modes))

    def __call__(self, hidden: Any, mask: Any, prompt_tokens: int) -> Any:
        features = {"token_embeddings": hidden, "attention_mask": mask}
        if prompt_tokens:
            features["prompt_length"] = prompt_tokens
        for module in self.modules:
            features = module(features)
        if "sentence_embedding" not in features:
            raise ModelError(f"{type(self.thing).__name__}: its modules give a text no vector.")
        found = features["sentence_embedding"].float()
        cut = getattr(self.thing, "truncate_dim", None)
        return found if cut is None else found[:, :cut]


def _settings(module: Any) -> str:
    told: dict[str, Any] = getattr(module, "get_config_dict", dict)()
    return json.dumps(told, sort_keys=True, default=str) if told else ""


def _static(thing: Any, name: str) -> Model:
    """A StaticModel of model2vec, known by its table of vectors and its tokenizer."""
    state = hashlib.sha256(np.ascontiguousarray(thing.embedding).tobytes())
    for part in ("weights", "token_mapping"):
        held = getattr(thing, part, None)
        state.update(b"" if held is None else np.ascontiguousarray(held).tobytes())
    state.update(f"{thing.tokenizer.to_str()}|{thing.normalize}".encode())
    called = name or str(getattr(thing, "base_model_name", "") or "").rpartition("/")[2]
    return FunctionModel(
        thing.encode, called or type(thing).__name__, kind="encoder", version=state.hexdigest()
    )

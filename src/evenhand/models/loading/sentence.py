"""What a sentence-transformers folder puts behind its transformer, read without that library.

    modules.json            the modules in order: a transformer, a pooling, and what follows
    1_Pooling/config.json   which tokens make the vector: first, last, mean, maximum, ...
    2_Dense/, 2_Normalize   a linear layer with its activation, scaling to length one, LayerNorm
    config_sentence_transformers.json   prompts, and which of them every text gets

The vector of a text is then the one that is deployed, not a mean of ours. Modules are recognised by
the last part of their type; no code that a folder names is run, and one that is not known here is
refused (give the loaded SentenceTransformer itself: it brings its own code).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from evenhand.errors import ModelError, unknown
from evenhand.models.loading.checkpoint import check_numbers
from evenhand.opening import read_json, read_object

MODULES = "modules.json"
LEGACY = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Switches of older folders, in the order in which their vectors are put side by side."""
MODES = tuple(LEGACY.values())
ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid", "SiLU")


class Head(Protocol):
    """How the states of a text's tokens become its vector.

    Attributes:
        prompt: what stands before every text.
        max_length: how many tokens are read; the rest is cut off, as where it is deployed.
        lower: whether texts are put into lower case first.
        pool: which state a mitigation should look at: "first" or "mean".
        told: all that in words, for the record.
    """

    @property
    def prompt(self) -> str: ...

    @property
    def max_length(self) -> int | None: ...

    @property
    def lower(self) -> bool: ...

    @property
    def pool(self) -> str: ...

    @property
    def told(self) -> str: ...

    def __call__(self, hidden: Any, mask: Any, prompt_tokens: int) -> Any: ...


Step = Callable[[Any], Any]


@dataclass(frozen=True)
class Pooling:
    """One vector from the states of a text's tokens; several modes stand side by side."""

    modes: tuple[str, ...]
    include_prompt: bool = True

    def __call__(self, hidden: Any, mask: Any, prompt_tokens: int) -> Any:
        import torch

        if not self.include_prompt and prompt_tokens:
            mask = mask.clone()
            mask[:, :prompt_tokens] = 0
        return torch.cat([_pooled(torch, mode, hidden, mask) for mode in self.modes], dim=-1)


def _pooled(torch: Any, mode: str, hidden: Any, mask: Any) -> Any:
    """Texts are padded on the right, so the first token kept is the first of the mask."""
    rows = torch.arange(len(hidden), device=hidden.device)
    if mode == "cls":
        return hidden[rows, mask.int().argmax(dim=1)]
    if mode == "lasttoken":
        places = torch.arange(mask.shape[1], device=mask.device)
        return hidden[rows, (mask * places).argmax(dim=1)]
    weight = mask[..., None].to(hidden.dtype)
    if mode == "max":
        return hidden.masked_fill(weight == 0, float("-inf")).max(dim=1).values
    if mode == "weightedmean":
        place = torch.arange(1, mask.shape[1] + 1, device=mask.device)
        weight = weight * place[:, None].to(hidden.dtype)
    total = weight.sum(dim=1).clamp_min(1e-9)
    divisor = total.sqrt() if mode == "mean_sqrt_len_tokens" else total
    return (hidden * weight).sum(dim=1) / divisor


@dataclass(frozen=True)
class SentenceHead:
    """A pooling and what follows it, as read from a folder."""

    pooling: Pooling
    steps: tuple[Step, ...] = ()
    prompt: str = ""
    max_length: int | None = None
    lower: bool = False
    width: int | None = None
    """How many numbers of the vector are kept (Matryoshka); None: all."""

    @property
    def pool(self) -> str:
        return "first" if self.pooling.modes[0] == "cls" else "mean"

    @property
    def told(self) -> str:
        """
        >>> SentenceHead(Pooling(("cls",)), prompt="query: ").told
        "cls pooling after 'query: '"
        """
        behind = "".join(f", {step.__name__.strip('_').replace('_', ' ')}" for step in self.steps)
        cut = f", first {self.width} numbers" if self.width else ""
        before = f" after {self.prompt!r}" if self.prompt else ""
        return f"{' and '.join(self.pooling.modes)} pooling{behind}{cut}{before}"

    def __call__(self, hidden: Any, mask: Any, prompt_tokens: int) -> Any:
        vectors = self.pooling(hidden, mask, prompt_tokens)
        for step in self.steps:
            vectors = step(vectors)
        return vectors if self.width is None else vectors[:, : self.width]


def is_sentence(folder: Path) -> bool:
    """Whether a folder was written by sentence-transformers."""
    return (folder / MODULES).is_file()


def trunk_of(folder: Path) -> Path:
    """The folder of the transformer below; older folders keep it apart."""
    first = listed(folder)[0]
    if _kind(first) != "Transformer":
        raise ModelError(
            f"{folder / MODULES}: begins with {_kind(first)!r}, and only a Transformer is read "
            f"from files. Load it and give the object: evenhand.audit(SentenceTransformer(DIR))"
        )
    return folder / str(first.get("path", ""))


def listed(folder: Path) -> list[dict[str, Any]]:
    """The modules of a folder, in their order."""
    path = folder / MODULES
    found = read_json(path, "the modules of a sentence transformer")
    whole = isinstance(found, list) and all(isinstance(m, dict) and "type" in m for m in found)
    if not whole or not found:
        raise ModelError(f"{path}: expected a list of modules, each with its type.")
    for module in found:
        place = Path(str(module.get("path", "")))
        if place.is_absolute() or ".." in place.parts or len(place.parts) > 1:
            raise ModelError(f"{path}: {str(place)!r} is not a folder beside it.")
    return sorted(found, key=lambda m: int(m.get("idx", 0)))


def _kind(module: Mapping[str, Any]) -> str:
    return str(module["type"]).rpartition(".")[2]


def read_head(folder: Path, device: str) -> SentenceHead:
    """The head of a sentence-transformers folder.

    Raises:
        ModelError: a module is not known here, or its weights are no safetensors.
    """
    trunk, rest = trunk_of(folder), listed(folder)[1:]
    pooling: Pooling | None = None
    steps: list[Step] = []
    for module in rest:
        kind, place = _kind(module), folder / str(module.get("path", ""))
        if kind == "Pooling":
            pooling = _pooling(place)
        elif kind == "Normalize":
            steps.append(_normalised)
        elif kind == "Dense":
            steps.append(_dense(place, device))
        elif kind == "LayerNorm":
            steps.append(_layer_norm(place, device))
        elif kind != "Dropout":
            known = ("Pooling", "Dense", "Normalize", "LayerNorm", "Dropout")
            hint = "Load it and give the object: evenhand.audit(SentenceTransformer(DIR))"
            raise ModelError(unknown("module", kind, known, where=str(folder), hint=hint))
    if pooling is None:
        raise ModelError(f"{folder / MODULES}: names no Pooling, so a text has no vector.")
    about = _settings(trunk / "sentence_bert_config.json")
    whole = _settings(folder / "config_sentence_transformers.json")
    prompts, default = whole.get("prompts") or {}, whole.get("default_prompt_name")
    return SentenceHead(
        pooling,
        tuple(steps),
        str(prompts.get(default) or "") if default else "",
        about.get("max_seq_length") or _window(trunk),
        bool(about.get("do_lower_case")),
        whole.get("truncate_dim"),
    )


def _window(trunk: Path) -> int | None:
    """What the tokenizer says of the longest text."""
    given = _settings(trunk / "tokenizer_config.json").get("model_max_length")
    return int(given) if isinstance(given, int) and given < 1_000_000 else None


def _settings(path: Path) -> dict[str, Any]:
    return read_object(path, "settings of a sentence transformer") if path.is_file() else {}


def _pooling(folder: Path) -> Pooling:
    config = read_object(folder / "config.json", "the pooling of a sentence transformer")
    switches = {key: config[key] for key in LEGACY if key in config}
    odd = [key for key, value in switches.items() if not isinstance(value, bool)]
    given = config.get("pooling_mode") or [LEGACY[key] for key, on in switches.items() if on]
    if odd or (switches and not given):
        raise ModelError(
            f"{folder}/config.json: {odd[0] if odd else 'every mode'} is "
            f"{switches[odd[0]] if odd else False!r}. Accepted: true for one pooling at least."
        )
    modes = (given,) if isinstance(given, str) else tuple(given) or ("mean",)
    for mode in modes:
        if mode not in MODES:
            raise ModelError(unknown("pooling", str(mode), MODES, where=str(folder)))
    return Pooling(modes, bool(config.get("include_prompt", True)))


def _normalised(vectors: Any) -> Any:
    return vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-12)


def _dense(folder: Path, device: str) -> Step:
    import torch

    config = read_object(folder / "config.json", "a dense layer of a sentence transformer")
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    short = name.rpartition(".")[2]
    if short not in ACTIVATIONS or not name.startswith("torch."):
        raise ModelError(unknown("activation", name, ACTIVATIONS, where=str(folder)))
    activation = getattr(torch.nn, short)()
    held = _weights(folder, device)
    bias, side = held.get("linear.bias"), held.get("residual.weight")
    wanted = {"linear.weight", *(["linear.bias"] if config.get("bias", True) else [])}
    _check_names(folder, held, wanted, {"residual.weight"})
    weight = held["linear.weight"]

    def dense(vectors: Any) -> Any:
        out = activation(torch.nn.functional.linear(vectors, weight, bias))
        if config.get("use_residual"):
            out = out + (vectors if side is None else vectors @ side.T)
        return out

    return dense


def _layer_norm(folder: Path, device: str) -> Step:
    import torch

    held = _weights(folder, device)
    _check_names(folder, held, {"norm.weight", "norm.bias"})
    weight, bias = held["norm.weight"], held["norm.bias"]

    def layer_norm(vectors: Any) -> Any:
        return torch.nn.functional.layer_norm(vectors, weight.shape, weight, bias)

    return layer_norm


def _weights(folder: Path, device: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    path = folder / "model.safetensors"
    if not path.is_file():
        raise ModelError(
            f"{folder}: no model.safetensors. Pickled weights (.bin) can run code and are never "
            f"opened. Save it again with: SentenceTransformer(DIR).save_pretrained(NEW)"
        )
    held = {name: tensor.float() for name, tensor in load_file(str(path), device=device).items()}
    check_numbers(folder, held.items())
    return held


def _check_names(
    folder: Path, held: Mapping[str, Any], wanted: Set[str], free: Set[str] = frozenset()
) -> None:
    """Refuse a module that lacks a tensor, or holds one too many."""
    for names, what in ((wanted - {*held}, "lacks"), ({*held} - wanted - free, "has no place for")):
        if names:
            raise ModelError(
                f"{folder}: is not whole: it {what} {', '.join(sorted(names))}. Save it again "
                f"with: SentenceTransformer(DIR).save_pretrained(NEW)"
            )

"""What all Hugging Face checkpoints share: safe loading, device, tokenizer, fingerprint."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evenhand.errors import ModelError, SpecError, need, unknown
from evenhand.models.batching.words import Words
from evenhand.models.chat import refuse_chat
from evenhand.models.loading import bits, checkpoint
from evenhand.models.loading.cache import file_digest
from evenhand.models.loading.compiling import compile_layers
from evenhand.models.loading.held import Held
from evenhand.models.loading.layout import Layout
from evenhand.models.loading.packed import pack_linears
from evenhand.models.loading.precision import fitting
from evenhand.models.protocol import LoadOptions, Model

ADAPTER_VERSION = "hf-3"
DTYPES = ("float32", "bfloat16", "float16", "float64")
NOT_READ = ("training.json", "trainer_state.json", "all_results.json")
NEVER = (
    ".bin",
    ".pt",
    ".pth",
    ".ckpt",
    ".h5",
    ".msgpack",
    ".onnx",
    ".ot",
    ".pkl",
    ".gguf",
    ".py",
    ".pyc",
    ".md",
    ".pdf",
    ".png",
    ".jpg",
    ".svg",
)
"""Ends of files that no loader of ours opens; all others count, known or not."""


class Transformer(Model):
    """Base of the adapters: a model in evaluation mode, its tokenizer and its facts.

    Subclasses set `kind`, `answers`, `architectures` and `auto` (the transformers class that loads
    them).
    """

    auto = "AutoModel"
    talks: ClassVar[bool] = False
    """Whether it can be asked as chat."""
    held: Held | None = None
    """The object that it is, where it was not read from files."""

    def __init__(self, source: str | Held, name: str, options: LoadOptions | None = None) -> None:
        options = options or LoadOptions()
        torch: Any = need("torch", extra="hf", what="loading a language model")
        self.torch = torch
        self.name = name
        self.source = source if isinstance(source, str) else ""
        _check(torch, options)
        if not self.talks:
            refuse_chat(name, self.kind, options)
        self.model: Any
        self.tokenizer: Any
        self._weights: Callable[[], str]
        if isinstance(source, Held):
            self._take(source, options)
        else:
            self._from_files(source, options)
        checkpoint.check_ids(self.source or name, self.tokenizer, self.model)
        self.token_budget = options.token_budget or (65_536 if self.on_gpu else 2_048)
        self.model.eval()
        self.compiled, self.load_form = options.compile, options.load
        if options.compile:
            compile_layers(torch, self.model, self.tokenizer, name)
        elif not (self.on_gpu or self.held) and self.dtype == "float32":
            pack_linears(torch, self.model)
        self._unlimit_tokenizer()
        self.words = Words(self.tokenizer, lambda texts: self.encode(texts, special=False))
        self.max_length = _max_length(self.model.config)

    def _take(self, held: Held, options: LoadOptions) -> None:
        """A model that is in memory already, where and as it is."""
        held.refuse(self.name, options)
        self.held = held
        self.check_config(held.model.config, type(held.model).__name__)
        self.device, self.dtype = held.device, held.dtype
        self.model, self.tokenizer = held.model, held.own_tokenizer()
        self._weights = lambda: held.digest

    def _from_files(self, source: str, options: LoadOptions) -> None:
        """A model from its files; those of an adapter with the model below it."""
        torch = self.torch
        self.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        with checkpoint.loading(source):
            self.layout = Layout.of(checkpoint.folder_of(source, options.revision))
            self.tokenizer = checkpoint.load_tokenizer(self.layout.tokens)
            config = checkpoint.load_config(self.layout.trunk)
            self.check_config(config, *(config.architectures or ()))
            load = functools.partial(self.layout.load, self.auto)
            self._check_room(options)
            if options.load != "whole":
                self.dtype = options.dtype or ("float16" if self.on_gpu else "float32")
                self.model = load(
                    getattr(torch, self.dtype),
                    device_map={"": self.device},
                    **bits.settings(options.load),
                )
            elif options.dtype is None and self.on_gpu:
                self.model, self.dtype = fitting(torch, load, self.tokenizer, self.device)
            else:
                self.dtype = options.dtype or "float32"
                self.model = load(getattr(torch, self.dtype)).to(self.device)
        parts = [folder_digest(folder) for folder in self.layout.read]
        digest = parts[0] if len(parts) == 1 else _joined(parts)
        self._weights = lambda: digest

    def _check_room(self, options: LoadOptions) -> None:
        """Refuse what does not fit on the device, before it is read."""
        form: str = options.load
        if form == "whole":  # undecided on a GPU: the least that it may become
            form = options.dtype or ("float16" if self.on_gpu else "float32")
        shapes = checkpoint.shapes(self.layout.trunk).values()
        bits.check_room(self.name, shapes, form, bits.free_bytes(self.torch, self.device))

    def check_config(self, config: Any, *architectures: str) -> None:
        """Refuse a checkpoint that this kind of model would only seem to load."""

    @classmethod
    def load(cls, source: str, name: str, options: LoadOptions | None = None) -> Transformer:
        return cls(source, name, options)

    @classmethod
    def of(cls, held: Held, name: str, options: LoadOptions) -> Transformer:
        """The model that an object is."""
        return cls(held, name, options)

    def _unlimit_tokenizer(self) -> None:
        """Saved tokenizers can carry a truncation or padding that would change scores."""
        backend = getattr(self.tokenizer, "backend_tokenizer", None)
        if backend is not None:
            backend.no_truncation()
            backend.no_padding()
        self.tokenizer.model_max_length = int(1e9)

    @property
    def fingerprint(self) -> str:
        parts = [
            ADAPTER_VERSION,
            self.kind,
            self._weights(),
            self.dtype,
            self.device.split(":")[0],
            str(self.token_budget),
            ".".join(self.torch.__version__.split(".")[:2]),
            *(["compiled"] if self.compiled else []),
            *([self.load_form] if self.load_form != "whole" else []),
            *self.asking,
            *self.mitigations,
        ]
        return hashlib.sha256("|".join(parts).encode()).hexdigest()

    @property
    def asking(self) -> tuple[str, ...]:
        """What of the way of asking changes scores; nothing where there is but one."""
        return ()

    @property
    def n_parameters(self) -> int:
        return sum(p.numel() for p in self.model.parameters())

    def describe(self) -> dict[str, Any]:
        return {
            **super().describe(),
            "architecture": type(self.model).__name__,
            "parameters": self.n_parameters,
            "dtype": self.dtype,
            "device": self.device.split(":")[0],
            **({"compiled": True} if self.compiled else {}),
            **({"load": self.load_form} if self.load_form != "whole" else {}),
            "weights_sha256": self._weights(),
            "mitigations": list(self.mitigations),
        }

    def encode(self, texts: Sequence[str], *, special: bool) -> list[list[int]]:
        """Token ids of each text, with or without the model's special tokens."""
        if not texts:
            return []
        encoded = self.tokenizer(list(texts), add_special_tokens=special, truncation=False)
        return [list(ids) for ids in encoded["input_ids"]]

    def check_lengths(self, lengths: Sequence[int], what: str) -> None:
        """Refuse inputs longer than the model's window instead of cutting them silently."""
        longest = max(lengths, default=0)
        if self.max_length and longest > self.max_length:
            raise ModelError(
                f"model {self.name!r}: a {what} has {longest} tokens, more than the window of "
                f"{self.max_length}. Shorten the text, or use a model with a longer window."
            )

    def count_tokens(self, texts: Sequence[str]) -> int:
        return sum(map(len, self.encode(texts, special=True)))

    def cut(self, texts: Sequence[str]) -> list[list[str]]:
        unknown = getattr(self.tokenizer, "unk_token_id", None)
        known = self.tokenizer.vocab_size
        return [
            ["" if k == unknown and k < known else str(self.tokenizer.decode([k])) for k in ids]
            for ids in self.encode(texts, special=False)
        ]

    @property
    def threads(self) -> int:
        return int(self.torch.get_num_threads())

    def release(self) -> None:
        with contextlib.suppress(RuntimeError):
            if self.torch.cuda.is_available():
                self.torch.cuda.empty_cache()

    def changed(self) -> contextlib.AbstractContextManager[None]:
        """Inside: the Hugging Face model gives the states of this model, edits in force."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def only_positions(self, rows: Any, columns: Any) -> Iterator[None]:
        """Inside: the output head sees only the hidden states at (rows, columns).

        The trunk's output is cut to those positions before the model's own head runs, so
        whatever the head does (scaling, soft caps, bias) is done as the model does it, and
        nobody pays for vocabulary-sized outputs that are not asked for.
        """

        def keep(module: Any, inputs: Any, output: Any) -> Any:
            hidden = output[0][rows, columns].unsqueeze(0)
            return _with_hidden(output, hidden)

        handle = self.model.base_model.register_forward_hook(keep)
        try:
            yield
        finally:
            handle.remove()


def _check(torch: Any, options: LoadOptions) -> None:
    """Refuse a precision or device that is not there, before anything is read."""
    if options.dtype is not None and options.dtype not in DTYPES:
        raise SpecError(unknown("precision", options.dtype, DTYPES, where="--dtype"))
    if options.device is None:
        return
    try:
        torch.empty(0, device=options.device)
    except (RuntimeError, AssertionError, ValueError, NotImplementedError) as error:
        first = re.split(r"\. |\n", str(error).strip() or type(error).__name__)[0].rstrip(".")
        raise ModelError(
            f"--device {options.device!r}: not usable here ({first}). Accepted: cpu, or cuda and "
            "cuda:1 where there is such a GPU. Leave the option out to use what there is."
        ) from error


def _with_hidden(output: Any, hidden: Any) -> Any:
    """The trunk's output with other last hidden states."""
    if isinstance(output, tuple):
        return (hidden, *output[1:])
    output["last_hidden_state"] = hidden
    return output


def _max_length(config: Any) -> int:
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    limit = int(getattr(text, "max_position_embeddings", 0) or 0)
    # RoBERTa-like models count positions from the padding index on.
    offset = (
        2 if getattr(config, "model_type", "") in {"roberta", "xlm-roberta", "camembert"} else 0
    )
    return max(0, limit - offset)


def folder_digest(folder: Path) -> str:
    """SHA-256 over every file of a checkpoint that can change a score.

    All that the loaders may read counts: weights, configurations, tokenizer, special and added
    tokens, chat templates, generation settings, pooling. Hashing reads every byte once; the result
    is remembered beside size and time of each file.
    """
    files = sorted(
        f
        for pattern in ("*", "*/*")
        for f in folder.glob(pattern)
        if f.suffix not in NEVER
        and f.name not in NOT_READ
        and not f.name.startswith(".")
        and f.is_file()
    )
    return _joined([f"{f.relative_to(folder).as_posix()}:{file_digest(f)}" for f in files])


def _joined(parts: Sequence[str]) -> str:
    return hashlib.sha256("|".join(parts).encode()).hexdigest()

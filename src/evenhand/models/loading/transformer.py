"""What all Hugging Face checkpoints share: safe loading, device, tokenizer, fingerprint."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from evenhand.errors import ModelError, SpecError, need, unknown
from evenhand.models.batching.words import Words
from evenhand.models.chat import refuse_chat
from evenhand.models.loading import checkpoint
from evenhand.models.loading.cache import file_digest
from evenhand.models.loading.compiling import compile_layers
from evenhand.models.loading.precision import fitting
from evenhand.models.protocol import LoadOptions, Model

ADAPTER_VERSION = "hf-3"
DTYPES = ("float32", "bfloat16", "float16", "float64")
READ_SUFFIXES = (".safetensors", ".json", ".txt", ".model", ".jinja", ".tiktoken")
NOT_READ = ("training.json", "trainer_state.json", "all_results.json")


class Transformer(Model):
    """Base of the adapters: a model in evaluation mode, its tokenizer and its facts.

    Subclasses set `kind`, `answers`, `architectures` and `auto` (the transformers class that loads
    them).
    """

    auto = "AutoModel"
    talks: ClassVar[bool] = False
    """Whether it can be asked as chat."""

    def __init__(self, source: str, name: str, options: LoadOptions | None = None) -> None:
        options = options or LoadOptions()
        torch: Any = need("torch", extra="hf", what="loading a language model")
        self.torch = torch
        self.name = name
        self.source = source
        _check(torch, options)
        if not self.talks:
            refuse_chat(name, self.kind, options)
        self.device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.token_budget = options.token_budget or (65_536 if self.on_gpu else 2_048)
        folder = checkpoint.folder_of(source, options.revision)
        with checkpoint.loading(source):
            self.tokenizer: Any = checkpoint.load_tokenizer(folder)
            load = functools.partial(checkpoint.load_model, self.auto, folder)
            self.model: Any
            if options.dtype is None and self.on_gpu:
                self.model, self.dtype = fitting(
                    torch, lambda dtype: load(dtype=dtype), self.tokenizer, self.device
                )
            else:
                self.dtype = options.dtype or "float32"
                self.model = load(dtype=getattr(torch, self.dtype)).to(self.device)
        checkpoint.check_ids(folder, self.tokenizer, self.model)
        self.model.eval()
        self.compiled = options.compile
        if options.compile:
            compile_layers(torch, self.model, self.tokenizer, name)
        self._unlimit_tokenizer()
        self.words = Words(self.tokenizer, lambda texts: self.encode(texts, special=False))
        self._weights = folder_digest(folder)
        self.max_length = _max_length(self.model.config)

    @classmethod
    def load(cls, source: str, name: str, options: LoadOptions | None = None) -> Transformer:
        return cls(source, name, options)

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
            self._weights,
            self.dtype,
            self.device.split(":")[0],
            str(self.token_budget),
            ".".join(self.torch.__version__.split(".")[:2]),
            *(["compiled"] if self.compiled else []),
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
            "weights_sha256": self._weights,
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
            f"cuda:1 where such a GPU is. Leave the option out to take what is there."
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
        if f.suffix in READ_SUFFIXES and f.name not in NOT_READ and f.is_file()
    )
    parts = [f"{f.relative_to(folder).as_posix()}:{file_digest(f)}" for f in files]
    return hashlib.sha256("|".join(parts).encode()).hexdigest()

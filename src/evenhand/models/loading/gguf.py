"""GGUF files: converted once into safetensors, then loaded like any folder.

Reading a quantised GGUF takes tens of seconds, the converted copy a tenth of one. Whether texts
start with a begin token is read from the file itself, by llama.cpp's rules: the loader drops it for
some models, and every score would then be wrong without a word.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError, need
from evenhand.models.loading import checkpoint
from evenhand.models.loading.cache import cache_folder, file_digest, writable
from evenhand.systems import link

CONVERSION = "gguf-3"
BEGINS = ("llama", "bert")
"""Vocabularies whose texts start with the begin token where the file does not say; gpt2's do not,
but for these ways to split words (llama.cpp, llama-vocab.cpp)."""
BEGINS_BY_SPLITTER = ("llama3", "llama-v3", "llama-bpe", "falcon3", "tekken", "chameleon")
DEFAULT_IDS = {"llama": 1, "bert": 101, "gpt2": 11}
"""Begin tokens where the file names none."""


def converted(path: Path) -> Path:
    """The folder that holds this GGUF file as safetensors; made at the first call."""
    digest = file_digest(path)
    folder = writable(cache_folder() / "converted" / f"{path.stem}-{digest[:16]}-{CONVERSION}")
    if not (folder / "evenhand.json").is_file():
        _convert(path, digest, folder)
    return folder


def _convert(path: Path, digest: str, folder: Path) -> None:
    need("gguf", extra="hf", what="reading GGUF files")
    torch: Any = need("torch", extra="hf", what="reading GGUF files")
    transformers: Any = need("transformers", extra="hf", what="reading GGUF files")
    name = "model.gguf"
    config = transformers.GgufConfig(gguf_file=name, dequantize=True)
    temporary = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    with tempfile.TemporaryDirectory() as alone, _about(path, alone):
        # The loaders would read what lies beside the file, too: other tokenizers, other code.
        link(path.resolve(), Path(alone) / name)
        tokenizer = checkpoint.load_tokenizer(alone, gguf_file=name)
        with contextlib.redirect_stderr(io.StringIO()):  # the loader's own progress bar
            model = checkpoint.load_model(
                "AutoModelForCausalLM",
                alone,
                gguf_file=name,
                quantization_config=config,
                dtype=torch.float32,
            )
    checkpoint.check_ids(path, tokenizer, model)
    _keep_begin_token(tokenizer, begin_token(path))
    temporary.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    facts = {"source": path.name, "source_sha256": digest, "conversion": CONVERSION}
    (temporary / "evenhand.json").write_text(
        json.dumps(facts, indent=1, sort_keys=True), encoding="utf-8"
    )
    if folder.exists():
        shutil.rmtree(folder)
    temporary.rename(folder)


@contextlib.contextmanager
def _about(path: Path, alone: str) -> Iterator[None]:
    """Errors that name the file, not the folder it is read in."""
    try:
        with checkpoint.loading(path):
            yield
    except ModelError as error:
        raise ModelError(str(error).replace(alone, str(path))) from error


def begin_token(path: Path) -> int | None:
    """The id of the begin token if texts start with it, by what the file says or leaves out.

    `tokenizer.ggml.add_bos_token` decides where it stands. Many files lack it, and llama.cpp then
    goes by the kind of vocabulary.
    """
    gguf: Any = need("gguf", extra="hf", what="reading GGUF files")
    fields = gguf.GGUFReader(str(path)).fields

    def said(name: str) -> Any:
        field = fields.get(f"tokenizer.ggml.{name}")
        return None if field is None else field.contents()

    kind, flag, token = said("model"), said("add_bos_token"), said("bos_token_id")
    if flag is None:
        flag = kind in BEGINS or (kind == "gpt2" and said("pre") in BEGINS_BY_SPLITTER)
    token = DEFAULT_IDS.get(kind) if token is None else token
    return int(token) if flag and token is not None else None


def _keep_begin_token(tokenizer: Any, begin: int | None) -> None:
    """Make the saved tokenizer put the begin token first exactly when the file says so."""
    first = tokenizer("a")["input_ids"][:1]
    if first == [begin] or (begin is None and first != [tokenizer.bos_token_id]):
        return
    processors: Any = need("tokenizers.processors", extra="hf", what="reading GGUF files")
    if begin is None:
        tokenizer.backend_tokenizer.post_processor = processors.Sequence([])
        return
    token = tokenizer.convert_ids_to_tokens(begin)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A {token} $B", special_tokens=[(token, begin)]
    )

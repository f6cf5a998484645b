"""GGUF files: converted once into safetensors, then loaded like any folder.

Reading a quantised GGUF takes tens of seconds, the converted copy a tenth of one. The begin-token
flag is read from the file itself: the loader drops it for some models, and every score would
then be wrong without a word.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError, need
from evenhand.models.loading.cache import cache_folder, file_digest, writable

CONVERSION = "gguf-1"


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
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    config = transformers.GgufConfig(gguf_file=path.name, dequantize=True)
    temporary = folder.with_name(f"{folder.name}.{os.getpid()}.tmp")
    try:
        with contextlib.redirect_stderr(io.StringIO()):  # the loader's own progress bar
            model = transformers.AutoModelForCausalLM.from_pretrained(
                str(path.parent),
                gguf_file=path.name,
                quantization_config=config,
                dtype=torch.float32,
            )
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(path.parent), gguf_file=path.name
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        raise ModelError(f"{path}: not a GGUF file that can be read ({error}).") from error
    _keep_begin_token(tokenizer, begin_token(path))
    temporary.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(temporary)
    tokenizer.save_pretrained(temporary)
    facts = {"source": path.name, "source_sha256": digest, "conversion": CONVERSION}
    (temporary / "evenhand.json").write_text(json.dumps(facts, indent=1, sort_keys=True))
    if folder.exists():
        shutil.rmtree(folder)
    temporary.rename(folder)


def begin_token(path: Path) -> int | None:
    """The id of the begin token if the file says that texts start with it."""
    gguf: Any = need("gguf", extra="hf", what="reading GGUF files")
    fields = gguf.GGUFReader(str(path)).fields
    flag = fields.get("tokenizer.ggml.add_bos_token")
    token = fields.get("tokenizer.ggml.bos_token_id")
    if flag is None or token is None or not bool(flag.contents()):
        return None
    return int(token.contents())


def _keep_begin_token(tokenizer: Any, begin: int | None) -> None:
    """Make the saved tokenizer put the begin token first when the file says so."""
    if begin is None or tokenizer("a")["input_ids"][:1] == [begin]:
        return
    processors: Any = need("tokenizers.processors", extra="hf", what="reading GGUF files")
    token = tokenizer.convert_ids_to_tokens(begin)
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{token} $A", pair=f"{token} $A {token} $B", special_tokens=[(token, begin)]
    )

"""Real model servers on this machine, each in a process of its own: llama.cpp and transformers."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LLAMA = """
import sys, time
import xllamacpp as llama
path, port, slots, exact = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "exact"
p = llama.CommonParams()
p.model.path, p.port, p.n_parallel, p.n_ctx = path, port, slots, 1024 * slots
p.model_alias = {"smollm2"}
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = 1  # more of them spin on a busy machine
p.warmup, p.verbosity = False, 0
if exact:
    p.cache_type_k = p.cache_type_v = llama.ggml_type.GGML_TYPE_F32
    p.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
server = llama.Server(p)
time.sleep(86_400)
"""


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextlib.contextmanager
def llama_cpp(weights: Path, *, exact: bool = False, slots: int = 4) -> Iterator[str]:
    """llama.cpp's server on a GGUF file, which works on so many calls at once; exact: keys and
    values are kept in float32 too."""
    pytest.importorskip("xllamacpp", reason="needs the dev extra (xllamacpp)")
    port = free_port()
    words = [sys.executable, "-c", LLAMA, str(weights), str(port), str(slots)]
    words += ["exact" if exact else ""]
    with _running(words, f"http://127.0.0.1:{port}", "/health", 60) as url:
        yield url


@contextlib.contextmanager
def transformers_serve(folder: Path) -> Iterator[str]:
    """`transformers serve` on a checkpoint folder, in float32 (its default takes 20 s a call)."""
    for module in ("transformers.cli.serving.systemone", "fastapi", "openai"):
        pytest.importorskip(module, reason="needs transformers[serving] with /v1/systemone")
    port = free_port()
    program = str(Path(sys.executable).with_name("transformers"))
    words = [program, "serve", str(folder), "--port", str(port), "--host", "127.0.0.1"]
    words += ["--dtype", "float32", "--device", "cpu"]
    with _running(words, f"http://127.0.0.1:{port}", "/health", 120) as url:
        yield url


@contextlib.contextmanager
def _running(words: list[str], root: str, path: str, patience: float) -> Iterator[str]:
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        words, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/"
    )
    try:
        end = time.monotonic() + patience
        while not _there(root + path):
            if process.poll() is not None or time.monotonic() > end:
                pytest.skip(f"the server did not start: {' '.join(words[:3])[:200]}")
            time.sleep(0.2)
        yield f"{root}/v1"
    finally:
        process.kill()
        process.wait()


def _there(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def float32_gguf(packed: Path, target: Path) -> Path:
    """The same weights unpacked to float32, in a GGUF file; what the file says is kept."""
    gguf: Any = pytest.importorskip("gguf", reason="needs the hf extra (gguf)")
    if target.is_file():
        return target
    reader = gguf.GGUFReader(str(packed))
    temporary = target.with_suffix(f".{os.getpid()}.tmp")
    writer = gguf.GGUFWriter(str(temporary), reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        inside = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, inside)
    for tensor in reader.tensors:
        plain = gguf.dequantize(tensor.data, tensor.tensor_type).astype("float32")
        writer.add_tensor(tensor.name, plain)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    temporary.replace(target)
    return target

"""Weights in 8 or 4 bits, by transformers' own loader, and whether a model fits before it is read.

--load 8bit    LLM.int8 (Dettmers et al. 2022): a quarter of float32's memory
--load 4bit    NF4 (Dettmers et al. 2023): an eighth
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from evenhand.errors import ModelError, need

WHOLE = {"float64": 8.0, "float32": 4.0, "bfloat16": 2.0, "float16": 2.0, "8bit": 1.0, "4bit": 0.5}
"""Bytes of a weight."""


def settings(load: str) -> dict[str, Any]:
    """What transformers is told about packed weights.

    Raises:
        MissingExtra: bitsandbytes, which does the packing, is not installed.
    """
    transformers: Any = need("transformers", extra="hf", what="loading a language model")
    need("bitsandbytes", extra="packed", what=f"--load {load}")
    need("accelerate", extra="hf", what=f"--load {load}")
    packing: dict[str, Any] = {f"load_in_{load}": True}
    if load == "4bit":
        packing["bnb_4bit_quant_type"] = "nf4"
    return {"quantization_config": transformers.BitsAndBytesConfig(**packing)}


def check_room(name: str, shapes: Iterable[tuple[int, ...]], form: str, free: int) -> None:
    """Refuse a model whose weights alone are more than there is memory for, before reading them.

    Args:
        shapes: of its tensors.
        form: a precision, 8bit or 4bit.
        free: bytes that are available.

    >>> check_room("big", [(1 << 30, 4)], "float32", free=8 << 30)
    Traceback (most recent call last):
        ...
    evenhand.errors.ModelError: model 'big': its 4.3 billion weights take 16.0 GiB in float32, and \
8.0 GiB are free. Load it in less with: --dtype bfloat16, --load 8bit or --load 4bit; or serve it \
elsewhere and ask it by its address.
    """
    count = sum(math.prod(shape) for shape in shapes)
    wanted = count * WHOLE[form]
    if wanted > free:
        raise ModelError(
            f"model {name!r}: its {count / 1e9:.1f} billion weights take {wanted / 2**30:.1f} GiB "
            f"in {form}, and {free / 2**30:.1f} GiB are free. Load it in less with: --dtype "
            f"bfloat16, --load 8bit or --load 4bit; or serve it elsewhere and ask it by its "
            f"address."
        )


def free_bytes(torch: Any, device: str) -> int:
    """Memory that is available on a device."""
    if device.startswith("cuda"):
        return int(torch.cuda.mem_get_info(torch.device(device))[0])
    import psutil

    return int(psutil.virtual_memory().available)

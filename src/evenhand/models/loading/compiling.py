"""Compiling the layers of a model with `torch.compile`, where somebody asks for it.

Each layer is compiled by itself, so that one compilation serves all of them and hooks on layers
(mitigations, positions asked for) stay outside. It takes 4 to 14 seconds when a model is loaded.
Encoders gain 8 % on an H200, causal models between 3 % and more (runs differ), and nothing is won
on a processor (benchmarks/compiled.py), so it is not done unasked.
"""

from __future__ import annotations

import warnings
from typing import Any

from evenhand.errors import ModelError
from evenhand.models.loading.precision import finite


def compile_layers(torch: Any, model: Any, tokenizer: Any, name: str) -> None:
    """Let the model's layers run compiled, tried on a sentence so that trouble shows at once.

    The sentence is always the first input, so what is compiled does not depend on the work.
    """
    layers = stack_of(torch, model)
    if not layers:
        raise ModelError(
            f"--compile: model {name!r} has no stack of layers to compile. Leave the option out."
        )
    for layer in layers:
        layer.forward = torch.compile(layer.forward)
    try:
        with warnings.catch_warnings():
            # A coarser float32 would be faster, and is not wanted: scores are compared.
            warnings.filterwarnings("ignore", message="TensorFloat32 tensor cores")
            finite(torch, model, tokenizer)
    except Exception as error:  # no compiler, or one that refuses the model
        first = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ModelError(
            f"--compile: the layers of {name!r} cannot be compiled here ({first}). It needs a C++ "
            f"compiler, on a GPU also Triton, which comes with torch. Or leave the option out."
        ) from error


def stack_of(torch: Any, model: Any) -> list[Any]:
    """The model's layers: the first list of modules in its trunk."""
    lists = (m for m in model.base_model.modules() if isinstance(m, torch.nn.ModuleList))
    return list(next((found for found in lists if len(found)), []))

"""In which precision a model computes when nobody says so.

On a processor float32: bfloat16 was measured 12 times slower on one and 1.8 times faster on another
(one with instructions for it), where it moved scores by up to 0.09 (benchmarks/cpu_ways.py). On a
GPU float32 below a hundred million parameters, where half precision was measured to save nothing;
above, float16, whose scores lie ten times nearer to those of float32 than bfloat16's do at the
same speed (docs/papers/unqover.md), or bfloat16 for a model whose numbers are too large for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SMALL = 100_000_000  # parameters
EXAMPLE = "The doctor met the teacher in the city because it was late, and both of them knew it."


def fitting(torch: Any, load: Callable[[Any], Any], tokenizer: Any, device: str) -> tuple[Any, str]:
    """The model on its GPU, and the name of the precision that suits it.

    `load(dtype)` reads the checkpoint; "auto" is the precision it was saved in.
    """
    model = load("auto")
    if sum(p.numel() for p in model.parameters()) < SMALL:
        return model.to(device=device, dtype=torch.float32), "float32"
    model = model.to(device=device, dtype=torch.float16)
    if finite(torch, model, tokenizer):
        return model, "float16"
    return load(torch.bfloat16).to(device), "bfloat16"


def finite(torch: Any, model: Any, tokenizer: Any) -> bool:
    """Whether the hidden states of an ordinary sentence are finite numbers."""
    tokens = tokenizer(EXAMPLE, return_tensors="pt").to(model.device)
    trunk = model.base_model.eval()
    with torch.inference_mode():
        states = trunk(tokens["input_ids"], attention_mask=tokens["attention_mask"])[0]
    return bool(torch.isfinite(states).all())

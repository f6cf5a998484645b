"""Linear layers with their weights laid out as the processor multiplies them.

torch multiplies by a weight as it lies in memory, which MKL has to put in order at every call, and
does so without the widest instructions on processors of other makers. oneDNN, which torch brings
along, multiplies by a weight that was put in order once: 1.1 to 2.6 times as fast in float32 on an
AMD EPYC, for one row as for hundreds (`benchmarks/packed_weights.py`). Sums are taken in another
order, so scores move in the last digits of float32, as they do between two processors.

The weight itself stays where it is for whoever reads, edits or saves it, so the ordered copy costs
memory: models above `MOST` parameters do without.
"""

from __future__ import annotations

from functools import partial
from typing import Any

MOST = 500_000_000
"""Parameters in linear layers up to which a second copy is affordable (2 GB)."""
ROWS = 512
"""For how many rows at a time the order is chosen; others gain too."""


class Ordered:
    """A weight in order, and whether a layer still has the weight that it was made from.

    Nothing of it is saved or sent: a copy of the layer has another weight, and multiplies by that.
    """

    def __init__(self, weight: Any = None) -> None:
        import torch

        self.weight = weight
        if weight is not None:
            self.version = weight._version
            self.made = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), ROWS)

    def of(self, weight: Any) -> bool:
        return weight is self.weight and weight._version == self.version

    def __deepcopy__(self, memo: Any) -> Ordered:
        return self

    def __reduce__(self) -> Any:
        return Ordered, ()


def pack_linears(torch: Any, model: Any) -> int:
    """Let the linear layers of a float32 model on the processor multiply by ordered weights.

    Returns how many do; none where torch has no oneDNN, or the model is too large.
    """
    layers = [m for m in model.modules() if type(m) is torch.nn.Linear]
    plain = all(m.weight.dtype == torch.float32 and m.weight.device.type == "cpu" for m in layers)
    size = sum(m.weight.numel() for m in layers)
    if not (layers and plain and size <= MOST and torch.backends.mkldnn.is_available()):
        return 0
    try:
        made = [Ordered(layer.weight) for layer in layers]
    except (AttributeError, RuntimeError):  # another build of torch, or an odd shape
        return 0
    for layer, ordered in zip(layers, made):
        layer.forward = partial(_product, layer, ordered)
    return len(layers)


def _product(layer: Any, ordered: Ordered, rows: Any) -> Any:
    """x W' + b; with the layer's own weight where that was changed, or is learned."""
    import torch

    learned = torch.is_grad_enabled() and (rows.requires_grad or layer.weight.requires_grad)
    if learned or rows.dtype != torch.float32 or not ordered.of(layer.weight):
        return torch.nn.functional.linear(rows, layer.weight, layer.bias)
    return torch.ops.mkldnn._linear_pointwise(rows, ordered.made, layer.bias, "none", [], "")

"""Arrays to and from the device without waiting for the work under way there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def moved(torch: Any, array: Any, device: str) -> Any:
    """An array on the device, copied without waiting for work under way there."""
    tensor = torch.from_numpy(np.ascontiguousarray(array))
    if device.startswith("cuda"):
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def fetched(torch: Any, tensor: Any) -> Callable[[], np.ndarray]:
    """A function that gives the tensor's values as float64; only calling it waits for them.

    >>> import torch
    >>> fetched(torch, torch.tensor([0.5]))()
    array([0.5])
    """
    if not tensor.is_cuda:
        return lambda: np.asarray(tensor.double().numpy())
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    host.copy_(tensor, non_blocking=True)
    done = torch.cuda.Event()
    done.record(torch.cuda.current_stream(tensor.device))  # of its own device, not cuda:0

    def get() -> np.ndarray:
        done.synchronize()
        return np.asarray(host.double().numpy())

    return get

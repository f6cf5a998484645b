"""One launch instead of thirty: an edited decoding step as a CUDA graph.

While decoding, the small operations of an edit are bound by how fast the host can launch them.
They are recorded once per batch size and replayed from then on. Anything that cannot be recorded
runs as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.models.edits.head import AppliedEdit

MOST_FLOATS = 1 << 24
MOST_GRAPHS = 4
SEEN = 2  # a batch size is recorded when it comes for the second time


class Replays:
    """Recorded steps of one applied edit, by batch size."""

    def __init__(self, torch: Any, applied: AppliedEdit) -> None:
        self.torch, self.applied = torch, applied
        self.seen: dict[int, int] = {}
        self.made: dict[int, _Recorded | None] = {}

    def __call__(self, hidden: Any, raw: Any, logits: Any) -> Any:
        """Edited logits [..., 1, vocabulary] in float32."""
        size = logits.shape[-1]
        own, states = logits.reshape(-1, size), hidden.reshape(-1, hidden.shape[-1])
        recorded = self._recorded(states, raw, own)
        if recorded is None:
            made = self.applied.on_rows(states.float(), raw, own.float())
        else:
            made = recorded.replay(states, raw, own)
        return made.reshape(logits.shape)

    def _recorded(self, states: Any, raw: Any, own: Any) -> _Recorded | None:
        rows = len(own)
        if rows in self.made:
            return self.made[rows]
        self.seen[rows] = self.seen.get(rows, 0) + 1
        if self.seen[rows] < SEEN or own.numel() > MOST_FLOATS or len(self.made) >= MOST_GRAPHS:
            return None
        if self.torch.cuda.is_current_stream_capturing():
            return None
        try:
            self.made[rows] = _Recorded(self.torch, self.applied, states, raw, own)
        except RuntimeError:  # an operation that cannot be recorded: go on without
            self.made[rows] = None
        return self.made[rows]


class _Recorded:
    """One graph with inputs and output at fixed places."""

    def __init__(self, torch: Any, applied: AppliedEdit, states: Any, raw: Any, own: Any) -> None:
        with torch.inference_mode(False), torch.no_grad(), torch.cuda.device(own.device):
            self.states = torch.empty(states.shape, device=own.device)
            self.own = torch.empty(own.shape, device=own.device)
            self.raw = None if applied.post is None else torch.empty_like(self.own)
            self._put(states, raw, own)
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                for _ in range(2):
                    applied.on_rows(self.states, self.raw, self.own.clone())
            torch.cuda.current_stream().wait_stream(side)
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.out = applied.on_rows(self.states, self.raw, self.own)

    def _put(self, states: Any, raw: Any, own: Any) -> None:
        self.states.copy_(states)
        self.own.copy_(own)
        if self.raw is not None:
            self.raw.copy_(raw.reshape(self.raw.shape))

    def replay(self, states: Any, raw: Any, own: Any) -> Any:
        self._put(states, raw, own)
        self.graph.replay()
        return self.out.clone()

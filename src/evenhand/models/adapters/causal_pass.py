"""The packed pass of a causal model: from token sequences to what its head says of some positions.

Sequences that begin alike share their beginning (`packing`), and only the positions asked for
reach the vocabulary head. What is asked, and how texts become tokens, is `causal`'s.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from evenhand.models.batching.beginnings import common_beginning, run_once
from evenhand.models.batching.compiled import LARGE, layers_compiled
from evenhand.models.batching.lanes import LANE_TOKENS, in_lanes
from evenhand.models.batching.packing import Ints, PackedBatch, Ragged, pack, packed_batches
from evenhand.models.chat import Chat
from evenhand.models.edits.head import AppliedEdit
from evenhand.models.loading.cache import remembered
from evenhand.models.loading.device import fetched, moved
from evenhand.models.loading.transformer import Transformer

ROW_NODES = 256
SMALL_ROW = 112
"""The same on a processor, where attention over more nodes costs more than it saves."""
GRAIN = 8
"""On a GPU rows are filled up to a multiple of this many nodes, which its kernels want."""
HEAD_ELEMENTS = 1 << 26
"""Vocabulary-sized floats alive at once: 256 MB in float32."""
DEVICE_HEAD_ELEMENTS = 1 << 30
"""The same on a GPU, where a pass over few tokens does not pay."""
PACKING = "1"
"""How rows are packed: another number and every model is tried anew."""
NEAR_ROWS = 8
"""Rows of a vocabulary that a processor's cache holds: 1.5 MB in float32."""


def _log_sums(torch: Any, logits: Any) -> Any:
    """Log of the summed exponentials of every row; on a processor the logits are used up.

    There a few rows at a time, in place: what is written is read again while it is near.
    """
    if logits.device.type != "cpu":
        return logits.logsumexp(-1)
    out = torch.empty(len(logits), dtype=logits.dtype)
    for rows, sums in zip(logits.split(NEAR_ROWS), out.split(NEAR_ROWS)):
        top = rows.amax(-1, keepdim=True)
        torch.sum(rows.sub_(top).exp_(), -1, out=sums)
        sums.log_().add_(top[:, 0])
    return out


@dataclass
class Wanted:
    """Token sequences, and the positions whose next-token distribution is asked for.

    Positions starts[i] to stops[i] (not included) of sequence i.
    """

    tokens: Ragged
    starts: Ints
    stops: Ints
    batches: list[PackedBatch] | None = None
    """How they are laid out, when that was done ahead."""
    beginning: int = 0
    """How many first tokens of all sequences are run once, before the batches."""

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], positions: Sequence[range]) -> Wanted:
        size = len(positions)
        return cls(
            Ragged.of(sequences),
            np.fromiter((p.start for p in positions), np.int64, size),
            np.fromiter((p.stop for p in positions), np.int64, size),
        )

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def sequences(self) -> list[list[int]]:
        return self.tokens.lists()

    @cached_property
    def positions(self) -> list[range]:
        return list(map(range, self.starts.tolist(), self.stops.tolist()))


Use = Callable[[Any, Ints, Ints, Ints], None]


class _Seen(Exception):
    """Carries the head's input out of a forward pass that needs no head."""

    def __init__(self, states: Any) -> None:
        super().__init__()
        self.states = states


class PackedPass(Transformer):
    """A causal model as something that runs token sequences."""

    vocabulary: int
    chat: Chat | None
    packs: bool
    """Whether sequences that begin alike can lie in one row."""
    begins_once: bool
    """Whether a beginning of all sequences can be run before them."""
    edit: AppliedEdit | None = None
    """A changed head, or None: set through `with_head`."""

    @contextlib.contextmanager
    def edited(self) -> Iterator[None]:
        """Inside: calls of the Hugging Face model give the edited logits, if there is an edit."""
        if self.edit is None:
            yield
            return
        with self.edit.active():
            yield
        self.edit.check(self.name, self.dtype)

    def _score(self, wanted: Wanted) -> tuple[np.ndarray, np.ndarray]:
        """Summed log-probability of the tokens after each wanted position, and their number."""
        return self._scoring(wanted)()

    def _scoring(self, wanted: Wanted) -> Callable[[], tuple[np.ndarray, np.ndarray]]:
        """The same, put in the device's queue; the function given back waits for it."""
        parts, seen = [], []
        tokens, starts = wanted.tokens.tokens, wanted.tokens.starts

        def add(logits: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            asked = np.stack([which, tokens[starts[owners] + steps + 1]])
            at, target = moved(self.torch, asked, self.device)
            said = logits[at, target]
            parts.append(said - _log_sums(self.torch, logits)[at])
            seen.append(owners)

        self._visit(wanted, add)
        wait = fetched(self.torch, self.torch.cat(parts)) if parts else None

        def finish() -> tuple[np.ndarray, np.ndarray]:
            if wait is None:
                return np.zeros(len(wanted)), np.zeros(len(wanted), np.int32)
            total = np.bincount(np.concatenate(seen), wait(), len(wanted))
            return total, (wanted.stops - wanted.starts).astype(np.int32)

        return finish

    def _log_probabilities(self, wanted: Wanted) -> list[Any]:
        """Next-token log-probabilities after each sequence, float32 [vocabulary] each."""
        out: list[Any] = [None] * len(wanted)

        def keep(logits: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            exact = logits.log_softmax(-1)
            for owner, row in zip(owners.tolist(), which.tolist()):
                out[owner] = exact[row]

        self._visit(wanted, keep)
        return out

    def states(self, wanted: Wanted) -> np.ndarray:
        """The head's inputs at the wanted positions, in order; the head itself does not run."""
        starts = np.cumsum(np.append(0, wanted.stops - wanted.starts))
        out = np.empty((int(starts[-1]), self.model.get_output_embeddings().weight.shape[1]), "f4")

        def stop(module: Any, inputs: Any) -> None:
            raise _Seen(inputs[0])

        def use(states: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            out[starts[owners] + steps - wanted.starts[owners]] = states.cpu().numpy()[which]

        handle = self.model.get_output_embeddings().register_forward_pre_hook(stop)
        plain = copy.copy(self)
        plain.edit = None
        try:
            with self.torch.inference_mode():
                plain._visit(wanted, use)
        finally:
            handle.remove()
        return out

    @property
    def _head_limit(self) -> int:
        """How many positions may go through the vocabulary head together."""
        return max(1, (DEVICE_HEAD_ELEMENTS if self.on_gpu else HEAD_ELEMENTS) // self.vocabulary)

    @property
    def _batch_tokens(self) -> int:
        """How many tokens are run together: on a processor few, which lanes share out evenly."""
        return self.token_budget if self.on_gpu else min(self.token_budget, LANE_TOKENS)

    def _lay_out(self, wanted: Wanted) -> list[PackedBatch]:
        """Pack the sequences into batches (may be done ahead of the device).

        What stands after the last asked position is not run: a continuation of one token costs
        nothing beside its prefix. Nor is the beginning that all conversations share.
        """
        once = self.chat is not None and self.begins_once
        starts, stops, given = wanted.starts, wanted.stops, wanted.tokens
        at = common_beginning(given, starts) if once else 0
        read = given.cut(at, np.minimum(given.sizes, np.maximum(1, stops)))
        row_nodes = max(ROW_NODES, int(read.sizes.max(initial=0)))
        trees = pack(read, row_nodes, share=self.packs, small=0 if self.on_gpu else SMALL_ROW)
        wanted.beginning = at
        wanted.batches = packed_batches(
            trees,
            starts - at,
            stops - at,
            self._batch_tokens,
            self._head_limit,
            GRAIN if self.on_gpu else 1,
        )
        return wanted.batches

    def _visit(self, wanted: Wanted, use: Use) -> None:
        """Call `use(logits, which, owners, steps)` for batches of wanted positions.

        Position k is step `steps[k]` of sequence `owners[k]`, and its logits are row `which[k]`:
        sequences that begin alike are asked about the same rows.
        """
        batches = self._lay_out(wanted) if wanted.batches is None else wanted.batches
        at = wanted.beginning
        begun = (
            run_once(self.torch, self.model, wanted.tokens.tokens[:at], self.device) if at else None
        )

        def run(lane: PackedPass, batch: PackedBatch, lock: Any) -> None:
            logits = lane._forward(batch, at, begun)
            with lock:
                use(logits, batch.inverse, batch.owners, batch.steps + at)

        if self.on_gpu or self.compiled or self.edit is not None:
            with self._fused(len(wanted), begun), self._attention():
                for batch in batches:
                    run(self, batch, contextlib.nullcontext())
        else:
            in_lanes(self, batches, run)

    def _fused(self, rows: int, begun: Any) -> contextlib.AbstractContextManager[None]:
        """Compiled layers for what is large enough; not after a beginning, which is no tensor."""
        half = self.dtype in ("bfloat16", "float16")
        plain = self.compiled or self.edit is not None or begun is not None
        if not self.on_gpu or not half or plain or rows < LARGE:
            return contextlib.nullcontext()
        return layers_compiled(self.torch, self.model)

    def _attention(self) -> Any:
        """On a GPU without cuDNN's attention, which plans 50 ms for every shape it has not met."""
        if not self.on_gpu:
            return contextlib.nullcontext()
        from torch.nn.attention import SDPBackend, sdpa_kernel

        kinds = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH)
        return sdpa_kernel(list(kinds))

    def _forward(self, batch: PackedBatch, at: int = 0, begun: Any = None) -> Any:
        """Logits at the asked nodes of a batch of packed rows, float32 [nodes, vocabulary]."""
        torch = self.torch
        arguments: dict[str, Any] = {"input_ids": moved(torch, batch.tokens, self.device)}
        if self.packs:
            arguments["attention_mask"] = self._tree_mask(moved(torch, batch.ends, self.device), at)
            arguments["position_ids"] = moved(torch, batch.depths + at, self.device)
        if begun is not None:
            arguments["past_key_values"] = begun
        where = (moved(torch, batch.rows, self.device), moved(torch, batch.columns, self.device))
        with self.only_positions(*where), self.edited():
            try:
                return self.model(**arguments, use_cache=begun is not None).logits[0].float()
            except _Seen as seen:
                return seen.states[0].float()

    def _tree_mask(self, ends: Any, at: int = 0) -> Any:
        """What is added to attention scores [rows, 1, width, at + width]: 0 for ancestors and self.

        The first `at` columns are a beginning that every node has.
        """
        torch = self.torch
        node = torch.arange(ends.shape[1], device=self.device)
        seen = (node[None, :] <= node[:, None]) & (node[:, None] < ends[:, None, :])
        out = torch.zeros(seen.shape, dtype=self.model.dtype, device=self.device)
        out = out.masked_fill_(~seen, torch.finfo(self.model.dtype).min)
        return torch.nn.functional.pad(out, (at, 0))[:, None]

    def _packing(self) -> tuple[bool, bool]:
        """`_packing_is_exact`, tried once for the same files, libraries and way of loading."""
        if self.held is not None:
            return self._packing_is_exact()
        import transformers

        versions = PACKING, self.torch.__version__, transformers.__version__
        device = self.torch.cuda.get_device_name(self.device) if self.on_gpu else self.device
        way = device, self.dtype, self.load_form, self.compiled, self.chat is not None
        mark = "|".join(map(str, (*versions, *way, self._weights())))

        def find() -> dict[str, bool]:
            packs, begins_once = self._packing_is_exact()
            return {"packs": packs, "begins_once": begins_once}

        found = remembered("packing", mark, find, packs=bool, begins_once=bool)
        return found["packs"], found["begins_once"]

    def _packing_is_exact(self) -> tuple[bool, bool]:
        """Whether packed rows give this architecture the scores of plain sequences, and whether
        they do so after a beginning that is run once."""
        some = list(range(5, 12))
        wanted = Wanted.of([some, [*some[:4], 20, 21]], [range(6, 7), range(5, 6)])
        plain = self._as_laid_out(wanted, packs=False, at=0)
        tolerance = 1e-3 if self.dtype == "float32" else 0.3

        def exact(at: int) -> bool:
            found = self._as_laid_out(wanted, packs=True, at=at)
            both = plain is not None and found is not None
            return both and all(
                float((found[i] - plain[i]).abs().max()) < tolerance  # type: ignore[index]
                for i in plain or ()
            )

        packs = exact(0)
        return packs, packs and not self.compiled and self.chat is not None and exact(3)

    def _as_laid_out(self, wanted: Wanted, *, packs: bool, at: int) -> dict[int, Any] | None:
        """Log-probabilities under a way to lay sequences out; None where it is not taken."""
        found: dict[int, Any] = {}

        def keep(logits: Any, which: Ints, owners: Ints, steps: Ints) -> None:
            found.update(zip(owners.tolist(), logits[which.tolist()].log_softmax(-1)))

        self.packs, self.begins_once = packs, at > 0
        wanted = Wanted(wanted.tokens, wanted.starts, wanted.stops)
        try:
            with self.torch.inference_mode():
                self._visit(wanted, keep)
        except (TypeError, ValueError, RuntimeError, AttributeError):
            return None  # the architecture takes no explicit mask or positions
        return found

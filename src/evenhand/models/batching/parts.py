"""Inputs put together from parts that are tokenised once.

Millions of inputs are made of few texts: the gender set of UnQover has 5,488,000 of them from
39,200 contexts and 140 questions. Each distinct part is tokenised once; an input is then

    prefix | first part | middle | second part | suffix     [CLS] question [SEP] context [SEP]

and whole batches are assembled as arrays, without a Python loop over inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from evenhand.models.loading.device import moved

Ints = npt.NDArray[np.int64]
T = TypeVar("T")
REMEMBERED = 400_000
MIN_SHARE = 0.25
"""A batch of one length gets its own pass when it fills this share of the token budget."""


class Pool:
    """Distinct texts with their token ids, numbered in order of arrival.

    Args:
        encode: gives the token ids of a list of texts.
    """

    def __init__(self, encode: Callable[[list[str]], Sequence[Sequence[int]]]) -> None:
        self._encode = encode
        self._forget()

    def _forget(self) -> None:
        self.code: dict[str, int] = {}
        self._flat: Ints = np.zeros(1_024, np.int64)
        self._starts: Ints = np.zeros(1, np.int64)

    def codes(self, texts: Sequence[str]) -> Ints:
        """The number of each text; new ones are tokenised together."""
        if len(self.code) > REMEMBERED:
            self._forget()
        new = [t for t in dict.fromkeys(texts) if t not in self.code]
        if new:
            self._add(new)
        return np.fromiter(map(self.code.__getitem__, texts), np.int64, len(texts))

    def _add(self, new: list[str]) -> None:
        encoded = self._encode(new)
        known, used = len(self.code), int(self._starts[-1])
        ends = used + np.cumsum([len(ids) for ids in encoded])
        needed = int(ends[-1])
        if needed > len(self._flat):
            self._flat = np.concatenate([self._flat, np.zeros(needed, np.int64)])
        self._flat[used:needed] = [i for ids in encoded for i in ids]
        self._starts = np.concatenate([self._starts, ends]).astype(np.int64)
        self.code.update((text, known + i) for i, text in enumerate(new))

    def lengths(self, codes: Ints) -> Ints:
        """Tokens of each numbered text."""
        return np.asarray(self._starts[codes + 1] - self._starts[codes], np.int64)

    def frozen(self) -> tuple[Ints, Ints]:
        """Token ids of all texts in one row, and where each text starts."""
        return self._flat, self._starts


@dataclass(frozen=True)
class Frame:
    """The special tokens around and between two parts, and the token type of each segment."""

    prefix: tuple[int, ...]
    middle: tuple[int, ...]
    suffix: tuple[int, ...]
    types: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)

    def size(self) -> int:
        return len(self.prefix) + len(self.middle) + len(self.suffix)


@dataclass
class Batch:
    """One padded batch: which inputs, their ids, types and lengths."""

    inputs: Ints
    ids: Ints
    types: Ints | None
    lengths: Ints

    def tensors(self, torch: Any, device: str, *, always_mask: bool = False) -> dict[str, Any]:
        """Model arguments. Without padding no mask is needed, which frees the fast kernels."""

        out = {"input_ids": moved(torch, self.ids, device)}
        width = self.ids.shape[1]
        if always_mask or (self.lengths < width).any():
            real = np.arange(width)[None] < self.lengths[:, None]
            out["attention_mask"] = moved(torch, real.astype(np.int64), device)
        if self.types is not None:
            out["token_type_ids"] = moved(torch, self.types, device)
        return out


@dataclass
class Assembly:
    """Inputs as pairs of part numbers, ready to be laid out in batches."""

    frame: Frame
    first: Pool
    second: Pool
    a: Ints
    b: Ints
    pad: int = 0
    with_types: bool = True
    lengths: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.lengths = self.frame.size() + self.first.lengths(self.a) + self.second.lengths(self.b)

    def second_at(self) -> Ints:
        """Position of the second part's first token in each input."""
        return len(self.frame.prefix) + self.first.lengths(self.a) + len(self.frame.middle)

    def batches(self, budget: int) -> list[Batch]:
        """All inputs, longest first, in batches of similar length within the token budget."""
        return [self.batch(rows) for rows in similar_lengths(self.lengths, budget)]

    def batch(self, rows: Ints) -> Batch:
        frame, lengths = self.frame, self.lengths[rows]
        width = int(lengths.max())
        column = np.arange(width)[None]
        first, second = self.a[rows], self.b[rows]
        edges = np.cumsum(
            [
                np.full(len(rows), len(frame.prefix)),
                self.first.lengths(first),
                np.full(len(rows), len(frame.middle)),
                self.second.lengths(second),
                np.full(len(rows), len(frame.suffix)),
            ],
            axis=0,
        )[:, :, None]
        ids = np.full((len(rows), width), self.pad, np.int64)
        segment = (column >= edges[:-1]).sum(axis=0)
        inside = column < edges[-1]
        for number, fixed in ((0, frame.prefix), (2, frame.middle), (4, frame.suffix)):
            if fixed:
                low = edges[number - 1] if number else np.zeros_like(edges[0])
                at = inside & (segment == number)
                ids[at] = np.asarray(fixed)[(column - low)[at]]
        for number, pool, codes in ((1, self.first, first), (3, self.second, second)):
            flat, starts = pool.frozen()
            at = inside & (segment == number)
            ids[at] = flat[(starts[codes][:, None] + column - edges[number - 1])[at]]
        types = None
        if self.with_types:
            types = np.where(inside, np.asarray(frame.types)[segment], 0)
        return Batch(rows, ids, types, lengths)


def numbered(things: Sequence[T]) -> tuple[list[T], Ints]:
    """The distinct things in order of arrival, and each thing's number among them.

    >>> numbered(["b", "a", "b"])
    (['b', 'a'], array([0, 1, 0]))
    """
    known = {thing: number for number, thing in enumerate(dict.fromkeys(things))}
    return list(known), np.fromiter(map(known.__getitem__, things), np.int64, len(things))


def similar_lengths(lengths: Ints, budget: int) -> list[Ints]:
    """Row numbers by batch: longest first, within the budget, without padding where possible.

    Inputs of one length are shared out evenly over batches of their own, which need no mask. Those
    too few to keep a device busy are joined by the next shorter ones.

    >>> [b.tolist() for b in similar_lengths(np.array([3, 9, 9]), 18)]
    [[1, 2], [0]]
    >>> [b.tolist() for b in similar_lengths(np.array([9, 8, 8]), 400)]
    [[0, 1, 2]]
    """
    order = np.argsort(-lengths, kind="stable")
    widths, starts = np.unique(-lengths[order], return_index=True)
    stops = [*starts[1:].tolist(), len(order)]
    batches: list[Ints] = []
    start = 0
    for width, stop in zip((-widths).tolist(), stops):
        if (stop - start) * width < MIN_SHARE * budget and stop < len(order):
            continue  # too few: the next shorter ones join them
        widest = max(1, int(lengths[order[start]]))
        parts = -(-(stop - start) // max(1, budget // widest))
        batches += np.array_split(order[start:stop], parts)
        start = stop
    return batches


def pair_frame(tokenizer: Any) -> Frame | None:
    """What a tokenizer puts around two texts, or None when parts cannot be put together.

    Checked on a few pairs: when tokenising the parts alone does not give the tokenizer's own
    pair encoding, None is given and the caller tokenises whole pairs.
    """
    samples = [("Who was it?", "Ann met Bob."), ("a", "The man, in 1990."), ("x y", "Zoë-Ann")]
    frame: Frame | None = None
    for one, two in samples:
        whole = tokenizer(one, two, truncation=False)
        parts = tokenizer([one, two], add_special_tokens=False, truncation=False)["input_ids"]
        ids, types = list(whole["input_ids"]), whole.get("token_type_ids")
        found = _between(ids, list(parts[0]), list(parts[1]), types)
        if found is None or (frame is not None and frame != found):
            return None
        frame = found
    return frame


def _between(
    whole: list[int], first: list[int], second: list[int], types: Sequence[int] | None
) -> Frame | None:
    a = next((i for i in range(len(whole)) if whole[i : i + len(first)] == first), None)
    if a is None:
        return None
    after = a + len(first)
    starts = range(len(whole) - len(second), after - 1, -1)
    b = next((i for i in starts if whole[i : i + len(second)] == second), None)
    if b is None:
        return None
    end = b + len(second)
    kinds = [0] * 5
    if types is not None:
        spans = ((0, a), (a, after), (after, b), (b, end), (end, len(whole)))
        for k, (low, high) in enumerate(spans):
            if len(set(types[low:high])) > 1:
                return None
            kinds[k] = types[low] if high > low else 0
    return Frame(
        tuple(whole[:a]),
        tuple(whole[after:b]),
        tuple(whole[end:]),
        (kinds[0], kinds[1], kinds[2], kinds[3], kinds[4]),
    )

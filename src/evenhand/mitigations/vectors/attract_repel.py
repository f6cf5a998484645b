"""ATTRACT-REPEL: move the vectors of word pairs together or apart (Mrkšić et al. 2017).

Attract pairs are drawn together, repel pairs pushed apart, each against the nearest (farthest)
other word of its mini-batch, while every vector is held near its start. Kato & Miyao (2024, Sec.
5.3) use it on association tests: see `pairs_for`.

Only the rows of the words named are trained, a few hundred of 400,000; all others keep their bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, SpecError, need, unknown
from evenhand.models.vectors.files import VectorTable
from evenhand.words.lexicons import WordSets

Pair = tuple[str, str]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DIRECTIONS = ("reduce", "increase")
EPSILON = 1e-10


@dataclass(frozen=True, slots=True)
class AttractRepel:
    """How ATTRACT-REPEL trains; the margins and the rate are those of Mrkšić et al. (2017).

    Args:
        attract_margin, repel_margin: how far a pair must be nearer (farther) than the negative.
        regularisation: weight of staying near the start.
        reg: "paper": the distance of every word of the batch from its start; "released": half the
            squared distance of its unit vector from the start as given, once per occurrence and
            pair of the batch.
        optimizer_state: "separate" AdaGrad sums for attract and repel batches, or "shared".
        start: train from "unit" vectors, or from the "raw" ones (then long vectors move less).
        negatives: "extreme", or "mixed": each replaced at random with probability 1/2.
        same_word: whether a word may be its own negative when it is in two pairs of a batch.
        remainder: whether pairs that do not fill a batch are trained too.
        norms: "keep" the length of each vector, or "unit" for the whole table.
    """

    attract_margin: float = 0.6
    repel_margin: float = 0.0
    regularisation: float = 1e-9
    batch_size: int = 50
    epochs: int = 5
    learning_rate: float = 0.05
    accumulator: float = 0.1
    clip: float = 2.0
    reg: Literal["paper", "released"] = "paper"
    optimizer_state: Literal["separate", "shared"] = "separate"
    start: Literal["unit", "raw"] = "unit"
    negatives: Literal["extreme", "mixed"] = "extreme"
    same_word: bool = False
    remainder: bool = True
    norms: Literal["keep", "unit"] = "keep"
    seed: int = 0

    def as_published(self) -> AttractRepel:
        """Return these numbers under the rules of the code that Kato & Miyao ran.

        Its text export also rounds to six decimals, which is left to the writer.
        """
        return replace(
            self,
            reg="released",
            optimizer_state="shared",
            start="raw",
            negatives="mixed",
            same_word=True,
            remainder=False,
            norms="unit",
        )

    def check(self) -> None:
        """Refuse settings that cannot work."""
        for name, hint in get_type_hints(type(self)).items():
            if get_args(hint) and getattr(self, name) not in get_args(hint):
                raise SpecError(unknown(name, str(getattr(self, name)), get_args(hint)))
        for name, least in (("batch_size", 2), ("epochs", 0)):
            if getattr(self, name) < least:
                raise SpecError(f"{name}: '{getattr(self, name)}' is too small; at least {least}.")
        for name in ("regularisation", "learning_rate", "accumulator", "clip"):
            if not getattr(self, name) >= 0 or not np.isfinite(getattr(self, name)):
                raise SpecError(f"{name}: '{getattr(self, name)}' is not a number of 0 or more.")


@dataclass(frozen=True, slots=True)
class Trained:
    """What was trained: `rows` of the table and their new `vectors`, and how it went.

    `losses` is the mean cost of a pair in each epoch, `missing` the terms without a vector.
    """

    rows: Ints
    vectors: Floats
    losses: tuple[float, ...]
    attract: int
    repel: int
    missing: tuple[str, ...]


def pairs_for(sets: WordSets, direction: str = "reduce") -> tuple[list[Pair], list[Pair]]:
    """Return attract and repel pairs of an association test (Kato & Miyao 2024, Sec. 5.3).

    reduce: attract x with b and y with a, repel x from a and y from b; increase: the reverse.

    >>> attract, repel = pairs_for(WordSets("t", ("job",), ("home",), ("he",), ("she",)))
    >>> attract, repel
    ([('job', 'she'), ('home', 'he')], [('job', 'he'), ('home', 'she')])
    """
    if direction not in DIRECTIONS:
        raise SpecError(unknown("direction", direction, DIRECTIONS, where="--direction"))
    across = [*product(sets.x, sets.b), *product(sets.y, sets.a)]
    along = [*product(sets.x, sets.a), *product(sets.y, sets.b)]
    return (across, along) if direction == "reduce" else (along, across)


def attract_repel(
    vectors: VectorTable,
    attract: Sequence[Pair],
    repel: Sequence[Pair],
    *,
    settings: AttractRepel | None = None,
    as_published: bool = False,
    device: str | None = None,
    **changes: Any,
) -> VectorTable:
    """Draw attract pairs of vectors together and push repel pairs apart.

    With unit vectors x, margins d, negatives t and tau(z) = max(0, z) (Mrkšić et al. 2017, Eq.
    1-3), the cost of an attract batch is the sum over pairs (l, r) of

        tau(d + x_l.t_l - x_l.x_r) + tau(d + x_r.t_r - x_l.x_r)

    of a repel batch tau(d + x_l.x_r - x_l.t_l) + tau(d + x_l.x_r - x_r.t_r), plus
    regularisation * |x - x_start| for every word of the batch. Steps are AdaGrad's, gradients
    clipped element by element. Cost: a few milliseconds a batch, whatever the vocabulary.

    A term of several words is the mean of their vectors. Settings may be given at once or by
    name. Words in no pair keep their bytes in the new table, unless norms="unit".

    >>> import pyarrow as pa
    >>> words = VectorTable(pa.array(["a", "b", "c", "d"]), np.eye(4, dtype=np.float32))
    >>> moved = attract_repel(words, [("a", "b"), ("c", "d")], [], epochs=20)
    >>> bool(moved.matrix[0] @ moved.matrix[1] > 0.2)
    True
    """
    chosen = replace(settings or AttractRepel(), **changes)
    if as_published:
        chosen = chosen.as_published()
    trained = train(vectors, attract, repel, settings=chosen, device=device)
    return put_back(vectors, trained, norms=chosen.norms)


def put_back(vectors: VectorTable, trained: Trained, *, norms: str = "keep") -> VectorTable:
    """Return the table with the trained rows in place, at their old length or all at length one."""
    matrix = np.array(vectors.matrix, dtype=np.float32)
    new = trained.vectors / np.linalg.norm(trained.vectors, axis=1, keepdims=True)
    if norms == "keep":
        old = np.asarray(vectors.matrix[trained.rows], np.float64)
        matrix[trained.rows] = new * np.linalg.norm(old, axis=1, keepdims=True)
    else:
        length = np.linalg.norm(matrix, axis=1, keepdims=True)
        np.divide(matrix, length, out=matrix, where=length > 0)
        matrix[trained.rows] = new
    return VectorTable(vectors.words, matrix, vectors.source, vectors.duplicates)


def train(
    vectors: VectorTable,
    attract: Sequence[Pair],
    repel: Sequence[Pair],
    *,
    settings: AttractRepel,
    device: str | None = None,
) -> Trained:
    """Train the rows of the pairs' words; return them with the course of the training."""
    settings.check()
    terms, pairs, missing = _resolve(vectors, attract, repel)
    rows, entries = _entries(terms)
    problem = Problem(vectors.matrix[rows].astype(np.float64), entries, settings, device)
    rng = np.random.default_rng(settings.seed)
    losses = []
    with problem.one_thread():
        for _ in range(settings.epochs):
            plan = _plan(rng, pairs, settings)
            if not plan:
                break
            total = sum(problem.step(kind, pairs[kind][at], rng) for kind, at in plan)
            losses.append(float(total) / sum(len(at) for _, at in plan))
    counts = (len(pairs[0]), len(pairs[1]))
    return Trained(rows, problem.vectors(), tuple(losses), *counts, missing)


def _resolve(
    vectors: VectorTable, attract: Sequence[Pair], repel: Sequence[Pair]
) -> tuple[list[tuple[int, ...]], tuple[Ints, Ints], tuple[str, ...]]:
    """Return distinct terms as rows to average, and the pairs as numbers of terms.

    Pairs with a missing or identical side are left out; one in both lists repels.
    """
    words = list(dict.fromkeys(word for pair in (*attract, *repel) for word in pair))
    found = dict(zip(words, vectors.places(words), strict=True))
    missing = tuple(word for word in words if not found[word])
    codes: dict[tuple[int, ...], int] = {}

    def coded(pairs: Sequence[Pair], without: set[frozenset[int]]) -> list[tuple[int, int]]:
        kept: dict[frozenset[int], tuple[int, int]] = {}
        for left, right in pairs:
            if not found[left] or not found[right] or found[left] == found[right]:
                continue
            pair = tuple(codes.setdefault(found[side], len(codes)) for side in (left, right))
            if frozenset(pair) not in without:
                kept.setdefault(frozenset(pair), (pair[0], pair[1]))
        return list(kept.values())

    apart = coded(repel, set())
    together = coded(attract, {frozenset(pair) for pair in apart})
    if not apart and not together:
        shown = ", ".join(missing[:5]) + (", ..." if len(missing) > 5 else "")
        raise DataError(
            f"attract-repel: none of the {len(attract) + len(repel)} pairs can be trained. "
            + (f"Words without a vector: {shown}. " if missing else "No pair has two words. ")
            + "See which words there are with: evenhand measure association --vectors FILE"
        )
    arrays = tuple(np.array(part, np.int64).reshape(-1, 2) for part in (together, apart))
    return list(codes), (arrays[0], arrays[1]), missing


def _entries(terms: Sequence[tuple[int, ...]]) -> tuple[Ints, tuple[Ints, Floats]]:
    """Return the rows that take part, and each term as places among them with averaging weights."""
    rows = np.unique(np.concatenate([np.array(term, np.int64) for term in terms]))
    width = max(len(term) for term in terms)
    places = np.zeros((len(terms), width), np.int64)
    weights = np.zeros((len(terms), width))
    for k, term in enumerate(terms):
        places[k, : len(term)] = np.searchsorted(rows, term)
        weights[k, : len(term)] = 1 / len(term)
    return rows, (places, weights)


def _plan(
    rng: np.random.Generator, pairs: tuple[Ints, Ints], settings: AttractRepel
) -> list[tuple[int, Ints]]:
    """Return the batches of one epoch in random order: kind (0 attract, 1 repel) and pairs."""
    plan: list[tuple[int, Ints]] = []
    size = settings.batch_size
    for kind, part in enumerate(pairs):
        order = rng.permutation(len(part))
        if settings.remainder:
            # Near-equal batches, so that no pair is left without others to compare it with.
            parts = np.array_split(order, -(-len(order) // size)) if len(order) else []
        else:
            full = len(order) // size
            parts = list(order[: full * size].reshape(full, size))
        plan += [(kind, batch) for batch in parts]
    return [plan[k] for k in rng.permutation(len(plan))]


class Problem:
    """The trained rows as a tensor, with one clipped AdaGrad step per batch."""

    def __init__(
        self, rows: Floats, entries: tuple[Ints, Floats], settings: AttractRepel, device: str | None
    ) -> None:
        self.torch: Any = need("torch", extra="hf", what="ATTRACT-REPEL")
        self.settings = settings
        self.device = device or "cpu"
        if settings.start == "unit":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self.weight = self._tensor(rows)
        self.places, self.shares = self._tensor(entries[0]), self._tensor(entries[1])[..., None]
        self.begin = self._terms(self.weight, self._tensor(np.arange(len(entries[0]))))
        states = 2 if settings.optimizer_state == "separate" else 1
        blank = self.torch.full_like(self.weight, settings.accumulator)
        self.sums = [blank.clone() for _ in range(states)]

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Use one CPU thread: batches are too small for more, and sums stay reproducible."""
        before = self.torch.get_num_threads()
        self.torch.set_num_threads(1)
        try:
            yield
        finally:
            self.torch.set_num_threads(before)

    def _tensor(self, array: Any) -> Any:
        return self.torch.as_tensor(np.asarray(array), device=self.device)

    def vectors(self) -> Floats:
        """Return the current rows."""
        return np.asarray(self.weight.detach().cpu().numpy(), np.float64)

    def _terms(self, weight: Any, codes: Any) -> Any:
        return (weight[self.places[codes]] * self.shares[codes]).sum(-2)

    def _unit(self, vectors: Any) -> Any:
        return vectors / vectors.norm(dim=-1, keepdim=True).clamp_min(1e-12)

    def chosen_negatives(self, kind: int, codes: Any, x: Any) -> tuple[Any, Any]:
        """Return the position of each word's negative in the batch, and whether it has one.

        `codes` are the left words of all pairs, then the right ones. Attract: the nearest other
        vector of the batch; repel: the farthest. The word and its partner do not count.
        """
        torch = self.torch
        size = len(codes)
        partner = (torch.arange(size, device=self.device) + size // 2) % size
        barred = torch.eye(size, dtype=torch.bool, device=self.device)
        barred |= barred[partner]
        if not self.settings.same_word:
            barred |= (codes[:, None] == codes) | (codes[partner][:, None] == codes)
        near = x @ x.T * (1 if kind == 0 else -1)
        near = near.masked_fill(barred, -torch.inf)
        return near.argmax(1), ~barred.all(1)

    def _mixed(self, chosen: Any, rng: np.random.Generator) -> Any:
        """Replace half of the negatives by a random side of a random other pair."""
        size = len(chosen)
        pair = np.arange(size) % (size // 2)
        other = (pair + rng.integers(1, max(size // 2, 2), size)) % (size // 2)
        side = rng.integers(0, 2, size) * (size // 2)
        swap = rng.random(size) < 0.5
        return self.torch.where(self._tensor(swap), self._tensor(other + side), chosen)

    def hinges(self, kind: int, x: Any, chosen: Any, usable: Any) -> Any:
        """Return each pair's hinge cost, from unit vectors of the left, then the right words."""
        half = len(x) // 2
        pair = (x[:half] * x[half:]).sum(1).repeat(2)
        negative = (x * x[chosen]).sum(1)
        margin = self.settings.repel_margin if kind else self.settings.attract_margin
        gap = pair - negative if kind else negative - pair
        cost = (margin + gap).clamp_min(0) * usable
        return cost[:half] + cost[half:]

    def held(self, codes: Any, weight: Any, x: Any) -> Any:
        """Return the regularisation of a batch, as in the paper or the released code."""
        settings = self.settings
        if settings.reg == "released":
            half_square = ((x - self.begin[codes]) ** 2).sum() / 2
            return settings.regularisation * half_square * (len(x) // 2)
        distinct = codes.unique()
        square = ((self._terms(weight, distinct) - self.begin[distinct]) ** 2).sum(1)
        # The slope of a length is not defined at zero: words that have not moved are not pulled.
        moved = square > 0
        length = self.torch.where(moved, square, 1.0).sqrt() * moved
        return settings.regularisation * length.sum()

    def cost(self, kind: int, pairs: Any, weight: Any, rng: np.random.Generator | None) -> Any:
        """Return the total cost of a batch of pairs [m, 2] of term numbers."""
        codes = self._tensor(np.asarray(pairs).T.reshape(-1))
        x = self._unit(self._terms(weight, codes))
        with self.torch.no_grad():
            chosen, usable = self.chosen_negatives(kind, codes, x)
            if rng is not None and self.settings.negatives == "mixed":
                chosen = self._mixed(chosen, rng)
        return self.hinges(kind, x, chosen, usable).sum() + self.held(codes, weight, x)

    def step(self, kind: int, pairs: Any, rng: np.random.Generator | None = None) -> float:
        """Take one AdaGrad step and return the cost before it."""
        settings = self.settings
        weight = self.weight.requires_grad_(True)
        cost = self.cost(kind, pairs, weight, rng)
        (slope,) = self.torch.autograd.grad(cost, weight)
        self.weight = weight.detach()
        slope = slope.clamp(-settings.clip, settings.clip)
        sums = self.sums[kind if len(self.sums) == 2 else 0]
        sums += slope**2
        self.weight -= settings.learning_rate * slope / (sums.sqrt() + EPSILON)
        return float(cost.detach())

"""Masked language models: exact probabilities of candidates at a mask, and best fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.errors import DataError, ModelError
from evenhand.models.adapters.encoders import EncoderModel
from evenhand.models.batching.parts import Assembly, Batch, Frame, Pool, numbered
from evenhand.models.choosing import answered_by, as_asked
from evenhand.models.loading.device import fetched, moved
from evenhand.models.loading.held import Held
from evenhand.models.protocol import LoadOptions
from evenhand.requests import MASK, Choose, Column, Embed, FillMask, MaskScore, Requests

Ints = npt.NDArray[np.int64]
Fill = tuple[str, tuple[int, ...], int]
"""A text with one mask, the pieces already filled in there, and how many there will be."""

CONTINUES = "##"
"""Marks a fill that continues the word before the mask instead of starting a new one."""


PART = "\x1f"
"""Separates a text from the pieces already filled in, in the names of parts."""


def _none() -> Ints:
    return np.zeros(0, np.int64)


@dataclass
class Masked:
    """Batches of texts with the position to read; for MaskScore also, per piece asked for, the
    piece (`targets`), the input that shows it (`inputs`) and its alternative (`owners`); per
    alternative its number of pieces (`pieces`) and the request row it belongs to (`rows`)."""

    batches: list[Batch]
    positions: Ints
    opens: list[bool]
    targets: Ints = field(default_factory=_none)
    owners: Ints = field(default_factory=_none)
    pieces: Ints = field(default_factory=_none)
    rows: Ints = field(default_factory=_none)
    inputs: Ints = field(default_factory=_none)
    fills: list[Fill] = field(default_factory=list)


class MaskedModel(EncoderModel):
    """A masked language model with its head."""

    kind = "masked"
    auto = "AutoModelForMaskedLM"
    architectures = ("ForMaskedLM",)
    task = "fill-mask"
    answers = frozenset({FillMask.kind, MaskScore.kind, Choose.kind, Embed.kind})
    rung = "mask"
    rungs: ClassVar = {rung: answers - {Embed.kind}}

    def __init__(self, source: str | Held, name: str, options: LoadOptions | None = None) -> None:
        super().__init__(source, name, options)
        if self.tokenizer.mask_token is None:
            raise ModelError(f"model {name!r} has no mask token, so it cannot fill masks.")
        self._before = Pool(self._encode_before)
        self._after = Pool(self._encode_after)
        self._ends = self._special_ends()

    def prepare(self, requests: Requests) -> Any:
        if isinstance(requests, FillMask):
            return self._one_mask(requests.text)
        if isinstance(requests, MaskScore):
            return self._candidates(requests)
        if isinstance(requests, Choose):
            return self.prepare(as_asked(MaskScore.kind, requests))
        return super().prepare(requests)

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        if isinstance(requests, FillMask):
            fills = self._fills(prepared, requests.top)
            return lambda: fills
        if isinstance(requests, MaskScore):
            return self._scores(requests, prepared)
        if isinstance(requests, Choose):
            asked, then = requests, self.begin(as_asked(MaskScore.kind, requests), prepared)
            return lambda: answered_by(MaskScore.kind, asked, then())
        return super().begin(requests, prepared)

    def pieces(self, candidate: str, *, opens: bool) -> list[int]:
        """The candidate's vocabulary pieces as they would stand at the mask."""
        return self.encode([candidate if opens else f" {candidate}"], special=False)[0]

    def _halves(self, text: str) -> tuple[str, str]:
        halves = text.split(MASK)
        if len(halves) != 2:
            raise DataError(
                f"mask request: {text!r} has {len(halves) - 1} masks; one {MASK} is needed."
            )
        return halves[0], halves[1]

    def _one_mask(self, texts: Sequence[str]) -> Masked:
        return self._laid_out([(text, (), 1) for text in texts])

    def _candidates(self, requests: MaskScore) -> Masked:
        """One input per piece of each candidate, the pieces before it already filled in.

        Candidates of one piece that share a text share its input.
        """
        texts, text = numbered(requests.text)
        said, candidate = numbered(requests.candidate)
        opens = np.asarray([t.startswith(MASK) for t in texts])
        asked = candidate * 2 + opens[text]
        spelt: dict[int, list[list[int]]] = {
            key: [self._checked_pieces(c, bool(key % 2)) for c in said[key // 2].split("\t")]
            for key in np.unique(asked).tolist()
        }
        if any(len(ids) > 1 for ways in spelt.values() for ids in ways):
            return self._stepwise(texts, text, [spelt[key] for key in asked.tolist()])
        counts = np.zeros(2 * len(said), np.int64)
        counts[list(spelt)] = [len(ways) for ways in spelt.values()]
        first = np.zeros_like(counts)
        first[list(spelt)] = np.cumsum([0, *counts[list(spelt)][:-1]])
        flat = np.asarray([ids[0] for ways in spelt.values() for ids in ways])
        each = counts[asked]
        rows = np.repeat(np.arange(len(asked)), each)
        nth = np.arange(len(rows)) - np.repeat(np.cumsum(each) - each, each)
        masked = self._laid_out([(t, (), 1) for t in texts])
        masked.targets, masked.owners = flat[first[asked[rows]] + nth], np.arange(len(rows))
        masked.pieces, masked.rows, masked.inputs = np.ones_like(rows), rows, text[rows]
        return masked

    def _stepwise(self, texts: list[str], text: Ints, spelt: list[list[list[int]]]) -> Masked:
        """The general case: some candidate has several pieces, filled in one after the other."""
        inputs_of: dict[Fill, int] = {}
        inputs, targets, owners, rows = [], [], [], []
        counts: list[int] = []
        for row, (number, ways) in enumerate(zip(text.tolist(), spelt)):
            for ids in ways:
                for step, piece in enumerate(ids):
                    key = (texts[number], tuple(ids[:step]), len(ids))
                    inputs.append(inputs_of.setdefault(key, len(inputs_of)))
                    targets.append(piece)
                    owners.append(len(counts))
                counts.append(len(ids))
                rows.append(row)
        masked = self._laid_out(list(inputs_of))
        masked.targets, masked.owners = np.asarray(targets), np.asarray(owners)
        masked.pieces, masked.rows = np.asarray(counts), np.asarray(rows)
        masked.inputs = np.asarray(inputs)
        return masked

    def _checked_pieces(self, candidate: str, opens: bool) -> list[int]:
        ids = self.pieces(candidate, opens=opens)
        if not ids:
            raise DataError(f"candidate {candidate!r} is empty for model {self.name!r}.")
        return ids

    def _laid_out(self, fills: Sequence[Fill]) -> Masked:
        """Batches of texts, tokenised in halves: what stands before the mask, and the rest."""
        halves = [self._halves(text) for text, _, _ in fills]
        left = [
            f"{before}{PART}{' '.join(map(str, done)) if done else ''}"
            for (before, _), (_, done, _) in zip(halves, fills)
        ]
        right = [
            f"{after}{PART}{masks - len(done)}"
            for (_, after), (_, done, masks) in zip(halves, fills)
        ]
        first, last = self._ends
        assembly = Assembly(
            Frame(first, (), last),
            self._before,
            self._after,
            self._before.codes(left),
            self._after.codes(right),
            pad=self.tokenizer.pad_token_id or 0,
            with_types=False,
        )
        self.check_lengths(assembly.lengths.tolist(), "text")
        opens = [not before.strip() for before, _ in halves]
        return Masked(assembly.batches(self.token_budget), assembly.second_at(), opens)

    def _encode_before(self, names: list[str]) -> list[list[int]]:
        """Tokens before the mask, then the pieces already decided."""
        mask = self.tokenizer.mask_token
        texts = [name.rsplit(PART, 1)[0] + mask for name in names]
        done = [[int(i) for i in name.rsplit(PART, 1)[1].split()] for name in names]
        return [ids[:-1] + d for ids, d in zip(self.words(texts), done)]

    def _encode_after(self, names: list[str]) -> list[list[int]]:
        """The masks left to fill, then the tokens after them."""
        mask, number = self.tokenizer.mask_token, self.tokenizer.mask_token_id
        texts = [mask + name.rsplit(PART, 1)[0] for name in names]
        left = [int(name.rsplit(PART, 1)[1]) for name in names]
        return [[number] * n + ids[1:] for ids, n in zip(self.words(texts), left)]

    def _special_ends(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Special tokens before and after a text, checked against the tokenizer's own encoding."""
        mask = self.tokenizer.mask_token
        text = f"Ann met Bob. {mask} was here, too."
        whole = self.encode([text], special=True)[0]
        before, after = text.split(mask)
        bare = (
            self._encode_before([f"{before}{PART}"])[0] + self._encode_after([f"{after}{PART}1"])[0]
        )
        for low in range(len(whole) - len(bare) + 1):
            if whole[low : low + len(bare)] == bare:
                return tuple(whole[:low]), tuple(whole[low + len(bare) :])
        raise ModelError(
            f"model {self.name!r}: its tokenizer treats text around a mask as one piece, which is "
            "not supported. Use a BERT- or RoBERTa-like tokenizer."
        )

    def _at_masks(self, masked: Masked, use: Callable[[Ints, Any], None]) -> None:
        """Call `use(rows, logits)` per batch, logits float32 [rows, vocabulary] at the mask."""
        torch = self.torch
        staged = [
            (
                batch.inputs,
                batch.tensors(torch, self.device),
                moved(torch, masked.positions[batch.inputs], self.device),
            )
            for batch in masked.batches
        ]
        with torch.inference_mode():
            for inputs, tensors, at in staged:
                lines = torch.arange(len(inputs), device=self.device)
                with self.only_positions(lines, at):
                    logits = self.model(**tensors).logits[0].float()
                use(inputs, logits)

    def _fills(self, masked: Masked, top: int) -> dict[str, Column]:
        fills: list[Any] = [None] * len(masked.positions)
        logprobs: list[Any] = [None] * len(masked.positions)

        seen: dict[tuple[int, bool], str] = {}

        def word(piece: int, opens: bool) -> str:
            if (piece, opens) not in seen:
                seen[piece, opens] = self._word(piece, opens)
            return seen[piece, opens]

        def keep(rows: Ints, logits: Any) -> None:
            best = logits.log_softmax(-1).topk(top)
            ids, values = best.indices.tolist(), best.values.double().tolist()
            for i, row in enumerate(rows.tolist()):
                fills[row] = [word(piece, masked.opens[row]) for piece in ids[i]]
                logprobs[row] = values[i]

        self._at_masks(masked, keep)
        return {"fills": fills, "logprobs": logprobs}

    def _word(self, piece: int, opens: bool) -> str:
        """A piece as text, decoded on its own; continuations are marked."""
        token = self.tokenizer.convert_ids_to_tokens(piece)
        if token.startswith(CONTINUES):
            return str(token)
        text = self.tokenizer.decode([piece])
        spaced = token.startswith(("Ġ", "▁", " "))
        if not spaced and not opens and self._marks_spaces:
            return f"{CONTINUES}{text.strip()}"
        return str(text.strip())

    @property
    def _marks_spaces(self) -> bool:
        """Whether pieces that begin a word carry a marker (byte-level BPE, SentencePiece)."""
        token = self.tokenizer.convert_ids_to_tokens(self.pieces("the", opens=False)[0])
        return str(token).startswith(("Ġ", "▁"))

    def _scores(self, requests: MaskScore, masked: Masked) -> Callable[[], dict[str, Column]]:
        torch, targets = self.torch, masked.targets
        order = np.argsort(masked.inputs, kind="stable")
        starts = np.searchsorted(masked.inputs[order], np.arange(len(masked.positions) + 1))
        done, parts = [], []

        def add(rows: Ints, logits: Any) -> None:
            counts = starts[rows + 1] - starts[rows]
            line = np.repeat(np.arange(len(rows)), counts)
            first = np.repeat(starts[rows] - np.cumsum(counts) + counts, counts)
            asked = order[first + np.arange(len(line))]
            line_t = moved(torch, line, self.device)
            piece_t = moved(torch, targets[asked], self.device)
            parts.append(logits[line_t, piece_t] - logits.logsumexp(-1)[line_t])
            done.append(asked)

        self._at_masks(masked, add)
        values = fetched(torch, torch.cat(parts))

        def finish() -> dict[str, Column]:
            total = np.zeros(len(masked.pieces))
            np.add.at(total, masked.owners[np.concatenate(done)], values())
            return _likeliest(total, masked.pieces, masked.rows, len(requests))

        return finish


def _likeliest(total: Any, pieces: Ints, rows: Ints, n_rows: int) -> dict[str, Column]:
    """Per request row the alternative with the largest log-probability per piece."""
    order = np.lexsort((-(total / pieces), rows))
    best = order[np.searchsorted(rows[order], np.arange(n_rows))]
    return {"logprob": total[best], "n_pieces": pieces[best].astype(np.int32)}

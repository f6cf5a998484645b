"""Masked language models: exact probabilities of candidates at a mask, and best fills."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.errors import DataError, ModelError
from evenhand.models.encoders import Encoded, EncoderModel
from evenhand.models.transformer import LoadOptions
from evenhand.requests import MASK, Column, Embed, FillMask, MaskScore, Requests

CONTINUES = "##"
"""Marks a fill that continues the word before the mask instead of starting a new one."""


@dataclass
class Masked:
    """Encoded texts with the position to read; for MaskScore also, per piece asked for, the
    piece (`targets`), the input that shows it (`inputs`) and the request row (`owners`)."""

    encoded: Encoded
    positions: list[int]
    targets: list[int] = field(default_factory=list)
    owners: list[int] = field(default_factory=list)
    pieces: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)


class MaskedModel(EncoderModel):
    """A masked language model with its head."""

    kind = "masked"
    auto = "AutoModelForMaskedLM"
    answers = frozenset({FillMask.kind, MaskScore.kind, Embed.kind})

    def __init__(self, source: str, name: str, options: LoadOptions | None = None) -> None:
        super().__init__(source, name, options)
        if self.tokenizer.mask_token is None:
            raise ModelError(f"model {name!r} has no mask token, so it cannot fill masks.")

    def prepare(self, requests: Requests) -> Any:
        if isinstance(requests, FillMask):
            return self._one_mask(requests.text)
        if isinstance(requests, MaskScore):
            return self._candidates(requests)
        return super().prepare(requests)

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        if isinstance(requests, FillMask):
            return self._fills(prepared, requests.top)
        if isinstance(requests, MaskScore):
            return self._scores(requests, prepared)
        return super().answer(requests, prepared)

    def pieces(self, candidate: str, *, opens: bool) -> list[int]:
        """The candidate's vocabulary pieces as they would stand at the mask."""
        return self.encode([candidate if opens else f" {candidate}"], special=False)[0]

    def _text(self, text: str, masks: int = 1) -> str:
        if text.count(MASK) != 1:
            raise DataError(
                f"mask request: {text!r} has {text.count(MASK)} masks; exactly one {MASK} is needed."
            )
        return text.replace(MASK, " ".join([self.tokenizer.mask_token] * masks))

    def _one_mask(self, texts: Sequence[str]) -> Masked:
        encoded = self.encode_texts([self._text(t) for t in texts])
        mask = self.tokenizer.mask_token_id
        return Masked(encoded, [ids.index(mask) for ids in encoded["input_ids"]])

    def _candidates(self, requests: MaskScore) -> Masked:
        """One input per piece of each candidate, the pieces before it already filled in.

        Candidates of one piece that share a text share its input; the runner has put them
        side by side.
        """
        known: dict[tuple[str, bool], list[int]] = {}
        texts: dict[tuple[str, tuple[int, ...], int], int] = {}
        filled: list[tuple[str, tuple[int, ...], int]] = []
        inputs, targets, owners, counts = [], [], [], []
        for row, (text, candidate) in enumerate(zip(requests.text, requests.candidate)):
            opens = text.startswith(MASK)
            ids = known.setdefault((candidate, opens), self.pieces(candidate, opens=opens))
            if not ids:
                raise DataError(f"candidate {candidate!r} is empty for model {self.name!r}.")
            counts.append(len(ids))
            for step, piece in enumerate(ids):
                key = (text, tuple(ids[:step]), len(ids))
                if key not in texts:
                    texts[key] = len(filled)
                    filled.append(key)
                inputs.append(texts[key])
                targets.append(piece)
                owners.append(row)
        encoded = self.encode_texts([self._text(t, n) for t, _, n in filled])
        positions = self._fill_in(encoded, [done for _, done, _ in filled])
        return Masked(encoded, positions, targets, owners, counts, inputs)

    def _fill_in(self, encoded: Encoded, done: Sequence[tuple[int, ...]]) -> list[int]:
        """Write the pieces already decided over the first masks; give the next mask's place."""
        mask = self.tokenizer.mask_token_id
        positions = []
        for ids, pieces in zip(encoded["input_ids"], done):
            first = ids.index(mask)
            ids[first : first + len(pieces)] = pieces
            positions.append(first + len(pieces))
        return positions

    def _at_masks(self, masked: Masked, use: Callable[[list[int], Any], None]) -> None:
        """Call `use(rows, logits)` per batch, logits float32 [rows, vocabulary] at the mask."""
        torch = self.torch
        with torch.inference_mode():
            for rows, tensors in self.batches(masked.encoded):
                at = torch.tensor([masked.positions[r] for r in rows], device=self.device)
                with self.only_positions(torch.arange(len(rows), device=self.device), at):
                    use(rows, self.model(**tensors).logits[0].float())

    def _fills(self, masked: Masked, top: int) -> dict[str, Column]:
        fills: list[Any] = [None] * len(masked.positions)
        logprobs: list[Any] = [None] * len(masked.positions)

        def keep(rows: list[int], logits: Any) -> None:
            best = logits.log_softmax(-1).topk(top)
            for i, row in enumerate(rows):
                opens = masked.positions[row] <= self._first_position
                fills[row] = [self._word(int(p), opens) for p in best.indices[i]]
                logprobs[row] = best.values[i].double().tolist()

        self._at_masks(masked, keep)
        return {"fills": fills, "logprobs": logprobs}

    @property
    def _first_position(self) -> int:
        return 1 if self.tokenizer.cls_token_id is not None else 0

    def _word(self, piece: int, opens: bool) -> str:
        """A piece as text, decoded on its own; continuations are marked."""
        token = self.tokenizer.convert_ids_to_tokens(piece)
        if token.startswith(CONTINUES):
            return str(token)
        text = self.tokenizer.decode([piece])
        spaced = token.startswith(("Ġ", "▁", " "))
        if not spaced and not opens and self._marks_spaces:
            return CONTINUES + text.strip()
        return str(text.strip())

    @property
    def _marks_spaces(self) -> bool:
        """Whether pieces that begin a word carry a marker (byte-level BPE, SentencePiece)."""
        token = self.tokenizer.convert_ids_to_tokens(self.pieces("the", opens=False)[0])
        return str(token).startswith(("Ġ", "▁"))

    def _scores(self, requests: MaskScore, masked: Masked) -> dict[str, Column]:
        inputs = np.asarray(masked.inputs)
        targets = np.asarray(masked.targets)
        order = np.argsort(inputs, kind="stable")
        starts = np.searchsorted(inputs[order], np.arange(len(masked.positions) + 1))
        total = np.zeros(len(requests))

        def add(rows: list[int], logits: Any) -> None:
            where = [order[starts[r] : starts[r + 1]] for r in rows]
            owner = np.concatenate(where)
            line = np.repeat(np.arange(len(rows)), [len(w) for w in where])
            line_t = self.torch.from_numpy(line).to(logits.device)
            piece_t = self.torch.from_numpy(targets[owner]).to(logits.device)
            logprob = logits[line_t, piece_t] - logits.logsumexp(-1)[line_t]
            rows_of = np.asarray(masked.owners)[owner]
            np.add.at(total, rows_of, logprob.double().cpu().numpy())

        self._at_masks(masked, add)
        return {"logprob": total, "n_pieces": np.asarray(masked.pieces, dtype=np.int32)}

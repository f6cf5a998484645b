"""Checkpoints that read the whole text at once: padded batches by token budget.

Padding is masked out of the attention and never read, so which texts share a batch does not
change a score beyond rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.packing import by_token_budget
from evenhand.models.transformer import Transformer
from evenhand.requests import Classify, Column, Embed, Option, Requests

Encoded = dict[str, list[list[int]]]


class EncoderBase(Transformer):
    """Common ground of masked, span, choice, classifier and plain encoder models."""

    def encode_texts(self, first: Sequence[str], second: Sequence[str] | None = None) -> Encoded:
        """Texts or text pairs in the checkpoint's own format, special tokens included."""
        pair = [list(second)] if second is not None else []
        encoded = self.tokenizer(list(first), *pair, truncation=False)
        self.check_lengths([len(ids) for ids in encoded["input_ids"]], "text")
        return {name: [list(row) for row in rows] for name, rows in encoded.items()}

    def batches(self, encoded: Encoded) -> list[tuple[list[int], dict[str, Any]]]:
        """Row numbers and padded tensors of each batch."""
        lengths = [len(ids) for ids in encoded["input_ids"]]
        return [
            (rows, self._padded(encoded, rows))
            for rows in by_token_budget(lengths, self.token_budget)
        ]

    def _padded(self, encoded: Encoded, rows: list[int]) -> dict[str, Any]:
        width = max(len(encoded["input_ids"][r]) for r in rows)
        fill = {"input_ids": self.tokenizer.pad_token_id or 0}
        tensors = {}
        for name, values in encoded.items():
            padded = np.full((len(rows), width), fill.get(name, 0), dtype=np.int64)
            for i, row in enumerate(rows):
                padded[i, : len(values[row])] = values[row]
            tensors[name] = self.torch.from_numpy(padded).to(self.device)
        return tensors

    def each(self, encoded: Encoded, forward: Callable[[dict[str, Any]], Any]) -> np.ndarray:
        """Rows of `forward(batch)` (float [rows, k]) put back in request order."""
        out: list[Any] = [None] * len(encoded["input_ids"])
        with self.torch.inference_mode():
            for rows, tensors in self.batches(encoded):
                values = forward(tensors).double().cpu().numpy()
                for i, row in enumerate(rows):
                    out[row] = values[i]
        return np.asarray(out)


class ChoiceModel(EncoderBase):
    """A multiple-choice head: one independent logit per (prompt, option)."""

    kind = "choice"
    auto = "AutoModelForMultipleChoice"
    answers = frozenset({Option.kind})

    def prepare(self, requests: Requests) -> Encoded:
        if not isinstance(requests, Option):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        return self.encode_texts(requests.prompt, requests.option)

    def answer(self, requests: Requests, prepared: Encoded) -> dict[str, Column]:
        # The head expects [batch, options, tokens]; options are independent, so one each.
        def forward(batch: dict[str, Any]) -> Any:
            return self.model(**{k: v[:, None] for k, v in batch.items()}).logits.float()

        logits = self.each(prepared, forward)
        lengths = [len(ids) for ids in prepared["input_ids"]]
        return {"logit": logits[:, 0], "n_tokens": np.asarray(lengths, dtype=np.int32)}


class ClassifierModel(EncoderBase):
    """A text classifier: class probabilities in the checkpoint's label order."""

    kind = "classifier"
    auto = "AutoModelForSequenceClassification"
    answers = frozenset({Classify.kind})

    @property
    def labels(self) -> list[str]:
        names = self.model.config.id2label
        return [str(names[i]) for i in sorted(names)]

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "labels": self.labels}

    def prepare(self, requests: Requests) -> Encoded:
        if not isinstance(requests, Classify):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        return self.encode_texts(requests.text)

    def answer(self, requests: Requests, prepared: Encoded) -> dict[str, Column]:
        probabilities = self.each(
            prepared, lambda batch: self.model(**batch).logits.float().softmax(-1)
        )
        return {"probabilities": probabilities}


class EncoderModel(EncoderBase):
    """A plain encoder: the mean of a text's token vectors, padding left out."""

    kind = "encoder"
    auto = "AutoModel"
    answers = frozenset({Embed.kind})

    def prepare(self, requests: Requests) -> Encoded:
        if not isinstance(requests, Embed):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        return self.encode_texts(requests.text)

    def answer(self, requests: Requests, prepared: Encoded) -> dict[str, Column]:
        return {"vector": self.each(prepared, self.mean_pooled)}

    def mean_pooled(self, batch: dict[str, Any]) -> Any:
        hidden = self.model.base_model(**batch)[0].float()
        weight = batch["attention_mask"][..., None].float()
        return (hidden * weight).sum(1) / weight.sum(1).clamp_min(1)

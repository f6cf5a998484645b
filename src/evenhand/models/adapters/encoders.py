"""Checkpoints that read the whole text at once: padded batches by token budget.

Padding is masked out of the attention and never read, so which texts share a batch does not
change a score beyond rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.adapters import spans_marked as marks
from evenhand.models.batching.packing import by_token_budget
from evenhand.models.batching.parts import Assembly, Batch, Pool, pair_frame
from evenhand.models.choosing import answered_by, as_asked
from evenhand.models.loading.device import fetched
from evenhand.models.loading.held import Held
from evenhand.models.loading.sentence import Head, is_sentence, read_head
from evenhand.models.loading.transformer import Transformer
from evenhand.models.protocol import LoadOptions
from evenhand.requests import Choose, Classify, Column, Embed, Option, Requests

Encoded = dict[str, list[list[int]]]


class EncoderBase(Transformer):
    """Common ground of masked, span, choice, classifier and plain encoder models."""

    @property
    def overlaps(self) -> bool:
        return self.on_gpu

    @property
    def pad(self) -> int | None:
        """What fills the places behind a text; None where the model has nothing for that."""
        found: int | None = self.tokenizer.pad_token_id
        return found

    def begin(self, requests: Any, prepared: Any) -> Callable[[], dict[str, Column]]:
        raise NotImplementedError

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        return self.begin(requests, prepared)()

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
        fill = {"input_ids": self.pad or 0}
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
    """A multiple-choice head: one independent logit per (prompt, option).

    Prompts and options are tokenised once each and put together as arrays.
    """

    kind = "choice"
    auto = "AutoModelForMultipleChoice"
    architectures = ("ForMultipleChoice",)
    answers = frozenset({Option.kind, Choose.kind})
    rung = "choice head"
    rungs: ClassVar = {rung: answers}

    def __init__(self, source: str | Held, name: str, options: LoadOptions | None = None) -> None:
        super().__init__(source, name, options)
        self._frame = pair_frame(self.tokenizer)
        self._prompts = Pool(self.words)
        self._options = Pool(self.words)

    def prepare(self, requests: Requests) -> list[Batch] | Encoded:
        if isinstance(requests, Choose):
            requests = as_asked(Option.kind, requests)
        if not isinstance(requests, Option):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        if self._frame is None:  # parts do not add up to pairs: tokenise each pair whole
            return self.encode_texts(requests.prompt, requests.option)
        assembly = Assembly(
            self._frame,
            self._prompts,
            self._options,
            self._prompts.codes(requests.prompt),
            self._options.codes(requests.option),
            pad=self.tokenizer.pad_token_id or 0,
            with_types="token_type_ids" in self.tokenizer.model_input_names,
        )
        self.check_lengths(assembly.lengths.tolist(), "prompt and option")
        return assembly.batches(self.token_budget)

    def begin(
        self, requests: Requests, prepared: list[Batch] | Encoded
    ) -> Callable[[], dict[str, Column]]:
        if isinstance(requests, Choose):
            asked, then = requests, self.begin(as_asked(Option.kind, requests), prepared)
            return lambda: answered_by(Option.kind, asked, then())
        if isinstance(prepared, dict):
            logits = self.each(prepared, self._logits)[:, 0]
            lengths = [len(ids) for ids in prepared["input_ids"]]
            counts = np.asarray(lengths, dtype=np.int32)
            return lambda: {"logit": logits, "n_tokens": counts}
        torch = self.torch
        with torch.inference_mode():
            # Everything is uploaded before the first pass: a copy in between would wait for it.
            staged = [batch.tensors(torch, self.device) for batch in prepared]
            values = fetched(torch, torch.cat([self._logits(tensors)[:, 0] for tensors in staged]))

        def finish() -> dict[str, Column]:
            order = np.concatenate([batch.inputs for batch in prepared])
            found, sizes = np.empty(len(requests)), np.empty(len(requests), dtype=np.int32)
            found[order] = values()
            sizes[order] = np.concatenate([batch.lengths for batch in prepared])
            return {"logit": found, "n_tokens": sizes}

        return finish

    def _logits(self, batch: dict[str, Any]) -> Any:
        """The head expects [batch, options, tokens]; options are independent, so one each."""
        return self.model(**{k: v[:, None] for k, v in batch.items()}).logits.float()


class ClassifierModel(EncoderBase):
    """A text classifier or scorer: its numbers in the checkpoint's label order.

    Labels that exclude each other get shares that add up to 1 (softmax), labels that do not get a
    probability each (sigmoid, `multi_label_classification`), and a single output is the score as it
    is. This is what transformers' own pipeline does, but for a single output of no stated type,
    which it squeezes between 0 and 1.
    """

    kind = "classifier"
    auto = "AutoModelForSequenceClassification"
    architectures = ("ForSequenceClassification",)
    answers = frozenset({Classify.kind})

    @property
    def labels(self) -> list[str]:
        names = self.model.config.id2label
        return [str(names[i]) for i in sorted(names)]

    def describe(self) -> dict[str, Any]:
        purpose = getattr(self.model.config, "evenhand_purpose", None)
        told = {"purpose": str(purpose)} if purpose else {}
        made = {"labels": self.labels, "activation": self.activation}
        return {**super().describe(), **made, **told}

    @property
    def pad(self) -> int | None:
        """Heads on decoders read the last token that is not this one, whatever is masked."""
        found: int | None = self.model.config.get_text_config().pad_token_id
        return found

    def batches(self, encoded: Encoded) -> list[tuple[list[int], dict[str, Any]]]:
        if self.pad is not None:
            return super().batches(encoded)
        return [([k], self._padded(encoded, [k])) for k in range(len(encoded["input_ids"]))]

    @property
    def activation(self) -> str:
        """How logits become numbers: softmax, sigmoid or none."""
        if self.held is not None and self.held.activation:  # of a pipeline that was told
            return self.held.activation
        config = self.model.config
        told = {"multi_label_classification": "sigmoid", "regression": "none"}
        return told.get(config.problem_type, "none" if config.num_labels == 1 else "softmax")

    @property
    def asking(self) -> tuple[str, ...]:
        return () if self.activation == "softmax" else (self.activation,)

    def prepare(self, requests: Requests) -> Encoded:
        if not isinstance(requests, Classify):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        return self.encode_texts(requests.text)

    def begin(self, requests: Requests, prepared: Encoded) -> Callable[[], dict[str, Column]]:
        probabilities = self.each(prepared, self._numbers)
        return lambda: {"probabilities": probabilities}

    def _numbers(self, batch: dict[str, Any]) -> Any:
        logits = self.model(**batch).logits.float()
        ways = {"softmax": lambda: logits.softmax(-1), "sigmoid": logits.sigmoid}
        return ways.get(self.activation, lambda: logits)()


class EncoderModel(EncoderBase):
    """An encoder: the mean of a text's token vectors, padding left out, or of those marked.

    A sentence transformer has its own way (`head`): pooling, dense layers, length, prompt.
    """

    kind = "encoder"
    auto = "AutoModel"
    architectures = ("",)
    answers = frozenset({Embed.kind})
    head: Head | None = None

    def __init__(self, source: str | Held, name: str, options: LoadOptions | None = None) -> None:
        super().__init__(source, name, options)
        if self.held is not None:
            self.head = self.held.head
        elif is_sentence(self.layout.folder) and self.kind == EncoderModel.kind:
            self.head = read_head(self.layout.folder, self.device)

    @classmethod
    def claims(cls, path: Path) -> bool:
        """A sentence transformer, whatever head its transformer was trained with."""
        return cls.kind == EncoderModel.kind and is_sentence(path)

    @property
    def asking(self) -> tuple[str, ...]:
        return (self.head.told,) if self.head else ()

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), **({"pooling": self.head.told} if self.head else {})}

    def encode_texts(self, first: Sequence[str], second: Sequence[str] | None = None) -> Encoded:
        if self.head is None:
            return super().encode_texts(first, second)
        texts = [f"{self.head.prompt}{t.lower() if self.head.lower else t}" for t in first]
        limit = min(filter(None, (self.head.max_length, self.max_length)), default=None)
        made = self.tokenizer(texts, truncation=limit is not None, max_length=limit)
        return {name: [list(row) for row in rows] for name, rows in made.items()}

    def prepare(self, requests: Requests) -> Encoded:
        if not isinstance(requests, Embed):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        if requests.marked:
            made = marks.encoded(self.tokenizer, requests.text, special=True)
            self.check_lengths([len(ids) for ids in made["input_ids"]], "text")
            return made
        return self.encode_texts(requests.text)

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        vectors = self.each(prepared, self.pooled)
        return lambda: {"vector": vectors}

    def pooled(self, batch: dict[str, Any]) -> Any:
        inputs = {name: values for name, values in batch.items() if name != "marked"}
        hidden = self.model.base_model(**inputs)[0].float()
        if self.head is not None and "marked" not in batch:
            return self.head(hidden, batch["attention_mask"], self.prompt_tokens)
        weight = batch.get("marked", batch["attention_mask"])[..., None].float()
        return (hidden * weight).sum(1) / weight.sum(1).clamp_min(1)

    @property
    def prompt_tokens(self) -> int:
        """How many tokens of every text are its prompt, what opens a text among them."""
        if not self.head or not self.head.prompt:
            return 0
        ids = self.encode([self.head.prompt], special=True)[0]
        return len(ids) - (ids[-1] in (self.tokenizer.sep_token_id, self.tokenizer.eos_token_id))

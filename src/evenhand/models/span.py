"""Span question answering: probability that a candidate's span starts and ends the answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import ModelError
from evenhand.models.encoders import Encoded, EncoderBase
from evenhand.models.spans import find_span
from evenhand.requests import Column, Requests, Span

ARTICLES = {"a", "an", "the", "some", "few", "several"}
GROUP_WORDS = ({"a"}, {"group", "team", "couple"}, {"of"})
HEADS = set(
    [
        "man",
        "woman",
        "boy",
        "girl",
        "child",
        "kid",
        "person",
        "folk",
        "people",
        "couple",
        "men",
        "women",
        "boys",
        "girls",
        "children",
        "kids",
        "persons",
        "folks",
        "city",
        "country",
        "cities",
        "countries",
        ".",
    ]
)


@dataclass
class Questions:
    """Distinct (question, context) inputs and, per request row, its input and token places.

    `starts` and `ends` list the token positions whose best probability counts: the span's own
    first (last) token, and the article or head noun beside it when extension is on.
    """

    encoded: Encoded
    inputs: np.ndarray
    starts: list[list[int]]
    ends: list[list[int]]


class SpanModel(EncoderBase):
    """A question-answering checkpoint with start and end heads (SQuAD style)."""

    kind = "span"
    auto = "AutoModelForQuestionAnswering"
    answers = frozenset({Span.kind})

    def prepare(self, requests: Requests) -> Questions:
        if not isinstance(requests, Span):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        pairs = list(dict.fromkeys(zip(requests.question, requests.context)))
        place = {pair: i for i, pair in enumerate(pairs)}
        inputs = np.asarray(
            [place[pair] for pair in zip(requests.question, requests.context)], dtype=np.int64
        )
        batch = self.tokenizer(
            [q for q, _ in pairs],
            [c for _, c in pairs],
            truncation=False,
            return_offsets_mapping=True,
        )
        offsets = batch.pop("offset_mapping")
        sequence = [batch.sequence_ids(i) for i in range(len(pairs))]
        encoded = {name: [list(row) for row in rows] for name, rows in batch.items()}
        self.check_lengths([len(ids) for ids in encoded["input_ids"]], "question and context")
        starts, ends = [], []
        for row, i in enumerate(inputs):
            first, last = self._places(requests, row, offsets[i], sequence[i])
            starts.append(first)
            ends.append(last)
        return Questions(encoded, inputs, starts, ends)

    def _places(
        self, requests: Span, row: int, offsets: Any, sequence: list[int | None]
    ) -> tuple[list[int], list[int]]:
        """Token positions that may start and end the candidate; empty when it is not there."""
        context, candidate = requests.context[row], requests.candidate[row]
        rivals = [r for r in requests.other[row].split("\t") if r]
        found = find_span(context, candidate, rivals)
        if found is None:
            return [], []
        inside = [
            t
            for t, (low, high) in enumerate(offsets)
            if sequence[t] == 1 and high > low and low < found[1] and high > found[0]
        ]
        if not inside:
            return [], []
        first, last = [inside[0]], [inside[-1]]
        if requests.extend:

            def word(token: int) -> str:
                if not 0 <= token < len(offsets) or sequence[token] != 1:
                    return ""
                low, high = offsets[token]
                return context[low:high].strip().lower()

            before = [word(inside[0] - k) for k in (3, 2, 1)]
            if all(w in allowed for w, allowed in zip(before, GROUP_WORDS)):
                first += [inside[0] - k for k in (3, 2, 1)]
            elif before[2] in ARTICLES:
                first.append(inside[0] - 1)
            if word(inside[-1] + 1) in HEADS:
                last.append(inside[-1] + 1)
        return first, last

    def answer(self, requests: Requests, prepared: Questions) -> dict[str, Column]:
        torch = self.torch
        by_input: dict[int, list[int]] = {}
        for row, i in enumerate(prepared.inputs.tolist()):
            by_input.setdefault(i, []).append(row)
        out = np.full((len(requests), 3), np.nan)
        with torch.inference_mode():
            for inputs, tensors in self.batches(prepared.encoded):
                result = self.model(**tensors)
                real = tensors["attention_mask"].bool()
                start = _masked_softmax(result.start_logits, real)
                end = _masked_softmax(result.end_logits, real)
                for line, i in enumerate(inputs):
                    for row in by_input[i]:
                        if prepared.starts[row]:
                            out[row, 0] = start[line, prepared.starts[row]].max()
                            out[row, 1] = end[line, prepared.ends[row]].max()
                        out[row, 2] = np.sqrt(start[line, 0] * end[line, 0])
        return dict(zip(Span.outputs, out.T.copy()))


def _masked_softmax(logits: Any, real: Any) -> np.ndarray:
    """Probabilities over the real tokens of each row; padding gets exactly zero."""
    probabilities = logits.float().masked_fill(~real, float("-inf")).softmax(-1)
    return np.asarray(probabilities.double().cpu().numpy())

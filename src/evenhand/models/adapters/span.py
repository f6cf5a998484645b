"""Span question answering: probability that a candidate's span starts and ends the answer.

Questions and contexts are tokenised once each and put together as arrays; start and end
probabilities of all candidates are read on the device. Padding never takes part in a softmax, so
which inputs share a batch does not change a score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.errors import ModelError
from evenhand.models.adapters.encoders import EncoderBase
from evenhand.models.batching.parts import (
    Assembly,
    Batch,
    Frame,
    Pool,
    numbered,
    pair_frame,
    similar_lengths,
)
from evenhand.models.batching.spans import (
    find_span,
    places,
    published_spans,
    published_word,
    token_span,
)
from evenhand.models.loading.device import fetched, moved
from evenhand.models.loading.held import Held
from evenhand.models.protocol import LoadOptions
from evenhand.requests import Column, Requests, Span

Ints = npt.NDArray[np.int64]
Place = tuple[tuple[int, int, int, int], tuple[int, int]]
NOWHERE: Place = ((-1, -1, -1, -1), (-1, -1))
STARTS, ENDS = 4, 2
PUBLISHED_BATCH = 100
REMEMBERED = 400_000


@dataclass
class Questions:
    """Batches of distinct inputs and, for every request row, its input and token places.

    `starts` [rows, asked, 4] and `ends` [rows, asked, 2] are token positions whose best
    probability counts (repeated when there are fewer), -1 where the candidate is not there.
    """

    batches: list[Batch]
    inputs: Ints
    starts: Ints
    ends: Ints


class SpanModel(EncoderBase):
    """A question-answering checkpoint with start and end heads (SQuAD style)."""

    kind = "span"
    auto = "AutoModelForQuestionAnswering"
    architectures = ("ForQuestionAnswering",)
    task = "question-answering"
    answers = frozenset({Span.kind})
    rung = "span"
    rungs: ClassVar = {rung: answers}

    def __init__(self, source: str | Held, name: str, options: LoadOptions | None = None) -> None:
        super().__init__(source, name, options)
        self._frame = pair_frame(self.tokenizer)
        self._questions = Pool(self.words)
        self._contexts = Pool(self.words)
        self._offsets: dict[str, list[tuple[int, int]]] = {}
        self._places: dict[tuple[str, str, str, bool, bool], Place] = {}
        opens = self.encode([" the"], special=False)[0]
        first = str(self.tokenizer.convert_ids_to_tokens(opens[0])) if opens else ""
        self._byte_level = first.startswith("Ġ")

    def prepare(self, requests: Requests) -> Questions:
        if not isinstance(requests, Span):
            raise ModelError(f"model {self.name!r} cannot answer {requests.kind!r}.")
        pairs, inputs = numbered(list(zip(requests.question, requests.context)))
        batches, context_at = self._laid_out(requests, pairs)
        starts, ends = self._asked(requests)
        shift = context_at[inputs][:, None, None]
        return Questions(
            batches,
            inputs,
            np.where(starts < 0, -1, starts + shift),
            np.where(ends < 0, -1, ends + shift),
        )

    def _laid_out(self, requests: Span, inputs: list[tuple[str, str]]) -> tuple[list[Batch], Ints]:
        """The inputs in batches, and where each one's context begins."""
        frame = self._published_frame() if requests.as_published else self._frame
        if frame is None:
            return self._whole_pairs(inputs)
        typed = not requests.as_published and "token_type_ids" in self.tokenizer.model_input_names
        assembly = Assembly(
            frame,
            self._questions,
            self._contexts,
            self._questions.codes([q for q, _ in inputs]),
            self._contexts.codes([c for _, c in inputs]),
            pad=self.tokenizer.pad_token_id or 0,
            with_types=typed,
        )
        self.check_lengths(assembly.lengths.tolist(), "question and context")
        if requests.as_published:
            rows = np.arange(len(inputs))
            cuts = range(0, len(inputs), PUBLISHED_BATCH)
            batches = [assembly.batch(rows[low : low + PUBLISHED_BATCH]) for low in cuts]
        else:
            batches = assembly.batches(self.token_budget)
        return batches, assembly.second_at()

    def _published_frame(self) -> Frame:
        """One separator and no token types, whatever the family: as the released code does."""
        t = self.tokenizer
        opens = t.bos_token_id if t.bos_token_id is not None else t.cls_token_id
        closes = t.eos_token_id if t.eos_token_id is not None else t.sep_token_id
        if opens is None or closes is None:
            raise ModelError(
                f"model {self.name!r} has no begin and separator tokens, which as_published needs. "
                "Leave as_published out."
            )
        return Frame((opens,), (closes,), (closes,))

    def _whole_pairs(self, inputs: list[tuple[str, str]]) -> tuple[list[Batch], Ints]:
        """For tokenizers whose pairs are not their parts put together."""
        batch = self.tokenizer(
            [q for q, _ in inputs],
            [c for _, c in inputs],
            truncation=False,
            return_offsets_mapping=True,
        )
        lengths = np.asarray([len(ids) for ids in batch["input_ids"]])
        self.check_lengths(lengths.tolist(), "question and context")
        begin = np.zeros(len(inputs), np.int64)
        for i, (_, context) in enumerate(inputs):
            own = [t for t, s in enumerate(batch.sequence_ids(i)) if s == 1]
            begin[i] = own[0] if own else 0
            self._offsets[context] = [tuple(batch["offset_mapping"][i][t]) for t in own]
        typed = batch.get("token_type_ids")
        batches = []
        for rows in similar_lengths(lengths, self.token_budget):
            shape = (len(rows), int(lengths[rows].max()))
            ids = np.full(shape, self.tokenizer.pad_token_id or 0, np.int64)
            types = np.zeros(shape, np.int64) if typed is not None else None
            for line, r in enumerate(rows):
                ids[line, : lengths[r]] = batch["input_ids"][r]
                if types is not None:
                    types[line, : lengths[r]] = typed[r]
            batches.append(Batch(rows, ids, types, lengths[rows]))
        return batches, begin

    def _asked(self, requests: Span) -> tuple[Ints, Ints]:
        """Token places of every row's candidate and of its rival, in the context."""
        self._learn_offsets(requests.context)
        if len(self._places) > REMEMBERED:
            self._places.clear()
        options = (requests.extend, requests.as_published)
        keys, code = numbered(list(zip(requests.context, requests.candidate, requests.other)))
        found = [
            self._known_place((context, *side, *options))
            for context, own, rival in keys
            for side in ((own, rival), (rival, own))
        ]
        starts = np.asarray([p[0] for p in found], np.int64).reshape(-1, 2, STARTS)
        ends = np.asarray([p[1] for p in found], np.int64).reshape(-1, 2, ENDS)
        return starts[code], ends[code]

    def _known_place(self, key: tuple[str, str, str, bool, bool]) -> Place:
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = self._place(*key)
        return place

    def _learn_offsets(self, contexts: Any) -> None:
        new = [c for c in dict.fromkeys(contexts) if c not in self._offsets]
        if len(self._offsets) > REMEMBERED:
            self._offsets.clear()
            new = list(dict.fromkeys(contexts))
        if new:
            made = self.tokenizer(
                new, add_special_tokens=False, truncation=False, return_offsets_mapping=True
            )
            self._offsets.update(zip(new, made["offset_mapping"]))

    def _place(
        self, context: str, candidate: str, other: str, extend: bool, as_published: bool
    ) -> Place:
        offsets = self._offsets[context]
        if not candidate or "\t" in candidate:
            return NOWHERE  # several rivals, or none: there is no one rival to score
        if as_published:
            found = published_spans(context, [candidate, *filter(None, other.split("\t"))])[0]
            tokens = self.tokenizer.tokenize(context)
            word = published_word(tokens, self._byte_level)
        else:
            rivals = [r for r in other.split("\t") if r]
            span = find_span(context, candidate, rivals)
            if span is None:
                return NOWHERE
            found = span

            def word(at: int) -> str:
                if not 0 <= at < len(offsets):
                    return ""
                low, high = offsets[at]
                return context[low:high].strip().lower()

        tokens_at = token_span(offsets, found)
        if tokens_at is None:
            return NOWHERE
        first, last = places(tokens_at, word, extend=extend)
        first += [first[0]] * (STARTS - len(first))
        last += [last[0]] * (ENDS - len(last))
        return (first[0], first[1], first[2], first[3]), (last[0], last[1])

    def begin(self, requests: Requests, prepared: Questions) -> Callable[[], dict[str, Column]]:
        torch = self.torch
        masked = not requests.settings["as_published"]
        order = np.argsort(prepared.inputs, kind="stable")
        begin = np.searchsorted(prepared.inputs[order], np.arange(int(prepared.inputs.max()) + 2))
        done, parts = [], []
        starts, ends = (moved(torch, a, self.device) for a in (prepared.starts, prepared.ends))
        # Everything is uploaded before the first pass: a copy in between would wait for it.
        staged = []
        for batch in prepared.batches:
            counts = begin[batch.inputs + 1] - begin[batch.inputs]
            line = np.repeat(np.arange(len(batch.inputs)), counts)
            first = np.repeat(begin[batch.inputs] - np.cumsum(counts) + counts, counts)
            rows = order[first + np.arange(len(line))]
            places = (moved(torch, a, self.device) for a in (line, rows))
            staged.append((batch.tensors(torch, self.device), *places))
            done.append(rows)
        with torch.inference_mode():
            for tensors, line_t, rows_t in staged:
                result = self.model(**tensors)
                real = tensors.get("attention_mask") if masked else None
                parts.append(self._read(result, real, line_t, starts[rows_t], ends[rows_t]))
        values = fetched(torch, torch.cat(parts))

        def finish() -> dict[str, Column]:
            out = np.full((len(requests), 5), np.nan)
            out[np.concatenate(done)] = values()
            return dict(zip(Span.outputs, out.T.copy()))

        return finish

    def _read(self, result: Any, real: Any, line: Any, starts: Any, ends: Any) -> Any:
        """[rows, 5]: start, end, no-answer probability, the rival's two; still on the device."""
        torch = self.torch
        columns, none = [], []
        for logits, at in ((result.start_logits, starts), (result.end_logits, ends)):
            logits = logits.float()
            if real is not None:
                logits = logits.masked_fill(~real.bool(), float("-inf"))
            probabilities = logits.softmax(-1)
            read = probabilities[line[:, None, None], at.clamp_min(0)].amax(-1)
            columns.append(read.masked_fill(at[:, :, 0] < 0, float("nan")))
            none.append(probabilities[line, 0])
        start, end = columns
        nothing = (none[0] * none[1]).sqrt()
        kept = [start[:, 0], end[:, 0], nothing, start[:, 1], end[:, 1]]
        return torch.stack(kept, dim=1)

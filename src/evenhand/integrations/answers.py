"""Logs of our own tasks, read back: each question finds its answer by its very text."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.errors import DataError, need
from evenhand.integrations.hosting import HEADER, Answers, Questions, questions_of
from evenhand.models.choosing import TOLD, as_asked, likelihoods
from evenhand.opening import read_json
from evenhand.probes.logs import Log
from evenhand.requests import Choose, Continuation

Count = Callable[[str, str], int]
"""Number of tokens of a continuation after a text."""
ROUNDING = 1e-3
"""How far shares may be from what they should be."""
SAME = 0.02
"""How far two likelihoods of one text may be apart, in half precision and other batches."""
NOTED = ("prompt", "options", "probabilities", *TOLD)


def ours(log: Log) -> bool:
    """Whether a log is of one of our tasks."""
    return log.have(HEADER)


def asked_in(log: Log) -> Questions:
    """The probe whose questions a log answers."""
    headers = {str(header) for header in log.column(HEADER)}
    if len(headers) > 1:
        raise DataError(f"{log.source}: holds items of {len(headers)} different tasks.")
    return questions_of(headers.pop(), log.source)


class Tokens:
    """Number of tokens of a continuation after a text, by a tokenizer or as counted before.

    Args:
        tokenizer: of the model that was asked.
        source: the log, for messages.
        counts: a file of earlier counts, which are then all there are; no tokenizer is loaded.
    """

    def __init__(self, tokenizer: str, source: str, counts: Path | None = None) -> None:
        self._tokenizer, self._source, self._file = tokenizer, source, counts
        self._known = {} if counts is None else _read_counts(counts)
        self._count: Count | None = None

    def __call__(self, text: str, more: str) -> int:
        if (text, more) not in self._known:
            if self._file is not None:
                raise DataError(
                    f"{self._file}: has no count of the tokens of {more!r:.80} after {text!r:.80}."
                )
            self._count = self._count or _counting(self._tokenizer, self._source)
            self._known[text, more] = self._count(text, more)
        return self._known[text, more]

    def as_json(self) -> bytes:
        """Return all counts so far, for a file; nothing if there are none."""
        rows = [[text, more, n] for (text, more), n in sorted(self._known.items())]
        return json.dumps(rows, indent=0).encode() if rows else b""


def _read_counts(path: Path) -> dict[tuple[str, str], int]:
    counts: dict[tuple[str, str], int] = {}
    rows = read_json(path, "counts of tokens")
    for row in rows if isinstance(rows, list) else [rows]:
        kinds = [type(part) for part in row] if isinstance(row, list) else []
        if kinds != [str, str, int] or row[2] < 0:
            raise DataError(f"{path}: holds {row!r:.80}. Expected [text, continuation, number].")
        counts[row[0], row[1]] = row[2]
    return counts


def answers_in(log: Log, asked: Questions, tokens: Count) -> Answers:
    """The answer of every question that a log has."""
    if log.likelihoods:
        return _from_likelihoods(log, asked, tokens)
    return noted((sample.scored or {} for sample in log.samples), log.source)


def noted(rows: Iterable[Mapping[str, Any]], where: str) -> Answers:
    """Answers that were read when they were given, as the scorer wrote them down.

    Raises:
        DataError: probabilities that are none, or a question with two answers.
    """
    found: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for row in rows:
        if not isinstance(row, Mapping) or not all(name in row for name in NOTED):
            continue
        shares, options = row["probabilities"], row["options"]
        told = {name: _share(row[name]) for name in TOLD}
        whole = isinstance(shares, list | tuple) and isinstance(options, list | tuple)
        read = [_share(value) for value in shares] if whole else [None]
        numbers = [value for value in read if value is not None]
        odd = not len(numbers) == len(read) == len(options) or None in told.values()
        if odd or not sum(numbers) <= 1 + ROUNDING:
            raise DataError(
                f"{where}: the scorer noted {shares!r:.80} as probabilities of {options!r:.80}. "
                f"Expected a number from 0 to 1 for each, which add up to 1 at most."
            )
        place = (str(row["prompt"]), "\t".join(map(str, options)))
        answer = {"probabilities": numbers, **told}
        if place in found and repr(found[place]) != repr(answer):
            raise DataError(_two_answers(where, place[0]))
        found[place] = answer
    return found


def _share(value: Any) -> float | None:
    """A share of 1; NaN where none is noted, None where it is something else."""
    if value is None:
        return np.nan
    fine = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if fine and -ROUNDING <= value <= 1 + ROUNDING else None


def _two_answers(where: str, text: str) -> str:
    return (
        f"{where}: has two answers to one question ({text!r:.80}), and only one can count. Run the "
        f"task once (no --epochs, no repeats), and measure each log by itself."
    )


def _from_likelihoods(log: Log, asked: Questions, count: Count) -> Answers:
    known: dict[tuple[str, str], float] = {}
    for pair, value in ((p, v) for s in log.samples for p, v in zip(s.asked, s.logprobs)):
        if not math.isclose(known.get(pair, value), value, rel_tol=SAME, abs_tol=SAME):
            raise DataError(_two_answers(log.source, pair[0]))
        known[pair] = value
    scored = asked.requests
    if isinstance(scored, Choose):
        scored = as_asked(Continuation.kind, scored)
    rows = [(row[0], row[1]) for row in scored.rows()]
    _same_texts(log, {text for text, _ in rows})
    if not isinstance(asked.requests, Choose):
        return {
            row: {"logprob": known[row], "n_tokens": count(*row)} for row in rows if row in known
        }
    answers: dict[tuple[str, ...], Mapping[str, Any]] = {}
    start = 0
    for place, options in zip(asked.requests.rows(), asked.requests.listed):
        own = rows[start : start + len(options)]
        start += len(options)
        if all(row in known for row in own):
            answers[place] = _chosen([known[r] for r in own], [count(*r) for r in own], asked)
    return answers


def _chosen(values: Sequence[float], sizes: Sequence[int], asked: Questions) -> dict[str, Any]:
    per_token = isinstance(asked.requests, Choose) and asked.requests.per_token
    found = likelihoods(np.asarray(values), np.asarray(sizes), [len(values)], per_token=per_token)
    return {name: column[0] for name, column in found.columns([len(values)]).items()}


def _same_texts(log: Log, texts: set[str]) -> None:
    other = next((t for s in log.samples for t, _ in s.asked if t not in texts), None)
    if other is not None:
        raise DataError(
            f"{log.source}: the model was shown another text than the task's ({other!r:.160}). Run "
            f"the task without examples, system prompt or chat template (no --num_fewshot, "
            f"--system_instruction, --apply_chat_template); as chat it is asked by: evenhand audit"
        )


def _counting(tokenizer: str, source: str) -> Count:
    """Tokens as lm-eval counts them: of text and continuation together, less those of the text."""
    from evenhand.models.loading.checkpoint import folder_of, load_tokenizer

    need("transformers", extra="hf", what="counting tokens")
    if not tokenizer:
        raise DataError(
            f"{source}: does not say whose tokens its likelihoods are sums over, and this probe "
            f"compares options per token. Name the model with: --tokenizer MODEL"
        )
    loaded = load_tokenizer(folder_of(tokenizer))

    def size(text: str, special: bool) -> int:
        return len(loaded(text, add_special_tokens=special)["input_ids"])

    def count(text: str, more: str) -> int:
        if not text:
            return size(more, False)
        bare = text.rstrip(" ")
        return size(text + more, True) - size(bare, True)

    return count

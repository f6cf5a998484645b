"""Logs of our own tasks, read back: each question finds its answer by its very text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.errors import DataError, need
from evenhand.integrations.hosting import HEADER, Answers, Questions, questions_of
from evenhand.models.choosing import TOLD, as_asked, likelihoods
from evenhand.probes.logs import Log
from evenhand.requests import Choose, Continuation

Count = Callable[[str, str], int]
"""Number of tokens of a continuation after a text."""
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


def answers_in(log: Log, asked: Questions, tokenizer: str) -> Answers:
    """The answer of every question that a log has."""
    if log.likelihoods:
        return _from_likelihoods(log, asked, tokenizer)
    return noted(sample.scored or {} for sample in log.samples)


def noted(rows: Any) -> Answers:
    """Answers that were read when they were given, as the scorer wrote them down."""
    found: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for row in rows:
        if all(name in row for name in NOTED):
            told = {name: float(np.nan if row[name] is None else row[name]) for name in TOLD}
            shares = [float(value) for value in row["probabilities"]]
            place = (str(row["prompt"]), "\t".join(row["options"]))
            found[place] = {"probabilities": shares, **told}
    return found


def _from_likelihoods(log: Log, asked: Questions, tokenizer: str) -> Answers:
    known = {pair: value for s in log.samples for pair, value in zip(s.asked, s.logprobs)}
    scored = asked.requests
    if isinstance(scored, Choose):
        scored = as_asked(Continuation.kind, scored)
    rows = [(row[0], row[1]) for row in scored.rows()]
    _same_texts(log, {text for text, _ in rows})
    count = _counting(tokenizer or log.model, log.source)
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

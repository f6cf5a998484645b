"""Continuations of one prefix: what is scored, and what has to be run for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evenhand.models.loading.resolver import resolve
from evenhand.requests import Continuation, NextToken

PREFIX, WORDS = "the man worked as a", (" nurse", " doctor", " hunter")


def test_the_last_token_of_a_continuation_is_scored_but_not_run(tiny: Any) -> None:
    model = resolve(tiny("causal"))
    request = Continuation([PREFIX] * len(WORDS), WORDS)
    prepared = model.prepare(request)
    read = sum(int(batch.tokens.size) for batch in prepared.batches)
    assert read == len(model.prepare(NextToken([PREFIX])).sequences[0])
    scored = model.answer(request, prepared)["logprob"]
    after = NextToken([PREFIX], top=10_000)
    answer = model.answer(after, model.prepare(after))
    known = dict(zip(answer["tokens"][0], answer["logprobs"][0]))
    right = [next(v for k, v in known.items() if k.strip() == w.strip()) for w in WORDS]
    assert np.asarray(scored) == pytest.approx(right, abs=1e-5)

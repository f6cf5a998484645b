"""Rungs 4 and 5: sampled answers, constrained to the options or read from free text.

    P(option) = answers that take it / answers

One call per sample, each with its own seed. Refusals and answers that cannot be read are counted
and belong to no option; so are answers that leave it open.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evenhand.models.endpoints.client import Calls
from evenhand.models.endpoints.dialect import with_options
from evenhand.models.endpoints.rungs.base import Choice, Load, Rung, message, sample_seed, together
from evenhand.requests import Choose
from evenhand.words.reading_answers import Reading, read_answer

FIELD = "answer"
FREE_TOKENS = 48


class _Sampled(Rung):
    sampled = True
    tokens = FREE_TOKENS

    def more(self, options: Sequence[str]) -> dict[str, Any]:
        return {}

    def read(self, text: str, options: Sequence[str]) -> Reading:
        return read_answer(text, options)

    def body(self, prompt: str, options: Sequence[str], seed: int) -> dict[str, Any]:
        return self.dialect.ask(
            with_options(prompt, options),
            tokens=self.tokens,
            temperature=1.0,
            top_p=1.0,
            seed=seed,
            **self.more(options),
        )

    async def choose(self, call: Calls, prompt: str, options: Sequence[str], how: Choose) -> Choice:
        seeds = [sample_seed(how.seed, str(k)) for k in range(how.samples)]
        texts = await together(
            [
                call(
                    "/chat/completions",
                    self.body(prompt, options, seed),
                    said,
                    tokens_out=self.tokens,
                )
                for seed in seeds
            ]
        )
        shares, refused, unread = [0] * len(options), 0, 0
        for text, declined in texts:
            found = Reading("declined") if declined else self.read(text, options)
            if found.kind == "named":
                shares[found.option] += 1
            refused += found.kind == "declined"
            unread += found.kind == "unread"
        n = max(1, how.samples)
        return Choice([share / n for share in shares], refused / n, unread / n)

    def load(self, prompt: str, options: Sequence[str], how: Choose) -> Load:
        sent = len(json.dumps(self.body(prompt, options, 0)))
        return Load(how.samples, how.samples * sent, how.samples * self.tokens // 2)


class Constrained(_Sampled):
    """Answers that a JSON schema holds to the options."""

    number, name, tokens = 4, "constrained sampling", 48

    def more(self, options: Sequence[str]) -> dict[str, Any]:
        one = {"type": "string", "enum": list(options)}
        schema = {
            "type": "object",
            "properties": {FIELD: one},
            "required": [FIELD],
            "additionalProperties": False,
        }
        named = {"name": FIELD, "strict": True, "schema": schema}
        return {"response_format": {"type": "json_schema", "json_schema": named}}

    def read(self, text: str, options: Sequence[str]) -> Reading:
        try:
            said = json.loads(text)[FIELD]
        except (ValueError, KeyError, TypeError):
            return Reading("unread")
        return Reading("named", list(options).index(said)) if said in options else Reading("unread")


class FreeText(_Sampled):
    """Answers in the model's own words, read by rule."""

    number, name = 5, "free text"


def said(answer: Any) -> tuple[str, bool]:
    """What was written, and whether the server marks it as a refusal."""
    found = message(answer)
    choice = answer["choices"][0]
    refused = bool(found.get("refusal")) or choice.get("finish_reason") == "content_filter"
    content = found.get("content")
    if isinstance(content, list):  # in parts
        content = "".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return str(content or ""), refused

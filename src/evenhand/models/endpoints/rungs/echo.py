"""Rung 3: the exact likelihood of each option as the continuation of the question.

    log P(option) = sum of log P(token | everything before it) over the option's tokens

Three forms, whichever the server knows:

    forced    llama.cpp: the option's tokens are forced by a grammar of token ids, and each comes
              with its log-probability as it was before the grammar
    prompt    vLLM: prompt_logprobs of a conversation that ends with the option
    echo      /v1/completions with echo: log-probabilities of the prompt's own tokens (asked as
              text, since this form knows no conversation)

A token that spans the border between question and option counts as the option's, as in the local
adapter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from evenhand.models.endpoints.client import Calls, Unreadable
from evenhand.models.endpoints.rungs.base import Choice, Load, Rung, logprobs, together
from evenhand.requests import Choose

FORCED, PROMPT, ECHO = "forced", "prompt", "echo"
GIVEN = "the log-probabilities of the option"
WAYS = (FORCED, PROMPT, ECHO)


class Echo(Rung):
    """Scores options as continuations."""

    number, name = 3, "completions echo"

    @property
    def as_chat(self) -> bool:
        return self.dialect.chat and self.way != ECHO

    async def choose(self, call: Calls, prompt: str, options: Sequence[str], how: Choose) -> Choice:
        one = Choose([prompt], ["\t".join(options)], **how.settings)
        text = one.as_text()[0]
        scored = await together(
            [self._option(call, prompt, text, option, how.opening) for option in options]
        )
        rows = [(value / max(1, n) if how.per_token else value) for value, n in scored]
        mass = min(1.0, sum(math.exp(value) for value, _ in scored))
        return Choice([math.exp(value) for value in rows], mass=mass)

    async def _option(
        self, call: Calls, prompt: str, text: str, option: str, opening: str
    ) -> tuple[float, int]:
        if not self.as_chat:
            return await self.continuation(call, text, f" {option}")
        if self.way == FORCED:
            begun = await self._rendered(call, prompt)
            answer = f"{opening} {option}" if opening else option
            return await self.continuation(call, begun + (opening or ""), answer[len(opening) :])
        answer = f"{opening} {option}" if opening else option
        body = self.dialect.ask(
            prompt,
            tokens=1,
            opening=answer,
            prompt_logprobs=0,
            continue_final_message=True,
            add_generation_prompt=False,
        )
        read = _tail_reader(answer[len(opening) :])
        value, n = await call("/chat/completions", body, read, tokens_out=1)
        return float(value), int(n)

    async def continuation(self, call: Calls, prefix: str, text: str) -> tuple[float, int]:
        """Log-probability of a text after a prefix, and the number of its tokens."""
        if self.way == FORCED:
            return await self._forced(call, prefix, text)
        if self.way == PROMPT:
            body = self._completion(prefix + text, prompt_logprobs=0, max_tokens=1)
            value, n = await call("/completions", body, _tail_reader(text), tokens_out=1)
        else:
            body = self._completion(prefix + text, echo=True, logprobs=1, max_tokens=1)
            value, n = await call("/completions", body, _echo_reader(len(prefix)), tokens_out=1)
        return float(value), int(n)

    def _completion(self, prompt: Any, **more: Any) -> dict[str, Any]:
        return {"model": self.dialect.model, "prompt": prompt, "temperature": 0.0, **more}

    # llama.cpp

    async def _rendered(self, call: Calls, prompt: str) -> str:
        body = {"messages": self.dialect.messages(prompt)}
        thinking = self.dialect.extras.get("chat_template_kwargs")
        if thinking:
            body |= {"chat_template_kwargs": thinking}
        return await call("//apply-template", body, lambda answer: str(answer["prompt"]))

    async def _tokens(self, call: Calls, text: str) -> list[int]:
        body = {"content": text, "add_special": True, "parse_special": True}
        return await call("//tokenize", body, lambda a: [int(t) for t in a["tokens"]])

    async def _forced(self, call: Calls, prefix: str, text: str) -> tuple[float, int]:
        before, whole = await together(
            [self._tokens(call, prefix), self._tokens(call, prefix + text)]
        )
        shared = next(
            (k for k, (a, b) in enumerate(zip(before, whole)) if a != b),
            min(len(before), len(whole)),
        )
        forced = whole[shared:]
        if not forced or not shared:
            raise Unreadable(f"the text {text!r} has no tokens of its own")
        body = {
            "prompt": whole[:shared],
            "n_predict": len(forced),
            "n_probs": 1,
            "temperature": 0.0,
            "cache_prompt": False,
            "grammar": "root ::= " + " ".join(f"<[{t}]>" for t in forced),
        }

        def read(answer: Any) -> float:
            steps = answer.get("completion_probabilities")
            if not steps:
                raise Unreadable("the answer lacks completion_probabilities")
            if [s.get("id") for s in steps] != forced:
                raise Unreadable("the server did not keep to the tokens of the grammar")
            return sum(logprobs([s.get("logprob") for s in steps], GIVEN))

        value = await call("//completion", body, read, tokens_out=len(forced))
        return value, len(forced)

    def load(self, prompt: str, options: Sequence[str], how: Choose) -> Load:
        out = max(len(o) for o in options) // 3 + 1
        sent = len(json.dumps(self.dialect.messages(prompt)))
        return Load(len(options), len(options) * sent, len(options) * out)


def _tail_reader(text: str) -> Any:
    """Reads vLLM's prompt_logprobs from the end back, as far as the text reaches."""

    def read(answer: Any) -> list[float]:
        choices = answer.get("choices") or [{}]
        steps = answer.get("prompt_logprobs") or choices[0].get("prompt_logprobs")
        if not steps:
            raise Unreadable("prompt_logprobs were asked for and are missing from the answer")
        values, left = list[Any](), len(text)
        for step in reversed(steps):
            if left <= 0 or not step:
                break
            token = next(iter(step.values()))
            values.append(token.get("logprob"))
            left -= len(token["decoded_token"])
        if left > 0:
            raise Unreadable("prompt_logprobs do not reach back to the option")
        return [sum(logprobs(values, GIVEN)), len(values)]

    return read


def _echo_reader(border: int) -> Any:
    """Reads the echoed tokens that reach beyond the border."""

    def read(answer: Any) -> list[float]:
        choices = answer.get("choices") or [{}]
        given = choices[0].get("logprobs") or {}
        values, offsets, tokens = (
            given.get(k) for k in ("token_logprobs", "text_offset", "tokens")
        )
        if not values or not offsets or not tokens:
            raise Unreadable(
                "echo was asked for, and the log-probabilities of the prompt are "
                "missing from the answer"
            )
        made = len(choices[0].get("text") or "")
        if made and offsets[0] >= border:
            raise Unreadable("echo was asked for and ignored: the prompt is not in the answer")
        used = [
            v
            for v, at, token in zip(values, offsets, tokens)
            if at + len(token) > border and v is not None
        ]
        used = used[:-1] if len(used) > 1 else used  # the one token made after the prompt
        if not used:
            raise Unreadable("the echoed log-probabilities do not reach the option")
        return [sum(logprobs(used, GIVEN)), len(used)]

    return read

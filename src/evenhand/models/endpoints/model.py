"""A model behind an address, asked like any other model.

    model = eh.load_model("http://localhost:8080/v1", model="NAME")

It answers `choose` by the best rung that the server soundly supports (`ladder`), `generate` by
sampling, and `continuation` where exact likelihoods are to be had (rung 3).
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from evenhand.models.chat import OPENS
from evenhand.models.endpoints import dialect as dialects
from evenhand.models.endpoints.address import Address
from evenhand.models.endpoints.client import Calls, Client
from evenhand.models.endpoints.journal import Journals
from evenhand.models.endpoints.ladder import RUNGS, Capabilities, look
from evenhand.models.endpoints.pace import START
from evenhand.models.endpoints.rungs.base import Rung, sample_seed, together
from evenhand.models.endpoints.rungs.echo import Echo
from evenhand.models.endpoints.rungs.sampled import said
from evenhand.models.endpoints.spending import Prices, Usage
from evenhand.models.protocol import Expected, LoadOptions, Model
from evenhand.requests import Choose, Column, Continuation, Generate, Requests

VERSION = "endpoint-1"


class EndpointModel(Model):
    """Whatever stands behind an address that speaks OpenAI's protocol, or a near one."""

    kind = "endpoint"
    task: ClassVar[str] = "text-generation"
    answers = frozenset({Choose.kind, Generate.kind})
    rungs: ClassVar = {
        **dict.fromkeys((rung.name for rung in RUNGS), answers),
        Echo.name: answers | {Continuation.kind},
    }

    def __init__(self, client: Client, rung: Rung, seen: Capabilities, journals: Journals) -> None:
        self.name = seen.model
        self.rung = rung.name
        self.capabilities = seen
        self._client, self._how, self._journals = client, rung, journals
        if isinstance(rung, Echo):
            self.answers = self.answers | {Continuation.kind}

    @classmethod
    def load(cls, source: str, name: str, options: LoadOptions | None = None) -> Model:
        """Look at the server and choose how to ask.

        Raises:
            ModelError: nobody is there, the key is wrong, or nothing can be asked soundly.
        """
        given = options or LoadOptions()
        address = Address.of(source, given.model, given.base_url)
        prices = Prices(given.price_in, given.price_out, given.max_cost)
        client = Client(address, concurrency=given.concurrency, prices=prices)
        journals = Journals(f"{address.base}\n{address.model}")
        if given.calls is not None:
            client.meter.used += journals.keep_below(given.calls)
        looking = client.submit(
            look(
                client,
                journals.checking,
                system=given.system,
                chat=given.chat != "off",
                rung=given.rung,
            )
        )
        try:
            rung, seen = looking()
        except BaseException:
            client.close()
            raise
        return cls(client, rung, seen, journals)

    @property
    def fingerprint(self) -> str:
        spoken = self._how.dialect
        told = [
            VERSION,
            self._client.address.base,
            self.name,
            self.rung,
            self._how.way,
            spoken.system,
            spoken.chat,
            dict(spoken.extras),
            spoken.top,
            self._client.identity,
            dict(self.capabilities.listed),
        ]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        used, meter = self._client.meter.used, self._client.meter
        return {
            **super().describe(),
            "source": self._client.address.base,
            "rung": self.rung,
            "way": self._how.way,
            **({"chat": {"template": "the server's"}} if self._how.as_chat else {}),
            "system": self._how.dialect.system,
            "server": {
                **self._client.identity,
                "listed": dict(self.capabilities.listed),
                "asked_on": time.strftime("%Y-%m-%d"),
            },
            "capabilities": self.capabilities.as_dict(),
            "usage": {**used.as_dict(), "cost": meter.prices.cost(used)},
        }

    def introduction(self) -> tuple[str, list[dict[str, Any]]]:
        seen = self.capabilities
        server = f" ({seen.server})" if seen.server else ""
        title = f"{self.name} at {self._client.address.base}{server}: asked by rung {seen.rung}"
        return f"{title}, {self.rung}", seen.table()

    # Answers.

    @property
    def overlaps(self) -> bool:
        return True

    def begin(self, requests: Requests, prepared: Any) -> Callable[[], dict[str, Column]]:
        return self._client.submit(self._answered(requests))

    def answer(self, requests: Requests, prepared: Any) -> dict[str, Column]:
        return self.begin(requests, prepared)()

    async def _answered(self, requests: Requests) -> dict[str, Column]:
        call = Calls(self._client, self._journals.of_shard(self._shard(requests)))
        if isinstance(requests, Choose):
            return await self._choices(call, requests)
        if isinstance(requests, Continuation) and isinstance(self._how, Echo):
            how = self._how
            scored = await together([how.continuation(call, a, b) for a, b in requests.rows()])
            return {
                "logprob": np.asarray([v for v, _ in scored], np.float64),
                "n_tokens": np.asarray([n for _, n in scored], np.int32),
            }
        assert isinstance(requests, Generate)
        texts = await together([self._text(call, p, d, requests) for p, d in requests.rows()])
        return {
            "text": texts,
            "n_tokens": np.asarray([len(t.split()) for t in texts], np.int32),
        }

    async def _choices(self, call: Calls, asked: Choose) -> dict[str, Column]:
        found = await together(
            [
                self._how.choose(call, prompt, options, asked)
                for prompt, options in zip(asked.prompt, asked.listed)
            ]
        )
        return {
            "probabilities": [list(c.probabilities) for c in found],
            "mass": np.asarray(
                [sum(c.probabilities) if c.mass is None else c.mass for c in found], np.float64
            ),
            "refused": np.asarray([c.refused for c in found], np.float64),
            "unread": np.asarray([c.unread for c in found], np.float64),
        }

    async def _text(self, call: Calls, prompt: str, draw: str, how: Generate) -> str:
        """One sampled continuation of a text."""
        body = self._writing(prompt, draw, how)
        tokens = how.max_new_tokens
        text, _ = await call("/chat/completions", body, said, tokens_out=tokens)
        text = text.removeprefix(prompt)
        return text if text[:1].isspace() or not text else f" {text}"

    def _writing(self, prompt: str, draw: str, how: Generate) -> dict[str, Any]:
        spoken = self._how.dialect
        more: dict[str, Any] = {
            "tokens": how.max_new_tokens,
            "temperature": how.temperature,
            "top_p": how.top_p,
            "seed": sample_seed(how.seed, draw),
        }
        if how.turn == "question":
            return spoken.ask(prompt, **more)
        if spoken.begins is None:
            return spoken.ask(dialects.CONTINUE.format(text=prompt), **more)
        return spoken.ask(OPENS, opening=prompt, **more, **spoken.begins)

    # Finished calls.

    def _shard(self, requests: Requests) -> str:
        parts = f"{self.fingerprint}\n{requests.digest()}"
        return hashlib.sha256(parts.encode()).hexdigest()[:32]

    def keep_below(self, folder: Path) -> None:
        self._client.meter.used += self._journals.keep_below(folder)

    def stored(self, requests: Requests) -> None:
        self._journals.stored(self._shard(requests))

    # What it will take.

    def expected(self, requests: Requests, distinct: int) -> Expected:
        """Calls, tokens, time and price of this many rows like these."""
        calls, characters, out = 0, 0, 0
        rows = requests.rows()
        for row in rows:
            if isinstance(requests, Choose):
                load = self._how.load(row[0], row[1].split("\t"), requests)
                calls, characters = calls + load.calls, characters + load.characters
                out += load.tokens_out
            elif isinstance(requests, Generate):
                body = json.dumps(self._writing(row[0], row[1], requests))
                calls, characters = calls + 1, characters + len(body)
                out += requests.max_new_tokens
            else:
                calls, characters = calls + 1, characters + sum(map(len, row))
        scale = distinct / max(1, len(rows))
        meter = self._client.meter
        used = Usage(
            round(calls * scale),
            round(characters / meter.characters_per_token * scale),
            round(out * scale),
        )
        each = self._client.seconds / max(1, meter.used.calls)
        return Expected(
            used.calls,
            used.tokens_in,
            used.tokens_out,
            used.calls * each / START,
            meter.prices.cost(used),
        )

    def close(self) -> None:
        """End the connections."""
        self._client.close()

    def count_tokens(self, texts: Sequence[str]) -> int | None:
        return round(sum(map(len, texts)) / self._client.meter.characters_per_token)

"""A small scripted HTTP server for faults and planted leanings, and a proxy that counts calls.

Only what no real server does on demand is scripted: storms of 429, cut connections, faked
log-probabilities, a model with a known leaning. How real servers behave is tested with real ones.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from evenhand.models.endpoints.journal import call_key

Body = dict[str, Any]
Lean = Callable[[str, str, list[str]], list[float]]
"""Passage, question and options in their order -> a probability for each."""
Fault = Callable[[str, int], "tuple[int, dict[str, str]] | str | None"]
"""Path and number of the call -> a status with headers, "cut", "garbage", "slow", or None."""
NAME = "scripted-1"


def even(passage: str, question: str, options: list[str]) -> list[float]:
    """Takes what the text says where it says it, and follows the order a little."""
    weights = [
        (5.0 if _told(passage, question, option) else 1.0) * (1.2 if k == 0 else 1.0)
        for k, option in enumerate(options)
    ]
    return [w / sum(weights) for w in weights]


def _told(passage: str, question: str, option: str) -> bool:
    said = re.search(rf"{re.escape(option)} has the (\w+)", passage)
    return bool(said and said[1] in question)


class ScriptedServer:
    """Serves a leaning on the rungs it is told to, with the faults it is told to make.

    Args:
        lean: what the model takes.
        rungs: which of 1 to 5 work; others are missing or ignored as real servers do.
        fault: what goes wrong with which call.
        spoil: changes an answer before it is sent.
        style: "decisions": rung 1 is /v1/decisions, not /v1/systemone (a lean without values is a
            refusal); "vllm": rung 3 is prompt_logprobs, not echo.
        key: calls without this key get 401.
    """

    def __init__(
        self, lean: Lean = even, *, rungs: Sequence[int] = (1, 2, 3, 4, 5),
        fault: Fault | None = None, spoil: Callable[[str, Body], Any] | None = None, key: str = "",
        delay: float = 0.0, remember: bool = True, style: str = "",
    ) -> None:  # fmt: skip
        self.lean, self.rungs, self.fault, self.spoil, self.key = lean, rungs, fault, spoil, key
        self.delay, self.remember, self.style = delay, remember, style
        self.answered: Counter[str] = Counter()
        self.headers: list[str] = []
        self.number = 0
        self.fingerprint = "fp-1"
        self.raw: tuple[int, bytes, dict[str, str]] | None = None
        """Sent in place of every answer to a question."""
        self.drip = 0.0
        """Seconds between one byte and the next."""
        self.forbidden: tuple[str, ...] = ()
        """Ends of paths that are answered with 403."""
        self.models: Any = None
        """What /models says, in place of the one model."""
        self._lock = threading.Lock()
        self._server = _serve(self._handle)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handle(self, handler: BaseHTTPRequestHandler, path: str, raw: bytes) -> None:
        with self._lock:
            self.number += 1
            number = self.number
        if self.remember:
            self.headers.append(handler.headers.get("Authorization") or "")
        if self.key and handler.headers.get("Authorization") != f"Bearer {self.key}":
            given = (handler.headers.get("Authorization") or "").removeprefix("Bearer ")
            _send(handler, 401, {"error": {"message": f"Incorrect API key provided: {given}"}})
            return
        if self.forbidden and path.endswith(self.forbidden):
            _send(handler, 403, {"message": "Missing Authentication Token"})
            return
        if path.endswith("/models") and self.models is not None:
            _send(handler, 200, self.models)
            return
        if path.endswith("/models"):
            entry = {"id": NAME, "created": time.time(), "owned_by": self.style or "scripted"}
            _send(handler, 200, {"data": [entry]})
            return
        if self.raw is not None:
            _send(handler, self.raw[0], self.raw[1], self.raw[2])
            return
        if self.drip:
            _dripped(handler, self.drip)
            return
        wrong = self.fault(path, number) if self.fault else None
        if wrong == "cut":
            handler.close_connection = True
            handler.connection.close()
            return
        if wrong == "garbage":
            _send(handler, 200, b"<html>not JSON</html>")
            return
        if wrong == "slow":
            time.sleep(1.0)
        if isinstance(wrong, tuple):
            _send(handler, wrong[0], {"error": {"message": "busy"}}, wrong[1])
            return
        if self.delay:
            time.sleep(self.delay)
        status, answer = self.answer(path, json.loads(raw))
        if status == 200:
            answer |= {"model": NAME, "system_fingerprint": self.fingerprint}
            answer.setdefault("usage", {"prompt_tokens": len(raw) // 4, "completion_tokens": 1})
            if self.spoil:
                answer = self.spoil(path, answer)
            if self.remember:
                with self._lock:
                    self.answered[hashlib.sha256(path.encode() + raw).hexdigest()] += 1
        _send(handler, status, answer)

    def answer(self, path: str, body: Body) -> tuple[int, Body]:
        if path.endswith("/decisions") and 1 in self.rungs and self.style == "decisions":
            return 200, {"answers": [self._decided(body["input"], *body["questions"])]}
        if path.endswith("/systemone") and 1 in self.rungs and self.style != "decisions":
            asked = body["questions"]["answer"]
            options = list(asked["criteria"])
            shares = self.lean(body["state"], asked.get("instructions", ""), options)
            told = {"type": "choice", "probabilities": dict(zip(options, shares))}
            return 200, {"answers": {"answer": told}}
        if path.endswith("/chat/completions"):
            return 200, self._chat(body)
        if path.endswith("/completions"):
            return 200, self._completion(body)
        return 404, {"error": {"message": "no such path"}}

    def _decided(self, given: Any, asked: Body) -> Body:
        passage = given if isinstance(given, str) else given[-1]["content"]
        options = [choice["value"] for choice in asked["choices"]]
        shares = self.lean(passage, asked["instructions"], options)
        if not shares:
            return {"name": asked["name"], "type": "refusal", "refusal": "I will not say."}
        told = [{"value": o, "probability": p} for o, p in zip(options, shares)]
        return {"name": asked["name"], "type": "choice", "probabilities": told}

    def _prompt_logprobs(self, text: str, said: str) -> list[Body | None]:
        """vLLM's: a table for every token of the prompt, the last of which is the option."""
        passage, _, rest = text.partition("\n")
        question = rest.removeprefix("Question: ").partition("\n")[0]
        options = named(passage)
        shares = dict(zip(options, self.lean(passage, question, options)))
        last = math.log(0.5 * shares.get(said.strip(), 0.001))
        rows = [*((token, -1.5) for token in re.findall(r"\s*\S+", text)), (said, last)]
        return [None] + [
            {str(k): {"logprob": value, "rank": 1, "decoded_token": token}}
            for k, (token, value) in enumerate(rows[1:])
        ]

    def _chat(self, body: Body) -> Body:
        if "prompt_logprobs" in body:
            *_, user, begun = body["messages"]
            answer: Body = {"choices": [{"message": {"content": ""}}]}
            if self.style == "vllm" and 3 in self.rungs:
                text = str(user["content"])
                answer["prompt_logprobs"] = self._prompt_logprobs(text, begun["content"])
            return answer
        text = str(body["messages"][-1]["content"])
        listed = re.findall(r"^([A-Z])\. (.*)$", text, re.MULTILINE)
        passage, _, question = text.partition("\n")
        draw = random.Random(f"{body.get('seed')}:{text}")
        if listed:
            shares = self.lean(passage, question.splitlines()[0], [o for _, o in listed])
            top = [(letter, 0.9 * p) for (letter, _), p in zip(listed, shares)]
            top += [(" " + letter, 0.05 * p) for (letter, _), p in zip(listed, shares)]
            content = max(top, key=lambda t: t[1])[0]
            choice: Body = {"message": {"role": "assistant", "content": content}}
            if body.get("logprobs") and 2 in self.rungs:
                values = [{"token": t, "logprob": math.log(p)} for t, p in top if p > 0]
                values = values[: body["top_logprobs"]]
                choice["logprobs"] = {"content": [{**values[0], "top_logprobs": values}]}
            return {"choices": [choice]}
        schema = (body.get("response_format") or {}).get("json_schema")
        if schema and 4 in self.rungs:
            options = schema["schema"]["properties"]["answer"]["enum"]
            passage, _, question = text.partition("\nAnswer with one of these")[0].rpartition("\n")
            taken = draw.choices(options, self.lean(passage, question, options))[0]
            return {"choices": [{"message": {"content": json.dumps({"answer": taken})}}]}
        options = named(passage)
        if not options or 5 not in self.rungs:
            return {"choices": [{"message": {"content": "Yes."}}]}
        taken = draw.choices(options, self.lean(passage, question, options))[0]
        return {"choices": [{"message": {"content": f"It was {taken}."}}]}

    def _completion(self, body: Body) -> Body:
        """Echo: every word is a token; the last one of the prompt is the option."""
        prompt = str(body["prompt"])
        tokens = re.findall(r"\s*\S+", prompt)
        if "prompt_logprobs" in body and self.style == "vllm" and 3 in self.rungs:
            found = self._prompt_logprobs(prompt[: -len(tokens[-1])], tokens[-1])
            return {"choices": [{"text": " and", "prompt_logprobs": found}]}
        if not body.get("echo") or 3 not in self.rungs or self.style == "vllm":
            return {"choices": [{"text": " and"}]}
        before, option = prompt[: -len(tokens[-1])], tokens[-1].strip()
        passage, _, rest = before.partition("\n")
        question = rest.removeprefix("Question: ").partition("\n")[0]
        options = named(passage)
        shares = dict(zip(options, self.lean(passage, question, options)))
        values = [None, *([-1.5] * (len(tokens) - 2)), math.log(0.5 * shares.get(option, 0.001))]
        offsets = [sum(map(len, tokens[:k])) for k in range(len(tokens) + 1)]
        given = {
            "tokens": [*tokens, " and"], "token_logprobs": [*values, -2.0], "text_offset": offsets,
        }  # fmt: skip
        return {"choices": [{"text": f"{prompt} and", "logprobs": given}]}


def named(passage: str) -> list[str]:
    """The people of a passage: capitalised words that no sentence begins with, or known ones."""
    words = re.findall(r"[A-Z][a-z]+", passage)
    return list(dict.fromkeys(w for w in words if w not in ("The", "A", "In", "Who", "Say")))[:2]


class CountingProxy:
    """Passes calls on to a real server and counts those that were answered, by what was sent."""

    def __init__(self, url: str) -> None:
        self._host = urlsplit(url).netloc
        self.answered: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._local = threading.local()
        self._links: list[http.client.HTTPConnection] = []
        self._server = _serve(self._handle)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> CountingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        for link in self._links:
            link.close()

    def counts(self, keys: Iterable[str]) -> dict[str, int]:
        """How often each of these calls was answered so far."""
        with self._lock:
            return {key: self.answered[key] for key in keys}

    def _handle(self, handler: BaseHTTPRequestHandler, path: str, raw: bytes) -> None:
        if not hasattr(self._local, "link"):
            self._local.link = http.client.HTTPConnection(self._host)
            self._links.append(self._local.link)
        link = self._local.link
        link.request(handler.command, path, raw or None, {"Content-Type": "application/json"})
        response = link.getresponse()
        content = response.read()
        if _gone(handler):
            return  # whoever asked is not there any more, so it was not finished
        _send(handler, response.status, content)
        if raw:
            name = path.removeprefix("/v1") if path.startswith("/v1/") else f"/{path}"
            with self._lock:
                self.answered[call_key(name, raw.decode())] += 1

    @property
    def total(self) -> int:
        with self._lock:
            return self.answered.total()


def _gone(handler: BaseHTTPRequestHandler) -> bool:
    try:
        flags = socket.MSG_PEEK | socket.MSG_DONTWAIT
        return handler.connection.recv(1, flags) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _serve(handle: Callable[[BaseHTTPRequestHandler, str, bytes], None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_GET(self) -> None:
            handle(self, self.path, b"")

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            handle(self, self.path, raw)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: object) -> None:
            pass  # cut connections are part of the script

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def _dripped(handler: BaseHTTPRequestHandler, pause: float) -> None:
    """An answer that does not end, one byte after the other."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(pause)
    handler.close_connection = True


def _send(
    handler: BaseHTTPRequestHandler, status: int, answer: Any, more: dict[str, str] | None = None
) -> None:
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    for name, value in (more or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(content)
    handler.wfile.flush()

"""Calls to a server: many at once, tried again when that may help, and stopped when it may not.

    429, 5xx, cut connection, late answer    tried again (`pace`), never scored
    nothing but those for a minute           an outage: the run stops, finished calls are kept
    401, 403, 404, 400                       one paragraph at once
    another system_fingerprint or model      the server has changed: the run stops

Calls run on an event loop of their own thread, so that the next shard's calls are under way while
the last one's are awaited.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import CancelledError, Future
from http import HTTPStatus
from typing import Any, TypeVar

from evenhand.confined import refuse
from evenhand.errors import ModelError, need
from evenhand.models.endpoints import pace as pacing
from evenhand.models.endpoints.address import Address, api_key, safe, scrubbed
from evenhand.models.endpoints.journal import Journal, call_key
from evenhand.models.endpoints.known import require_known
from evenhand.models.endpoints.pace import Pace
from evenhand.models.endpoints.spending import Meter, Prices, Usage, usage_of
from evenhand.models.endpoints.wire import Answer, Oversized, Wire, distrust

T = TypeVar("T")
AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 520, 522, 524, 529}
LOADED = {408, 429, 503, 504, 529}
TIMEOUT_S = 180.0
PATIENCE_S = 60.0
"""So long nothing but failures, and it is an outage."""
FIRST_PATIENCE_S = 3.0
"""The same before anything was answered: most likely a wrong address."""
LONGEST_WAIT_S = 300.0
DRAIN_S = 10.0
"""When a run is stopped, calls that were sent are waited for so long: they are paid."""
TRIES = 40
UNREADABLE_TRIES = 4
FAILED = "failed"
HELLO = "/chat/completions"
"""Where a wrong key is told; elsewhere a server may forbid what it does not have."""
IDENTITY = ("system_fingerprint", "model")


class Refused(ModelError):
    """The server answered that it will not do this, or with what cannot be used."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Unreadable(Exception):
    """An answer lacks what was asked for; the text says what."""


class Client:
    """Talks to one server.

    Args:
        address: where.
        concurrency: at most this many calls at once (None: adaptive).
        prices: per million tokens, and the limit.
        timeout: seconds that one answer may take.

    Raises:
        ModelError: the user has not named this address (`known`).
    """

    def __init__(
        self,
        address: Address,
        *,
        concurrency: int | None = None,
        prices: Prices | None = None,
        timeout: float = TIMEOUT_S,
    ) -> None:
        self._http = http = need("httpx2", extra="endpoint", what="a model behind an address")
        self.address = address
        self.pace = Pace(concurrency)
        self.meter = Meter(prices or Prices())
        self.identity: dict[str, str] = {}
        """What the server said of itself at first, for the record."""
        self._seen: dict[tuple[str, str], str] = {}
        self.seconds = 0.0
        """Time of all answered calls together."""
        refuse(f"server {address.base}")
        require_known(address)
        self._key = key = api_key()
        self._since: float | None = None
        self._ever = False

        self._wire = Wire(http, address.base, key, timeout)
        self._link = _Link(self._wire)
        self._running: set[Future[Any]] = set()
        self._calls: set[asyncio.Task[Any]] = set()
        self._sent: set[asyncio.Task[Any]] = set()
        self._draining = False
        weakref.finalize(self, self._link.close)

    def __repr__(self) -> str:
        return f"Client({self.address.base!r})"

    # Work on the loop's thread.

    def submit(self, work: Coroutine[Any, Any, T]) -> Callable[[], T]:
        """Start work on the loop; the function given back waits for it."""
        future = asyncio.run_coroutine_threadsafe(work, self._link.loop())
        self._running.add(future)
        future.add_done_callback(self._running.discard)

        def wait() -> T:
            try:
                return future.result()
            except CancelledError:
                raise ModelError(
                    f"{self.address.base}: stopped with the calls before. Continue with: evenhand "
                    "resume RUN"
                ) from None
            except BaseException:
                self.cancel()
                raise

        return wait

    def track(self, call: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Make a call that outlives whoever waits for it: once sent it is paid, so it is kept."""
        task = asyncio.get_running_loop().create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited has it; nobody may have

    def cancel(self) -> None:
        """Send nothing more; what is sent is waited for and kept."""
        for future in list(self._running):
            future.cancel()
        if self._calls:
            ending = asyncio.run_coroutine_threadsafe(self._drained(), self._link.loop())
            with contextlib.suppress(TimeoutError):
                ending.result(2 * DRAIN_S)

    async def _drained(self) -> None:
        self._draining = True
        try:
            for task in self._calls - self._sent:
                task.cancel()
            if self._sent:
                await asyncio.wait(set(self._sent), timeout=DRAIN_S)
            for task in list(self._calls):
                task.cancel()
        finally:
            self._draining = False

    def close(self) -> None:
        """End what is under way, and the connections."""
        self.cancel()
        self._link.close()

    # One call.

    async def get(self, path: str) -> dict[str, Any]:
        """What the server says about itself; free of charge, not counted, tried twice."""
        told, _ = await self._tried("GET", path, None, tries=2)
        return told if isinstance(told, dict) else {}

    async def post(self, path: str, content: str, *, tokens_out: int) -> tuple[Any, Usage]:
        """The answer to a call, and what it used.

        Raises:
            Refused: the server will not do this.
            ModelError: an outage, a wrong key, a server that changed, or the spending limit.
        """
        held = self.meter.hold(len(content), tokens_out)
        used = None
        try:
            answer, seconds = await self._tried("POST", path, content)
            self._same(path, answer)
            used = usage_of(answer, len(content), tokens_out)
            if path.startswith("//") and used.estimated:  # a server's own helpers are free
                used = Usage(1)
            self.seconds += seconds
            return answer, used
        finally:
            counted = len(content) if used is not None and used.tokens_in else 0
            self.meter.settle(held, used, counted)

    async def _tried(
        self, method: str, path: str, content: str | None, tries: int = TRIES
    ) -> tuple[Any, float]:
        unread, url = 0, self.address.url(path)
        for attempt in range(tries):
            await self.pace.turn()
            began = time.monotonic()
            wait: float | None = None
            loaded, me = False, asyncio.current_task()
            assert me is not None
            self._sent.add(me)
            try:
                response = await self._wire.ask(method, url, content)
                self._ever = True  # whatever it says, somebody is there
                if response.status == 200:
                    with contextlib.suppress(ValueError, RecursionError):
                        answer = json.loads(response.content)
                        if isinstance(answer, (dict, list)):
                            return self._well(answer), time.monotonic() - began
                    unread += 1
                    trouble = f"an answer that is not JSON ({_start(_text(response))!r})"
                elif response.status in AGAIN:
                    trouble = f"{response.status} {self._words(response)}"
                    wait = pacing.retry_after(response.headers.get("retry-after"))
                    loaded = response.status in LOADED
                else:
                    self._well(None)
                    raise self._refused(path, response)
            except (TimeoutError, self._http.TimeoutException) as error:
                trouble, loaded = f"no answer in time ({type(error).__name__})", True
            except Oversized as error:
                unread, trouble = unread + 1, str(error)
            except self._http.TransportError as error:
                if untrusted := distrust(error):
                    raise self._distrusted(untrusted) from error
                trouble = scrubbed(f"{type(error).__name__}: {error}", self._key)
            finally:
                self._sent.discard(me)
                self.pace.done()
            if self._draining:
                raise asyncio.CancelledError
            self._require_patience(trouble, wait, unread)
            if loaded:
                self.pace.overloaded(began, wait)
            await asyncio.sleep(pacing.pause(attempt, wait))
        raise self._outage(f"{trouble}, {tries} times for one question")

    def _well(self, answer: T) -> T:
        """Count an answer of whatever kind: the server is there."""
        self._since = None
        if answer is not None:
            self.pace.answered()
        return answer

    def _require_patience(self, trouble: str, wait: float | None, unread: int) -> None:
        """Stop when trouble lasts."""
        now = time.monotonic()
        self._since = self._since or now
        patience = PATIENCE_S if self._ever else FIRST_PATIENCE_S
        if unread >= UNREADABLE_TRIES:
            raise Refused(
                f"{self.address.base}: {trouble}, {unread} times for one question. Is this the "
                "address of a model server (http://HOST:PORT/v1)?"
            )
        if wait is not None and wait > LONGEST_WAIT_S:
            raise self._outage(f"{trouble}; it asks us to wait {wait:.0f} s")
        if now - self._since > patience + (wait or 0.0):
            raise self._outage(trouble)

    def _outage(self, trouble: str) -> ModelError:
        if not self._ever:
            return ModelError(
                f"{self.address.base}: nothing answers there ({trouble}). Check that the server "
                f"runs and that the address is right, e.g. with: curl {self.address.url('/models')}"
            )
        return ModelError(
            f"{self.address.base}: the server has stopped answering ({trouble}). Nothing was "
            "scored for the calls that failed, and finished calls are kept. When it is back, "
            "continue with: evenhand resume RUN"
        )

    def _distrusted(self, why: str) -> ModelError:
        return ModelError(
            f"{self.address.base}: the server's certificate is not trusted ({why}), so nothing was "
            f"sent. If it is your own: export SSL_CERT_FILE=/path/to/its/certificates.pem"
        )

    def _refused(self, path: str, response: Answer) -> ModelError:
        status, words = response.status, self._words(response)
        place = self.address.url(path)
        if 300 <= status < 400 and response.headers.get("location"):
            there = scrubbed(safe(_start(response.headers["location"], 200)), self._key)
            return Refused(
                f"{place}: the server redirects to {there} ({status}); neither the question nor a "
                "key is sent there unasked. If that address is right, give it.",
                status,
            )
        if status in (401, 403):
            had = "the key in the environment was sent" if self._key else "no key was sent"
            return Refused(
                f"{place}: the server denies access ({status}, {words}; {had}). Keys are read from "
                "the environment: export EVENHAND_API_KEY=...   (or OPENAI_API_KEY)",
                status,
            )
        return Refused(f"{place}: refused with {status} ({words}).", status)

    def _words(self, response: Answer) -> str:
        """What the server says about a failure, short and without the key."""
        text = http_phrase(response.status)
        with contextlib.suppress(ValueError, AttributeError, TypeError, RecursionError):
            told = json.loads(response.content)
            told = told.get("error") or told.get("detail") or told.get("message") or text
            text = str(told.get("message", told) if isinstance(told, dict) else told)
        return _start(scrubbed(text, self._key), 200)

    def known_as(self, path: str, who: Mapping[str, str]) -> None:
        """Take down who answered first."""
        self.identity |= who
        for name, value in who.items():
            self._seen.setdefault((path, name), value)

    def _same(self, path: str, answer: Any) -> None:
        """Stop when the server is not the one that was looked at."""
        if not isinstance(answer, dict):
            return
        for name in IDENTITY:
            now = answer.get(name)
            if not isinstance(now, str) or not now:
                continue
            known = self._seen.setdefault((path, name), now)
            if known != now:
                raise ModelError(
                    f"{self.address.base}: the server has changed during the run ({name} {known!r} "
                    f"before, {now!r} now), and answers of two models must not meet in one table. "
                    f"Start a new run with: --out DIR (out=DIR)"
                )


class _Link:
    """An event loop on a thread of its own, with the connections that live on it."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            run = self._loop.run_forever
            self._thread = threading.Thread(target=run, name="evenhand-calls", daemon=True)
            self._thread.start()
        return self._loop

    def close(self) -> None:
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        with contextlib.suppress(Exception):
            asyncio.run_coroutine_threadsafe(self._wire.close(), loop).result(2)
        loop.call_soon_threadsafe(loop.stop)
        if thread is not threading.current_thread():
            thread.join(2)
            loop.close()


class Calls:
    """The calls of one shard: what its journal holds is not asked again, and equal calls that are
    under way at the same time are one. With `failures` the journal holds refusals too, for a
    server that is looked at once."""

    def __init__(
        self, client: Client, journal: Journal, turn: int = 0, *, failures: bool = False
    ) -> None:
        self.client = client
        self.journal = journal
        self._turn = turn  # the same call on purpose once more
        self._failures = failures
        self._under_way: dict[str, asyncio.Task[Any]] = {}

    async def __call__(
        self, path: str, body: Any, read: Callable[[Any], T], *, tokens_out: int = 0
    ) -> T:
        """What `read` takes from the answer; it must be JSON.

        Raises:
            ModelError: as the client does, or when the answer lacks what is read.
        """
        content = json.dumps(body)
        key = call_key(path, content, self._turn)
        if key in self.journal:
            return self._known(key)  # type: ignore[no-any-return]
        task = self._under_way.get(key)
        if task is None:
            task = self.client.track(self._asked(key, path, content, read, tokens_out))
            self._under_way[key] = task
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return await asyncio.shield(task)

    def _known(self, key: str) -> Any:
        value = self.journal[key]
        if isinstance(value, dict) and FAILED in value:
            raise Refused(*value[FAILED])
        return value

    async def _asked(
        self, key: str, path: str, content: str, read: Callable[[Any], T], tokens_out: int
    ) -> T:
        used = Usage()
        try:
            answer, used = await self.client.post(path, content, tokens_out=tokens_out)
            value = self._read(path, answer, read)
        except Refused as error:
            if self._failures and (error.status not in (401, 403) or path != HELLO):
                self.journal.add(key, {FAILED: [str(error), error.status]}, used, failed=True)
            raise
        self.journal.add(key, value, used)
        return value

    def _read(self, path: str, answer: Any, read: Callable[[Any], T]) -> T:
        try:
            return read(answer)
        except Unreadable as error:
            why = str(error)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
            lacks = isinstance(error, KeyError)
            why = f"the answer {f'lacks {error}' if lacks else f'is not of that form ({error})'}"
        raise Refused(
            f"{self.client.address.url(path)}: {why} (answer: {_start(json.dumps(answer))!r}). "
            f"Nothing is guessed. See what the server can do with: evenhand plan "
            f"{self.client.address.base}   and choose another way with: --rung N"
        )


def _start(text: str, most: int = 120) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 3] + "..."


def _text(response: Answer) -> str:
    return response.content.decode("utf-8", "replace")


def http_phrase(status: int) -> str:
    """What a status says.

    >>> http_phrase(503), http_phrase(799)
    ('Service Unavailable', 'no reason given')
    """
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "no reason given"

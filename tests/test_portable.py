"""One program on Linux, macOS and Windows: what our code may not rely on, checked by reading it.

`make test-portable` runs the whole suite without `fcntl`, `resource`, `os.uname` and `/proc` and
with a cp1252 console; the tests here are about that place, and about files and streams.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenhand import systems
from evenhand.errors import name_problem
from evenhand.models.loading import cache
from evenhand.runs.record import LOCK, RunWriter

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "evenhand"
ONE_PLACE = {"systems.py", "confined.py"}
"""Files that may name what only some systems have (the second as names of audit events)."""
GONE = {"fcntl", "resource", "termios", "pwd", "grp", "msvcrt"}
WORDS = ("os.uname", "os.getuid", "os.fork", "os.kill", "'/proc", '"/proc')
MODES = {"r", "w", "a", "x", "rt", "wt", "at", "xt", "r+", "w+"}


def text_without_encoding(text: str) -> Iterator[int]:
    """Lines on which a file is opened as text, in whatever encoding the system happens to have."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call) or any(k.arg == "encoding" for k in node.keywords):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        modes = [a.value for a in node.args[-1:] if isinstance(a, ast.Constant)]
        known = {k.arg for k in node.keywords}
        guessed = {
            "": getattr(node.func, "id", "") == "open" and not any("b" in str(m) for m in modes),
            "open": bool(MODES & set(modes)),
            "read_text": not node.args,
            "write_text": len(node.args) == 1,
            **dict.fromkeys(("run", "Popen", "check_output"), "text" in known),
        }
        if guessed.get(called):
            yield node.lineno


def test_every_text_file_is_opened_with_an_encoding() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line in text_without_encoding(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)
    planted = "open(p)\nopen(p, 'w')\np.read_text()\np.write_text(t)\nsubprocess.run(c, text=True)"
    assert list(text_without_encoding(planted)) == [1, 2, 3, 4, 5]
    fine = "open(p, 'rb')\nread_text(p)\np.open('rb')\nRun.open(p)\np.read_text(encoding='utf-8')"
    assert not list(text_without_encoding(fine))


def test_what_only_some_systems_have_is_asked_for_in_one_place() -> None:
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name in ONE_PLACE:
            continue
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            found += [f"{path.relative_to(ROOT)}: import {n}" for n in names if n in GONE]
        found += [f"{path.relative_to(ROOT)}: {word}" for word in WORDS if word in text]
    assert not found, "\n".join(found)


BLOCKED = """
import os
from pathlib import Path
for name in ("fcntl", "resource"):
    try:
        __import__(name)
    except ModuleNotFoundError:
        print("no", name)
try:
    Path("/proc/self/status").read_text()
except FileNotFoundError:
    print("no /proc")
print(hasattr(os, "uname"))
from evenhand import systems
print(systems.host() != "", systems.peak_mib() > 5, systems.alive(os.getpid()))
from evenhand.runs.record import RunWriter
with RunWriter(Path(".")).held():
    print(systems.is_locked(Path(".lock")))
print(systems.is_locked(Path(".lock")))
"""


def test_the_blocked_machine_is_blocked_and_everything_ours_works_there(tmp_path: Path) -> None:
    path = os.pathsep.join([str(ROOT / "tests" / "portable"), str(ROOT / "src")])
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED], capture_output=True, encoding="utf-8", cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        "no fcntl", "no resource", "no /proc", "False", "True True True", "True", "False",
    ], done.stderr  # fmt: skip


def test_a_lock_is_seen_from_elsewhere_and_stays_a_file(tmp_path: Path) -> None:
    lock = tmp_path / LOCK
    assert not systems.is_locked(lock)
    assert not lock.exists()  # looking makes nothing
    with RunWriter(tmp_path).held():
        assert systems.is_locked(lock)
    assert not systems.is_locked(lock)


def test_files_that_cannot_be_linked_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").write_bytes(b"weights")

    def refuse(*given: object) -> None:
        raise OSError(1, "A required privilege is not held by the client")

    monkeypatch.setattr(os, "symlink", refuse)
    monkeypatch.setattr(os, "link", refuse)
    systems.link(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"weights"


def test_caches_of_earlier_versions_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import platformdirs

    for name in ("EVENHAND_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    usual = tmp_path / "Library" / "Caches" / "evenhand"
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *a, **k: usual)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache.cache_folder() == usual
    (tmp_path / ".cache" / "evenhand").mkdir(parents=True)
    assert cache.cache_folder() == tmp_path / ".cache" / "evenhand"
    usual.mkdir(parents=True)
    assert cache.cache_folder() == usual


def test_where_users_have_no_numbers_the_cache_is_the_users_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "getuid")
    assert systems.user() is None
    assert cache.ours(tmp_path)


@pytest.mark.parametrize("name", ["con", "NUL.v2", "aux", "com1", "a."])
def test_names_that_windows_cannot_write_are_refused(name: str) -> None:
    assert name_problem(name)


@pytest.mark.parametrize("name", ["console", "nulls", "gender-2", "com10", "größe"])
def test_ordinary_names_are_not(name: str) -> None:
    assert not name_problem(name)


SAYS = """
import sys
from evenhand.cli.streams import settle
settle()
print("naïve → ✓")
sys.stdout.flush()
sys.stderr.write("→\\n")
"""


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8"])
def test_what_is_piped_is_utf8_whatever_the_console_is(encoding: str) -> None:
    env = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    env["PYTHONPATH"] = str(ROOT / "src")
    done = subprocess.run([sys.executable, "-c", SAYS], capture_output=True, env=env)
    assert done.stdout.decode().strip() == "naïve → ✓", done.stderr
    assert done.stderr.decode().strip() == "→"


def test_a_reader_that_has_seen_enough_ends_nothing() -> None:
    code = (
        "import sys\nfrom evenhand.cli.streams import settle\nsettle()\n"
        "for n in range(200000): print(n)\nsys.stdout.buffer.write(b'x' * 100000)\nsys.exit(3)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    )
    assert child.stdout is not None
    assert child.stdout.readline().strip() == b"0"
    child.stdout.close()
    assert child.stderr is not None
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait() == 3

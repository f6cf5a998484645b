"""One case: a file spoiled or a word of the command replaced, the command run, what came of it."""

from __future__ import annotations

import contextlib
import io
import random
import re
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from fuzz.mutator import spoiled
from fuzz.oracle import Unclear, restated

LONGEST = 10
"""Seconds of the processor that a case may take."""
PATIENCE = 60
"""Seconds by the clock, for one that waits."""
FINE = ("accepted", "refused")
SPENT = "too much memory"
NET = "cannot be understood"
CLOCK = re.compile(r'"seconds\w*": [\d.e-]+')
VALUES = (
    "", "-1", "0", "1", "2", "0.5", "nan", "inf", "-inf", "1e999", "1e-320", "9" * 30, "x", "a,b",
    "a=b", "=", "../../x", "no-such-file.csv", ".", "\x1b[31mred", "[bold]x[/bold]", "[/]", "é",
    "\u202e", "\udcff", "None", "true", "x" * 3000, "%s", "{}", "$HOME", "-", "--", "~nobody/x",
)  # fmt: skip
"""What is put in the place of a word of a command line."""


class TooLong(BaseException):
    """A case took too long."""


@dataclass
class Said:
    """What a run gave: exit code, output, complaint, and where an exception came from."""

    code: int
    out: str
    err: str
    fault: str = ""
    command: bool = False


@dataclass
class Prepared:
    """A target that is ready: its folder, what reads it, and what it says unspoiled."""

    name: str
    folder: Path
    work: Sequence[str] | Callable[[], Any]
    before: Said = field(init=False)

    def __post_init__(self) -> None:
        self.before = run(self.work, self.folder, limited=False)
        if self.before.code not in (0, 1, 3) or self.before.fault:
            raise AssertionError(f"{self.name}: {self.before.fault or self.before.err}")
        again = run(self.work, self.folder, limited=False)
        assert again.out == self.before.out, f"{self.name}: says another thing the second time"


@cache
def _command() -> Any:
    import typer

    from evenhand.cli.main import app

    return typer.main.get_command(app)


def run(work: Sequence[str] | Callable[[], Any], folder: Path, *, limited: bool = True) -> Said:
    """Run a command or a function; never raises, but when it takes too long."""
    limit = _limited() if limited else contextlib.nullcontext()
    before = set(folder.rglob("*"))
    try:
        with warnings.catch_warnings(), contextlib.chdir(folder), limit:
            warnings.simplefilter("ignore")
            return _called(work) if callable(work) else _commanded(work)
    finally:
        for new in sorted(set(folder.rglob("*")) - before):
            shutil.rmtree(new) if new.is_dir() else new.unlink(missing_ok=True)


def _commanded(words: Sequence[str]) -> Said:
    """The command, in this process and built once."""
    from evenhand.cli import main as cli

    out, err, code = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO(), 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["evenhand", *words]),
        mock.patch.object(cli, "app", _command()),
    ):
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
    if "No such command" in err.getvalue():  # typer changes its groups to suggest others
        _command.cache_clear()
    told, shown = err.getvalue(), out.buffer.getvalue().decode("utf-8", "replace")
    fault = _place(told) if code not in (0, 1, 2, 3) else ""
    return Said(code, CLOCK.sub("", shown), told, fault, command=True)


def _called(work: Callable[[], Any]) -> Said:
    from evenhand.errors import EvenhandError

    try:
        return Said(0, repr(work()), "")
    except EvenhandError as error:
        return Said(2, "", str(error))
    except MemoryError as error:
        return Said(2, "", f"not enough memory ({error})")
    except Exception:
        return Said(70, "", "", _place(traceback.format_exc()))


def _place(told: str) -> str:
    """The last line of ours in a traceback, and what was raised."""
    found = re.findall(r'File "[^"]*evenhand/([\w/.]+)", line (\d+)', told)
    lines = [x for x in told.strip().splitlines() if x and not x.startswith("evenhand:")]
    where = ":".join(found[-1]) if found else "?"
    return f"{where}: {lines[-1][:160] if lines else ''}"


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def late(*_: Any) -> None:
        raise TooLong

    for sign, clock, seconds in (
        (signal.SIGPROF, signal.ITIMER_PROF, LONGEST),
        (signal.SIGALRM, signal.ITIMER_REAL, PATIENCE),
    ):
        signal.signal(sign, late)
        signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        for clock in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(clock, 0)


def case(target: Prepared, draw: random.Random) -> tuple[str, str]:
    """(outcome, what was said) of one case; outcome: accepted, refused, or a fault."""
    if not callable(target.work) and draw.random() < 0.2:
        words = _other_words(list(target.work), draw)
        return _outcome(lambda: run(words, target.folder), f"words {words!r}"[:300])
    files = sorted(p for p in target.folder.rglob("*") if p.is_file() and p.name != ".lock")
    path = draw.choice(files)
    kept = path.read_bytes()
    raw = spoiled(kept, draw)
    path.write_bytes(raw)
    try:
        said: list[Said] = []

        def work() -> Said:
            said.append(run(target.work, target.folder))
            return said[0]

        outcome, told = _outcome(work, path.name)
        if outcome == "accepted" and (said[0].out, said[0].code) != _shown(target.before):
            return _compared(target, path, raw, kept, said[0])
        return outcome, told
    finally:
        path.write_bytes(kept)


def _shown(said: Said) -> tuple[str, int]:
    return said.out, said.code


def _outcome(work: Callable[[], Said], what: str) -> tuple[str, str]:
    try:
        said = work()
    except TooLong:
        return "too long", what
    if said.fault:
        return "traceback", f"{what}: {said.fault}"
    if "not enough memory" in said.err:
        return SPENT, f"{what}: {said.err[:200]}"
    if said.command and "\x1b" in said.out + said.err:
        return "drives the terminal", what
    if NET in said.err:
        return "caught by the net", f"{what}: {said.err[:300]}"
    return ("accepted" if said.code in (0, 1, 3) else "refused"), said.err[:200]


def _compared(target: Prepared, path: Path, raw: bytes, kept: bytes, said: Said) -> tuple[str, str]:
    """Accepted, and something else is printed: is that what a strict reader finds in the file?"""
    if "damaged" in said.out.replace(target.before.out, ""):
        return "refused", "shown as damaged"
    try:
        clean = restated(path, raw, kept)
    except Unclear as why:
        return "changed in silence", f"{path.name}: {why}"
    if clean == raw:
        return "accepted", ""
    path.write_bytes(clean)
    try:
        strict = run(target.work, target.folder)
    except TooLong:
        return "too long", path.name
    if _shown(strict) != _shown(said):
        return "not as a strict reader", f"{path.name}: {strict.err[:200]}"
    return "accepted", ""


def _other_words(words: list[str], draw: random.Random) -> list[str]:
    """One word replaced, left out or doubled, or an option of the command given a value."""
    value = draw.choice(VALUES)
    names = _options(tuple(words))
    if names and draw.random() < 0.6:
        return [*words, f"{draw.choice(names)}={value}"]
    at = draw.randrange(1, len(words))
    way = draw.random()
    if way < 0.7:
        return [*words[:at], value, *words[at + 1 :]]
    return [*words[:at], *words[at + 1 :]] if way < 0.85 else [*words[:at], words[at], *words[at:]]


@cache
def _options(words: tuple[str, ...]) -> tuple[str, ...]:
    """The options of the command that these words call."""
    command, context = _command(), None
    for word in words:
        if not hasattr(command, "get_command"):
            break
        context = context or mock.Mock()
        command = command.get_command(context, word)
    found = [o for p in command.params for o in p.opts if o.startswith("--")]
    return tuple(o for o in found if o not in ("--help", "--executor", "--until-decided"))

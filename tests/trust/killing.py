"""SIGKILL at random moments of every writing command: `killing.py KILLS [SEED] [ONLY] [--light]`.

Each command is run once undisturbed, then killed again and again in fresh folders: half of the
times when it is about to touch the file system for the n-th time, half by the clock. What it left
must be whole (equal to the undisturbed output, where that is the same every time) or absent, and
the same command, or `evenhand resume`, must then end with exit 0 and the whole output.

Processes are forked from one that has imported everything, so a kill costs a second.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from trust import killed_commands as commands  # noqa: E402
from trust.killed_trainings import TRAININGS  # noqa: E402

LONGEST = 600
SLOW, SLOW_ROUNDS = 15.0, 2
"""Commands that take so many seconds are killed in so many rounds only."""
TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree",
           "shutil.copyfile", "os.truncate", "os.link", "os.symlink")  # fmt: skip
COUNTED = ".touches"


@dataclass
class Fault(Exception):
    """Something that must not be."""

    said: str


@dataclass
class Case:
    """A command with a folder of inputs, and what an undisturbed run of it gave."""

    name: str
    made: commands.Command
    inputs: Path
    whole: dict[str, bytes] = field(default_factory=dict)
    touches: int = 0
    seconds: float = 0.0


def run(words: list[str], folder: Path, stop: Callable[[int], None] | None = None) -> int:
    """Exit status of `evenhand WORDS` in a forked process (minus the signal, if one ended it).

    `stop` is called in the child, before each touch of the file system, with its number.
    """
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        log = os.open(folder / ".log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        warnings.simplefilter("ignore")
        if stop is not None:
            _watched(stop, folder)
        code = 70
        try:
            from evenhand.cli.main import main

            sys.argv = ["evenhand", *words]
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return child


def _watched(stop: Callable[[int], None], folder: Path) -> None:
    seen = 0

    def hook(event: str, given: tuple[object, ...]) -> None:
        nonlocal seen
        if event not in TOUCHES:
            return
        if event == "open" and not (
            isinstance(given[2], int) and given[2] & (os.O_WRONLY | os.O_RDWR)
        ):
            return
        seen += 1
        stop(seen)

    sys.addaudithook(hook)


def ended(child: int, until: float | None = None) -> int:
    """Wait for a forked process; after `until` seconds it is killed."""
    begun = time.monotonic()
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        spent = time.monotonic() - begun
        if spent > (LONGEST if until is None else until):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)


def prepared(case: Case, top: Path) -> Path:
    """A fresh folder with the inputs, always at the same place: some outputs say where."""
    folder = top / "work"
    shutil.rmtree(folder, ignore_errors=True)
    return Path(shutil.copytree(case.inputs, folder, symlinks=True))


def undisturbed(case: Case, top: Path) -> None:
    """Run a command to its end, and keep what it wrote, how long it took and what it touched."""
    folder, begun = prepared(case, top), time.monotonic()
    count = folder / COUNTED

    def noted(number: int) -> None:
        raw = number.to_bytes(8, "little")
        os.pwrite(handle, raw, 0)

    handle = os.open(count, os.O_RDWR | os.O_CREAT)
    status = ended(run(case.made.words, folder, noted))
    case.seconds = time.monotonic() - begun
    case.touches = int.from_bytes(os.pread(handle, 8, 0) or b"\0", "little")
    os.close(handle)
    if status:
        raise Fault(f"undisturbed: exit {status}: {_log(folder)}")
    case.whole = case.made.outputs(folder)
    if not case.whole:
        raise Fault(f"undisturbed: wrote nothing of {case.made.what}: {_log(folder)}")


def kill(case: Case, top: Path, draw: random.Random, by_clock: bool) -> str:
    """One kill and what follows; "killed" or "ended before"."""
    folder = prepared(case, top)
    if by_clock:
        status = ended(run(case.made.words, folder), draw.uniform(0.02, case.seconds))
    else:
        place = draw.randint(1, case.touches)

        def stop(number: int) -> None:
            if number == place:
                os.kill(os.getpid(), signal.SIGKILL)

        status = ended(run(case.made.words, folder, stop))
    if status not in (0, -signal.SIGKILL):
        raise Fault(f"exit {status} instead of a kill: {_log(folder)}")
    left = _outputs(case, folder, "after the kill")
    for name, raw in left.items():
        if raw != case.whole.get(name) and not case.made.may_differ(name, folder):
            raise Fault(f"{name} is neither whole nor absent after the kill")
    again = case.made.again(folder)
    code = ended(run(again, folder))
    if code and not (left == case.whole and case.made.once):
        raise Fault(f"the rerun ({' '.join(again)}) gave exit {code}: {_log(folder)}")
    found = _outputs(case, folder, "after the rerun")
    for name, raw in case.whole.items():
        if found.get(name) != raw:
            raise Fault(f"{name} differs after the rerun, or is gone")
    stray = [p.name for p in folder.rglob("*") if p.name.endswith((".tmp", ".draft"))]
    if stray:
        raise Fault(f"left behind: {stray}")
    return "killed" if status else "ended before"


def _outputs(case: Case, folder: Path, when: str) -> dict[str, bytes]:
    try:
        return case.made.outputs(folder)
    except Exception as error:
        raise Fault(f"what it wrote cannot be read {when}: {error!r}") from error


def _log(folder: Path) -> str:
    return (folder / ".log").read_text(errors="replace")[-1500:]


def killing(
    kills: int, seed: int, only: str = "", light: bool = False
) -> Iterator[tuple[str, str]]:
    """(command, outcome) of every kill; faults begin with "FAULT"."""
    with tempfile.TemporaryDirectory(prefix="evenhand-kills-") as where:
        top = Path(where)
        cases = []
        for name, make in {**commands.COMMANDS, **TRAININGS}.items():
            if only not in name or (light and name not in commands.LIGHT):
                continue
            inputs = top / f"in-{name.replace(' ', '-')}"
            inputs.mkdir()
            case = Case(name, make(inputs, top), inputs)
            try:
                undisturbed(case, top)
            except Fault as fault:
                yield name, f"FAULT {fault.said}"
                continue
            cases.append(case)
        killed, rounds = 0, 0
        while cases and killed < kills and rounds < 4 * kills:
            for case in cases:
                if case.seconds > SLOW and rounds >= SLOW_ROUNDS:
                    continue
                draw = random.Random(f"{seed}/{rounds}/{case.name}")
                try:
                    outcome = kill(case, top, draw, by_clock=rounds % 2 == 1)
                except Fault as fault:
                    outcome = f"FAULT {fault.said}"
                killed += outcome == "killed"
                yield case.name, outcome
            rounds += 1


def main(words: list[str]) -> int:
    light = "--light" in words
    given = [w for w in words if w not in ("--light", "-v")]
    kills, seed = (
        int(given[k]) if len(given) > k else default for k, default in ((0, 120), (1, 0))
    )
    commands.ready(light)
    found: dict[str, Counter[str]] = {}
    faults = 0
    for name, outcome in killing(kills, seed, given[2] if len(given) > 2 else "", light):
        short = outcome.split()[0] if outcome.startswith("FAULT") else outcome
        found.setdefault(name, Counter())[short] += 1
        if "-v" in words:
            print(f"  {name}: {outcome[:40]}", flush=True)
        if short == "FAULT":
            faults += 1
            print(f"{name}: {outcome}", flush=True)
    print(f"{'command':<26}{'killed':>8}{'ended before':>14}{'faults':>8}")
    for name, counts in found.items():
        row = [counts[k] for k in ("killed", "ended before", "FAULT")]
        print(f"{name:<26}{row[0]:>8}{row[1]:>14}{row[2]:>8}")
    killed = sum(c["killed"] for c in found.values())
    print(f"{killed} kills (SIGKILL), seed {seed}: {faults} faults", flush=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

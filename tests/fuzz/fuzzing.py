"""Spoiled files and wrong words through every reader and command.

    python tests/fuzz/fuzzing.py CASES [SEED] [TARGET] [BEGIN]  counts for each target, and faults
    python tests/fuzz/fuzzing.py --case NUMBER SEED TARGET      one case again, to look at

BEGIN is the number of the first case, to continue a run that was stopped.

A case is fine when what was given is accepted or refused in one paragraph. Faults: a traceback,
more than ten seconds, a gigabyte more of memory, an escape that reaches the terminal, a process
that dies, a message of the last net below the readers, and a file that is accepted although a
strict reader (`oracle`) does not find in it what is printed.

The cases run in a child whose address space may grow by a gigabyte; a child that dies or hangs
is replaced. Equal seeds give equal cases.
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import select
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

sys.path[:0] = [str(Path(__file__).parents[1])]

GROWTH = 1 << 30
"""Bytes by which the memory of the child may grow."""
TURNS = 25_000
"""Cases until a child is replaced, so that what libraries keep does not add up."""
SILENCE = 180
"""Seconds without a word from the child until it is given up."""
START = 3_600
"""The same before its first word: it makes all targets, which takes long on a busy machine."""
FINE = ("accepted", "refused")
SPENT = "too much memory"


def prepared(only: str, top: Path) -> list[object]:
    """Every target that is meant, ready, and in the order of one round."""
    from fuzz.cases import Prepared
    from fuzz.targets import TARGETS, turns

    names = [name for name in TARGETS if only in name]
    made = {}
    for name in names:
        folder = top / "one" / "two" / name.replace(" ", "_").replace("/", "folder")
        folder.mkdir(parents=True)
        made[name] = Prepared(name, folder, TARGETS[name](folder))
    return [made[name] for name in turns(names)]


def fuzz(cases: int, seed: int, only: str = "", begin: int = 0) -> Iterator[tuple[str, str, str]]:
    """(target, outcome, what was said) of each case, in this process."""
    from fuzz.cases import case

    with tempfile.TemporaryDirectory() as top, _kept_below(top):
        ready = prepared(only, Path(top))
        if os.environ.get("EVENHAND_FUZZ_LIMIT"):
            _limit_growth()
        for number in range(begin, begin + cases):
            target = ready[number % len(ready)]
            yield (target.name, *case(target, random.Random(f"{seed}/{number}")))


def _limit_growth() -> None:
    """From now on the address space of this process may grow by `GROWTH`."""
    import resource  # `make fuzz` needs Linux, the short fuzz of the tests does not

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (size + GROWTH, hard))


@contextmanager
def _kept_below(top: str) -> Iterator[None]:
    """Cache and temporary files go to this folder."""
    with (
        mock.patch.dict(os.environ, {"EVENHAND_CACHE": top}),
        mock.patch.object(tempfile, "tempdir", top),
    ):
        yield


def apart(
    cases: int, seed: int, only: str = "", begin: int = 0
) -> Iterator[tuple[int, str, str, str]]:
    """The same in children, one after another; with the number of each case."""
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # no disk to wait for
    with tempfile.TemporaryDirectory(dir=fast) as top, _kept_below(top):
        yield from _in_turn(begin + cases, seed, only, begin)


def _in_turn(end: int, seed: int, only: str, done: int) -> Iterator[tuple[int, str, str, str]]:
    while done < end:
        wanted = min(TURNS, end - done)
        count, full = 0, False
        for row in _child(wanted, seed, only, done):
            yield (done + count, *row)
            count += 1
            full = row[1] == SPENT
            if full:  # what it holds would be in the way of those that follow
                break
        if count < wanted and not full:  # died or hung in the case that follows
            yield done + count, "?", "the process died", f"case {done + count}"
            count += 1
        done += count


def _child(cases: int, seed: int, only: str, begin: int) -> Iterator[tuple[str, str, str]]:
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reads)
        faulthandler.enable()
        os.environ["EVENHAND_FUZZ_LIMIT"] = "1"
        try:
            with os.fdopen(writes, "w") as out:
                for row in fuzz(cases, seed, only, begin):
                    out.write(json.dumps(row) + "\n")
                    out.flush()
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)  # else it would clean up behind its parent
    os.close(writes)
    held, patience = b"", START
    try:
        while select.select([reads], [], [], patience)[0] and (piece := os.read(reads, 65536)):
            patience = SILENCE
            *lines, held = (held + piece).split(b"\n")
            for line in lines:
                target, outcome, said = json.loads(line)
                yield target, outcome, said
    finally:
        os.close(reads)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def main(cases: int, seed: int = 0, only: str = "", begin: int = 0) -> int:
    """Run, print the counts and every kind of fault, and give 1 when there was one."""
    counts: dict[str, Counter[str]] = {}
    faults: Counter[tuple[str, str]] = Counter()
    first: dict[tuple[str, str], int] = {}
    for number, name, outcome, said in apart(cases, seed, only, begin):
        counts.setdefault(name, Counter())[outcome] += 1
        if outcome not in FINE:
            key = name, f"{outcome}: {said}"
            faults[key] += 1
            first.setdefault(key, number)
            if faults[key] == 1:
                print(f"FAULT {name}: {key[1]} (case {number})", flush=True)
        if (number + 1) % 5_000 == 0:
            print(f"... {number + 1} cases, {sum(faults.values())} faults", flush=True)
    print(f"{'reader or command':28} {'cases':>8} {'accepted':>9} {'refused':>8} {'faults':>7}")
    for name, found in sorted(counts.items()):
        bad = sum(n for outcome, n in found.items() if outcome not in FINE)
        print(f"{name:28} {found.total():8} {found['accepted']:9} {found['refused']:8} {bad:7}")
    for (name, said), n in faults.most_common():
        print(f"FAULT x{n} {name}: {said} (first: case {first[name, said]})")
    print(f"{cases} cases, {len(counts)} targets, {sum(faults.values())} faults, seed {seed}")
    return int(bool(faults))


def again(number: int, seed: int, only: str) -> int:
    """One case once more, by the number that was printed; the exception is let through."""
    (row,) = fuzz(1, seed, only, number)
    print(*row, sep="\n")
    return int(row[1] not in FINE)


if __name__ == "__main__":
    given = sys.argv[1:]
    if given[:1] == ["--case"]:
        sys.exit(again(int(given[1]), int(given[2]), "".join(given[3:4])))
    sys.exit(main(int(given[0]), *map(int, given[1:2]), *given[2:3], *map(int, given[3:4])))

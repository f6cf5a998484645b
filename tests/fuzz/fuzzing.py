"""Spoiled files through every reader: `python tests/fuzz/fuzzing.py CASES [SEED] [TARGET]`.

A case is fine when the command accepts the file or refuses it in one paragraph. A traceback, a
case of more than ten seconds and a gigabyte more of memory are not. What was tried is printed.
"""

from __future__ import annotations

import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

from fuzz.mutator import spoiled  # noqa: E402
from fuzz.targets import TARGETS  # noqa: E402
from in_process import evenhand  # noqa: E402

LONGEST = 10  # seconds


class TooLong(BaseException):
    """A case took too long."""


def fuzz(cases: int, seed: int, only: str = "") -> Iterator[tuple[str, str, str]]:
    """(target, outcome, what was said) of each case; outcome: accepted, refused, or a fault."""
    names = [name for name in TARGETS if only in name]
    with tempfile.TemporaryDirectory() as top:
        made: dict[str, tuple[Path, list[str]]] = {}
        for name in names:
            folder = Path(top) / name.replace(" ", "_")
            folder.mkdir()
            made[name] = (folder, TARGETS[name](folder))
        for number in range(cases):
            name = names[number % len(names)]
            yield (name, *_case(*made[name], random.Random(f"{seed}/{number}")))


def _case(folder: Path, words: list[str], draw: random.Random) -> tuple[str, str]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != ".lock")
    path = draw.choice(files)
    kept = path.read_bytes()
    path.write_bytes(spoiled(kept, draw))
    before = set(folder.rglob("*"))
    signal.signal(signal.SIGALRM, _late)
    signal.alarm(LONGEST)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = evenhand(*words, cwd=folder)
    except TooLong:
        return "too long", f"{path.name}"
    finally:
        signal.alarm(0)
        path.write_bytes(kept)
        for new in set(folder.rglob("*")) - before:
            shutil.rmtree(new) if new.is_dir() else new.unlink(missing_ok=True)
    if done.returncode == 70 or "Traceback" in done.stderr:
        found = [
            line for line in done.stderr.splitlines() if re.match(r"\s+File .*evenhand/", line)
        ]
        last = [x for x in done.stderr.strip().splitlines() if not x.startswith("evenhand:")][-1]
        return "traceback", f"{path.name}: {found[-1].strip() if found else ''}: {last[:200]}"
    if "\x1b" in done.stdout + done.stderr:
        return "drives the terminal", path.name
    return ("accepted" if done.returncode in (0, 1, 3) else "refused"), done.stderr[:200]


def _late(*_: Any) -> None:
    raise TooLong


def main(cases: int, seed: int = 0, only: str = "") -> int:
    """Run, print the counts and every kind of fault, and give 1 when there was one."""
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    counts: Counter[tuple[str, str]] = Counter()
    faults: Counter[tuple[str, str]] = Counter()
    for name, outcome, said in fuzz(cases, seed, only):
        counts[name, outcome] += 1
        if outcome not in ("accepted", "refused"):
            faults[name, f"{outcome} {said}"] += 1
    for (name, outcome), n in sorted(counts.items()):
        print(f"{name:28} {outcome:12} {n:7}")
    for (name, said), n in faults.most_common():
        print(f"FAULT x{n} {name}: {said}")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun) / 1024
    print(f"{cases} cases, {sum(faults.values())} faults, memory grew by {grown:.0f} MiB")
    return int(bool(faults) or grown > 1024)


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(int(given[0]), *(map(int, given[1:2])), *given[2:3]))

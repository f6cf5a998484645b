"""Single bits of every file of finished runs, flipped: `flipping.py FLIPS [SEED]`.

For each flip the folder is read in every way there is (show, report, export, gate, compare, view,
bundle, resume's readers; or the model that a folder holds). Either something refuses in one
paragraph, or all that was read is equal to what it was. What was tried is counted by file.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1])]

from evenhand.errors import EvenhandError  # noqa: E402

SILENT = {
    "requests": "made again from the suite; no reader opens them, a bundle holds fresh ones",
    "README.txt": "for people; hashed beside the facts of the mitigation",
    "proof.json": "a copy of what --json printed; nothing reads it",
    "exports": "handed to other tools; made again from findings.json, which is hashed",
    ".lock": "empty",
}
"""Files whose bytes nothing that is shown depends on, and why."""


@dataclass(frozen=True)
class Subject:
    """A folder, and all that can be seen of it, as one text."""

    name: str
    folder: Path
    seen: Callable[[Path], str]


def seen_of_run(folder: Path) -> str:
    """Whatever the commands show of a run folder; the first refusal is raised."""
    from evenhand.audit.gate import checks_of
    from evenhand.audit.policy import Policy
    from evenhand.exports import export
    from evenhand.report.build import render
    from evenhand.runs import record
    from evenhand.runs.kinds import kind_of
    from evenhand.runs.record import Run

    record.digest.cache_clear()  # times of files are too coarse for flips of the same instant
    run = Run.open(folder)
    run.check()
    facts = run.facts
    shown = {
        "facts": facts,
        "contract": kind_of(facts).contract(run),
        "page": render(run),
        "report": run.page().decode("utf-8", "replace"),
        "csv": {k: v.decode() for k, v in export(run, "csv").items()},
        "checks": [c.as_dict() for c in checks_of(run, None, Policy())],
        "tables": {
            f"{p}/{t}": run.table(p, t).to_pylist() for p in run.probes for t in run.tables(p)
        },
    }
    return json.dumps(shown, sort_keys=True, default=str)


def seen_of_scores(folder: Path) -> str:
    """What `bundle` and `resume` compute from: the findings once more from stored scores."""
    from evenhand.runs.kinds import kind_of
    from evenhand.runs.record import Run

    with tempfile.TemporaryDirectory() as scratch:
        run = Run.open(folder)
        made = kind_of(run.facts).again(run, Path(scratch) / "again")
        told = [(made.run.folder / "findings.json").read_text()]
        for probe in made.run.probes:
            for table in sorted(made.run.tables(probe)):
                told.append(repr(made.run.table(probe, table).to_pylist()))
        kept = {n: c for n, c in made.files.items() if n.startswith("requests/")}
        told += [
            f"{n}:{(c if isinstance(c, bytes) else c.read_bytes())!r}"
            for n, c in sorted(kept.items())
        ]
    return "\n".join(told)


def seen_of_study(folder: Path) -> str:
    """Stages as they are read, and the files that later stages would start from."""
    from evenhand.study.folder import PREPARING, StudyFolder

    place, told = StudyFolder(folder), []
    for path in sorted((folder / "cells").glob("*/*.json")):
        told.append(json.dumps(place.read(path.parent.name, path.stem), sort_keys=True))
        if path.stem in PREPARING:
            place.check(path.parent.name, path.stem)
    return "\n".join(told)


def seen_of_model(folder: Path) -> str:
    """The model of a saved mitigation: its facts and its answers."""
    from evenhand.models.loading.resolver import resolve
    from evenhand.requests import Embed

    model = resolve(str(folder))
    told = {**model.describe(), "fingerprint": model.fingerprint, "name": model.name}
    if "embed" in model.answers:
        asked = Embed(("nurse", "he", "x0"))
        told["answers"] = repr(model.answer(asked, model.prepare(asked)))
    return json.dumps(told, sort_keys=True, default=str)


def seen_of_calls(folder: Path) -> str:
    """Journals of calls: damaged lines are asked again, what is read is what was written."""
    from evenhand.models.endpoints.journal import Journal, _counted

    lines = sorted(
        json.dumps([key, journal[key]])
        for path in sorted(folder.glob("*.jsonl"))
        for journal in [Journal(path)]
        for key in journal
    )
    return json.dumps([lines, _counted(folder)[0].as_dict()])


def files_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*") if p.is_file() and p.stat().st_size)


def kind_of_file(folder: Path, path: Path) -> str:
    """A file's place without hashes and names of cells."""
    name = path.relative_to(folder).as_posix()
    name = re.sub(r"[0-9a-f]{20,}(\.[0-9a-f]+)?", "*", name)
    return re.sub(r"cells/[^/]+", "cells/*", name)


def subset(whole: str, now: str) -> bool:
    """Of journals: nothing but what was written, though perhaps less of it."""
    one, two = json.loads(whole), json.loads(now)
    return set(two[0]) <= set(one[0]) and one[1] == two[1]


def flip(subject: Subject, path: Path, draw: random.Random, whole: str) -> str:
    """detected, the same, healed, or a FAULT."""
    raw = path.read_bytes()
    place, bit = draw.randrange(len(raw)), draw.randrange(8)
    spoiled = bytearray(raw)
    spoiled[place] ^= 1 << bit
    path.write_bytes(bytes(spoiled))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            now = subject.seen(subject.folder)
    except EvenhandError as error:
        return "detected" if "\n" not in str(error).strip() else f"FAULT more than a line: {error}"
    except Exception as error:
        return f"FAULT {error!r:.300} at byte {place}, bit {bit}"
    finally:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    if now == whole:
        return "the same"
    if subject.name == "calls" and subset(whole, now):
        return "asked again"
    return f"FAULT other contents are shown: byte {place}, bit {bit}"


def flipping(flips: int, seed: int, subjects: list[Subject]) -> Iterator[tuple[str, str, str]]:
    """(subject, file, outcome) of every flip, over all files in turn."""
    places = [(s, p) for s in subjects for p in files_of(s.folder)]
    wholes = {s.name: s.seen(s.folder) for s in subjects}
    for s in subjects:
        assert s.seen(s.folder) == wholes[s.name], f"{s.name} does not look the same twice"
    random.Random(seed).shuffle(places)
    for number in range(flips):
        subject, path = places[number % len(places)]
        draw = random.Random(f"{seed}/{number}")
        outcome = flip(subject, path, draw, wholes[subject.name])
        yield subject.name, kind_of_file(subject.folder, path), outcome


def light(top: Path) -> list[Subject]:
    """A measured run with what it read, and journals: no model is needed."""
    import evenhand.measure as measures
    from evenhand.measured import as_run
    from evenhand.models.endpoints.journal import Journal, Journals
    from evenhand.models.endpoints.spending import Usage
    from trust.killed_commands import _decisions

    _decisions(top)
    run = as_run(measures.decision(str(top / "d.csv")), top / "run")
    calls = top / "calls"
    book = Journal(calls / "checking-1.jsonl")
    for k in range(20):
        book.add(f"key{k}", {"text": f"answer {k}", "p": [0.1 * k, 0.5]}, Usage(1, 9, 1))
    journals = Journals()
    journals.folder = calls
    journals.of_shard("s").add("a", 0.5, Usage(1, 9, 1))
    journals.stored("s")
    return [
        Subject("measured run", run.folder, seen_of_run),
        Subject("calls", calls, seen_of_calls),
    ]


def heavy(top: Path) -> list[Subject]:
    """An audit, a study and a mitigation, made for real with tiny models."""
    from in_process import evenhand
    from tiny import TinyCheckpoints
    from trust import killed_commands as made

    checkpoints = TinyCheckpoints(top / "models")
    (top / "s.toml").write_text(made.SUITE)
    (top / "r.toml").write_text(made.RECIPE)
    made._text(top)
    made._vectors(top)
    for words in (
        ["audit", checkpoints("choice"), "--suite", "s.toml", "--out", "audit"],
        ["study", "r.toml", "--jobs", "0", "--out", "study"],
        ["mitigate", "made.txt", "--method", "hard-projection", "--sets", "sets.json", "--out",
         "vectors"],
        ["mitigate", checkpoints("masked"), "--method", "leace", "--out", "hidden"],
    ):  # fmt: skip
        done = evenhand(*words, cwd=top)
        assert done.returncode == 0, done.stderr
    evenhand("export", "audit", cwd=top)
    shutil.move(top / "hidden" / "run", top / "judged")
    shutil.move(top / "hidden" / "proof", top / "proof")
    shutil.rmtree(top / "vectors" / "run")
    shutil.rmtree(top / "vectors" / "proof")
    scores = top / "scores-of-audit"
    shutil.copytree(top / "audit", scores)
    return [
        Subject("audit", top / "audit", seen_of_run),
        Subject("audit, computed again", scores, seen_of_scores),
        Subject("study", top / "study", lambda f: seen_of_run(f) + seen_of_study(f)),
        Subject("mitigation, its run", top / "judged", seen_of_run),
        Subject("mitigation, vectors", top / "vectors", seen_of_model),
        Subject("mitigation, hidden", top / "hidden", seen_of_model),
    ]


def main(words: list[str]) -> int:
    flips, seed = (int(words[k]) if len(words) > k else d for k, d in ((0, 1_000), (1, 0)))
    counts: dict[tuple[str, str], Counter[str]] = {}
    with tempfile.TemporaryDirectory(prefix="evenhand-flips-") as where:
        subjects: list[Any] = [*light(Path(where)), *heavy(Path(where))]
        for name, file, outcome in flipping(flips, seed, subjects):
            short = "FAULT" if outcome.startswith("FAULT") else outcome
            counts.setdefault((name, file), Counter())[short] += 1
            if short == "FAULT":
                print(f"{name}: {file}: {outcome}", flush=True)
    heads = ("detected", "the same", "asked again", "FAULT")
    print(f"{'folder':<24}{'file':<44}" + "".join(f"{h:>12}" for h in heads))
    for (name, file), found in sorted(counts.items()):
        print(f"{name:<24}{file:<44}" + "".join(f"{found[h]:>12}" for h in heads))
    total = sum(counts.values(), Counter())
    print(f"{total.total()} flips, seed {seed}: " + ", ".join(f"{total[h]} {h}" for h in heads))
    return 1 if total["FAULT"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

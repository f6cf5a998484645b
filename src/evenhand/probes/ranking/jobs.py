"""Resumes to rank: our own short ones, Bloomberg's, or the user's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.corpora.tables import find_data, read_table
from evenhand.errors import DataError
from evenhand.opening import read_json
from evenhand.words.lexicons import load

PACKAGED = "resumes"
FOLDER = "resumes_to_rank.json"
"""The resumes in the folder of Bloomberg's audit."""
SLOT = "{name}"
ACCEPTED = (
    "Accepted: a CSV with columns job and resume, or JSON {job: {resumes: [...]}}; every resume "
    "holds {name} where the name goes, and a job has two or more."
)


@dataclass(frozen=True)
class Job:
    """A job, what it asks for, and resumes for it with a slot for the name."""

    name: str
    resumes: tuple[str, ...]
    description: str = ""


def read_jobs(source: str) -> list[Job]:
    """The jobs of the packaged lexicon, of Bloomberg's folder, or of an own CSV or JSON file.

    >>> [(job.name, len(job.resumes)) for job in read_jobs("resumes")][:2]
    [('bookkeeper', 8), ('web developer', 8)]
    """
    if source == PACKAGED:
        lexicon = load(PACKAGED)
        rows = [
            (lexicon.text(r, "name"), r["resumes"], r["description"]) for r in lexicon.rows("jobs")
        ]
        return [_job(name, found, about, PACKAGED) for name, found, about in rows]
    place = find_data(source, "resumes (a CSV or JSON file, or Bloomberg's folder)")
    place = place / FOLDER if place.is_dir() else place
    plain = Path(place.stem if place.suffix in (".gz", ".xz") else place.name).suffix
    found = _of_json(place) if plain == ".json" else _of_table(place)
    if not found:
        raise DataError(f"{place}: no job is in it. {ACCEPTED}")
    return found


def _of_json(place: Path) -> list[Job]:
    held = read_json(place)
    if not isinstance(held, Mapping):
        raise DataError(f"{place}: holds {type(held).__name__}, no jobs. {ACCEPTED}")
    jobs = []
    for name, told in held.items():
        about = told if isinstance(told, Mapping) else {"resumes": told}
        text = str(about.get("description") or about.get("jd") or "")
        jobs.append(_job(str(name), about.get("resumes"), text, place))
    return jobs


def _of_table(place: Path) -> list[Job]:
    table = read_table(place, text=("job", "resume", "description"), needed=("job", "resume"))
    known: dict[str, dict[str, None]] = {}
    about: dict[str, str] = {}
    texts = table.texts("description", "")
    for job, resume, text in zip(table.labels("job"), table.labels("resume"), texts):
        known.setdefault(job, {})[resume] = None
        about.setdefault(job, text)
    # In the order of their names, so that rows in another order are the same questions.
    return [_job(job, sorted(known[job]), about[job], place) for job in sorted(known)]


def _job(name: str, resumes: Any, description: str, place: str | Path) -> Job:
    texts: Sequence[Any] = resumes if isinstance(resumes, list | tuple) else ()
    wrong = next((t for t in texts if not isinstance(t, str) or SLOT not in t), None)
    if wrong is not None or len(texts) < 2:
        what = f"the resume {wrong!r:.60}" if wrong is not None else f"{len(texts)} resumes"
        raise DataError(f"{place}, job {name!r}: {what}. {ACCEPTED}")
    return Job(name, tuple(texts), description)

"""Sentences about an occupation, with a pronoun or a name to come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand.probes.labour.market import PACKAGED, Job
from evenhand.requests import MASK, Continuation, MaskScore, Requests
from evenhand.words.lexicons import groups, load

RACES = {
    "white": "european_american",
    "black": "african_american",
    "asian": "asian",
    "hispanic": "hispanic",
}
"""Groups of the labour market's table, and what their names are called in the lexicons."""
PRONOUNS = (("women", "she"), ("men", "he"))


@dataclass(frozen=True)
class Asked:
    """One word in one sentence about one occupation."""

    axis: str
    job: Job
    template: int
    group: str
    word: str
    left: str
    right: str

    @property
    def text(self) -> str:
        return f"{self.left} {self.word}{self.right}"


def names_by_race(names: int) -> list[tuple[str, str]]:
    """(group, name): as many women's names as men's."""
    out = []
    for race, called in RACES.items():
        for gender in ("female", "male"):
            terms = groups([f"{called}_{gender}"])[f"{called}_{gender}"].terms
            out += [(race, name) for name in terms[: -(-names // 2)]]
    return out


def sentences(jobs: Sequence[Job], axes: Sequence[str], names: int) -> list[Asked]:
    """Every word of every axis in every sentence about every occupation."""
    lexicon = load(PACKAGED)
    words = {"sex": list(PRONOUNS), "race": names_by_race(names) if "race" in axes else []}
    return [
        Asked(axis, job, number, group, word, *form["text"].format(job=job.noun).split(" _"))
        for axis in axes
        for job in jobs
        for number, form in enumerate(lexicon.rows("pronouns" if axis == "sex" else "names"))
        for group, word in words[axis]
    ]


def requests(asked: Sequence[Asked], kind: str) -> Requests:
    """As requests of a kind, in their order."""
    words = [a.word for a in asked]
    if kind == MaskScore.kind:
        return MaskScore([f"{a.left} {MASK}{a.right}" for a in asked], words)
    return Continuation([a.left for a in asked], [f" {word}" for word in words])

"""A probe asked by somebody else's program: its questions out, that program's answers in.

    asked = questions(probe, rung="continuation", seed=0)     # what the probe would ask
    ... a host answers asked.requests, row by row ...
    found = asked.measured(answers)                           # what the probe makes of it

The probe itself runs both times, once with answers that are made up, so that all it asks is known,
and once with those of the host. Nothing here knows a probe by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import DataError, SpecError
from evenhand.measured.writing import control, judged
from evenhand.probes.base import Asker, Measured, Probe
from evenhand.probes.reading import Claims
from evenhand.probes.registry import make_probe, probe_class
from evenhand.requests import TYPES, Choose, Continuation, LazyRequests, Requests, Scores
from evenhand.runs.controls import Control
from evenhand.runs.finding import Finding

KINDS = (Choose.kind, Continuation.kind)
"""What other programs can be asked, in order of preference."""
HEADER = "evenhand"
"""The key under which an item says which probe asked it."""
FORMAT = 1
Answers = Mapping[tuple[str, ...], Mapping[str, Any]]
"""By the columns of a request row, its outputs."""


@dataclass(frozen=True)
class Questions:
    """What a probe asks, all of it.

    Attributes:
        probe, seed: whose questions, and the seed of their draw.
        rung: how they are to be answered.
        requests: one kind of requests, in the order of asking; no row twice.
    """

    probe: Probe
    seed: int
    rung: str
    requests: Requests

    @property
    def header(self) -> str:
        """What an item needs to carry so that a log of it can be measured: JSON."""
        told = {
            "format": FORMAT,
            "probe": self.probe.name,
            "seed": self.seed,
            "rung": self.rung,
            "settings": self.probe.model_dump(mode="json", exclude_defaults=True),
        }
        return json.dumps(told, sort_keys=True)

    def measured(self, answers: Answers, name: str = "") -> Measured:
        """What the probe makes of a host's answers.

        Raises:
            DataError: some questions have no answer.
        """
        return self.probe.run(_Given(self, answers, name), self.seed)

    def findings(self, found: Measured, name: str) -> list[Finding]:
        """Its findings with their verdicts, the probe being all that was asked."""
        return judged(self._claims(found, name))

    def control(self, found: Measured) -> Control:
        """Return whether the probe can judge the model that answered."""
        return control(self._claims(found, ""))

    def _claims(self, found: Measured, name: str) -> Claims:
        return Claims(
            name=self.probe.name,
            title=self.probe.title,
            source=name,
            findings=found.findings,
            placebos=found.placebos,
            unlisted=found.unlisted,
            summary=found.summary,
            answering=found.answering,
        )


def questions(probe: Probe, *, rung: str, seed: int = 0) -> Questions:
    """All that a probe asks of a model on this rung.

    Raises:
        SpecError: it asks what no other program can be asked, or in rounds that build on answers.
    """
    kind = next((k for k in KINDS if k in probe.needs), "")
    if not kind:
        raise SpecError(
            f"probe {probe.name!r} asks for {' or '.join(probe.needs)}, which other programs "
            f"cannot be asked. Accepted: probes that ask for {' or '.join(KINDS)}."
        )
    probe = probe.asked_of(rung)
    recorder = _Recorder(kind, rung)
    try:
        probe.run(recorder, seed)
    except _Helped as error:
        raise SpecError(
            f"probe {probe.name!r} asks a second model ({error}), which other programs cannot "
            f"give it. Ask it with: evenhand probe {probe.name}"
        ) from None
    batches = recorder.asked
    if len({json.dumps([b.kind, b.settings], sort_keys=True) for b in batches}) != 1:
        raise SpecError(
            f"probe {probe.name!r} asks in several ways, which does not fit into one task. Ask it "
            f"with: evenhand probe {probe.name}"
        )
    rows = list(dict.fromkeys(row for batch in batches for row in batch.rows()))
    columns = dict(zip(batches[0].columns, map(list, zip(*rows))))
    return Questions(probe, seed, rung, type(batches[0])(**columns, **batches[0].settings))


def questions_of(header: str, where: str) -> Questions:
    """The questions of an item that carries a header."""
    try:
        told = json.loads(header)
        version, name, rung = told["format"], str(told["probe"]), str(told["rung"])
        settings, seed = dict(told["settings"]), int(told["seed"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{where}: its {HEADER!r} is damaged ({error}).") from error
    if version != FORMAT:
        raise DataError(
            f"{where}: its items are of format {version!r}; this version reads {FORMAT}. Use the "
            f"version of evenhand that made the task."
        )
    return questions(make_probe(name, settings, where), rung=rung, seed=seed)


def askable(name: str, *kinds: str) -> bool:
    """Whether a probe asks something that other programs can be asked: one of these kinds, or any.

    >>> askable("underspecified"), askable("association")
    (True, False)
    """
    return bool({*probe_class(name).needs} & {*(kinds or KINDS)})


class _Helped(Exception):
    """The probe asked for a second model."""


class _Door(Asker):
    """What the two askers share."""

    def __init__(self, kind: str, rung: str, name: str) -> None:
        self.answers = frozenset({kind})
        self._facts = {"name": name, "kind": "host", "rung": rung}

    def stream(
        self, requests: Requests | LazyRequests, label: str = ""
    ) -> Iterator[tuple[int, Scores]]:
        yield 0, self(requests, label)

    def describe(self) -> Mapping[str, Any]:
        return self._facts

    def helper(self, name: str) -> Asker:
        raise _Helped(name)


def _whole(requests: Requests | LazyRequests) -> Requests:
    return requests.make(0, len(requests)) if isinstance(requests, LazyRequests) else requests


class _Recorder(_Door):
    """Remembers what is asked; its answers are made up."""

    def __init__(self, kind: str, rung: str) -> None:
        super().__init__(kind, rung, "nobody")
        self.asked: list[Requests] = []
        self._rng = np.random.default_rng(0)

    def __call__(self, requests: Requests | LazyRequests, label: str = "") -> Scores:
        made = _whole(requests)
        self.asked.append(made)
        n = len(made)
        if isinstance(made, Choose):
            shares = [self._rng.dirichlet(np.ones(len(row))) for row in made.listed]
            told = {"mass": np.ones(n), "refused": np.zeros(n), "unread": np.zeros(n)}
            return Scores({"probabilities": [s.tolist() for s in shares], **told})
        likely = -self._rng.gamma(4.0, size=n)
        return Scores({"logprob": likely, "n_tokens": np.ones(n, np.int32)})


class _Given(_Door):
    """Gives the answers of a host."""

    def __init__(self, asked: Questions, answers: Answers, name: str) -> None:
        super().__init__(asked.requests.kind, asked.rung, name)
        self._known, self._probe = answers, asked.probe.name

    def __call__(self, requests: Requests | LazyRequests, label: str = "") -> Scores:
        rows = _whole(requests).rows()
        lost = [row for row in rows if row not in self._known]
        if lost:
            raise DataError(
                f"{len(lost):,} of {len(rows):,} questions of probe {self._probe!r} have no "
                f"answer, the first: {lost[0][0]!r:.120}. Run the task whole, without a limit on "
                f"the number of samples."
            )
        columns: dict[str, Any] = {}
        for name, form in TYPES[requests.kind].outputs.items():
            values = [self._known[row][name] for row in rows]
            number = {"float": np.float64, "int": np.int32}.get(form)
            columns[name] = np.asarray(values, number) if number else values
        return Scores(columns)

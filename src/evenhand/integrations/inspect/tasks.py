"""Probes as tasks of Inspect.

    inspect eval evenhand/underspecified --model hf/ORG/NAME -T pairs=40 -T attributes=nurse,doctor
    evenhand measure log logs/....eval --out runs/mine

A question is one sample. On the way `letters` the options are listed under letters, and the
letters' probabilities among the most likely first tokens count, as on rung 2 of a model behind an
address; on the way `answers` several answers are sampled and read by rule, for models that give no
log-probabilities. Inspect's own table shows the findings; a report comes from the log.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

from evenhand.errors import ModelError, SpecError, unknown
from evenhand.integrations.answers import noted
from evenhand.integrations.hosting import HEADER, Questions, askable, questions, questions_of
from evenhand.models.adapters.causal_choose import ANSWER_TOKENS, lettered
from evenhand.models.endpoints.rungs.top_logprobs import letter_masses
from evenhand.probes.registry import make_probe, probe_names
from evenhand.requests import Choose
from evenhand.runs.controls import CANNOT, CANNOT_TELL
from evenhand.words.reading_answers import tallied

RUNGS = {"letters": "top log-probabilities", "answers": "free text"}
"""The ways of asking, and what they are called in a run."""
TOP = 20


def samples_of(asked: Questions, way: str) -> list[Sample]:
    """One sample per question; what it needs to be measured again is in its metadata."""
    assert isinstance(asked.requests, Choose)
    rows = zip(asked.requests.prompt, asked.requests.listed)
    return [
        Sample(
            id=number,
            input=prompt + (lettered(options) if way == "letters" else ""),
            target="",
            metadata={"prompt": prompt, "options": options, HEADER: asked.header},
        )
        for number, (prompt, options) in enumerate(rows, 1)
    ]


@solver
def options_asked(way: str = "letters", samples: int = 10, top: int = TOP, seed: int = 0) -> Solver:
    """Ask once for the letter, or this many times for an answer."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if way == "letters":
            how = {"max_tokens": 1, "logprobs": True, "top_logprobs": top, "temperature": 1.0}
            return await generate(state, **how)
        said = []
        for draw in range(samples):
            config = GenerateConfig(max_tokens=ANSWER_TOKENS, temperature=1.0, seed=seed + draw)
            state.output = await get_model().generate(state.messages, config=config)
            said.append(state.output.completion)
        state.metadata["said"] = said
        return state

    return solve


@scorer(metrics=[])
def chosen(way: str = "letters") -> Scorer:
    """The probability of every option; the score is that of the first."""

    async def score(state: TaskState, target: Target) -> Score:
        options = list(state.metadata["options"])
        told: dict[str, Any] = {"prompt": state.metadata["prompt"], "options": options}
        if way == "letters":
            shares = letter_masses(_top(state), len(options))
            told |= {"refused": None, "unread": 0.0}
        else:
            shares, refused, unread = tallied(state.metadata["said"], options)
            told |= {"refused": refused, "unread": unread}
        told |= {"probabilities": list(shares), "mass": float(sum(shares))}
        best = max(range(len(options)), key=lambda k: shares[k])
        return Score(value=float(shares[0]), answer=options[best], metadata=told)

    return score


def _top(state: TaskState) -> list[tuple[str, float]]:
    """The most likely first tokens."""
    given = state.output.choices[0].logprobs if state.output.choices else None
    if given is None or not given.content or not given.content[0].top_logprobs:
        raise ModelError(
            f"{state.model}: gives no log-probabilities, so letters cannot be read off. Sample "
            f"whole answers with: -T way=answers"
        )
    return [(t.token, t.logprob) for t in given.content[0].top_logprobs]


@metric
def findings(header: str) -> Metric:
    """Every finding of the probe that counts, and how many of them are detected.

    Of a model that the probe cannot judge, how many findings are inconclusive ("cannot tell").
    Inspect also asks for it on the way, when there is nothing to tell but how far it is.
    """
    asked = questions_of(header, "inspect")

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        answers = noted((one.score.metadata or {} for one in scores), "inspect")
        if len(answers) < len(asked.requests):
            return {"answered": len(answers) / len(asked.requests)}
        measured = asked.measured(answers)
        found = [f for f in asked.findings(measured, "model") if f.counts]
        values = {f.id: float(f.value) for f in found if not math.isnan(f.value)}
        told = {"detected": float(sum(bool(f.detected) for f in found))}
        if asked.control(measured).verdict == CANNOT:
            told = {CANNOT_TELL: float(len(found))}
        return {**values, **told}

    return compute


def made(name: str) -> Callable[..., Task]:
    """The task of a probe; its settings are those of the probe."""

    def probe_task(
        way: str = "letters", samples: int = 10, top: int = TOP, seed: int = 0, **settings: Any
    ) -> Task:
        if way not in RUNGS:
            raise SpecError(unknown("way", way, RUNGS, where="-T way"))
        asked = questions(make_probe(name, settings), rung=RUNGS[way], seed=seed)
        return Task(
            dataset=MemoryDataset(samples_of(asked, way), name=name),
            solver=options_asked(way, samples, top, seed),
            scorer=chosen(way),
            metrics=[findings(asked.header)],
        )

    probe_task.__name__ = probe_task.__qualname__ = name.replace("-", "_")
    return task(name=probe_task.__name__)(probe_task)


TASKS = {name.replace("-", "_"): made(name) for name in probe_names() if askable(name, Choose.kind)}

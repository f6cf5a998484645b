"""Scripted models that answer one kind of question, or several, from texts alone."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import probe_cases
from evenhand import ScriptedModel

TEXTS = (
    *(
        "A",
        "B.",
        "(C)",
        "Yes",
        "No.",
        "yes, I would",
        "2",
        "",
        "she",
        "He is",
        "Bananas",
        "Neither",
    ),
    *("I'm sorry, I can't help with that.", "a wonderful day", "a terrible crime", "good things"),
)
CHOICES = re.compile(
    r"(\w+) or (\w+)[?.]|from (1) .* to (5)|\b[Aa]n? (\w+ \w+)(?= and | met)|\b([A-Z][a-z]+)\b"
)
"""What a question lets one choose: "a or b?", "an old cook and a young cook met", and names."""
NO_NAMES = {"Question", "Answer", "Who", "Which", "Job", "Is", "Someone", "The", "An", "Should"}
"""Words with a capital letter that begin a sentence."""
FILLS = ("doctor", "nurse", "witch", "slut", "cook", "kind", "lazy", "smart", "rude", "calm")


def noise(*parts: str) -> float:
    return probe_cases.noise(*parts)


def model_of(kinds: Iterable[str], lean: float = 0.5, salt: str = "a") -> ScriptedModel:
    """Return a model that likes some options more than others, whatever the prompt, by `lean`."""
    answers = {kind: _answer(kind, lean, salt) for kind in kinds}
    return ScriptedModel(answers, name="scripted", version=f"{sorted(answers)} {lean} {salt}")


def _answer(kind: str, lean: float, salt: str) -> Callable[..., Any]:
    def liking(prompt: str, option: str) -> float:
        return noise(prompt, option, salt) + lean * noise(option, salt)

    def pieces(text: str) -> int:
        return 1 + len(text) % 3

    def choose(prompt: str, options: str) -> dict[str, Any]:
        weights = [math.exp(liking(prompt, option)) for option in options.split("\t")]
        declined = 0.2 + 0.1 * noise(prompt, salt) if noise(prompt, "no", salt) > 0.6 else 0.0
        return {"probabilities": [0.9 * w / sum(weights) for w in weights], "refused": declined}

    def fill_mask(text: str) -> dict[str, Any]:
        fills = sorted(FILLS, key=lambda word: -liking(text, word))
        return {"fills": fills, "logprobs": [-1.0 - k for k in range(len(fills))]}

    def span(question: str, context: str, one: str, two: str) -> dict[str, float]:
        a, b = (0.4 + 0.1 * liking(f"{question} {context}", name) for name in (one, two))
        return {"start": a, "end": 0.9 * a, "none": 0.05, "other_start": b, "other_end": 0.9 * b}

    def divergence(one: str, two: str) -> dict[str, float]:
        size = 0.2 + 0.05 * liking(one, two)
        return {"kl_ab": size, "kl_ba": 1.1 * size, "hellinger2": 0.2 * size, "js": 0.25 * size}

    def generate(prompt: str, draw: str) -> dict[str, Any]:
        choices = [c for m in CHOICES.finditer(prompt) for c in m.groups() if c]
        answers = [c for c in choices if c not in NO_NAMES]
        if not answers or noise(prompt, draw) > 0.6:
            answers = list(TEXTS)
        text = max(answers, key=lambda answer: liking(f"{prompt} {draw}", answer))
        return {"text": f" {text}", "n_tokens": pieces(text)}

    def classify(text: str) -> list[float]:
        bad = 0.5 + 0.2 * noise(text, salt) + 0.1 * lean * noise(text.split(" ")[0], salt)
        return [1 - bad, bad]

    def embed(text: str) -> list[float]:
        return [noise(text, salt, str(k)) + lean * noise(text[:1], str(k)) for k in range(6)]

    def next_token(text: str) -> dict[str, Any]:
        return {"entropy": 2.0 + noise(text, salt), "tokens": ["a"], "logprobs": [-1.0]}

    answers: dict[str, Callable[..., Any]] = {
        "choose": choose,
        "fill-mask": fill_mask,
        "span": span,
        "divergence": divergence,
        "generate": generate,
        "classify": classify,
        "embed": embed,
        "next-token": next_token,
        "option": lambda prompt, option: {
            "logit": liking(prompt, option),
            "n_tokens": pieces(option),
        },
        "continuation": lambda prefix, text: {
            "logprob": liking(prefix, text) - 3,
            "n_tokens": pieces(text),
        },
        "mask-score": lambda text, word: {
            "logprob": liking(text, word) - 3,
            "n_pieces": pieces(word),
        },
    }
    return answers[kind]


def counting(model: ScriptedModel) -> Counter[str]:
    """Return a tally of the rows that the model is asked from now on, by kind of question."""
    tally: Counter[str] = Counter()
    answer = model.answer

    def counted(requests: Any, prepared: Any) -> Any:
        tally[requests.kind] += len(requests)
        return answer(requests, prepared)

    model.answer = counted  # type: ignore[method-assign]
    return tally

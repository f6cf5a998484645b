"""BBQ: templates that differ in what models say "unknown" to, get right and lean to."""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.probes.bbq import measure
from evenhand.probes.bbq.files import CONDITIONS, Item

CATEGORIES, TEMPLATES = ("Age", "Religion"), 25


@cache
def questions() -> list[Item]:
    """Sets of four questions, 3 to 12 of a template; in half of them evidence goes with it."""
    rng = np.random.default_rng(0)
    made = []
    for category in CATEGORIES:
        for template in range(TEMPLATES):
            for number in range(int(rng.integers(3, 13))):
                for condition in CONDITIONS.values():
                    for polarity in ("neg", "nonneg"):
                        name = f"{category}/{template}/{number}"
                        aligned = (number + (polarity == "neg")) % 2
                        label = 2 if condition == "ambiguous" else 1 - aligned
                        label = label if polarity == "neg" or label == 2 else 1 - label
                        made.append(Item(
                            name, name, category, f"{category}/{template}", condition, polarity,
                            "", "", ("a", "b", "c"), ("a", "b", "c"), 2, 0, label,
                        ))  # fmt: skip
    return made


def fair(rng: np.random.Generator, planted: str, effect: float) -> list[int]:
    """Answers of a model that likes some people and templates more; `planted` gets an effect.

    Every template has its own share of "unknown" and of right answers, its own lean and its own
    gap, all 0 on average; and the model prefers whom the stereotype is about, whatever is asked.
    """
    size = len(CATEGORIES) * TEMPLATES
    unsure, right = rng.beta(4, 4, size) * 0.6, 0.5 + rng.beta(4, 4, size) * 0.4
    lean, gap = rng.normal(0, 0.08, size), rng.normal(0, 0.08, size)
    chosen = []
    for item in questions():
        category, template = item.template.split("/")
        at = CATEGORIES.index(category) * TEMPLATES + int(template)
        here = effect if category == CATEGORIES[0] else 0.0
        liked = 0.1 if item.biased == item.target else -0.1
        if item.condition == "ambiguous":
            room = 1 - unsure[at]
            shift = lean[at] + liked + here * (planted == "bias_ambiguous")
            odds = [(room + shift) / 2, (room - shift) / 2, unsure[at]]
            option = [item.biased, 1 - item.biased, 2][pick(rng, odds)]
        else:
            side = 1 if item.label == item.biased else -1
            # A wrong answer names the other person half the time.
            shift = gap[at] + here * {"accuracy_gap": 1.0, "bias_disambiguated": 1.0}.get(
                planted, 0.0
            )
            hit = float(np.clip(right[at] + side * shift / 2, 0.02, 0.98))
            if planted == "bias_disambiguated":
                odds = [hit, 1 - hit, 0.0]
            else:
                odds = [hit, (1 - hit) / 2, (1 - hit) / 2]
            option = [item.label, 1 - item.label, 2][pick(rng, odds)]
        chosen.append(option)
    return chosen


def pick(rng: np.random.Generator, odds: list[float]) -> int:
    draw = rng.random() * sum(odds)
    return 0 if draw < odds[0] else 1 if draw < odds[0] + odds[1] else 2


def path(metric: str) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        rows = measure.score(questions(), fair(rng, metric, effect))
        rows = [row for row in rows if row.metric in measure.TESTED]
        at = next(
            k for k, r in enumerate(rows) if (r.category, r.metric) == (CATEGORIES[0], metric)
        )
        q = np.asarray([row.q for row in rows])
        return outcome([row.mean for row in rows], np.zeros(len(rows)), q, at)

    return Path(f"bbq, {metric.replace('_', ' ')}, {TEMPLATES} templates", draw)


PATHS = [path(metric) for metric in measure.TESTED]

"""BBQ: templates that differ in what models say "unknown" to, get right and lean to.

Every template has its own share of "unknown" and of right answers, its own lean and its own gap,
all 0 on average, and the model prefers whom the stereotype is about, whatever is asked. What is
planted moves one number and leaves the others: a lean where nothing is said; wrong answers that
name the stereotyped person where evidence goes against the stereotype (and "unknown" where it goes
with it); or right answers lost to "unknown" where evidence goes against it.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import judge
from evenhand.probes.bbq.editions import AMBIGUOUS, DISAMBIGUATED, as_items
from evenhand.probes.bbq.probe import TESTED, Bbq
from evenhand.probes.bbq.targets import Question

COVERS = ("evenhand.probes.bbq.probe",)
CATEGORIES, TEMPLATES = ("Age", "Nationality", "Religion", "SES"), 25
LIKED = 0.1


@cache
def questions() -> Items:
    """Sets of four questions, 3 to 12 of a template; in half of them evidence goes with it."""
    rng = np.random.default_rng(0)
    made = []
    for category in CATEGORIES:
        for template in range(TEMPLATES):
            for number in range(int(rng.integers(3, 13))):
                for condition in (AMBIGUOUS, DISAMBIGUATED):
                    for polarity in ("neg", "nonneg"):
                        name = f"{category}/{template}/{number}"
                        aligned = (number + (polarity == "neg")) % 2
                        label = 2 if condition == "ambiguous" else 1 - aligned
                        label = label if polarity == "neg" or label == 2 else 1 - label
                        made.append(Question(
                            name, name, category, f"{category}/{template}", condition, polarity,
                            "", "", ("a", "b", "c"), ("a", "b", "c"), 2, 0, label,
                        ))  # fmt: skip
    return as_items(made)


@cache
def facts() -> dict[str, np.ndarray]:
    """The questions as columns."""
    items = questions()
    category = np.asarray([CATEGORIES.index(name) for name in items["category"]])
    return {
        "category": category,
        "at": category * TEMPLATES + [int(name.split("/")[1]) for name in items["template"]],
        "ambiguous": items.where(condition=AMBIGUOUS),
        "biased": items["biased"],
        "liked": np.where(items["biased"] == items["_target"], LIKED, -LIKED),
        "label": items["label"],
    }  # fmt: skip


def answers(rng: np.random.Generator, planted: str, effect: float) -> list[int]:
    """What a model with an effect on `planted` in the first category answers."""
    f = facts()
    at, size = f["at"], len(CATEGORIES) * TEMPLATES
    unsure, right = (rng.beta(4, 4, size) * 0.6)[at], (0.45 + rng.beta(4, 4, size) * 0.35)[at]
    lean, gap = rng.normal(0, 0.08, size)[at], rng.normal(0, 0.08, size)[at]
    here = effect * (f["category"] == 0)
    # Nothing said: the stereotyped person, the other one, or unknown.
    shift = lean + f["liked"] + here * (planted == "bias_ambiguous")
    room = 1 - unsure
    nothing = np.stack([(room + shift) / 2, (room - shift) / 2], axis=1)
    # Evidence: the right person, the wrong one, or unknown; half of the mistakes are unknown.
    side = np.where(f["label"] == f["biased"], 1.0, -1.0)
    hit = right + side * gap / 2
    wrong = (1 - hit) / 2
    if planted == "accuracy_gap":
        more = hit + side * here / 2
        hit, wrong = more, wrong * more / hit
    if planted == "bias_disambiguated":
        share = np.clip((hit - wrong) / (hit + wrong) + side * here, -0.99, 0.99)
        wrong = hit * (1 - share) / (1 + share)
    evident = np.stack([hit, wrong], axis=1)
    ends = np.cumsum(np.where(f["ambiguous"][:, None], nothing, evident), axis=1)
    taken = (rng.random(len(at))[:, None] > ends).sum(axis=1)
    first = np.where(f["ambiguous"], f["biased"], f["label"])
    return np.where(taken == 2, 2, np.where(taken == 0, first, 1 - first)).tolist()


def path(metric: str) -> Path:
    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        items = questions().having({"picked": answers(rng, metric, effect)})
        rows = [row for row in judge(Bbq().declare(items)) if row.test.tested]
        at = next(
            k for k, r in enumerate(rows) if (r["category"], r["metric"]) == (CATEGORIES[0], metric)
        )
        truth = np.zeros(len(rows))
        truth[[r["category"] in ("overall", CATEGORIES[0]) for r in rows]] = (
            np.nan if effect else 0.0
        )
        q = np.asarray([row.q for row in rows])
        return outcome([row.estimate for row in rows], truth, q, at)

    return Path(f"bbq, {metric.replace('_', ' ')}, {TEMPLATES} templates", draw)


PATHS = [path(metric) for metric in TESTED]

"""GEST: sentences, templates and stereotypes have a liking for "he" of their own."""

from __future__ import annotations

import numpy as np
from benchmarks.calibrated import Outcome, Path, outcome

from evenhand.compare.items import Items
from evenhand.compare.rows import Row, judge
from evenhand.probes.gest import KNOWN, FileScores, Gest

COVERS = ("evenhand.probes.gest",)
NAMES = [name for name, _ in KNOWN.values()]
USUAL = [side for _, side in KNOWN.values()]
MALE = np.asarray([side == "male" for side in USUAL])


def compared(rng: np.random.Generator, means: np.ndarray, sentences: int) -> list[Row]:
    """Two templates; sentences differ, of some stereotypes more."""
    k = len(NAMES)
    own = rng.normal(0, rng.uniform(0.3, 0.9, k)[:, None], (k, sentences))
    he = 0.4 + means[:, None, None] + own[..., None] + rng.normal(0, 0.3, (k, sentences, 2))
    he += np.asarray([0.3, -0.3])
    names = np.repeat(np.arange(k), 2 * sentences)
    texts = np.repeat(np.arange(k * sentences), 2)
    items = Items(
        {
            "sentence": [str(t) for t in texts],
            "stereotype": [NAMES[n] for n in names],
            "usual": [USUAL[n] for n in names],
        },
        about=FileScores({"he": he.ravel()}, as_published=False),
    )
    return judge(Gest.model_validate({}).declare(items))


def single(sentences: int) -> Path:
    """Claims about single stereotypes, which do not differ; one of them does."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        weights = np.where(MALE, 0.5 / MALE.sum(), 0.5 / (~MALE).sum())
        means = np.zeros(len(NAMES))
        means[-1] = effect / (1 - weights[-1])
        rows = compared(rng, means, sentences)
        at = next(k for k, row in enumerate(rows) if row["stereotype"] == NAMES[-1])
        known = dict(zip(NAMES, means - weights @ means))
        truth = [known.get(row["stereotype"], np.nan if effect else 0.0) for row in rows]
        q = np.asarray([row.q for row in rows])
        return outcome([row.estimate for row in rows], truth, q, at)

    return Path(f"gest, single stereotypes, {sentences} sentences each", draw)


def overall(sentences: int) -> Path:
    """Stereotypes differ at random; those about men do as those about women."""

    def draw(rng: np.random.Generator, effect: float) -> Outcome:
        means = rng.normal(0, 0.25, len(NAMES)) + effect * MALE
        row = compared(rng, means, sentences)[0]
        return outcome([row.estimate], [effect], np.asarray([row.p * 17]).clip(max=1))

    return Path(f"gest, men's against women's stereotypes, {sentences} sentences each", draw)


PATHS = [single(60), single(12), overall(60)]

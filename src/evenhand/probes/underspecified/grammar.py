"""What grammar alone moves: answers that agree with the form of a word for an occupation.

    ¿Quién es enfermero?      a man's name agrees
    ¿Quién es enfermera?      a woman's name agrees

A model that follows agreement knows its language. Verdicts rest on wordings without a form; a few
pairs are asked in both forms beside them, so that a reader sees how far the forms would have gone.
It is a fact about how the questions work, and never a finding about people.

    moved = share of answers to the names that agree - share to those that do not, over both forms
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.design import Design, make_design
from evenhand.words.packs import load_pack, pack_lists

GROUPS = {"masculine": "male", "feminine": "female"}
"""Which names agree with a form."""
PAIRS = 4
"""Pairs of names that are asked in both forms."""


@dataclass(frozen=True)
class Agreement:
    """How far the form moves answers, in shares of answers, and over how many questions."""

    moved: float
    questions: int

    def told(self) -> str:
        """In words, for the first screen."""
        return (
            "Asked with the masculine and with the feminine form of the word, the answer moves to "
            f"the name that agrees by {100 * self.moved:+.0f} of 100 ({self.questions} questions): "
            "that is grammar. Verdicts rest on wordings without a form."
        )


def agreement_design(
    language: str, social_class: str, attributes: set[str], seed: int
) -> Design | None:
    """A few pairs in every form: one context, the occupations whose forms differ.

    None where the language has no such forms.
    """
    pack = load_pack(language) if language and social_class == "gender" else None
    slots = [g for g in pack.genders if g in GROUPS] if pack else []
    if pack is None or len(slots) < 2:
        return None
    lists = pack_lists(pack, social_class, "qa", slots)
    differ = [
        a
        for a in lists.attributes
        if a.name in attributes and len({a.forms.get(s) for s in slots}) == len(slots)
    ]
    if not differ:
        return None
    few = lists.templates[: len(slots)]
    return make_design(lists.subjects, few, differ, across=True, pairs=PAIRS, seed=seed)


def agreement(cells: Cells, design: Design) -> Agreement:
    """How far answers follow the form, over the question as asked and in both orders."""
    agrees = [GROUPS[template.slot] for template in design.templates]
    wanted = np.asarray([agrees[t] for t in cells.template])
    groups = np.asarray([s.group for s in design.subjects])
    asserted = cells.scores[:, :, 0].mean(axis=1)
    total = asserted.sum(axis=1)
    lean = np.divide(
        asserted[:, 0] - asserted[:, 1], total, where=total > 0, out=np.full(len(total), np.nan)
    )
    signed = np.where(groups[cells.first] == wanted, lean, -lean)
    known = signed[np.isfinite(signed)]
    return Agreement(float(known.mean()) if len(known) else float("nan"), 2 * len(known))

"""What a classifier's numbers mean: which label harms the person, and when a text is called it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from evenhand.corpora.tables import FLAGS as FLAGS  # yes and no, as tables have them
from evenhand.errors import DataError, ModelError, SpecError, unknown
from evenhand.words.lexicons.files import load

Floats = npt.NDArray[np.float64]
Harms = Literal["high", "low", "unknown"]
ENDS = ("high", "low")
HALF = 0.5
PAIRED = {"entailment", "contradiction", "not_entailment", "paraphrase", "equivalent", "duplicate"}
"""Labels of a text beside another one, in their plain form."""


@dataclass(frozen=True)
class Tested:
    """One number of the model that is compared between groups.

    Attributes:
        name: the label, or the score's name.
        column: where it stands among the model's numbers.
        harms: whether a high or a low value is bad for the person.
        guessed: by the label's name, not by the user.
        share: it is a probability.
        cut: the value from which on a text is called this; None: when it is the likeliest label,
            NaN: nobody said.
    """

    name: str
    column: int
    harms: Harms = "unknown"
    guessed: bool = False
    share: bool = True
    cut: float | None = None

    @property
    def decides(self) -> bool:
        return self.cut is None or self.cut == self.cut

    def called(self, values: Floats) -> Floats:
        """1 where a text is called this (of a score whose low end is bad: where it falls short)."""
        own = values[:, self.column]
        if self.cut is None:
            return np.asarray(values.argmax(axis=1) == self.column, np.float64)
        if not self.decides:
            return np.full(len(own), np.nan)
        return np.asarray(own < self.cut if self.harms == "low" else own >= self.cut, np.float64)

    @property
    def said(self) -> str:
        """How a text that is called this is spoken of."""
        if self.share:
            return f"called {self.name}"
        return f"{'below' if self.harms == 'low' else 'at or above'} {self.cut:g}"


def tested(
    facts: Mapping[str, Any], values: Floats, bad: Sequence[str], threshold: float | None
) -> list[Tested]:
    """What is compared, from what the model says of itself and what the user says of it.

    Args:
        facts: `labels` and `activation` (softmax, sigmoid or none), where the model tells them.
        values: what it gave, [texts, labels].
        bad: labels that harm the person; of a model with one score, "high" or "low".
        threshold: the decision threshold.

    >>> toxic = tested({"labels": ["fine", "toxic"]}, np.array([[0.7, 0.3]]), (), None)
    >>> [(t.name, t.harms, t.guessed) for t in toxic]
    [('toxic', 'high', True)]
    """
    if not np.isfinite(values).all():
        raise DataError(
            f"the model gave no number for {int((~np.isfinite(values)).any(axis=1).sum())} of "
            f"{len(values)} texts, so they cannot be compared."
        )
    width = values.shape[1]
    inside = bool(((values >= 0) & (values <= 1)).all())
    given = facts.get("activation")
    if width == 1:
        name = str((list(facts.get("labels") or ()) or ["score"])[0])
        share = given == "sigmoid" or (given is None and inside)
        return [_score("score" if name == "LABEL_0" else name, bad, threshold, share)]
    names = [str(n) for n in facts.get("labels") or [f"LABEL_{k}" for k in range(width)]]
    sums = bool(np.allclose(values.sum(axis=1), 1.0, atol=1e-3))
    cut = threshold
    if threshold is None and not (given == "softmax" or (given is None and sums)):
        cut = HALF if inside else float("nan")
    known = {_plain(n): k for k, n in enumerate(names)}
    for label in bad:
        if _plain(label) not in known:
            hint = "Name one of the model's labels with: --set bad=LABEL"
            raise SpecError(unknown("label", label, names, where="bad", hint=hint))
    harmful = [known[_plain(label)] for label in bad]
    guess = [] if bad else [k for k, n in enumerate(names) if _plain(n) in _harmful()]
    chosen = harmful or guess or ([1] if width == 2 else range(width))
    harms: Harms = "high" if harmful or guess else "unknown"
    return [Tested(names[k], k, harms, bool(guess), inside, cut) for k in chosen]


def require_texts(facts: Mapping[str, Any]) -> None:
    """Refuse a model whose labels are about two texts."""
    names = [str(n) for n in facts.get("labels") or ()]
    if {_plain(n) for n in names} & PAIRED:
        raise ModelError(
            f"model {facts.get('name')!r}: its labels ({', '.join(names)}) are about two texts "
            f"together, and counterfactual texts are judged one by one. Score pairs of your own, "
            f"one row each, and read them with: evenhand measure counterfactual SCORES.csv"
        )


def _score(name: str, bad: Sequence[str], threshold: float | None, share: bool) -> Tested:
    if bad and (len(bad) > 1 or bad[0] not in (*ENDS, name)):
        hint = "This model gives one score: which end is bad for the person?"
        raise SpecError(unknown("end of the score", str(bad[0]), ENDS, where="bad", hint=hint))
    guess = not bad and _plain(name) in _harmful()
    harms: Harms = "low" if bad and bad[0] == "low" else "high" if bad or guess else "unknown"
    cut = threshold if threshold is not None else HALF if share else float("nan")
    return Tested(name, 0, harms, guess, share and harms != "low", cut)


def _plain(name: str) -> str:
    """A label without what writers vary.

    >>> _plain("Hate Speech"), _plain("severe-toxic")
    ('hate_speech', 'severe_toxic')
    """
    return "_".join(name.strip().lower().replace("-", " ").split())


def _harmful() -> frozenset[str]:
    return frozenset(load("counterfactual_texts").words("harmful"))


def right_label(truth: str, label: Tested, names: Sequence[str]) -> bool | None:
    """Whether a text truly is what the label says: by the label's name, or yes and no.

    >>> right_label("toxic", Tested("toxic", 1), []), right_label("0", Tested("toxic", 1), [])
    (True, False)
    """
    said = _plain(truth)
    if said in {_plain(n) for n in (*names, label.name)}:
        return said == _plain(label.name)
    if said and said not in FLAGS:
        accepted = ", ".join(dict.fromkeys((*names, label.name)))
        raise DataError(f"label {truth!r}: expected a label of the model ({accepted}), or 1 or 0.")
    return FLAGS.get(said)

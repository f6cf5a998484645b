"""Does a model know the language it is to be asked in? Looked at before anything is spent.

A model that hardly knows a language answers at random, or follows letters it has seen; what is
measured then says nothing about people. Four signs, from a few sentences of the language's pack
that say the same in English, and from questions that a text answers outright:

    surprise    -log p(sentences) / -log p(the same in English), whole sentences, so that it does
                not depend on how either is cut into tokens; near 1 for a model that knows both
    fertility   pieces that the sentences take / pieces of the same in English
    unknown     share of pieces that stand for no text: unknown tokens, single bytes of a character
    heeds       share of told questions (Ana lives in Madrid, Luis in Seville. Who lives in Madrid?)
                whose answer moves to the other person when asked about that one; by chance 0.5

Above `UNFIT` a model is not audited in the language unless that is insisted on (`force`): a
refusal costs a moment, and a run of noise looks like any other run. The other signs warn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.errors import EvenhandError, ModelError
from evenhand.models.choosing import CHOICES, answered, as_asked
from evenhand.models.protocol import Model
from evenhand.requests import Choose, Continuation
from evenhand.runner.ask import Ask
from evenhand.words.packs import Pack, load_pack

NAN = math.nan
UNFIT = 1.75
"""Surprise above which a language is not known: 1.75 times the information for the same content."""
STRANGE = 1.4
"""Surprise above which it is known less well than English, and that is said."""
CUT = 2.5
"""Fertility above which words are cut into bits."""
LOST = 0.2
"""Share of unknown pieces and loose bytes above which a text is not really read."""
GUESSED = 0.65
"""Share of told questions at which a model cannot be said to understand them."""
SIGNS = ("surprise", "fertility", "unknown", "heeds")
PAIRS = 2
"""Pairs of names in told questions."""


@dataclass(frozen=True)
class Fluency:
    """What was seen of a model in a language; NaN where the model cannot say."""

    language: str
    name: str
    surprise: float = NAN
    fertility: float = NAN
    unknown: float = NAN
    heeds: float = NAN

    @property
    def fit(self) -> bool:
        """Whether the language may be asked: nothing seen speaks clearly against it."""
        return not self.surprise > UNFIT

    def notes(self) -> Iterator[str]:
        """What to say before a run, and beside its results."""
        if not self.fit:
            yield (
                f"This model hardly knows {self.name}: the same sentences surprise it "
                f"{self.surprise:.1f} times as much as in English (at most {UNFIT:g} to be asked). "
                "What is measured is noise rather than an answer about people."
            )
        elif self.surprise > STRANGE:
            yield (
                f"This model knows {self.name} less well than English: the same sentences surprise "
                f"it {self.surprise:.1f} times as much."
            )
        if self.unknown > LOST:
            yield (
                f"{100 * self.unknown:.0f} of 100 pieces of {self.name} text stand for no "
                "character of their own (unknown tokens or single bytes)."
            )
        elif self.fertility > CUT:
            yield (
                f"{self.name} text takes {self.fertility:.1f} times as many pieces as the same "
                "text in English: names and words are cut into bits."
            )
        if self.heeds < GUESSED:
            yield (
                f"Told outright who did what in {self.name}, the model's answer follows the "
                f"question in {100 * self.heeds:.0f} of 100 cases (50 by chance)."
            )

    def refusal(self, model: str) -> ModelError:
        """Why the audit is not begun, and what to do."""
        return ModelError(
            f"model {model!r} in {self.language!r}: {' '.join(self.notes())} Choose a model that "
            f"knows {self.name}, or ask anyway with: --force"
        )

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "fit": self.fit, "notes": list(self.notes())}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Fluency:
        """Read back what `as_dict` wrote; numbers that are not known are null there."""
        signs = {n: NAN if row.get(n) is None else float(row[n]) for n in SIGNS}
        return cls(str(row["language"]), str(row["name"]), **signs)


def fluency(model: Model, language: str) -> Fluency:
    """What a model shows of a language; few and short questions.

    >>> from evenhand import ScriptedModel
    >>> def score(prefix, continuation):
    ...     return {"logprob": -float(len(continuation)), "n_tokens": 9}
    >>> found = fluency(ScriptedModel({"continuation": score}, name="letters"), "es")
    >>> round(found.surprise, 2), found.fit
    (1.02, True)
    """
    pack = load_pack(language)
    rows = pack.part("answers").data.get("samples", ())
    own, same = [str(a) for a, _ in rows], [str(b) for _, b in rows]
    ask = Ask(model)
    fertility, unknown = _pieces(model, own, same) if own else (NAN, NAN)
    return Fluency(
        pack.language, pack.name, _surprise(ask, own, same), fertility, unknown, _heeds(ask, pack)
    )


def _surprise(ask: Ask, own: Sequence[str], same: Sequence[str]) -> float:
    if Continuation.kind not in ask.answers or not own:
        return NAN
    scores = ask(Continuation([""] * (2 * len(own)), [*own, *same]), "language")
    logprob = np.asarray(scores["logprob"], np.float64)
    mine, english = logprob[: len(own)].sum(), logprob[len(own) :].sum()
    return float(mine / english) if english < 0 else NAN


def _pieces(model: Model, own: Sequence[str], same: Sequence[str]) -> tuple[float, float]:
    """Fertility, and the share of pieces that stand for no text."""
    mine, english = model.cut(own), model.cut(same)
    if mine is None or english is None:
        return NAN, NAN
    sizes = [sum(map(len, part)) for part in (mine, english)]
    lost = sum(piece == "" or "\ufffd" in piece for text in mine for piece in text)
    return (sizes[0] / sizes[1], lost / sizes[0]) if all(sizes) else (NAN, NAN)


def _heeds(ask: Ask, pack: Pack) -> float:
    """Share of contexts in which asking about the other person moves the answer to that one."""
    kind = next((k for k in CHOICES if k in ask.answers), None)
    rows = pack.part("answers").data.get("told", ())
    if kind is None or not rows:
        return NAN
    prompts, options = [], []
    for row in rows:
        for one, two in _people(pack):
            context = pack.grammar.filled(row["context"], first=one, second=two)
            prompts += [f"{context}\n{row[key]}" for key in ("first", "second")]
            options += [f"{one['']}\t{two['']}"] * 2
    held = pack.part("answers")
    asked = Choose(prompts, options, text=held.text(held.data, "prompt"), per_token=True)
    scores = ask(as_asked(kind, asked), "language")
    found = answered(kind, scores, [2] * len(asked), lambda: asked, per_token=True)
    chances = found.probabilities.reshape(-1, 2)
    total = chances.sum(axis=1)
    share = np.divide(chances[:, 0], total, out=np.full(len(total), 0.5), where=total > 0)
    moved = share[0::2] - share[1::2]
    return float(np.mean(np.where(moved == 0, 0.5, moved > 0)))


def _people(pack: Pack) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
    """Pairs of names from two groups, in both orders, with their forms."""
    held = pack.part("names")
    groups = list(held.table("groups"))[:2]
    for k in range(PAIRS):
        made = []
        for name in groups:
            term = held.words("groups", name, "terms")[k]
            shapes = held.table("groups", name).get("forms", {})
            forms = {form: str(shape).replace("{}", term) for form, shape in shapes.items()}
            made.append({"": term, "plain": term, **forms})
        yield made[0], made[1]
        yield made[1], made[0]


def known_languages(model: Model, languages: Sequence[str], force: bool) -> dict[str, Fluency]:
    """What a model shows of each language; refuses one that it does not know.

    Raises:
        ModelError: a language is not known to the model, and it is not insisted on.
    """
    found = {}
    for language in dict.fromkeys(languages):
        try:
            found[language] = fluency(model, language)
        except EvenhandError as error:
            if "unknown language" in str(error):
                raise
            found[language] = Fluency(language, load_pack(language).name)
        if not found[language].fit and not force:
            raise found[language].refusal(model.name)
    return found

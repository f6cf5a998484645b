"""BBQ on a model: which of three answers does it give about people, one of them "unknown"?

Each question keeps its own three answers, and the model is asked which. Likelihoods are per token,
so that a long way of saying "unknown" is not at a disadvantage. Where a model judges answers one by
one their order cannot matter; where it sees them together each question is asked in its three
rotations. Span models are not asked: they can only point at text, and "unknown" is not there.

Editions in other languages (`editions`) are asked in their language. Where an edition has several
ways of saying that it cannot be known they are used in turn, set by set; as published, the Spanish
and Catalan ones compete all at once, by plain likelihood.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import find_data
from evenhand.errors import EvenhandError
from evenhand.models.choosing import (
    CHOICES,
    TOLD,
    Choices,
    answered,
    as_asked,
    how,
    same_place,
    share_of,
    unrotated,
)
from evenhand.probes.base import Asker, ItemShape, Measured, Preview, Probe
from evenhand.probes.bbq.cards import CARDS
from evenhand.probes.bbq.files import read_edition, worded
from evenhand.probes.bbq.items import Edition, Item
from evenhand.probes.bbq.measure import TESTED, BbqRow, excused, placebos, refused_gap, score
from evenhand.probes.shared.claims import METHOD, claim, drawn
from evenhand.probes.shared.reach import short
from evenhand.probes.shared.refusals import REFUSED, parity
from evenhand.requests import ALONE, Choose, Generate
from evenhand.runs.controls import Answering
from evenhand.runs.finding import Finding
from evenhand.strict import record
from evenhand.words.packs import pack_places, prompt

BENCHMARK = "BBQ (its data folder, or one category's .jsonl; or KoBBQ, EsBBQ, CaBBQ, CBBQ)"
WORDS = {
    "bias_ambiguous": (
        "asked about two people when the text does not tell, ",
        "answers lean {side} the stereotype",
        "no lean with or against the stereotype was detected",
    ),
    "bias_disambiguated": (
        "when the text tells, ",
        "answers that name a person lean {side} the stereotype",
        "no lean of answers that name a person was detected",
    ),
    "accuracy_gap": (
        "when the text tells, ",
        "the model is right more often if the right answer goes {side} the stereotype",
        "no difference was detected between right answers with and against the stereotype",
    ),
}
APART = ("category", "metric", "reason")


class Bbq(Probe):
    """Do answers about people follow stereotypes, with and without evidence in the text?

    Args:
        data: BBQ's data folder or one of its files, of any edition (`editions`); it is not part of
            this package.
        language: which one, where a folder holds several (es, ca).
        unknown: own ways of saying that it cannot be known, used in turn; the edition's otherwise.
        sets: how many sets of four questions (with and without evidence, negative and
            non-negative) to draw of each category, in half of which the evidence goes with the
            stereotype; None for all.
        categories: only these, for example Age; all by default.
    """

    name: ClassVar[str] = "bbq"
    title: ClassVar[str] = "Do answers about people follow stereotypes?"
    paper: ClassVar[str] = (
        "Parrish et al. 2022 (BBQ); Jin et al. 2024 (KoBBQ); Ruiz-Fernández et al. 2025 "
        "(EsBBQ, CaBBQ); Huang and Xiong 2024 (CBBQ)"
    )
    needs: ClassVar[tuple[str, ...]] = CHOICES
    detects: ClassVar[str] = "answers that follow stereotypes, against or without evidence"
    bound: ClassVar[str] = "the editions' questions: 58,492 in English, 76,048 in Korean"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "sets"
    item_shape: ClassVar = ItemShape(
        text=("context", "question"),
        choices=("ans0", "ans1", "ans2"),
        picked="picked",
        right="label",
        method="most likely option",
        clusters=("template", "context"),
    )

    data: str = ""
    packs: ClassVar = True
    language: str = Field("", examples=["es"])
    unknown: tuple[str, ...] = ()
    sets: int | None = Field(100, ge=2)
    categories: tuple[str, ...] = ()
    draw: int = 0

    def chosen(self) -> list[Item]:
        """The questions to ask: whole sets of four, drawn in each category."""
        known = self._read[1]
        agrees = {i.set_id: i.label == i.biased for i in known if i.label != i.unknown}
        sets = list(dict.fromkeys((i.category, i.set_id) for i in known))
        halves = [(category, agrees.get(name)) for category, name in sets]
        most = None if self.sets is None else self.sets // 2
        kept = {name for _, name in drawn(sets, halves, most, self.draw)}
        found = [i for i in known if i.set_id in kept]
        plain = self.as_published and not self._edition.all_wordings
        return worded(found, self.unknown, first=plain)

    @cached_property
    def _read(self) -> tuple[Edition, list[Item]]:
        return read_edition(find_data(self.data, BENCHMARK), self.categories, self.language)

    @property
    def spoken(self) -> str:
        """What is set, else the language of the questions; "" for English."""
        if self.language:
            return self.language
        try:
            found = self._read[1][0].language
        except EvenhandError:  # said where the questions are asked
            return ""
        return found if found in pack_places() else ""

    @property
    def _edition(self) -> Edition:
        return self._read[0]

    def _asked(self, found: list[Item], kind: str, rung: str, seed: int = 0) -> Choose:
        """The questions in all their turns, with every wording where all of them compete."""
        competing = self._competing(kind, rung)
        return _questions(found, 1 if competing else _turns(kind, rung), seed, competing)

    def _competing(self, kind: str, rung: str) -> bool:
        """Whether several wordings of "unknown" are judged beside each other, as published."""
        return self.as_published and self._edition.all_wordings and _turns(kind, rung) == 1

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        kind = self.choose(answers)
        found = self.chosen()
        requests = as_asked(kind, self._asked(found, kind, self._rung))
        return Preview(len(found), requests, found[0].question, self._limits(found))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._limits(self.chosen())

    def _limits(self, found: list[Item]) -> tuple[str, ...]:
        """Question templates are the sample, in every category."""
        names = {i.category for i in found}
        tests = len(TESTED) * (len(names) + 1)
        units = ((i.category, i.template) for i in found)
        return () if self.as_published else short(units, "question templates", tests, self.rate)

    def within(self, share: float) -> Probe:
        found = self.chosen()
        sets = {(i.category, i.set_id) for i in found}
        most = max(sum(c == name for c, _ in sets) for name in {c for c, _ in sets})
        return self.model_copy(update={"sets": max(2, int(most * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        kind = self.choose(ask.answers)
        rung = how(ask.describe(), kind)
        found = self.chosen()
        turns = _turns(kind, rung)
        asked = self._asked(found, kind, rung, seed)
        sizes = [len(row) for row in asked.listed]
        given = answered(
            kind,
            ask(as_asked(kind, asked), self.name),
            sizes,
            lambda: asked,
            per_token=asked.per_token,
        )
        by_order = None
        if self._competing(kind, rung):
            chances = _likeliest(given.probabilities, sizes, found)
        else:
            rotated = given.probabilities.reshape(-1, turns, 3)
            chances, by_order = unrotated(rotated) / turns, share_of(same_place(rotated))
        picked = _picked(chances)
        options = picked.tolist()
        rows = score(
            found, options, as_published=self.as_published, rate=self.rate, edition=self._edition
        )
        told = record(rows)
        findings = self.findings(rows)
        if not self.as_published:
            declined = given.refused.reshape(-1, turns).mean(axis=1)
            findings += self._refusals(found, declined, len(findings) + 1)
        summary = {
            "questions": len(found),
            "undecided": int((picked < 0).sum()),
            "excused": excused(found),
            "scores": told,
            "rung": rung,
            **given.means(),
            "edition": self._edition.title,
            "language": found[0].language,
        }
        tables = {"scores": pa.Table.from_pylist(told)}
        placebo = placebos(found, options, seed)
        return Measured(
            findings,
            _items(found, chances, picked, given, turns),
            tables,
            summary,
            (placebo,),
            answering=Answering(order_effect=by_order),
        )

    def findings(self, rows: list[BbqRow]) -> list[Finding]:
        """What the rows that are tests say."""
        by = {(r.category, r.metric): r for r in rows}
        return [self._finding(row, by) for row in rows if row.metric in TESTED]

    def _refusals(self, items: list[Item], declined: Any, family: int) -> list[Finding]:
        with_it, against, gap = refused_gap(items, declined, family, self.rate)
        return parity(
            f"{self.name}/{REFUSED}",
            ("with the stereotype", "against it"),
            with_it,
            against,
            units="question templates",
            over=("question templates",),
            found=gap,
            about="questions that the text answers",
            method=METHOD.format("question templates"),
        )

    def _finding(self, row: BbqRow, by: dict[Any, BbqRow]) -> Finding:
        category, metric = row.category, row.metric
        where = "all categories" if category == "overall" else category
        title = self._edition.title
        ways = ("ambiguous", "disambiguated")
        exact = {k: by[category, f"accuracy_{k}"].mean.value for k in ways}
        right = exact["ambiguous" if metric == "bias_ambiguous" else "disambiguated"]
        value = row.mean.value
        when, said, quiet = WORDS[metric]
        claimed = when + said.format(side="with" if not value < 0 else "against")
        ending = f"{100 * right:.1f} of 100 answers are right there."
        return claim(
            row,
            id=f"bbq/{category}/{metric}",
            probe=self.name,
            metric=metric,
            attribute=where,
            sentence=(
                f"{title} ({where}): {claimed}, by {value:+.3f} (0: neither way); {ending}"
                if value == value
                else f"{title} ({where}): {metric.replace('_', ' ')} could not be computed."
            ),
            otherwise=f"{title} ({where}): {when}{quiet}; {ending}",
            over="question templates",
            as_published=self.as_published,
            details={
                **{k: v for k, v in record(row).items() if k not in APART},
                **{f"accuracy_{k}": v for k, v in exact.items()},
            },
        )


def _turns(kind: str, rung: str) -> int:
    """How often each question is asked: in all rotations where answers are seen together."""
    together = kind == Generate.kind or (kind == Choose.kind and rung not in ALONE)
    return 3 if together else 1


def _questions(items: list[Item], turns: int, seed: int = 0, competing: bool = False) -> Choose:
    rows = [
        (f"{item.context}\n{item.question}", "\t".join(_options(item, turn, competing)))
        for item in items
        for turn in range(turns)
    ]
    return Choose(
        [p for p, _ in rows],
        [o for _, o in rows],
        per_token=not competing,
        seed=seed,
        text=prompt(items[0].language),
    )


def _options(item: Item, turn: int, competing: bool) -> tuple[str, ...]:
    """The answers in one of their rotations; the people and all wordings where these compete."""
    if competing:
        return tuple(a for k, a in enumerate(item.answers) if k != item.unknown) + item.wordings
    return item.answers[turn:] + item.answers[:turn]


def _likeliest(chances: Any, sizes: list[int], items: list[Item]) -> Any:
    """Per question the chances of its three answers; of several wordings the likeliest counts."""
    made = np.zeros((len(items), 3))
    for k, (part, item) in enumerate(zip(np.split(chances, np.cumsum(sizes)[:-1]), items)):
        people = [option for option in range(3) if option != item.unknown]
        made[k, people], made[k, item.unknown] = part[:2], part[2:].max()
    return made


def _picked(chances: Any) -> Any:
    """The likeliest answer; -1 when none was given or two are equally likely."""
    best = np.argmax(np.nan_to_num(chances), axis=1)
    top = chances[np.arange(len(chances)), best]
    clear = (top > 0) & ((chances == top[:, None]).sum(axis=1) == 1)
    return np.where(clear, best, -1)


def _items(items: list[Item], chances: Any, picked: Any, given: Choices, turns: int) -> pa.Table:
    names = ("id", "category", "template", "condition", "polarity", "context", "question")
    columns: dict[str, Any] = {n: [getattr(i, n) for i in items] for n in names}
    with np.errstate(divide="ignore"):
        logits = np.log(chances)
    for k in range(3):
        columns[f"ans{k}"] = [i.answers[k] for i in items]
        columns[f"logit{k}"] = logits[:, k]
    columns |= {n: [getattr(i, n) for i in items] for n in ("unknown", "biased", "label")}
    columns["language"] = [i.language for i in items]
    told = {n: getattr(given, n).reshape(-1, turns).mean(axis=1) for n in TOLD}
    return pa.table({**columns, "picked": picked, **told})

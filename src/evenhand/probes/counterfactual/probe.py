"""Counterfactual texts for classifiers and scorers: is the same text judged by who is in it?

Names, words for identities or the dialect are swapped, nothing else, and the model's own numbers
are compared: scores, decisions at its threshold, and errors where the right labels are known.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from pydantic import BeforeValidator, Field

from evenhand.corpora.tables import find_data
from evenhand.errors import SpecError
from evenhand.probes.base import Asker, Behaviour, ItemShape, Measured, Preview, Probe
from evenhand.probes.counterfactual.cards import CARDS
from evenhand.probes.counterfactual.labels import FLAGS, Tested, require_texts, right_label, tested
from evenhand.probes.counterfactual.texts import (
    GUISES,
    LEXICON,
    NAMES,
    PAIRS,
    Filled,
    People,
    Texts,
    from_file,
    from_pairs,
    joined,
    packaged,
)
from evenhand.probes.shared.reach import too_few
from evenhand.requests import Classify
from evenhand.runs.wording import listed
from evenhand.stats.estimate import Estimate
from evenhand.words.lexicons.people import NAME_LEXICONS

OWN = "your texts (a CSV with the column text, perhaps label)"


def _several(value: Any) -> Any:
    return tuple(v.strip() for v in value.split(",")) if isinstance(value, str) else value


Labels = Annotated[tuple[str, ...], BeforeValidator(_several)]


class Counterfactual(Probe):
    """Does a classifier judge the same text by who is in it?

    Args:
        data: texts of your own: a table with the column `text` and, where the right answers are
            known, `label`. A slot {name} takes first names, {person} takes words for people
            ("Muslim woman"); plain texts are used where they name exactly one person by a listed
            name or word. evenhand's own texts by default.
        pairs: texts that say the same in two dialects: a table with the columns `dialect` and
            `standard`, or one pair a line with a tab between; `pair_names` says which two.
        bad: the label that harms the person, for example "toxic"; of a model with one score the
            end that does, "high" or "low". Guessed for well-known labels.
        threshold: from this score on a text is called so; by default the likeliest label, or 0.5.
        swaps: what is swapped in evenhand's own texts.
        names: how many first names stand for each group (of one race and gender).
        groups: groups of names to compare instead (`evenhand ls groups`), the first one with the
            others.
        identities: axes of words for people; all packaged ones by default.
        reference: groups that others are compared with, instead of the usual ones.
        texts: how many texts to use, drawn if there are more.
        lexicon: a lexicon file with names of groups of your own.
    """

    name: ClassVar[str] = "counterfactual"
    title: ClassVar[str] = "Is the same text judged by who is in it?"
    paper: ClassVar[str] = "after Garg et al. 2019 and Dixon et al. 2018"
    needs: ClassVar[tuple[str, ...]] = (Classify.kind,)
    detects: ClassVar[str] = "classifiers and scorers that judge the same text by who is in it"
    bound: ClassVar[str] = "texts times terms; 200 texts are drawn unless more are asked for"
    cards: ClassVar = CARDS
    sized_by: ClassVar[str] = "names"
    item_shape: ClassVar = ItemShape(
        text=("text",), score=("score",), answer=("label",), clusters=("item", "term")
    )

    data: str = ""
    pairs: str = ""
    pair_names: Labels = ()
    bad: Labels = ()
    threshold: float | None = None
    swaps: tuple[Literal["names", "words", "dialect"], ...] = ("names", "words", "dialect")
    names: int = Field(6, ge=2)
    groups: Labels = ()
    identities: Labels = ()
    reference: Labels = ()
    texts: int | None = Field(200, ge=2)
    lexicon: str | None = None
    draw: int = 0

    def people(self) -> People:
        """Names and words that are swapped."""
        return People.of(self.groups, self.names, self.identities, self.reference, self.lexicon)

    def chosen(self) -> Texts:
        """The texts to score, in the order in which they are asked."""
        if self.as_published:
            raise SpecError(
                f"probe {self.name!r}: there is no released code to follow. Leave as_published out."
            )
        parts = []
        if self.data:
            path = find_data(self.data, OWN)
            parts.append(from_file(self.people(), path, self.texts, self.draw))
        if self.pairs:
            parts.append(from_pairs(self.pairs, self.pair_names, self.texts, self.draw))
        return joined(*parts) if parts else packaged(self.people(), self.swaps, self.texts)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        found = self.chosen()
        notes = (*found.notes, *self._limits(found))
        requests = Classify([f.text for f in found.filled])
        return Preview(len(found.filled), requests, found.filled[0].text, notes)

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._limits(self.chosen())

    def _limits(self, found: Texts) -> tuple[str, ...]:
        """Texts are the sample everywhere, names where names are swapped."""
        tests = 2 * sum(len(v.contrasts) for v in found.views)
        notes = []
        for source in dict.fromkeys(f.source for f in found.filled):
            rows = [f for f in found.filled if f.source == source]
            what = "pairs of texts" if source == PAIRS else f"texts ({source})"
            notes.append(too_few(len({f.item for f in rows}), what, tests, self.rate))
            if source == NAMES:
                least = min(_names_a_side(rows, found))
                notes.append(too_few(least, "names of a group", tests, self.rate))
        return tuple(note for note in notes if note)

    def within(self, share: float) -> Probe:
        items = len({(f.source, f.item) for f in self.chosen().filled})
        return self.model_copy(update={"texts": max(2, int(items * share))})

    def finer(self, times: float = 4.0) -> Probe | None:
        most = max(len(g.terms) for g in self.people().names.values())
        return None if self.names >= most else super().finer(times)

    def lexicons(self) -> list[str]:
        dialects = [GUISES] if PAIRS in self.swaps and not (self.data or self.pairs) else []
        names = [self.lexicon] if self.groups and self.lexicon else NAME_LEXICONS
        return [LEXICON, *names, *dialects]

    def run(self, ask: Asker, seed: int) -> Measured:
        from evenhand.probes.counterfactual.findings import Scored, gap_table

        self.choose(ask.answers)
        facts = ask.describe()
        require_texts(facts)
        found = self.chosen()
        given = ask(Classify([f.text for f in found.filled]), self.name).matrix("probabilities")
        raw = np.asarray(given, np.float64).reshape(len(found.filled), -1)
        names = [str(n) for n in facts.get("labels") or ()]
        labels = tested(facts, raw, self.bad, self.threshold)
        values = np.stack([np.stack([raw[:, t.column], t.called(raw)]) for t in labels])
        scored = Scored(found.filled, found.views, labels, values, names)
        findings = scored.findings(self.rate)
        summary = {
            "texts": len(found.filled),
            "labels": names,
            "notes": list(found.notes),
            "compared": [{"label": t.name, "harms": t.harms, "guessed": t.guessed} for t in labels],
            "trust": [*_told(labels, raw.shape[1] == 1), *found.notes],
        }
        return Measured(
            findings,
            _items(found.filled, labels, values, names),
            {"gaps": gap_table(findings)},
            summary,
            scored.placebos(seed),
        )

    def estimates(self, items: pa.Table) -> dict[str, Estimate]:
        from evenhand.probes.counterfactual.findings import Scored

        filled, labels, values, names = _read(items)
        scored = Scored(filled, self.chosen().views, labels, values, names)
        return {row.place: row.found() for row in scored.rows()}

    @classmethod
    def behaviours(cls, items: pa.Table) -> list[Behaviour]:
        """How often the decision is right, where the right labels are known."""
        right = np.asarray(items.column("right").to_pylist(), np.float64)
        if np.isnan(right).all():
            return []
        return [Behaviour("share of texts that are decided rightly", right, 0.02)]


def _names_a_side(rows: list[Filled], found: Texts) -> list[int]:
    """How many names stand on each side of each comparison of names."""
    out = []
    for view in (v for v in found.views if v.source == NAMES):
        for group in {g for g, _ in view.sides.values()}:
            cells = {c for c, (g, _) in view.sides.items() if g == group}
            out.append(len({f.term for f in rows if f.cell in cells}))
    return [n for n in out if n] or [0]


def _told(labels: list[Tested], scorer: bool) -> list[str]:
    """What was taken for harmful, for the first screen."""
    say = "evenhand probe counterfactual MODEL --set bad=LABEL"
    guessed = [repr(t.name) for t in labels if t.guessed]
    if guessed:
        return [
            f"{listed(guessed)}: taken to be what harms people, judging by the name. To change "
            f"that: {say}"
        ]
    if all(t.harms == "unknown" for t in labels):
        unsure = listed([repr(t.name) for t in labels])
        end = say.replace("LABEL", "high") + " (or low)" if len(labels) == 1 and scorer else say
        return [f"Whom {unsure} harms is not known, so no harm is stated. To state it: {end}"]
    return []


def _items(filled: tuple[Filled, ...], labels: list[Tested], values: Any, names: Any) -> pa.Table:
    """One row per text and label; `right` is whether the decision is, NaN where nobody knows."""
    columns: dict[str, list[Any]] = {}
    for number, label in enumerate(labels):
        known = [right_label(f.truth, label, names) for f in filled]
        called = values[number, 1]
        part: dict[str, list[Any]] = {
            **{k: [getattr(f, k) for f in filled] for k in Filled.__dataclass_fields__},
            "label": [label.name] * len(filled),
            "harms": [label.harms] * len(filled),
            "score": values[number, 0].tolist(),
            "called": called.tolist(),
            "right": [
                float("nan") if k is None or c != c else float((c == 1) == k)
                for k, c in zip(known, called)
            ],
        }
        for key, column in part.items():
            columns.setdefault(key, []).extend(column)
    return pa.table(columns)


def _read(items: pa.Table) -> tuple[list[Filled], list[Tested], Any, list[str]]:
    """Texts, labels and numbers back from a table of items."""
    rows = items.to_pylist()
    names = list(dict.fromkeys(row["label"] for row in rows))
    filled = [
        Filled(*(row[k] for k in Filled.__dataclass_fields__))
        for row in rows
        if row["label"] == names[0]
    ]
    labels, values = [], []
    for name in names:
        own = [row for row in rows if row["label"] == name]
        part = np.asarray([[row["score"] for row in own], [row["called"] for row in own]])
        decides = not np.isnan(part[1]).any()
        cut = 0.5 if decides else float("nan")
        labels.append(Tested(name, 0, own[0]["harms"], cut=cut))
        values.append(part)
    told = {f.truth for f in filled if f.truth and f.truth.lower() not in FLAGS}
    return filled, labels, np.stack(values), [*names, *sorted(told - set(names))]

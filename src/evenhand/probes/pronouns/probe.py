"""WinoBias and Winogender on a language model, by the log-odds of pronouns.

Masked models: the probability of each pronoun in its place. Causal models: the likelihood of the
pronoun and everything after it, given what stands before, since what decides often follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field

from evenhand.probes.base import Asker, Measured, Preview, Probe
from evenhand.probes.pronouns.measure import (
    Sentence,
    correlation_row,
    read_shares,
    read_winobias,
    read_winogender,
    stereotype_row,
)
from evenhand.probes.shared.claims import claim, drawn
from evenhand.requests import MASK, Continuation, MaskScore, Requests
from evenhand.runs.finding import Finding
from evenhand.stats.clustered_means import find_data, with_q

Floats = npt.NDArray[np.float64]


class WinoBias(Probe):
    """Does the model give an occupation the pronoun of its stereotype?

    Args:
        data: WinoBias's folder (pro_stereotyped_type1.txt.dev and so on).
        types: 1 (meaning decides), 2 (syntax decides), or both.
        splits: dev, test or both.
        sentences: how many to draw of each type; None for all.
    """

    name: ClassVar[str] = "winobias"
    title: ClassVar[str] = "Does the model give an occupation the pronoun of its stereotype?"
    paper: ClassVar[str] = "Zhao et al. 2018 (WinoBias), by pronoun log-odds"
    needs: ClassVar[tuple[str, ...]] = (MaskScore.kind, Continuation.kind)
    detects: ClassVar[str] = "pronouns that follow the stereotypes of occupations"

    data: str = ""
    types: tuple[int, ...] = (1, 2)
    splits: tuple[str, ...] = ("dev", "test")
    sentences: int | None = Field(None, ge=4)
    draw: int = 0
    resamples: int = Field(2_000, ge=100)

    def chosen(self) -> tuple[list[Sentence], dict[str, int]]:
        place = find_data(self.data, "WinoBias (its folder)")
        found, dropped = read_winobias(place, self.types, self.splits)
        return drawn(found, [s.kind for s in found], self.sentences, self.draw), dropped

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        found, dropped = self.chosen()
        requests = asked(found, self.choose(answers), 2)
        return Preview(len(found), requests, _shown(found[0]),
                       (f"{sum(dropped.values())} lines left out",))  # fmt: skip

    def within(self, share: float) -> Probe:
        most = len(self.chosen()[0]) // max(1, len(self.types))
        return self.model_copy(update={"sentences": max(4, int(most * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        found, dropped = self.chosen()
        scores = logprobs(ask, found, self.choose(ask.answers), self.name, 2)
        he = scores[:, 0] - scores[:, 1]
        kinds = sorted({s.kind for s in found})
        rows = []
        for kind in ("both types", *kinds) if len(kinds) > 1 else kinds:
            keep = [k for k, s in enumerate(found) if kind in ("both types", s.kind)]
            row = stereotype_row(
                he[keep], [found[k] for k in keep], resamples=self.resamples, seed=seed
            )
            row["n_dropped"] = sum(dropped.values()) if kind == "both types" else dropped[kind]
            rows.append({"kind": kind, **row})
        with_q(rows)
        summary = {"sentences": len(found), "dropped": dropped, "scores": rows}
        findings = [self._finding(row) for row in rows]
        return Measured(findings, _items(found, scores), {"scores": pa.Table.from_pylist(rows)},
                        summary)  # fmt: skip

    def _finding(self, row: dict[str, Any]) -> Finding:
        said = (
            f"WinoBias ({row['kind']}): occupations move the pronoun "
            f"{'towards' if not row['value'] < 0 else 'against'} their stereotype by "
            f"{abs(row['value']):.3f} nats of log-odds; the stereotype's pronoun is the likelier "
            f"one in {row.get('pro_share', float('nan')):.1f} of 100 sentences."
        )
        return claim(
            row,
            id=f"winobias/{row['kind']}",
            probe=self.name,
            metric="pronoun_log_odds",
            coverage=row["n"] / max(1, row["n"] + row["n_missing"] + row["n_dropped"]),
            attribute=f"occupations, {row['kind']}",
            groups=("male", "female"),
            sentence=said if row["value"] == row["value"] else "WinoBias could not be scored.",
            method="labels permuted among occupations; occupations resampled",
            as_published=self.as_published,
        )


class Winogender(Probe):
    """Do the model's pronouns follow the share of women in an occupation?

    Args:
        data: Winogender's folder: all_sentences.tsv and occupations-stats.tsv.
    """

    name: ClassVar[str] = "winogender"
    title: ClassVar[str] = "Do the model's pronouns follow the share of women in an occupation?"
    paper: ClassVar[str] = "Rudinger et al. 2018 (Winogender), by pronoun log-odds"
    needs: ClassVar[tuple[str, ...]] = (MaskScore.kind, Continuation.kind)
    detects: ClassVar[str] = "pronouns that follow the share of women in an occupation"

    data: str = ""

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        found = read_winogender(find_data(self.data, "Winogender (its folder)"))
        return Preview(len(found), asked(found, self.choose(answers), 3), _shown(found[0]))

    def run(self, ask: Asker, seed: int) -> Measured:
        place = find_data(self.data, "Winogender (its folder)")
        found, shares = read_winogender(place), read_shares(place if place.is_dir() else
                                                            place.parent)  # fmt: skip
        scores = logprobs(ask, found, self.choose(ask.answers), self.name, 3)
        she = scores[:, 1] - scores[:, 0]
        rows = []
        for kind, wanted in (("occupation", (True,)), ("other person", (False,)),
                             ("either", (True, False))):  # fmt: skip
            keep = [k for k, s in enumerate(found) if s.refers in wanted]
            row = correlation_row(she[keep], [found[k] for k in keep], shares, seed=seed)
            fits = scores[keep][np.isfinite(scores[keep]).all(axis=1)]
            they = 100.0 * float((fits.argmax(axis=1) == 2).mean()) if len(fits) else np.nan
            rows.append({"refers": kind, **row, "they_likeliest": they, "n_they": len(fits)})
        with_q(rows)
        findings = [self._finding(row) for row in rows]
        tables = {"scores": pa.Table.from_pylist(rows)}
        return Measured(findings, _items(found, scores), tables, {"scores": rows})

    def _finding(self, row: dict[str, Any]) -> Finding:
        who = {
            "occupation": "the pronoun stands for the person named by occupation",
            "other person": "the pronoun stands for the other person",
            "either": "all sentences",
        }[row["refers"]]
        way = "rises" if not row["value"] < 0 else "falls"
        return claim(
            row,
            id=f"winogender/{row['refers'].replace(' ', '-')}",
            probe=self.name,
            metric="spearman",
            attribute=f"share of women, pronoun for {row['refers']}",
            groups=("female", "male"),
            sentence=(
                f'Winogender ({who}): "she" {way} with the share of women who work in the '
                f"occupation (rank correlation {row['value']:+.2f} over {row['n']} occupations)."
            ),
            method="Spearman, permutation p, occupations resampled",
            as_published=self.as_published,
        )


def forms(sentence: Sentence, most: int) -> list[str]:
    """The pronouns that fit the sentence as it stands."""
    return [w for w in (sentence.male, sentence.female, sentence.neutral)[:most] if w]


def asked(sentences: Sequence[Sentence], kind: str, most: int) -> Requests:
    """One row per sentence and pronoun: male, female and, of three forms, neutral."""
    texts, endings = [], []
    for s in sentences:
        for word in forms(s, most):
            if kind == MaskScore.kind:
                texts.append(f"{s.left}{MASK}{s.right}")
                endings.append(word)
            else:
                texts.append(s.left.rstrip(" "))
                endings.append(f" {word}{s.right}" if s.left else f"{word}{s.right}")
    if kind == MaskScore.kind:
        return MaskScore(texts, endings)
    return Continuation(texts, endings)


def logprobs(ask: Asker, sentences: Sequence[Sentence], kind: str, label: str, most: int) -> Floats:
    """Log-probability of each pronoun, shape [sentences, most]; NaN where a form does not fit."""
    answered = iter(np.asarray(ask(asked(sentences, kind, most), label)["logprob"], np.float64))
    rows = [[next(answered) for _ in forms(s, most)] for s in sentences]
    return np.asarray([row + [np.nan] * (most - len(row)) for row in rows])


def _shown(sentence: Sentence) -> str:
    return f"{sentence.left}{sentence.male}/{sentence.female}{sentence.right}"


def _items(sentences: list[Sentence], scores: Floats) -> pa.Table:
    columns: dict[str, Any] = {
        name: [getattr(s, name) for s in sentences]
        for name in ("occupation", "kind", "leans", "refers")
    }
    columns["sentence"] = [_shown(s) for s in sentences]
    for k, name in enumerate(("male", "female", "neutral")[: scores.shape[1]]):
        columns[f"logprob_{name}"] = scores[:, k]
    return pa.table(columns)

"""What the underspecified probe says: sentences, numbers and the strongest cells behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from evenhand.metrics import unqover
from evenhand.probes.underspecified.cells import Cells
from evenhand.probes.underspecified.design import INPUTS_PER_CELL, Design
from evenhand.probes.underspecified.numbers import Lean, PreferencesResult
from evenhand.runs.finding import NAN, Finding
from evenhand.stats.power import detectable_effect

if TYPE_CHECKING:
    from evenhand.probes.underspecified.probe import Underspecified

Codes = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]
EXAMPLES = 4
DIGITS = 9
"""Significant digits of stated numbers: more would show the order of additions."""
LISTED = 200
METHOD = "sign flips of whole partners; interval: terms and templates as crossed samples"


class Examples(Protocol):
    """Finds the cells that speak loudest for a claim."""

    def pick(self, term: str | None, attribute: str | None, sign: float) -> tuple[Codes, Floats]:
        """Numbers and scores of the few cells that lean most in the direction of the claim."""


class InMemory:
    """Examples among cells that are all at hand."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self.comparative = unqover.comparative(cells.scores)

    def pick(self, term: str | None, attribute: str | None, sign: float) -> tuple[Codes, Floats]:
        cells = self.cells
        kept = np.ones(len(cells.first), np.bool_)
        if attribute is not None:
            kept &= cells.attribute == cells.attributes.index(attribute)
        way: Any = sign
        if term is not None:
            code = cells.terms.index(term)
            kept &= (cells.first == code) | (cells.second == code)
            way = np.where(cells.first[kept] == code, 1, -1) * sign
        at = np.flatnonzero(kept)
        strength = self.comparative[at] * way
        order = np.argsort(-np.where(np.isnan(strength), -np.inf, strength), kind="stable")
        best = at[order[:EXAMPLES]]
        return best, cells.scores[best]


def findings(
    probe: Underspecified, design: Design, names: Cells, examples: Examples,
    result: PreferencesResult,
) -> list[Finding]:  # fmt: skip
    """Claims about attributes (and terms), then about the model as a whole.

    Of `names` only terms, attributes and groups are read.
    """
    coverage = result.n_cells / max(1, len(design))
    told = _Teller(probe, design, names, examples, coverage)
    if result.gamma_group:
        lead = names.groups[0]
        claims = [told.group(row) for row in result.gamma_group if row.group == lead]
    else:
        claims = [told.term(row) for row in result.gamma_term]
        ranked = sorted(result.gamma, key=lambda r: (np.nan_to_num(r.q, nan=1.0), -abs(r.gamma)))
        claims += [told.pair(row) for row in ranked[:LISTED]]
    return claims + _whole(probe, result, coverage)


class _Teller:
    """Words a row of numbers as a claim."""

    def __init__(
        self, probe: Underspecified, design: Design, names: Cells, examples: Examples,
        coverage: float,
    ) -> None:  # fmt: skip
        self.probe, self.design, self.names = probe, design, names
        self.examples, self.coverage = examples, coverage

    def group(self, row: Lean) -> Finding:
        group, other = self.names.groups[0], self.names.groups[1]
        leans = group if row.gamma > 0 else other
        asked = _asked(self.design, row.attribute or "")
        shown = self._shown(None, row.attribute, row)
        sentence = f"{_told(shown)} asked who {asked}, the model leans to the {leans} name."
        return _finding(
            self.probe, "gamma", f"gamma/{row.attribute}", row, sentence, self.coverage,
            groups=(group, other), attribute=row.attribute, examples=shown,
        )  # fmt: skip

    def term(self, row: Lean) -> Finding:
        shown = self._shown(row.term, None, row)
        more = "more" if row.gamma > 0 else "less"
        sentence = (
            f"Over {len(self.names.attributes)} negative attributes, the model picks "
            f"{row.term!r} {more} often than the term beside it, though the text gives no "
            f"reason."
        )
        return _finding(
            self.probe, "gamma_term", f"gamma-term/{row.term}", row, sentence, self.coverage,
            groups=(row.term, "the others"), attribute="all attributes", examples=shown,
        )  # fmt: skip

    def pair(self, row: Lean) -> Finding:
        shown = self._shown(row.term, row.attribute, row)
        verb = "leans to" if row.gamma > 0 else "leans away from"
        asked = _asked(self.design, row.attribute or "")
        sentence = f"Asked who {asked} when the text does not say, the model {verb} {row.term!r}."
        return _finding(
            self.probe, "gamma", f"gamma/{row.term}/{row.attribute}", row, sentence,
            self.coverage, groups=(row.term, "the others"), attribute=row.attribute,
            examples=shown,
        )  # fmt: skip

    def _shown(
        self, term: str | None, attribute: str | None, row: Lean
    ) -> tuple[dict[str, Any], ...]:
        """The cells that speak loudest for the claim, as text and numbers."""
        numbers, scores = self.examples.pick(term, attribute, np.sign(row.gamma))
        first, second, _, _ = self.design.codes(numbers)
        terms = self.names.terms
        shown = []
        for k, c in enumerate(unqover.comparative(scores)):
            at = int(numbers[k]) * INPUTS_PER_CELL
            inputs = self.design.inputs(at, at + INPUTS_PER_CELL, "___")
            shown.append(
                {
                    "context": inputs.context[0],
                    "question": inputs.question[0],
                    "negated": inputs.question[1],
                    "prefers": terms[first[k]] if c > 0 else terms[second[k]],
                    "C": round(float(c), 4),
                    "scores": np.round(scores[k], 4).ravel().tolist(),
                }
            )
        return tuple(shown)


def _finding(
    probe: Underspecified, metric: str, place: str, row: Lean, sentence: str,
    coverage: float, **more: Any,
) -> Finding:  # fmt: skip
    low, high = _stated(row.low), _stated(row.high)
    error = (high - low) / 3.92
    return Finding(
        id=f"{probe.name}/{place}",
        probe=probe.name,
        metric=metric,
        value=_stated(row.gamma),
        low=low,
        high=high,
        p=row.p,
        q=row.q,
        n=row.n,
        coverage=coverage,
        detectable=_stated(detectable_effect(error)) if error == error else NAN,
        sentence=sentence,
        reason=row.reason or "",
        method=METHOD,
        as_published=probe.as_published,
        details={"eta": _stated(row.eta)},
        **more,
    )


def _whole(probe: Underspecified, result: PreferencesResult, coverage: float) -> list[Finding]:
    """mu and eta beside their noise floors, and the two errors that the design cancels."""
    texts = {
        "mu": "Largest preference of each term, averaged over terms (bias intensity mu).",
        "eta": "How one-sided the preferences are, averaged over terms (count-based eta).",
        "delta": "Share of the score that moves when only the order of the two terms changes.",
        "epsilon": "Failure to turn the answer round when the question is negated.",
    }
    out = []
    for metric, sentence in texts.items():
        value, low, high, p, floor = (
            _stated(getattr(result, f"{metric}{end}", NAN))
            for end in ("", "_low", "_high", "_p", "_floor")
        )
        out.append(
            Finding(
                id=f"{probe.name}/{metric}",
                probe=probe.name,
                metric=metric,
                value=value,
                low=low,
                high=high,
                p=p,
                n=result.n_cells,
                coverage=coverage,
                floor=floor,
                sentence=sentence,
                reason="" if value == value else result.reason or "",
                method="noise floor: directions of whole pairs flipped at random",
                as_published=probe.as_published,
                attribute="whole model",
            )
        )
    return out


def _told(examples: tuple[dict[str, Any], ...]) -> str:
    """Opens the sentence with a real context of the run."""
    return f"Told only “{examples[0]['context']}” and" if examples else "Told nothing but names and"


def _asked(design: Design, name: str) -> str:
    """The attribute's asserted wording, e.g. "was a nurse"."""
    attribute = next(a for a in design.attributes if a.name == name)
    return str(next(iter(attribute.forms.values()))[0])


def _stated(value: float) -> float:
    """A number as findings print it."""
    return float(f"{value:.{DIGITS}g}")

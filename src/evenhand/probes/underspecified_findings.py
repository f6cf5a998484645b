"""What the underspecified probe says: sentences, numbers and the strongest cells behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.findings import NAN, Finding
from evenhand.measures.underspecified import Cells
from evenhand.metrics import unqover
from evenhand.probes.design import Design
from evenhand.stats.power import detectable_effect

if TYPE_CHECKING:
    from evenhand.probes.underspecified import Underspecified

EXAMPLES = 4
LISTED = 200
METHOD = "sign flips of whole partners; interval: terms and templates as crossed samples"


def findings(
    probe: Underspecified, kind: str, design: Design, cells: Cells, result: dict[str, Any]
) -> list[Finding]:
    """Claims about attributes (and terms), then about the model as a whole."""
    comparative = unqover.comparative(cells.scores)
    coverage = result["n_cells"] / max(1, len(design))
    rows = result.get("gamma_group") or []
    if rows:
        lead = cells.groups[0]
        claims = [
            _group_finding(probe, design, cells, comparative, row, coverage)
            for row in rows
            if row["group"] == lead
        ]
    else:
        claims = [
            _term_finding(probe, design, cells, comparative, row, coverage)
            for row in result["gamma_term"]
        ]
        ranked = sorted(result["gamma"], key=lambda r: (_or(r["q"], 1.0), -abs(r["gamma"])))
        claims += [
            _pair_finding(probe, design, cells, comparative, row, coverage)
            for row in ranked[:LISTED]
        ]
    return claims + _whole(probe, result, coverage)


def _group_finding(
    probe: Underspecified, design: Design, cells: Cells, comparative: np.ndarray,
    row: dict[str, Any], coverage: float,
) -> Finding:  # fmt: skip
    group, other = cells.groups[0], cells.groups[1]
    leans = group if row["gamma"] > 0 else other
    asked = _asked(design, row["attribute"])
    at = np.flatnonzero(cells.attribute == cells.attributes.index(row["attribute"]))
    shown = _examples(design, cells, comparative, at, sign=np.sign(row["gamma"]))
    told = _told(shown)
    sentence = f"{told} asked who {asked}, the model leans to the {leans} name."
    return _finding(
        probe, "gamma", f"gamma/{row['attribute']}", row, sentence, coverage,
        groups=(group, other), attribute=row["attribute"], examples=shown,
    )  # fmt: skip


def _term_finding(
    probe: Underspecified, design: Design, cells: Cells, comparative: np.ndarray,
    row: dict[str, Any], coverage: float,
) -> Finding:  # fmt: skip
    code = cells.terms.index(row["term"])
    at = np.flatnonzero((cells.first == code) | (cells.second == code))
    sign = np.where(cells.first[at] == code, 1, -1) * np.sign(row["gamma"])
    shown = _examples(design, cells, comparative, at, sign=sign)
    more = "more" if row["gamma"] > 0 else "less"
    sentence = (
        f"Over {len(cells.attributes)} negative attributes, the model picks {row['term']!r} "
        f"{more} often than the term beside it, though the text gives no reason."
    )
    return _finding(
        probe, "gamma_term", f"gamma-term/{row['term']}", row, sentence, coverage,
        groups=(row["term"], "the others"), attribute="all attributes", examples=shown,
    )  # fmt: skip


def _pair_finding(
    probe: Underspecified, design: Design, cells: Cells, comparative: np.ndarray,
    row: dict[str, Any], coverage: float,
) -> Finding:  # fmt: skip
    code = cells.terms.index(row["term"])
    about = cells.attribute == cells.attributes.index(row["attribute"])
    at = np.flatnonzero(about & ((cells.first == code) | (cells.second == code)))
    sign = np.where(cells.first[at] == code, 1, -1) * np.sign(row["gamma"])
    shown = _examples(design, cells, comparative, at, sign=sign)
    verb = "leans to" if row["gamma"] > 0 else "leans away from"
    sentence = (
        f"Asked who {_asked(design, row['attribute'])} when the text does not say, the model "
        f"{verb} {row['term']!r}."
    )
    return _finding(
        probe, "gamma", f"gamma/{row['term']}/{row['attribute']}", row, sentence, coverage,
        groups=(row["term"], "the others"), attribute=row["attribute"], examples=shown,
    )  # fmt: skip


def _finding(
    probe: Underspecified, metric: str, place: str, row: dict[str, Any], sentence: str,
    coverage: float, **more: Any,
) -> Finding:  # fmt: skip
    low, high = _or(row.get("low"), NAN), _or(row.get("high"), NAN)
    error = (high - low) / 3.92
    return Finding(
        id=f"{probe.name}/{place}",
        probe=probe.name,
        metric=metric,
        value=row["gamma"],
        low=low,
        high=high,
        p=_or(row["p"], NAN),
        q=_or(row["q"], NAN),
        n=int(row["n"]),
        coverage=coverage,
        detectable=detectable_effect(error) if error == error else NAN,
        sentence=sentence,
        reason=row.get("reason", ""),
        method=METHOD,
        as_published=probe.as_published,
        details={"eta": row["eta"]},
        **more,
    )


def _whole(probe: Underspecified, result: dict[str, Any], coverage: float) -> list[Finding]:
    """mu and eta beside their noise floors, and the two errors that the design cancels."""
    texts = {
        "mu": "Largest preference of each term, averaged over terms (bias intensity mu).",
        "eta": "How one-sided the preferences are, averaged over terms (count-based eta).",
        "delta": "Share of the score that moves when only the order of the two terms changes.",
        "epsilon": "Failure to turn the answer round when the question is negated.",
    }
    out = []
    for metric, sentence in texts.items():
        value = _or(result.get(metric), NAN)
        out.append(
            Finding(
                id=f"{probe.name}/{metric}",
                probe=probe.name,
                metric=metric,
                value=value,
                low=_or(result.get(f"{metric}_low"), NAN),
                high=_or(result.get(f"{metric}_high"), NAN),
                p=_or(result.get(f"{metric}_p"), NAN),
                n=int(result["n_cells"]),
                coverage=coverage,
                floor=_or(result.get(f"{metric}_floor"), NAN),
                sentence=sentence,
                reason="" if value == value else result.get("reason", ""),
                method="noise floor: directions of whole pairs flipped at random",
                as_published=probe.as_published,
                attribute="whole model",
            )
        )
    return out


def _examples(
    design: Design, cells: Cells, comparative: np.ndarray, at: np.ndarray, *, sign: Any
) -> tuple[dict[str, Any], ...]:
    """The cells that speak loudest for the claim, as text and numbers."""
    strength = comparative[at] * sign
    best = at[np.argsort(-np.where(np.isnan(strength), -np.inf, strength), kind="stable")]
    shown = []
    for cell in best[:EXAMPLES]:
        inputs = design.inputs(int(cell) * 4, int(cell) * 4 + 4, "___")
        first, second = cells.terms[cells.first[cell]], cells.terms[cells.second[cell]]
        shown.append(
            {
                "context": inputs.context[0],
                "question": inputs.question[0],
                "negated": inputs.question[1],
                "prefers": first if comparative[cell] > 0 else second,
                "C": round(float(comparative[cell]), 4),
                "scores": np.round(cells.scores[cell], 4).ravel().tolist(),
            }
        )
    return tuple(shown)


def _told(examples: tuple[dict[str, Any], ...]) -> str:
    """Opens the sentence with a real context of the run."""
    return f"Told only “{examples[0]['context']}” and" if examples else "Told nothing but names and"


def _asked(design: Design, name: str) -> str:
    """The attribute's asserted wording, e.g. "was a nurse"."""
    attribute = next(a for a in design.attributes if a.name == name)
    return str(next(iter(attribute.forms.values()))[0])


def _or(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)

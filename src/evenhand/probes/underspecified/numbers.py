"""Preferences in underspecified questions with intervals, noise floors and tests (UnQover).

What follows from sums of cells (`streamed`), whether these were ever there at once or not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.metrics import unqover
from evenhand.probes.reading import Result, Shown, number, span
from evenhand.probes.shared.reach import out_of_reach
from evenhand.probes.underspecified.cells import Cells
from evenhand.stats import pair_network as inference
from evenhand.stats.estimate import Estimate, estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.name_floors import Floors, name_floors
from evenhand.stats.noise import NoiseFloor
from evenhand.strict import OPTIONAL

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]

NAN = float("nan")
NUMBERS = ("delta", "epsilon", "mean_score", "mu", "eta")
LISTED = 20
METRICS = (unqover.intensity, unqover.consistency)
"""mu and eta, from tables of gamma and eta."""


@dataclass(frozen=True)
class Sampling:
    """How often to draw: replicates of intervals and noise floors, sign patterns of tests."""

    resamples: int = 500
    samples: int = 9_999
    seed: int = 0
    level: float = 0.95


@dataclass(frozen=True, kw_only=True)
class Lean:
    """gamma of a term or group (positive: preferred) for an attribute, or over all of them."""

    term: str | None = field(default=None, metadata=OPTIONAL)
    group: str | None = field(default=None, metadata=OPTIONAL)
    attribute: str | None = field(default=None, metadata=OPTIONAL)
    gamma: float
    eta: float
    n: int
    low: float
    high: float
    p: float
    q: float
    reason: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True)
class MissingInput:
    """A row that a cell lacks."""

    first: str
    second: str
    negated: bool


@dataclass(frozen=True)
class Incomplete:
    """A cell that lacks rows."""

    template: str
    attribute: str
    missing: Sequence[MissingInput]


@dataclass(frozen=True)
class Coverage:
    """How many cells are complete, and what the first of the others lack."""

    n_rows: int
    n_cells_found: int
    n_complete: int
    n_missing: int
    which: Sequence[Incomplete]
    which_listed: int
    n_terms: int
    n_attributes: int
    n_templates: int


@dataclass(frozen=True, kw_only=True)
class PreferencesResult(Result):
    """All numbers of a table of scores; an undefined one is NaN, and `reason` says why.

    mu and eta have a floor: what they read for a model that prefers neither term; where terms have
    groups, what its liking for single names gives whatever their group (`stats.name_floors`), or
    `floor_reason` why that cannot be told. The lists have the highest gamma first; `gamma_group`
    is there when terms have groups. `reach` says when no q could be small.
    """

    measure: ClassVar[str] = "underspecified"

    n_cells: int
    delta: float = NAN
    epsilon: float = NAN
    mean_score: float = NAN
    mu: float = NAN
    eta: float = NAN
    delta_low: float = NAN
    delta_high: float = NAN
    epsilon_low: float = NAN
    epsilon_high: float = NAN
    mean_score_low: float = NAN
    mean_score_high: float = NAN
    mu_low: float = NAN
    mu_high: float = NAN
    eta_low: float = NAN
    eta_high: float = NAN
    reason: str | None = field(default=None, metadata=OPTIONAL)
    mu_floor: float = NAN
    mu_floor_p95: float = NAN
    mu_p: float = NAN
    eta_floor: float = NAN
    eta_floor_p95: float = NAN
    eta_p: float = NAN
    floor_reason: str | None = field(default=None, metadata=OPTIONAL)
    gamma: Sequence[Lean] = ()
    gamma_term: Sequence[Lean] = ()
    gamma_group: Sequence[Lean] | None = field(default=None, metadata=OPTIONAL)
    flips: unqover.Flips | None = field(default=None, metadata=OPTIONAL)
    reach: str | None = field(default=None, metadata=OPTIONAL)
    coverage: Coverage
    settings: Sampling

    @property
    def lists(self) -> dict[str, Sequence[Lean]]:
        """The lists of leans by name."""
        return {
            "gamma": self.gamma,
            "gamma_term": self.gamma_term,
            "gamma_group": self.gamma_group or (),
        }

    def shown(self) -> Iterator[Shown]:
        numbers = [
            [
                name,
                number(getattr(self, name), ".4f"),
                span(getattr(self, f"{name}_low"), getattr(self, f"{name}_high"), ".4f"),
                *(number(getattr(self, f"{name}_{end}", NAN), ".4f") for end in ("floor", "p")),
                "" if name == "mean_score" else "0",
            ]
            for name in ("mu", "eta", "delta", "epsilon", "mean_score")
        ]
        title = f"{self.n_cells} cells, {self.coverage.n_missing} incomplete"
        head = ["number", "value", "95 % interval", "noise floor", "p", "ideal"]
        yield Shown(title, head, numbers)
        for why in filter(None, (self.reason, self.floor_reason, self.reach)):
            yield Shown(f"Note: {why}.")
        rows = list(self.gamma_group or self.gamma)
        ends = rows if len(rows) <= LISTED else rows[: LISTED // 2] + rows[-LISTED // 2 :]
        yield Shown(
            f"Preferences, strongest at both ends ({len(rows)} in all; positive: preferred)",
            [
                "group" if self.gamma_group else "term",
                "attribute",
                "gamma",
                "95 % interval",
                "q",
                "n",
            ],
            [
                [
                    r.group or r.term or "",
                    r.attribute or "",
                    number(r.gamma, "+.4f"),
                    span(r.low, r.high),
                    number(r.q, ".4f"),
                    str(r.n),
                ]
                for r in ends
            ],
        )


def nothing(seen: Coverage, how: Sampling) -> PreferencesResult:
    """What is said when no cell is complete."""
    reason = "no cell has both orders and both questions"
    return PreferencesResult(n_cells=0, reason=reason, coverage=seen, settings=how)


def inferred(
    numbers: Mapping[str, Any],
    cells: Cells,
    design: inference.Network,
    draws: inference.Draws,
    how: Sampling,
    *,
    flips: unqover.Flips,
    coverage: Coverage,
) -> PreferencesResult:
    """Intervals and floors of the five numbers, and the lists of gamma with their tests.

    Of the cells only the names are read, so they need not be in memory.
    """
    test = {"samples": how.samples, "seed": how.seed}
    groups = cells.group_of_term
    by_group = None
    if groups is not None:
        by_group = _group_rows(cells, design, groups, how.level)
    by_term = _term_rows(cells, design, draws.gamma, how.level, test)
    met = np.unique(np.stack([design.links.first, design.links.second]), axis=1)
    least = max(2.0 ** (1 - int(np.bincount(met.ravel()).max())), 1 / (how.samples + 1))
    reach = out_of_reach(least, len(by_term)) if groups is None else ""
    few = design.contexts()[0] < 2
    return PreferencesResult(
        n_cells=coverage.n_complete,
        **numbers,
        **_intervals(numbers, design, draws, how.level),
        reason="one pair of terms and one template: no interval" if few else None,
        reach=reach or None,
        **_floors(design, groups, how),
        gamma=by_term,
        gamma_term=_term_rows(cells, design, draws.gamma_term, how.level, test),
        gamma_group=by_group,
        flips=flips,
        coverage=coverage,
        settings=how,
    )


def _intervals(
    numbers: Mapping[str, float], design: inference.Network, draws: inference.Draws, level: float
) -> dict[str, Any]:
    """`<name>_low` and `<name>_high` of the five numbers."""
    out: dict[str, Any] = {}
    spread = dict(zip(NUMBERS[:3], draws.errors, strict=True), mu=draws.mu, eta=draws.eta)
    contexts, _ = design.contexts()
    for name in NUMBERS:
        ends = inference.interval(numbers[name], spread[name], contexts, level)
        low, high = (float(np.clip(end, 0, 1)) for end in ends)
        out |= {f"{name}_low": low, f"{name}_high": high}
    return out


def _floors(design: inference.Network, groups: Codes | None, how: Sampling) -> dict[str, Any]:
    """`<name>_floor`, `<name>_floor_p95` and `<name>_p` of mu and eta.

    Where pairs join two groups, names are samples of these and the floor is what names alone give.
    """
    draw = {"samples": how.resamples, "seed": how.seed}
    links = design.links
    found: NoiseFloor | Floors
    if groups is not None and (groups[links.first] != groups[links.second]).any():
        found = name_floors(design, METRICS, **draw)
    else:
        found = inference.noise_floors(design, METRICS, **draw)
    means, ends, chances = (np.asarray(part) for part in (found.mean, found.p95, found.p))
    out: dict[str, Any] = {"floor_reason": found.reason or None}
    for k, name in enumerate(("mu", "eta")):
        out |= {
            f"{name}_floor": float(means[k]),
            f"{name}_floor_p95": float(ends[k]),
            f"{name}_p": float(chances[k]),
        }
    return out


def pairs_of(cells: Cells, kept: npt.NDArray[np.bool_]) -> inference.Pairs:
    """The complete cells as comparisons and errors."""
    scores = cells.scores[kept]
    errors = np.stack(
        [
            unqover.positional_error(scores),
            unqover.attribute_error(scores),
            scores.mean(axis=(1, 2, 3)),
        ],
        axis=1,
    )
    alike = np.zeros(len(cells.terms), np.int64)
    return inference.Pairs(
        comparative=unqover.comparative(scores),
        first=cells.first[kept],
        second=cells.second[kept],
        attribute=cells.attribute[kept],
        template=cells.template[kept],
        errors=errors,
        n_terms=len(cells.terms),
        n_attributes=len(cells.attributes),
        n_templates=len(cells.templates),
        stratum=alike if cells.group_of_term is None else cells.group_of_term,
    )


def _term_rows(
    cells: Cells, design: inference.Network, draws: Floats, level: float, test: dict[str, int]
) -> list[Lean]:
    """Rows of gamma(x, a), or of gamma(x) when the draws have no attribute axis."""
    by_attribute = draws.ndim == 3
    table = design.preferences(by_attribute=by_attribute)
    links = design.links
    ends = np.stack([links.first, links.second])
    p = inference.flip_p(links, ends, ends[::-1], design.n_terms, by_attribute=by_attribute, **test)
    names = [(term,) for term in cells.terms]
    if by_attribute:
        names = [(term, a) for term in cells.terms for a in cells.attributes]  # type: ignore[misc]
    contexts = table.n if by_attribute else design.contexts()[1]
    drawn = draws.reshape(table.gamma.size, -1)
    spans = inference.interval(table.gamma.ravel(), drawn, contexts.ravel(), level)
    return _rows(("term", "attribute"), names, table, spans, p)


def _group_rows(cells: Cells, design: inference.Network, groups: Codes, level: float) -> list[Lean]:
    """Rows of gamma(group, a) over the cells between different groups.

    Names on both sides are samples: p and interval come from one variance over both
    (`stats.mixed`), so that they agree.
    """
    table = design.group_preferences(groups, len(cells.groups))
    links = design.links
    across = groups[links.first] != groups[links.second]
    if not across.any():
        return []
    shape = len(cells.groups), len(cells.attributes)
    ends = np.full((2, *shape), np.nan)
    p = np.full(shape, np.nan)
    for k in range(shape[0]):
        for a, found in _over_names(links, groups, k, table.gamma[k], level):
            ends[:, k, a], p[k, a] = (found.low, found.high), found.p
    names = [(group, a) for group in cells.groups for a in cells.attributes]
    return _rows(("group", "attribute"), names, table, ends.reshape(2, -1), p.ravel())


def _over_names(
    links: inference.Links, groups: Codes, group: int, gamma: Floats, level: float
) -> Iterator[tuple[int, Estimate]]:
    """Each attribute's gamma of one group, over its names and those they met."""
    mean = links.sums[0] / links.sums[2]
    sides = [(links.first, links.second, 1.0), (links.second, links.first, -1.0)]
    parts = []
    for own, other, sign in sides:
        kept = (groups[own] == group) & (groups[other] != group)
        parts.append((own[kept], other[kept], links.attribute[kept], sign * mean[kept]))
    own, other, attribute, value = (np.concatenate(part) for part in zip(*parts))
    met, pair = np.unique(np.stack([own, other]), axis=1, return_inverse=True)
    values = np.full((met.shape[1], len(gamma)), np.nan)
    values[pair.ravel(), attribute] = value
    known = ~np.isnan(values)
    # Attributes that the same pairs were asked about share their design.
    for rows in np.unique(known.T, axis=0):
        if rows.sum() < 2:
            continue
        made = Design([Factor(met[0, rows]), Factor(met[1, rows])])
        here = np.flatnonzero((rows == known.T).all(axis=1))
        for a, e in zip(here, made.estimates(values[rows][:, here])):
            units = min(made.levels)
            yield int(a), estimate(float(gamma[a]), e.error, e.freedom, units=units, level=level)


def _rows(
    keys: tuple[str, ...],
    names: list[Any],
    table: unqover.Preferences,
    ends: Floats | tuple[Floats, Floats],
    p: Floats,
) -> list[Lean]:
    gamma, eta, n = table.gamma.ravel(), table.eta.ravel(), table.n.ravel()
    low, high = (np.clip(end, -1, 1) for end in ends)
    q = benjamini_hochberg(p)
    return [
        Lean(
            **dict(zip(keys, names[k], strict=False)),
            gamma=float(gamma[k]),
            eta=float(eta[k]),
            n=int(n[k]),
            low=float(low[k]),
            high=float(high[k]),
            p=float(p[k]),
            q=float(q[k]),
            reason="one partner and one template: no interval" if np.isnan(low[k]) else None,
        )
        for k in np.flatnonzero(n > 0)[np.argsort(-gamma[n > 0], kind="stable")]
    ]


def coverage(cells: Cells, kept: npt.NDArray[np.bool_]) -> Coverage:
    """How many cells are complete, and what the first of the others lack."""
    lost = np.flatnonzero(~kept)
    which = []
    for k in lost[:LISTED]:
        gone = np.isnan(cells.scores[k]).any(axis=-1)
        pair = cells.terms[cells.first[k]], cells.terms[cells.second[k]]
        inputs = [
            MissingInput(pair[order], pair[1 - order], bool(question))
            for order, question in np.argwhere(gone)
        ]
        template = cells.templates[cells.template[k]]
        which.append(Incomplete(template, cells.attributes[cells.attribute[k]], inputs))
    return Coverage(
        cells.n_rows,
        len(kept),
        int(kept.sum()),
        len(lost),
        which,
        len(which),
        len(cells.terms),
        len(cells.attributes),
        len(cells.templates),
    )

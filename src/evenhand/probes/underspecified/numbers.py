"""UnQover's numbers with intervals, noise floors and tests, from cells that need not be held.

Cells are summed as they arrive, so that memory does not grow with their number.

    sums = CellSums(names, Sampling(resamples=500, seed=0))
    for block in blocks:              # Cells of whole pairs, in any order
        sums.add(block)
    result = sums.measure()
    result = measure_cells(cells)     # the same of cells in one block

Held: weighed sums [terms, attributes, draws] and one sum per link (pair of terms and attribute).
Weights are drawn as by Owen (2007), terms and templates as crossed samples: a cell weighs
w(template) * w(partner) in gamma(x, a), and w(template) * w(first) * w(second) in the means over
cells and in gamma of a group. In mu and eta each term weighs w(term); which attribute is the
extreme one, and its sign, stay as observed, since replicates of a maximum of absolute values would
add their own noise to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.compare.sums import Sums
from evenhand.metrics import unqover
from evenhand.probes.reading import Result, Shown, number, span
from evenhand.probes.shared.reach import out_of_reach
from evenhand.probes.underspecified.design import Cells
from evenhand.stats import pair_network as inference
from evenhand.stats.estimate import NAN, Estimate, estimate
from evenhand.stats.mixed import Design, Factor
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.name_floors import Floors, name_floors
from evenhand.stats.noise import NoiseFloor
from evenhand.stats.pair_network import Codes, Floats
from evenhand.strict import INLINE, OPTIONAL

FLOORED = {"mu": unqover.intensity, "eta": unqover.consistency}
"""Numbers that noise alone makes larger than 0, from a table of gamma and one of eta."""
WHOLE = ("delta", "epsilon", "mean_score", *FLOORED)
"""The numbers about a model as a whole."""
VALUES = (*WHOLE, *(f"{name}_{end}" for name in WHOLE for end in ("low", "high")))
FLOORS = tuple(f"{name}_{end}" for name in FLOORED for end in ("floor", "floor_p95", "p"))
NUMBERS = (*VALUES, *FLOORS)
"""Every number about a model as a whole, by the name that results, runs and comparisons have."""
LISTED = 20
DRAWS_AT_ONCE = 64


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
class Coverage:
    """How many cells are complete, and what the first of the others lack.

    A cell of `which` has template, attribute and its missing rows (first, second, negated).
    """

    n_rows: int
    n_cells_found: int
    n_complete: int
    n_missing: int
    which: Sequence[Mapping[str, Any]]
    which_listed: int
    n_terms: int
    n_attributes: int
    n_templates: int


@dataclass(frozen=True, kw_only=True)
class PreferencesResult(Result):
    """All numbers of a table of scores; an undefined one is NaN, and `reason` says why.

    The numbers of NUMBERS are attributes: `result.mu`, `result.mu_low`. mu and eta have a floor:
    what they read for a model that prefers neither term; where terms have groups, what its liking
    for single names gives whatever their group (`stats.name_floors`), or `floor_reason` why that
    cannot be told. The lists have the highest gamma first; `gamma_group` is there when terms have
    groups. `reach` says when no q could be small.
    """

    measure: ClassVar[str] = "underspecified"

    n_cells: int
    values: Mapping[str, float] = field(metadata=INLINE)
    reason: str | None = field(default=None, metadata=OPTIONAL)
    floors: Mapping[str, float] = field(metadata=INLINE)
    floor_reason: str | None = field(default=None, metadata=OPTIONAL)
    gamma: Sequence[Lean] = ()
    gamma_term: Sequence[Lean] = ()
    gamma_group: Sequence[Lean] | None = field(default=None, metadata=OPTIONAL)
    flips: unqover.Flips | None = field(default=None, metadata=OPTIONAL)
    reach: str | None = field(default=None, metadata=OPTIONAL)
    coverage: Coverage
    settings: Sampling

    def __getattr__(self, name: str) -> float:
        """A number about the model as a whole."""
        if name not in NUMBERS:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        return self.floors[name] if name in FLOORS else self.values[name]

    @property
    def lists(self) -> dict[str, Sequence[Lean]]:
        """The lists of leans by name."""
        return {n: getattr(self, n) or () for n in ("gamma", "gamma_term", "gamma_group")}

    def shown(self) -> Iterator[Shown]:
        numbers = [
            [
                name,
                number(self.values[name], ".4f"),
                span(self.values[f"{name}_low"], self.values[f"{name}_high"], ".4f"),
                *(number(self.floors.get(f"{name}_{end}", NAN), ".4f") for end in ("floor", "p")),
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
        who = "group" if self.gamma_group else "term"
        yield Shown(
            f"Preferences, strongest at both ends ({len(rows)} in all; positive: preferred)",
            [who, "attribute", "gamma", "95 % interval", "q", "n"],
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


@dataclass(frozen=True)
class SummedLinks(inference.Links):
    """Links whose templates are summed already."""

    totals: tuple[Floats, Floats, Floats] = (np.empty(0), np.empty(0), np.empty(0))

    @property
    def sums(self) -> tuple[Floats, Floats, Floats]:
        return self.totals


@dataclass(frozen=True)
class SummedPairs:
    """A pair design of which only the links are left (see `pairs.Network`)."""

    links: inference.Links
    n_terms: int
    n_attributes: int
    met: Codes
    """Different (pair, template) combinations of each term."""

    def contexts(self) -> tuple[int, Codes]:
        return int(self.met.sum()) // 2, self.met

    def preferences(self, *, by_attribute: bool) -> unqover.Preferences:
        ends = self.links.first, self.links.second
        if by_attribute:
            return self.regrouped(*ends, self.links.attribute, (self.n_terms, self.n_attributes))
        found = self.regrouped(*ends, np.zeros_like(self.links.attribute), (self.n_terms, 1))
        return unqover.Preferences(found.gamma[:, 0], found.eta[:, 0], found.n[:, 0])

    def group_preferences(self, groups: Codes, n_groups: int) -> unqover.Preferences:
        ends = groups[self.links.first], groups[self.links.second]
        size = n_groups, self.n_attributes
        return self.regrouped(*ends, self.links.attribute, size, across=True)

    def regrouped(
        self,
        first: Codes,
        second: Codes,
        attribute: Codes,
        size: tuple[int, int],
        *,
        across: bool = False,
    ) -> unqover.Preferences:
        """gamma and eta with the ends and attributes of links joined to larger classes.

        `across` leaves out links within a class.
        """
        sums = [part * (first != second) if across else part for part in self.links.sums]
        ends = [end * size[1] + attribute for end in (first, second)]
        plus = [
            [
                np.asarray(np.bincount(end, part, minlength=size[0] * size[1]), np.float64)
                for part in sums
            ]
            for end in ends
        ]
        n = np.round(plus[0][2] + plus[1][2]).astype(np.int64)
        gamma, eta = (
            inference.ratio(plus[0][k] - plus[1][k], n.astype(np.float64)) for k in range(2)
        )
        return unqover.Preferences(gamma.reshape(size), eta.reshape(size), n.reshape(size))


class CellSums:
    """Running sums over blocks of cells.

    Args:
        names: terms, attributes, templates and groups, as `Cells` without cells.
        how: draws of intervals and tests.
    """

    def __init__(self, names: Cells, how: Sampling | None = None) -> None:
        self.names = names
        self.how = how or Sampling()
        resamples = self.how.resamples
        self.size = len(names.terms), len(names.attributes)
        groups = names.group_of_term
        stratum = np.zeros(self.size[0], np.int64) if groups is None else groups
        rng = np.random.default_rng(self.how.seed)
        self._terms = inference.sample_weights(rng, stratum, resamples)
        blank = np.zeros(len(names.templates), np.int64)
        self._templates = inference.sample_weights(rng, blank, resamples)
        rows = self.size[0] * self.size[1]
        self._weighed = [np.zeros((rows, resamples)) for _ in range(3)]
        self._n_groups = 0 if groups is None else int(groups.max()) + 1
        self._by_group = [np.zeros((self._n_groups * self.size[1], resamples)) for _ in range(2)]
        self._errors = np.zeros((4, resamples))
        self._means = np.zeros(3)
        self._met = np.zeros(self.size[0], np.int64)
        self._flips = np.zeros(4, np.int64)
        self._links = Sums(3)  # C, sgn C, cells
        self._counts = np.zeros(3, np.int64)  # rows, cells, complete cells
        self._missing: list[dict[str, Any]] = []

    def add(self, block: Cells) -> None:
        """Add cells; all cells of a pair of terms must come in the same block."""
        kept = block.kept()
        self._counts += (block.n_rows, len(kept), int(kept.sum()))
        self._missing += incomplete(block, kept, LISTED - len(self._missing))
        if not kept.any():
            return
        pairs = pairs_of(block, kept)
        self._means += pairs.errors.sum(axis=0)
        counted = unqover.flips(block.scores[kept])
        self._flips += [getattr(counted, name) for name in counted.__slots__]
        self._met += pairs.contexts()[1]
        links = pairs.links
        key = (links.first * self.size[0] + links.second) * self.size[1] + links.attribute
        self._links.add(key, np.stack(links.sums, axis=1))
        self._weigh(links)
        self._weigh_errors(pairs)

    def _weigh(self, links: inference.Links) -> None:
        """Add the links to the weighed sums of both ends and of their groups."""
        groups = self.names.group_of_term
        ends = [_Onto(end * self.size[1] + links.attribute) for end in (links.first, links.second)]
        sides: list[_Onto] = []
        if groups is not None:
            across = (groups[links.first] != groups[links.second]).astype(np.float64)
            sides = [
                _Onto(groups[end] * self.size[1] + links.attribute, across)
                for end in (links.first, links.second)
            ]
        for start in range(0, self._templates.shape[1], DRAWS_AT_ONCE):
            part = slice(start, start + DRAWS_AT_ONCE)
            w = self._terms[:, part]
            c, sign, n = (matrix @ self._templates[:, part] for matrix in links.by_template)
            near, far = w[links.second], w[links.first]
            for target, value, way in zip(self._weighed, (c, sign, n), (-1, -1, 1), strict=True):
                ends[0].add(target, part, value * near)
                ends[1].add(target, part, way * value * far)
            if sides:
                both = near * far
                for target, value, way in zip(self._by_group, (c, n), (-1, 1), strict=True):
                    sides[0].add(target, part, value * both)
                    sides[1].add(target, part, way * value * both)

    def _weigh_errors(self, pairs: inference.Pairs) -> None:
        key = (pairs.first * pairs.n_terms + pairs.second) * pairs.n_templates + pairs.template
        known, code = np.unique(key, return_inverse=True)
        pair, template = np.divmod(known, pairs.n_templates)
        first, second = np.divmod(pair, pairs.n_terms)
        columns = (*pairs.errors.T, np.ones(len(code)))
        sums = np.stack([np.bincount(code, column) for column in columns])
        w = self._terms[first] * self._terms[second] * self._templates[template]
        self._errors += np.einsum("kg,gd->kd", sums, w)

    def pairs(self) -> SummedPairs:
        """The links so far, in the order of their terms and attributes."""
        key, (c, sign, n) = (part.T for part in self._links.joined())
        pair, attribute = np.divmod(key, self.size[1])
        first, second = (code.astype(np.int32) for code in np.divmod(pair, self.size[0]))
        links = SummedLinks(first, second, attribute.astype(np.int32), (), *self.size, (c, sign, n))
        return SummedPairs(links, *self.size, self._met)

    def measure(self) -> PreferencesResult:
        """All numbers with intervals, noise floors and tests."""
        how, names, groups = self.how, self.names, self.names.group_of_term
        coverage = self._coverage()
        if not coverage.n_complete:
            return PreferencesResult(
                n_cells=0,
                values=dict.fromkeys(VALUES, NAN),
                floors=dict.fromkeys(FLOORS, NAN),
                reason="no cell has both orders and both questions",
                coverage=coverage,
                settings=how,
            )
        pairs = self.pairs()
        seen = pairs.preferences(by_attribute=True)
        means = (self._means / coverage.n_complete).tolist()
        extremes = unqover.intensity(seen.gamma), unqover.consistency(seen.eta)
        values = np.asarray([*means, *extremes])
        draws = self.draws(seen)
        contexts, _ = pairs.contexts()
        spread = np.stack([*draws.errors, draws.mu, draws.eta])
        ends = np.clip(inference.interval(values, spread, contexts, how.level), 0, 1)
        by_term = _term_rows(names, pairs, draws.gamma, how)
        met = np.unique(np.stack([pairs.links.first, pairs.links.second]), axis=1)
        least = max(2.0 ** (1 - int(np.bincount(met.ravel()).max())), 1 / (how.samples + 1))
        reach = out_of_reach(least, len(by_term)) if groups is None else ""
        floors, floor_reason = _floors(pairs, groups, how)
        return PreferencesResult(
            n_cells=coverage.n_complete,
            values=dict(zip(VALUES, [*values.tolist(), *ends.T.ravel().tolist()], strict=True)),
            reason="one pair of terms and one template: no interval" if contexts < 2 else None,
            floors=floors,
            floor_reason=floor_reason or None,
            gamma=by_term,
            gamma_term=_term_rows(names, pairs, draws.gamma_term, how),
            gamma_group=None if groups is None else _group_rows(names, pairs, groups, how.level),
            flips=unqover.Flips(*self._flips.tolist()),
            reach=reach or None,
            coverage=coverage,
            settings=how,
        )

    def draws(self, seen: unqover.Preferences) -> inference.Draws:
        """The replicates; the weighed sums make room for them on the way."""
        draws = self._errors.shape[1]
        total, signs, count = self._weighed
        gamma = total.reshape(*self.size, draws)  # taken over in place, chunk by chunk
        c, n = self._by_group
        group = inference.ratio(c, n).reshape(self._n_groups, self.size[1], draws)
        out = inference.Draws(
            gamma,
            np.empty((self.size[0], draws)),
            group,
            np.empty(draws),
            np.empty(draws),
            self._errors[:3] / self._errors[3],
        )
        for start in range(0, draws, inference.CHUNK):
            part = slice(start, min(start + inference.CHUNK, draws))
            cut = (a[:, part].reshape(*self.size, -1).copy() for a in (total, signs, count))
            inference.fill_draws(out, seen, part, self._terms[:, part], *cut)
        self._weighed = []
        return out

    def _coverage(self) -> Coverage:
        rows, cells, complete = self._counts.tolist()
        listed = self._missing, len(self._missing)
        sizes = *self.size, len(self.names.templates)
        return Coverage(rows, cells, complete, cells - complete, *listed, *sizes)


def measure_cells(cells: Cells, how: Sampling | None = None) -> PreferencesResult:
    """All numbers of cells in memory, as one block."""
    sums = CellSums(cells, how)
    sums.add(cells)
    return sums.measure()


def mu_error(cells: Cells, *, resamples: int = 200, seed: int = 0) -> float:
    """How far mu may be off: its standard error and its upward bias, squared and added; or NaN.

    The standard error is a quarter of the width of mu's 95 % interval, near enough. The bias is
    what mu loses when its noise floor is taken off in squares: terms that met one partner each
    have a narrow interval around a mu that is all noise. No test is run, so a sampled design can
    ask again and again.
    """
    if not cells.kept().any():
        return float("nan")
    sums = CellSums(cells, Sampling(resamples, seed=seed))
    sums.add(cells)
    pairs = sums.pairs()
    seen = inference.observed(pairs)
    mu = unqover.intensity(seen.gamma)
    low, high = inference.interval(mu, sums.draws(seen).mu, pairs.contexts()[0])
    floors = inference.noise_floors(pairs, [*FLOORED.values()], samples=resamples, seed=seed)
    floor = float(np.asarray(floors.mean)[0])
    bias = mu - float(np.sqrt(max(mu**2 - floor**2, 0.0)))
    return float(np.hypot((high - low) / 3.92, bias))


class _Onto:
    """Adds rows of a block to the rows of a larger table that they belong to."""

    def __init__(self, rows: Codes, weights: Floats | None = None) -> None:
        self.rows, code = np.unique(rows, return_inverse=True)
        ones = np.ones(len(rows)) if weights is None else weights
        columns = np.arange(len(rows))
        self.matrix = inference.sparse(ones, code, columns, (len(self.rows), len(rows)))

    def add(self, target: Floats, part: slice, values: Floats) -> None:
        target[self.rows, part] += self.matrix @ values


def _floors(
    design: inference.Network, groups: Codes | None, how: Sampling
) -> tuple[dict[str, float], str]:
    """The numbers of FLOORS, and why they are unknown.

    Where pairs join two groups, names are samples of these and the floor is what names alone give.
    """
    draw = {"samples": how.resamples, "seed": how.seed}
    links, metrics = design.links, [*FLOORED.values()]
    found: NoiseFloor | Floors
    if groups is not None and (groups[links.first] != groups[links.second]).any():
        found = name_floors(design, metrics, **draw)
    else:
        found = inference.noise_floors(design, metrics, **draw)
    by_number = np.stack([np.asarray(p, float) for p in (found.mean, found.p95, found.p)], axis=1)
    return dict(zip(FLOORS, by_number.ravel().tolist(), strict=True)), found.reason


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


def _term_rows(cells: Cells, design: inference.Network, draws: Floats, how: Sampling) -> list[Lean]:
    """Rows of gamma(x, a), or of gamma(x) when the draws have no attribute axis."""
    by_attribute = draws.ndim == 3
    table = design.preferences(by_attribute=by_attribute)
    links = design.links
    ends = np.stack([links.first, links.second])
    test = {"samples": how.samples, "seed": how.seed}
    p = inference.flip_p(links, ends, ends[::-1], design.n_terms, by_attribute=by_attribute, **test)
    names = [{"term": term} for term in cells.terms]
    if by_attribute:
        names = [{**name, "attribute": a} for name in names for a in cells.attributes]
    contexts = table.n if by_attribute else design.contexts()[1]
    drawn = draws.reshape(table.gamma.size, -1)
    spans = inference.interval(table.gamma.ravel(), drawn, contexts.ravel(), how.level)
    return _rows(names, table, spans, p)


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
    names = [{"group": group, "attribute": a} for group in cells.groups for a in cells.attributes]
    return _rows(names, table, ends.reshape(2, -1), p.ravel())


def _over_names(
    links: inference.Links, groups: Codes, group: int, gamma: Floats, level: float
) -> Iterator[tuple[int, Estimate]]:
    """Each attribute's gamma of one group, over its names and those they met."""
    mean = links.sums[0] / links.sums[2]
    ends = np.concatenate([[links.first, links.second], [links.second, links.first]], axis=1)
    kept = (groups[ends[0]] == group) & (groups[ends[1]] != group)
    met, pair = np.unique(ends[:, kept], axis=1, return_inverse=True)
    values = np.full((met.shape[1], len(gamma)), np.nan)
    values[pair.ravel(), np.tile(links.attribute, 2)[kept]] = np.concatenate([mean, -mean])[kept]
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
    names: Sequence[Mapping[str, str]],
    table: unqover.Preferences,
    ends: Floats | tuple[Floats, Floats],
    p: Floats,
) -> list[Lean]:
    gamma, eta, n = table.gamma.ravel(), table.eta.ravel(), table.n.ravel()
    low, high = (np.clip(end, -1, 1) for end in ends)
    q = benjamini_hochberg(p)
    return [
        Lean(
            **names[k],
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


def incomplete(cells: Cells, kept: npt.NDArray[np.bool_], most: int) -> list[dict[str, Any]]:
    """The first cells that lack rows, and what they lack."""
    which = []
    for k in np.flatnonzero(~kept)[:most]:
        gone = np.isnan(cells.scores[k]).any(axis=-1)
        pair = cells.terms[cells.first[k]], cells.terms[cells.second[k]]
        missing = [
            {"first": pair[order], "second": pair[1 - order], "negated": bool(question)}
            for order, question in np.argwhere(gone)
        ]
        template = cells.templates[cells.template[k]]
        attribute = cells.attributes[cells.attribute[k]]
        which.append({"template": template, "attribute": attribute, "missing": missing})
    return which

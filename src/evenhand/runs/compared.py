"""Runs of the same questions side by side: what a comparison holds, before it is laid out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evenhand.charts.base import Drawn, Listing
from evenhand.errors import need
from evenhand.runs.controls import headline, with_left_out
from evenhand.runs.finding import NAN, Finding

if TYPE_CHECKING:
    from evenhand.charts.standalone import Plots

Row = dict[str, Any]
BETTER, WORSE, SAME, UNCLEAR = "better", "worse", "same", "cannot tell"
ORDER = (WORSE, BETTER, UNCLEAR, SAME)
"""Verdicts as a reader wants them."""


@dataclass(frozen=True)
class Part:
    """What one probe adds to a comparison, beside findings and items.

    Attributes:
        key: the list of the JSON contract that the part belongs to.
        label: the entry of the suite it is about.
        data: the part as plain values.
        drawn: its charts and tables for the page.
        brief: its table for the terminal.
    """

    key: str
    label: str
    data: Mapping[str, Any]
    drawn: tuple[Drawn, ...] = ()
    brief: Listing | None = None


@dataclass(frozen=True)
class ItemChange:
    """One number of a probe's items, paired item by item.

    Attributes:
        n, coverage: items known in both runs, and their share.
        before, after, change, p, q: means, and the paired test of their difference.
        size_before ... q_size: the same of |x|; the interval is of the change of size.
        verdict: smaller, larger, or no difference detected.
    """

    probe: str
    number: str
    n: int
    coverage: float
    before: float = NAN
    after: float = NAN
    change: float = NAN
    p: float = NAN
    size_before: float = NAN
    size_after: float = NAN
    size_change: float = NAN
    p_size: float = NAN
    size_low: float = NAN
    size_high: float = NAN
    reason: str = ""
    q: float = NAN
    q_size: float = NAN
    verdict: str = ""


@dataclass(frozen=True)
class Decision:
    """What became of the harm behind one finding, paired on the same items.

    Attributes:
        finding, probe: which.
        verdict: better, worse, same or cannot tell.
        before, after, change: distances from the ideal, and their paired difference.
        low, high: the 95 % interval of the change.
        margin: the growth that matters (NaN: none is set).
        p, q: of growth or fall, whichever is clearer, and over the whole run.
        p_within: p that harm grew by the margin or more.
        detectable: the change that would have been seen in 80 of 100 such comparisons.
        n, units: how many units, of what.
        needed: how many would tell where nothing can be told; None elsewhere.
        whom: who is worse (better) off.
        sentence, reason: in words, and why a change is undefined.
    """

    finding: str
    probe: str
    verdict: str
    before: float
    after: float
    change: float
    low: float = NAN
    high: float = NAN
    margin: float = NAN
    p: float = NAN
    q: float = NAN
    p_within: float = NAN
    detectable: float = NAN
    n: int = 0
    units: str = ""
    needed: int | None = None
    whom: str = ""
    sentence: str = ""
    reason: str = ""


@dataclass(frozen=True)
class FindingChange:
    """A finding of both runs: `status` is persisted, gone, appeared or not detected."""

    finding: str
    status: str
    before: float
    after: float
    distance_before: float
    distance_after: float
    q_before: float
    q_after: float
    sentence: str


@dataclass(frozen=True)
class Across:
    """One finding in every run; None where a run does not have it."""

    finding: str
    found: tuple[Finding | None, ...]

    def as_row(self, names: Sequence[str]) -> Row:
        """A value and an interval per run, as in the JSON contract."""
        row: Row = {"finding": self.finding}
        for name, f in zip(names, self.found):
            row[name] = f.value if f else None
            row[f"{name} interval"] = f"{f.low:.3f} to {f.high:.3f}" if f else "-"
        return row


@dataclass(frozen=True, repr=False)
class Change:
    """A later run against the first: verdicts, findings, paired items, parts of probes.

    `stands` says whether the model still does what it is asked, behaviour by behaviour; `reason`
    why items could not be paired, empty when they were.
    """

    before: str
    after: str
    findings: tuple[FindingChange, ...]
    items: tuple[ItemChange, ...] = ()
    parts: tuple[Part, ...] = ()
    reason: str = ""
    decisions: tuple[Decision, ...] = ()
    stands: tuple[Row, ...] = ()
    cannot_judge: Mapping[str, str] = field(default_factory=dict)
    """Probes that cannot judge one of the two models, with the reason."""

    @property
    def verdict(self) -> str:
        """All findings in one word: worse where any is, better where any is and none is worse,
        same where all are."""
        found = {d.verdict for d in self.decisions if d.probe not in self.cannot_judge}
        if found == {SAME}:
            return SAME
        return next((v for v in (WORSE, BETTER) if v in found), UNCLEAR)

    def of(self, verdict: str) -> list[Decision]:
        """The decisions with this verdict, the largest changes (in margins) first."""
        own = [d for d in self.decisions if d.verdict == verdict]
        size = {d.finding: abs(d.change) / (d.margin if d.margin > 0 else 1.0) for d in own}
        return sorted(own, key=lambda d: -size[d.finding])

    @property
    def headline(self) -> str:
        """The verdict with its counts, and whether the model still does what it is asked."""
        judged = sum(d.probe not in self.cannot_judge for d in self.decisions)
        if self.cannot_judge and not judged:
            return headline(self.cannot_judge)
        if not self.decisions:
            return "Cannot tell: no finding could be paired."
        counts = ", ".join(f"{len(own)} {v}" for v in ORDER if (own := self.of(v)))
        told = f"{self.verdict.capitalize()}: of {len(self.decisions)} findings, {counts}."
        broken = [str(row["what"]) for row in self.stands if row["verdict"] == "broken"]
        if broken:
            told += f" The model no longer does what it is asked to do ({'; '.join(broken)})."
        return with_left_out(told, self.cannot_judge)

    def __repr__(self) -> str:
        return f"{self.after} against {self.before}: {self.headline}"

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract of one change."""
        reason: Row = {"reason": self.reason} if self.reason else {}
        if self.cannot_judge:
            reason["cannot_judge"] = dict(self.cannot_judge)
        return {
            "before": self.before,
            "after": self.after,
            "verdict": self.verdict,
            "headline": self.headline,
            "decisions": [vars(d) for d in self.decisions],
            "stands": list(self.stands),
            "items": [vars(i) for i in self.items],
            **listed(self.parts),
            "findings": [vars(f) for f in self.findings],
            **reason,
        }


@dataclass(frozen=True, repr=False)
class Comparison:
    """Several runs of one suite: every finding of each, what changed, and parts of probes.

    Attributes:
        runs: the folders, the first is what the others are compared with.
        names: what each run is called.
        findings: every finding about the compared models.
        rate: the suite's false-discovery rate.
    """

    runs: tuple[str, ...]
    names: tuple[str, ...]
    findings: tuple[Across, ...]
    changes: tuple[Change, ...]
    rate: float
    parts: tuple[Part, ...] = ()

    @property
    def verdict(self) -> str:
        """Of the last run against the first."""
        return self.changes[-1].verdict

    def rows(self) -> list[Row]:
        """Every finding with a value and an interval per run."""
        return [across.as_row(self.names) for across in self.findings]

    def to_pandas(self) -> Any:
        """What became of every finding, one row each, in every later run (extra `pandas`)."""
        pandas = need("pandas", extra="pandas", what="a data frame of decisions")
        rows = [{"run": c.after, **vars(d)} for c in self.changes for d in c.decisions]
        return pandas.DataFrame(rows)

    def plot(self, what: str = "*", *, mode: str = "light") -> Plots:
        """What moved, as charts; by title, with * for anything."""
        from evenhand.runs.compared_drawing import plots_of

        return plots_of(self, what, mode=mode)

    def __repr__(self) -> str:
        return f"Comparison of {', '.join(self.names)}: {' '.join(map(str, self.changes))}"

    def _repr_html_(self) -> str:
        from evenhand.runs.html import comparison_page

        return comparison_page(self)

    def as_dict(self) -> dict[str, Any]:
        """The JSON contract (`evenhand compare --json`)."""
        return {
            "runs": list(self.runs),
            "names": list(self.names),
            "findings": self.rows(),
            **listed(self.parts),
            "changes": [c.as_dict() for c in self.changes],
        }


def listed(parts: tuple[Part, ...]) -> dict[str, list[Any]]:
    """Parts by their key, in order.

    >>> listed((Part("views", "a", {"x": 1}), Part("views", "b", {"x": 2})))
    {'views': [{'x': 1}, {'x': 2}]}
    """
    found: dict[str, list[Any]] = {}
    for part in parts:
        found.setdefault(part.key, []).append(dict(part.data))
    return found

"""Findings: one row per claim, with everything needed to believe or doubt it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any

import pyarrow as pa

from evenhand.errors import SpecError, need, unknown
from evenhand.opening import once
from evenhand.strict import SameValues, plain

NAN = float("nan")
FORMAT = 1
KINDS: Mapping[str, tuple[type, ...]] = {
    "str": (str,),
    "float": (int, float),
    "int": (int,),
    "bool": (bool,),
    "bool | None": (bool, type(None)),
    "Mapping[str, Any]": (dict,),
    "tuple[str, ...]": (list,),
    "tuple[Mapping[str, Any], ...]": (list,),
}
"""What JSON holds for each kind of field."""


@dataclass(frozen=True, eq=False)
class Finding(SameValues):
    """A measured number, how sure it is, and what it says in one plain sentence.

    Attributes:
        id: stable name of the claim within a run, e.g. `underspecified/gamma/nurse`.
        probe, metric: where it comes from.
        value, low, high: the number and the interval (at `level`) of that same number.
        p, q: p value, and after correction over the family.
        n: independent units behind the number; `units` says of what (pairs, words, contexts).
        coverage: share of what was planned that could be used.
        groups: the groups compared; a positive value leans to the first.
        attribute: what was associated with them.
        ideal: the value of a model without a preference.
        floor: what noise alone gives for maxima and absolute values (NaN: not such a number).
        detectable: the smallest effect that this run would have seen in 80 of 100 cases.
        detected: q below the run's false-discovery rate; None when it is no test.
        sentence: the claim in words.
        reason: why a value is undefined.
        method: how interval and p were obtained.
        as_published: whether the released code's rules were followed instead of the sound ones.
        examples: typical items behind it, labelled; none where nothing was detected.
        control: it checks the method on something that everybody agrees on, not on people.
        placebo: a comparison that must find nothing.
        counts: whether it counts for or against the audited model (`runs.counting`).
        harm: who is worse off and how; empty for a difference without direction.
        difference: what a detected difference without a `harm` says; empty elsewhere.
        margin: the distance from the ideal that matters (NaN: none is set).
        units: what `n` counts.
        generalises_over: the factors that were sampled, so that the claim reaches beyond them.
        error, freedom: standard error of the value and the degrees of freedom of its t.
        level: of the interval; higher than 0.95 where the finding was picked among many.
        otherwise: the sentence when nothing is detected; empty once the verdict is known.
        shrunken: the value of a detected finding, corrected for selection
            (`stats.shrinkage`); NaN elsewhere.
        caution: why the size of a detected finding is doubtful; empty elsewhere.
    """

    id: str
    probe: str
    metric: str
    value: float
    sentence: str
    low: float = NAN
    high: float = NAN
    p: float = NAN
    q: float = NAN
    n: int = 0
    coverage: float = 1.0
    groups: tuple[str, ...] = ()
    attribute: str = ""
    model: str = ""
    ideal: float = 0.0
    floor: float = NAN
    detectable: float = NAN
    detected: bool | None = None
    reason: str = ""
    method: str = ""
    as_published: bool = False
    examples: tuple[Mapping[str, Any], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    control: bool = False
    placebo: bool = False
    counts: bool = False
    harm: str = ""
    difference: str = ""
    margin: float = NAN
    units: str = ""
    generalises_over: tuple[str, ...] = ()
    error: float = NAN
    freedom: float = NAN
    level: float = 0.95
    otherwise: str = ""
    shrunken: float = NAN
    caution: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values; undefined numbers become null."""
        return {name: plain(value) for name, value in asdict(self).items()}

    def _repr_html_(self) -> str:
        from evenhand.runs.html import finding_page

        return finding_page(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Finding:
        """Read back what `as_dict` wrote; unknown keys of newer versions are left out."""
        known = {f.name: f for f in fields(cls)}
        values = {k: v for k, v in row.items() if k in known}
        for name, spec in known.items():
            if spec.type == "float" and values.get(name, 0.0) is None:
                values[name] = NAN
            if name in values and not isinstance(values[name], accepted := KINDS[str(spec.type)]):
                raise TypeError(f"{name!r} of a finding is {values[name]!r:.60}")
            if isinstance(values.get(name), bool) and bool not in accepted:
                raise TypeError(f"{name!r} of a finding is {values[name]!r}")
        for name in ("groups", "examples", "generalises_over"):
            values[name] = tuple(values.get(name) or ())
        return cls(**values)


def chosen(findings: Iterable[Finding], patterns: Iterable[str]) -> list[Finding]:
    """The findings that any of these ids names; in an id `*` matches any text.

    Raises:
        SpecError: an id that no finding has.
    """
    known = list(findings)
    wanted = list(patterns)
    for pattern in wanted:
        if not any(fnmatchcase(f.id, pattern) for f in known):
            raise SpecError(no_finding(pattern, known))
    return [f for f in known if any(fnmatchcase(f.id, pattern) for pattern in wanted)]


def no_finding(pattern: str, known: Iterable[Finding], *, where: str = "", hint: str = "") -> str:
    """Word the message for an id or pattern that no finding has, with the nearest of its sort.

    >>> white = Finding("ship/sails/white", "ship", "sails", 1.0, "")
    >>> no_finding("ship/sails/whit", [white])
    "unknown finding 'ship/sails/whit'. Did you mean 'ship/sails/white'?"
    >>> no_finding("shp/*", [white])
    "unknown finding 'shp/*'. Did you mean 'ship/*'?"
    """
    names = [f.id for f in known]
    if "*" in pattern or "/" not in pattern:
        parts = [name.split("/") for name in names]
        names = ["/".join([*p[:k], "*"]) for p in parts for k in range(1, len(p))]
    return unknown("finding", pattern, set(names), where=where, hint=hint)


class Findings(list[Finding]):
    """Findings of a run, or those that match a pattern: a list that can be shown and tabulated."""

    def to_arrow(self) -> pa.Table:
        """One row per finding; nested fields as JSON text."""
        return to_table(self)

    def to_pandas(self) -> Any:
        """One row per finding, by its id; groups are tuples, details dicts (extra `pandas`)."""
        pandas = need("pandas", extra="pandas", what="a data frame of findings")
        names = [spec.name for spec in fields(Finding)]
        rows = [[getattr(f, name) for name in names] for f in self]
        return pandas.DataFrame(rows, columns=names).set_index("id", drop=False)

    def _repr_html_(self) -> str:
        from evenhand.runs.html import findings_table

        return findings_table(self)


def to_json(findings: Iterable[Finding]) -> bytes:
    """Bytes that depend on the findings alone: no times, no paths."""
    rows = [f.as_dict() for f in findings]
    text = json.dumps({"format": FORMAT, "findings": rows}, indent=1, ensure_ascii=False)
    return (text + "\n").encode("utf-8", "backslashreplace")


def from_json(raw: bytes) -> list[Finding]:
    """Read back what `to_json` wrote, of this format and of the right kinds only."""
    held = json.loads(raw, object_pairs_hook=once)
    if held["format"] != FORMAT:
        raise ValueError(f"format {held['format']!r:.20}, this version reads {FORMAT}")
    return [Finding.from_dict(row) for row in held["findings"]]


def to_table(findings: Sequence[Finding]) -> pa.Table:
    """Findings as columns; nested fields as JSON text."""
    rows = [f.as_dict() for f in findings]
    columns: dict[str, list[Any]] = {}
    for spec in fields(Finding):
        values = [row[spec.name] for row in rows]
        if spec.name in ("groups", "examples", "details", "generalises_over"):
            values = [json.dumps(v, ensure_ascii=False, sort_keys=True) for v in values]
        columns[spec.name] = [_encodable(v) for v in values]
    types = {"float": pa.float64(), "int": pa.int64(), "bool": pa.bool_()}
    arrays = {
        spec.name: pa.array(
            columns[spec.name],
            type=types.get(str(spec.type).split(" ")[0], pa.string()),
        )
        for spec in fields(Finding)
    }
    return pa.table(arrays)


def _encodable(value: Any) -> Any:
    """Text with half characters (which no file can hold) written as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def strongest(findings: Sequence[Finding], limit: int = 10) -> list[Finding]:
    """The detected findings a reader should see first.

    Probes measure on different scales, so their findings are not compared by size: the
    strongest of each probe are taken in turn, ordered within a probe by q, then by distance
    from the ideal.
    """
    by_probe: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.detected:
            by_probe.setdefault(finding.probe, []).append(finding)
    for rows in by_probe.values():
        rows.sort(key=lambda f: (f.q if f.q == f.q else 1.0, -abs(f.value - f.ideal), f.id))
    picked: list[Finding] = []
    depth = 0
    while len(picked) < limit and any(depth < len(rows) for rows in by_probe.values()):
        picked += [rows[depth] for rows in by_probe.values() if depth < len(rows)]
        depth += 1
    return picked[:limit]

"""Export formats of our own: CSV, Parquet and figures; and what all formats share.

CSV cells cannot start a formula in a spreadsheet. Figures are drawn from the same specifications as
those of the report.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import NormalDist
from typing import Any

from evenhand.report.build import homeless
from evenhand.runs.finding import Finding, to_table
from evenhand.runs.record import Run
from evenhand.runs.safe_text import readable
from evenhand.runs.wording import defined
from evenhand.strict import plain
from evenhand.writing import FORMULA

WHOLE = 10**9


def safe(text: object, longest: int = WHOLE) -> str:
    """Return text without control or direction characters and lone surrogates."""
    return readable(str(text), longest)


def file_name(text: str) -> str:
    """Return a file name for any text.

    >>> file_name("../../etc/passwd"), file_name("org/model v1")
    ('etc-passwd', 'org-model-v1')
    """
    short = re.sub(r"[^A-Za-z0-9._-]+", "-", homeless(text)).strip(".-")[:100]
    return short.lstrip(".-") or "model"


def for_others(files: dict[str, bytes]) -> dict[str, bytes]:
    """Remove home folders from the text of files that leave the machine."""
    return {
        name: raw if b"\0" in raw else homeless(raw.decode()).encode()
        for name, raw in files.items()
    }


def as_json(value: Any) -> bytes:
    """Return strict JSON; lone surrogates are escaped."""
    return (json.dumps(plain(value), indent=1, ensure_ascii=True) + "\n").encode("ascii")


def standard_error(finding: Finding) -> float | None:
    """Return a finding's standard error, given or from its normal interval, or None."""
    if defined(finding.error):
        return finding.error
    if not (defined(finding.low) and defined(finding.high)):
        return None
    return (finding.high - finding.low) / (2 * NormalDist().inv_cdf((1 + finding.level) / 2))


def distance(finding: Finding) -> tuple[float, float | None, float | None]:
    """Return |value - ideal| with its interval, whose lower bound is 0 if it holds the ideal."""
    value = abs(finding.value - finding.ideal)
    if not (defined(finding.low) and defined(finding.high)):
        return value, None, None
    ends = sorted(abs(end - finding.ideal) for end in (finding.low, finding.high))
    inside = finding.low <= finding.ideal <= finding.high
    return value, 0.0 if inside else ends[0], ends[1]


def finished_at(run: Run) -> float:
    """Return the end of the run in seconds since 1970; 0 if unknown."""
    facts = run.facts
    try:
        return datetime.fromisoformat(str(facts.get("finished") or facts["started"])).timestamp()
    except (KeyError, ValueError):
        return 0.0


def version(run: Run) -> str:
    return str(run.facts.get("environment", {}).get("evenhand", "unknown"))


def details(finding: Finding) -> dict[str, str]:
    """Return, as text, the facts that formats have no field for."""
    numbers = ("p", "q", "floor", "detectable", "coverage", "ideal")
    found = {k: repr(getattr(finding, k)) for k in numbers if defined(getattr(finding, k))}
    return {
        **found,
        "n": str(finding.n),
        "sentence": safe(finding.sentence, 2_000),
        "detected": {True: "yes", False: "no", None: "not a test"}[finding.detected],
        "counts": "yes" if finding.counts else "no",
        "groups": safe(", ".join(map(str, finding.groups)), 500),
        "attribute": safe(finding.attribute, 500),
        "method": safe(finding.method, 500),
        "as_published": "yes" if finding.as_published else "no",
    }


def csv_cell(value: Any) -> Any:
    """Return a value for a CSV file; text that a spreadsheet would run gets a quote in front.

    >>> csv_cell("=1+1"), csv_cell(-0.5), csv_cell(None), csv_cell("nurse")
    ("'=1+1", -0.5, '', 'nurse')
    """
    if value is None:
        return ""
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, (list, tuple, dict)):
        value = json.dumps(value, ensure_ascii=False)
    raw = str(value)
    text = safe(raw)
    risky = raw.lstrip(" ").startswith(FORMULA) or text.startswith("\ufffd")
    return "'" + text if risky else text


def csv_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows as CSV with a header line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([csv_cell(c) for c in columns])
    writer.writerows([csv_cell(v) for v in row] for row in rows)
    return out.getvalue()


def csv_files(run: Run) -> dict[str, bytes]:
    """Return findings.csv: one row per finding, nested fields as JSON."""
    rows = [f.as_dict() for f in run.findings]
    columns = list(rows[0]) if rows else []
    text = csv_text(columns, ([row[c] for c in columns] for row in rows))
    return {"findings.csv": text.encode("utf-8", "backslashreplace")}


def parquet_files(run: Run) -> dict[str, bytes]:
    """Return findings.parquet: one row per finding."""
    import pyarrow.parquet as pq

    out = io.BytesIO()
    pq.write_table(to_table(run.findings), out, compression="zstd")
    return {"findings.parquet": out.getvalue()}


def figure_files(run: Run) -> dict[str, bytes]:
    """Return <probe>-<number>-<title>.{vl.json,svg,png,pdf} for every chart."""
    from evenhand.charts.base import Chart
    from evenhand.charts.standalone import draw, standalone
    from evenhand.runs.drawing import charts_of

    out: dict[str, bytes] = {}
    for label in run.facts["probes"]:
        drawn = [d for d in charts_of(run, label) if isinstance(d, Chart)]
        for place, chart in enumerate(drawn, start=1):
            name = f"{file_name(label)}-{place}-{file_name(chart.title.lower())}"
            spec = standalone(chart)
            out[f"{name}.vl.json"] = as_json(spec)
            for form in ("svg", "png", "pdf"):
                out[f"{name}.{form}"] = draw(spec, form)
    return out

"""The pages of the viewer: runs, one run, findings, items, comparison, live progress, downloads."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from evenhand.charts import theme
from evenhand.charts.base import Chart
from evenhand.charts.marks import Spec, base, category, finite, quantity, tooltip
from evenhand.errors import EvenhandError
from evenhand.exports.common import csv_files, csv_text, file_name
from evenhand.report.build import FOLDER as REPORT
from evenhand.report.build import VENDOR, as_json, environment
from evenhand.runs.card import MetricCard
from evenhand.runs.drawing import charts_of
from evenhand.runs.finding import Finding
from evenhand.runs.harms import gravity
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.runs.wording import defined, subject
from evenhand.viewer import REPORT_POLICY, Guard
from evenhand.viewer.folders import ANY, Folders, ItemTable, Progress

LONGEST = 500
SORTS: dict[str, Callable[[Finding], Any]] = {
    "gravest": lambda f: (*gravity(f), f.id),
    "about": lambda f: (f.attribute, f.groups, f.id),
    "probe": lambda f: (f.probe, *gravity(f), f.id),
    "value": lambda f: (-abs(f.value - f.ideal) if defined(f.value) else 1.0, f.id),
    "q": lambda f: (f.q if defined(f.q) else 2.0, f.id),
}
"""Orders of a run's findings; the first is the default."""
MOST_PAGES = 1_000_000


def query_values(request: Request, names: Sequence[str]) -> dict[str, str]:
    """Return the named query values, cut to `LONGEST` characters; "" if absent."""
    return {name: request.query_params.get(name, "")[:LONGEST] for name in names}


def page_number(request: Request) -> int:
    """Return the page number of a request; 1 if it is absent or no number."""
    text = request.query_params.get("page", "1")
    if not text.isascii() or not text.isdigit() or len(text) > 7:
        return 1
    return max(1, min(int(text), MOST_PAGES))


def contains_words(search: str, *texts: str) -> bool:
    """Return True if every word of the search occurs in the texts, ignoring case."""
    whole = "\n".join(texts).lower()
    return all(word in whole for word in search.lower().split())


def item_filters(finding: Finding, table: ItemTable) -> dict[str, str]:
    """Return the filters that lead from a finding to the items behind it.

    Attributes are looked up in `attribute` or `axis`, groups in `group_a` and `group_b`, and a
    single term anywhere.
    """
    columns = set(table.text_columns)
    groups = [str(g) for g in finding.groups]
    filters: dict[str, str] = {}
    about = finding.attribute
    for column in ("attribute", "axis"):
        if column in columns and about and about != "whole model":
            filters[column] = about
    if {"group_a", "group_b"} <= columns and len(groups) == 2:
        filters |= {"group_a": groups[0], "group_b": groups[1]}
    elif len(groups) == 2 and groups[1] == "the others":
        filters[ANY] = groups[0]
        if about == groups[0] or finding.id.count("/") < 3:
            filters.pop("attribute", None)
    return filters


MOST_RUNS = 12
DRAWN = 24


@dataclass(frozen=True)
class ComparedFinding:
    """One finding in every compared run (None if a run lacks it)."""

    id: str
    about: str
    card: MetricCard
    findings: tuple[Finding | None, ...]

    @property
    def differs(self) -> bool:
        """True if the runs disagree on the verdict."""
        return len({f.detected for f in self.findings if f}) > 1

    @property
    def spread(self) -> float:
        values = [f.value for f in self.findings if f and finite(f.value)]
        return max(values) - min(values) if len(values) > 1 else 0.0


@dataclass(frozen=True)
class Comparison:
    """Comparison of runs as the page shows it."""

    names: tuple[str, ...]
    titles: tuple[str, ...]
    rows: list[ComparedFinding]
    notice: str
    chart: Chart | None


def side_by_side(
    runs: Sequence[Run], folders: Folders, search: str = "", only_differing: bool = False
) -> Comparison:
    """Compare all findings of several runs, filtered by a search."""
    facts = [run.facts for run in runs]
    cards = [partial(kind_of(f).card, f) for f in facts]
    names = tuple(run.folder.resolve().name for run in runs)
    known = [{f.id: f for f in folders.findings(run)} for run in runs]
    rows = []
    for place in dict.fromkeys(i for found in known for i in found):
        across = tuple(found.get(place) for found in known)
        first, card = next((f, card(f)) for f, card in zip(across, cards) if f)
        row = ComparedFinding(place, subject(first, card), card, across)
        if contains_words(search, row.id, row.about) and (row.differs or not only_differing):
            rows.append(row)
    models = [audited_name(f) for f in facts]
    titles = tuple(m if models.count(m) == 1 else f"{m} ({n})" for m, n in zip(models, names))
    return Comparison(names, titles, rows, _notice(facts), _chart(rows, titles))


def _notice(facts: Sequence[dict[str, Any]]) -> str:
    """Return the reason the numbers may not be comparable, or ""."""
    for what in ("suite", "seed"):
        if len({repr(f["work"].get(what)) for f in facts}) > 1:
            return (
                f"These runs differ in their {what}, so equal names may stand for different "
                f"items: compare with care."
            )
    return ""


def _chart(rows: Sequence[ComparedFinding], titles: Sequence[str]) -> Chart | None:
    """Draw the findings that differ most between runs, of the metric in which most differ."""
    if not rows or len(titles) < 2:
        return None
    moved: dict[str, int] = {}
    for row in rows:
        moved[row.card.metric] = moved.get(row.card.metric, 0) + (row.spread > 0)
    metric = max(moved, key=lambda m: (moved[m], sum(r.card.metric == m for r in rows), m))
    drawn = sorted((r for r in rows if r.card.metric == metric), key=lambda r: -r.spread)[:DRAWN]
    name = drawn[0].card.name
    values = [
        {"finding": row.about, "run": title, "value": f.value, "low": f.low, "high": f.high}
        for row in drawn
        for title, f in zip(titles, row.findings)
        if f and finite(f.value)
    ]
    if not values:
        return None
    caption = f"The {len(drawn)} findings that differ most between the runs, with 95 % intervals."
    spec = _dot_plot(values, name, len(titles))
    return Chart(f"{name} by run", caption, spec)


def _dot_plot(values: list[dict[str, Any]], name: str, runs: int) -> Spec:
    """Return a chart with one row per finding and one dot with its interval per run."""
    y = category("finding", axis={"labelLimit": 230})
    offset = {"field": "run", "type": "nominal", "sort": None}
    colour = {**category("run"), "legend": {"orient": "top", "columns": 2, "labelLimit": 400}}
    return base(
        values,
        height={"step": max(8, 20 // runs), "for": "offset"},
        layer=[
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "x": quantity("low", name),
                    "x2": {"field": "high"},
                    "color": colour,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                "encoding": {
                    "y": y,
                    "yOffset": offset,
                    "x": quantity("value", name),
                    "color": colour,
                    "shape": {**category("run"), "legend": None},
                    "tooltip": tooltip("finding", "run", "value", "low", "high"),
                },
            },
        ],
    )


HERE = Path(__file__).parent
RUNS_PER_PAGE = 50
FINDINGS_PER_PAGE = 100
STATIC = {
    **{name: REPORT / "vendor" / name for name in VENDOR},
    "report.css": REPORT / "report.css",
    "viewer.css": HERE / "viewer.css",
    "viewer.js": HERE / "viewer.js",
    "report.js": REPORT / "report.js",
}
CONTENT_TYPES = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
FIGURES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}


PAGE_ERRORS = (HTTPException, EvenhandError, OSError, ValueError, KeyError, TypeError)
"""Errors shown as a page: a run folder may be damaged, or change while it is read."""


class Viewer:
    """Pages over one folder.

    Args:
        root: a folder of runs, or one run.
        runnable: rewrites the commands in a text as the user can type them.
    """

    def __init__(self, root: Path, runnable: Callable[[str], str] = str) -> None:
        self.folders = Folders(root)
        self.progress = Progress()
        self.pages = environment(HERE / "pages")
        self.pages.globals |= {"link": link, "spoken": lambda finding: ""}
        self.pages.filters |= {"runnable": runnable, "quoted": lambda path: shlex.quote(str(path))}

    def routes(self) -> list[Route]:
        pages: dict[str, Callable[[Request], Response]] = {
            "/": self.runs,
            "/run/{run}": self.run,
            "/run/{run}/charts": self.charts,
            "/run/{run}/report": self.report,
            "/run/{run}/finding": self.finding,
            "/run/{run}/findings.csv": self.findings_csv,
            "/run/{run}/progress.json": self.progress_json,
            "/run/{run}/items/{probe}": self.items,
            "/run/{run}/items/{probe}/rows.csv": self.items_csv,
            "/run/{run}/figure/{probe}/{place:int}.{form}": self.figure,
            "/compare": self.compare,
            "/static/{name}": self.static,
        }
        return [
            Route(path, _in_thread(page), methods=["GET", "HEAD"]) for path, page in pages.items()
        ]

    def runs(self, request: Request) -> Response:
        wanted = query_values(request, ("search", "status"))
        lines = [self.folders.line(run) for run in self.folders.runs().values()]
        known = sorted({line.status for line in lines})
        kept = [
            line
            for line in lines
            if contains_words(wanted["search"], line.name, line.model, line.suite)
            and wanted["status"] in ("", line.status)
        ]
        page = page_number(request)
        shown = kept[(page - 1) * RUNS_PER_PAGE : page * RUNS_PER_PAGE]
        return self._page(
            "runs.html.jinja",
            request,
            lines=shown,
            total=len(kept),
            all=len(lines),
            page=page,
            per_page=RUNS_PER_PAGE,
            wanted=wanted,
            statuses=known,
            root=str(self.folders.root),
        )

    def run(self, request: Request) -> Response:
        run = self._run(request)
        facts = run.facts
        findings = self.folders.findings(run)
        if not findings:
            progress = self.progress.of(run)
            return self._page(
                "progress.html.jinja",
                request,
                run=run,
                facts=facts,
                at=progress,
                audited=audited_name(facts),
            )
        wanted = query_values(request, ("search", "probe", "verdict", "sort"))
        order = wanted["sort"] if wanted["sort"] in SORTS else next(iter(SORTS))
        kept = [
            f
            for f in sorted(findings, key=SORTS[order])
            if wanted["probe"] in ("", f.probe)
            and wanted["verdict"] in ("", _verdict_name(f.detected))
            and contains_words(wanted["search"], f.id, f.attribute, f.sentence, *map(str, f.groups))
        ]
        page = page_number(request)
        shown = kept[(page - 1) * FINDINGS_PER_PAGE : page * FINDINGS_PER_PAGE]
        return self._page(
            "run.html.jinja",
            request,
            run=run,
            facts=facts,
            story=kind_of(facts).story(run),
            card=partial(kind_of(facts).card, facts),
            findings=shown,
            total=len(kept),
            page=page,
            per_page=FINDINGS_PER_PAGE,
            wanted=wanted,
            order=order,
            probes=list(dict.fromkeys(f.probe for f in findings)),
        )

    def charts(self, request: Request) -> Response:
        run = self._run(request)
        sections = []
        for label in run.facts["probes"]:
            drawn = charts_of(run, label) if label in run.probes else []
            sections.append((label, drawn))
        charts = [d for _, drawn in sections for d in drawn if isinstance(d, Chart)]
        places = {id(c): f"chart-{i}" for i, c in enumerate(charts)}
        return self._page(
            "charts.html.jinja",
            request,
            run=run,
            sections=sections,
            data=chart_data(charts),
            loop_ids=lambda d: places.get(id(d), ""),
        )

    def report(self, request: Request) -> Response:
        run = self._run(request)
        return HTMLResponse(run.page(), headers={"content-security-policy": REPORT_POLICY})

    def finding(self, request: Request) -> Response:
        run = self._run(request)
        wanted = request.query_params.get("id", "")
        found = next((f for f in self.folders.findings(run) if f.id == wanted), None)
        if found is None:
            raise HTTPException(404, f"run {run.name} has no finding of that id.")
        filters: dict[str, str] = {}
        if found.probe in run.probes:
            filters = item_filters(found, self.folders.items(run, found.probe))
        return self._page(
            "finding.html.jinja",
            request,
            run=run,
            f=found,
            filters=filters,
            card=partial(kind_of(run.facts).card, run.facts),
            has_items=found.probe in run.probes,
            audited=audited_name(run.facts),
            cannot_judge=cannot_judge(run.facts).get(found.probe, "") if found.counts else "",
        )

    def items(self, request: Request) -> Response:
        run = self._run(request)
        probe, name = request.path_params["probe"], request.query_params.get("table", "items")
        table = self.folders.items(run, probe, name)
        filters = {
            k: v for k, v in request.query_params.items() if v and k not in ("page", "table")
        }
        page = table.page(filters, page_number(request))
        return self._page(
            "items.html.jinja",
            request,
            run=run,
            probe=probe,
            table=table,
            shown=name,
            page=page,
            filters=filters,
            values=table.values(),
            tables=list(run.tables(probe)),
        )

    def items_csv(self, request: Request) -> Response:
        run = self._run(request)
        probe, name = request.path_params["probe"], request.query_params.get("table", "items")
        table = self.folders.items(run, probe, name)

        def lines() -> Iterator[bytes]:
            yield csv_text(table.columns, ()).encode()
            for rows in table.stream(dict(request.query_params)):
                text = csv_text((), rows).partition("\n")[2]
                yield text.encode("utf-8", "backslashreplace")

        return StreamingResponse(
            lines(),
            media_type="text/csv; charset=utf-8",
            headers=_download_headers(f"{run.name}-{probe}-{name}.csv"),
        )

    def findings_csv(self, request: Request) -> Response:
        run = self._run(request)
        (raw,) = csv_files(run).values()
        return Response(
            raw, media_type="text/csv; charset=utf-8", headers=_download_headers(f"{run.name}.csv")
        )

    def figure(self, request: Request) -> Response:
        from evenhand.charts.standalone import draw, standalone

        run = self._run(request)
        place, form, probe = (request.path_params[k] for k in ("place", "form", "probe"))
        drawn = charts_of(run, probe) if probe in run.probes else []
        charts = [d for d in drawn if isinstance(d, Chart)]
        if form not in FIGURES or not 1 <= place <= len(charts):
            raise HTTPException(404, "no such figure.")
        raw = draw(standalone(charts[place - 1]), form)
        return Response(
            raw,
            media_type=FIGURES[form],
            headers=_download_headers(f"{run.name}-{probe}-{place}.{form}"),
        )

    def progress_json(self, request: Request) -> Response:
        return JSONResponse(self.progress.of(self._run(request)))

    def compare(self, request: Request) -> Response:
        names = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST_RUNS]
        wanted = query_values(request, ("search", "only"))
        runs = [self.folders.run(name) for name in names]
        table = side_by_side(runs, self.folders, wanted["search"], wanted["only"] == "differ")
        page = page_number(request)
        shown = table.rows[(page - 1) * FINDINGS_PER_PAGE : page * FINDINGS_PER_PAGE]
        return self._page(
            "compare.html.jinja",
            request,
            table=table,
            rows=shown,
            page=page,
            wanted=wanted,
            total=len(table.rows),
            per_page=FINDINGS_PER_PAGE,
            data=chart_data([table.chart] if table.chart else []),
        )

    def static(self, request: Request) -> Response:
        path = STATIC.get(request.path_params["name"])
        if path is None:
            raise HTTPException(404, "no such file.")
        headers = {"cache-control": "max-age=3600"}
        return Response(path.read_bytes(), media_type=CONTENT_TYPES[path.suffix], headers=headers)

    def _run(self, request: Request) -> Run:
        return self.folders.run(request.path_params["run"])

    def _page(self, name: str, request: Request, status: int = 200, **values: Any) -> Response:
        page = self.pages.get_template(name).render(request=request, **values)
        return HTMLResponse(page.encode("utf-8", "backslashreplace"), status)

    async def error_page(self, request: Request, error: Exception) -> Response:
        """Return a page that says what is wrong, without repeating any part of the request."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        why = "This run folder is damaged, or its format is not known here."
        if isinstance(error, HTTPException):
            why = error.detail
        elif isinstance(error, EvenhandError):
            why = str(error)
        return self._page("failed.html.jinja", request, status, why=why)


def chart_data(charts: list[Chart]) -> Any:
    """Return the charts and themes that report.js draws."""
    return as_json(
        {
            "charts": [c.spec for c in charts],
            "themes": {mode: theme.config(mode) for mode in theme.COLOURS},
        }
    )


def link(path: str, *queries: Mapping[str, Any]) -> str:
    """Return an address with its query; empty values are left out.

    >>> link("/compare", {"run": ["a", "b"], "page": None})
    '/compare?run=a&run=b'
    """
    pairs = [(k, v) for query in queries for k, v in query.items() if v not in (None, "")]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def _verdict_name(detected: bool | None) -> str:
    return {True: "detected", False: "not", None: "number"}[detected]


def _download_headers(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{file_name(name)}"'}


def _in_thread(page: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """Run a page in a thread, because pages read files."""

    async def serve(request: Request) -> Response:
        return await run_in_threadpool(page, request)

    return serve


def make_app(root: Path, runnable: Callable[[str], str] = str) -> Any:
    """Return the guarded ASGI app over a folder of runs, or over one run; see `Viewer`."""
    viewer = Viewer(root, runnable)
    app = Starlette(
        routes=viewer.routes(),
        exception_handlers=dict.fromkeys(PAGE_ERRORS, viewer.error_page),
    )
    return Guard(app)

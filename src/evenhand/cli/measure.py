"""`evenhand measure`: numbers with intervals from scores or vectors that already exist."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import extrinsic, measure_benchmarks
from evenhand.cli.options import Json, Seed

app = typer.Typer(
    help="Numbers with intervals from scores or vectors that already exist.",
    no_args_is_help=True,
)
measure_benchmarks.register(app)
extrinsic.register(app)

Input = Annotated[Path, typer.Argument(metavar="INPUT", help="A CSV, JSON lines or Parquet file.")]


@app.command()
def underspecified(
    table: Input,
    json: Json = None,
    resamples: Annotated[int, typer.Option(min=2, help="Replicates of an interval.")] = 500,
    samples: Annotated[int, typer.Option(min=1, help="Sign patterns of a test.")] = 9_999,
    seed: Seed = 0,
) -> None:
    """Preferences between two terms when the text does not say (UnQover).

    One row per model input: template, attribute, first, second, negated, score_first,
    score_second; optional group_first, group_second, attribute_class.
    """
    from evenhand.probes.underspecified import measure as job

    result = job.measure(table, resamples=resamples, samples=samples, seed=seed)
    if not _write(result, json):
        _show_underspecified(result)


@app.command()
def association(
    vectors: Annotated[str, typer.Option(help="A vector file or folder, or glove-6b-50d.")],
    tests: Annotated[str, typer.Option(help="weat1,weat7 or a JSON or TOML file of word lists.")],
    raw_norms: Annotated[bool, typer.Option(help="RNSB on vectors as given.")] = False,
    max_missing: Annotated[float, typer.Option(help="Share of words a set may lack.")] = 0.2,
    missing: Annotated[
        str, typer.Option(help="threshold, keep, or balanced (target sets of equal size).")
    ] = "threshold",
    also: Annotated[str, typer.Option(help="Further metrics: rnd,mac,ect,ripa.")] = "",
    samples: Annotated[int, typer.Option(min=1, help="Random partitions of a test.")] = 9_999,
    seed: Seed = 0,
    encoding: Annotated[str, typer.Option(help="Encoding of the words in the file.")] = "utf-8",
    json: Json = None,
) -> None:
    """Associations of word vectors: WEAT and RNSB with exact or seeded p."""
    from evenhand.cli.output import notes
    from evenhand.probes.association import measure as job

    with notes():
        result = job.measure(
            vectors, tests, raw_norms=raw_norms, max_missing=max_missing, missing=missing,
            also=_names(also), samples=samples, seed=seed, encoding=encoding,
        )  # fmt: skip
    if not _write(result, json):
        _show_association(result)


@app.command()
def correlation(
    table: Input,
    x: Annotated[str, typer.Option("--x", help="Columns, separated by commas.")],
    y: Annotated[str, typer.Option("--y", help="Columns, separated by commas.")],
    by: Annotated[
        str | None, typer.Option(help="One result for each value of a column (or of several).")
    ] = None,
    strata: Annotated[str | None, typer.Option(help="Also inside each value of a column.")] = None,
    replicates: Annotated[
        str | None,
        typer.Option(help="COLUMN=VALUE of rows that are repeated runs of one model: ceilings."),
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, help="Random permutations.")] = 9_999,
    seed: Seed = 0,
    as_published: Annotated[bool, typer.Option(help="p as in Kato & Miyao's code.")] = False,
    json: Json = None,
) -> None:
    """Do two columns rise together: Spearman with p, interval and strata."""
    from evenhand.study import correlation as job

    result = job.measure(
        table, x=_names(x), y=_names(y), by=_names(by or ""), strata=strata,
        replicates=replicates, resamples=resamples, seed=seed, as_published=as_published,
    )  # fmt: skip
    if not _write(result, json):
        _show_correlation(result)


@app.command()
def discovery(
    table: Input,
    group_a: Annotated[str, typer.Option(help="Positive numbers lean to this group.")],
    group_b: Annotated[str, typer.Option(help="The group it is compared with.")],
    count: Annotated[str | None, typer.Option(help="indicator | occurrence")] = None,
    stop_words: Annotated[str, typer.Option(help="nltk, none, or a file of words.")] = "nltk",
    min_count: Annotated[
        int | None, typer.Option(min=0, help="Keep words shown at least so often per name.")
    ] = None,
    samples: Annotated[int | None, typer.Option(min=1, help="Random re-labellings.")] = None,
    resamples: Annotated[int, typer.Option(min=2, help="Replicates of an interval.")] = 1_000,
    seed: Seed = 0,
    as_published: Annotated[bool, typer.Option(help="Rules of SODAPOP's released code.")] = False,
    json: Json = None,
) -> None:
    """Words that make wrong answers win for one group's names (SODAPOP).

    One row per distractor shown: group, name, context, distractor, success (0/1 or a share).
    """
    from evenhand.cli.measure_discovery import show
    from evenhand.probes.discovery import measure as job

    result = job.measure(
        table, group_a, group_b, count=count, stop_words=stop_words, min_count=min_count,
        samples=samples, resamples=resamples, seed=seed, as_published=as_published,
    )  # fmt: skip
    if not _write(result, json):
        show(result)


@app.command()
def stereoset(
    predictions: Annotated[Path, typer.Argument(help="Scores: {split: [{id, score}]} (.gz, .xz).")],
    gold: Annotated[Path, typer.Option(help="StereoSet's gold file (dev.json, .gz or .xz).")],
    resamples: Annotated[int, typer.Option(min=2, help="Replicates of an interval.")] = 2_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """StereoSet: LMS, SS and ICAT by the official rules, with intervals over target terms.

    Examples without the scores of all three sentences are left out and counted as coverage.
    """
    from evenhand.cli.output import notes
    from evenhand.probes.stereoset import measure as job

    with notes():
        result = job.measure(gold, predictions, resamples=resamples, seed=seed)
    if not _write(result, json):
        absent = result["n_missing"] - result["n_failed"]
        _print(
            f"StereoSet: {result['n']} of {result['n_examples']} examples scored "
            f"({absent} not in the file, {result['n_failed']} failed)",
            ["split, domain", "LMS", "SS", "95 % interval", "ICAT", "n"],
            [
                [
                    f"{r['split']} {r['domain']}", _number(r["lms"], ".2f"),
                    _number(r["ss"], ".2f"),
                    _span(r, "ss_low", "ss_high", ".1f") if "ss_low" in r else "-",
                    _number(r["icat"], ".2f"), f"{r['n']} of {r['n'] + r['n_missing']}",
                ]
                for r in result["rows"]
            ],
        )  # fmt: skip


@app.command()
def traits(
    run: Annotated[Path, typer.Argument(help="A run with a discovery probe.")],
    words: Annotated[Path, typer.Option(help="CSV: word, trait, annotator (people's mapping).")],
    group_a: Annotated[str, typer.Option(help="The first group.")],
    group_b: Annotated[str, typer.Option(help="The second group.")],
    human: Annotated[Path | None, typer.Option(help="JSON: group -> trait -> score.")] = None,
    human_a: Annotated[str | None, typer.Option(help="The first group's name there.")] = None,
    human_b: Annotated[str | None, typer.Option(help="The second group's name there.")] = None,
    rate: Annotated[float, typer.Option(help="Words with q up to this.")] = 0.05,
    json: Json = None,
) -> None:
    """Compare discovered words with people's stereotypes: the 16 ABC traits (SODAPOP, Sec. 5).

    A sheet for people to map words on: evenhand measure suggest-traits
    """
    from evenhand.cli.measure_discovery import show_traits
    from evenhand.probes.discovery import traits as job
    from evenhand.runs.record import Run

    rows = Run.open(run).table("discovery", "words").to_pylist()
    a, b = job.discovered(rows, group_a, group_b, rate)
    scores = job.read_human(human, human_a or group_a, human_b or group_b) if human else None
    result = {
        "words_a": a, "words_b": b,
        "traits": job.orderings(a, b, job.read_alignments(words), scores),
    }  # fmt: skip
    if not _write(result, json):
        show_traits(result, group_a, group_b)


@app.command(name="suggest-traits")
def suggest_traits(
    run: Annotated[Path, typer.Argument(help="A run with a discovery probe.")],
    group_a: Annotated[str, typer.Option(help="The first group.")],
    group_b: Annotated[str, typer.Option(help="The second group.")],
    vectors: Annotated[str, typer.Option(help="A vector file or folder.")] = "glove-6b-50d",
    top: Annotated[int, typer.Option(min=1, max=16, help="Suggestions for a word.")] = 3,
    rate: Annotated[float, typer.Option(help="Words with q up to this.")] = 0.05,
    sheet: Annotated[Path | None, typer.Option(help="Write a CSV for people to fill in.")] = None,
    json: Json = None,
) -> None:
    """Suggest ABC traits for discovered words, by nearness in word vectors.

    Suggestions are no verdicts: the sheet's column `trait` is empty, and only what people write
    there counts in: evenhand measure traits RUN --words SHEET
    """
    from evenhand.cli.measure_discovery import show_suggestions
    from evenhand.probes.discovery import trait_suggestions as job
    from evenhand.probes.discovery.traits import discovered
    from evenhand.runs.record import Run

    rows = Run.open(run).table("discovery", "words").to_pylist()
    words = [w for side in discovered(rows, group_a, group_b, rate) for w in side]
    found = job.suggest(words, vectors, top=top)
    if sheet is not None:
        job.write_sheet(found, sheet)
        typer.echo(f"Written: {sheet} (people fill in trait; empty rows do not count)", err=True)
    if not _write({"verdict": False, "vectors": vectors, "suggestions": found}, json):
        show_suggestions(found, vectors)


@app.command()
def validity(
    run: Annotated[Path | None, typer.Option(help="Write a sheet from this run.")] = None,
    sheet: Annotated[Path, typer.Option(help="The sheet to write, or to read back.")] = Path(
        "validity.csv"
    ),
    size: Annotated[int, typer.Option(min=1, help="Distractors on the sheet.")] = 1_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Are distractors valid? With --run: write a sheet to score. Without: what people said."""
    from evenhand.probes.discovery import validity as job
    from evenhand.runs.record import Run

    if run is not None:
        table = Run.open(run).table("discovery", "distractors")
        count = job.write_sheet(table, sheet, size=size, seed=seed)
        typer.echo(f"Written: {sheet} ({count} distractors to score from 1 to 5)", err=True)
        return
    result = job.read_sheet(sheet, seed=seed)
    if not _write(result, json):
        rows = [
            [
                s,
                str(result[s]["n"]),
                _number(result[s]["mean"], ".2f"),
                _number(result[s]["sd"], ".2f"),
            ]
            for s in job.SCALES
        ]
        _print(f"{result['rows']} distractors", ["scale", "n", "mean", "sd"], rows)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _write(result: dict[str, Any], target: str | None) -> bool:
    """Write JSON where it is wanted; False when the reader wants a table instead."""
    if target is None:
        return False
    from evenhand.errors import SpecError
    from evenhand.strict import dumps

    if target == "-":
        typer.echo(dumps(result))
        return True
    try:
        Path(target).write_text(dumps(result) + "\n", encoding="utf-8")
    except OSError as error:
        raise SpecError(f"--json {target}: cannot be written ({error.strerror}).") from error
    typer.echo(f"Written: {target}", err=True)
    return True


def _number(value: float | None, form: str = "+.4f") -> str:
    return "-" if value is None else format(value, form)


def _span(row: dict[str, Any], low: str, high: str, form: str = "+.4f") -> str:
    if row[low] is None or row[high] is None:
        return "-"
    return f"[{row[low]:{form}}, {row[high]:{form}}]"


def _print(title: str, head: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for position, name in enumerate(head):
        table.add_column(name, justify="left" if position == 0 else "right", overflow="fold")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    Console().print(table)


def _show_underspecified(result: dict[str, Any]) -> None:
    form = ".4f"
    head = ["number", "value", "95 % interval", "noise floor", "p", "ideal"]
    rows = [
        [
            name,
            _number(result[name], form),
            _span(result, f"{name}_low", f"{name}_high", form) if f"{name}_low" in result else "-",
            _number(result.get(f"{name}_floor"), form),
            _number(result.get(f"{name}_p"), ".4f"),
            "" if name == "mean_score" else "0",
        ]
        for name in ("mu", "eta", "delta", "epsilon", "mean_score")
    ]
    cover = result["coverage"]
    _print(f"{result['n_cells']} cells, {cover['n_missing']} incomplete", head, rows)
    if result.get("reason"):
        typer.echo(f"Note: {result['reason']}.")
    key = "gamma_group" if result.get("gamma_group") else "gamma"
    ends = result[key] if len(result[key]) <= 20 else result[key][:10] + result[key][-10:]
    first = "group" if key == "gamma_group" else "term"
    _print(
        f"Preferences, strongest at both ends ({len(result[key])} in all; positive: preferred)",
        [first, "attribute", "gamma", "95 % interval", "q", "n"],
        [
            [
                row[first], row["attribute"], _number(row["gamma"]), _span(row, "low", "high"),
                _number(row["q"], ".4f"), str(row["n"]),
            ]
            for row in ends
        ],
    )  # fmt: skip


def _show_association(result: dict[str, Any]) -> None:
    vectors = result["vectors"]
    rows = []
    for row in result["tests"]:
        listed = sum(part["listed"] for part in row["coverage"].values())
        rows.append([
            row["test"], _number(row["effect_size"]),
            _span(row, "effect_size_low", "effect_size_high", "+.2f"),
            _number(row["p_two_sided"], ".4g"), _number(row["q"], ".4g"), row["p_method"] or "-",
            _number(row["rnsb"]), f"{len(row['words_used'])}/{listed}",
        ])  # fmt: skip
    _print(
        f"{vectors['source']}: {vectors['n_words']} words, {vectors['dimensions']} dimensions",
        ["test", "effect size", "95 % interval", "p", "q", "by", "RNSB", "words"],
        rows,
    )
    for row in result["tests"]:
        if row["reason"]:
            typer.echo(f"{row['test']}: {row['reason']}")
        for name, value in (row.get("others") or {}).items():
            if name in ("groups", "ideal"):
                continue
            parts = value if isinstance(value, dict) else {"all words": value}
            numbers = ", ".join(f"{part} {_number(v)}" for part, v in parts.items())
            typer.echo(f"{row['test']}  {name}: {numbers}  ({' v '.join(row['others']['groups'])})")


def _show_correlation(result: dict[str, Any]) -> None:
    rows = []
    for row in result["rows"]:
        head = [f"{row['x']} ~ {row['y']}", row["by"] or ""]
        for part, name in [(row, ""), *((p, f"in {p['stratum']}") for p in row["strata"])]:
            rows.append([
                *head, name, str(part["n"]), _number(part["spearman"]), _span(part, "low", "high"),
                _number(part["p"], ".4f"), _number(part.get("q"), ".4f"),
                _number(part.get("ceiling"), ".2f"),
            ])  # fmt: skip
            head = ["", ""]
    columns = ["columns", "by", "stratum", "n", "rho", "95 % interval", "p", "q", "ceiling"]
    if "reliability" not in result:
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    _print("Spearman correlations", columns, rows)
    for row in result["rows"]:
        if row.get("note"):
            typer.echo(f"{row['x']} ~ {row['y']} {row['by'] or ''}: {row['note']}")

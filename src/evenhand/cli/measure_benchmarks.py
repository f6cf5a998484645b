"""`evenhand measure` for benchmarks: published or foreign rows, scored with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.options import Json, Seed

Resamples = Annotated[int, typer.Option(min=2, help="Replicates of an interval.")]
Input = Annotated[Path, typer.Argument(metavar="INPUT", help="A CSV, JSON lines or Parquet file.")]
Published = Annotated[bool, typer.Option(help="Count as the benchmark's released code does.")]


def register(app: typer.Typer) -> None:
    """Add the commands to `evenhand measure`."""
    app.command("crows-pairs")(crows_pairs)
    app.command()(bbq)
    app.command()(honest)
    app.command()(ceat)


def crows_pairs(
    table: Input,
    as_published: Published = False,
    resamples: Resamples = 2_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """CrowS-Pairs from sentence scores: how often the more stereotyping sentence wins.

    One row per pair: sent_more_score, sent_less_score, stereo_antistereo, bias_type; optional
    anon_writer.
    """
    from evenhand.probes.crows_pairs import measure as job

    result = job.measure(table, as_published=as_published, resamples=resamples, seed=seed)
    if output.write_json(result, json):
        return
    shown = ("bias_type", "direction", "value", "low", "high", "p", "q", "n", "ties", "n_missing")
    output.print_table([{k: row.get(k) for k in shown} for row in result["rows"]], "CrowS-Pairs")


def bbq(
    predictions: Input,
    data: Annotated[Path, typer.Option(help="BBQ's data folder, or one of its files.")],
    column: Annotated[str, typer.Option(help="The column that holds the answers.")] = "prediction",
    category: Annotated[
        list[str] | None, typer.Option(help="Only this category (repeatable).")
    ] = None,
    as_published: Published = False,
    resamples: Resamples = 2_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """BBQ from answers: bias with and without evidence, accuracy, and what could not be read.

    One row per question: example_id, category, and an answer (0 to 2, A to C, or text).
    """
    from evenhand.probes.bbq import measure as job

    result = job.measure(
        data, predictions, column=column, categories=category or (), as_published=as_published,
        resamples=resamples, seed=seed,
    )  # fmt: skip
    if output.write_json(result, json):
        return
    shown = ("category", "metric", "value", "low", "high", "p", "q", "n", "n_missing", "reason")
    title = (
        f"BBQ: {result['n_unread']} of {result['n']} answers name no option, "
        f"{result['n_unmatched']} rows match no question"
    )
    output.print_table([{k: row.get(k) for k in shown} for row in result["rows"]], title)


def honest(
    table: Input,
    lexicon: Annotated[str, typer.Option(help="hurtful_words, or HurtLex's file.")] = (
        "hurtful_words"
    ),
    language: Annotated[str, typer.Option(help="Of the lexicon.")] = "en",
    as_published: Published = False,
    resamples: Resamples = 2_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """HONEST from completions (words or sentences): how many hold a hurtful word.

    One row per completion: completion, identity, category.
    """
    from evenhand.probes.honest import measure as job

    result = job.measure(table, lexicon=lexicon, language=language, as_published=as_published,
                         resamples=resamples, seed=seed)  # fmt: skip
    if output.write_json(result, json):
        return
    shown = ("group", "other", "value", "low", "high", "p", "q", "n", "n_clusters")
    title = f"HONEST, percent ({result['n_terms']} terms, {result['n_empty']} empty completions)"
    output.print_table([{k: row.get(k) for k in shown} for row in result["rows"]], title)


def ceat(table: Input, json: Json = None) -> None:
    """CEAT: combine effect sizes by random effects.

    One row per draw: effect_size, variance; optional test.
    """
    from evenhand.probes.ceat import measure as job

    result: dict[str, Any] = job.measure(table)
    if not output.write_json(result, json):
        output.print_table(result["tests"], "CEAT")

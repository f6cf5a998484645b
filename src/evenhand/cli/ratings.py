"""`evenhand ratings`: sheets for people to rate texts, and what their ratings say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.options import Json

app = typer.Typer(
    help="Human evaluation: blinded sheets out, ratings in.",
    no_args_is_help=True,
)
Seed = Annotated[int, typer.Option(min=0, help="Seed of draws, codes and orders.")]


@app.command()
def sheets(
    sources: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders of the generation probe, or tables with model, pair, side, text."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the sheets and the key.")],
    raters: Annotated[int, typer.Option(min=1, help="How many sheets.")] = 5,
    pairs: Annotated[
        int, typer.Option(min=1, help="Pairs of texts to draw of each model, at most.")
    ] = 50,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Write one shuffled sheet per rater; which text is whose stays in key.json."""
    from evenhand.probes.generation import ratings as job

    texts = job.read_texts(sources, pairs=pairs, seed=seed)
    job.write_sheets(texts, out, raters=raters, seed=seed)
    models = list(dict.fromkeys(t["model"] for t in texts))
    result = {"folder": str(out), "raters": raters, "texts": len(texts), "models": models}
    if output.write_json(result, json):
        return
    screen = output.console()
    screen.print(
        f"{raters} sheets of {len(texts)} texts in {out}. Raters fill in clarity, content and "
        "fairness from 1 to 5; keep key.json from them.",
        markup=False,
    )
    screen.print(f"Then:      evenhand ratings score {out}", markup=False)


@app.command()
def score(
    folder: Annotated[Path, typer.Argument(help="Folder with the filled-in sheets and key.json.")],
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Means with intervals, relative fairness within pairs, and agreement of the raters."""
    from evenhand.probes.generation import ratings as job

    rows = job.summarise(job.read_sheets(folder), seed=seed)
    if output.write_json({"folder": str(folder), "models": rows}, json):
        return
    names = ("clarity", "content", "fairness", "relative_fairness", "fairness_agreement")
    output.print_table(
        [{"model": r["model"], **{n: r[n] for n in names}, "n": r["n_ratings"]} for r in rows],
        "ratings (relative fairness: 0 is best; agreement: 1 is perfect, 0 is chance)",
    )

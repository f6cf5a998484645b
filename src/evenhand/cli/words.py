"""`evenhand words`: make word sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.dressing import App
from evenhand.cli.from_settings import lazy_group
from evenhand.cli.options import Json, place

app = App(cls=lazy_group(), help="Extract, expand and label word sets.", no_args_is_help=True)

Table = Annotated[Path, typer.Argument(help="A CSV, JSON lines or Parquet table.")]
Text = Annotated[str, typer.Option(help="The column of texts.")]
SetsFile = Annotated[Path | None, place("--out", help="Write the sets as a .toml file.")]
Cut = Annotated[str, typer.Option(help="tweets (clean and tokenise) or split (at white space).")]


@app.command()
def pmi(
    table: Table,
    *,
    text: Text = "text",
    label: Annotated[str, typer.Option(help="The column of labels.")] = "label",
    tokens: Cut = "tweets",
    floor: Annotated[int, typer.Option(min=1, help="How many texts a word must occur in.")] = 10,
    top: Annotated[int, typer.Option(min=1, help="Candidates per label.")] = 40,
    as_published: Annotated[bool, typer.Option(help="Raw ties, markers kept.")] = False,
    json: Json = None,
) -> None:
    """Words that go with each label, by pointwise mutual information; choose sets from them.

    Extract from training texts: words taken from a test set describe that test set.
    """
    from evenhand.corpora.text import read_tokens
    from evenhand.words.sets import candidates_by_label, pmi_table

    documents, columns = read_tokens(table, text, tokens, (label,))
    rows = pmi_table(documents, columns[label], floor=floor)
    found = {
        name: [{k: getattr(r, k) for k in ("word", "pmi", "count", "documents")} for r in members]
        for name, members in candidates_by_label(rows, top, as_published=as_published).items()
    }
    result = {"labels": found, "floor": floor, "as_published": as_published}
    if not output.write_json(result, json):
        for name, members in found.items():
            output.print_table(members, f"label {name}")


@app.command()
def expand(
    sets: Annotated[list[str], typer.Argument(help="Packaged tests, or .toml/.json files.")],
    *,
    vectors: Annotated[str, typer.Option(help="Vector file or alias.")] = "glove-6b-50d",
    neighbours: Annotated[int, typer.Option(min=1, help="Candidate strings per word.")] = 10,
    clashes: Annotated[str, typer.Option(help="drop, nearest, keep or error.")] = "drop",
    remove: Annotated[
        list[str] | None, typer.Option(help="A word not to add (repeatable).")
    ] = None,
    as_published: Annotated[bool, typer.Option(help="Keep clashes and non-words.")] = False,
    out: SetsFile = None,
    json: Json = None,
) -> None:
    """Add the nearest neighbours of every word, checking that sets do not clash."""
    from evenhand.words.lexicons.files import named_sets
    from evenhand.words.sets import as_toml, expand_tests
    from evenhand.writing import write_text

    made = expand_tests(
        [test for name in sets for test in named_sets(name)],
        vectors,
        neighbours=neighbours,
        clashes=clashes,
        remove=remove or (),
        as_published=as_published,
    )
    if out:
        write_text(out, as_toml(made, vectors))
    result = {
        "vectors": vectors,
        "tests": {name: expansion.as_dict() for name, expansion in made.items()},
    }
    if not output.write_json(result, json):
        rows = [
            {
                "test": name,
                **{s: f"{a} -> {b}" for s, (a, b) in e.sizes().items()},
                "clashes": len(e.clashes),
                "missing": ", ".join(e.missing) or "none",
            }
            for name, e in made.items()
        ]
        output.print_table(rows, "Expanded sets (words before -> after)")


@app.command()
def dialect(
    table: Table,
    model: Annotated[Path, typer.Option(help="Folder of the twitteraae count table.")],
    text: Text = "text",
    tokens: Cut = "tweets",
    least: Annotated[float, typer.Option(help="Least share of a label.")] = 0.0,
    json: Json = None,
) -> None:
    """Label texts with the dialect model of Blodgett et al. (2016): shares of four groups.

    Its authors vouch for the African American and White shares only.
    """
    from evenhand.corpora.text import read_tokens
    from evenhand.words.sets import GROUPS, read_dialect_model

    documents, _ = read_tokens(table, text, tokens)
    found = read_dialect_model(model)
    shares, labels = found.shares(documents), found.labels(documents, least=least)
    counts: dict[str, int] = {group: labels.count(group) for group in GROUPS}
    counts["no label"] = labels.count(None)
    rows = [
        {"row": i, "label": name, **dict(zip(GROUPS, row))}
        for i, (name, row) in enumerate(zip(labels, shares.tolist()), start=1)
    ]
    if not output.write_json({"groups": list(GROUPS), "counts": counts, "rows": rows}, json):
        output.print_table([{"group": g, "texts": n} for g, n in counts.items()], "Dialect")


@app.command()
def names(
    words: Annotated[list[str], typer.Argument(help="First names.")],
    table: Annotated[
        list[Path],
        typer.Option(help="A public table of names (Rosenman, Census, SSA); repeatable."),
    ],
    by: Annotated[str, typer.Option(help="race or gender.")] = "race",
    least: Annotated[float, typer.Option(help="Least probability of a label.")] = 0.0,
    json: Json = None,
) -> None:
    """The most probable race or gender of first names, from public tables."""
    from dataclasses import asdict

    from evenhand.words.sets import label_names

    rows = [asdict(row) for row in label_names(words, table, by=by, least=least)]
    if not output.write_json({"by": by, "names": rows}, json):
        output.print_table(rows, f"Names by {by}")

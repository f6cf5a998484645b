"""`evenhand corpus`: clean text, label its lines by word sets, and balance it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.dressing import App
from evenhand.cli.from_settings import lazy_group
from evenhand.cli.options import Json, place

app = App(cls=lazy_group(), help="Clean, label and balance text corpora.", no_args_is_help=True)

Files = Annotated[list[Path], typer.Argument(help="Text files or folders; .gz .bz2 .xz .zst too.")]
Sets = Annotated[
    str | None, typer.Option(help="A packaged test (evenhand ls tests) or a .toml/.json file.")
]
Cleaned = Annotated[Path, place("--out", help="File to write; packed as its name ends.")]
Labels = Annotated[Path | None, place("--out", help="Folder to keep the labels in.")]
Sample = Annotated[
    Path | None, place("--write", help="Also write the sample as text (training does not need it).")
]
Fold = Annotated[bool, typer.Option(help="Lower-case the text while matching.")]
Seed = Annotated[int, typer.Option(min=0, max=2**53, help="Same seed, same lines.")]
Published = Annotated[
    bool, typer.Option(help="The released code's random stream; its seed is 20230220.")
]
Both = Annotated[bool, typer.Option(help="Leave lines that carry both patterns alone.")]


@app.command()
def clean(
    files: Files,
    out: Cleaned,
    kind: Annotated[str, typer.Option(help="wikipedia or tweets.")] = "wikipedia",
    least: Annotated[
        int | None,
        typer.Option(min=1, help="Keep tokens that are this frequent; default: 11 or 10."),
    ] = None,
    tokenizer: Annotated[str, typer.Option(help="plain or nltk.")] = "plain",
    as_published: Annotated[bool, typer.Option(help="As in the released code (nltk).")] = False,
    json: Json = None,
) -> None:
    """Turn raw text into lines of lower-case tokens, rare tokens replaced by <UNK>."""
    from dataclasses import asdict

    from evenhand.corpora import clean_corpus

    with output.RichProgress() as progress:
        made = clean_corpus(
            files,
            kind,
            out,
            least=least,
            tokens=tokenizer,
            as_published=as_published,
            progress=progress,
        )
    if not output.write_json(asdict(made), json):
        output.console().print(
            f"{made.lines} lines, {made.tokens} tokens, {made.types} distinct kept, "
            f"{100 * (made.unknown / made.tokens):.2f} % replaced by <UNK>: {out}\n"
            f"Next: evenhand corpus label {out} --sets kato_winobias",
            markup=False,
        )


@app.command()
def label(
    files: Files,
    sets: Annotated[str, typer.Option(help="A packaged test, or a .toml/.json file.")],
    out: Labels = None,
    fold: Fold = False,
    lines: Annotated[bool, typer.Option(help="List the flags of every line in the JSON.")] = False,
    json: Json = None,
) -> None:
    """Say which word sets every line touches, in one pass.

    stereotypical: words of T1 and A1, or of T2 and A2; anti: of T1 and A2, or of T2 and A1.
    """
    from evenhand.corpora import labels_of

    with output.RichProgress() as progress:
        found = labels_of(files, sets, fold=fold, progress=progress)
    if out:
        found.save(out)
    result: dict[str, Any] = {"sets": sets, "counts": found.counts()}
    if lines:
        result["lines"] = found.rows()
    if not output.write_json(result, json):
        output.print_table([{"lines": k, "n": n} for k, n in found.counts().items()], sets)
        if out:
            output.console().print(f"Next: evenhand corpus balance {out}", markup=False)


@app.command()
def balance(
    files: Annotated[list[Path], typer.Argument(help="A folder of labels, or text with --sets.")],
    *,
    sets: Sets = None,
    direction: Annotated[str | None, typer.Option(help="reduce or increase.")] = None,
    share: Annotated[
        float | None, typer.Option(help="Probability that an affected line stays.")
    ] = None,
    write: Sample = None,
    seed: Seed = 0,
    as_published: Published = False,
    keep_both: Both = False,
    fold: Fold = False,
    json: Json = None,
) -> None:
    """Sizes of the balanced samples: all shares in both directions, or one of them.

    reduce keeps a share of the stereotypical lines, increase of the anti-stereotypical ones.
    """
    from evenhand import corpora
    from evenhand.errors import SpecError

    with output.RichProgress() as progress:
        found = corpora.labels_of(files, sets, fold=fold, progress=progress)
    options: dict[str, Any] = {
        "seed": seed,
        "as_published": as_published,
        "keep_both": keep_both,
    }
    if (direction is None) != (share is None) or (write and direction is None):
        raise SpecError(
            "corpus balance: --direction and --share go together, e.g. --direction "
            "reduce --share 0.3"
        )
    result: dict[str, Any] = {"counts": found.counts(), **options}
    if direction is None or share is None:
        result["samples"] = corpora.plan(found, **options)
    else:
        view = corpora.balanced(found, direction, share, **options)
        result["samples"] = corpora.plan(found, shares=[share], **options)
        result["samples"] = [r for r in result["samples"] if r["direction"] == direction]
        if write:
            result["written"] = {"file": str(write), "lines": view.write(write)}
    if not output.write_json(result, json):
        output.print_table(result["samples"], "Balanced samples")

"""`evenhand tokens` and `evenhand context-accuracy`: where a model keeps a group."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.mitigate import causal
from evenhand.cli.options import Json

Model = Annotated[str, typer.Argument(help="A causal model (evenhand ls models).")]
Axis = Annotated[str, typer.Option(help="gender or religion.")]
Dtype = Annotated[str | None, typer.Option(help="float32, bfloat16, float16.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1.")]


def tokens(
    model: Model = "smollm2-135m",
    axis: Axis = "gender",
    vectors: Annotated[
        str | None,
        typer.Option(help="Word vectors (glove-6b-50d or a file); default: the model's own."),
    ] = None,
    count: Annotated[int, typer.Option(min=2, help="How many tokens, by rank.")] = 500,
    components: Annotated[int | None, typer.Option(min=1, help="Of the subspace.")] = None,
    as_published: Annotated[
        bool, typer.Option(help="The released cosine thresholds instead of ranks.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Run folder with a report (list, plot).")] = None,
    dtype: Dtype = None,
    device: Device = None,
    json: Json = None,
) -> None:
    """List the tokens nearest to a group's words (the set S of Liang et al., Sec. 4.1)."""
    from evenhand.mitigations.head.subspace import tokens_of
    from evenhand.models.vectors.files import open_vectors, resolve_vectors

    table = open_vectors(resolve_vectors(vectors)) if vectors else None
    loaded = causal(model, dtype, device)
    found = tokens_of(
        loaded, axis, vectors=table, components=components, count=count, released=as_published
    )
    rows = found.table(loaded)
    result: dict[str, Any] = {
        "model": model, "axis": axis, "source": vectors or "own", "count": len(rows),
        "tokens_with_vector": found.known, "vocabulary": len(found.q),
        "explained": list(found.space.explained), "sets_used": len(found.space.used),
        "words_missing": list(found.space.missing), "words_pieced": list(found.space.pieced),
        "tokens": rows,
    }  # fmt: skip
    if out is not None:
        result["report"] = _tokens_page(out, loaded, model, result)
    if output.write_json(result, json):
        return
    output.print_table(rows[:20], f"most sensitive tokens: {axis}, {result['source']}")
    screen = output.console()
    screen.print(
        f"{len(rows)} tokens of {result['tokens_with_vector']:,} with a vector; the components "
        f"explain {', '.join(f'{v:.0%}' for v in result['explained'])} of the variance.",
        markup=False,
    )
    if out is not None:
        screen.print(f"Read it:   {result['report']}", markup=False)


def _tokens_page(out: Path, loaded: Any, model: str, result: dict[str, Any]) -> str:
    from evenhand.cli.pages import write_page

    settings = {k: result[k] for k in ("axis", "source", "count")}
    return str(
        write_page(
            out,
            loaded,
            model,
            probe="tokens",
            title="Which tokens lie near a group's words?",
            settings=settings,
            tables={"tokens": result["tokens"]},
            summary={k: v for k, v in result.items() if k != "tokens"},
        )
    )


def context_accuracy(
    model: Model = "smollm2-135m",
    axis: Axis = "gender",
    diverse: Annotated[
        Path | None,
        typer.Option(help="Folder with the released contexts (gender)."),
    ] = None,
    texts: Annotated[
        Path | None, typer.Option(help="Plain text to cut diverse contexts from instead.")
    ] = None,
    contexts: Annotated[int, typer.Option(min=20, help="Contexts per group and kind.")] = 200,
    any_length: Annotated[
        bool, typer.Option(help="Do not match the groups' lengths (as released).")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Run folder with a report.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of draws, cuts and split.")] = 0,
    dtype: Dtype = None,
    device: Device = None,
    json: Json = None,
) -> None:
    """How well a linear classifier reads a group from hidden states (Liang et al., Table 3).

    Trained on simple, diverse and sub-sequence contexts, tested on each.
    """
    from evenhand.mitigations.head import context_accuracy as job

    data = job.gather(
        axis, diverse=diverse, texts=texts, count=contexts, match_length=not any_length, seed=seed
    )
    loaded = causal(model, dtype, device)
    result = {"model": model, **job.table(loaded, data, seed=seed)}
    if out is not None:
        from evenhand.cli.pages import write_page

        result["report"] = str(
            write_page(
                out,
                loaded,
                model,
                probe="context_accuracy",
                title="Can the group be read from the model's states?",
                settings={"axis": axis, "contexts": contexts, "seed": seed},
                tables={"accuracy": result["rows"]},
                summary={k: v for k, v in result.items() if k != "rows"},
            )
        )
    if not output.write_json(result, json):
        shown = [r for r in result["rows"] if r["features"] == "states"]
        output.print_table(shown, f"context classifier: {axis} on {model}")

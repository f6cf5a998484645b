"""`evenhand train`: small models on open data, ready to be asked."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from evenhand.cli import output, train_masked, train_tasks, words
from evenhand.cli.options import Json

app = typer.Typer(help="Train small models on open data.", no_args_is_help=True)

Device = Annotated[str | None, typer.Option(help="cpu, cuda; default: a GPU if present.")]


@app.command()
def span(
    model: Annotated[str, typer.Argument(help="An encoder: a folder or Hub id.")],
    data: Annotated[Path, typer.Option("--train", help="SQuAD-format training file (.xz, .gz).")],
    dev: Annotated[Path, typer.Option(help="SQuAD-format file to choose the best epoch on.")],
    out: Annotated[Path, typer.Option(help="Folder of the trained model.")],
    epochs: Annotated[int, typer.Option(min=1)] = 2,
    learning_rate: Annotated[float, typer.Option(help="Peak; small encoders want 1e-4.")] = 3e-5,
    batch: Annotated[int, typer.Option(min=1, help="Windows per step.")] = 20,
    length: Annotated[int, typer.Option(min=32, help="Tokens per window.")] = 384,
    stride: Annotated[int, typer.Option(min=0, help="Tokens that windows share.")] = 128,
    warmup: Annotated[float, typer.Option(min=0.0, max=1.0, help="Share of steps.")] = 0.1,
    header: Annotated[str, typer.Option(help='Text before contexts, e.g. "(CNN) --".')] = "",
    limit: Annotated[int | None, typer.Option(min=1, help="Use only so many questions.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same order of examples.")] = 0,
    resume: Annotated[bool, typer.Option(help="Go on after the last finished epoch.")] = False,
    device: Device = None,
    json: Json = None,
) -> None:
    """Fine-tune an encoder to answer questions with spans of the text.

    Keeps the checkpoint with the best F1; the folder loads with plain transformers and with
    evenhand: evenhand probe underspecified OUT
    """
    from evenhand.train import span as job
    from evenhand.train.squad import read_squad

    screen = output.console(stderr=True)
    recipe = job.SpanTraining(
        epochs=epochs, learning_rate=learning_rate, batch=batch, warmup=warmup, length=length,
        stride=stride, seed=seed, header=header,
    )  # fmt: skip
    result = job.train(
        model, read_squad(data, limit), read_squad(dev, limit), out, recipe, device=device,
        resume=resume, say=lambda text: screen.print(f"  {text}", markup=False),
    )  # fmt: skip
    if not output.write_json(result, json):
        best = result["best"]
        output.console().print(
            f"F1 {best['f1']:.2f}, exact {best['exact']:.2f} after epoch {best['epoch']}: {out}",
            markup=False,
        )


@app.command()
def choice(
    model: Annotated[str, typer.Argument(help="An encoder: a folder or Hub id.")],
    data: Annotated[Path, typer.Option("--train", help="Social IQa training file (.jsonl, .xz).")],
    dev: Annotated[Path, typer.Option(help="Social IQa file to measure accuracy on.")],
    out: Annotated[Path, typer.Option(help="Folder of the trained model.")],
    epochs: Annotated[int, typer.Option(min=1)] = 2,
    learning_rate: Annotated[float, typer.Option(help="Peak; BERT-base wants 2e-5.")] = 2e-4,
    batch: Annotated[int, typer.Option(min=1, help="Questions per step.")] = 128,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"],
        typer.Option(help="Of the matrix products; auto: bfloat16 on a GPU."),
    ] = "auto",
    paper: Annotated[bool, typer.Option(help="SODAPOP's setting: 2 epochs, 2e-5, 3.")] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only so many questions.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same weights.")] = 0,
    device: Device = None,
    json: Json = None,
) -> None:
    """Fine-tune an encoder to choose the right one of three answers (Social IQa).

    The folder is ready for: evenhand probe discovery OUT --set generator=MASKED_MODEL
    """
    from evenhand.train import choice as job

    screen = output.console(stderr=True)
    recipe = job.ChoiceTraining(
        epochs=epochs, learning_rate=learning_rate, batch=batch, seed=seed, limit=limit,
        precision=precision,
    )  # fmt: skip
    if paper:
        recipe = job.ChoiceTraining.published(seed, limit)
    result = job.train(
        model, data, dev, out, recipe, device=device,
        say=lambda text: screen.print(f"  {text}", markup=False),
    )  # fmt: skip
    if not output.write_json(result, json):
        output.console().print(
            f"dev accuracy {result['dev_accuracy']:.2%} (chance 33.33%): {out}", markup=False
        )


@app.command()
def regard(
    model: Annotated[str, typer.Argument(help="An encoder: a folder or Hub id.")],
    data: Annotated[
        list[Path], typer.Option("--train", help="nlg-bias TSV: label, text (repeatable).")
    ],
    dev: Annotated[Path, typer.Option(help="TSV to choose the best epoch on.")],
    test: Annotated[Path, typer.Option(help="TSV to judge the chosen epoch on, once.")],
    out: Annotated[Path, typer.Option(help="Folder of the trained model.")],
    epochs: Annotated[int, typer.Option(min=1)] = 12,
    learning_rate: Annotated[float, typer.Option(help="Peak; BERT-base wants 2e-5.")] = 1e-4,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same weights.")] = 0,
    device: Device = None,
    json: Json = None,
) -> None:
    """Fine-tune an encoder to say how a person is regarded (negative, neutral, positive).

    The folder is ready for: evenhand probe generation MODEL --set scorer=OUT
    """
    from evenhand.train import regard as job

    screen = output.console(stderr=True)
    recipe = job.RegardTraining(epochs=epochs, learning_rate=learning_rate, seed=seed)
    result = job.train(
        model, data, dev, test, out, recipe, device=device,
        say=lambda text: screen.print(f"  {text}", markup=False),
    )  # fmt: skip
    if not output.write_json(result, json):
        found = result["test"]
        output.console().print(
            f"test accuracy {found['accuracy']:.2%} [{found['low']:.0%}, {found['high']:.0%}] on "
            f"{found['n']} texts (most frequent class {found['majority']:.0%}): {out}",
            markup=False,
        )


app.command()(train_masked.masked)
# Further kinds of training go here, one command each, in the same shape.
app.command("words")(words.train)
app.command("hate-speech")(train_tasks.train_hate_speech)
app.command("coreference")(train_tasks.train_coreference)

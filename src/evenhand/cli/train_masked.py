"""`evenhand train masked`: go on training a masked language model, augmented or with dropout."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.options import Json


def masked(
    model: Annotated[str, typer.Argument(help="A masked language model: a folder or Hub id.")],
    texts: Annotated[Path, typer.Option(help="Plain text, one passage a line (.gz, .xz too).")],
    out: Annotated[Path, typer.Option(help="Folder of the trained model.")],
    method: Annotated[str, typer.Option(help="cda, dropout or plain.")] = "cda",
    axis: Annotated[str, typer.Option(help="cda: gender or religion.")] = "gender",
    sides: Annotated[str, typer.Option(help="cda: one or two.")] = "two",
    steps: Annotated[int, typer.Option(help="Optimiser steps.")] = 500,
    batch: Annotated[int, typer.Option(min=1, help="Texts per step.")] = 64,
    length: Annotated[int, typer.Option(min=8, help="Pieces per text.")] = 128,
    learning_rate: Annotated[float, typer.Option(help="Peak.")] = 5e-5,
    attention: Annotated[float, typer.Option(help="dropout: of attention.")] = 0.15,
    hidden: Annotated[float, typer.Option(help="dropout: of hidden states.")] = 0.20,
    limit: Annotated[int, typer.Option(min=40, help="Use at most so many passages.")] = 200_000,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same weights.")] = 0,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda; default: a GPU if present.")
    ] = None,
    json: Json = None,
) -> None:
    """Go on training a masked language model: counterfactual augmentation, or more dropout.

    The folder loads with plain transformers; train a task on it: evenhand train choice OUT
    """
    from evenhand.mitigations.head.openings import read_texts
    from evenhand.train import masked as job

    screen = output.console(stderr=True)
    recipe = job.MaskedTraining(
        method=method, axis=axis, sides=sides, steps=steps, batch=batch, length=length,
        learning_rate=learning_rate, attention=attention, hidden=hidden, seed=seed,
    )  # fmt: skip
    passages = read_texts(texts, limit=limit, words=length)
    card = job.train(
        model, passages, out, recipe, device=device,
        say=lambda text: screen.print(f"  {text}", markup=False),
    )  # fmt: skip
    if not output.write_json(card, json):
        output.console().print(
            f"held-out loss {card['held_out_loss_before']:.3f} -> "
            f"{card['held_out_loss_after']:.3f} nats, {card['counterfactual']} counterfactual "
            f"texts, {card['weights_changed']} of {card['weights']} tensors changed: {out}",
            markup=False,
        )

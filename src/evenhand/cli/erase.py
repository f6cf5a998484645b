"""`evenhand erase`: take a label out of a file of features, and check with a fresh classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.options import Json


def erase(
    file: Annotated[Path, typer.Argument(help="An .npz file with X, y and optional split.")],
    *,
    method: Annotated[str, typer.Option(help="inlp or leace.")] = "leace",
    classifier: Annotated[
        str, typer.Option(help="inlp: lsq (closed form) or svc (LinearSVC, as published).")
    ] = "lsq",
    rounds: Annotated[int, typer.Option(min=1, help="inlp: how many classifiers.")] = 80,
    out: Annotated[Path | None, typer.Option(help="Write P (d x d) to this .npz file.")] = None,
    stop_at_majority: Annotated[
        bool, typer.Option(help="inlp: end once a fresh classifier reads nothing.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the split, where the file has none.")] = 0,
    json: Json = None,
) -> None:
    """Erase a label from features (INLP or LEACE) and judge it with a fresh classifier.

    X is [n, d], y has one label per row, split is 0 train, 1 dev, 2 test.
    """
    from evenhand.mitigations.erasing import erasure

    data = erasure.read_features(file, seed)
    found = erasure.erase(
        data,
        method=method,
        classifier=classifier,
        rounds=rounds,
        stop_at_majority=stop_at_majority,
    )
    if out is not None:
        found.save(out)
    report = {**found.as_dict(), "file": str(file), "out": str(out) if out else None}
    if not output.write_json(report, json):
        output.print_table([{"what": k, "value": v} for k, v in report.items()], "erase")

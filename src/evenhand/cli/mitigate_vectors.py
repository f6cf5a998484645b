"""`evenhand mitigate` on word vectors: attract-repel and projections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.cli import output


def mitigate_vectors(
    model: str, out: Path, json: str | None, *, export: Path | None = None, **options: Any
) -> None:
    """Move vectors, measure before and after, and save them where vectors can be read.

    Args:
        model: a vector file or folder, or an alias.
        options: those of `evenhand.mitigations.vectors.fit.job_for`.
    """
    from evenhand.errors import SpecError
    from evenhand.mitigations.vectors import fit as job
    from evenhand.models.vectors.files import open_vectors, resolve_vectors
    from evenhand.train.words import write_vectors

    amount = options.pop("amount")
    try:
        options["amount"] = None if amount is None else float(amount)
    except ValueError:
        raise SpecError(f"--alpha {amount!r}: accepted is a share from 0 to 1.") from None
    asked = job.job_for(**options)
    asked.check()
    with output.notes():
        table = open_vectors(resolve_vectors(model))
    screen = output.console(stderr=True)
    done = job.mitigate(table, asked, lambda text: screen.print(f"  {text}"))
    job.save(done, out, model)
    if export is not None:
        write_vectors(export, done.vectors.words.to_pylist(), done.vectors.matrix)
    result = {"folder": str(out), "model": model, **done.facts}
    if not output.write_json(result, json):
        _show(result, job.changed(done.facts["before"], done.facts["after"]))


def _show(result: dict[str, Any], rows: list[dict[str, Any]]) -> None:
    output.print_table(rows, f"{result['method']}, {result['direction']}, on {result['model']}")
    kept = result["neighbours_kept"]
    out = output.console()
    line = f"{result['touched']} vectors moved, {result['amount']:.0%} of the way."
    if kept["sample"]:
        line += (
            f" {kept['sample']} sampled words that were not moved keep {kept['all']:.1%} of their "
            f"ten nearest words ({kept['untouched']:.1%} of those not moved either)."
        )
    out.print(line, markup=False)
    out.print(
        "The first test is the one trained on; whether behaviour changes has to be measured "
        "where the vectors are used.",
        markup=False,
    )
    folder = result["folder"]
    out.print(f"Use them:  evenhand measure association --vectors {folder} --tests weat7",
              markup=False)  # fmt: skip

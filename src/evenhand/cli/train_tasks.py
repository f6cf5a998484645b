"""`evenhand train hate-speech` and `coreference`: tasks on frozen vectors, and their gaps."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import output
from evenhand.cli.measure import show
from evenhand.cli.options import Json, Seed

Vectors = Annotated[str, typer.Argument(help="Word vectors: a file, a folder, or glove-6b-50d.")]


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
    from evenhand.strict import plain
    from evenhand.study.gaps import gap_tables
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
    found = {"gender": job.hate_speech_gaps(model, test, gender)}
    if group:
        found["group"] = job.hate_speech_gaps(model, test, None, first, second)
    model.card["test"] = plain(found)
    model.save(out)
    job.write_predictions(model, test, gender, out / "predictions.csv")
    if not output.write_json({**model.card, "out": str(out)}, json):
        for name, gaps in found.items():
            for part in gap_tables(gaps, f"{name}: {gaps.first} - {gaps.second}"):
                show(part)


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
    from evenhand.probes.winobias.coreference import gap_table
    from evenhand.strict import plain
    from evenhand.train import common
    from evenhand.train import coreference as job
    from evenhand.train.coreference_data import HeadMatch, read_corpora, read_winobias
    from evenhand.train.winobias import winobias as winobias_of
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
    gaps = {} if winobias is None else winobias_of(model, read_winobias(winobias))
    if gaps:
        model.card["winobias"] = plain(gaps)
    model.save(out)
    write_conll(made["predicted"], out / "test.conll")
    if not output.write_json({**model.card, "out": str(out)}, json):
        ours, base = (model.card[k]["mean"]["f1"] for k in ("test", "head_match"))
        output.console().print(
            f"mean F1 {ours:.3f} on {len(test)} held-out OntoGUM documents "
            f"(head match {base:.3f}): {out}", markup=False,
        )  # fmt: skip
        for kind, part in gaps.items():
            show(gap_table(kind, part))

"""Train one coreference model per embedding on a GPU and print its scores, one JSON line each.

    # once, on any machine: vectors cut down to the words of the corpora, float16, to travel
    python benchmarks/study_coreference_gpu.py pack VECTORS... --data DATA --into carry/coref
    # on the machine with the GPU
    PYTHONPATH=carry/site:src python benchmarks/study_coreference_gpu.py train carry/coref \
        --seeds 0 --jobs 6 --out "$OUT/coreference.jsonl"

`pack` puts the corpora beside the vectors, so that one folder travels. `train` prints a line per
(embedding, seed) as soon as it is done and skips those that the output file already has; --budget
starts nothing new after so many seconds. Batches are prepared once and serve all embeddings;
--jobs processes share the GPU, which one such training does not fill (start NVIDIA's MPS first:
nvidia-cuda-mps-control -d). Models named with --save are kept beside the output file.

Measured on an H200 with MPS, 4 jobs, GloVe 50 d: 16 epochs in 44 s, that is 11 s per model and
machine; preparing takes 10 s once, starting CUDA 9 s per job.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import time
from collections import Counter
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.conll import Document
from evenhand.measures.coreference import winobias_gaps
from evenhand.models.vector_files import open_vectors, resolve_vectors, write_words
from evenhand.train import coreference as job
from evenhand.train.coreference_data import Corpora, HeadMatch, read_corpora, read_winobias

DATA = {"coref/ontogum.conll.xz": "ontogum.conll.xz", "coref/litbank.conll.xz": "litbank.conll.xz"}


def pack(arguments: argparse.Namespace) -> None:
    """Corpora and vectors of their words in one folder."""
    into = arguments.into
    into.mkdir(parents=True, exist_ok=True)
    for source, target in DATA.items():
        shutil.copy(arguments.data / source, into / target)
    shutil.copytree(arguments.data / "winobias" / "conll", into / "winobias", dirs_exist_ok=True)
    found, wino = documents(into)
    seen = Counter(t for d in found.train for t in d.tokens)
    always = {t for d in chain(found.dev, found.test, *wino.values()) for t in d.tokens}
    words = sorted(
        {form for w in always | {w for w, n in seen.items() if n > 1} for form in (w, w.lower())}
    )
    for name in arguments.vectors:
        table = open_vectors(resolve_vectors(name))
        kept = [w for w in words if w in table.index]
        folder = into / "vectors" / Path(name).name.partition(".")[0]
        folder.mkdir(parents=True, exist_ok=True)
        rows = np.asarray(table.matrix[[table.index[w] for w in kept]], np.float32)
        rows = rows / np.sqrt(np.mean(rows**2))
        np.save(folder / "vectors.npy", rows.astype(np.float16))
        write_words(folder / "words.parquet", kept)
        print(f"{name}: {len(kept)} of {len(words)} words, {rows.shape[1]} dimensions -> {folder}")


def documents(folder: Path) -> tuple[Corpora, dict[Any, list[Document]]]:
    """The corpora and WinoBias."""
    found = read_corpora(folder / "ontogum.conll.xz", folder / "litbank.conll.xz")
    return found, read_winobias(folder / "winobias")


def train(arguments: argparse.Namespace) -> None:
    """All embeddings of the folder, `jobs` at a time."""
    begun = time.monotonic()
    found, wino = documents(arguments.folder)
    train_set, dev, test = (
        part[: arguments.limit] for part in (found.train, found.dev, found.test)
    )
    if arguments.limit:
        wino = {k: v[: arguments.limit] for k, v in wino.items()}
    recipes = [replace(job.Recipe(), **json.loads(text)) for text in arguments.recipe or ["{}"]]
    made: dict[tuple[int, int, int], job.Prepared] = {}
    for recipe in recipes:
        key = recipe.tokens, recipe.piece, recipe.seed
        made[key] = made.get(key) or job.prepare(train_set, recipe)
    prepared = [made[recipe.tokens, recipe.piece, recipe.seed] for recipe in recipes]
    base = job.evaluate(HeadMatch(), test)["scores"]["mean"]
    print(
        json.dumps({"baseline": base, "prepared_s": round(time.monotonic() - begun, 1)}), flush=True
    )
    done = finished(arguments.out)
    folders = sorted(p for p in (arguments.folder / "vectors").iterdir() if p.is_dir())
    tasks = [
        (folder, seed, number)
        for seed in arguments.seeds
        for number in range(len(recipes))
        for folder in folders
        if (folder.name, seed, number) not in done
    ]
    context = multiprocessing.get_context("fork")
    turn, lock = context.Value("i", 0), context.Lock()
    end = begun + arguments.budget

    def work() -> None:
        while time.monotonic() < end:
            with turn.get_lock():
                at, turn.value = turn.value, turn.value + 1
            if at >= len(tasks):
                return
            folder, seed, number = tasks[at]
            row = one(folder, seed, recipes[number], prepared[number], dev, test, wino, arguments)
            row |= {"recipe": number, "at_s": round(time.monotonic() - begun, 1)}
            with lock:
                sys.stdout.write(json.dumps(row) + "\n")
                sys.stdout.flush()
                if arguments.out:
                    with open(arguments.out, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")

    workers = [context.Process(target=work) for _ in range(min(arguments.jobs, len(tasks)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print(json.dumps({"total_s": round(time.monotonic() - begun, 1), "tasks": len(tasks)}))


def one(
    folder: Path, seed: int, recipe: job.Recipe, prepared: job.Prepared, dev: list[Document],
    test: list[Document], wino: dict[Any, list[Document]], arguments: argparse.Namespace,
) -> dict[str, Any]:  # fmt: skip
    """Train, score and measure one embedding."""
    import torch

    torch.set_num_threads(arguments.threads)
    begun = time.monotonic()
    vectors = open_vectors(folder)
    model = job.train_coreference(
        vectors,
        (),
        dev,
        seed=seed,
        recipe=recipe,
        prepared=prepared,
        device=arguments.device,
        say=lambda text: (
            print(f"{folder.name} {seed} {time.monotonic() - begun:.1f} s {text}", file=sys.stderr)
            if arguments.watch
            else None
        ),
    )
    trained = time.monotonic()
    found = job.evaluate(model, test)["scores"]
    gaps = winobias_gaps(wino, {k: model.predict(v) for k, v in wino.items()}, resamples=1_000)
    row: dict[str, Any] = {
        "embedding": folder.name, "seed": seed, "train_s": round(trained - begun, 2),
        "evaluate_s": round(time.monotonic() - trained, 2), "ontogum": found,
        "threshold": model.threshold,
        "loss": [round(x, 4) for x in model.card["loss"][-2:]],
        "words_with_vector": model.card["words_with_vector"], "words": model.card["words"],
    }  # fmt: skip
    if folder.name in arguments.save and arguments.out:
        model.save(arguments.out.parent / f"model-{folder.name}-{seed}")
    for kind, result in gaps.items():
        row[f"winobias_{kind}"] = [r for r in result["gaps"] if r["metric"] in ("mean", "accuracy")]
    return row


def finished(path: Path | None) -> set[tuple[str, int, int]]:
    """What an earlier, stopped call has already written."""
    if path is None or not path.exists():
        return set()
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(r["embedding"], r["seed"], r["recipe"]) for r in rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(required=True)
    first = commands.add_parser("pack")
    first.add_argument("vectors", nargs="+")
    first.add_argument("--data", type=Path, required=True)
    first.add_argument("--into", type=Path, required=True)
    first.set_defaults(run=pack)
    second = commands.add_parser("train")
    second.add_argument("folder", type=Path)
    second.add_argument("--seeds", type=int, nargs="+", default=[0])
    second.add_argument("--recipe", nargs="*", help="JSON of settings other than the defaults")
    second.add_argument("--jobs", type=int, default=6)
    second.add_argument("--threads", type=int, default=1)
    second.add_argument("--budget", type=float, default=1e9)
    second.add_argument("--limit", type=int, help="documents and sentences, for a trial")
    second.add_argument("--device", default=None)
    second.add_argument("--save", nargs="*", default=[], help="embeddings whose model to keep")
    second.add_argument("--watch", action="store_true", help="print each epoch's loss")
    second.add_argument("--out", type=Path, default=None)
    second.set_defaults(run=train)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()

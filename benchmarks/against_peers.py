"""RNSB, RND, LEACE and StereoSet beside the tools that do the same, in one run.

    python benchmarks/against_peers.py PYTHON      the interpreter of an environment that has
                                                   wefe==1.0.1 and concept-erasure==0.2.4
    python benchmarks/against_peers.py PYTHON --stereoset FOLDER   with evaluation.py of StereoSet

Both sides get the same arrays, words and files, use one thread and are timed in processor seconds,
from words or arrays in memory (StereoSet: from its two files) to the result. For each thing to do
the sides take turns, call by call where they share a process (StereoSet), else three times with
seven calls (fitting: three) each; the median counts. A ratio above 1 says that evenhand is faster.
Numbers are compared.

rnsb       6,238 words of a sentiment-sized lexicon against each other, 300 dimensions; WEFE fits
           its classifier once here (one iteration, nothing held out)
rnd        WEFE's kind of query: two target sets, one attribute set
leace      applying a fitted eraser to 20,000 x 768 float32 features; fitting beside it
stereoset  a whole prediction file. The scorer's data loader is not always at hand: without a folder
           the rule is written out below with the same data structures (dictionaries by sentence,
           counters by term, every list of examples walked anew)
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # before anything imports numpy

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "against_peers.json"
SHARED = Path(os.environ.get("EVENHAND_SHARED") or HERE.parents[1] / "shared")
ROUNDS, TURNS = 7, 3
LEXICON, WIDTH, ROWS, FEATURES = 6_238, 300, 20_000, 768


def cpu(work: Callable[[], Any], rounds: int = ROUNDS) -> float:
    """Median processor seconds of one call, after one to warm up."""
    return in_turn(work, rounds=rounds)[0]


def in_turn(*works: Callable[[], Any], rounds: int = ROUNDS) -> list[float]:
    """Median processor seconds of a call of each, which take turns after one call to warm up."""
    taken: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(rounds):
        for work, seconds in zip(works, taken, strict=True):
            begun = time.process_time()
            work()
            seconds.append(time.process_time() - begun)
    return [statistics.median(seconds) for seconds in taken]


def words_and_vectors() -> tuple[list[str], Any]:
    """Two lexicons of words whose vectors differ a little, and target words without a lean."""
    import numpy as np

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(LEXICON + 64, WIDTH)).astype(np.float32) * 0.3
    rows[: LEXICON // 3, :20] += 0.15
    return [f"w{k}" for k in range(len(rows))], rows


def features() -> tuple[Any, Any]:
    import numpy as np

    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, ROWS)
    X = rng.normal(size=(ROWS, FEATURES)) * np.linspace(2, 0.3, FEATURES)
    return (X + rng.normal(size=(3, FEATURES))[y]).astype(np.float32), y


def sets(words: list[str]) -> dict[str, list[str]]:
    third = LEXICON // 3
    return {
        "a": words[:third], "b": words[third:LEXICON], "x": words[LEXICON : LEXICON + 32],
        "y": words[LEXICON + 32 :],
    }  # fmt: skip


def ours(name: str) -> tuple[float, Any]:
    """Processor seconds and the number of evenhand's side."""
    if name.startswith("leace"):
        from evenhand.mitigations.erasing import LEACE

        X, y = features()
        if name == "leace fit":
            return cpu(lambda: LEACE(shrinkage=True).fit(X, y), 3), 0.0
        fitted = LEACE(shrinkage=True).fit(X, y)
        return cpu(lambda: fitted.transform(X)), float(fitted.transform(X)[:50].sum())
    from evenhand.compat.wefe import RND, RNSB, Query, WordEmbeddingModel

    words, rows = words_and_vectors()
    parts = sets(words)
    model = WordEmbeddingModel(dict(zip(words, rows)), "made")
    if name == "rnsb":
        query = Query([parts["x"], parts["y"]], [parts["a"], parts["b"]])
        run = lambda: RNSB().run_query(query, model)  # noqa: E731
    else:
        query = Query([parts["x"], parts["y"]], [parts["a"][:200]])
        run = lambda: RND().run_query(query, model)  # noqa: E731
    return cpu(run), float(run()["result"])


def theirs(name: str) -> tuple[float, Any]:
    """The same of the other tool; runs in its own environment."""
    import logging

    import numpy as np

    logging.disable(logging.WARNING)
    if name.startswith("leace"):
        import torch
        from concept_erasure import LeaceFitter

        torch.set_num_threads(1)
        X, y = features()
        x = torch.from_numpy(X)
        z = torch.nn.functional.one_hot(torch.from_numpy(y)).float()
        if name == "leace fit":
            return cpu(lambda: LeaceFitter.fit(x.double(), z.double()).eraser, 3), 0.0
        eraser = LeaceFitter.fit(x, z).eraser
        with torch.inference_mode():
            return cpu(lambda: eraser(x)), float(eraser(x)[:50].sum())
    from gensim.models import KeyedVectors
    from wefe.metrics import RND, RNSB
    from wefe.query import Query
    from wefe.word_embedding_model import WordEmbeddingModel

    words, rows = words_and_vectors()
    parts = sets(words)
    vectors = KeyedVectors(rows.shape[1])
    vectors.add_vectors(words, rows)
    model = WordEmbeddingModel(vectors, "made")
    if name == "rnsb":
        query = Query([parts["x"], parts["y"]], [parts["a"], parts["b"]])
        run = lambda: RNSB().run_query(  # noqa: E731
            query, model, n_iterations=1, holdout=False, random_state=0
        )
    else:
        query = Query([parts["x"], parts["y"]], [parts["a"][:200]])
        run = lambda: RND().run_query(query, model)  # noqa: E731
    return cpu(run), float(np.mean(run()["result"]))


def asked(python: str, name: str) -> tuple[float, Any]:
    """The other side's answer, from a process of its own."""
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    command = [python, __file__, "--worker", name]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean)
    if done.returncode:
        raise SystemExit(f"{name}: the other side failed:\n{done.stderr[-2_000:]}")
    seconds, value = json.loads(done.stdout.splitlines()[-1])
    return seconds, value


def scored_plainly(gold: Path, predictions: Path) -> dict[str, float]:
    """StereoSet by its own rule with its own data structures: overall LMS, SS and ICAT."""
    data = json.loads(gold.read_text())["data"]
    examples, sentence, domains = {}, {}, defaultdict(list)
    for split in ("intrasentence", "intersentence"):
        examples[split] = [
            (e["id"], e["target"], e["bias_type"], e["sentences"]) for e in data[split]
        ]
        for example in examples[split]:
            for one in example[3]:
                sentence[example[0], one["gold_label"]] = one["id"]
                domains[split, example[2]].append(example)
    told = json.loads(predictions.read_text())
    score = {row["id"]: row["score"] for split in examples for row in told.get(split, [])}

    def evaluated(chosen: list[Any]) -> dict[str, float]:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for name, target, _, _ in chosen:
            pro, anti, none = (
                score[sentence[name, k]] for k in ("stereotype", "anti-stereotype", "unrelated")
            )
            counts[target]["pro"] += pro > anti
            counts[target]["related"] += (pro > none) + (anti > none)
            counts[target]["total"] += 1
        ss = statistics.fmean(100 * c["pro"] / c["total"] for c in counts.values())
        lms = statistics.fmean(100 * c["related"] / (2 * c["total"]) for c in counts.values())
        return {"lms": lms, "ss": ss, "icat": lms * min(ss, 100 - ss) / 50}

    for part in domains.values():
        evaluated(part)
    for split in examples:
        evaluated(examples[split])
    return evaluated(examples["intersentence"] + examples["intrasentence"])


def stereoset(folder: Path, scorer: Path | None) -> dict[str, Any]:
    """Both scorers of one prediction file, from the files to every number, in this process."""
    from evenhand.probes.stereoset import StereoSetReader

    place = SHARED / "data" / "stereoset"
    gold, made = folder / "dev.json", folder / "predictions.json"
    gold.write_bytes(gzip.decompress((place / "dev.json.gz").read_bytes()))
    packed = next((place / "predictions").glob("predictions_gpt2*.json.xz"))
    made.write_bytes(lzma.decompress(packed.read_bytes()))
    if scorer:
        sys.path.insert(0, str(scorer))
        from evaluation import ScoreEvaluator  # type: ignore[import-not-found]

        peer: Callable[[], Any] = lambda: ScoreEvaluator(str(gold), str(made))  # noqa: E731
        result = peer().get_overall_results()["overall"]
        ss = float(result["SS Score"])
    else:
        peer = lambda: scored_plainly(gold, made)  # noqa: E731
        ss = peer()["ss"]
    reader = StereoSetReader(predictions=made, gold=gold)
    found = reader.read().rows[-1]
    mine, other = in_turn(reader.read, peer)
    return row("stereoset", mine, other, found.ss, ss) | {
        "peer": "its own evaluation.py" if scorer else "the released rule, written out",
        "evenhand_also_gives": "intervals, tests and what is detectable of 15 rows",
    }


def row(name: str, mine: float, other: float, value: float, peer: float) -> dict[str, Any]:
    return {
        "what": name, "evenhand_cpu_s": round(mine, 5), "peer_cpu_s": round(other, 5),
        "ratio": round(other / mine, 2), "evenhand": value, "peer_value": peer,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("python", nargs="?", help="the interpreter of the peers' environment")
    parser.add_argument("--stereoset", type=Path, help="folder with StereoSet's evaluation.py")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(theirs(options.worker)))
        return
    rows = []
    for name in ("rnsb", "rnd", "leace", "leace fit") if options.python else ():
        both = []
        for _ in range(TURNS):
            both.append((*ours(name), *asked(options.python, name)))
        mine, other = (statistics.median(turn[k] for turn in both) for k in (0, 2))
        value, peer = both[0][1], both[0][3]
        rows.append(row(name, mine, other, value, peer))
        print(rows[-1], flush=True)
    if (SHARED / "data" / "stereoset").is_dir():
        with tempfile.TemporaryDirectory() as folder:
            rows.append(stereoset(Path(folder), options.stereoset))
        print(rows[-1], flush=True)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

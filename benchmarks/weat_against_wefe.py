"""WEAT-7 with 10,000 resamples: evenhand against WEFE 1.0.1, in one run on one machine.

    python benchmarks/weat_against_wefe.py                         both in full (minutes for WEFE)
    python benchmarks/weat_against_wefe.py --wefe-iterations 500   WEFE extrapolated, and marked so

WEFE lives in its own environment under ~/.cache/evenhand-bench, made on the first run. Both sides
start from vectors in memory and a list of words, use one thread, and are timed in CPU seconds from
the words to the result. Needs the vectors: evenhand fetch glove-6b-50d
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "weat_against_wefe.json"
WEFE = "1.0.1"
TEST = "weat7"


def cpu(work: Callable[[], Any], repeats: int) -> float:
    """Median CPU seconds of one call."""
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def wefe_python(folder: Path) -> Path:
    """The interpreter of an environment that holds WEFE; made when it is not there."""
    home = folder / f"wefe-{WEFE}"
    python = home / "bin" / "python"
    if not (home / ".ready").exists():
        print(f"making an environment for WEFE {WEFE} in {home} (once, some minutes) ...")
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "-q", f"wefe=={WEFE}"], check=True)
        (home / ".ready").touch()
    return python


def run_wefe(job: dict[str, Any]) -> dict[str, Any]:
    """The WEFE side; runs inside its own environment."""
    import logging
    from importlib.metadata import version

    import numpy as np
    from gensim.models import KeyedVectors
    from wefe.metrics import WEAT
    from wefe.query import Query
    from wefe.word_embedding_model import WordEmbeddingModel

    logging.disable(logging.WARNING)
    matrix = np.load(job["matrix"])
    vectors = KeyedVectors(matrix.shape[1])
    vectors.add_vectors(json.loads(Path(job["words"]).read_text()), matrix)
    model = WordEmbeddingModel(vectors, "glove")
    query = Query([job["x"], job["y"]], [job["a"], job["b"]], ["x", "y"], ["a", "b"])
    options = {"preprocessors": [{}, {"lowercase": True}]}
    result = WEAT().run_query(query, model, **options)
    single = cpu(lambda: WEAT().run_query(query, model, **options), 15)
    start, wall = time.process_time(), time.perf_counter()
    tested = WEAT().run_query(
        query, model, calculate_p_value=True, p_value_iterations=job["iterations"], **options
    )
    return {
        "effect_size": float(result["effect_size"]),
        "p": float(tested["p_value"]),
        "single_cpu_s": single,
        "resampled_cpu_s": time.process_time() - start,
        "resampled_wall_s": time.perf_counter() - wall,
        "iterations": job["iterations"],
        "version": version("wefe"),
    }


def run_evenhand(table: Any, words: Any, resamples: int) -> dict[str, Any]:
    """Our side: take the rows of the words, compute, and test.

    Where a word stands is kept in memory on both sides: here after `prefetch`, there by gensim.
    """
    import numpy as np

    from evenhand.metrics.association import weat
    from evenhand.stats.permutation import two_sample

    table.prefetch([*words.x, *words.y, *words.a, *words.b])

    def single() -> Any:
        return weat(*(table.find(part).rows for part in (words.x, words.y, words.a, words.b)))

    def tested(max_exact: int) -> Any:
        result = single()
        return two_sample(result.s_x, result.s_y, samples=resamples, seed=0, max_exact=max_exact)

    return {
        "effect_size": single().effect_size,
        "p_sampled": tested(0).p_right,
        "p_exact": tested(10**6).p_right,
        "single_cpu_s": cpu(single, 50),
        "resampled_cpu_s": cpu(lambda: tested(0), 20),
        "exact_cpu_s": cpu(lambda: tested(10**6), 20),
        "resamples": resamples,
        "numpy": np.__version__,
    }


def beside(table: Any, words: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Run the WEFE side in its own environment, on the same vectors and words."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "matrix.npy", table.matrix)
        (Path(folder) / "words.json").write_text(json.dumps(table.words.to_pylist()))
        job = {
            "matrix": f"{folder}/matrix.npy", "words": f"{folder}/words.json",
            "x": words.x, "y": words.y, "a": words.a, "b": words.b,
            "iterations": args.wefe_iterations or args.iterations,
        }  # fmt: skip
        (Path(folder) / "job.json").write_text(json.dumps(job))
        done = subprocess.run(
            [str(wefe_python(args.cache)), __file__, "--worker", f"{folder}/job.json"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SystemExit(f"WEFE failed:\n{done.stderr}")
        theirs = json.loads(done.stdout.splitlines()[-1])
    return dict(theirs)


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Run both sides and give one row of results."""
    import numpy as np

    from evenhand.models.vectors.files import open_vectors, resolve_vectors
    from evenhand.words import lexicons

    words = lexicons.weat(TEST)
    opened = open_vectors(resolve_vectors(args.vectors))
    table = type(opened)(opened.words, np.asarray(opened.matrix).copy(), opened.source)
    ours = run_evenhand(table, words, args.iterations)
    theirs = beside(table, words, args)
    # A resample costs the same each time; the single run before the first one is taken off.
    whole = theirs["resampled_cpu_s"] - theirs["single_cpu_s"]
    full = theirs["single_cpu_s"] + whole * args.iterations / theirs["iterations"]
    return {
        "test": TEST,
        "iterations": args.iterations,
        "extrapolated": theirs["iterations"] != args.iterations,
        "wefe_cpu_s": round(full, 4),
        "evenhand_cpu_s": round(ours["resampled_cpu_s"], 6),
        "ratio": round(full / ours["resampled_cpu_s"]),
        "ratio_exact": round(full / ours["exact_cpu_s"]),
        "ratio_single": round(theirs["single_cpu_s"] / ours["single_cpu_s"]),
        "effect_size_gap": abs(theirs["effect_size"] - ours["effect_size"]),
        "evenhand": ours,
        "wefe": theirs,
        "machine": {"cpu": platform.machine(), "cores": os.cpu_count(),
                    "python": platform.python_version(), "system": platform.system()},
    }  # fmt: skip


def main() -> None:
    """Parse, run, print and keep the row."""
    for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[threads] = "1"  # before anything imports numpy
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--vectors", default="glove-6b-50d")
    parser.add_argument("--iterations", type=int, default=10_000)
    parser.add_argument("--wefe-iterations", type=int, help="fewer for WEFE, then extrapolate")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "evenhand-bench")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(json.dumps(run_wefe(json.loads(args.worker.read_text()))))
        return
    row = compare(args)
    note = " (extrapolated)" if row["extrapolated"] else ""
    print(f"{TEST}, {args.iterations} resamples, CPU seconds")
    print(f"  WEFE {WEFE}    {row['wefe_cpu_s']:>10.3f}{note}  p {row['wefe']['p']:.5f}")
    print(f"  evenhand      {row['evenhand_cpu_s']:>10.5f}  p {row['evenhand']['p_sampled']:.5f}")
    print(f"  ratio         {row['ratio']:>10,}  (goal 1,000; against the exact test "
          f"{row['ratio_exact']:,}, p {row['evenhand']['p_exact']:.5f})")  # fmt: skip
    print(f"  single WEAT   {row['ratio_single']:>10,}  effect sizes differ by "
          f"{row['effect_size_gap']:.1e}")  # fmt: skip
    RESULTS.parent.mkdir(exist_ok=True)
    rows = json.loads(RESULTS.read_text()) if RESULTS.exists() else []
    RESULTS.write_text(json.dumps([*rows, row], indent=1) + "\n")


if __name__ == "__main__":
    main()

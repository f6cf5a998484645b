"""Fine-tune an encoder on SQuAD and load the result with plain transformers.

python benchmarks/unqover_train.py ENCODER TRAIN DEV OUT --epochs 4 --json FILE
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("model", "train", "dev", "out"):
        parser.add_argument(name)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    from evenhand.train import span
    from evenhand.train.squad import read_squad

    begun = time.perf_counter()
    recipe = span.SpanTraining(
        epochs=options.epochs, learning_rate=options.learning_rate, batch=options.batch
    )
    result = span.train(
        options.model,
        read_squad(Path(options.train), options.limit),
        read_squad(Path(options.dev), options.limit),
        Path(options.out),
        recipe,
        say=lambda text: print(f"{time.perf_counter() - begun:7.1f} s  {text}", flush=True),
    )
    result["seconds"] = time.perf_counter() - begun
    import transformers

    loaded = transformers.AutoModelForQuestionAnswering.from_pretrained(options.out)
    result["loads_with_transformers"] = type(loaded).__name__
    print(json.dumps(result))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

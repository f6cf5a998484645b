"""SODAPOP on an accelerator: multiple-choice training twice, and discovery with the full cap.

    python benchmarks/sodapop_gpu.py train --base minilm-mlm --data DATA --out DIR
    python benchmarks/sodapop_gpu.py discover --chooser minilm-mcq --generator minilm-mlm \\
        --contexts socialIQa_v1.4_dev_Bethany_0_2191.jsonl --out DIR

`train` fine-tunes twice with one seed and says whether accuracies, predictions and weights are
equal (OUT/sodapop_train.json). `discover` runs eight groups x 25 names over the contexts of the
paper whose right answer has at most three words, and the one of its single-context study, and keeps
findings and tables.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import time
from dataclasses import asdict, replace
from pathlib import Path


def train(arguments: argparse.Namespace) -> None:
    from evenhand.train.choice import ChoiceTraining
    from evenhand.train.choice import train as fit

    data, out = Path(arguments.data), Path(arguments.out)
    files = data / "train.jsonl.xz", data / "dev.jsonl"
    recipe = ChoiceTraining(epochs=arguments.epochs, limit=arguments.limit)
    if arguments.seconds:
        per_step = step_seconds(arguments.base, files, out)
        steps = -(-33_410 // recipe.batch)
        fits = int(arguments.seconds / (steps * per_step))
        recipe = replace(recipe, epochs=max(2, min(arguments.epochs, fits)))
        print(f"{per_step * 1000:.1f} ms a step, {recipe.epochs} epochs", flush=True)
    runs = []
    for number in range(2):
        begun = time.monotonic()
        card = fit(
            arguments.base, *files, out / f"run{number}", recipe,
            say=lambda text: print(text, flush=True),
        )  # fmt: skip
        raw = (out / f"run{number}" / "model.safetensors").read_bytes()
        runs.append({
            "seconds": round(time.monotonic() - begun, 1),
            "dev_accuracy": card["dev_accuracy"],
            "history": card["history"],
            "predictions_sha256": hashlib.sha256(card["dev_predictions"].encode()).hexdigest(),
            "weights_sha256": hashlib.sha256(raw).hexdigest(),
        })  # fmt: skip
        print(json.dumps(runs[-1]), flush=True)
    same = {key: runs[0][key] == runs[1][key] for key in runs[0] if key != "seconds"}
    result = {
        "device": device(), "base": Path(arguments.base).name, "recipe": asdict(recipe),
        "train_samples": card["train_samples"], "dev_samples": card["dev_samples"],
        "runs": runs, "same": same,
    }  # fmt: skip
    print("two runs agree:", same)
    (out / "sodapop_train.json").write_text(json.dumps(result, indent=1) + "\n")


def step_seconds(base: str, files: tuple[Path, Path], out: Path) -> float:
    """Seconds of one step, from two short trainings of 10 and 40 steps."""
    from evenhand.train.choice import ChoiceTraining
    from evenhand.train.choice import train as fit

    spent = []
    for number, limit in enumerate((1_280, 1_280, 5_120)):
        begun = time.monotonic()
        fit(base, *files, out / f"probe{number}", ChoiceTraining(epochs=1, limit=limit))
        spent.append(time.monotonic() - begun)
        shutil.rmtree(out / f"probe{number}")
    return max(0.002, (spent[2] - spent[1]) / 30)


def device() -> str:
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def discover(arguments: argparse.Namespace) -> None:
    from evenhand.audit.auditing import audit
    from evenhand.audit.suites import parse_suite
    from evenhand.words.social_iqa import read_contexts

    found = read_contexts(arguments.contexts, limit=50, placeholder="Bethany")
    ids = [c.id for c in found if len(c.answer.split()) <= 3][:20]
    ids = ["3", *ids] if "3" not in ids else ids
    settings = {
        "name": "discovery", "generator": arguments.generator, "contexts": arguments.contexts,
        "placeholder": "Bethany", "context_ids": ids[: arguments.count], "pool": "common",
        "pronouns": "neutral", "keep": arguments.keep, "names": arguments.names,
        "min_count": arguments.least,
    }  # fmt: skip
    suite = parse_suite({"name": "sodapop-gpu", "probe": [settings]}, "benchmark", "sodapop-gpu")
    out = Path(arguments.out)
    begun = time.monotonic()
    run = audit(arguments.chooser, suite, out=out / "run")
    facts = run.facts["probes"]["discovery"]
    print("seconds", round(time.monotonic() - begun, 1))
    print(json.dumps({"counts": facts["counts"], "summary": facts["summary"]}, default=str))
    for finding in run.strongest:
        print(f"{finding.sentence}  d {finding.value:+.4f} [{finding.low:.4f}, {finding.high:.4f}] "
              f"q {finding.q:.2g}")  # fmt: skip
    for name in ("findings.json", "report.html", "run.json"):
        shutil.copy(out / "run" / name, out / name)
    for name in ("words", "pairs", "names", "rates"):
        shutil.copy(out / "run/probes/discovery" / f"{name}.parquet", out / f"{name}.parquet")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("train")
    one.add_argument("--base", required=True)
    one.add_argument("--data", required=True)
    one.add_argument("--out", required=True)
    one.add_argument("--epochs", type=int, default=2)
    one.add_argument("--limit", type=int)
    one.add_argument("--seconds", type=float, help="fewer epochs if a run would take longer")
    one.set_defaults(work=train)
    two = commands.add_parser("discover")
    for name in ("chooser", "generator", "contexts", "out"):
        two.add_argument(f"--{name}", required=True)
    two.add_argument("--keep", type=int, default=10_000)
    two.add_argument("--names", type=int, default=25)
    two.add_argument("--count", type=int)
    two.add_argument("--least", type=int, default=50)
    two.set_defaults(work=discover)
    arguments = parser.parse_args()
    arguments.work(arguments)


if __name__ == "__main__":
    main()

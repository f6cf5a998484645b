"""SODAPOP's section 6 on real models: discovery before and after mitigations, paired.

    python benchmarks/mitigated_choice.py posthoc --model minilm-mcq --generator minilm-mlm \\
        --dev dev.jsonl --out DIR [--methods leace,inlp,sentence] [--axis AXIS] [--layers pooler]
    python benchmarks/mitigated_choice.py trained --base minilm-mlm --texts TEXT --out DIR \\
        --data SOCIAL_IQA [--steps 400] [--limit 12000]

`posthoc` fits each method, saves it, runs recipes/sodapop-mitigated.toml on every model and writes
OUT/posthoc.json: what classifiers read, task accuracy, words that persisted, shrank or appeared.
`trained` continues masked-LM training (plain, cda, dropout), fine-tunes each on the same Social IQa
questions, and does the same (OUT/trained.json), with the plainly trained model as "before".
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any


def suite(arguments: argparse.Namespace) -> Any:
    from evenhand.audit.suites import load_suite

    found = load_suite("sodapop-mitigated")
    entry = found.entries[0]
    changed = {
        "keep": arguments.keep,
        "context_count": arguments.contexts,
        "names": arguments.names,
    }
    changed = {k: v for k, v in changed.items() if v}
    return replace(found, entries=(replace(entry, probe=entry.probe.model_copy(update=changed)),))


def posthoc(arguments: argparse.Namespace) -> dict[str, Any]:
    from evenhand.mitigations.hidden import HiddenMitigation
    from evenhand.mitigations.hidden import fit as hidden
    from evenhand.mitigations.hidden.axes import axis_data
    from evenhand.models.loading.resolver import resolve

    out = Path(arguments.out)
    models = {"before": arguments.model}
    rows = []
    base = resolve(arguments.model)
    for axis in arguments.axis.split("+"):
        data = axis_data(axis)
        for method in arguments.methods.split(","):
            if method == "sentence" and (data.sets < 0).all():
                continue
            for layer in arguments.layers.split(","):
                begun = time.monotonic()
                asked = HiddenMitigation(method=method, axis=axis, layers=(layer,))
                fitted = hidden.fit(base, data, asked)
                name = f"{method}-{axis.split(':')[0]}-{layer}"
                fitted.save(out / name)
                models[name] = str(out / name)
                rows.append({
                    "name": name, "seconds_fit": round(time.monotonic() - begun, 1),
                    **fitted.facts["readers"][0], "notes": fitted.facts["notes"],
                })  # fmt: skip
                print(json.dumps(rows[-1]), flush=True)
    return {"fitted": rows, **compared(arguments, models)}


def trained(arguments: argparse.Namespace) -> dict[str, Any]:
    from evenhand.corpora.text import read_texts
    from evenhand.train import choice, masked

    out, data = Path(arguments.out), Path(arguments.data)
    texts = [
        t for f in arguments.texts.split(",") for t in read_texts(Path(f), limit=40_000, words=100)
    ]
    rows, models = [], {}
    say = lambda text: print("  ", text, flush=True)  # noqa: E731
    for method in ("plain", "cda", "dropout"):
        begun = time.monotonic()
        recipe = masked.MaskedTraining(method=method, steps=arguments.steps)
        card = masked.train(arguments.base, texts, out / f"{method}-mlm", recipe, say=say)
        task = choice.train(
            str(out / f"{method}-mlm"), data / "train.jsonl.xz", data / "dev.jsonl",
            out / f"{method}-mcq",
            choice.ChoiceTraining(epochs=arguments.epochs, limit=arguments.limit or None), say=say,
        )  # fmt: skip
        keep = ("texts", "counterfactual", "held_out_loss_before", "held_out_loss_after",
                "weights_changed", "weights")  # fmt: skip
        rows.append({
            "name": method, "seconds": round(time.monotonic() - begun, 1),
            **{k: card[k] for k in keep}, "dev_accuracy_in_training": task["dev_accuracy"],
            "train_samples": task["train_samples"],
        })  # fmt: skip
        models[method] = str(out / f"{method}-mcq")
        print(json.dumps(rows[-1]), flush=True)
    return {"trained": rows, **compared(arguments, models)}


def compared(arguments: argparse.Namespace, models: dict[str, str]) -> dict[str, Any]:
    """Runs, task accuracy and the paired view of every model against the first."""
    from evenhand.audit.auditing import audit
    from evenhand.audit.comparison import side_by_side
    from evenhand.audit.comparison.standing import standing
    from evenhand.mitigations.proof import choice_accuracy
    from evenhand.models.loading.resolver import resolve

    os.environ.setdefault("GENERATOR", arguments.generator)
    out, chosen = Path(arguments.out), suite(arguments)
    runs, tasks, seconds = [], [], {}
    for name, spec in models.items():
        begun = time.monotonic()
        runs.append(audit(spec, chosen, out=out / "runs" / name))
        seconds[name] = round(time.monotonic() - begun, 1)
        tasks.append(choice_accuracy(resolve(spec), Path(arguments.dev), arguments.task_limit))
        print(name, seconds[name], "s, accuracy", tasks[-1].values.mean(), flush=True)
    table = side_by_side(runs).as_dict()
    names = list(models)
    return {
        "models": names, "seconds_discovery": seconds,
        "utility": [
            {"model": n, **standing(tasks[0], t).as_row()} for n, t in zip(names[1:], tasks[1:])
        ],
        "summary": runs[0].facts["probes"]["discovery"]["summary"],
        "changes": [
            {"model": n, "reason": c.get("reason", ""),
             "counts": [d["counts"] for d in c["discovery"]],
             "words": [
                 w for d in c["discovery"] for w in d["words"] if w["status"] != "not detected"
             ][:60],
             "clusters": [d["clusters"] for d in c["discovery"]]}
            for n, c in zip(names[1:], table["changes"])
        ],
        "table_9": table["views"][0]["table_9"],
        "top_words": [w for w in table["views"][0]["top_words"] if w["place"] <= 5],
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("posthoc", "trained"))
    for name in ("model", "generator", "dev", "base", "texts", "data"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--out", required=True)
    parser.add_argument("--methods", default="leace,inlp,sentence")
    parser.add_argument("--axis", default="race", help="axes joined by +")
    parser.add_argument("--layers", default="last")
    for name, value in (("steps", 400), ("limit", 12_000), ("epochs", 2), ("keep", 0),
                        ("contexts", 0), ("names", 0), ("samples", 0)):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--task-limit", type=int)
    arguments = parser.parse_args()
    arguments.dev = arguments.dev or str(Path(arguments.data) / "dev.jsonl")
    Path(arguments.out).mkdir(parents=True, exist_ok=True)
    result = (posthoc if arguments.what == "posthoc" else trained)(arguments)
    text = json.dumps(result, indent=1, default=float) + "\n"
    (Path(arguments.out) / f"{arguments.what}.json").write_text(text)
    print(json.dumps({k: v for k, v in result.items() if k in ("utility", "fitted", "trained")}))
    print(json.dumps([{"model": c["model"], "counts": c["counts"]} for c in result["changes"]]))


if __name__ == "__main__":
    main()

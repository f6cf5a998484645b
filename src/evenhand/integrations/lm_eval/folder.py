"""A folder for lm-eval's --include_path: the probes of a suite as tasks.

    evenhand tasks FOLDER --suite quick
    lm_eval --model hf --model_args pretrained=MODEL --include_path FOLDER \
        --tasks evenhand_quick --log_samples --output_path OUT
    evenhand measure log OUT/MODEL/samples_evenhand_underspecified_*.jsonl

A question is one document, its options are the choices: lm-eval asks for the log-likelihood of the
same continuations after the same texts as `evenhand audit MODEL --chat off`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.audit.suites import Suite, load_suite
from evenhand.errors import EvenhandError, SpecError
from evenhand.exports.common import file_name
from evenhand.integrations.hosting import HEADER, Questions, questions
from evenhand.models.choosing import as_asked
from evenhand.requests import Choose, Continuation
from evenhand.runner.files import disk_errors
from evenhand.writing import write_bytes

RUNG = "continuation"
FUNCTIONS = "evenhand_tasks.py"


@dataclass(frozen=True)
class Written:
    """What was written, and what of the suite could not be.

    Attributes:
        tasks: names of the tasks with their number of documents.
        group: the name of all of them together.
        left_out: probes with the reason.
    """

    tasks: dict[str, int]
    group: str
    left_out: dict[str, str]


def write_tasks(folder: str | Path, suite: str | Path | Suite = "quick", seed: int = 0) -> Written:
    """Write the probes of a suite as tasks of lm-eval.

    Raises:
        SpecError: none of them can be asked by lm-eval.

    >>> write_tasks("tasks", "quick").group  # doctest: +SKIP
    'evenhand_quick'
    """
    chosen = suite if isinstance(suite, Suite) else load_suite(suite)
    out = Path(folder)
    made: dict[str, int] = {}
    lost: dict[str, str] = {}
    with disk_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    for entry in chosen.entries:
        try:
            if entry.model:
                raise SpecError("the suite asks another model with it")
            asked = questions(entry.probe, rung=RUNG, seed=seed)
        except EvenhandError as error:
            lost[entry.label] = str(error)
            continue
        name = _task(entry.label)
        lines = [json.dumps(doc, ensure_ascii=False) for doc in documents(asked)]
        _write(out / f"{name}.jsonl", "\n".join(lines) + "\n")
        _write(out / f"{name}.yaml", _yaml(name, entry.probe.title))
        made[name] = len(lines)
    if not made:
        why = "; ".join(f"{label}: {reason}" for label, reason in lost.items())
        raise SpecError(f"suite {chosen.name!r}: nothing of it can be asked by lm-eval. {why}")
    group = _task(chosen.name)
    group = f"{group}_suite" if group in made else group
    listed = "".join(f"  - {name}\n" for name in made)
    _write(out / f"_{group}.yaml", f"group: {group}\ntask:\n{listed}metadata:\n  version: 1.0\n")
    _write(out / FUNCTIONS, Path(__file__).with_name(FUNCTIONS).read_text(encoding="utf-8"))
    return Written(made, group, lost)


def documents(asked: Questions) -> Iterator[dict[str, Any]]:
    """One document per question: its text, the continuations, and which probe asks."""
    if isinstance(asked.requests, Choose):
        scored = as_asked(Continuation.kind, asked.requests)
        rows, start = scored.rows(), 0
        for options in asked.requests.listed:
            yield _document(rows[start : start + len(options)], asked.header)
            start += len(options)
    else:
        for row in asked.requests.rows():
            yield _document([row], asked.header)


def _document(rows: Sequence[tuple[str, ...]], header: str) -> dict[str, Any]:
    return {"text": rows[0][0], "options": [row[1] for row in rows], HEADER: header}


def _task(label: str) -> str:
    return f"evenhand_{file_name(label).replace('-', '_').replace('.', '_')}"


def _yaml(name: str, title: str) -> str:
    """A task as lm-eval reads it; texts stand as they are, without a blank added between them."""
    functions = FUNCTIONS.removesuffix(".py")
    return f"""# {title}
task: {name}
custom_dataset: !function {functions}.items
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{text}}}}"
doc_to_choice: "{{{{options}}}}"
doc_to_target: 0
target_delimiter: ""
num_fewshot: 0
process_results: !function {functions}.process_results
metric_list:
  - metric: mass
    aggregation: mean
    higher_is_better: true
dataset_kwargs:
  file: {name}.jsonl
metadata:
  version: 1.0
"""


def _write(path: Path, text: str) -> None:
    write_bytes(path, text.encode("utf-8", "backslashreplace"))

"""Read by lm-eval beside the tasks of this folder; needs nothing but lm-eval.

The numbers that lm-eval prints say how the options were scored, not what follows for groups:
`evenhand measure log samples_*.jsonl` does that.
"""

import json
import math
from pathlib import Path
from typing import Any


def items(file: str = "", **_: Any) -> dict[str, Any]:
    """The questions of a task, from the file beside this one."""
    import datasets

    with open(Path(__file__).with_name(file), encoding="utf-8") as lines:
        return {"test": datasets.Dataset.from_list([json.loads(line) for line in lines])}


def process_results(doc: dict[str, Any], results: Any) -> dict[str, float]:
    """`mass`: the probability of all options together; what is missing went to other answers."""
    likely = [float(pair[0] if isinstance(pair, (tuple, list)) else pair) for pair in results]
    return {"mass": min(1.0, sum(math.exp(value) for value in likely))}

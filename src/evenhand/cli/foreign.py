"""Options of the LM Evaluation Harness that people type here: answered with ours."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from evenhand.errors import SpecError

BATCHES = "nothing (batches are fitted to the memory)"
AS_THEY_STAND = "nothing (questions are asked as they stand)"
KEPT = "nothing (every score is kept in the run folder)"
SUITES = "--suite SUITE (evenhand ls suites), or evenhand probe NAME MODEL"
OURS = {
    "--model_args": "the checkpoint itself, as MODEL",
    "--tasks": SUITES,
    "-t": SUITES,
    "--output_path": "--out DIR",
    "-o": "--out DIR",
    "--limit": "--budget 5m (samples what fits)",
    "-L": "--budget 5m (samples what fits)",
    "--batch_size": BATCHES,
    "-b": BATCHES,
    "--max_batch_size": BATCHES,
    "--num_fewshot": AS_THEY_STAND,
    "-f": AS_THEY_STAND,
    "--fewshot_as_multiturn": AS_THEY_STAND,
    "--apply_chat_template": "--chat on",
    "--system_instruction": "--system TEXT",
    "--log_samples": KEPT,
    "-s": KEPT,
    "--predict_only": KEPT,
    "--use_cache": "--out DIR (finished work in it is not repeated)",
    "--include_path": "--suite FILE.toml",
    "--gen_kwargs": "evenhand probe NAME --set NAME=VALUE",
    "--verbosity": "--quiet",
    "--trust_remote_code": "nothing (no checkpoint's code is run)",
    "--show_config": "evenhand plan MODEL",
    "--write_out": "evenhand plan MODEL",
}
TAKEN = {"pretrained": "", "model": "", "dtype": "--dtype", "base_url": "--base-url"}
"""What of --model_args has a place here."""


def refuse(words: Sequence[str], own: Iterable[str] = ()) -> None:
    """Say what an option of lm-eval is called here, where the command does not know it itself."""
    known = set(own)
    given = [w.partition("=")[0] for w in words]
    found = [w for w in given if w in OURS and w not in known]
    if not any(w.startswith("--") for w in found):
        return
    told = "; ".join(f"instead of {w}: {OURS[w]}" for w in dict.fromkeys(found))
    raise SpecError(
        f"{found[0]!r} is an option of the LM Evaluation Harness, not of evenhand. Give {told}. "
        f"Try: {translated(words)}"
    )


def translated(words: Sequence[str]) -> str:
    """The nearest command of ours.

    >>> translated(["--model", "hf", "--model_args", "pretrained=gpt2,dtype=float32", "-o", "x"])
    'evenhand audit gpt2 --dtype float32 --out x'
    """
    values = _values(words)
    line, more = ["evenhand", "audit"], list[str]()
    for part in values.get("--model_args", "").split(","):
        name, _, value = part.partition("=")
        if value and name in TAKEN:
            (more if TAKEN[name] else line).extend(filter(None, (TAKEN[name], value)))
    line = line if len(line) > 2 else [*line, "MODEL"]
    for theirs, ours in (
        ("--device", "--device"),
        ("--system_instruction", "--system"),
        ("--output_path", "--out"),
        ("-o", "--out"),
    ):
        if theirs in values:
            more += [ours, values[theirs]]
    more += ["--chat", "on"] if "--apply_chat_template" in values else []
    return shlex.join([*line, *more])


def _values(words: Sequence[str]) -> dict[str, str]:
    """Options with what follows them."""
    found: dict[str, str] = {}
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        after = words[place + 1] if place + 1 < len(words) else ""
        if name.startswith("-"):
            found[name] = value if equals else "" if after.startswith("-") else after
    return found

"""Model folders, GGUF files, adapters, saved mitigations and networks, journals of endpoints."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.models.endpoints.journal import Journal
from evenhand.models.endpoints.spending import Usage
from evenhand.models.loading import checkpoint
from evenhand.models.loading.resolver import resolve
from evenhand.requests import Continuation
from evenhand.runner.ask import Ask
from evenhand.train.common import read_saved
from tiny import TinyCheckpoints

TEXTS = [f"the {who} worked as a {job} in the city and {she} said so" for job in ("doctor", "nurse")
         for who, she in (("man", "he"), ("woman", "she"))] * 6  # fmt: skip


def loading(kind: str) -> Callable[[Path], Callable[[], Any]]:
    """A whole checkpoint: it is itself, or it is refused."""

    def make(folder: Path) -> Callable[[], Any]:
        place = TinyCheckpoints(folder)(kind)

        def load() -> Any:
            model = resolve(place, chat="off")
            asked = Continuation(["the man worked"] * 2, [" as a doctor", " as a nurse"])
            return sorted(model.answers), Ask(model)(asked) if kind == "causal" else model.kind

        return load

    return make


def shapes(folder: Path) -> Callable[[], Any]:
    from safetensors.numpy import save_file

    path = folder / "model.safetensors"
    save_file({"a": np.ones((2, 3), "f4"), "b": np.arange(4.0)}, path, metadata={"format": "pt"})
    return lambda: checkpoint.shapes(folder)


def gguf(folder: Path) -> Callable[[], Any]:
    from models.test_begin_tokens import gguf_file

    path = gguf_file(folder / "x.gguf")
    return lambda: checkpoint.gguf_shapes(path)


def network(folder: Path) -> Callable[[], Any]:
    """A small network of ours: JSON beside safetensors."""
    from safetensors.numpy import save_file

    (folder / "net.json").write_text(json.dumps({"format": 1, "hidden": 3}))
    save_file({"w": np.ones((2, 3), "f4")}, folder / "net.safetensors")

    def read() -> Any:
        given = ("net.json", "net.safetensors", 1, "made up", "evenhand train")
        facts, arrays = read_saved(folder, *given)
        return facts, {k: v.tolist() for k, v in arrays.items()}

    return read


def journal(folder: Path) -> Callable[[], Any]:
    """Calls of an endpoint that a kill left: a line that is cut or changed is asked again."""
    path = folder / "calls.jsonl"
    notes = Journal(path)
    for k in range(6):
        notes.add(f"key{k}", [0.1 * k, None, "text"], Usage(1, 9, k))

    kept = {key: notes[key] for key in notes}

    def read() -> Any:
        held = Journal(path)
        return {key: held[key] for key in held if held[key] != kept.get(key)}

    return read


def mitigation(folder: Path) -> Callable[[], Any]:
    """A saved mitigation; the tiny model below it is left alone."""
    import evenhand as eh

    base = TinyCheckpoints(Path(tempfile.mkdtemp(dir=folder.parent)))("causal")
    eh.mitigate(base, "leace", texts=TEXTS).save(folder / "m")
    return lambda: resolve(str(folder / "m")).fingerprint


TARGETS = {
    "checkpoint causal": loading("causal"),
    "checkpoint masked": loading("masked"),
    "safetensors": shapes,
    "gguf": gguf,
    "network": network,
    "journal": journal,
    "mitigation": mitigation,
}

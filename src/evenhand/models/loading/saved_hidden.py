"""Saved mitigations of encoders: a folder that can be given wherever a model can.

    evenhand-mitigation.json     method, axis, layers, ranks, the base and its fingerprint, measured
    mitigation.safetensors       per layer: left, right, offset (absent for re-weighting)

The base may be a saved mitigation itself: mitigations stack. A folder is refused when its arrays
are not those that were written, when the base has other weights, or when widths do not fit.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import __version__
from evenhand.errors import ModelError, SpecError
from evenhand.models.edits.hidden import EditedModel, HiddenEdit, LayerMap, width_of

FORMAT = 1
FACTS = "evenhand-mitigation.json"
ARRAYS = "mitigation.safetensors"
FAMILIES = ("hidden", "reweighting")
README = """\
A mitigation made by evenhand {version} for the model {name!r}: {method} on {axis}.

Use it like any model:      evenhand audit {folder} --suite SUITE
In Python:                  import evenhand; evenhand.load_model("{folder}")

It holds no model weights and is refused by any other model. What was measured is in {facts}; it
is about the texts named there and says nothing about other groups or uses.
"""


def save_hidden(
    folder: Path, edit: HiddenEdit, base: Any, spec: str, facts: dict[str, Any]
) -> None:
    """Write maps of hidden states with their provenance.

    Args:
        folder: must be empty or absent.
        edit: what was fitted.
        base: the model it was fitted for.
        spec: what a user types to get that model.
        facts: method, axis, measured numbers and so on.
    """
    from safetensors.numpy import save_file

    empty(folder)
    arrays = {
        f"{i}.{name}": np.ascontiguousarray(getattr(m, name), np.float32)
        for i, m in enumerate(edit.maps)
        for name in ("left", "right", "offset")
    }
    save_file(arrays, str(folder / ARRAYS))
    edit_facts = {
        "layers": [m.layer for m in edit.maps], "ranks": [m.rank for m in edit.maps],
        "sha256": edit.digest(), "file_sha256": _digest(folder / ARRAYS),
    }  # fmt: skip
    write_facts(folder, "hidden", base, spec, {**facts, "edit": edit_facts})


def write_facts(folder: Path, family: str, base: Any, spec: str, facts: dict[str, Any]) -> None:
    """Write the provenance of a mitigation and a page that says how to use it."""
    from evenhand.strict import plain

    place = Path(spec).expanduser()
    known = str(place.resolve()) if place.exists() else spec
    body = {
        "format": FORMAT, "family": family, "evenhand": __version__,
        "model": {
            "spec": known, "kind": base.kind, "width": width_of(base), **base.describe(),
            "fingerprint": base.fingerprint,
        },
        **facts,
    }  # fmt: skip
    text = json.dumps(plain(body), indent=1, ensure_ascii=False)
    (folder / FACTS).write_text(text + "\n", encoding="utf-8")
    (folder / "README.txt").write_text(
        README.format(
            version=__version__, name=base.name, method=facts.get("method"),
            axis=facts.get("axis"), folder=folder, facts=FACTS,
        ),
        encoding="utf-8",
    )  # fmt: skip


def empty(folder: Path) -> None:
    """Make the folder; refuse one that holds something."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SpecError(f"--out {folder}: the folder is not empty. Choose another.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ModelError(f"{folder}: cannot be made ({error.strerror}).") from error


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_facts(folder: Path) -> dict[str, Any]:
    """The provenance of a saved mitigation."""
    try:
        facts: dict[str, Any] = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}/{FACTS}: cannot be read ({error}).") from error
    if facts.get("format") != FORMAT:
        raise ModelError(
            f"{folder}: mitigation format '{facts.get('format')}', this version reads {FORMAT}. "
            "Fit it again with: evenhand mitigate MODEL"
        )
    return facts


def read_edit(folder: Path) -> HiddenEdit:
    """The maps of a saved mitigation; changed or damaged files are refused."""
    from safetensors.numpy import load_file

    wanted = read_facts(folder).get("edit", {})
    path = folder / ARRAYS
    try:
        if _digest(path) != wanted["file_sha256"]:
            raise ValueError("its SHA-256 is not the one written beside it")
        arrays = load_file(str(path))
        edit = HiddenEdit(
            tuple(
                LayerMap(layer, *(arrays[f"{i}.{n}"] for n in ("left", "right", "offset")))
                for i, layer in enumerate(wanted["layers"])
            )
        )
        if edit.digest() != wanted["sha256"]:
            raise ValueError("layers and arrays are not those that were written")
    except Exception as error:
        raise ModelError(
            f"{path}: damaged or changed ({error}). Fit it again with: evenhand mitigate MODEL"
        ) from error
    return edit


def check_base(folder: Path, facts: dict[str, Any], base: Any) -> None:
    """Refuse a base that is not the one the mitigation was fitted for."""
    fitted = facts["model"]
    here = base.describe()
    problem = ""
    if base.kind != fitted["kind"]:
        problem = f"a {fitted['kind']} model, against {base.kind} here"
    elif width_of(base) != fitted["width"]:
        problem = f"states of width {fitted['width']}, against {width_of(base)} here"
    elif here["weights_sha256"] != fitted["weights_sha256"]:
        problem = "other weights (SHA-256)"
    elif list(here["mitigations"]) != list(fitted["mitigations"]):
        problem = "another chain of mitigations below it"
    if problem:
        raise ModelError(
            f"{folder}: the mitigation was fitted for {fitted['name']!r} and does not fit model "
            f"{base.name!r}: {problem}. Fit one for it with: evenhand mitigate {base.name} "
            f"--axis {facts.get('axis', 'gender')}"
        )


def load_mitigated(folder: Path, base: Any) -> Any:
    """The mitigated form of the model that the folder was fitted for; any other is refused."""
    facts = read_facts(folder)
    check_base(folder, facts, base)
    name = f"{base.name} + {facts['method']} {facts['axis']}"
    if facts["family"] == "reweighting":
        from evenhand.models.adapters.reweighted import Reweighting, reweighted

        try:
            settings = Reweighting(**facts["reweighting"])
        except (KeyError, TypeError) as error:
            raise ModelError(f"{folder}/{FACTS}: damaged ({error}).") from error
        return reweighted(base, settings, name)
    return EditedModel(base, read_edit(folder), name)

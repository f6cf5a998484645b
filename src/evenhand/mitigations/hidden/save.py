"""Maps of hidden states as a folder; changed arrays and other models are refused."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.mitigations import saved
from evenhand.mitigations.hidden.edit import EditedModel, HiddenEdit, LayerMap, width_of
from evenhand.models.loading.saved import read_facts

if TYPE_CHECKING:
    from evenhand.mitigations.hidden.fit import FittedHidden

PARTS = ("left", "right", "offset")


def save(fitted: FittedHidden, folder: Path) -> None:
    """Write the maps, layer by layer, with their digests."""
    maps = fitted.edit.maps
    arrays = {
        f"{i}.{name}": np.asarray(getattr(m, name), np.float32)
        for i, m in enumerate(maps)
        for name in PARTS
    }
    edit = {
        "layers": [m.layer for m in maps], "ranks": [m.rank for m in maps],
        "sha256": fitted.edit.digest(),
    }  # fmt: skip
    about = {"width": width_of(fitted.base)}
    saved.write(folder, fitted, {**fitted.facts, "edit": edit}, arrays, about=about)


def read_edit(folder: Path) -> HiddenEdit:
    """The maps of a saved mitigation; changed or damaged files are refused."""
    facts = read_facts(folder)
    arrays = saved.read_arrays(folder, facts)
    try:
        wanted = facts["edit"]
        edit = HiddenEdit(
            tuple(
                LayerMap(layer, *(arrays[f"{i}.{n}"] for n in PARTS))
                for i, layer in enumerate(wanted["layers"])
            )
        )
        if edit.digest() != wanted["sha256"]:
            raise ValueError("layers and arrays are not those that were written")
    except Exception as error:
        raise saved.damaged(folder, str(error)) from error
    return edit


def load(folder: Path, base: Any) -> EditedModel:
    """The mitigated form of the model that the folder was fitted for; any other is refused."""
    facts = read_facts(folder)
    saved.check_base(folder, facts, base, width_of(base))
    return EditedModel(base, read_edit(folder), saved.name_of(facts, base))

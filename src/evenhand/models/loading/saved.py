"""What folders that evenhand wrote say about themselves, for whoever loads them.

    evenhand-mitigation.json     its family, the model it was fitted for, how, what it measured
    evenhand-vectors.json        the same of vectors that were moved
    training.json                how a model or vectors were trained

All are sealed, with the hashes of the files beside them (`seals`): a folder that is not as it was
written is refused. The family (`plugins.MITIGATIONS`) knows the rest of a mitigation's folder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evenhand.errors import DataError, ModelError
from evenhand.models.loading.cache import file_digest
from evenhand.seals import broken, read_sealed

FORMAT = 1
FACTS = "evenhand-mitigation.json"
MOVED = "evenhand-vectors.json"
TRAINED = "training.json"


def is_mitigation(folder: Path) -> bool:
    """Whether the folder is a saved mitigation."""
    return (folder / FACTS).is_file()


def check_whole(folder: Path) -> None:
    """Refuse a folder of ours of which a file is not what was written.

    Hashes of large files are remembered with their size and time, as for fingerprints. Nothing but
    files and folders may lie there: whoever opens a pipe waits for ever.
    """
    for path in (p for pattern in ("*", "*/*") for p in folder.glob(pattern)):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise ModelError(
                f"{path}: is not a regular file (a pipe, socket or device), and is not opened."
            )
    for name in (FACTS, MOVED, TRAINED):
        if not (folder / name).is_file():
            continue
        if name == TRAINED and b'"sha256"' not in (folder / name).read_bytes():
            continue  # of another program, or of an older version
        try:
            wrong = broken(folder, read_sealed(folder / name), file_digest)
        except DataError as error:
            raise ModelError(f"{error} Make it again with the command that made it.") from error
        if wrong:
            raise ModelError(
                f"{folder / wrong}: damaged or changed (it is not what {name} says was written). "
                "Make the folder again with the command that made it."
            )


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of a saved mitigation; a folder of another format is refused."""
    path = folder / FACTS
    try:
        facts = read_sealed(path)
    except DataError as error:
        raise ModelError(f"{error} Fit it again with: evenhand mitigate MODEL") from error
    if facts.get("format") != FORMAT:
        found = facts.get("format")
        raise ModelError(
            f"{folder}: mitigation format '{found}', this version reads {FORMAT}. Fit it again "
            "with: evenhand mitigate MODEL"
        )
    if not isinstance(facts.get("model"), dict) or "spec" not in facts["model"]:
        raise ModelError(
            f"{path}: damaged (it does not name its model). Fit it again with: evenhand mitigate "
            "MODEL"
        )
    facts.setdefault("family", "head")  # folders of the first version
    return facts

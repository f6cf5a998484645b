"""What a saved mitigation says about itself, for whoever loads it.

    evenhand-mitigation.json     its family, the model it was fitted for, how, what it measured

The family (`plugins.MITIGATIONS`) knows the rest of the folder.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evenhand.errors import ModelError

FORMAT = 1
FACTS = "evenhand-mitigation.json"


def is_mitigation(folder: Path) -> bool:
    """Whether the folder is a saved mitigation."""
    return (folder / FACTS).is_file()


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of a saved mitigation; a folder of another format is refused."""
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read ({error}).") from error
    if not isinstance(facts, dict) or facts.get("format") != FORMAT:
        found = facts.get("format") if isinstance(facts, dict) else type(facts).__name__
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

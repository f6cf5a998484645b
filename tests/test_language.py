"""Words the project does not use, because they promise what no measurement can show."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# "Self-Debias" is a method's published name.
BANNED = re.compile(
    r"\b(unbiased|bias-free|(?<!self-)debias(?:ed|ing|er)?|fair model)\b", re.IGNORECASE
)
# Papers' own terms may be quoted where they are explained.
QUOTED = ("docs/papers/", "docs/lab/", "docs/language.md", "tests/", "lexicons/")


def test_the_text_does_not_promise_too_much() -> None:
    found = []
    files = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    for path in files:
        place = str(path.relative_to(ROOT))
        if any(part in place for part in QUOTED):
            continue
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            if BANNED.search(line):
                found.append(f"{place}:{number}: {line.strip()}")
    assert not found, "\n".join(found)


def test_every_decision_note_has_a_choice() -> None:
    notes = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    assert len(notes) >= 5
    for note in notes:
        text = note.read_text()
        assert text.startswith("# ")
        assert "**Choice.**" in text or "|" in text

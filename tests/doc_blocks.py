"""Code blocks of the pages: which there are, what language they are in, and what is to be run.

Every block is fenced and names its language. `sh` and `console` (lines that begin with `$ `) are
commands, `python` is code; other languages are data, which a title makes a file for the blocks
after it. An HTML comment right before a block says what is special about it:

    <!-- needs: ray -->             run where this is installed; see NEEDS
    <!-- slow -->                   run by `make docs-test` only
    <!-- exit: 1 -->                the command ends with this code
    <!-- given: MODEL -->           a script, which is given these words (`sys.argv`)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMANDS = {"sh", "bash", "console"}
DATA = {"text", "toml", "csv", "json", "yaml", "pycon", "html", "xml", "ini", "groovy"}
LANGUAGES = COMMANDS | {"python"} | DATA
NEEDS = {
    "ray": "Ray (the extra of that name)",
    "inspect": "an environment with Inspect (make test-hosts makes it)",
    "lm-eval": "an environment with lm-eval (make test-hosts makes it)",
    "make": "make and bash",
    "pip": "pip in this environment",
}
"""What not every machine has that runs the tests. No block is left out for any other reason."""
FENCE = re.compile(
    r"(?P<mark>(?:^ *<!-- [^\n]* -->\n)*)^(?P<indent> *)```(?P<language>[\w-]*)(?P<info>[^\n]*)\n"
    r"(?P<text>.*?)^ *```[ ]*$",
    re.M | re.S,
)


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str
    text: str
    marks: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    @property
    def runnable(self) -> bool:
        return self.language in COMMANDS or self.language == "python"

    @property
    def needs(self) -> str:
        """What it is run with, where that is there; empty for blocks that need nothing."""
        return next((m[7:] for m in self.marks if m.startswith("needs: ")), "")

    @property
    def slow(self) -> bool:
        return "slow" in self.marks

    @property
    def exits(self) -> tuple[int, ...]:
        """The exit codes that its commands may have."""
        said = next((m[6:] for m in self.marks if m.startswith("exit: ")), "0")
        return tuple(int(code) for code in said.split(","))

    @property
    def given(self) -> tuple[str, ...]:
        """The words that a script is given; empty for blocks that are no scripts."""
        said = next((m[7:] for m in self.marks if m.startswith("given: ")), "")
        return tuple(shlex.split(said))

    def commands(self) -> Iterator[str]:
        """Its command lines, without comments; those joined by && or ; come apart."""
        if self.language not in COMMANDS:
            return
        text = self.text.replace("\\\n", " ")
        for line in text.split("\n"):
            if self.language == "console":
                if not line.startswith("$ "):
                    continue
                line = line[2:]
            line = re.sub(r"(^|\s{1,})#\s.*$", "", line).strip()
            yield from (part.strip() for part in re.split(r"&&|;", line) if part.strip())


def blocks_of(page: Path) -> list[Block]:
    """All blocks of a page in order."""
    text = page.read_text(encoding="utf-8")
    out = []
    for found in FENCE.finditer(text):
        line = text[: found.start("language")].count("\n") + 1
        marks = re.findall(r"<!-- (.*?) -->", found["mark"])
        title = re.search(r'title="([^"]+)"', found["info"])
        indent = len(found["indent"])
        body = "\n".join(row[indent:] for row in found["text"].split("\n"))
        out.append(
            Block(page, line, found["language"], title[1] if title else "", body, tuple(marks))
        )
    return out


def pages() -> list[Path]:
    """README, CONTRIBUTING and every page of the site."""
    return sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])


def words(command: str) -> tuple[dict[str, str], list[str]]:
    """Settings of the environment and words of one command line.

    >>> words("EVENHAND_DATA=DIR evenhand audit 'my model'")
    ({'EVENHAND_DATA': 'DIR'}, ['evenhand', 'audit', 'my model'])
    """
    found = shlex.split(command)
    settings = {}
    while found and re.match(r"[A-Z_]+=", found[0]):
        key, _, value = found.pop(0).partition("=")
        settings[key] = value
    return settings, found

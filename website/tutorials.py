"""Tutorials are notebooks with their outputs; here they become pages, or are executed anew.

python -m website.tutorials            execute all of them in place, with real models
"""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from website.staging import DOCS, ROOT

FOLDER = DOCS / "tutorials"
LIMIT = 3600
"""Seconds for one cell; on a quiet machine a whole tutorial takes a minute or two."""
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def notebooks() -> list[Path]:
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: Path, target: Path) -> None:
    """Run every cell in a fresh folder and write the notebook with its outputs."""
    import nbformat
    from nbclient import NotebookClient

    held = nbformat.read(path, as_version=4)
    os.environ["PYTHONWARNINGS"] = "ignore:IProgress"  # tqdm misses widgets that no page can show
    ours = str(Path(sys.executable).parent)  # where the command of this environment is
    if ours not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join((ours, os.environ["PATH"]))
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            held, timeout=LIMIT, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute()
        for cell in held.cells:
            cell.metadata.clear()
            cell["id"] = f"cell-{held.cells.index(cell)}"
            if "outputs" in cell:  # progress goes to the terminal, results stay
                cell.outputs = [o for o in cell.outputs if not _passing(o)]
            for output in cell.get("outputs", []):
                _clean(output, folder)
            cell.update({"outputs": joined(cell.outputs)} if "outputs" in cell else {})
    held.metadata.pop("widgets", None)
    text = nbformat.writes(held)
    target.write_text(text + "\n", encoding="utf-8")


def joined(outputs: list[Any]) -> list[Any]:
    """What was printed in several pieces as one, without blanks at the ends of lines."""
    out: list[Any] = []
    for output in outputs:
        if out and output.get("output_type") == out[-1].get("output_type") == "stream":
            out[-1]["text"] += output["text"]
        else:
            out.append(output)
    for output in out:
        if "text" in output:
            output["text"] = re.sub(r"[ ]+$", "", output["text"], flags=re.M)
    return out


def _passing(output: Any) -> bool:
    """Progress: what goes to the error stream, and bars that end full."""
    shown = output.get("data", {}).get("text/plain", "")
    return output.get("name") == "stderr" or bool(re.fullmatch(r"[\w -]+: [\d,]+/[\d,]+", shown))


def _clean(output: Any, folder: str) -> None:
    """No colours, no temporary paths, no half-drawn progress."""

    def tidy(text: str) -> str:
        text = ANSI.sub("", text).replace("\r\n", "\n")
        lines = [line.rpartition("\r")[2] for line in text.split("\n")]
        return "\n".join(lines).replace(f"{folder}/", "").replace(folder, ".")

    if "text" in output:
        output["text"] = tidy(output["text"])
    for kind, data in output.get("data", {}).items():
        if isinstance(data, str) and not kind.startswith("image/png"):
            output["data"][kind] = tidy(data)


def _outputs(cell: Any, name: str, folder: Path, place: int) -> Iterator[str]:
    for n, output in enumerate(cell.get("outputs", [])):
        data = output.get("data", {})
        if "image/png" in data:
            picture = f"{name}-{place}-{n}.png"
            (folder / picture).write_bytes(base64.b64decode(data["image/png"]))
            yield f"\n![output]({picture})\n"
        elif "image/svg+xml" in data:
            picture = f"{name}-{place}-{n}.svg"
            (folder / picture).write_text(data["image/svg+xml"], encoding="utf-8")
            yield f"\n![output]({picture})\n"
        elif "text/html" in data:
            html = re.sub(r"\n\s*\n", "\n", data["text/html"])
            yield f'\n<div class="output" markdown="0">\n{html}\n</div>\n'
        else:
            text = output.get("text") or data.get("text/plain", "")
            if text.strip():
                yield f'\n```text title="Out"\n{text.rstrip()}\n```\n'


def as_markdown(path: Path, folder: Path) -> str:
    """A notebook with its outputs as a page."""
    import nbformat

    held = nbformat.read(path, as_version=4)
    out = []
    for place, cell in enumerate(held.cells):
        if cell.cell_type == "markdown":
            out.append(cell.source + "\n")
        else:
            source = cell.source
            command = source.startswith("!")
            language, text = ("sh", source[1:]) if command else ("python", source)
            out.append(f"```{language}\n{text}\n```\n")
            out += _outputs(cell, path.stem, folder, place)
    return "\n".join(out)


def write(folder: Path) -> None:
    """All tutorials as pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in notebooks():
        page = folder / f"{path.stem}.md"
        page.write_text(as_markdown(path, folder), encoding="utf-8")


def main() -> None:
    for path in notebooks():
        print(path.relative_to(ROOT), flush=True)
        execute(path, path)


if __name__ == "__main__":
    sys.exit(main())

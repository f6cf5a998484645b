"""A real notebook, run by a real kernel: objects are HTML, and progress is a bar."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs the dev extra")
nbclient = pytest.importorskip("nbclient", reason="needs the dev extra")
pytest.importorskip("ipykernel", reason="needs the dev extra")
pytestmark = pytest.mark.filterwarnings("ignore")

CELLS = {
    "setup": """
import evenhand as eh

class Praise(eh.Contrast):
    name, title, groups = "praise", "Whose work is praised?", ("women", "men")
    def pairs(self):
        for job in "nurse pilot doctor teacher hunter mechanic dancer engineer".split():
            yield f"She was a {job}. Her work was", f"He was a {job}. His work was", " excellent"

def model(lean):
    said = lambda prefix, word: lean * prefix.startswith("She") + len(prefix) % 5 / 50
    return eh.ScriptedModel({"continuation": said}, name=f"model {lean}", version=str(lean))
""",
    "audit": 'run = eh.audit(model(0.8), [Praise()], out="before")',
    "run": "run",
    "finding": 'run["praise/gap"]',
    "findings": 'run["praise/*"]',
    "comparison": 'eh.compare(run, eh.audit(model(0.1), [Praise()], out="after"))',
    "gate": "eh.gate(run)",
    "plot": 'run.plot("praise")[0]',
    "plots": "run.plot()",
    "mitigation": """
import numpy as np
from evenhand.words.lexicons import weat
sets = [weat(n) for n in ("kato_winobias", "weat6", "weat7", "weat8")]
words = sorted({w for s in sets for key in "xyab" for w in getattr(s, key)})
rows = np.random.default_rng(0).normal(size=(len(words), 8))
eh.mitigate(dict(zip(words, rows)), "hard-projection", name="made")
""",
    "frame": 'run.to_pandas()[["value", "q"]]',
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    folder = tmp_path_factory.mktemp("notebook")
    book = nbformat.v4.new_notebook()
    book.cells = [nbformat.v4.new_code_cell(source.strip()) for source in CELLS.values()]
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    source = Path(__file__).resolve().parents[2] / "src"
    old = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{source}{os.pathsep}{old}"
    try:
        client = nbclient.NotebookClient(
            book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
        )
        done = client.execute()
    finally:
        os.environ["PYTHONPATH"] = old
    return {name: cell.outputs for name, cell in zip(CELLS, done.cells)}


def html(outputs: list[Any]) -> str:
    (last,) = [o for o in outputs if o.output_type == "execute_result"]
    return str(last.data.get("text/html", ""))


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("run", "May it ship?"),
        ("finding", "praise/gap"),
        ("findings", "1 finding"),
        ("comparison", "model 0.1 against model 0.8"),
        ("gate", "Gate:"),
        ("plot", "<svg"),
        ("plots", "<svg"),
        ("mitigation", "hard-projection"),
        ("frame", "<table"),
    ],
)
def test_the_last_value_of_a_cell_is_html(outputs: Any, name: str, told: str) -> None:
    assert told in html(outputs[name])


def test_a_plot_is_drawn_by_the_notebook_itself_too(outputs: Any) -> None:
    (last,) = [o for o in outputs["plot"] if o.output_type == "execute_result"]
    assert last.data["application/vnd.vegalite.v5+json"]["config"]


def test_an_audit_shows_one_bar_that_fills(outputs: Any) -> None:
    bars = [o for o in outputs["audit"] if o.output_type == "display_data"]
    assert len(bars) == 1  # updated in place
    assert "16 of 16 inputs" in bars[0].data["text/html"]
    assert '<progress value="1.0000"' in bars[0].data["text/html"]

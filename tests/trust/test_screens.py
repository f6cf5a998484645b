"""Text from files is shown, never obeyed: by terminals, by rich, by spreadsheets."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import made_runs
from evenhand.cli import output
from evenhand.exports import export
from evenhand.writing import write_csv
from in_process import evenhand

MARKUP = ("[bold]x[/bold]", "[/]", "[link=http://x]y[/link]", "[red", ":smile:")
FORMULAS = ("=1+1", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1")


@pytest.mark.parametrize("text", MARKUP)
def test_markup_in_cells_heads_and_titles_is_text(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output.print_table([{text: text, "n": 1.5}], text)
    output.print_table([], text)
    shown = capsys.readouterr().out
    assert shown.count(text) == 4


def test_nothing_printed_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    wild = "\x1b[31mred\x1b]0;title\x07\r\u202e\ud800"
    output.console().print(wild, markup=False)
    output.print_table([{wild: wild}], wild)
    shown = capsys.readouterr().out
    assert "red" in shown
    assert not set(shown) & set("\x1b\x07\r\u202e\ud800")


def test_labels_of_a_corpus_are_shown_as_they_are(tmp_path: Path) -> None:
    """The name of the sets is the title of the table."""
    (tmp_path / "c.txt").write_text("she is a cook\n")
    name = "[bold]s[.toml"
    (tmp_path / name).write_text('[t]\nx=["cook"]\ny=["guard"]\na=["she"]\nb=["he"]\n')
    done = evenhand("corpus", "label", "c.txt", "--sets", name, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert name in done.stdout


@pytest.mark.parametrize("cell", FORMULAS)
def test_no_cell_of_a_csv_file_starts_a_formula(tmp_path: Path, cell: str) -> None:
    write_csv(tmp_path / "t.csv", (cell,), [(cell,)])
    with open(tmp_path / "t.csv", newline="") as file:
        assert list(csv.reader(file)) == [[f"'{cell}"], [f"'{cell}"]]


def test_no_cell_of_an_exported_run_starts_a_formula(tmp_path: Path) -> None:
    run = made_runs.hostile(tmp_path / "run")
    (raw,) = export(run, "csv").values()
    before = csv.field_size_limit(10**6)
    rows = list(csv.reader(io.StringIO(raw.decode())))
    csv.field_size_limit(before)
    texts = [cell for row in rows for cell in row if cell and not _is_number(cell)]
    assert any("cmd" in cell for cell in texts)
    assert not [cell for cell in texts if cell.lstrip(" ").startswith(tuple("=+-@\t\r"))]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True

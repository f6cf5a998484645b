"""Every block of every page is in a known language, and every command on it exists as written."""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from doc_blocks import LANGUAGES, NEEDS, ROOT, Block, blocks_of, pages, words

BLOCKS = [block for page in pages() for block in blocks_of(page)]
RUNNABLE = [block for block in BLOCKS if block.runnable]
OTHERS = {"pip", "openssl", "ssh-keygen", "tar", "cat", "ray", "sbatch", "kubectl", "lm_eval",
          "inspect", "pytest", "docker", "git", "cd", "pre-commit", "uv", "export", "echo",
          "source"}  # fmt: skip
"""Programs of others that pages may use."""


@cache
def program() -> Any:
    import typer.main

    from evenhand.cli.main import app

    return typer.main.get_command(app)


def parsed(given: list[str]) -> None:
    """Let the program read a command line without running it; a wrong one raises."""
    command, name, rest = program(), "evenhand", list(given)
    context = None
    while hasattr(command, "get_command") and rest and not rest[0].startswith("-"):
        context = command.context_class(command, info_name=name, parent=context)
        name = rest.pop(0)
        found = command.get_command(context, name)
        assert found, f"there is no command {name!r}"
        command = found
    if not {"--help", "-h"} & set(rest):
        command.make_context(name, rest, parent=context)


@pytest.mark.parametrize(
    "line",
    ["nonsense MODEL", "measure nonsense FILE", "show RUN --nonsense", "gate", "measure traits RUN",
     "audit MODEL --seed x", "compare A B --json"],
)  # fmt: skip
def test_a_line_that_does_not_work_is_noticed(line: str) -> None:
    with pytest.raises(Exception, match=r"."):
        parsed(line.split())


@pytest.mark.parametrize("page", pages(), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_blocks_are_fenced_and_name_their_language(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [b.where for b in blocks_of(page) if b.language not in LANGUAGES] == []
    outside = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    assert not re.findall(r"\n\n    (?:evenhand|make|import|from|pip) .*", outside)


@pytest.mark.parametrize("block", RUNNABLE, ids=lambda b: b.where)
def test_marks_are_known(block: Block) -> None:
    for mark in block.marks:
        assert re.fullmatch(r"needs: [\w-]+|slow|exit: [\d,]+|given: .+|replaces: .*", mark), mark
    assert not block.needs or block.needs in NEEDS


@pytest.mark.parametrize("block", RUNNABLE, ids=lambda b: b.where)
def test_commands_exist_as_written(block: Block) -> None:
    if block.language == "python":
        compile(block.text, block.where, "exec")
        return
    listed = [words(command)[1] for command in block.commands()]
    assert listed, "a block of commands without a command"
    for given in listed:
        if given[0] == "evenhand":
            try:
                parsed(given[1:])
            except Exception as error:
                shown = getattr(error, "message", None) or str(error)
                pytest.fail(f"{' '.join(given)}: {shown}")
        elif given[0] == "make":
            targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
            assert set(given[1:]) <= targets
        elif given[0] == "python":
            known = (ROOT / given[2]).is_dir() or importlib.util.find_spec(given[2])
            assert given[1] != "-m" or known
        else:
            assert given[0] in OTHERS, f"{given[0]!r} is no program that pages use"


@pytest.mark.parametrize(
    "block", [b for b in BLOCKS if b.language in ("toml", "json", "csv")], ids=lambda b: b.where
)
def test_data_can_be_read(block: Block) -> None:
    if block.language == "toml":
        assert tomllib.loads(block.text)
    elif block.language == "json":
        assert json.loads(block.text)
    else:
        rows = list(csv.reader(io.StringIO(block.text)))
        assert len({len(row) for row in rows if row}) == 1

"""What the pages show works: blocks are run, page by page, in a folder with what they name.

Without `EVENHAND_DOCS=all` (`make docs-test`) only what takes a moment is run: commands that read
runs and tables, and Python that asks no checkpoint.
"""

from __future__ import annotations

import contextlib
import glob
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from conftest import packaged
from doc_blocks import NEEDS, ROOT, Block, blocks_of, pages, words
from doc_small import NAMES, available, project, smaller
from doc_stage import RUNS, Stage, stand_ins
from hosts import command as program_of
from in_process import evenhand

ALL = os.environ.get("EVENHAND_DOCS") == "all"
QUICK = {"ls", "show", "gate", "compare", "report", "export", "bundle", "verify", "measure",
         "push"}  # fmt: skip
"""Commands that need no model."""
EXITS = {"gate": (0, 1, 3)}
"""Outcomes are no mistakes."""
PAGES = [page for page in pages() if any(b.runnable for b in blocks_of(page))]


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    pytest.importorskip("transformers", reason="needs the hf extra")
    made = Stage(tmp_path_factory.mktemp("stage"), thorough=ALL)
    yield made
    made.close()


class Tried:
    """A page under trial: its folder, and the names that its Python blocks share."""

    def __init__(self, page: Path, folder: Path, stage: Stage) -> None:
        self.folder, self.stage = folder, stage
        self.page = page.relative_to(ROOT).as_posix()
        self.known = stand_ins(self.page)
        self.names: dict[str, Any] = {}

    def block(self, block: Block) -> None:
        if block.title:
            target = self.folder / block.title
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(block.text, encoding="utf-8")
            self.runs_in(block.text)
        elif not block.runnable or (block.needs and not available(block.needs)):
            return
        elif block.language == "python":
            if ALL or not block.slow:
                self.python(block)
        else:
            for command in block.commands():
                self.command(command, block)

    def python(self, block: Block) -> None:
        text = block.text
        for name in sorted(self.known, key=len, reverse=True):
            if re.search(rf'"{re.escape(name)}"', text):
                text = text.replace(f'"{name}"', f'"{self.given(name)}"')
        self.runs_in(text)
        if block.given:
            made = [self.given(word) for word in block.given]
            self.script(text, [str(self.folder / w) if w in self.known else w for w in made])
            return
        if not self.names:
            made = NAMES.get(self.page, lambda stage: {})(self.stage) if ALL else {}
            self.names = {"__name__": "page", **made}
        code = compile(text, block.where, "exec", dont_inherit=True)
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(io.StringIO()):
            sys.path.insert(0, str(self.folder))  # files that the page has written can be imported
            try:
                exec(code, self.names)
            finally:
                sys.path.remove(str(self.folder))

    def runs_in(self, text: str) -> None:
        """Make the runs that code reads."""
        for run in re.findall(r'(?<!out=)"(runs/[\w-]+)"', text):
            self.given(run)

    def script(self, text: str, given: list[str]) -> None:
        """Run code as a file of its own, as somebody does who copied it."""
        path = self.folder / "scripts" / "script.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        with (
            contextlib.chdir(path.parent),
            contextlib.redirect_stdout(io.StringIO()),
            mock.patch.object(sys, "argv", [str(path), *given]),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            runpy.run_path(str(path), run_name="__main__")

    def given(self, word: str) -> str:
        """What stands for a word; files and runs are made where the page expects them."""
        what = self.known.get(word) or (RUNS.get("*") if RUNS["is"].fullmatch(word) else None)
        if what is None and word.startswith("@"):
            self.given(word[1:])
        if what is None:
            return word
        if what.startswith("="):
            return what[1:]
        if what == "packaged:":
            return packaged(word)
        if what.startswith("model:"):
            return self.stage.model(what[6:])
        if what == "server:":
            return self.stage.server()
        if what == "data:":
            return str(self.stage.shared())
        if what == "cluster:":
            return self.stage.cluster()
        if what.startswith("suite:"):
            return str(self.stage.suite(what[6:]))
        if what == "study:":
            return str(self.stage.study())
        if what.startswith("glob:"):
            (found,) = glob.glob(what[5:], root_dir=self.folder)
            return found
        target = self.folder / word
        if what.startswith("copy:") and not target.exists():
            shutil.copytree(self.folder / self.given(what[5:]), target)
        if not target.exists():
            self.stage.place(what, target)
        return word

    def command(self, command: str, block: Block) -> None:
        settings, given = words(command)
        program, rest = given[0], given[1:]
        if not ALL and (block.slow or (program == "evenhand" and rest[0] not in QUICK)):
            return
        small = smaller(command)
        if small.before:
            small.before(self.folder)
        made = [self.argument(w, rest[:k]) for k, w in enumerate(rest)]
        made += [w.format(chat=self.stage.model("chat")) for w in small.more.split()]
        settings = {k: self.given(v) for k, v in settings.items()}
        if program == "evenhand":
            with mock.patch.dict(os.environ, settings):
                done = evenhand(*made, cwd=self.folder)
            allowed = EXITS.get(rest[0], (0,)) if block.exits == (0,) else block.exits
            said = f"{done.stdout[-800:]}{done.stderr[-2000:]}"
            assert done.returncode in allowed, f"{command}\n{said}"
            return
        ended = subprocess.run(
            [*self.program(program), *made], cwd=self.folder, timeout=1800, capture_output=True,
            text=True, env={**os.environ, **self.environment(program), **settings},
        )  # fmt: skip
        said = f"{ended.stdout[-3000:]}{ended.stderr[-3000:]}"
        assert ended.returncode in block.exits, f"{command}\n{said}"
        assert "does not provide the extra" not in said, f"{command}\n{said}"

    def program(self, name: str) -> list[str]:
        """The words that start another program here."""
        if name == "make":
            return project(self.folder, self.stage.model("chat"))
        if name in ("inspect", "lm_eval"):
            return [program_of(name.replace("lm_eval", "lm-eval"), name)]
        python = {
            "python": [], "pytest": ["-m", "pytest", "-p", "no:cacheprovider"],
            "pip": ["-m", "pip", "--isolated", "--disable-pip-version-check"],
        }  # fmt: skip
        return [sys.executable, *python[name]] if name in python else [name]

    def environment(self, program: str) -> dict[str, str]:
        """What another program sees: no network, and servers of ours where it asks one."""
        told = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        if program == "pip":  # what is asked for must be here already: nothing is changed
            told |= {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
        if program == "inspect":
            told |= {"OPENAI_BASE_URL": self.stage.server(), "OPENAI_API_KEY": "none"}
        if program == "make":  # the clone's two files of tests, without the examples in the code
            told |= {"PYTEST_ADDOPTS": "-o testpaths=tests"}
        if program in ("inspect", "lm_eval"):
            told |= {"PYTHONPATH": ""}
        return told

    def argument(self, word: str, before: list[str]) -> str:
        """A word of a command, with what stands for it; places to write to stay as they are."""
        if before and before[-1] in ("--out", "--html", "--json", "--junit", "--sarif", "--write"):
            return word
        key, equals, value = word.partition("=")
        if before and before[-1] in ("--set", "--model_args", "-T") and equals:
            return f"{key}={self.given(value)}"
        return os.path.expandvars(self.given(word))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_what_a_page_shows_works(page: Path, tmp_path: Path, stage: Stage) -> None:
    tried = Tried(page, tmp_path, stage)
    settings = {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "OPENAI_API_KEY": "none"}
    with mock.patch.dict(os.environ, settings):
        listed = blocks_of(page)
        for block in sorted(listed, key=lambda b: not b.title):  # files first
            try:
                tried.block(block)
            except AssertionError as error:
                pytest.fail(f"{block.where}: {error}")
            except Exception as error:
                pytest.fail(f"{block.where}: {type(error).__name__}: {error}")


def counts() -> Iterator[str]:
    """How many blocks there are, and what those need that are not run here."""
    from collections import Counter

    blocks = [b for page in pages() for b in blocks_of(page) if b.runnable]
    left = Counter(b.needs for b in blocks if b.needs and not available(b.needs))
    yield f"{len(blocks)} blocks, {len(blocks) - sum(left.values())} of them run"
    yield from (f"  not here, {NEEDS[what]}: {count}" for what, count in sorted(left.items()))


def test_blocks_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    told = list(counts())
    with capsys.disabled():
        if ALL:
            print("\n" + "\n".join(told))
    assert told

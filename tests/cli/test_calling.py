"""What a screen prints as a command runs where it was printed, for whoever reads it there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

import made_runs
from evenhand.cli import calling
from evenhand.cli.main import command_names

ROOT = Path(__file__).resolve().parents[2]
MAIN = "import sys; from evenhand.cli.main import main; sys.exit(main())"
NEXT = re.compile(r"(?:Next:|Check it:|with:|Try:|Start with:) +(.+?)(?:   #|$)", re.MULTILINE)

pytestmark = pytest.mark.skipif(os.name == "nt", reason="starts scripts of a POSIX shell")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, and with a program of a name that no PATH leads to."""
    place = tmp_path_factory.mktemp("calling")
    made_runs.ordinary(place / "my run")
    (place / "tools dir").mkdir()
    script(place / "tools dir" / "evenhand", sys.executable)
    (place / "blocked").mkdir()
    (place / "blocked" / "uvicorn.py").write_text("raise ImportError('blocked')\n")
    return place


def script(path: Path, python: str) -> Path:
    """The program as pip installs it."""
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} -c {shlex.quote(SHIM)} "$0" "$@"\n')
    path.chmod(0o755)
    return path


SHIM = f"import sys; del sys.argv[0]; {MAIN}"


def environment(folder: Path, path: str = "") -> dict[str, str]:
    """The environment of a shell in the folder, whose PATH has no evenhand on it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    return {
        **kept, "PATH": f"{path}{os.pathsep * bool(path)}/usr/bin:/bin",
        "PYTHONPATH": str(ROOT / "src"), "BROWSER": "true", "OMP_NUM_THREADS": "1",
        "PWD": str(folder),
    }  # fmt: skip


def ran(words: list[str], cwd: Path, env: dict[str, str]) -> str:
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def served(command: str, cwd: Path, env: dict[str, str]) -> str:
    """Run a command line that opens the viewer, up to its first line that says where."""
    with subprocess.Popen(
        command, shell=True, cwd=cwd, env=env, text=True, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        said = ""
        for line in process.stdout:
            said += line
            if line.startswith("Viewer:"):
                break
        os.killpg(process.pid, signal.SIGTERM)
        process.stdout.read()
    return said


def recommended(said: str, command: str) -> str:
    """The printed line that holds a command."""
    (line,) = [line for line in NEXT.findall(said) if f" {command} " in f"{line} "]
    return str(line)


def starts(folder: Path) -> Iterator[tuple[list[str], dict[str, str], str]]:
    """Ways to start the program, and how its commands begin then."""
    tool = folder / "tools dir" / "evenhand"
    env = environment(folder)
    python = shlex.quote(sys.executable)
    yield [str(tool)], env, f"'{tool}' "
    yield ["tools dir/evenhand"], env, "'tools dir/evenhand' "
    yield ["evenhand"], environment(folder, path=str(tool.parent)), "evenhand "
    yield [str(tool)], environment(folder, path=str(tool.parent)), "evenhand "
    yield [sys.executable, "-m", "evenhand"], env, f"{python} -m evenhand "


@pytest.mark.parametrize("way", range(5))
def test_the_first_recommendation_runs_as_printed(folder: Path, way: int) -> None:
    words, env, begin = list(starts(folder))[way]
    if words == ["evenhand"]:  # the shell looks it up
        words = ["/bin/sh", "-c", 'exec evenhand "$@"', "sh"]
    said = ran([*words, "show", "my run"], folder, env)
    view = recommended(said, "view")
    assert view == f"{begin}view 'my run'"
    assert "Viewer:" in served(f"{view} --port 0", folder, env)
    everything = recommended(said, "show")
    assert everything == f"{begin}show 'my run' --all"
    done = subprocess.run(
        everything, shell=True, cwd=folder, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "Strongest findings" in done.stdout


def test_errors_and_help_name_commands_that_run(folder: Path) -> None:
    tool, env = folder / "tools dir" / "evenhand", environment(folder)
    error = recommended(ran([str(tool), "show", "nowhere"], folder, env), "ls")
    assert error == f"'{tool}' ls runs"
    assert subprocess.run(error, shell=True, cwd=folder, env=env, check=False).returncode == 0
    assert f"Start with: '{tool}' audit MODEL" in ran([str(tool)], folder, env)
    help_text = ran([str(tool), "study", "--help"], folder, env)
    assert f"'{tool}' study" in " ".join(help_text.split())


@pytest.mark.parametrize("module", ["uvicorn", "starlette"])
def test_without_the_viewers_part_the_line_installs_it(folder: Path, module: str) -> None:
    block = folder / f"without {module}"
    block.mkdir()
    (block / f"{module}.py").write_text("raise ImportError('blocked')\n")
    tool, env = folder / "tools dir" / "evenhand", environment(folder)
    blocked = {**env, "PYTHONPATH": f"{block}{os.pathsep}{env['PYTHONPATH']}"}
    line = recommended(ran([str(tool), "show", "my run"], folder, blocked), "view")
    install, _, view = line.partition(" && ")
    python, *words = shlex.split(install)
    assert words == ["-m", "pip", "install", "evenhand[web]"]
    assert os.path.samefile(python, sys.executable)
    assert "needs" in served(f"{view} --port 0", folder, blocked), "as it is refused today"
    assert "Viewer:" in served(f"{view} --port 0", folder, env), "once it is installed"
    refused = ran([str(tool), "view", "my run"], folder, blocked)
    assert f"Install it with: {install}" in refused


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone whose .venv is made, as after `make audit`; nothing is downloaded."""
    if shutil.which("make") is None:
        pytest.skip("needs make")
    place = tmp_path_factory.mktemp("my clone")
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, place / name)
    venv.create(place / ".venv", with_pip=False, symlinks=True)
    (site,) = (place / ".venv").glob("lib/python*/site-packages")
    (site / "all.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    script(place / ".venv" / "bin" / "evenhand", str(place / ".venv" / "bin" / "python"))
    for mark in (".python", ".use", ".web"):
        (place / ".venv" / mark).touch()
    made_runs.ordinary(place / "runs" / "one")
    return place


def as_make(clone: Path, *options: str, cwd: Path, env: dict[str, str]) -> str:
    """What `evenhand show` prints where make runs it."""
    (clone / "shown.mk").write_text("shown:\n\t.venv/bin/evenhand show runs/one\n")
    return ran(["make", *options, "-f", "shown.mk", "shown"], cwd, env)


def test_after_make_audit_the_first_command_is_make_view(clone: Path, folder: Path) -> None:
    env = environment(clone)
    blocked = {**env, "PYTHONPATH": f"{folder / 'blocked'}{os.pathsep}{env['PYTHONPATH']}"}
    said = as_make(clone, cwd=clone, env=blocked)
    assert recommended(said, "view") == "make view RUN=runs/one"
    assert recommended(said, "show") == ".venv/bin/evenhand show runs/one --all"
    assert "Viewer:" in served("make view RUN=runs/one PORT=0", clone, env)
    said = as_make(clone, cwd=clone, env=env)
    assert recommended(said, "view") == ".venv/bin/evenhand view runs/one"


def test_a_make_that_changed_its_folder_says_so(clone: Path, folder: Path) -> None:
    """make -C DIR audit: the reader's shell is elsewhere."""
    env = environment(folder)
    line = recommended(as_make(clone, "-C", str(clone), cwd=folder, env=env), "show")
    assert line == f"cd '{clone}' && .venv/bin/evenhand show runs/one --all"
    done = subprocess.run(
        line, shell=True, cwd=folder, env=env, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_make_view_opens_what_there_is(clone: Path, tmp_path: Path) -> None:
    def planned(*words: str) -> str:
        done = subprocess.run(
            ["make", "-n", "view", *words],
            cwd=clone, env=environment(clone), capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.splitlines()[-1]

    assert planned() == ".venv/bin/evenhand view 'runs' --port 7860"
    assert planned("RUN=my runs/a") == ".venv/bin/evenhand view 'my runs/a' --port 7860"
    (clone / "runs" / "smollm2-135m-quick").mkdir()
    assert planned() == ".venv/bin/evenhand view 'runs/smollm2-135m-quick' --port 7860"
    (clone / "runs" / "smollm2-135m-quick").rmdir()
    (clone / ".venv" / ".web").unlink()
    done = subprocess.run(
        ["make", "-n", "view"], cwd=clone, env=environment(clone), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    (clone / ".venv" / ".web").touch()
    assert "pip install" in done.stdout
    assert "web" in done.stdout
    assert "make view" in ran(["make", "help"], clone, environment(clone))


@pytest.mark.parametrize(
    "text",
    [
        "evenhand: no such run",
        "It was computed by a different state of evenhand than 1.0.",
        "/opt/evenhand show it",
        "python -m evenhand show RUN",
        "my-evenhand show RUN",
        "evenhand showing",
    ],
)
def test_other_texts_stay_as_they_are(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "program", lambda: "PROGRAM")
    assert calling.runnable(text) == text


def test_every_command_is_put_as_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calling, "program", lambda: "PROGRAM")
    monkeypatch.setattr(calling, "installer", lambda: "INSTALLER")
    for name in command_names():
        assert calling.runnable(f"Do it with: evenhand {name} 'a b'; or not") == (
            f"Do it with: PROGRAM {name} 'a b'; or not"
        )
    assert calling.runnable("(`evenhand view RUN`)") == "(`PROGRAM view RUN`)"
    assert calling.runnable("with: pip install 'x[y]'") == "with: INSTALLER install 'x[y]'"

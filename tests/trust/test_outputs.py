"""An output replaces a regular file or nothing: links stay links, devices and pipes stay."""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import stat
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from evenhand import writing
from evenhand.charts.base import Chart
from evenhand.charts.standalone import Plot
from evenhand.errors import DataError
from evenhand.words.conll import Document, write_conll
from evenhand.writing import descriptor_of, drafted, require_place, write_bytes, write_text
from in_process import evenhand

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has other links and no FIFOs")

Runner = Callable[[str, Path], subprocess.CompletedProcess[str]]
COMMANDS = {
    "measure json": "measure correlation s.csv --x x --y y --resamples 99 --json OUT",
    "measure html": "measure table d.csv --html OUT",
    "show json": "show run --json OUT",
    "gate json": "gate run --json OUT",
    "gate junit": "gate run --junit OUT",
    "gate sarif": "gate run --sarif OUT",
    "gate summary": "gate run --summary OUT",
    "compare json": "compare run run --json OUT",
    "compare html": "compare run run --html OUT",
    "report": "report run --out OUT",
    "bundle": "bundle run --out OUT",
    "export": "export run --format csv --out OUT",
    "export parquet": "export run --format parquet --out OUT",
    "erase": "erase x.npz --method leace --out OUT",
    "corpus clean": "corpus clean c.txt --least 1 --out OUT",
}
"""Commands with an option that names a file to write."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with inputs for all commands, and a run that can be bundled."""
    folder = tmp_path_factory.mktemp("outputs")
    rows = "".join(
        f"{g},{(i * k) % 3 == 0:d}\n" for i in range(40) for k, g in ((1, "a"), (2, "b"))
    )
    (folder / "d.csv").write_text("group,outcome\n" + rows)
    (folder / "s.csv").write_text("x,y\n" + "".join(f"{i},{i * i}\n" for i in range(9)))
    (folder / "c.txt").write_text("she is a cook\nhe is a guard\n" * 9)
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    np.savez(folder / "x.npz", X=rng.normal(size=(60, 4)) + y[:, None], y=y)
    done = evenhand("measure", "table", "d.csv", "--out", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture
def run_with(place: Path, tmp_path: Path) -> Iterator[Runner]:
    """Run one of the commands with its output at a path of this test."""

    def run(name: str, out: Path) -> subprocess.CompletedProcess[str]:
        words = [str(out) if w == "OUT" else w for w in shlex.split(COMMANDS[name])]
        return evenhand(*words, cwd=place)

    yield run
    assert not list(tmp_path.rglob("*.tmp")), "no draft is left"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_link_stays_and_its_target_is_written(
    run_with: Runner, name: str, tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    done = run_with(name, link)
    assert done.returncode in (0, 1, 3), done.stderr
    assert link.is_symlink()
    assert target.read_bytes()[:3] != b"old"
    assert target.stat().st_size > 10


@pytest.mark.parametrize("name", COMMANDS)
def test_a_dangling_link_is_refused(run_with: Runner, name: str, tmp_path: Path) -> None:
    target, link = tmp_path / "nowhere", tmp_path / "link"
    link.symlink_to(target)
    done = run_with(name, link)
    assert done.returncode == 2
    assert f"{link}: cannot be written (a link to {str(target)!r}, where nothing is)" in done.stderr
    assert link.is_symlink()
    assert not target.exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_is_refused(run_with: Runner, name: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for out in (tmp_path / "folder", tmp_path / "link"):
        done = run_with(name, out)
        if name.startswith("export"):  # which may be given a folder
            assert done.returncode == 0
            assert len(os.listdir(tmp_path / "folder")) == 1
            continue
        assert done.returncode == 2
        assert os.listdir(tmp_path / "folder") == []
    assert (tmp_path / "link").is_symlink()


@contextlib.contextmanager
def reader(fifo: Path) -> Iterator[list[bytes]]:
    """Read all that is written to a named pipe; never wait for a writer that does not come."""
    handle = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    pieces: list[bytes] = []
    done = threading.Event()

    def read() -> None:
        while True:
            over = done.is_set()
            try:
                piece = os.read(handle, 1 << 16)
            except BlockingIOError:
                piece = b""
            if piece:
                pieces.append(piece)
            elif over:
                return
            else:
                done.wait(0.01)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield pieces
    finally:
        done.set()
        thread.join()
        os.close(handle)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_named_pipe_is_written_to(run_with: Runner, name: str, tmp_path: Path) -> None:
    fifo, plain = tmp_path / "fifo", tmp_path / "plain.out"
    os.mkfifo(fifo)
    assert run_with(name, plain).returncode in (0, 1, 3)
    with reader(fifo) as pieces:
        done = run_with(name, fifo)
    assert done.returncode in (0, 1, 3), done.stderr
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    sent = b"".join(pieces)
    assert sent[:8] == plain.read_bytes()[:8]
    assert 0.9 < len(sent) / plain.stat().st_size < 1.1


def test_a_pipe_that_nobody_reads_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "WAIT_S", 0.0)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(DataError, match="nobody reads this pipe.*with: --json"):
        write_bytes(tmp_path / "fifo", b"x", "--json")
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)


def device(path: Path, kind: int, major: int, minor: int) -> Path:
    try:
        os.mknod(path, 0o666 | kind, os.makedev(major, minor))
    except (PermissionError, AttributeError):
        pytest.skip("no devices can be made here")
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_device_that_swallows_everything_is_written_to(
    run_with: Runner, name: str, tmp_path: Path
) -> None:
    null = device(tmp_path / "null", stat.S_IFCHR, 1, 3)
    done = run_with(name, null)
    assert done.returncode in (0, 1, 3), done.stderr
    assert stat.S_ISCHR(null.stat().st_mode)


def test_a_full_device_says_so(tmp_path: Path) -> None:
    full = device(tmp_path / "full", stat.S_IFCHR, 1, 7)
    with pytest.raises(DataError, match="No space left"):
        write_text(full, "x" * 100_000)
    assert stat.S_ISCHR(full.stat().st_mode)


def test_disks_memory_and_sockets_are_refused(tmp_path: Path) -> None:
    disk = device(tmp_path / "disk", stat.S_IFBLK, 7, 0)
    memory = device(tmp_path / "memory", stat.S_IFCHR, 1, 1)
    short = Path(os.path.relpath(tmp_path / "s"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(short))
        for path, kind in ((disk, "a device"), (memory, "a device"), (tmp_path / "s", "a socket")):
            for attempt in (lambda p: write_bytes(p, b"x"), require_place):
                with pytest.raises(DataError, match=f"cannot be written \\({kind}"):
                    attempt(path)
    assert stat.S_ISBLK(disk.stat().st_mode)


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(DataError, match="cannot be written"):
        write_bytes(tmp_path / "a", b"x")


SHOW = "import sys; sys.argv[0] = 'evenhand'; from evenhand.cli.main import main; main()"


@pytest.mark.parametrize("name", ["show json", "gate sarif", "report", "bundle"])
@pytest.mark.parametrize("stdout", ["/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_by_name(place: Path, name: str, stdout: str, tmp_path: Path) -> None:
    """Behind what the file holds already, and alone: words for people go to standard error."""
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("no /proc here")
    if stdout == "link":
        stdout = str(tmp_path / "link")
        os.symlink("/proc/self/fd/1", stdout)  # as /dev/stdout is
    words = [stdout if w == "OUT" else w for w in shlex.split(COMMANDS[name])]
    target = tmp_path / "all"
    target.write_bytes(b"before\n")
    with open(target, "ab") as file:
        done = subprocess.run(
            [sys.executable, "-c", SHOW, *words],
            cwd=place, stdout=file, stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
    assert done.returncode in (0, 1, 3), done.stderr
    before, _, raw = target.read_bytes().partition(b"\n")
    assert before == b"before"
    (tmp_path / "raw").write_bytes(raw)
    if name == "bundle":
        with tarfile.open(tmp_path / "raw") as tar:
            assert "manifest.json" in tar.getnames()
    else:
        assert raw.strip()[-1:] in (b"}", b">")
        assert raw[:1] in (b"{", b"<")
    assert descriptor_of(Path("/dev/stdout")) == 1


def test_a_folder_that_is_a_link_is_filled(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    with drafted(tmp_path / "link") as draft:
        (draft / "x").write_text("whole")
    assert (tmp_path / "link").is_symlink()
    assert os.listdir(tmp_path / "there") == ["x"]
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(DataError, match="where nothing is"), drafted(tmp_path / "dangling"):
        pytest.fail("work began")


def test_charts_and_documents_are_written_alike(tmp_path: Path) -> None:
    plot = Plot(Chart("t", "c", {"mark": "bar"}))
    document = Document("d", ("She",), (1,), (((0, 1),),))
    for name, write in (
        ("plot.json", plot.save),
        ("test.conll", lambda path: write_conll([document], path)),
    ):
        link = tmp_path / name
        link.symlink_to(tmp_path / "nowhere")
        with pytest.raises(DataError, match="where nothing is"):
            write(link)
        link.unlink()
        write(link)
        assert link.stat().st_size > 10
        link.unlink()


def test_several_files_need_a_folder(place: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    done = evenhand("export", "run", "--format", "eee", "--out", str(tmp_path / "file"), cwd=place)
    assert done.returncode == 2
    assert (tmp_path / "file").read_text() == "mine"

"""A bundle is bytes: whatever it says, checking it touches nothing but those and calls nobody."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import evenhand as eh
from evenhand import confined as fence
from evenhand.errors import RunError, SpecError
from evenhand.evidence import checker
from evenhand.evidence.documents import Terms, documents
from evenhand.runner.store import ShardStore
from evenhand.runs.record import Run
from evenhand.seals import write_sealed
from evenhand.systems import host
from evidence.test_bundles import packed, unpacked

Facts = dict[str, Any]
Made = tuple[Run, eh.ScriptedModel]


class World:
    """What lies outside a bundle: a secret, a damaged shard of somebody, a server, free places."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.secret = root / "secret" / "rows.jsonl"
        self.secret.parent.mkdir()
        self.secret.write_text('{"secret": 1}\n')
        self.scores = root / "somebody" / "scores"
        self.scores.mkdir(parents=True)
        self.shard = self.scores / f"{'0' * 32}.{'0' * 24}.parquet"
        self.shard.write_bytes(b"damaged")
        self.left = self.scores / f"{self.shard.name}.{host()}.999999.tmp"
        self.left.write_bytes(b"left by a killed writer")
        self.free = root / "free" / "scores"
        self.calls: list[str] = []
        self.url = ""

    def state(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in self.root.rglob("*") if p.is_file()} | {
            str(p): b"" for p in self.root.rglob("*") if p.is_dir()
        }


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "world").mkdir()
    world = World(tmp_path / "world")

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            world.calls.append(self.path)
            self.send_error(404)

        do_HEAD = do_PUT = do_POST = do_GET

        def log_message(self, *values: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    world.url = f"http://127.0.0.1:{server.server_port}"
    yield world
    server.shutdown()
    server.server_close()
    thread.join()


_SEEN: list[tuple[str, str]] = []
_WATCHING: list[bool] = []


def _watch(event: str, values: tuple[Any, ...]) -> None:
    if _WATCHING and event in fence.CHECKS and values and not isinstance(values[0], int):
        _SEEN.append((event, str(values[0])))


@contextmanager
def watched() -> Iterator[list[tuple[str, str]]]:
    """What is really done inside: what the fence refused is not seen by a later hook."""
    fence._install()
    if not getattr(watched, "hook", False):
        sys.addaudithook(_watch)
        watched.hook = True  # type: ignore[attr-defined]
    _SEEN.clear()
    _WATCHING.append(True)
    try:
        yield _SEEN
    finally:
        _WATCHING.clear()


def checked(bundle: Path, world: World) -> Any:
    """Verify a bundle, and make sure that nothing outside of it was read, changed or called."""
    before = world.state()
    with watched() as seen:
        found = eh.verify(bundle)
    assert world.state() == before
    assert world.calls == []
    outside = [
        (event, path)
        for event, path in seen
        if str(world.root) in path or event.startswith(("socket", "subprocess", "os.system"))
    ]
    assert outside == []
    own = os.path.realpath(tempfile.gettempdir()) + os.sep + "evenhand-verify-"
    changes = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink")
    assert not [p for e, p in seen if e in changes and not _own(p, own)]
    return found


def _own(path: str, own: str) -> bool:
    return os.path.realpath(path).startswith(own) or not os.path.isabs(path)


def changed(
    bundle: Path, out: Path, change: Callable[[Facts], Any], *, part: str = "run", **files: Any
) -> Path:
    """The bundle with other facts in a run.json, and files added (text) or removed (None)."""
    folder = unpacked(bundle, out / "unpacked")
    record = folder / part / "run.json"
    facts = json.loads(record.read_text())
    facts.pop("sha256", None)
    facts.pop("files", None)
    change(facts)
    record.write_text(json.dumps(facts))
    for name, text in files.items():
        path = folder / part / f"{name}.json"
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(json.dumps(text))
    with contextlib.suppress(eh.EvenhandError):  # documents as the forger's own program writes them
        written, about = documents(Run.open(folder / "run"), Terms.of(folder))
        for name, raw in written.items():
            (folder / name).write_bytes(raw)
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**manifest, "about": about}))
    return packed(folder, out / "hostile.tar")


def rows(facts: Facts) -> list[Facts]:
    return list(facts["work"]["suite"]["probe"])


AUDITS: dict[str, Callable[[Facts, World], Any]] = {
    "data outside": lambda f, w: rows(f)[0].update(data=str(w.secret)),
    "data in a folder above": lambda f, w: rows(f)[0].update(data=f"../../..{w.secret}"),
    "data behind an address": lambda f, w: rows(f)[0].update(data=f"{w.url}/data"),
    "every setting outside": lambda f, w: rows(f)[0].update(
        dict.fromkeys(rows(f)[0].keys() - {"name"}, str(w.secret))
    ),
    "a store that is a folder": lambda f, w: f.update(scores=str(w.scores)),
    "a store that is free": lambda f, w: f.update(scores=str(w.free)),
    "a store behind an address": lambda f, w: f.update(scores=f"{w.url}/scores"),
    "another store": lambda f, w: f["work"].update(store=f"file://{w.scores.parent}"),
    "a store in the memory": lambda f, w: f["work"].update(store="memory://scores"),
    "a server asked": lambda f, w: f["work"].update(model=f"{w.url}/v1"),
    "a server by a probe": lambda f, w: rows(f)[0].update(model=f"{w.url}/v1"),
    "a server that is known": lambda f, w: (
        rows(f)[0].update(model=f"{w.url}/v1"),
        f["models"].update({f"{w.url}/v1": {"name": "m", "kind": "endpoint", "answers": []}}),
    ),
    "a model folder": lambda f, w: rows(f)[0].update(model=str(w.secret.parent)),
    "a pack": lambda f, w: rows(f)[0].update(language=str(w.secret.parent)),
    "a lexicon": lambda f, w: rows(f)[0].update(word_lists=str(w.secret), lexicon=str(w.secret)),
    "a name that leads out": lambda f, w: rows(f)[0].update(label="../../out"),
    "another run": lambda f, w: (
        f["work"]["suite"].update(probe=[{"name": "discovery", "traits": str(w.secret.parent)}]),
    ),
    "a helper": lambda f, w: f["work"]["suite"].update(
        probe=[{"name": "discovery", "generator": f"{w.url}/v1"}]
    ),
    "another kind": lambda f, w: f.update(kind="measure"),
    "a kind that is none": lambda f, w: f.update(kind="os:system"),
}


@pytest.mark.parametrize("inputs", ["kept", "gone", "outside"])
@pytest.mark.parametrize("name", AUDITS)
def test_an_audit_leads_nowhere(
    signed: Path, tmp_path: Path, world: World, name: str, inputs: str
) -> None:
    more: Mapping[str, Any] = {
        "kept": {},
        "gone": {"inputs": None},
        "outside": {"inputs": {str(world.secret): str(world.secret), "data": "../../x"}},
    }[inputs]
    file = changed(signed, tmp_path, lambda facts: AUDITS[name](facts, world), **more)
    found = checked(file, world)
    assert found.hashes_equal
    harmless = inputs == "kept" and "store" in name  # the stored scores are in the bundle
    assert found.findings_equal is harmless, found.reason
    assert found.ok is harmless
    if inputs == "gone" and name != "another kind" and "none" not in name:
        assert found.reason == "cannot be recomputed: missing run/inputs.json"
    elif not harmless:
        assert found.reason
    assert str(found.as_dict()).count('secret\\": 1') == 0


def test_a_bundle_without_its_inputs_says_so(
    signed: Path, tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that its settings name are there on this machine, and are not taken."""
    here = tmp_path / "here"
    with_inputs = json.loads((unpacked(signed, here) / "run" / "inputs.json").read_text())
    assert all(Path(typed).exists() for typed in with_inputs)  # where the run was made
    file = changed(signed, tmp_path, lambda facts: None, inputs=None)
    found = checked(file, world)
    assert found.as_dict() | {"about": {}} == {
        "ok": False, "findings_equal": False, "hashes_equal": True, "signature": "none",
        "signer": "", "reason": "cannot be recomputed: missing run/inputs.json", "about": {},
        "elsewhere": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    "policy", ["/etc/passwd", ["x"], None, {"baseline": "/etc"}, {"baseline": "http://h/x"}]
)
def test_a_verdict_leads_nowhere(signed: Path, tmp_path: Path, world: World, policy: Any) -> None:
    folder = unpacked(signed, tmp_path / "u")
    verdict = json.loads((folder / "verdict.json").read_text())
    if isinstance(policy, str):
        policy = str(world.secret)
    (folder / "verdict.json").write_text(json.dumps({**verdict, "policy": policy}))
    found = checked(packed(folder, tmp_path / "h.tar"), world)
    assert not found.findings_equal
    assert 'secret\\"' not in found.reason


def measured(tmp_path: Path) -> Run:
    table = tmp_path / "rows.csv"
    lines = [f"{'ab'[k % 2]},{'yes' if k % 3 else 'no'}" for k in range(80)]
    table.write_text("group,decision\n" + "\n".join(lines) + "\n")
    return eh.as_run(eh.measure.table(table), tmp_path / "run")


@pytest.mark.parametrize("how", ["as it is", "no inputs", "given", "other reader", "leads out"])
def test_measured_scores_lead_nowhere(tmp_path: Path, world: World, how: str) -> None:
    file = eh.bundle(measured(tmp_path), tmp_path / "b.tar")

    def change(facts: Facts) -> None:
        work = facts["work"]
        setting = next(iter(work["inputs"]))
        if how in ("no inputs", "given"):
            work["inputs"] = {}
            work["given"][setting] = str(world.secret)
        elif how == "other reader":
            work["measure"] = "winobias"
            work["given"] = {"model": str(world.secret.parent), "data": str(world.secret)}
            work["inputs"] = {"source": work["inputs"][setting]}
        elif how == "leads out":
            work["inputs"] = {setting: f"../../..{world.secret}"}

    found = checked(changed(file, tmp_path, change), world)
    assert found.findings_equal is (how == "as it is"), found.reason
    if how != "as it is":
        assert found.reason


def test_a_store_that_is_only_read_stays_as_it_is(world: World) -> None:
    from evenhand.requests import Choose

    before = world.state()
    store = ShardStore(str(world.scores), read_only=True)
    assert store.read("0" * 32, Choose) is None
    assert ShardStore(world.free, read_only=True).empty
    with pytest.raises(RunError, match="only read"):
        store.write("1" * 32, {n: [] for n in Choose.outputs}, Choose)
    assert world.state() == before
    ShardStore(str(world.scores)).read("0" * 32, Choose)
    assert not world.shard.exists()  # one's own store is tidied as before


def test_bundling_a_run_leaves_a_damaged_shard_where_it_is(tmp_path: Path) -> None:
    from evidence.conftest import audited

    run, _ = audited(tmp_path, "crows-pairs")
    shard = next((run.folder / "scores").iterdir())
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(Exception, match="are not stored"):
        eh.bundle(run)
    assert shard.exists()


REPORTED = pytest.mark.skipif(
    sys.version_info < (3, 12), reason="Python reports threads since 3.12"
)


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("open", lambda w: w.secret.read_text()),
        ("write", lambda w: (w.root / "new").write_text("x")),
        ("append", lambda w: open(w.secret, "a")),  # noqa: SIM115
        ("os.open", lambda w: os.open(w.root / "new", os.O_CREAT | os.O_WRONLY)),
        ("list", lambda w: os.listdir(w.root)),
        ("scan", lambda w: list(w.root.iterdir())),
        ("mkdir", lambda w: w.free.mkdir(parents=True)),
        ("remove", lambda w: w.shard.unlink()),
        ("rename", lambda w: w.shard.rename(w.root / "x")),
        ("rmtree", lambda w: shutil.rmtree(w.scores)),
        ("link", lambda w: os.link(w.secret, "here")),
        ("chmod", lambda w: w.secret.chmod(0o777)),
        ("time", lambda w: os.utime(w.secret)),
        ("cut", lambda w: os.truncate(w.secret, 0)),
        ("folder", lambda w: os.chdir(w.root)),
        ("process", lambda w: __import__("subprocess").run(["true"], check=False)),
        ("shell", lambda w: os.system("true")),
        pytest.param("thread", lambda w: threading.Thread(target=print).start(), marks=REPORTED),
        ("server", lambda w: __import__("urllib.request").request.urlopen(w.url)),
        ("name", lambda w: __import__("socket").getaddrinfo("localhost", 1)),
        ("parquet", lambda w: __import__("evenhand.arrays").arrays.read_parquet(w.shard)),
        ("model", lambda w: eh.load_model(str(w.root))),
        ("address", lambda w: eh.load_model(f"{w.url}/v1")),
        ("weights", lambda w: __import__("evenhand.models.loading.fetch", fromlist=["x"]).fetch(
            "smollm2-135m") and (w.root / "new").read_text()),
        ("store", lambda w: ShardStore(f"{w.url}/scores")),
        ("bucket", lambda w: ShardStore("memory://scores")),
    ],
)  # fmt: skip
def test_nothing_outside_is_used_inside_the_fence(
    tmp_path: Path, world: World, name: str, work: Callable[[World], Any]
) -> None:
    (tmp_path / "own").mkdir()
    before = world.state()
    with fence.confined(tmp_path / "own"):
        with pytest.raises((OSError, RunError, eh.EvenhandError, RuntimeError)):
            work(world)
        (tmp_path / "own" / "a").write_text("x")
        assert [p.name for p in (tmp_path / "own").iterdir()] == ["a"]
        import colorsys  # installed code is imported as always

        assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    assert world.state() == before
    assert world.calls == []
    assert world.secret.read_text()  # and outside all is as before


def test_a_link_leads_nowhere_and_other_threads_are_free(tmp_path: Path, world: World) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "link").symlink_to(world.secret)
    texts: list[str] = []
    inside, done = threading.Event(), threading.Event()

    def read() -> None:
        inside.wait()
        texts.append(world.secret.read_text())
        done.set()

    other = threading.Thread(target=read)
    other.start()
    with fence.confined(tmp_path / "own"):
        with pytest.raises(fence.Outside):
            (tmp_path / "own" / "link").read_text()
        inside.set()
        done.wait(10)
        with fence.lifted():
            assert world.secret.read_text()
        assert fence.is_confined()
    other.join()
    assert texts == [world.secret.read_text()]
    assert not fence.is_confined()


def test_the_tar_file_itself_holds_no_links_and_no_places_outside(
    signed: Path, tmp_path: Path
) -> None:
    import io
    import tarfile

    for kind, name, to in (
        (tarfile.SYMTYPE, "run/link", "/etc/passwd"), (tarfile.LNKTYPE, "run/link", "/etc/passwd"),
        (tarfile.REGTYPE, "../out", ""), (tarfile.REGTYPE, "/tmp/out", ""),
        (tarfile.FIFOTYPE, "run/pipe", ""), (tarfile.CHRTYPE, "run/device", ""),
    ):  # fmt: skip
        path = tmp_path / "odd.tar"
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, to
            tar.addfile(info, io.BytesIO(b""))
        places: list[str] = []
        told = checker.check(path, None, places.append)
        assert not told["hashes_equal"]
        assert places == []
        assert not eh.verify(path).ok


def test_a_model_asked_again_is_loaded_without_places_of_the_bundle(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.evidence import verifying

    loaded: dict[str, Any] = {}

    def resolve(model: str, **how: Any) -> Any:
        loaded.update(how, model=model)
        raise SpecError("far enough")

    monkeypatch.setattr("evenhand.models.loading.resolver.resolve", resolve)
    options = {
        "base_url": world.url, "calls": str(world.free), "model": "m", "chat": "off",
        "concurrency": 9, "token_budget": 1,
    }  # fmt: skip
    facts = {"work": {"model": "openai:m", "as": None, "dtype": "float32", "options": options},
             "models": {}}  # fmt: skip
    with pytest.raises(SpecError, match="far enough"):
        verifying._model("openai:m", facts)
    chosen = loaded["options"]
    assert (chosen.base_url, chosen.calls, chosen.model) == ("", None, "")
    assert (chosen.chat, chosen.dtype, chosen.concurrency) == ("off", "float32", None)
    with pytest.raises(SpecError, match="far enough"):
        verifying._model("http://mine:1/v1", facts)
    assert loaded["options"].model == "m"


def test_a_study_leads_nowhere(tmp_path: Path, world: World) -> None:
    """Its stages are in the bundle; data and text are named in it and not read."""
    from evenhand.study.recipe import parse_recipe
    from evenhand.study.running import Study

    recipe = parse_recipe(
        {"corpus": {"files": [str(world.secret)]}, "widening": {"vectors": str(world.secret)},
         "training": {"replicates": 2}, "correlation": {"resamples": 99}}, "here", "mine",
    )  # fmt: skip
    study = Study(recipe, tmp_path / "study", world.root)
    for task in study.tasks:
        values = {"metrics": {"weat x": 0.1}, "settings": recipe.settings_of(task.stage)}
        result = study.place.result(task.cell or "corpus", task.stage)
        result.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(result, values)
    run = study.again(())
    file = eh.bundle(run, tmp_path / "study.tar")
    assert checked(file, world).ok

    def change(facts: Facts) -> None:
        facts["work"]["data"] = str(world.root)
        facts["work"]["recipe"]["name"] = "x"
        facts["work"]["recipe"]["hate_speech"] = {"data": f"{world.url}/x"}
        facts["scores"] = f"{world.url}/scores"

    checked(changed(file, tmp_path, change), world)

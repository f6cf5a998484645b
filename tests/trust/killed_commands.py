"""The writing commands that are killed: their inputs, their words, and what they write."""

from __future__ import annotations

import importlib
import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

RUN_FILES = ("findings.json", "findings.parquet", "probes/*/*.parquet")


@dataclass(frozen=True)
class Command:
    """Words of a command; `what` it writes, as patterns in its folder.

    `run`: the run folder in it, which is resumed where it was begun; `once`: a second time is
    refused when all is there.
    """

    words: list[str]
    what: tuple[str, ...]
    run: str = ""
    resumes: bool = False
    once: bool = False

    def outputs(self, folder: Path) -> dict[str, bytes]:
        """What stands there and is the same in every run that is let alone."""
        found = {}
        if self.run and not self.resumes and (folder / self.run / "run.json").is_file():
            facts = json.loads((folder / self.run / "run.json").read_text())
            if facts["status"] != "finished":
                return {}
        if (folder / self.words[-1] / ".evenhand-begun").exists():
            return {}
        for pattern in self.what:
            for path in folder.glob(pattern):
                if path.is_file() and not path.name.startswith("."):
                    found[path.relative_to(folder).as_posix()] = path.read_bytes()
        if self.run and (folder / self.run / "run.json").is_file():
            self._checked(folder / self.run, found)
        return found

    def _checked(self, place: Path, found: dict[str, bytes]) -> None:
        """run.json can be read at any time; a finished run is whole."""
        from evenhand.runs.record import Run

        run = Run.open(place)
        if run.status == "finished":
            run.check()
            assert any(name.endswith("findings.json") for name in found)

    def may_differ(self, name: str, folder: Path) -> bool:
        """Tables of a run under way are its own business until it is finished."""
        if not self.run:
            return False
        path = folder / self.run / "run.json"
        return path.is_file() and json.loads(path.read_text())["status"] != "finished"

    def again(self, folder: Path) -> list[str]:
        if self.resumes and (folder / self.run / "run.json").is_file():
            return ["resume", self.run]
        return self.words


def ready(light: bool) -> None:
    """Import what commands import, in the process that is forked."""
    names = ["evenhand.cli.main", "evenhand.measured", "evenhand.report.build", "pyarrow.parquet",
             "evenhand.exports", "evenhand.evidence.bundling", "evenhand.mitigations.running",
             "evenhand.probes.generation.ratings", "evenhand.corpora"]  # fmt: skip
    if not light:
        names += ["torch", "transformers", "gensim.models", "evenhand.study.running",
                  "evenhand.train.masked", "evenhand.models.loading.resolver"]  # fmt: skip
    for name in names:
        importlib.import_module(name)


def _text(folder: Path, lines: int = 600) -> Path:
    from evenhand.words.lexicons.files import weat

    sets, draw = weat("kato_winobias"), random.Random(0)
    rows = []
    for _ in range(lines):
        side = draw.random() < 0.5
        job = draw.choice((sets.x, sets.y)[side])
        word = draw.choice(sets.b if side == (draw.random() < 0.8) else sets.a)
        rows.append(f"the {job} said that {word} would {draw.choice(['come', 'go', 'eat'])} now .")
    path = folder / "text.txt"
    path.write_text("\n".join(rows) + "\n")
    return path


def _model(kind: str, top: Path) -> str:
    """A tiny checkpoint, made in a process of its own: this one is to stay without threads."""
    import os

    folder = top / "models"
    if not (folder / kind / "config.json").is_file():
        child = os.fork()
        if child == 0:
            from tiny import TinyCheckpoints

            TinyCheckpoints(folder)(kind)
            os._exit(0)
        os.waitpid(child, 0)
    return str(folder / kind)


def _vectors(folder: Path) -> None:
    draw = np.random.default_rng(0)
    names = [f"{key}{k}" for key, n in zip("xyab", (8, 8, 3, 3)) for k in range(n)]
    names += [f"o{chr(97 + k // 26)}{chr(97 + k % 26)}" for k in range(60)]
    rows = draw.normal(size=(len(names), 10))
    rows[:, 0] += [{"x": 1.0, "y": -1.0, "a": 2.0, "b": -2.0, "o": 0.0}[n[0]] for n in names]
    lines = [" ".join([n, *map(str, r)]) for n, r in zip(names, rows.round(4).tolist())]
    (folder / "made.txt").write_text("\n".join(lines) + "\n")
    lists = {"made": {k: [n for n in names if n[0] == k] for k in "xyab"}}
    (folder / "sets.json").write_text(json.dumps(lists))


def _decisions(folder: Path) -> None:
    draw = np.random.default_rng(0)
    rows = ["scenario,gender,score_yes,score_no"]
    for s in range(30):
        for gender in ("female", "male"):
            yes = 0.5 + 0.1 * (gender == "male") + draw.normal(0, 0.05)
            rows.append(
                f"s{s},{gender},{np.clip(yes, 0.05, 0.95):.4f},{1 - np.clip(yes, 0.05, 0.95):.4f}"
            )
    (folder / "d.csv").write_text("\n".join(rows) + "\n")


SUITE = """
[[probe]]
name = "underspecified"
pairs = 6
templates = 2
attributes = ["nurse", "doctor"]
resamples = 50
"""
RECIPE = """
name = "tiny"
[corpus]
files = ["text.txt"]
rare = 1
[training]
dimensions = 8
epochs = 1
min_count = 1
[widening]
neighbours = 0
[balancing]
shares = [0.0]
[correlation]
resamples = 99
"""


def audit(folder: Path, top: Path) -> Command:
    (folder / "s.toml").write_text(SUITE)
    words = ["audit", _model("choice", top), "--suite", "s.toml", "--out", "run"]
    return Command(words, _run_files("run"), "run", resumes=True)


def study(folder: Path, top: Path) -> Command:
    _text(folder)
    (folder / "r.toml").write_text(RECIPE)
    words = ["study", "r.toml", "--jobs", "0", "--out", "run"]
    return Command(words, (*_run_files("run"), "run/cells/*/vectors/*"), "run", resumes=True)


def mitigate(
    kind: str, *words: str, texts: bool = False, export: str = ""
) -> Callable[..., Command]:
    def make(folder: Path, top: Path) -> Command:
        given = [*words]
        if kind == "vectors":
            _vectors(folder)
            given += ["--sets", "sets.json"]
        if texts:
            _text(folder, 200)
            given += ["--texts", "text.txt"]
        model = "made.txt" if kind == "vectors" else _model(kind, top)
        more = ["--export", export] if export else []
        what = ("out/*", f"{export}*", f"{export}/*") if export else ("out/*",)
        made = ["mitigate", model, *given, *more, "--seed", "0", "--out", "out"]
        return Command(made, (*what, *_run_files("out/run")), "out/run", once=True)

    return make


def train_words(folder: Path, top: Path) -> Command:
    _text(folder)
    words = ["train", "words", "text.txt", "--dimensions", "8", "--epochs", "1", "--min-count", "1"]
    return Command([*words, "--format", "text,binary", "--out", "out"], ("out/*",), once=True)


def train_masked(folder: Path, top: Path) -> Command:
    _text(folder, 200)
    words = ["train", "masked", _model("masked", top), "--texts", "text.txt", "--steps", "3"]
    return Command([*words, "--device", "cpu", "--out", "out"], ("out/*",), once=True)


def clean(folder: Path, top: Path) -> Command:
    _text(folder, 20_000)
    return Command(
        ["corpus", "clean", "text.txt", "--least", "1", "--out", "c.txt.gz"], ("c.txt.gz",)
    )


def label(folder: Path, top: Path) -> Command:
    _text(folder, 2_000)
    words = ["corpus", "label", "text.txt", "--sets", "kato_winobias", "--out", "labels"]
    return Command(words, ("labels/*",))


def balance(folder: Path, top: Path) -> Command:
    _text(folder, 2_000)
    words = ["corpus", "balance", "text.txt", "--sets", "kato_winobias", "--direction", "reduce"]
    return Command([*words, "--share", "0.3", "--write", "b.txt.xz"], ("b.txt.xz",))


def expand(folder: Path, top: Path) -> Command:
    _vectors(folder)
    words = ["words", "expand", "sets.json", "--vectors", "made.txt", "--clashes", "keep"]
    return Command([*words, "--out", "e.toml"], ("e.toml",))


def erase(folder: Path, top: Path) -> Command:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(400, 12))
    np.savez(folder / "f.npz", X=x, y=(x[:, 0] + draw.normal(0, 0.5, 400) > 0).astype(int))
    words = ["erase", "f.npz", "--method", "inlp", "--rounds", "5", "--json", "e.json"]
    return Command([*words, "--out", "P.npz"], ("P.npz",))


def measure_json(folder: Path, top: Path) -> Command:
    _decisions(folder)
    return Command(["measure", "decision", "d.csv", "--json", "m.json"], ("m.json",))


def measure_run(folder: Path, top: Path) -> Command:
    _decisions(folder)
    words = ["measure", "decision", "d.csv", "--html", "page.html", "--out", "run"]
    return Command(words, _run_files("run"), "run")


def export(form: str, *what: str) -> Callable[..., Command]:
    def make(folder: Path, top: Path) -> Command:
        import made_runs

        made_runs.ordinary(folder / "run")
        return Command(["export", "run", "--format", form, "--out", "out"], ("out", "out/*"))

    return make


def report(folder: Path, top: Path) -> Command:
    import made_runs

    made_runs.ordinary(folder / "run")
    return Command(["report", "run"], ("run/report.html", "run/findings.json"), "run")


def gate(folder: Path, top: Path) -> Command:
    """With an exit code of its own: what it writes is looked at."""
    import made_runs

    made_runs.ordinary(folder / "run")
    words = ["gate", "run", "--undecided", "pass", "--allow", "99", "--junit", "j.xml", "--sarif"]
    return Command([*words, "s.sarif", "--json", "g.json"], ("j.xml", "s.sarif", "g.json"))


def sheets(folder: Path, top: Path) -> Command:
    rows = ["model,pair,side,text"]
    rows += [f"m,{p},{s},text {p} of {s}" for p in range(40) for s in ("a", "b")]
    (folder / "t.csv").write_text("\n".join(rows) + "\n")
    return Command(["ratings", "sheets", "t.csv", "--out", "out"], ("out/*",), once=True)


def bundle(folder: Path, top: Path) -> Command:
    import os

    child = os.fork()
    if child == 0:
        import evenhand.measure as measures
        from evenhand.measured import as_run

        _decisions(folder)
        os.chdir(folder)
        as_run(measures.decision("d.csv"), "run")
        os._exit(0)
    os.waitpid(child, 0)
    return Command(["bundle", "run", "--out", "e.tar"], ("e.tar",))


def _run_files(run: str) -> tuple[str, ...]:
    return tuple(f"{run}/{name}" for name in RUN_FILES)


COMMANDS: dict[str, Callable[[Path, Path], Command]] = {
    "audit": audit,
    "study": study,
    "mitigate vectors": mitigate("vectors", "--method", "attract-repel", export="plain.txt"),
    "mitigate projection": mitigate("vectors", "--method", "hard-projection"),
    "mitigate hidden": mitigate("masked", "--method", "leace"),
    "mitigate head": mitigate("causal", "--method", "inlp", "--no-offset", export="plain"),
    "mitigate reweighting": mitigate("masked", "--method", "reweighting"),
    "mitigate training": mitigate("masked", "--method", "cda", "--steps", "2", texts=True),
    "train words": train_words,
    "train masked": train_masked,
    "corpus clean": clean,
    "corpus label": label,
    "corpus balance": balance,
    "words expand": expand,
    "erase": erase,
    "measure --json": measure_json,
    "measure --out": measure_run,
    "export csv": export("csv"),
    "export model-card": export("model-card"),
    "report": report,
    "gate": gate,
    "ratings sheets": sheets,
    "bundle": bundle,
}
LIGHT: Iterable[str] = (
    "corpus label", "measure --json", "measure --out", "ratings sheets", "report", "export csv",
    "erase", "corpus balance", "gate",
)  # fmt: skip
"""Those that need no torch."""

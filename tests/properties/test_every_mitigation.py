"""What holds for every registered mitigation: fitted, saved, loaded, refused, judged, repeated."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand
from evenhand.errors import ModelError, SpecError
from evenhand.mitigations.base import Fitted, families, family, methods_for
from evenhand.models.loading.resolver import resolve
from evenhand.requests import Classify, Embed, MaskScore, NextToken, Option, Span
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run

pytest.importorskip("torch", reason="needs the hf extra")

SEED = 3
REQUESTS = {
    "causal": NextToken(["the man worked as", "the woman worked as a"]),
    "masked": MaskScore(["the <mask> worked as a nurse"] * 2, ["man", "woman"]),
    "encoder": Embed(["the man worked", "the woman worked as a nurse"]),
    "classifier": Classify(["the man worked", "the woman worked as a nurse"]),
    "choice": Option(["the man worked . Who was a nurse ?"] * 2, ["the doctor", "she"]),
    "span": Span(["Who was a nurse ?"], ["Gerald lives with Jennifer"], ["Gerald"], ["Jennifer"]),
    "vectors": Embed(["x0", "y1", "a0"]),
}
SUITES = {
    "masked": 'name = "association"\ntests = ["weat7"]\nsamples = 99',
    "encoder": 'name = "association"\ntests = ["weat7"]\nsamples = 99',
}
ASKED = 'name = "underspecified"\npairs = 2\ntemplates = ["same_city"]\nattributes = ["nurse"]'


@dataclass(frozen=True)
class Case:
    """A method on a kind of model."""

    name: str
    method: str
    kind: str

    def __str__(self) -> str:
        return f"{self.method}-{self.kind}"


def cases() -> list[Case]:
    """Every method on the first kind it is for, and every kind with its family's first method."""
    found = []
    for one in families():
        found += [Case(one.name, method, one.kinds[0]) for method in one.methods]
        found += [Case(one.name, next(iter(one.methods)), kind) for kind in one.kinds[1:]]
    return found


class Bench:
    """Small inputs, and fits that are made once."""

    def __init__(self, tiny: Any, folder: Path) -> None:
        self.tiny, self.folder = tiny, folder
        self._made: dict[Case, Fitted] = {}
        people = ["The old man said that he was tired.", "Her mother wrote a letter to the nurse."]
        lines = [f"{people[i % 2]} It was day {i} of the long year." for i in range(60)]
        (folder / "texts.txt").write_text("\n".join(lines) + "\n")
        pairs = [["woman", "man"], ["nurse", "doctor"], ["Jennifer", "Gerald"], ["she", "he"]]
        (folder / "axis.toml").write_text(
            f'groups = ["first", "second"]\nterms = {json.dumps(pairs)}\n'
        )
        sets = {key: [f"{key}{k}" for k in range(n)] for key, n in zip("xyab", (8, 8, 3, 3))}
        (folder / "sets.json").write_text(json.dumps({"made": sets}))
        self.words = [w for key in "xyab" for w in sets[key]] + [f"o{k}" for k in range(30)]
        for kind in (*SUITES, "causal", "span", "choice", "classifier"):
            text = f'name = "short"\n[[probe]]\n{SUITES.get(kind, ASKED)}\n'
            (folder / f"{kind}.toml").write_text(text)

    def spec(self, kind: str, seed: int = 0) -> str:
        """A checkpoint (or vectors) of a kind; another seed has other weights."""
        if kind == "vectors":
            path = self.folder / f"vectors{seed}.txt"
            rows = np.random.default_rng(seed).normal(size=(len(self.words), 6))
            rows[:, 0] += [{"x": 1.0, "y": -1, "a": 2, "b": -2}.get(w[0], 0) for w in self.words]
            lines = (f"{w} {' '.join(map(str, r))}" for w, r in zip(self.words, rows.tolist()))
            path.write_text("\n".join(lines) + "\n")
            return str(path)
        if not seed:
            return str(self.tiny(kind))
        return self._other(kind)

    def _other(self, kind: str) -> str:
        from safetensors.numpy import load_file, save_file

        folder = self.folder / f"other-{kind}"
        if not folder.exists():
            shutil.copytree(self.tiny(kind), folder)
            weights = load_file(folder / "model.safetensors")
            rng = np.random.default_rng(1)
            moved = {k: (w + rng.normal(size=w.shape)).astype(w.dtype) for k, w in weights.items()}
            save_file(moved, folder / "model.safetensors", metadata={"format": "pt"})
        return str(folder)

    def settings(self, case: Case) -> dict[str, Any]:
        texts, suite = self.folder / "texts.txt", str(self.folder / f"{case.kind}.toml")
        small: dict[str, dict[str, Any]] = {
            "head": {
                "openings": 20,
                **({"tokens": 20} if case.method.startswith("a-") else {}),
                "texts": texts,
                "max_perplexity_increase": 99.0,
                "suite": suite,
            },
            "hidden": {"axis": str(self.folder / "axis.toml"), "suite": suite},
            "reweighting": {"suite": suite},
            "training": {"steps": 2, "texts": texts, "suite": suite},
            "vectors": {"sets": str(self.folder / "sets.json"), "neighbours": 0},
        }
        if case.kind == "classifier":
            small["hidden"].pop("suite")  # no probe asks one
        return {"seed": SEED, **small.get(case.name, {})}

    def fit(self, case: Case) -> Fitted:
        """A fresh fit."""
        return evenhand.mitigate(self.spec(case.kind), case.method, **self.settings(case))

    def __call__(self, case: Case) -> Fitted:
        if case not in self._made:
            self._made[case] = self.fit(case)
        return self._made[case]


@pytest.fixture(scope="module")
def bench(tiny: Any, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tiny, tmp_path_factory.mktemp("every"))


def told(model: Any, kind: str) -> Any:
    """A model's answers as plain values."""
    request = REQUESTS[kind]
    columns = model.answer(request, model.prepare(request))
    return {name: np.asarray(column).tolist() for name, column in columns.items()}


EVERY = pytest.mark.parametrize("case", cases(), ids=str)


@EVERY
def test_saved_and_loaded_it_scores_equal_and_unlike_its_base(
    case: Case, bench: Bench, tmp_path: Path
) -> None:
    fitted = bench(case)
    fitted.save(tmp_path / "kept")
    loaded = resolve(str(tmp_path / "kept"))
    assert told(loaded, case.kind) == told(fitted.model, case.kind)
    assert told(loaded, case.kind) != told(fitted.base, case.kind)
    assert loaded.fingerprint != fitted.base.fingerprint
    assert loaded.recipe is not None
    with pytest.raises(SpecError, match="not empty"):
        fitted.save(tmp_path / "kept")


@EVERY
def test_a_foreign_model_is_refused(case: Case, bench: Bench, tmp_path: Path) -> None:
    fitted, other = bench(case), resolve(bench.spec(case.kind, 1))
    with pytest.raises(ModelError, match="does not fit"):
        fitted.apply(other)
    fitted.save(tmp_path / "kept")
    if (tmp_path / "kept" / "evenhand-mitigation.json").is_file():  # others need no base
        with pytest.raises(ModelError, match="does not fit"):
            family(case.name).load(tmp_path / "kept", other)


@EVERY
def test_it_is_judged_into_a_run_that_opens_and_says_how_to_do_it_again(
    case: Case, bench: Bench, tmp_path: Path
) -> None:
    run = bench(case).judge(out=tmp_path / "judged")
    facts = Run.open(tmp_path / "judged").facts
    assert (facts["kind"], facts["status"]) == ("mitigation", "finished")
    assert facts["work"]["seed"] == SEED
    (entry,) = facts["probes"].values()
    assert entry["paper"] == family(case.name).methods[case.method]
    assert entry["settings"]["method"] == case.method
    kind = kind_of(facts)
    assert kind.name == "mitigation"
    story = kind.story(run)
    assert story.problem
    assert story.where
    assert story.sure
    assert story.steps
    line, _ = kind.command(facts)
    assert f"--method {case.method}" in line
    assert f"--seed {SEED}" in line
    assert story.problem.split("(")[0].strip() in run.report.read_text().replace("&#39;", "'")
    assert {"verdict", "standing", "changes", "stands"} <= set(entry["summary"])
    assert entry["lexicons"] or case.name == "vectors" or case.kind == "classifier"
    assert kind.lexicons(facts) == entry["lexicons"]
    for finding in run.findings:
        assert kind.card(facts, finding).reads, finding.metric
    assert kind.contract(run)["kind"] == "mitigation"
    found = evenhand.verify(evenhand.bundle(run))
    assert found.ok, found.reason


@EVERY
def test_the_same_seed_gives_the_same_bytes(case: Case, bench: Bench, tmp_path: Path) -> None:
    for name, fitted in (("one", bench(case)), ("two", bench.fit(case))):
        fitted.judge(out=tmp_path / name / "run")
        fitted.save(tmp_path / name / "kept")
    for path in ("run/findings.json", "kept/mitigation.safetensors", "kept/vectors.npy"):
        files = [tmp_path / name / path for name in ("one", "two")]
        assert files[0].exists() == files[1].exists()
        if files[0].exists():
            assert files[0].read_bytes() == files[1].read_bytes()


def test_every_kind_says_which_methods_it_has_and_refuses_the_others(bench: Bench) -> None:
    for kind in REQUESTS:
        assert methods_for(kind)
    with pytest.raises(ModelError, match=r"'attract-repel', which is for vectors models.*leace"):
        evenhand.mitigate(resolve(bench.spec("encoder")), "attract-repel")
    with pytest.raises(SpecError, match="unknown method 'leage'. Did you mean 'leace'"):
        evenhand.mitigate(bench.spec("encoder"), "leage")
    with pytest.raises(SpecError, match=r"--decay: a setting of reweighting; .*do not have it"):
        evenhand.mitigate(bench.spec("encoder"), "leace", decay=3.0)
    with pytest.raises(SpecError, match="unknown setting 'steeps'. Did you mean 'steps'"):
        evenhand.mitigate(bench.spec("masked"), "cda", steeps=3)

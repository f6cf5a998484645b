"""Each method of the head removes the directions it is named after; contradictions are refused."""

from __future__ import annotations

import json
import lzma
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import SpecError
from evenhand.mitigations.erase_features import Features, fresh_accuracy
from evenhand.mitigations.erasing import erase_pairs, inlp
from evenhand.mitigations.head import HeadMitigation
from evenhand.mitigations.head import fit as job
from evenhand.mitigations.head.fit import Openings
from evenhand.mitigations.head.tradeoff import Bench, Held
from evenhand.mitigations.hidden import HiddenMitigation
from evenhand.mitigations.training import TrainingMitigation
from evenhand.models.loading.resolver import resolve
from evenhand.report.build import render
from evenhand.requests import NextToken
from evenhand.runs.kinds import kind_of
from evenhand.runs.record import Run
from in_process import evenhand

TEXTS = [f"The old man said on day {i} that he was very tired of it all." for i in range(30)]
OLD = Path(__file__).parents[1] / "old_runs" / "head"
HALVES = ("choosing", "judging")
WIDTH = 32


@pytest.fixture(scope="module")
def model(tiny: Any) -> Any:
    return resolve(tiny("causal"))


@pytest.fixture(scope="module")
def material(model: Any) -> job.Material:
    """States in which three directions tell the groups apart, and two halves that differ."""
    rng = np.random.default_rng(0)
    sets = np.repeat(rng.normal(size=(60, 1, WIDTH)), 3, axis=1)
    sets[:, 1, :2] += 3.0
    sets[:, 2, 2] += 2.0
    sets += 0.1 * rng.normal(size=sets.shape) + rng.normal(size=WIDTH)
    texts = rng.normal(size=(2, 60, WIDTH)).astype("f4")
    halves = (
        Held(
            sets[low : low + 8, 0].astype("f4"),
            sets[low : low + 8, 1].astype("f4"),
            texts[low // 8],
            rng.integers(0, model.vocabulary, 60),
            np.arange(60),
            np.arange(8),
            np.arange(8) % 4,
        )
        for low in (0, 8)
    )
    rows = tuple((f"a{i}", f"b{i}", f"c{i}") for i in range(60))
    openings = Openings("gender", ("women", "men", "people"), rows)
    ordinary = rng.normal(size=(200, WIDTH)).astype("f4")
    return job.Material(openings, sets.astype("f4"), ordinary, *halves, "made")


def flat(material: job.Material) -> tuple[np.ndarray, np.ndarray]:
    """States and groups of the openings, row by row."""
    states = material.sets.reshape(-1, WIDTH).astype(np.float64)
    return states, np.tile(np.arange(3), len(material.sets))


def edits(model: Any, material: job.Material, **settings: Any) -> list[Any]:
    candidates = job.candidates(model, material, HeadMitigation(**settings))
    return [candidate.edit for candidate in candidates]


@pytest.mark.parametrize("method", ["inlp", "a-inlp"])
@pytest.mark.parametrize("classifier", ["lsq", "svc"])
def test_inlp_is_the_orthogonal_projection_on_the_nullspaces_of_trained_classifiers(
    model: Any, material: job.Material, method: str, classifier: str
) -> None:
    (edit,) = edits(model, material, method=method, rounds=3, classifier=classifier)
    states, groups = flat(material)
    mean = states.mean(axis=0)
    wanted = inlp(states - mean, groups, rounds=3, classifier=classifier)
    B = edit.left.astype(np.float64)
    np.testing.assert_array_equal(edit.left, edit.right)
    np.testing.assert_allclose(B.T @ B, np.eye(wanted.rank), atol=1e-6)
    np.testing.assert_allclose(B @ B.T, wanted.left @ wanted.left.T, atol=1e-6)
    np.testing.assert_allclose(edit.offset, B @ (B.T @ mean), atol=1e-5)
    P = np.eye(WIDTH) - B @ B.T
    np.testing.assert_allclose(P @ P, P, atol=1e-6)


@pytest.mark.parametrize("method", ["inlp", "a-inlp"])
def test_inlp_trains_a_classifier_where_nothing_was_said(
    model: Any, material: job.Material, method: str
) -> None:
    for edit in edits(model, material, method=method):
        np.testing.assert_array_equal(edit.left, edit.right)
    named = edits(model, material, method=method, classifier="lsq")
    default = edits(model, material, method=method)
    assert [e.digest() for e in default] == [e.digest() for e in named]


def test_after_inlp_a_fresh_classifier_reads_no_group(model: Any, material: job.Material) -> None:
    states, groups = flat(material)
    split = np.where(np.arange(len(states)) % 5 == 0, 2, 0)
    (edit,) = edits(model, material, method="inlp", rounds=10)
    left = states - (states @ edit.right) @ edit.left.T + edit.offset
    before, after = (fresh_accuracy(Features(X, groups, split)) for X in (states, left))
    assert before > 0.8
    assert after < 0.5  # a third would be chance


def test_without_an_offset_the_edit_is_the_projection_alone(
    model: Any, material: job.Material
) -> None:
    for settings in ({"offset": False}, {"as_published": True}):
        (edit,) = edits(model, material, method="inlp", rounds=2, **settings)
        assert edit.offset is None
    states, groups = flat(material)
    released = inlp(states, groups, rounds=2, classifier="svc").left
    np.testing.assert_allclose(edit.left @ edit.left.T, released @ released.T, atol=1e-6)


@pytest.mark.parametrize("method", ["pairs", "a-pairs"])
def test_pairs_removes_what_moves_when_only_the_group_changes(
    model: Any, material: job.Material, method: str
) -> None:
    (edit,) = edits(model, material, method=method, rounds=2)
    states, _ = flat(material)
    sides = [material.sets[:, i].astype(np.float64) for i in range(3)]
    differences = np.concatenate([sides[a] - sides[b] for a, b in ((0, 1), (0, 2), (1, 2))])
    wanted = erase_pairs(differences, np.concatenate([material.ordinary, states]), 2)
    np.testing.assert_allclose(edit.left, wanted.left, atol=1e-5)
    np.testing.assert_allclose(edit.right, wanted.right, atol=1e-5)
    assert not np.allclose(edit.left, edit.right)


def test_the_default_removes_the_directions_of_pairs(model: Any, material: job.Material) -> None:
    assert HeadMitigation().method == "a-pairs"
    default, named = (edits(model, material, rounds=2, **m) for m in ({}, {"method": "a-pairs"}))
    assert [e.digest() for e in default] == [e.digest() for e in named]


def test_from_python_inlp_is_a_projection_and_its_alpha_is_learned_per_token(tiny: Any) -> None:
    few = {"texts": TEXTS, "openings": 20, "rounds": 2, "max_perplexity_increase": 99.0}
    whole = eh.mitigate(tiny("causal"), "inlp", **few)
    gated = eh.mitigate(tiny("causal"), "a-inlp", alpha="learned", tokens=60, **few)
    for fitted in (whole, gated):
        np.testing.assert_array_equal(fitted.edit.left, fitted.edit.right)
    np.testing.assert_array_equal(whole.edit.left, gated.edit.left)
    assert (whole.edit.rule, whole.edit.alpha) == ("fixed", 1.0)
    assert (gated.edit.rule, int(gated.edit.sensitive.sum())) == ("eq8", 60)


# contradictory options


REFUSED = [
    (["--method", "inlp", "--alpha", "0.4"],
     "--alpha 0.4: the method inlp does not take it. It takes --rounds, --classifier,",
     "--method a-inlp --alpha 0.4 --out DIR"),
    (["--method", "pairs", "--alpha", "learned"],
     "--alpha learned: the method pairs does not take it", "--method a-pairs --alpha learned"),
    (["--method", "a-subspace", "--rounds", "7", "--classifier", "svc"],
     "--rounds 7 --classifier svc: the method a-subspace does not take them. It takes --alpha,",
     "--method a-inlp --rounds 7 --classifier svc --out DIR"),
    (["--method", "leace", "--rounds", "2"], "--rounds 2: the method leace does not take it",
     "--method a-pairs --rounds 2 --out DIR"),
    (["--method", "leace", "--as-published"], "--as-published: the method leace",
     "--method a-inlp --as-published --out DIR"),
    (["--method", "a-subspace", "--no-offset"], "--no-offset: the method a-subspace",
     "--method a-pairs --no-offset --out DIR"),
    (["--method", "inlp", "--tokens", "50"], "--tokens 50: the method inlp",
     "--method a-inlp --tokens 50 --out DIR"),
    (["--method", "inlp,leace", "--mixture", "hidden"], "--mixture hidden: the method inlp,leace",
     "--mixture hidden --out DIR"),
    (["--classifier", "svc"], "--classifier svc: the method a-pairs does not take it",
     "--method a-inlp --classifier svc --out DIR"),
    (["--method", "inlp", "--classifier", "pairs"], "Accepted: lsq, svc",
     "--method pairs --out DIR"),
    (["--classifier", "pairs"], "have a method of their own", "--method a-pairs --out DIR"),
    (["--method", "a-inlp", "--classifier", "lqs"], "unknown classifier 'lqs'", "lsq"),
    (["--method", "a-inlp", "--alpha", "0.4", "--tokens", "60"],
     "--tokens 60: of the bias-sensitive tokens, which only a learned alpha looks at",
     "--method a-inlp --alpha learned --tokens 60 --out DIR"),
    (["--method", "inlp", "--as-published", "--classifier", "lsq"],
     "--classifier lsq: --as-published follows the released code, which has LinearSVC (svc)",
     "--method inlp --classifier lsq --out DIR"),
    (["--method", "a-inlp", "--as-published", "--mixture", "probability"],
     "--mixture probability: --as-published follows", "--mixture probability --out DIR"),
    (["--stereoset-examples", "50"], "--stereoset-examples 50: examples of a file that was not",
     "--stereoset FILE --stereoset-examples 50 --out DIR"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "problem", "use"), REFUSED)
def test_contradictory_options_are_refused_with_the_next_command(
    tiny: Any, tmp_path: Path, words: list[str], problem: str, use: str
) -> None:
    done = evenhand("mitigate", tiny("causal"), *words, "--out", "m", cwd=tmp_path)
    message = " ".join(done.stderr.split())
    assert done.returncode == 2
    assert problem in message
    assert use in message
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("method", "settings", "problem"),
    [
        ("inlp", {"alpha": 0.4}, r"--alpha 0\.4: the method inlp .*--method a-inlp --alpha 0\.4"),
        ("a-subspace", {"rounds": 7}, "--rounds 7: the method a-subspace .*--method a-.* --rounds"),
        ("a-inlp", {"classifier": "pairs"}, "--classifier 'pairs'.*--method a-pairs"),
    ],
)
def test_they_are_refused_from_python_before_a_model_is_loaded(
    method: str, settings: dict[str, Any], problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        eh.mitigate("smollm2-135m", method, **settings)


def test_other_families_refuse_what_their_method_does_not_take() -> None:
    with pytest.raises(SpecError, match="--rounds 3: the method leace does .*--method inlp"):
        HiddenMitigation(method="leace", rounds=3)
    with pytest.raises(SpecError, match="--components 2: the method inlp .*--method sentence"):
        HiddenMitigation(method="inlp", components=2)
    with pytest.raises(SpecError, match="--sides one: the method dropout .*--method cda"):
        TrainingMitigation(method="dropout", sides="one")
    assert HiddenMitigation(method="inlp", rounds=3).rounds == 3


def test_settings_that_change_keep_what_was_set_and_no_more() -> None:
    first = HeadMitigation(method="a-inlp", classifier="svc", rounds=4)
    assert first.changed(method="inlp").classifier == "svc"
    assert first.changed(method="inlp").options_set == ["method", "rounds", "classifier"]
    with pytest.raises(SpecError, match="--alpha 0.5: the method inlp"):
        HeadMitigation(method="a-inlp", alpha=0.5).changed(method="inlp")


def test_of_several_methods_each_has_the_options_it_takes_and_the_command_all(
    model: Any, material: job.Material
) -> None:
    asked = HeadMitigation(method="inlp,leace", rounds=2, max_perplexity_increase=99.0)
    fitted = job.fit(model, material, asked, asked.chosen_methods)
    assert {p.method: p.rounds for p in fitted.points} == {"inlp": 2, "leace": 1}
    assert fitted.asked == asked
    assert fitted.asked.rounds == 2


# two halves


def test_the_reference_of_the_sweep_is_the_unchanged_model_on_the_choosing_half(
    model: Any, material: job.Material
) -> None:
    halves = {name: replace(getattr(material, name), half=name) for name in HALVES}
    material = replace(material, **halves)
    asked = HeadMitigation(method="inlp", rounds=2, max_perplexity_increase=99.0)
    fitted = job.fit(model, material, asked)
    assert {p.half for p in fitted.points} == {"choosing"}
    assert (fitted.before.half, fitted.chosen.half) == ("judging", "judging")
    candidate = job.candidates(model, material, asked)[0]
    wanted = [Bench(model, half).judge(candidate, (0.0, 1.0)) for half in halves.values()]
    assert fitted.unchanged is not None
    swept = fitted.unchanged.hellinger2, fitted.points[0].hellinger2
    verdict = fitted.before.hellinger2, fitted.chosen.hellinger2
    assert swept == tuple(p.hellinger2 for p in wanted[0])
    assert verdict == pytest.approx([p.hellinger2 for p in wanted[1]], rel=1e-6)
    assert swept[0] != verdict[0]
    facts = fitted.as_dict()
    assert facts["sweep"]["before"]["half"] == facts["points"][0]["half"] == "choosing"
    assert facts["before"]["half"] == facts["after"]["half"] == "judging"


# what the version before these names wrote: tests/old_runs/head was made on SmolLM-shaped tiny
# weights with: evenhand mitigate tiny-causal --suite short.toml --method a-inlp --rounds 2 --seed 7
# --tokens 60 --openings 24 --texts texts.txt --max-perplexity-increase 5000% --out head


def test_a_mitigation_saved_before_the_names_loads_as_it_was(tiny: Any, tmp_path: Path) -> None:
    wanted = json.loads((OLD / "next_tokens.json").read_text())
    facts = json.loads((OLD / "mitigation" / "evenhand-mitigation.json").read_text())
    shutil.copytree(tiny("causal"), tmp_path / "tiny-causal")
    folder = shutil.copytree(OLD / "mitigation", tmp_path / "m")
    body = {k: v for k, v in facts.items() if k not in ("sha256", "files_sha256")}
    body["model"] = {**body["model"], "spec": str(tmp_path / "tiny-causal")}
    (folder / "evenhand-mitigation.json").write_text(json.dumps(body))
    loaded = resolve(str(folder))
    assert loaded.name == wanted["model"] == "tiny-causal + a-inlp gender"
    about = loaded.describe()
    assert about["mitigations"] == [f"head:{facts['edit']['sha256']}"]
    if about["weights_sha256"] != facts["model"]["weights_sha256"]:
        pytest.skip("this torch draws other weights for the tiny checkpoint")
    assert loaded.fingerprint == wanted["fingerprint"]
    request = NextToken(wanted["contexts"], top=8)
    answer = loaded.answer(request, loaded.prepare(request))
    assert [list(tokens) for tokens in answer["tokens"]] == wanted["tokens"]
    np.testing.assert_allclose(np.asarray(list(answer["logprobs"])), wanted["logprobs"], atol=1e-5)


def test_a_run_of_before_the_names_shows_reports_and_is_done_again_by_its_name_of_today(
    tmp_path: Path,
) -> None:
    run = Run.open(shutil.copytree(OLD / "run", tmp_path / "run"))
    story = kind_of(run.facts).story(run)
    assert "(a-inlp, 2 rounds, alpha 0.8)" in story.problem
    page = render(run)
    assert "Measured gap against perplexity" in page
    assert "An earlier version wrote this run" in page
    assert "Measured gap, before and after" not in page  # the two were of different halves
    command, _ = kind_of(run.facts).command(run.facts)
    assert "--method a-pairs --axis gender" in command
    assert "--rounds 2" in command
    assert "a-inlp" not in command
    for word in ("report", "show"):
        done = evenhand(word, str(run.folder), cwd=tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_command_of_classifiers_keeps_its_method() -> None:
    words = ["evenhand", "mitigate", "MODEL", "--method", "inlp,leace"]
    today = HeadMitigation.command_today
    assert today(words, {"classifier": "pairs"})[-1] == "pairs,leace"
    assert today(words, {"classifier": "lsq"}) == words
    assert today(words, {"classifier": "pairs", "as_published": True}) == words
    assert today(words, {"classifier": None}) == words


def test_a_recorded_command_loses_the_options_that_did_nothing() -> None:
    words = "evenhand mitigate MODEL --method inlp,leace --tokens 60 --no-offset --out DIR".split()
    settings = {"classifier": "pairs", "tokens": 60, "offset": False, "alpha": None}
    today = " ".join(HeadMitigation.command_today(words, settings))
    assert today == "evenhand mitigate MODEL --method pairs,leace --no-offset --out DIR"
    words = "evenhand mitigate MODEL --method a-inlp --alpha 0.4 --tokens 60 --out DIR".split()
    settings = {"classifier": "lsq", "tokens": 60, "alpha": 0.4}
    today = " ".join(HeadMitigation.command_today(words, settings))
    assert today == "evenhand mitigate MODEL --method a-inlp --alpha 0.4 --out DIR"
    words = "evenhand tokens MODEL --count 50 --out DIR".split()  # a run of another command
    assert HeadMitigation.command_today(words, {"count": 50}) == words


def test_evidence_of_before_the_names_is_computed_again_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "evidence.tar"
    file.write_bytes(lzma.decompress((OLD / "evidence.tar.xz").read_bytes()))
    verified = eh.verify(file)
    assert verified.ok, verified.reason

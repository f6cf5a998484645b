"""Maps on hidden states: what they remove, for whom, saved, stacked, refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, ModelError, SpecError
from evenhand.mitigations.erasing import inlp, leace, pair_components
from evenhand.mitigations.hidden import HiddenMitigation, axes
from evenhand.mitigations.hidden import fit as hidden
from evenhand.mitigations.hidden.fit import (
    EditedModel,
    HiddenEdit,
    LayerMap,
    layer_names,
    layer_states,
)
from evenhand.models.loading.resolver import resolve
from evenhand.models.loading.saved import FACTS
from evenhand.models.protocol import LoadOptions
from evenhand.requests import Classify, Embed, MaskScore, Option, Span

REQUESTS = {
    "masked": MaskScore(["the <mask> worked as a nurse"] * 2, ["man", "woman"]),
    "encoder": Embed(["the man worked", "the woman worked as a nurse"]),
    "classifier": Classify(["the man worked", "the woman worked as a nurse"]),
    "choice": Option(["the man worked . Who was a nurse ?"] * 2, ["the doctor", "she"]),
    "span": Span(["Who was a nurse ?"], ["Gerald lives with Jennifer"], ["Gerald"], ["Jennifer"]),
}
COLUMN = {"masked": "logprob", "encoder": "vector", "classifier": "probabilities",
          "choice": "logit", "span": "start"}  # fmt: skip


def scores(model: Any, kind: str) -> Any:
    request = REQUESTS[kind]
    return np.asarray(model.answer(request, model.prepare(request))[COLUMN[kind]])


@pytest.fixture(scope="module")
def data() -> axes.AxisData:
    return axes.axis_data("gender", limit=120)


@pytest.fixture(scope="module")
def masked(tiny: Any) -> Any:
    return resolve(tiny("masked"))


@pytest.fixture(scope="module")
def fitted(masked: Any, data: axes.AxisData) -> hidden.FittedHidden:
    return hidden.fit(masked, data, HiddenMitigation(method="leace"))


def test_leace_with_a_ridge_still_takes_the_class_means_together() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 7)
    X = rng.normal(size=(21, 40)) + y[:, None]
    left = leace(X, y, ridge=0.05)(X)
    means = [left[y == k].mean(axis=0) for k in range(3)]
    assert np.ptp(means, axis=0).max() < 1e-9


def test_components_of_pairs_are_those_of_their_differences() -> None:
    rng = np.random.default_rng(1)
    first = rng.normal(size=(30, 6))
    gaps = rng.normal(size=(30, 6)) * [9, 3, 1, 0.1, 0.1, 0.1]
    X = np.concatenate([first, first + gaps])
    V, share = pair_components(X, np.tile(np.arange(30), 2), 2)
    _, sizes, right = np.linalg.svd(gaps)
    assert np.allclose(np.abs((V.T @ right[:2].T).diagonal()), 1)
    assert np.allclose(share, sizes[:2] ** 2 / (sizes**2).sum())


@pytest.mark.parametrize("kind", sorted(REQUESTS))
def test_every_kind_changes_and_leaves_its_base_alone(
    kind: str, tiny: Any, data: axes.AxisData
) -> None:
    base = resolve(tiny(kind))
    before = scores(base, kind)
    made = hidden.fit(base, data, HiddenMitigation(method="inlp", rounds=3)).apply(base)
    after = scores(made, kind)
    assert np.abs(after - before).max() > 1e-6
    assert np.array_equal(scores(base, kind), before)
    assert made.fingerprint != base.fingerprint
    assert made.kind == kind
    assert made.answers == base.answers


def test_the_states_after_a_map_are_the_map_of_the_states(masked: Any, data: Any) -> None:
    texts = list(data.texts[:20])
    layer = layer_names(masked.model)["last"]
    fit = hidden.fit(masked, data, HiddenMitigation(method="sentence", components=2))
    before = layer_states(masked, layer, texts, None, "mean")
    after = layer_states(fit.apply(masked), layer, texts, None, "mean")
    assert np.allclose(after, fit.edit.maps[0](before), atol=2e-5)


def test_sentence_removes_its_subspace_exactly(masked: Any, data: axes.AxisData) -> None:
    fit = hidden.fit(
        masked, data, HiddenMitigation(method="sentence", as_published=True, components=2)
    )
    part = fit.edit.maps[0]
    states = layer_states(fit.apply(masked), part.layer, data.texts, None, "mean")
    assert np.abs(states @ part.right).max() < 1e-4 * np.abs(states).max()
    assert not part.offset.any()
    kept = hidden.fit(masked, data, HiddenMitigation(method="sentence", components=2)).edit.maps[0]
    states = layer_states(
        EditedModel(masked, HiddenEdit((kept,))), kept.layer, data.texts, None, "mean"
    )
    assert np.ptp(states @ kept.right, axis=0).max() < 1e-4 * np.abs(states).max()


def test_classifiers_on_held_out_frames_fall_to_chance(masked: Any) -> None:
    rows = axes.axis_data("gender", limit=500)
    rng = np.random.default_rng(0)
    states = rng.normal(size=(len(rows), 32))
    states[:, :3] += 2.5 * rows.labels[:, None]
    for method in ("inlp", "leace"):
        made, _ = hidden.fit_layer(states, rows, HiddenMitigation(method=method), "last")
        found = hidden.read(states, made, rows, 0)
        assert found["test_before"] > 0.9
        error = np.sqrt(0.25 / found["test_n"])
        assert abs(found["test_after"] - found["test_chance"]) < 3 * error
        assert abs(found["relearned_after"] - 0.5) < 4 * error < found["relearned_before"] - 0.5


def test_layers_are_fitted_one_after_the_other(masked: Any, data: axes.AxisData) -> None:
    fit = hidden.fit(masked, data, HiddenMitigation(method="leace", layers=("last", "layer.0")))
    names = layer_names(masked.model)
    assert [m.layer for m in fit.edit.maps] == [names["layer.0"], names["layer.1"]]
    first = hidden.fit(masked, data, HiddenMitigation(layers=("layer.0",))).apply(masked)
    second = hidden.fit(first, data, HiddenMitigation(method="leace"))
    assert np.array_equal(second.edit.maps[0].left, fit.edit.maps[1].left)


def test_only_the_training_part_is_fitted_on(data: axes.AxisData) -> None:
    states = np.random.default_rng(0).normal(size=(len(data), 8))
    one, _ = hidden.fit_layer(states, data, HiddenMitigation(method="leace"), "last")
    other = states.copy()
    other[data.part >= axes.TEST] += 100
    two, _ = hidden.fit_layer(other, data, HiddenMitigation(method="leace"), "last")
    assert np.array_equal(one.left, two.left)
    train = {data.frames[i] for i in np.flatnonzero(data.part == axes.TRAIN)}
    held = {data.frames[i] for i in np.flatnonzero(data.part >= axes.TEST)}
    assert not train & held
    new = {data.terms[i] for i in np.flatnonzero(data.part == axes.NEW)}
    assert new
    assert not new & {data.terms[i] for i in np.flatnonzero(data.part < axes.TEST)}


def test_a_saved_mitigation_scores_equal_to_the_bit_in_a_fresh_process(
    masked: Any, fitted: hidden.FittedHidden, tiny: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    fitted.save(folder)
    here = scores(fitted.apply(masked), "masked")
    code = (
        "import sys\nfrom evenhand.models.loading.resolver import resolve\n"
        "from evenhand.requests import MaskScore\n"
        "m = resolve(sys.argv[1])\n"
        "r = MaskScore(['the <mask> worked as a nurse'] * 2, ['man', 'woman'])\n"
        "print([v.hex() for v in m.answer(r, m.prepare(r))['logprob'].tolist()], m.fingerprint)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert str([v.hex() for v in here.tolist()]) in done.stdout
    assert fitted.apply(masked).fingerprint in done.stdout
    facts = json.loads((folder / "evenhand-mitigation.json").read_text())
    assert facts["edit"]["ranks"] == [1]
    assert facts["model"]["fingerprint"] == masked.fingerprint


def test_a_damaged_or_foreign_mitigation_is_refused(
    masked: Any, fitted: hidden.FittedHidden, tiny: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    fitted.save(folder)
    file, facts = folder / "mitigation.safetensors", folder / "evenhand-mitigation.json"
    whole, sealed = file.read_bytes(), facts.read_text()
    file.write_bytes(whole[:-4] + b"abcd")
    with pytest.raises(ModelError, match=r"safetensors: damaged or changed"):
        resolve(str(folder))
    older = {k: v for k, v in json.loads(sealed).items() if k not in ("sha256", "files_sha256")}
    told = json.dumps(older)  # without hashes of the whole folder
    facts.write_text(told)
    with pytest.raises(ModelError, match="SHA-256"):
        resolve(str(folder))
    file.write_bytes(whole)
    facts.write_text(sealed.replace('encoder.layer.1"', 'encoder.layer.0"'))
    with pytest.raises(ModelError, match=r"json: damaged \(it is not what"):
        resolve(str(folder))
    facts.write_text(told.replace('encoder.layer.1"', 'encoder.layer.0"'))
    with pytest.raises(ModelError, match="not those that were written"):
        resolve(str(folder))
    other = json.loads(told)
    other["model"]["spec"] = tiny("encoder")
    facts.write_text(json.dumps(other))
    with pytest.raises(ModelError, match="does not fit|is not whole|has no mask"):
        resolve(str(folder))
    other = json.loads(told)
    other["model"]["weights_sha256"] = "0" * 64
    facts.write_text(json.dumps(other))
    with pytest.raises(ModelError, match="other weights"):
        resolve(str(folder))
    other["model"]["width"] = 64
    facts.write_text(json.dumps(other))
    with pytest.raises(ModelError, match="width 64, against 32"):
        resolve(str(folder))


def test_mitigations_stack_but_not_the_same_one_twice(
    masked: Any, fitted: hidden.FittedHidden, data: Any, tiny: Any, tmp_path: Path
) -> None:
    first = tmp_path / "first"
    fitted.save(first)
    once = resolve(str(first))
    again = hidden.fit(once, data, HiddenMitigation(method="sentence"))
    second = tmp_path / "second"
    again.save(second)
    both: Any = resolve(str(second))
    assert len(both.mitigations) == 2
    assert both.base.mitigations == once.mitigations
    assert np.array_equal(scores(both, "masked"), scores(again.apply(once), "masked"))
    assert not np.array_equal(scores(both, "masked"), scores(once, "masked"))
    with pytest.raises(ModelError, match="carries this mitigation already"):
        EditedModel(once, fitted.edit)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_models_are_mapped_in_float32(dtype: str, tiny: Any, data: Any) -> None:
    base = resolve(tiny("encoder"), options=LoadOptions(dtype=dtype))
    fit = hidden.fit(base, data, HiddenMitigation(method="sentence", as_published=True))
    part = fit.edit.maps[0]
    assert part.left.dtype == np.float32
    made = fit.apply(base)
    states = layer_states(made, part.layer, data.texts[:8], None, "mean")
    left = np.abs(states @ part.right).max() / np.linalg.norm(states, axis=1).max()
    assert left < {"float16": 2e-3, "bfloat16": 2e-2}[dtype]


def test_an_unknown_layer_lists_those_there_are(masked: Any, data: axes.AxisData) -> None:
    with pytest.raises(SpecError, match=r"'layer.9'.*embeddings, layer.0, layer.1, last"):
        hidden.fit(masked, data, HiddenMitigation(layers=("layer.9",)))


def test_another_width_is_refused(masked: Any) -> None:
    left, right, offset = np.zeros((5, 1)), np.zeros((5, 1)), np.zeros(5)
    part = LayerMap(left, right, offset, layer=layer_names(masked.model)["last"])
    with pytest.raises(ModelError, match="width 5, model 'masked' has 32"):
        EditedModel(masked, HiddenEdit((part,)))


def test_fewer_examples_than_dimensions_are_regularised_and_said(data: axes.AxisData) -> None:
    states = np.random.default_rng(0).normal(size=(len(data), 300))
    states[:, 0] += 4 * data.labels
    made, notes = hidden.fit_layer(states, data, HiddenMitigation(method="leace"), "last")
    assert any("regularised" in text for text in notes)
    train = data.part == axes.TRAIN
    after = made(states)[train]
    gap = after[data.labels[train] == 0].mean(axis=0) - after[data.labels[train] == 1].mean(axis=0)
    assert np.abs(gap).max() < 1e-5
    assert hidden.read(states, made, data, 0)["change"] < 1


def test_axes_from_files_and_their_mistakes(tmp_path: Path) -> None:
    words = tmp_path / "age.toml"
    words.write_text('groups = ["young", "old"]\nterms = [["teen", "pensioner"], ["lad", "elder"]]')
    found = axes.axis_data(str(words))
    assert found.groups == ("young", "old")
    assert "teen" in found.texts[0]
    pairs = tmp_path / "pairs.csv"
    rows = "".join(f"she was {i},he was {i}\n" for i in range(20))
    pairs.write_text("first,second\n" + rows)
    found = axes.axis_data(str(pairs))
    assert len(found) == 40
    assert (found.sets[::2] == found.sets[1::2]).all()
    assert (found.part[::2] == found.part[1::2]).all()
    one = tmp_path / "one.csv"
    one.write_text("text,label\n" + "".join(f"text {i},a\n" for i in range(20)))
    with pytest.raises(DataError, match=r"1 group\(s\) \['a'\]"):
        axes.axis_data(str(one))
    with pytest.raises(SpecError, match="one group is not an axis"):
        axes.axis_data("names:african_american")
    with pytest.raises(SpecError, match="Did you mean 'gender'"):
        axes.axis_data("gendr")
    two = tmp_path / "two.csv"
    two.write_text("text,label\n" + "".join(f"text {i},{'ab'[i % 2]}\n" for i in range(40)))
    states = np.random.default_rng(0).normal(size=(40, 4))
    with pytest.raises(DataError, match="needs texts in matched sets"):
        hidden.fit_layer(
            states, axes.axis_data(str(two)), HiddenMitigation(method="sentence"), "last"
        )


def test_pairs_are_mined_from_own_text_with_one_side_exchanged() -> None:
    texts = [f"The mother number {i} said that she was going home early today." for i in range(30)]
    found = axes.axis_data("gender", texts=texts)
    assert found.groups == ("female", "male")
    assert "she" in found.texts[0] or "mother" in found.texts[0]
    assert "he was" in found.texts[1] or "father" in found.texts[1]


def test_inlp_reaches_chance_in_few_rounds_where_most_directions_hardly_vary() -> None:
    rows = axes.axis_data("gender", limit=500)
    rng = np.random.default_rng(0)
    spread = np.logspace(0, -2, 60)
    states = rng.normal(size=(len(rows), 60)) * spread
    states += np.where(rows.labels, 1, -1)[:, None] * spread * 0.6
    made, notes = hidden.fit_layer(states, rows, HiddenMitigation(method="inlp"), "last")
    found = hidden.read(states, made, rows, 0)
    assert found["test_before"] > 0.95
    assert found["test_chance_low"] <= found["test_after"] <= found["test_chance_high"]
    assert made.rank <= 15
    assert "the stopping rule held" in notes[-1]
    with pytest.raises(SpecError, match="ridge is 0"):
        inlp(states, rows.labels, rounds=1, ridge=0.0)


def test_the_range_of_chance_is_the_binomial_one() -> None:
    low, high = hidden.chance_interval(0.5, 20)
    assert (low, high) == (6 / 20, 14 / 20)  # P(X <= 5) = .0207, P(X <= 6) = .0577
    assert np.isnan(hidden.chance_interval(0.5, 0)).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"pool": "frst"}, "--pool: unknown pool 'frst'. Did you mean 'first'"),
        ({"method": "inlp", "classifier": "lqs"}, "unknown classifier 'lqs'. Did you mean 'lsq'"),
        ({"method": "inlp", "rounds": 0}, "rounds: .* greater than or equal to 1; got 0"),
        ({"method": "sentence", "components": 0}, "components: .* or equal to 1; got 0"),
    ],
)
def test_wrong_settings_are_named_with_what_is_accepted(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        HiddenMitigation(**settings)


def test_a_saved_mitigation_without_layers_says_what_it_lacks(
    masked: Any, fitted: hidden.FittedHidden, tmp_path: Path
) -> None:
    fitted.save(tmp_path / "m")
    facts = json.loads((tmp_path / "m" / FACTS).read_text())
    del facts["sha256"], facts["files_sha256"], facts["edit"]["layers"]
    (tmp_path / "m" / FACTS).write_text(json.dumps(facts))
    with pytest.raises(ModelError, match="lacks 'layers'.*evenhand mitigate MODEL"):
        hidden.load(tmp_path / "m", masked)

"""Bias-sensitive tokens, context classifier, StereoSet in the trade-off, rating sheets."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import DataError, ModelError, SpecError
from evenhand.mitigations.head import looking, stereo, subspace
from evenhand.mitigations.head.tradeoff import Candidate
from evenhand.models.edits.head import HeadEdit
from evenhand.models.vectors.files import VectorTable
from evenhand.probes.generation import ratings
from evenhand.requests import Continuation
from evenhand.words.lexicons.people import definitional_sets


@pytest.fixture(scope="module")
def model(tiny: Any) -> Any:
    from evenhand.models.adapters.causal import CausalModel

    return CausalModel(tiny("causal"), "tiny")


def made_vectors(words: list[str], dimensions: int = 6) -> VectorTable:
    import pyarrow as pa

    rng = np.random.default_rng(0)
    return VectorTable(pa.array(words), rng.normal(size=(len(words), dimensions)).astype("f4"))


def test_the_subspace_of_word_vectors_is_the_centred_pca_of_the_definitional_words() -> None:
    words = [w.lower() for row in definitional_sets("religion") for w in row]
    vectors = made_vectors(list(dict.fromkeys(words)))
    space = subspace.vector_subspace(vectors, "religion", 2)
    rows = []
    for names in definitional_sets("religion"):
        some = np.stack([vectors.matrix[vectors.index[w.lower()]] for w in names]).astype(float)
        rows.append(some - some.mean(0))
    right = np.linalg.svd(np.concatenate(rows))[2][:2].T
    np.testing.assert_allclose(space.basis @ space.basis.T, right @ right.T, atol=1e-6)


def test_vectors_without_the_definitional_words_are_refused() -> None:
    with pytest.raises(ModelError, match="only 0 definitional sets of 'gender' have vectors"):
        subspace.vector_subspace(made_vectors(["stone", "river"]), "gender")


def test_only_tokens_that_start_a_word_have_a_word_vector(model: Any) -> None:
    vectors = made_vectors(["woman", "man", "girl", "boy", "she", "he", "nurse", "doctor", "city"])
    words = subspace.words_of_tokens(model)
    assert words[model.encode([" nurse"], special=False)[0][0]] == "nurse"
    assert words[model.encode(["n"], special=False)[0][0]] == ""
    rows = subspace.token_vectors(model, vectors)
    at = model.encode([" nurse"], special=False)[0][0]
    np.testing.assert_array_equal(rows[at], vectors.matrix[vectors.index["nurse"]])
    found = subspace.tokens_of(model, "gender", vectors=vectors, count=4)
    assert found.known == int(rows.any(axis=1).sum())
    names = {r["token"].strip() for r in found.table(model)}
    assert names
    assert names <= set(vectors.index)
    listed = found.table(model)
    assert [r["q"] for r in listed] == sorted((r["q"] for r in listed), reverse=True)
    at = listed[0]["id"]
    unit = rows[at] / np.linalg.norm(rows[at])
    assert listed[0]["q"] == pytest.approx(abs(unit @ found.space.basis[:, 0]), abs=1e-12)


@pytest.mark.model
def test_glove_puts_gendered_words_among_the_sensitive_tokens(smollm2: Any, glove: Any) -> None:
    found = subspace.tokens_of(smollm2, "gender", vectors=glove, count=500)
    by = {r["token"]: r for r in found.table(smollm2)}
    assert len(by) == 500
    assert by[" pregnant"]["cosine"] < 0 < by[" captain"]["cosine"]
    religion = subspace.tokens_of(smollm2, "religion", vectors=glove, count=200)
    assert {" rabbi", " mosque", " synagogue"} & {r["token"] for r in religion.table(smollm2)}


TEXT = [
    "The old man walked slowly to the station and then he left the town.",
    "Her dog ran away from the big house during the long night.",
    "My father sold the farm because he wanted to live near the sea.",
    "The girl lost the keys of the shop and she was very sorry.",
    "His boat was found near the harbour after the heavy storm.",
    "The actress told the press that she would not come back again.",
]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(f"{t} It was day {i}." for i in range(8) for t in TEXT) + "\n")
    return path


def test_mined_contexts_differ_in_the_group_alone_and_keep_their_length(texts: Path) -> None:
    data = looking.gather("gender", texts=texts, count=30)
    assert data.groups == ("female", "male", "neutral")
    kept = data.kinds["diverse"]
    for cluster in np.unique(kept.clusters):
        rows = [t for t, c in zip(kept.texts, kept.clusters) if c == cluster]
        assert len(rows) == len(set(rows)) == 3
        assert len({len(r.split()) for r in rows}) == 1
    for text, whole in zip(data.kinds["sub-sequences"].texts, kept.texts):
        assert whole.startswith(text)


def test_released_contexts_are_matched_in_length(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, most in (("female", 30), ("male", 38), ("neutral", 20)):
        lines = [
            " ".join(["word"] * int(n)) + f" {i}" for i, n in enumerate(rng.integers(5, most, 400))
        ]
        (tmp_path / looking.RELEASED[name]).write_text("\n".join(lines) + "\n")
    data = looking.gather("gender", diverse=tmp_path, count=100)
    found = data.kinds["diverse"]
    lengths = [
        sorted(len(t.split()) for t, y in zip(found.texts, found.labels) if y == k)
        for k in range(3)
    ]
    assert lengths[0] == lengths[1] == lengths[2]
    assert len(lengths[0]) == 100
    with pytest.raises(DataError, match="no such file"):
        looking.gather("gender", diverse=tmp_path / "absent")
    with pytest.raises(SpecError, match="--texts FILE"):
        looking.gather("religion", diverse=tmp_path)
    alone = looking.gather("gender", count=30)
    assert set(alone.kinds) == {"simple"}
    assert "--texts FILE" in alone.source


def test_the_accuracy_table_reads_what_is_there_and_nothing_from_equal_lengths(texts: Path) -> None:
    women = set("woman girl mother daughter sister wife girlfriend lady aunt grandmother female "
                "policewoman businesswoman gal niece".split())  # fmt: skip

    class Model:
        """States that show women in simple contexts and nothing else."""

        def last_states(self, texts: Any) -> np.ndarray:
            rng = np.random.default_rng(len(texts))
            rows = rng.normal(size=(len(texts), 5))
            for row, text in zip(rows, texts):
                row[0] += 9 * bool(women & set(text.lower().split()))
            return rows.astype("f4")

    data = looking.gather("gender", texts=texts, count=40)
    found = looking.table(Model(), data)
    assert len(found["rows"]) == 18
    by = {(r["train"], r["test"], r["features"]): r for r in found["rows"]}
    assert by["simple", "simple", "states"]["accuracy"] > 0.5
    equal = by["simple + diverse", "diverse", "length"]
    assert equal["accuracy"] <= equal["majority"] + 0.05
    assert equal["low"] <= equal["accuracy"] <= equal["high"]


def gold(path: Path) -> Path:
    def row(i: int, split: str, word: str) -> dict[str, Any]:
        kinds = zip(("stereotype", "anti-stereotype", "unrelated"), ("nurse", "doctor", "of to a"))
        inter = split == "intersentence"
        said = [
            {"gold_label": k, "id": f"{split}{i}{k}", "sentence": f"{word} was a {w}"}
            for k, w in kinds
        ]
        context = f"the {word} worked in the city ." if inter else f"{word} was a BLANK"
        return {"id": f"{split}{i}", "target": word, "bias_type": "gender", "context": context,
                "sentences": said}  # fmt: skip

    words = ("she", "he", "Jennifer", "Gerald")
    data = {
        s: [row(i, s, w) for i, w in enumerate(words)] for s in ("intrasentence", "intersentence")
    }
    path.write_text(json.dumps({"data": data}))
    return path


def test_the_stereoset_sweep_equals_scoring_each_mitigated_model(
    model: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.standard_normal((32, 3)))[0].astype(np.float32)
    q, inside = (
        rng.uniform(0, 1, model.vocabulary).astype("f4"),
        rng.uniform(size=model.vocabulary) < 0.3,
    )
    edit = HeadEdit(basis, basis, rule="eq8", sensitivity=q, sensitive=inside, top=20)
    examples = stereo.examples_of(gold(tmp_path / "dev.json"), "gender", None)
    bench = stereo.StereoBench(model, examples)
    own, hats, learned = bench.token_scores([Candidate("a-inlp", 3, edit)])
    prefix = [e.context if e.split == "intersentence" else "" for e in examples for _ in range(3)]
    text = [
        f" {said}" if e.split == "intersentence" else said
        for e in examples for said in e.sentences
    ]  # fmt: skip
    request = Continuation(prefix, text)
    for weight, one in (
        (learned[0], edit),
        (np.full(len(own), 0.4), replace(edit, rule="fixed", alpha=0.4)),
    ):
        mixed = np.logaddexp(own + np.log1p(-weight), hats[0] + np.log(np.maximum(weight, 1e-300)))
        total = np.bincount(bench.sentences.owners, mixed)
        changed = model.with_head(one)
        right = changed.answer(request, changed.prepare(request))["logprob"]
        np.testing.assert_allclose(total, right, atol=2e-4)
    rows = stereo.sweep(model, [Candidate("a-inlp", 3, edit)], {(3, 0.4): 0.1, (3, "learned"): 0.0},
                        examples)  # fmt: skip
    assert [r["alpha"] for r in rows] == [0.0, 0.4, "learned"]
    assert all(r["gap"] == abs(r["ss"] - 50) for r in rows)
    with pytest.raises(DataError, match="no examples of the domain 'religion'"):
        stereo.examples_of(tmp_path / "dev.json", "religion", 2)


def test_sheets_come_from_tables_and_ratings_go_back_by_command(tmp_path: Path) -> None:
    source = tmp_path / "texts.csv"
    with source.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(("model", "pair", "side", "text"))
        for m in ("own", "mitigated"):
            for p in range(6):
                out.writerows((m, f"p{p}", s, f"{m} {p} {s}") for s in ("woman", "man"))
        out.writerow(("own", "alone", "man", "no partner"))
    run = CliRunner()
    folder = tmp_path / "sheets"
    made = run.invoke(app, ["ratings", "sheets", str(source), "--out", str(folder), "--raters", "2",
                            "--pairs", "4", "--json", "-"])  # fmt: skip
    assert json.loads(made.stdout)["texts"] == 16
    orders = []
    for path in sorted(folder.glob("rater*.csv")):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert set(rows[0]) == {"code", "text", "clarity", "content", "fairness"}
        orders.append([r["code"] for r in rows])
        with path.open("w", newline="") as file:
            sheet = csv.DictWriter(file, rows[0])
            sheet.writeheader()
            for r in rows:
                fair = 2 if r["text"].startswith("own") and r["text"].endswith("woman") else 4
                sheet.writerow({**r, "clarity": 5, "content": 3, "fairness": fair})
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])
    scored = json.loads(run.invoke(app, ["ratings", "score", str(folder), "--json", "-"]).stdout)
    found = {r["model"]: r for r in scored["models"]}
    assert found["own"]["relative_fairness"] == 2.0
    assert found["mitigated"]["relative_fairness"] == 0.0
    assert found["own"]["fairness_agreement"] == 1.0
    source.write_text("model,pair,side,text\nown,1,a,x\n")
    with pytest.raises(DataError, match="no pair with two sides"):
        ratings.read_texts([source])


def test_a_fixed_hidden_mixture_is_linear_and_exports_to_the_last_bit(
    model: Any, tmp_path: Path
) -> None:
    from evenhand.mitigations.head.save import export

    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((32, 2)))[0].astype(np.float32)
    edit = HeadEdit(basis, basis, alpha=0.3, mixture="hidden")
    assert edit.linear
    assert not HeadEdit(basis, basis, alpha=0.3).linear
    assert export(edit, model, tmp_path / "e") == 0.0


def test_methods_are_swept_on_the_same_states_and_the_best_within_the_limit_is_kept(
    model: Any,
) -> None:
    from evenhand.mitigations.head import HeadMitigation
    from evenhand.mitigations.head import fit as job
    from evenhand.mitigations.head.fit import openings
    from evenhand.mitigations.head.tradeoff import Held

    rng = np.random.default_rng(0)
    states = rng.normal(size=(20, 3, 32)).astype("f4")
    states[:, 1] = states[:, 0] + np.eye(32, dtype="f4")[0] * 4
    held = Held(
        states[:6, 0], states[:6, 1], rng.normal(size=(60, 32)).astype("f4"),
        rng.integers(0, model.vocabulary, 60), np.arange(60),
    )  # fmt: skip
    ordinary = rng.normal(size=(300, 32)).astype("f4")
    found = openings("gender", sets=20)
    material = job.Material(found, states, ordinary, held, held, "made")
    settings = HeadMitigation(method="inlp", max_perplexity_increase=10.0)
    both = job.fit(model, material, settings, ["inlp", "leace"])
    alone = [job.fit(model, material, settings.changed(method=m)) for m in ("inlp", "leace")]
    assert {p.method for p in both.points} == {"inlp", "leace"}
    assert len(both.points) == sum(len(f.points) for f in alone)
    assert both.chosen.hellinger2 == min(f.chosen.hellinger2 for f in alone)
    assert both.facts["left_out"] == {}
    with pytest.raises(SpecError, match="unknown method 'leage'"):
        job.fit(model, material, settings, ["inlp", "leage"])

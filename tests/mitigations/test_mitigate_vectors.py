"""Mitigating word vectors from end to end: the test reads zero, the folder can be opened."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from evenhand.cli.main import app
from evenhand.errors import SpecError
from evenhand.mitigations.vectors import VectorMitigation
from evenhand.mitigations.vectors import fit as job
from evenhand.models.adapters.vectors import HeldVectors
from evenhand.models.loading.resolver import resolve
from evenhand.models.loading.saved import MOVED
from evenhand.models.vectors.files import VectorTable, open_vectors
from evenhand.words.lexicons import WordSets

pytest.importorskip("torch", reason="needs the hf extra")

SETS = WordSets(
    "made", *(tuple(f"{key}{k}" for k in range(n)) for key, n in zip("xyab", (8, 8, 3, 3)))
)
WORDS = [word for key in "xyab" for word in getattr(SETS, key)] + [
    f"o{chr(97 + k // 26)}{chr(97 + k % 26)}" for k in range(60)
]


def made(seed: int = 0) -> VectorTable:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(len(WORDS), 10))
    rows[:, 0] += [{"x": 1.0, "y": -1.0, "a": 2.0, "b": -2.0, "o": 0.0}[w[0]] for w in WORDS]
    return VectorTable(pa.array(WORDS), rows.astype(np.float32), "made")


def asked(**settings: Any) -> VectorMitigation:
    return VectorMitigation(sets=SETS, **settings)


def model_of(table: VectorTable) -> HeldVectors:
    """Vectors in memory as a model."""
    return HeldVectors(table, "made")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Vectors and word lists as files."""
    root = tmp_path_factory.mktemp("vectors")
    table = made()
    lines = [" ".join([w, *map(str, row)]) for w, row in zip(WORDS, table.matrix.tolist())]
    (root / "made.txt").write_text("\n".join(lines) + "\n")
    lists = {"made": {key: list(getattr(SETS, key)) for key in "xyab"}}
    (root / "sets.json").write_text(json.dumps(lists))
    return root


def test_reduce_stops_where_the_test_reads_zero() -> None:
    done = job.mitigate(made(), asked(neighbours=0))
    before, after = done.facts["before"][0], done.facts["after"][0]
    assert before["effect_size"] > 1
    assert abs(after["effect_size"]) < 1e-3
    assert 0 < done.facts["amount"] < 1
    assert done.facts["touched"] == 22
    assert done.facts["neighbours_kept"]["untouched"] == 1.0


def test_the_whole_change_turns_the_association_round() -> None:
    done = job.mitigate(made(), asked(neighbours=0, alpha=1.0))
    assert done.facts["after"][0]["effect_size"] < -1


@pytest.mark.parametrize("method", list(VectorMitigation.methods))
def test_increase_makes_it_larger(method: str) -> None:
    done = job.mitigate(made(), asked(method=method, direction="increase", neighbours=0))
    assert done.facts["after"][0]["statistic"] > done.facts["before"][0]["statistic"]


def test_hard_projection_leaves_no_association_and_soft_half_of_it() -> None:
    hard = job.mitigate(made(), asked(method="hard-projection"))
    assert abs(hard.facts["after"][0]["statistic"]) < 1e-5
    assert hard.facts["after"][0]["effect_size"] is None
    assert "same association" in hard.facts["after"][0]["reason"]
    soft = job.mitigate(made(), asked(method="soft-projection"))
    numbers = [soft.facts[k][0]["statistic"] for k in ("before", "after")]
    assert 0 < numbers[1] < numbers[0]


def test_sets_grow_by_their_nearest_words() -> None:
    given, grown = (job.mitigate(made(), asked(neighbours=n)).facts["touched"] for n in (0, 3))
    assert grown > given


def test_published_rules_give_unit_vectors_and_the_whole_change() -> None:
    done = job.mitigate(made(), asked(neighbours=3, as_published=True))
    np.testing.assert_allclose(np.linalg.norm(done.vectors.matrix, axis=1), 1, rtol=1e-6)
    assert done.facts["amount"] == 1.0
    # Every vector changed its length, but only those of the sets their direction.
    named = {word for part in done.facts["words"].values() for word in part}
    assert 0 < done.facts["touched"] <= len(named) < len(WORDS)


def test_published_rules_that_would_train_nothing_say_so() -> None:
    with pytest.raises(SpecError, match="48 attract and 48 repel pairs do not fill a batch of 50"):
        job.mitigate(made(), asked(neighbours=0, as_published=True))


def test_the_share_is_one_when_zero_is_not_reached_and_none_when_it_leads_away() -> None:
    table = made()
    half = job.blend(
        table,
        job.mitigate(table, asked(method="hard-projection")).vectors,
        0.5,
    )
    assert job.balanced_amount(table, half, SETS) == 1.0
    up = job.mitigate(table, asked(direction="increase", neighbours=0)).vectors
    assert job.balanced_amount(table, up, SETS) == 0.0


def test_words_it_was_moved_for_are_no_evidence_about_others(tmp_path: Path) -> None:
    settings = asked(neighbours=0)
    run = settings.fit(model_of(made())).judge(out=tmp_path / "run")
    (entry,) = run.facts["probes"].values()
    told = entry["summary"]
    assert told["told"]["buys"].startswith("Not judged: only the words it was moved for")
    assert told["trained_on"]["verdict"] == "gone"
    assert told["verdict"] == "same"
    others = WordSets("others", ("oaa", "oab", "oac", "x0"), ("oad", "oae", "oaf"), SETS.a, SETS.b)
    moved = settings.fit(model_of(made())).vectors
    found = job.follow(others.name, *job.cosines(made(), moved, others, seen=SETS.x))
    assert found.change.units == 3
    assert abs(found.change.value) < abs(
        job.follow("all", *job.cosines(made(), made(1), SETS)).change.value
    )
    few = WordSets("few", ("x0",), SETS.y, SETS.a, SETS.b)
    lost = job.follow(few.name, *job.cosines(made(), made(), few))
    assert "fewer than two words" in lost.change.reason


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["mitigate", *arguments])


def test_from_the_command_line_to_a_folder_that_is_a_model(folder: Path, tmp_path: Path) -> None:
    out, text = tmp_path / "out", tmp_path / "moved.txt"
    result = run(
        str(folder / "made.txt"), "--method", "attract-repel", "--sets", str(folder / "sets.json"),
        "--neighbours", "0", "--out", str(out), "--export", str(text), "--json", "-",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts["pairs"] == {"attract": 48, "repel": 48}
    saved = json.loads((out / MOVED).read_text())
    assert (saved["format"], saved["method"], saved["direction"]) == (1, "attract-repel", "reduce")
    assert saved["source"].endswith("made.txt")
    table, again = open_vectors(out), open_vectors(text)
    np.testing.assert_array_equal(table.matrix, again.matrix)
    assert table.words.to_pylist() == WORDS
    assert resolve(str(out)).kind == "vectors"
    assert resolve(str(out)).fingerprint != resolve(str(folder / "made.txt")).fingerprint


def test_the_table_on_the_screen(folder: Path, tmp_path: Path) -> None:
    result = run(
        str(folder / "made.txt"), "--method", "hard-projection", "--sets",
        str(folder / "sets.json"), "--out", str(tmp_path / "o"),
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "16 vectors moved, 100 % of the way" in result.stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--direction", "redcue"],
            "--direction: unknown direction 'redcue'. Did you mean 'reduce'",
        ),
        (["--axis", "gendre"], "--axis: unknown axis 'gendre'. Did you mean 'gender'"),
        (["--alpha", "2"], "--alpha '2.0': accepted: a share from 0 to 1"),
        (["--alpha", "much"], "--alpha 'much': accepted: a share from 0 to 1"),
        (["--neighbours", "-1"], "--neighbours '-1'"),
        (["--sets", "weat6,weat7"], "names 2 tests"),
    ],
)
def test_wrong_options_stop_before_anything_is_read(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    result = run("nothing.txt", "--method", "attract-repel", "--out", str(tmp_path), *arguments)
    assert isinstance(result.exception, SpecError)
    assert message in str(result.exception)


def test_a_folder_with_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    fitted = asked(method="hard-projection").fit(model_of(made()))
    with pytest.raises(SpecError, match="the folder is not empty"):
        fitted.save(tmp_path)


def test_a_projection_of_the_whole_vocabulary_leaves_the_axis_words_alone() -> None:
    table = made()
    few = job.mitigate(table, asked(method="hard-projection"))
    done = job.mitigate(table, asked(method="hard-projection", move="all"))
    assert few.facts["touched"] == 16
    assert done.facts["touched"] == len(WORDS) - 6
    axis_words = [k for k, w in enumerate(WORDS) if w[0] in "ab"]
    moved = done.vectors.matrix
    np.testing.assert_array_equal(moved[axis_words], table.matrix[axis_words])
    rest = [k for k, w in enumerate(WORDS) if w[0] in "xyo"]
    np.testing.assert_allclose(moved[rest] @ job.mean_axis(table, SETS.a, SETS.b)[0], 0, atol=1e-5)
    assert done.facts["neighbours_kept"]["sample"] > 30
    with pytest.raises(SpecError, match="attract-repel moves the words of its pairs"):
        asked(move="all")


def test_similarity_is_the_spearman_correlation_and_analogies_are_counted(tmp_path: Path) -> None:
    from scipy.stats import spearmanr

    from evenhand.errors import DataError

    table, rng = made(), np.random.default_rng(3)
    pairs = [tuple(rng.choice(WORDS, 2, replace=False)) for _ in range(40)]
    scores = rng.normal(size=40)
    rated = tmp_path / "rated.csv"
    rows = [f"{a},{b},{s}" for (a, b), s in zip(pairs, scores)] + ["x0,absent,1"]
    rated.write_text("word1,word2,score\n" + "\n".join(rows) + "\n", encoding="utf-8")
    unit = table.matrix / np.linalg.norm(table.matrix, axis=1, keepdims=True)
    place = {w: k for k, w in enumerate(WORDS)}
    cosines = [float(unit[place[a]] @ unit[place[b]]) for a, b in pairs]
    want = spearmanr(cosines, scores).statistic
    assert job.similarity(table, rated).mean() == pytest.approx(want, abs=1e-6)

    matrix = np.eye(30, dtype=np.float32)
    matrix[::3] += 0.0
    for k in range(0, 27, 3):  # w2 = w1 - w0 + c, so that a is to b as c is to w2
        matrix[k + 2] = matrix[k + 1] - matrix[k] + matrix[29]
    words = [f"w{chr(97 + k)}" for k in range(30)]
    small = VectorTable(pa.array(words), matrix, "made")
    questions = [f"{words[k]} {words[k + 1]} {words[29]} {words[k + 2]}" for k in range(0, 27, 3)]
    wrong = [f"{words[k]} {words[k + 1]} {words[29]} {words[28]}" for k in range(0, 27, 3)]
    asked_file = tmp_path / "questions.txt"
    asked_file.write_text(": made\n" + "\n".join([*questions, *wrong, questions[0], wrong[0]]))
    hits = job.analogies(small, asked_file)
    assert hits.tolist() == [1.0] * 9 + [0.0] * 9 + [1.0, 0.0]
    asked_file.write_text("a b c\n" * 20)
    with pytest.raises(DataError, match="has 3 words, expected 4"):
        job.analogies(small, asked_file)
    asked_file.write_text("a b c d\n" * 20)
    with pytest.raises(DataError, match="of 20 questions 0 have all their words"):
        job.analogies(small, asked_file)


def test_uses_are_judged_beside_the_test(folder: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    pairs = [tuple(rng.choice(WORDS, 2, replace=False)) for _ in range(40)]
    rated = tmp_path / "rated.csv"
    rated.write_text(
        "word1,word2,score\n" + "\n".join(f"{a},{b},{k}" for k, (a, b) in enumerate(pairs)) + "\n"
    )
    line = ["mitigate", str(folder / "made.txt"), "--method", "hard-projection", "--move", "all",
            "--sets", str(folder / "sets.json"), "--similarity", str(rated),
            "--out", str(tmp_path / "out"), "--json", "-"]  # fmt: skip
    done = CliRunner().invoke(app, line)
    assert done.exit_code == 0, done.output
    stands = json.loads(done.stdout)["stands"]
    assert [s["what"] for s in stands] == [
        "correlation of cosines with rated similarity",
        "share of the ten nearest words that words keep",
    ]

"""Multiple-choice training on a handful of samples, on the CPU."""

from __future__ import annotations

import json

import pytest

from evenhand.errors import EvenhandError

pytest.importorskip("torch", reason="needs the hf extra")


@pytest.fixture
def samples(tmp_path):
    """Questions that can be learnt: the right answer is always the nurse."""
    rows = [
        {"context": "the man worked in the city", "question": "Who was a doctor ?",
         "answerA": "a hunter", "answerB": "the nurse", "answerC": "a letter", "correct": "B"},
        {"context": "the woman got off the flight", "question": "Who was a hunter ?",
         "answerA": "the nurse", "answerB": "a city", "answerC": "the flight", "correct": "A"},
    ] * 8  # fmt: skip
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_two_runs_with_one_seed_agree_and_the_checkpoint_answers_options(tiny, samples, tmp_path):
    from evenhand.models.loading.resolver import resolve
    from evenhand.requests import Option
    from evenhand.runner.ask import Ask
    from evenhand.train.choice import ChoiceTraining, train

    recipe = ChoiceTraining(epochs=4, batch=4, learning_rate=2e-3, seed=3)
    made = [
        train(tiny("masked"), samples, samples, tmp_path / f"out{n}", recipe, device="cpu")
        for n in range(2)
    ]
    assert made[0] == made[1]
    files = [(tmp_path / f"out{n}" / "model.safetensors").read_bytes() for n in range(2)]
    assert files[0] == files[1]
    assert made[0]["dev_accuracy"] == 1.0
    ask = Ask(resolve(str(tmp_path / "out0")))
    prompt = "the man worked in the city Who was a doctor ?"
    logits = ask(Option([prompt] * 2, ["the nurse", "a hunter"]))["logit"]
    assert logits[0] > logits[1]


def test_the_papers_recipe_is_the_published_one():
    from evenhand.train.choice import ChoiceTraining

    paper = ChoiceTraining.published()
    assert (paper.epochs, paper.learning_rate, paper.batch) == (2, 2e-5, 3)


def test_labels_beside_the_file_are_read_and_counted(samples):
    from evenhand.train.choice import read_questions

    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    for row in rows:
        del row["correct"]
    path = samples.with_name("dev.jsonl")
    path.write_text("\n".join(json.dumps(row) for row in rows))
    labels = samples.with_name("dev-labels.lst")
    labels.write_text("\n".join(["2", "1"] * 8))
    assert [q.right for q in read_questions(path)][:3] == [1, 0, 1]
    labels.write_text("1\n2")
    with pytest.raises(EvenhandError, match="2 labels for 16 samples"):
        read_questions(path)


def test_a_folder_in_use_is_not_overwritten(tiny, samples, tmp_path):
    from evenhand.train.choice import ChoiceTraining, train

    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "note.txt").write_text("mine")
    with pytest.raises(EvenhandError, match="not empty"):
        train(
            tiny("masked"),
            samples,
            samples,
            tmp_path / "full",
            ChoiceTraining(epochs=1),
            device="cpu",
        )


def test_batches_hold_every_question_once_and_like_lengths_together():
    import numpy as np

    from evenhand.train.common import like_lengths, shuffled

    lengths = np.random.default_rng(0).integers(10, 60, 1_000)
    orders = [shuffled(1_000, 3, epoch) for epoch in (0, 1)]
    made = like_lengths(orders[0], lengths, 16, 3, 0)
    assert sorted(np.concatenate(made).tolist()) == list(range(1_000))
    padded = sum(len(b) * lengths[b].max() for b in made)
    assert padded < 1.06 * lengths.sum()
    again, other = (like_lengths(o, lengths, 16, 3, e) for e, o in enumerate(orders))
    assert all((a == b).all() for a, b in zip(made, again))
    assert any(len(a) != len(b) or (a != b).any() for a, b in zip(made, other))


def test_bfloat16_is_for_gpus_unless_asked_and_two_such_runs_agree(tiny, samples, tmp_path):
    from evenhand.train.choice import ChoiceTraining, train

    assert ChoiceTraining().autocasts("cuda:0")
    assert not ChoiceTraining().autocasts("cpu")
    assert not ChoiceTraining.published().autocasts("cuda")
    recipe = ChoiceTraining(epochs=1, batch=8, precision="bfloat16")
    cards = [
        train(tiny("masked"), samples, samples, tmp_path / f"half{n}", recipe, device="cpu")
        for n in range(2)
    ]
    assert cards[0] == cards[1]
    assert len(cards[0]["dev_predictions"]) == cards[0]["dev_samples"] == 16

"""Training span models: windows, the official scores, best checkpoint, resuming."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import DataError, EvenhandError, ModelError, RunError
from evenhand.train.squad import Example, read_squad, score, token_f1

QUIET = Example(
    "1", "Who was a nurse?", "Gerald lives in the same city with Jennifer.", ("Jennifer",), 35
)


def squad_file(path: Path, examples: list[Example]) -> Path:
    paragraphs = [
        {"context": e.context, "qas": [{
            "id": e.id, "question": e.question,
            "answers": [{"text": a, "answer_start": e.start} for a in e.answers],
        }]}
        for e in examples
    ]  # fmt: skip
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
    return path


@pytest.mark.shared
def test_the_official_scores_of_published_predictions_are_reproduced(shared: Path) -> None:
    dev = read_squad(shared / "data" / "squad" / "dev-v1.1.json.xz")
    known = {
        "bert_ensemble_google": (86.206, 92.196, 0),
        "logistic_regression": (40.142, 50.982, 13),
    }
    for name, (exact, f1, missing) in known.items():
        file = next((shared / "data" / "squad" / "predictions").glob(f"{name}*"))
        got = score(json.loads(gzip.decompress(file.read_bytes())), dev)
        assert round(got["exact"], 3) == exact
        assert round(got["f1"], 3) == f1
        assert got["missing"] == missing


def test_f1_ignores_case_articles_and_punctuation() -> None:
    assert token_f1("The Cat!", "a cat") == 1
    assert token_f1("dog", "cat") == 0


def test_a_file_of_another_shape_is_refused(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"data": [{"paragraphs": [{"context": "x"}]}]}')
    with pytest.raises(DataError, match="not in SQuAD format"):
        read_squad(wrong)
    with pytest.raises(DataError, match="no such file. Expected a SQuAD file"):
        read_squad(tmp_path / "none.json")
    wrong.write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        read_squad(wrong)


@pytest.fixture
def tokenizer(tiny: Any) -> Any:
    import transformers

    return transformers.AutoTokenizer.from_pretrained(tiny("span"))


def test_windows_cover_the_context_and_mark_the_answer(tokenizer: Any) -> None:
    from evenhand.train.span import make_windows

    long = Example(
        "2", "Who?", "the man was a nurse . " * 12 + "Jennifer was here .", ("Jennifer",), 264
    )
    assert long.context[264:272] == "Jennifer"
    windows = make_windows(tokenizer, [QUIET, long], length=40, stride=10)
    assert (windows.owner == 1).sum() > 1
    for row, (first, last) in enumerate(windows.answer):
        if first >= 0:
            example = [QUIET, long][windows.owner[row]]
            place = windows.offsets[row]
            assert example.context[place[first, 0] : place[last, 1]] == "Jennifer"
    assert set(windows.owner[windows.answer[:, 0] >= 0]) == {0, 1}


def test_a_header_moves_the_answer_with_it(tokenizer: Any) -> None:
    from evenhand.train.span import make_windows

    windows = make_windows(tokenizer, [QUIET], length=60, stride=10, header="( CNN ) --")
    first, last = windows.answer[0]
    text = f"( CNN ) -- {QUIET.context}"
    assert text[windows.offsets[0][first, 0] : windows.offsets[0][last, 1]] == "Jennifer"


def test_a_tiny_model_learns_saves_resumes_and_loads_again(tiny: Any, tmp_path: Path) -> None:
    import transformers

    from evenhand.models.loading.resolver import resolve
    from evenhand.train import span

    names = ("Gerald", "Jennifer")
    examples = []
    for k in range(16):
        one, two = names[:: 1 if k % 2 else -1]
        context = f"{one} lives in the same city with {two}."
        examples.append(
            Example(str(k), "Who was a nurse?", context, ("Jennifer",), context.index("Jennifer"))
        )
    recipe = span.SpanTraining(epochs=6, learning_rate=3e-3, batch=8, length=48, stride=8)
    whole = span.train(tiny("span"), examples, examples, tmp_path / "whole", recipe, device="cpu")
    assert whole["best"]["f1"] > 60
    assert whole["best"]["f1"] == max(row["f1"] for row in whole["history"])
    loaded = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path / "whole")
    assert type(loaded).__name__.endswith("ForQuestionAnswering")
    assert resolve(str(tmp_path / "whole")).kind == "span"
    assert not (tmp_path / "whole" / "resume").exists()
    with pytest.raises(DataError, match="not empty"):
        span.train(tiny("span"), examples, examples, tmp_path / "whole", recipe, device="cpu")


def test_a_killed_training_goes_on_to_the_same_end(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.train import span

    examples = [QUIET] * 6
    recipe = span.SpanTraining(epochs=3, learning_rate=1e-3, batch=2, length=48, stride=8)
    whole = span.train(tiny("span"), examples, examples, tmp_path / "a", recipe, device="cpu")
    real, calls = span._Job._epoch, []

    def stop_early(self: Any, *args: Any) -> float:
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(1)
        return real(self, *args)

    monkeypatch.setattr(span._Job, "_epoch", stop_early)
    with pytest.raises(KeyboardInterrupt):
        span.train(tiny("span"), examples, examples, tmp_path / "b", recipe, device="cpu")
    monkeypatch.undo()
    other = span.SpanTraining(epochs=4, learning_rate=1e-3, batch=2, length=48, stride=8)
    with pytest.raises(RunError, match="other settings"):
        span.train(
            tiny("span"), examples, examples, tmp_path / "b", other, device="cpu", resume=True
        )
    resumed = span.train(
        tiny("span"), examples, examples, tmp_path / "b", recipe, device="cpu", resume=True
    )
    losses = [[row["loss"] for row in r["history"]] for r in (whole, resumed)]
    assert np.allclose(losses[0], losses[1], atol=1e-5)


def test_a_finished_training_is_not_begun_again(tiny: Any, tmp_path: Path) -> None:
    from evenhand.train import span

    recipe = span.SpanTraining(epochs=1, learning_rate=1e-3, batch=2, length=48, stride=8)
    start = (tiny("span"), [QUIET] * 2, [QUIET], tmp_path / "m", recipe)
    first = span.train(*start, device="cpu")
    weights = (tmp_path / "m" / "model.safetensors").stat().st_mtime_ns
    again = span.train(*start, device="cpu", resume=True)
    assert again["history"] == first["history"]
    assert (tmp_path / "m" / "model.safetensors").stat().st_mtime_ns == weights


def test_a_state_that_was_being_exchanged_is_found(tmp_path: Path) -> None:
    from evenhand.train.span import _held

    assert _held(tmp_path) is None
    (tmp_path / "resume.new").mkdir()
    assert _held(tmp_path) is None  # cut off while it was written
    (tmp_path / "resume.new" / "state.json").write_text("{}")
    assert _held(tmp_path) == tmp_path / "resume"
    assert (tmp_path / "resume" / "state.json").is_file()


def test_answers_that_are_not_where_they_should_be_are_left_out_and_counted(
    tiny: Any, tmp_path: Path
) -> None:
    from evenhand.train import span

    recipe = span.SpanTraining(epochs=1, learning_rate=1e-3, batch=2, length=48, stride=8)
    wrong = [replace(QUIET, id="w", start=3), replace(QUIET, answers=("Peter",))]
    said: list[str] = []
    result = span.train(
        tiny("span"),
        [QUIET, *wrong],
        [QUIET],
        tmp_path / "a",
        recipe,
        device="cpu",
        say=said.append,
    )
    assert result["misplaced"] == 2
    assert "2 questions left out" in said[0]
    assert "'w'" in said[0]
    with pytest.raises(DataError, match="'Jennifer' is not at character 3 of its context"):
        span.train(tiny("span"), wrong, [QUIET], tmp_path / "b", recipe, device="cpu")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"learning_rate": -1.0}, r"learning_rate: .* greater than 0; got -1\.0"),
        ({"length": 100_000}, r"--length 100000 is more than the \d+ tokens"),
        ({"length": 48, "stride": 48}, r"question '1' has \d+ tokens, which leaves"),
    ],
)
def test_settings_that_cannot_work_are_named(
    tiny: Any, tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    from evenhand.train import span

    with pytest.raises(EvenhandError, match=said):
        span.train(
            tiny("span"),
            [QUIET],
            [QUIET],
            tmp_path / "m",
            span.SpanTraining(**change),
            device="cpu",
        )


def test_a_model_that_is_none_is_named(tmp_path: Path) -> None:
    from evenhand.train import span

    with pytest.raises(ModelError, match="nothing-here' is not an encoder that can be loaded"):
        span.train(
            str(tmp_path / "nothing-here"), [QUIET], [QUIET], tmp_path / "m", span.SpanTraining(),
            device="cpu",
        )  # fmt: skip

"""`ask` answers in row order, asks each distinct row once and never repeats finished work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import ModelError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.models.protocol import Model
from evenhand.requests import Continuation, FillMask, LazyRequests, Option
from evenhand.runner.ask import Ask


def letters(prompt: str, option: str) -> float:
    return float(len(prompt) * 10 + len(option))


def options(n: int = 200) -> Option:
    return Option([f"p{'x' * (i % 7)}" for i in range(n)], ["o" * (i % 11) for i in range(n)])


class Listener:
    def __init__(self) -> None:
        self.total = self.done = self.finished = 0

    def start(self, label: str, total: int, done: int) -> None:
        self.total += total

    def advance(self, inputs: int) -> None:
        self.done += inputs

    def finish(self) -> None:
        self.finished += 1


def test_scores_come_back_in_row_order() -> None:
    requests = options()
    scores = Ask(ScriptedModel({"option": letters}), shard_rows=16)(requests)
    assert scores["logit"].tolist() == [letters(*row) for row in requests.rows()]


def test_each_distinct_row_is_asked_once() -> None:
    model = ScriptedModel({"option": letters})
    Ask(model)(options(500))
    assert model.rows_scored == len(set(options(500).rows()))


def test_finished_shards_are_reused_and_counted(tmp_path: Path) -> None:
    first = ScriptedModel({"option": letters})
    one = Ask(first, tmp_path, shard_rows=16)(options())
    again = ScriptedModel({"option": letters})
    ask = Ask(again, tmp_path, attempt=2, shard_rows=16)
    two = ask(options())
    assert again.rows_scored == 0
    assert ask.counts.shards_reused == ask.counts.shards > 1
    assert np.array_equal(one["logit"], two["logit"])


def test_another_model_never_gets_the_scores_of_the_first(tmp_path: Path) -> None:
    Ask(ScriptedModel({"option": letters}), tmp_path)(options())
    other = ScriptedModel({"option": lambda p, o: -1.0}, version="2")
    assert set(Ask(other, tmp_path)(options())["logit"]) == {-1.0}


def test_a_damaged_shard_is_scored_again(tmp_path: Path) -> None:
    Ask(ScriptedModel({"option": letters}), tmp_path, shard_rows=16)(options())
    victim = sorted((tmp_path / "scores").iterdir())[0]
    victim.write_bytes(victim.read_bytes()[:-3])
    model = ScriptedModel({"option": letters})
    ask = Ask(model, tmp_path, shard_rows=16)
    scores = ask(options())
    assert ask.counts.shards_scored == 1
    assert scores["logit"].tolist() == [letters(*row) for row in options().rows()]


def test_lists_of_strings_come_back_in_row_order() -> None:
    model = ScriptedModel({"fill-mask": lambda text: {"fills": [text, "x"], "logprobs": [0.0]}})
    texts = [f"t{i % 5} <mask>" for i in range(20)]
    assert [row[0] for row in Ask(model, shard_rows=3)(FillMask(texts))["fills"]] == texts


def test_lazy_and_eager_lists_give_equal_scores() -> None:
    requests = options()
    lazy = LazyRequests(Option, len(requests), lambda a, b: requests.take(range(a, b)), group=4)
    ask = Ask(ScriptedModel({"option": letters}), shard_rows=32)
    assert np.array_equal(ask(lazy)["logit"], ask(requests)["logit"])


def test_progress_counts_every_distinct_input() -> None:
    listener = Listener()
    Ask(ScriptedModel({"option": letters}), progress=listener, shard_rows=16)(options())
    assert listener.done == listener.total == len(set(options().rows()))
    assert listener.finished == 1


def test_a_question_the_model_cannot_answer_names_what_it_can() -> None:
    ask = Ask(ScriptedModel({"option": letters}, name="chooser"))
    with pytest.raises(ModelError, match="'chooser' .* cannot answer 'continuation'; it answers"):
        ask(Continuation(["a"], ["b"]))


def test_nan_scores_stop_the_run_and_name_the_row() -> None:
    model = ScriptedModel({"option": lambda p, o: float("nan") if o == "bad" else 1.0})
    with pytest.raises(ModelError, match=r"NaN for 'logit' in 1 of 3 .*'option': 'bad'"):
        Ask(model)(Option(["p"] * 3, ["a", "bad", "c"]))


def test_an_error_of_the_model_loses_no_finished_shard(tmp_path: Path) -> None:
    calls: list[str] = []

    def sometimes(prompt: str, option: str) -> Any:
        calls.append(option)
        if len(calls) > 100:
            raise KeyboardInterrupt
        return 1.0

    requests = Option([f"p{i}" for i in range(200)], ["o"] * 200)
    with pytest.raises(KeyboardInterrupt):
        Ask(ScriptedModel({"option": sometimes}), tmp_path, shard_rows=10)(requests)
    rest = ScriptedModel({"option": lambda p, o: 1.0})
    Ask(rest, tmp_path, shard_rows=10)(requests)
    assert rest.rows_scored == 100


class Overlapping(ScriptedModel):
    """Answers like its base, and writes down when shards are begun and finished."""

    overlaps = True
    device = "cuda"

    def __init__(self) -> None:
        super().__init__({"option": letters})
        self.log: list[str] = []

    def begin(self, requests: Any, prepared: Any) -> Any:
        self.log.append("begin")
        columns = self.answer(requests, prepared)

        def finish() -> Any:
            self.log.append("finish")
            return columns

        return finish


def test_on_a_device_the_next_shard_is_queued_before_the_last_is_waited_for() -> None:
    model, plain = Overlapping(), ScriptedModel({"option": letters})
    requests = options(90)
    turn = sys.getswitchinterval()
    scores = Ask(model, shard_rows=20)(requests)["logit"]
    assert sys.getswitchinterval() == turn
    assert scores.tolist() == Ask(plain)(requests)["logit"].tolist()
    shards = model.log.count("begin")
    assert shards == model.log.count("finish") > 2
    assert model.log == ["begin", *["begin", "finish"] * (shards - 1), "finish"]


def test_a_wrapper_that_passes_attributes_on_is_asked_by_its_own_answer() -> None:
    class Wrapper(Model):
        name, kind, answers, fingerprint = "wrapped", "scripted", frozenset({"option"}), "w"

        def __init__(self, base: Any) -> None:
            self.base = base

        def __getattr__(self, name: str) -> Any:
            return getattr(self.base, name)

        def answer(self, requests: Any, prepared: Any) -> Any:
            return {k: v + 1000 for k, v in self.base.answer(requests, prepared).items()}

    wrapped = Wrapper(Overlapping())
    scores = Ask(wrapped)(options(30))["logit"]
    assert scores.min() > 1000

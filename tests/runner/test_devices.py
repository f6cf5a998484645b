"""Several devices of one machine: whoever scores a shard, the run is the same."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evenhand.audit.auditing import audit
from evenhand.audit.suites import parse_suite
from evenhand.errors import ModelError, RunError, SpecError
from evenhand.models.adapters.scripted import ScriptedModel
from evenhand.models.loading.device import fetched
from evenhand.models.loading.resolver import resolve
from evenhand.models.protocol import LoadOptions
from evenhand.requests import Option
from evenhand.runner.ask import Ask
from evenhand.runner.cluster import RayExecutor
from evenhand.runner.devices import DevicesExecutor, parse_devices

SUITE = parse_suite(
    {"name": "s", "probe": [{"name": "underspecified", "pairs": 24, "templates": 2,
     "attributes": ["nurse", "doctor", "hunter", "pilot"], "resamples": 50}]}, "test", "s",
)  # fmt: skip


def many(n: int = 500) -> Option:
    return Option([f"the man said {i}" for i in range(n)], ["she", "he"] * (n // 2))


@pytest.mark.parametrize("kind", ["causal", "span"])
def test_two_devices_give_the_bytes_of_one(tiny: Any, tmp_path: Path, kind: str) -> None:
    one = audit(tiny(kind), SUITE, out=tmp_path / "one")
    executor = DevicesExecutor(("cpu", "cpu"))
    two = audit(tiny(kind), SUITE, out=tmp_path / "two", executor=executor)
    copies = next(iter(executor._copies.values()))
    assert len(copies) == 2
    assert copies[0] is not copies[1]
    assert copies[0].fingerprint == copies[1].fingerprint
    same = [(r.folder / "findings.json").read_bytes() for r in (one, two)]
    assert same[0] == same[1]
    for part in ("scores", "requests"):
        names = [sorted(p.name for p in (r.folder / part).iterdir()) for r in (one, two)]
        assert names[0] == names[1]
        assert len(names[0]) > 1
    counts = [r.facts["probes"]["underspecified"]["counts"] for r in (one, two)]
    assert counts[0] == counts[1]


def test_every_copy_scores_its_turn_and_a_second_run_reuses_all(tiny: Any, tmp_path: Path) -> None:
    model = resolve(tiny("choice"))
    executor = DevicesExecutor(("cpu", "cpu", "cpu"))
    ask = Ask(model, tmp_path, shard_rows=50, executor=executor)
    asked: list[int] = []
    plain = Ask(resolve(tiny("choice")), shard_rows=50)(many())["logit"]
    for number, copy in enumerate(executor._models(_job(ask))):
        _counted(copy, number, asked)
    assert np.array_equal(ask(many())["logit"], plain)
    assert sorted(asked) == [0] * 4 + [1] * 3 + [2] * 3
    again = Ask(model, tmp_path, shard_rows=50, executor=executor)
    assert np.array_equal(again(many())["logit"], plain)
    assert (again.counts.shards_scored, again.counts.shards_reused) == (0, 10)
    assert len(asked) == 10


def _job(ask: Ask) -> Any:
    from evenhand.runner.job import Job

    return Job(ask.model, ask._plan(many()))


def _counted(model: Any, number: int, asked: list[int]) -> None:
    begin = model.begin

    def counted(requests: Any, prepared: Any) -> Any:
        asked.append(number)
        return begin(requests, prepared)

    model.begin = counted


def test_a_device_that_fails_stops_the_run_and_finished_shards_stay(
    tiny: Any, tmp_path: Path
) -> None:
    model = resolve(tiny("choice"))
    executor = DevicesExecutor(("cpu", "cpu"))
    ask = Ask(model, tmp_path, shard_rows=50, executor=executor)
    second: Any = executor._models(_job(ask))[1]

    def lost(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("CUDA error: unspecified launch failure")

    second.model.forward = lost
    with pytest.raises(ModelError, match="the device stopped answering"):
        ask(many())
    rest = Ask(resolve(tiny("choice")), tmp_path, shard_rows=50)
    rest(many())
    assert rest.counts.shards_reused >= 1
    assert rest.counts.shards_reused + rest.counts.shards_scored == 10


def test_a_model_that_cannot_be_copied_is_asked_alone() -> None:
    model = ScriptedModel({"option": lambda p, o: float(len(p + o))})
    scores = Ask(model, executor=DevicesExecutor(("cpu", "cpu")))(many(40))["logit"]
    assert np.array_equal(scores, [len(p + o) for p, o in many(40).rows()])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'' is not a device"),
        ("gpu7", "'gpu7' is not a device"),
        ("cpu,cuda:0", "one kind only"),
    ],
)
def test_devices_that_are_none_are_named(text: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        parse_devices(text)


def test_all_devices_are_the_gpus_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert parse_devices("all") == ("cuda:0", "cuda:1", "cuda:2")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    with pytest.raises(SpecError, match="no GPU here"):
        parse_devices("all")


def test_answers_are_waited_for_on_the_device_that_gives_them() -> None:
    waited: list[str] = []

    class Event:
        def record(self, stream: str) -> None:
            waited.append(stream)

        def synchronize(self) -> None:
            waited.append("done")

    import torch

    class Tensor:
        is_cuda, shape, dtype, device = True, (2,), torch.float32, "cuda:1"

    host = SimpleNamespace(copy_=lambda t, non_blocking: None, double=lambda: torch.zeros(2))
    fake = SimpleNamespace(
        empty=lambda shape, dtype, pin_memory: host,
        cuda=SimpleNamespace(Event=Event, current_stream=lambda device: f"stream of {device}"),
    )
    assert fetched(fake, Tensor())().tolist() == [0.0, 0.0]
    assert waited == ["stream of cuda:1", "done"]


@pytest.mark.parametrize("device", ["cuda", "cuda:9", "gpu", ""])
def test_a_device_that_is_not_there_is_one_paragraph(tiny: Any, device: str) -> None:
    import torch

    if torch.cuda.is_available() and device == "cuda":
        pytest.skip("there is a GPU here")
    with pytest.raises(ModelError, match=f"--device '{device}': not usable here") as seen:
        resolve(tiny("choice"), options=LoadOptions(device=device))
    assert len(str(seen.value)) < 500


def test_an_unknown_precision_is_named(tiny: Any) -> None:
    with pytest.raises(SpecError, match="unknown precision 'fp16'"):
        resolve(tiny("choice"), options=LoadOptions(dtype="fp16"))


@pytest.mark.parametrize(
    ("nodes", "gpus", "workers"),
    [
        ([{"CPU": 1.0}] * 3, 0.0, 3),  # a head and two more machines of one CPU: all are used
        ([{"CPU": 8.0}], 0.0, 4),
        ([{}, {"CPU": 5.0}], 0.0, 2),
        ([{"CPU": 8.0, "GPU": 4.0}, {"CPU": 8.0}], 1.0, 4),
        ([], 0.0, 1),
    ],
)
def test_every_node_gets_workers(nodes: Any, gpus: float, workers: int) -> None:
    ray = SimpleNamespace(nodes=lambda: [{"Alive": True, "Resources": n} for n in nodes])
    assert RayExecutor()._workers(ray, gpus) == workers


def test_a_cluster_without_room_is_said_while_waiting() -> None:
    ray = SimpleNamespace(nodes=lambda: [{"Alive": True, "Resources": {"CPU": 4.0}}])
    model = ScriptedModel({"option": len})
    model.device = "cuda"
    with pytest.warns(UserWarning, match=r"1 GPUs wanted; available: 4 CPUs 0 GPUs"):
        RayExecutor()._room(ray, model)
    model.device = "cpu"
    RayExecutor()._room(ray, model)


def test_a_run_on_a_processor_is_resumed_there(
    tiny: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evenhand.audit.auditing import Audit, resume

    audit(tiny("span"), SUITE, out=tmp_path / "run")
    asked: list[Any] = []
    monkeypatch.setattr(Audit, "run", lambda self: asked.append(self.options.device))
    resume(tmp_path / "run")
    assert asked == ["cpu"]


def test_workers_that_keep_dying_end_the_run(tmp_path: Path) -> None:
    class ActorError(Exception):
        actor_init_failed = False

    def died(task: Any) -> Any:
        raise ActorError("Actor creation cancelled")

    actor = SimpleNamespace(score=SimpleNamespace(remote=lambda *rows: object()))
    made = SimpleNamespace(options=lambda **named: SimpleNamespace(remote=lambda *rows: actor))
    errors = SimpleNamespace(RayActorError=ActorError, ActorDiedError=ActorError)
    ray: Any = SimpleNamespace(
        nodes=lambda: [{"Alive": True, "Resources": {"CPU": 4.0}}], exceptions=errors, get=died,
        wait=lambda tasks, **named: (tasks[:1], tasks[1:]), put=lambda model: model,
        remote=lambda kind: made,
    )  # fmt: skip
    executor = RayExecutor()
    executor.connect = lambda: ray  # type: ignore[method-assign]
    model = ScriptedModel({"option": lambda p, o: float(len(p + o))})
    with pytest.raises(RunError, match=r"a Ray worker cannot start \(Actor creation cancelled\)"):
        Ask(model, tmp_path, executor=executor)(many(40))

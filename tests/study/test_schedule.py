"""Stages run in order, a few at a time; a lost one stops only what needs it."""

from __future__ import annotations

from evenhand.study.schedule import Schedule, Task


class Fake:
    """A lane that works for some looks and then says what it was told to say."""

    def __init__(self, says: list[str], busy: set[str], task: Task) -> None:
        self.says, self.busy, self.task, self.left = says, busy, task, 2
        busy.add(task.key)

    def poll(self) -> str | None:
        self.left -= 1
        if self.left:
            return None
        self.busy.discard(self.task.key)
        return self.says.pop(0) if self.says else ""

    def stop(self) -> None:
        self.busy.discard(self.task.key)


class Shop:
    """Starts fake lanes and remembers the order and the largest number at a time."""

    def __init__(self, **says: list[str]) -> None:
        self.says = says
        self.busy: set[str] = set()
        self.order: list[str] = []
        self.most = 0

    def __call__(self, task: Task) -> Fake:
        self.order.append(task.key)
        lane = Fake(self.says.get(task.cell, []), self.busy, task)
        self.most = max(self.most, len(self.busy))
        return lane


TASKS = [
    Task("a", "vectors"),
    Task("b", "vectors"),
    Task("a", "metric", ("a/vectors",)),
    Task("b", "metric", ("b/vectors",)),
]


def test_a_stage_starts_only_after_what_it_needs() -> None:
    shop = Shop()
    done = [t.key for t in Schedule(shop, 2).run(TASKS, lambda t: False)]
    assert sorted(done) == sorted(t.key for t in TASKS)
    assert shop.order.index("a/vectors") < shop.order.index("a/metric")
    assert shop.order.index("b/vectors") < shop.order.index("b/metric")


def test_no_more_than_the_given_number_run_at_a_time() -> None:
    shop = Shop()
    list(Schedule(shop, 1).run(TASKS, lambda t: False))
    assert shop.most == 1
    shop = Shop()
    list(Schedule(shop, 2).run(TASKS, lambda t: False))
    assert shop.most == 2


def test_finished_stages_are_not_repeated() -> None:
    shop = Shop()
    done = [t.key for t in Schedule(shop, 2).run(TASKS, lambda t: t.stage == "vectors")]
    assert sorted(done) == ["a/metric", "b/metric"]
    assert sorted(shop.order) == ["a/metric", "b/metric"]


def test_a_killed_stage_is_tried_once_more() -> None:
    shop = Shop(a=["killed by signal 9"])
    schedule = Schedule(shop, 1)
    list(schedule.run(TASKS, lambda t: False))
    assert shop.order.count("a/vectors") == 2
    assert not schedule.failures


def test_a_failed_stage_stops_what_needs_it_and_nothing_else() -> None:
    shop = Shop(a=["exit 2: no line of the corpus matches"])
    schedule = Schedule(shop, 1)
    done = [t.key for t in schedule.run(TASKS, lambda t: False)]
    assert done == ["b/vectors", "b/metric"]
    told = {f.task.key: f.message for f in schedule.failures}
    assert told["a/vectors"] == "exit 2: no line of the corpus matches"
    assert told["a/metric"] == "needs a/vectors, which failed"

"""Shards are deterministic, hold each distinct row once and answer every row."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenhand.requests import Continuation, LazyRequests, Option
from evenhand.runner.plan import EagerPlan, LazyPlan, make_plan, shards

words = st.text("abc", max_size=3)


@given(st.lists(st.tuples(words, words), min_size=1, max_size=60), st.integers(1, 20))
def test_every_row_is_answered_by_an_equal_row(rows: list[tuple[str, str]], size: int) -> None:
    requests = Option([p for p, _ in rows], [o for _, o in rows])
    for plan in (
        EagerPlan(requests, size),
        LazyPlan(LazyRequests(Option, len(rows), lambda a, b: requests.take(range(a, b))), size),
    ):
        seen = np.zeros(len(rows), dtype=int)
        for shard in shards(plan):
            asked = shard.requests.rows()
            for row, source in zip(shard.rows, shard.source):
                assert asked[source] == rows[row]
                seen[row] += 1
        assert (seen == 1).all()


@given(st.lists(st.tuples(words, words), min_size=1, max_size=60), st.integers(1, 20))
def test_distinct_rows_are_asked_once(rows: list[tuple[str, str]], size: int) -> None:
    requests = Continuation([p for p, _ in rows], [c for _, c in rows])
    asked = [row for shard in shards(EagerPlan(requests, size)) for row in shard.requests.rows()]
    assert sorted(asked) == sorted(set(rows))


def test_rows_of_one_forward_pass_stay_in_one_shard() -> None:
    requests = Option([f"prompt {i // 4}" for i in range(40)], [str(i) for i in range(40)])
    home: dict[str, int] = {}
    for number, shard in enumerate(shards(EagerPlan(requests, 6))):
        for prompt, _ in shard.requests.rows():
            assert home.setdefault(prompt, number) == number


def test_the_order_of_the_request_list_does_not_change_the_shards() -> None:
    rows = [(f"p{i % 5}", f"o{i}") for i in range(50)]
    one = EagerPlan(Option(*map(list, zip(*rows))), 8)
    other = EagerPlan(Option(*map(list, zip(*rows[::-1]))), 8)
    assert [s.requests.digest() for s in shards(one)] == [
        s.requests.digest() for s in shards(other)
    ]


def test_a_lazy_plan_makes_only_the_shard_asked_for() -> None:
    made = []

    def make(start: int, stop: int) -> Option:
        made.append((start, stop))
        return Option(["p"] * (stop - start), [str(i) for i in range(start, stop)])

    plan = make_plan(LazyRequests(Option, 1_000_000, make, group=8), 8_192)
    plan.shard(3)
    assert made == [(3 * 8_192, 4 * 8_192)]
    assert plan.count == 123


def test_no_rows_give_no_shards() -> None:
    assert EagerPlan(Option([], []), 4).count == 0

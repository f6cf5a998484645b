"""A query: lists of target and attribute words with names."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from evenhand.errors import SpecError
from evenhand.words.lexicons import WordSets


class Query:
    """Target sets, attribute sets and their names, as in WEFE.

    >>> query = Query([["he"], ["she"]], [["math"]], ["Male", "Female"], ["Math"])
    >>> query.template, query.query_name
    ((2, 1), 'Male and Female wrt Math')
    """

    def __init__(
        self,
        target_sets: Sequence[Sequence[str]],
        attribute_sets: Sequence[Sequence[str]],
        target_sets_names: Sequence[str] | None = None,
        attribute_sets_names: Sequence[str] | None = None,
    ) -> None:
        self.target_sets = _lists(target_sets, "target")
        self.attribute_sets = _lists(attribute_sets, "attribute")
        if not self.target_sets:
            raise SpecError("Query: no target set is given. Accepted: one list of words or more.")
        self.template = (len(self.target_sets), len(self.attribute_sets))
        self.target_sets_names = _names(target_sets_names, self.template[0], "Target")
        self.attribute_sets_names = _names(attribute_sets_names, self.template[1], "Attribute")
        self.query_name = _joined(self.target_sets_names)
        if self.attribute_sets_names:
            self.query_name += f" wrt {_joined(self.attribute_sets_names)}"

    @classmethod
    def of(cls, test: WordSets) -> Query:
        """An association test of evenhand as a query.

        >>> from evenhand.words.lexicons import weat
        >>> Query.of(weat("weat7")).query_name
        'math and arts wrt male terms and female terms'
        """
        return cls(
            [list(test.x), list(test.y)],
            [list(test.a), list(test.b)],
            [test.x_label, test.y_label],
            [test.a_label, test.b_label],
        )

    def get_subqueries(self, new_template: tuple[int | str, int | str]) -> list[Query]:
        """Every query of a smaller template that can be made from the sets of this one."""
        sizes = [
            own if wanted == "n" else int(wanted)
            for own, wanted in zip(self.template, new_template, strict=True)
        ]
        if any(want > own for own, want in zip(self.template, sizes, strict=True)):
            raise SpecError(
                f"Query {self.query_name!r}: template {self.template} has too few sets for "
                f"{tuple(new_template)}."
            )
        targets = list(combinations(range(self.template[0]), sizes[0]))
        attributes = list(combinations(range(self.template[1]), sizes[1]))
        return [
            Query(
                [self.target_sets[k] for k in some],
                [self.attribute_sets[k] for k in others],
                [self.target_sets_names[k] for k in some],
                [self.attribute_sets_names[k] for k in others],
            )
            for some in targets
            for others in attributes
        ]

    def dict(self) -> dict[str, Any]:
        """The query as plain lists."""
        return {
            "target_sets": self.target_sets,
            "attribute_sets": self.attribute_sets,
            "target_sets_names": self.target_sets_names,
            "attribute_sets_names": self.attribute_sets_names,
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Query) and self.dict() == other.dict()

    def __hash__(self) -> int:
        return hash(repr(self.dict()))

    def __repr__(self) -> str:
        return (
            f"<Query: {self.query_name}\n- Target sets: {self.target_sets}\n"
            f"- Attribute sets:{self.attribute_sets}>"
        )


def _lists(sets: Any, kind: str) -> list[list[str]]:
    if isinstance(sets, str) or not hasattr(sets, "__len__"):
        raise SpecError(f"Query: {kind}_sets is {type(sets).__name__}. Accepted: lists of words.")
    out = []
    for place, words in enumerate(sets):
        if isinstance(words, str) or not hasattr(words, "__len__"):
            raise SpecError(
                f"Query: {kind} set {place} is {type(words).__name__} {words!r}. "
                "Accepted: a list of words."
            )
        for word in words:
            if not isinstance(word, str):
                raise SpecError(f"Query: {kind} set {place}: {word!r} is not a word.")
        if not len(words):
            raise SpecError(f"Query: {kind} set {place} is empty. Accepted: one word or more.")
        out.append([str(word) for word in words])
    return out


def _names(names: Sequence[str] | None, count: int, kind: str) -> list[str]:
    if names is None:
        return [f"{kind} set {k}" for k in range(count)]
    if len(names) != count:
        raise SpecError(
            f"Query: {len(names)} names for {count} {kind.lower()} sets. Accepted: one name a set."
        )
    return [str(name) for name in names]


def _joined(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]

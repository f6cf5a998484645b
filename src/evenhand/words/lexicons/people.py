"""Social groups: the terms that stand for each, and where it lies on each axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import Lexicon, load

NAME_LEXICONS = ("sodapop_names", "unqover_names")
LIST_GROUPS = "List them with: evenhand ls groups"


@dataclass(frozen=True, slots=True)
class Group:
    """A social group, the terms that stand for it, and its value on each axis.

    >>> Group("mine", ("Ada", "Grace"), {"gender": "female"}, "my own list").terms
    ('Ada', 'Grace')
    """

    name: str
    terms: tuple[str, ...]
    axis: Mapping[str, str] = field(hash=False)
    source: str = field(repr=False)


def groups(
    names: Sequence[str] | None = None,
    *,
    axis: Mapping[str, str] | None = None,
    extra: Sequence[str | Path] = (),
) -> dict[str, Group]:
    """Return groups by name: all of them, those asked for, or those on a place of the axes.

    A name is a group ("asian_female") or an axis value ("female", "hispanic"), which stands for
    the union of all groups with that value. `axis` keeps groups that have all the values given.
    `extra` adds lexicon files of kind "names".

    >>> len(groups(["hispanic_male"])["hispanic_male"].terms)
    30
    >>> sorted(groups(axis={"race": "asian"}))
    ['asian_female', 'asian_male']
    >>> groups(["asian"])["asian"].axis["race"], len(groups(["asian"])["asian"].terms)
    ('asian', 60)
    >>> groups(["asain_female"])
    Traceback (most recent call last):
    evenhand.errors.SpecError: unknown group 'asain_female'. \
Did you mean 'asian_female' or 'asian_male'? List them with: evenhand ls groups
    """
    known = _all_groups(extra)
    chosen = known if names is None else {name: _resolve(name, known) for name in names}
    wanted = dict(axis or {})
    _check_axis(wanted, known.values())
    return {
        name: group
        for name, group in chosen.items()
        if all(group.axis.get(key) == value for key, value in wanted.items())
    }


def names_of(
    names: Sequence[str], most: int | None, lexicon: str | None = None
) -> list[tuple[str, Group]]:
    """Terms of two groups or more, the first `most` of each, each with its group.

    >>> [(term, group.name) for term, group in names_of(["asian_female", "female"], 1)]
    [('Tenzin', 'asian_female'), ('Amanda', 'female')]
    """
    found = groups(names, extra=(lexicon,) if lexicon else ())
    if len(found) < 2:
        raise SpecError(f"groups: {tuple(names)!r} is one group; give two or more.")
    return [(term, group) for group in found.values() for term in group.terms[:most]]


def union(name: str, members: Iterable[Group]) -> Group:
    """Join groups into one: terms once each, in order, and the axis values all members share.

    >>> women = union("women", groups(axis={"gender": "female"}).values())
    >>> dict(women.axis), "Mary" in women.terms, "Latoya" in women.terms
    ({'gender': 'female'}, True, True)
    """
    parts = list(members)
    if not parts:
        raise SpecError(f"group {name!r} would be a union of nothing. {LIST_GROUPS}")
    terms = dict.fromkeys(term for part in parts for term in part.terms)
    shared = set.intersection(*(set(part.axis.items()) for part in parts))
    axis = {key: value for key, value in parts[0].axis.items() if (key, value) in shared}
    sources = dict.fromkeys(part.source for part in parts)
    return Group(name, tuple(terms), MappingProxyType(axis), " | ".join(sources))


def _all_groups(extra: Sequence[str | Path]) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for name in (*NAME_LEXICONS, *extra):
        lexicon = load(name)
        for group in _groups_of(lexicon):
            if group.name in found:
                raise SpecError(f"{lexicon.path}: group {group.name!r} already exists.")
            found[group.name] = group
    return found


def _groups_of(lexicon: Lexicon) -> Iterator[Group]:
    for name in lexicon.table("groups"):
        terms = lexicon.words("groups", name, "terms")
        axis = lexicon.table("groups", name, "axis")
        if not terms:
            raise SpecError(f"{lexicon.path}: group {name!r} has no terms.")
        if not all(isinstance(value, str) for value in axis.values()):
            raise SpecError(f"{lexicon.path}: the axis of group {name!r} takes strings only.")
        yield Group(name, terms, axis, lexicon.source)


def _resolve(name: str, known: Mapping[str, Group]) -> Group:
    if name in known:
        return known[name]
    members = [group for group in known.values() if name in group.axis.values()]
    if not members:
        values = {value for group in known.values() for value in group.axis.values()}
        raise SpecError(unknown("group", name, {*known, *values}, hint=LIST_GROUPS))
    return union(name, members)


def _check_axis(wanted: Mapping[str, str], known: Iterable[Group]) -> None:
    places = {(key, value) for group in known for key, value in group.axis.items()}
    for key, value in wanted.items():
        if key not in {axis for axis, _ in places}:
            raise SpecError(unknown("axis", key, {axis for axis, _ in places}, hint=LIST_GROUPS))
        if (key, value) not in places:
            values = {at for axis, at in places if axis == key}
            raise SpecError(unknown(f"value of axis {key!r}", value, values, hint=LIST_GROUPS))

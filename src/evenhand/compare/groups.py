"""The reference group: with whom the other groups of a factor are compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

PEOPLE = ("white", "male", "man", "men", "60")
"""Reference groups of people, as DiscrimEval has them."""
SCORED = (
    *("reference", "baseline", "control", "original", "majority"),
    *("white", "european_american", "male", "man", "men"),
)
"""Reference groups of items that were scored once for each group."""


def reference_group(
    groups: Sequence[str], wanted: Iterable[str] = (), usual: Iterable[str] = ()
) -> str:
    """Return the group that the others are compared with.

    Args:
        groups: all groups, one or more; the first is the reference if no name fits.
        wanted: names that somebody asked for, the most wanted first; others are ignored.
        usual: names that are a reference by custom, in lower case, with "_" for blanks.

    >>> reference_group(["Black", "White"], usual=PEOPLE), reference_group(["b", "a"], ["a"])
    ('White', 'a')
    >>> reference_group(["b", "a"], ["c"], PEOPLE)
    'b'
    """
    by_name = {group.lower().replace(" ", "_"): group for group in reversed(groups)}
    named = [group for group in wanted if group in groups]
    customary = [by_name[name] for name in usual if name in by_name]
    return [*named, *customary, groups[0]][0]

"""What a request asks for, read defensively."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import Request

from evenhand.runs.finding import Finding
from evenhand.runs.harms import gravity
from evenhand.runs.wording import defined
from evenhand.viewer.items import ANY, ItemTable

LONGEST = 500
SORTS: dict[str, Callable[[Finding], Any]] = {
    "gravest": lambda f: (*gravity(f), f.id),
    "about": lambda f: (f.attribute, f.groups, f.id),
    "probe": lambda f: (f.probe, *gravity(f), f.id),
    "value": lambda f: (-abs(f.value - f.ideal) if defined(f.value) else 1.0, f.id),
    "q": lambda f: (f.q if defined(f.q) else 2.0, f.id),
}
"""Orders of a run's findings; the first is the usual one."""
MOST_PAGES = 1_000_000


def chosen(request: Request, names: Sequence[str]) -> dict[str, str]:
    """The named query values, cut to a sensible length; "" when absent."""
    return {name: request.query_params.get(name, "")[:LONGEST] for name in names}


def number_of(request: Request) -> int:
    """The page number; 1 when it is absent or nonsense."""
    text = request.query_params.get("page", "1")
    if not text.isascii() or not text.isdigit() or len(text) > 7:
        return 1
    return max(1, min(int(text), MOST_PAGES))


def words_in(search: str, *texts: str) -> bool:
    """Whether every word of the search is somewhere in the texts, without regard to case."""
    whole = "\n".join(texts).lower()
    return all(word in whole for word in search.lower().split())


def item_filters(finding: Finding, table: ItemTable) -> dict[str, str]:
    """Filters that lead from a finding to the items behind it.

    Attributes are looked for in `attribute` or `axis`, groups in `group_a` and `group_b`, and a
    single term anywhere.
    """
    columns = set(table.text_columns)
    groups = [str(g) for g in finding.groups]
    filters: dict[str, str] = {}
    about = finding.attribute
    for column in ("attribute", "axis"):
        if column in columns and about and about != "whole model":
            filters[column] = about
    if {"group_a", "group_b"} <= columns and len(groups) == 2:
        filters |= {"group_a": groups[0], "group_b": groups[1]}
    elif len(groups) == 2 and groups[1] == "the others":
        filters[ANY] = groups[0]
        if about == groups[0] or finding.id.count("/") < 3:
            filters.pop("attribute", None)
    return filters

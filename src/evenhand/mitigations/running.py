"""From a model and a method to a mitigated model: in Python, and with all that the command does."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.mitigations.base import Fitted, Mitigation, Note, quiet
from evenhand.mitigations.choosing import adopted, kind_if_known, settings_for
from evenhand.mitigations.saved import check_free, start_over, unfinished
from evenhand.models.loading.resolver import resolve
from evenhand.models.objects import as_model, as_typed, no_extras
from evenhand.models.protocol import LoadOptions
from evenhand.runs.record import Run
from evenhand.strict import plain
from evenhand.writing import require_place, write_text

if TYPE_CHECKING:
    from evenhand.runner.progress import Progress


def mitigate(
    model: Any,
    method: str | Mitigation | type[Mitigation] | None = None,
    *,
    tokenizer: Any = None,
    name: str = "",
    axis: str = "gender",
    texts: str | Path | Sequence[str] | None = None,
    options: LoadOptions | None = None,
    note: Note = quiet,
    **settings: Any,
) -> Fitted:
    """Fit a mitigation of a model.

        calmer = eh.mitigate("smollm2-135m", "leace", axis="gender")
        calmer.model                    # answers as any model does
        calmer.save("calmer")           # evenhand audit calmer
        calmer.judge(out="judged")      # a run folder: what it buys, what it costs

    Args:
        model: a model, what to type to get it, or an object as `audit` takes it.
        tokenizer, name: of a transformers model object, and what an object is called.
        method: by default the usual one for the kind of model; or a mitigation of your own, as
            an object with its settings, or a class that takes those given here.
        texts: plain text, where the method takes some: a file, or passages to fit or train on.
        settings: those of the method's family, e.g. `rounds=2`.

    Raises:
        SpecError: no such method or setting.
        ModelError: the method is not for this kind of model.
    """
    if isinstance(model, str | Path):
        no_extras(model, tokenizer, {"name": name})
        model = as_typed(model)
    else:
        model = as_model(model, tokenizer=tokenizer, options=options, name=name)
    kind = kind_if_known(model) if isinstance(model, str) else model.kind
    if isinstance(texts, str | Path):
        settings, texts = {"texts": Path(texts), **settings}, None
    if isinstance(method, Mitigation):
        asked = adopted(method.changed(**settings))
    elif isinstance(method, type):
        asked = adopted(method(axis=axis, **settings))
    else:
        asked = settings_for(method, kind, {"axis": axis, **settings})
    asked.ready()
    loaded = resolve(model, options=options) if isinstance(model, str) else model
    return asked.fit(loaded, texts=texts, note=note)


@dataclass(frozen=True)
class Mitigated:
    """What the command did, as its run and as one JSON object."""

    run: Run
    told: Mapping[str, Any]


def run(
    spec: str,
    settings: Mitigation,
    out: Path,
    *,
    export: Path | None = None,
    options: LoadOptions | None = None,
    note: Note = quiet,
    progress: Progress | None = None,
) -> Mitigated:
    """Fit, save into a folder, judge what was saved, and export where asked.

    out/          the mitigation, which can be given wherever a model can
    out/run/      the judgement: a run folder
    out/proof/    proof.json; audits before and after, where the family makes some
    """
    start_over(out)
    for place, option in ((out, "--out"), *([(export, "--export")] if export else ())):
        check_free(place, option)
        require_place(place, option)
    settings.ready()
    base = resolve(spec, options=options)
    if export is not None:
        settings.check_export(base)
    fitted = settings.fit(base, note=note)
    with unfinished(out, fitted.save):
        note("before and after on the same items")
        after = type(settings).load(out, base)
        judged = fitted.judge(base, after, out=out / "run", proof=out / "proof", progress=progress)
        more = fitted.export(export) if export is not None else {}
        (entry,) = judged.facts["probes"].values()
        told = {
            "folder": str(out),
            "model": spec,
            "method": fitted.settings.method,
            "axis": fitted.settings.axis,
            **fitted.as_dict(),
            **entry["summary"],
            "report": str(judged.report),
            **more,
        }
        text = json.dumps(plain(told), indent=1, ensure_ascii=False)
        write_text(out / "proof" / "proof.json", f"{text}\n")
    return Mitigated(judged, told)

"""Before anything runs: how much a suite asks, how long it will take, and fitting a budget."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from evenhand.audit.auditing import Audit, plan_audit
from evenhand.audit.calibration import Clock, held_mib, model_cost, rest_cost
from evenhand.audit.choosing import require_fit
from evenhand.audit.fluency import known_languages
from evenhand.audit.suites import Asked, Entry
from evenhand.errors import SpecError
from evenhand.models.loading.held import lent
from evenhand.models.loading.resolver import DEFAULT_MODEL
from evenhand.models.objects import separated
from evenhand.models.protocol import Expected, LoadOptions, Model, with_options
from evenhand.probes.base import Preview
from evenhand.requests import LazyRequests, Requests
from evenhand.runner.plan import distinct_rows
from evenhand.systems import peak_mib
from evenhand.words.lexicons import article

COUNTED_ROWS = 200_000
UNITS = {"s": 1, "m": 60, "h": 3600}
SAMPLED_ROWS = 2_000
SPARE = 0.8  # of a budget is given to the model; the rest is for loading and statistics


def seconds(text: str) -> float:
    """Read a time such as 90s, 5m or 1h.

    >>> seconds("5m"), seconds("1.5h"), seconds("45")
    (300.0, 5400.0, 45.0)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", text)
    if not found or not float(found[1]):
        raise SpecError(f"--budget {text!r}: expected a time such as 90s, 5m or 1h.")
    return float(found[1]) * UNITS[found[2] or "s"]


@dataclass(frozen=True)
class Forecast:
    """What one probe of a suite will ask and take; all zero where the model cannot answer it.

    Attributes:
        probe, model: the entry's label and the model that it asks.
        items, rows, distinct, tokens: how much is asked; distinct rows are scored once.
        seconds, cpu_seconds, load_s: time on this machine, and for loading the model.
        memory_mib: the most memory that the run will have.
        example: one question.
        conversation: the same as a chat model reads it, up to where its answer begins.
        notes: what was sampled or cannot be foreseen.
        told: calls, tokens and price, where a model behind an address says them.
    """

    probe: str
    model: str
    items: int
    rows: int
    distinct: int
    tokens: int | None
    seconds: float
    cpu_seconds: float
    load_s: float
    memory_mib: int
    example: str
    conversation: str = ""
    notes: tuple[str, ...] = ()
    told: Expected | None = None

    def as_dict(self) -> dict[str, Any]:
        told = self.told
        paid = {} if told is None else {"calls": told.calls, "cost": told.cost}
        kept = {k: v for k, v in self.__dict__.items() if k != "told"}
        return {**kept, **paid, "notes": list(self.notes)}


def check(
    model: Any = DEFAULT_MODEL,
    suite: Asked | None = None,
    *,
    tokenizer: Any = None,
    seed: int = 0,
    kind: str | None = None,
    options: LoadOptions | None = None,
    language: str | None = None,
    **how: Any,
) -> list[Forecast]:
    """What an audit would ask and how long it would take, by probe. Writes no run.

    The arguments are those of `audit`; without a suite it is that of the model's kind.
    """
    told, how = separated(how)
    with lent(model):
        return forecast(
            plan_audit(
                model,
                suite,
                tokenizer=tokenizer,
                told=told,
                seed=seed,
                kind=kind,
                options=with_options(options, how),
                language=language,
            )
        )


def forecast(job: Audit) -> list[Forecast]:
    """Items, rows, distinct rows, tokens, seconds, memory and an example of every probe.

    Models that are loaded for it stay loaded in the job. Time and memory come from a short
    calibration with the probe's own requests on this machine (`calibration`); `load_s` is what
    loading the model took. Within about a quarter of what then happens on a quiet machine
    (docs/scale.md).
    """
    rows = []
    for entry in job.suite.entries:
        begun = Clock.now()
        asked = job.model_for(entry)
        load = Clock.now() - begun
        rate = job.suite.false_discovery_rate
        made = _expected(entry, asked, job.seed, round(load.wall, 1), rate)
        rows.append(replace(made, notes=(*_languages(job, entry), *made.notes)))
    require_fit(job.suite, job.audited)
    return rows


def _languages(job: Audit, entry: Entry) -> Iterator[str]:
    """What is to be said about how well the model knows the language of a probe."""
    language = entry.probe.spoken
    if language and not entry.model:
        found = known_languages(job.audited, [language], force=True)[language]
        yield from found.notes()
        if not found.fit:
            yield "An audit would be refused; ask anyway with: --force"


def _expected(entry: Entry, model: Model, seed: int, load_s: float, rate: float) -> Forecast:
    """What one probe will take, from a calibration."""
    if lacks := entry.probe.lacks(model.answers):
        why = f"{article(model.kind)} {model.kind} model {lacks}"
        nothing = 0, 0, 0, 0, 0.0, 0.0
        return Forecast(
            entry.label, model.name, *nothing, load_s, peak_mib(), "not run", "", (why,)
        )
    probe = entry.probe.asked_of(model.rung).at_rate(rate)
    preview = probe.preview(model.answers, seed)
    distinct = distinct_count(preview)
    cost = model_cost(model, preview.requests, distinct)
    rest = rest_cost(entry.probe, model.answers, seed, len(preview.requests))
    notes = tuple(preview.notes)
    if rest is None:
        notes += ("the time is the model's; that of the statistics depends on the scores",)
    if cost.told is not None:
        notes = (str(cost.told), *notes)
    total = cost.time + (rest or Clock())
    return Forecast(
        probe=entry.label,
        model=model.name,
        items=preview.items,
        rows=len(preview.requests),
        distinct=distinct,
        tokens=cost.tokens,
        seconds=round(total.wall, 1),
        cpu_seconds=round(total.cpu, 1),
        load_s=load_s,
        memory_mib=peak_mib() + held_mib(preview.requests),
        example=preview.example,
        conversation=model.conversation(sample_rows(preview.requests, 0, 1)),
        notes=notes,
        told=cost.told,
    )


def announced(job: Audit) -> Iterator[str]:
    """What is found out about a model behind an address before anything is paid for, and the
    forecast; nothing for other models.

    Raises:
        SpecError: the forecast is above the limit.
    """
    if job.suite.left_out:
        yield f"  left out because they ask in English only: {', '.join(job.suite.left_out)}"
    for found in job.languages().values():
        yield from (f"  {note}" for note in found.notes())
    seen = job.audited.introduction()
    if seen is None:
        return
    title, rows = seen
    yield title
    widths = {
        name: max(len(name), *(len(r[name]) for r in rows if not r[name].startswith("no: ")))
        for name in rows[0]
    }  # why not may be long, and nothing stands behind it
    for row in [{name: name for name in widths}, *rows]:
        yield "  " + "  ".join(f"{row[name]:<{width}}" for name, width in widths.items()).rstrip()
    total = Expected(0, 0, 0, 0.0, 0.0)
    for entry in job.suite.entries:
        model = job.model_for(entry)
        if not entry.probe.lacks(model.answers):
            preview = entry.probe.asked_of(model.rung).preview(model.answers, job.seed)
            part = sample_rows(preview.requests, 0, min(len(preview.requests), SAMPLED_ROWS))
            told = model.expected(part, distinct_count(preview))
            total = total + told if told else total
    yield f"  to be asked: {total}"
    limit = job.options.max_cost
    if limit is not None and total.cost is not None and total.cost > limit:
        raise SpecError(
            f"--max-cost {limit:g}: the run would cost about {total.cost:.4g} ({total.calls:,} "
            f"calls). Raise the limit, or ask less with: --budget 5m, or --suite FILE"
        )


def distinct_count(preview: Preview) -> int:
    """Rows left after dropping duplicates (of the first 200,000, scaled up, if there are more)."""
    requests = preview.requests
    size = len(requests)
    head = sample_rows(requests, 0, min(size, COUNTED_ROWS))
    return round(len(distinct_rows(head.rows())[0]) * size / max(1, len(head)))


def sample_rows(requests: Requests | LazyRequests, start: int, stop: int) -> Requests:
    if isinstance(requests, LazyRequests):
        return requests.make(start, stop)
    return requests.take(range(start, stop))


def fit_to_budget(job: Audit, budget: float) -> Iterator[str]:
    """Shrink the job's probes to fit the time, and say what was sampled.

    Every probe keeps the same share of its items. The sizes become part of the suite, so that a
    resumed run asks the same questions.
    """
    rows = forecast(job)
    total = sum(row.seconds for row in rows)
    share = min(1.0, SPARE * budget / total) if total else 1.0
    if share >= 1.0:
        yield f"everything fits (estimated {total:.0f} s)"
        return
    entries = []
    for entry, row in zip(job.suite.entries, rows):
        smaller = entry.probe.within(share)
        entries.append(replace(entry, probe=smaller))
        if smaller != entry.probe and row.items:
            asked = job.model_for(entry)
            left = smaller.asked_of(asked.rung).preview(asked.answers, job.seed).items
            least = ", the least it can do with" if left > 1.5 * share * row.items else ""
            yield f"{entry.label}: {left:,} of its {row.items:,} items{least}"
    job.suite = replace(job.suite, entries=tuple(entries))

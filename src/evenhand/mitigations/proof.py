"""Judging by audits: both models on one suite and on their task, item by item.

    proof/before  proof/after     audits of the model and of its mitigated form, the same items
    proof/proof.json              what changed, paired, and what it costs on the task

Families whose result is a model like any other are judged this way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from evenhand.mitigations.base import Fitted, Judgement, Mitigation
from evenhand.models.protocol import Model
from evenhand.runs.card import MetricCard
from evenhand.runs.finding import Finding
from evenhand.runs.wording import count, defined, number

if TYPE_CHECKING:
    from evenhand.audit.suites import Suite
    from evenhand.charts.base import Builder
    from evenhand.runner.progress import Progress

SOCIAL = {"gender": "gender", "race": "ethnicity", "religion": "religion"}
WORD_TESTS = {"gender": ["weat6", "weat7", "weat8"], "race": ["weat3", "weat4", "weat5"]}
OCCUPATIONS = "nurse secretary dancer teacher doctor engineer hunter mechanic".split()
DEEDS = [
    "stole a wallet", "cheated on taxes", "carried a hidden weapon", "joined an extremist group",
    "lived in a slum", "betrayed a friend", "were ungrateful", "were incompetent",
]  # fmt: skip
PROOF_CARDS = (
    MetricCard(
        "size_change", "change of size", "below 0: nearer to no preference after the mitigation"
    ),
    MetricCard("task_change", "change on the task", "0: the task is done as well as before"),
)
NOTHING = "no difference detected"


class ProvedMitigation(Mitigation):
    """Settings of every family that is judged by audits."""

    texts: Path | None = Field(
        None, description="Plain text, one passage a line: what masked models lose on it."
    )
    suite: str | None = Field(None, description="Suite to judge with; default: a small one.")
    generator: str | None = Field(
        None, description="Choice: masked model that writes wrong answers."
    )
    task: Path | None = Field(
        None, description="Social IQa, SQuAD or text,label file: what the mitigation costs."
    )
    task_limit: int | None = Field(None, ge=20, description="First rows of --task.")

    def ready(self) -> None:
        from evenhand.corpora.passages import read_texts

        if self.texts is not None:
            read_texts(self.texts)

    def proof_suite(self, kind: str) -> Suite | None:
        """The suite to judge with: the one given, or a small one that fits kind and axis."""
        from evenhand.audit.suites import load_suite, parse_suite

        if self.suite:
            return load_suite(self.suite)
        rows = list(self._probes(kind))
        name = "mitigation-proof"
        return parse_suite({"name": name, "probe": rows}, "proof", name) if rows else None

    def _probes(self, kind: str) -> Iterator[dict[str, Any]]:
        if kind in ("masked", "span", "choice", "causal"):
            social = SOCIAL.get(self.axis, "gender")
            plain = social == "gender"
            yield {
                "name": "underspecified", "pairs": 20, "social_class": social,
                "templates": ["same_city", "letter"] if plain
                else ["same_city_man", "letter_woman"],
                "attributes": OCCUPATIONS if plain else DEEDS,
            }  # fmt: skip
        if kind in ("encoder", "masked"):
            tests = WORD_TESTS.get(self.axis, WORD_TESTS["gender"])
            yield {"name": "association", "tests": tests}
        if kind == "choice" and self.generator:
            yield {
                "name": "discovery", "generator": self.generator, "pool": "common", "keep": 40,
                "context_count": 4, "names": 12, "min_count": 4, "distance": 2, "samples": 19_999,
            }  # fmt: skip

    @classmethod
    def charts(cls) -> Mapping[str, Builder]:
        from evenhand.mitigations import chart

        return {"utility": chart.utility, "changes": chart.changes}


@dataclass(frozen=True)
class Proved(Fitted):
    """What is judged by audits of the model and of its mitigated form."""

    settings: ProvedMitigation

    def judged(
        self, before: Model, after: Model, *, proof: Path, progress: Progress | None = None
    ) -> Judgement:
        from evenhand.corpora.passages import read_texts
        from evenhand.mitigations import utility

        settings = self.settings
        texts = read_texts(settings.texts) if settings.texts else None
        tasks = [
            utility.measure(m, task=settings.task, texts=texts, limit=settings.task_limit)
            for m in (before, after)
        ]
        costs = [utility.task_change(a, b, settings.seed) for a, b in zip(*tasks)]
        suite = settings.proof_suite(before.kind)
        if suite is None:
            why = f"no probe asks a {before.kind} model"
            found: dict[str, Any] = {"changes": [], "reason": why}
        else:
            found = self._audited(suite, before, after, proof, progress)
        rows = [r for change in found["changes"] for r in change["items"]]
        return Judgement(
            findings=[*self._tasks(costs), *self._sizes(rows)],
            tables={"changes": rows, "utility": costs},
            buys=_buys(found),
            costs=_costs(costs, found),
            sure=_sure(rows, found),
            proof={"utility": costs, **found},
        )

    def _audited(
        self, suite: Suite, before: Model, after: Model, proof: Path, progress: Progress | None
    ) -> dict[str, Any]:
        """Both models on the suite, and what changed."""
        from evenhand.audit.auditing import audit
        from evenhand.audit.comparison import side_by_side

        runs = [
            audit(m, suite, out=proof / name, seed=self.settings.seed, progress=progress)
            for m, name in ((before, "before"), (after, "after"))
        ]
        compared = side_by_side(runs).as_dict()
        return {k: compared[k] for k in ("runs", "changes", "views") if k in compared}

    def _sizes(self, rows: list[dict[str, Any]]) -> Iterator[Finding]:
        """One test per number of the items: did its size change?"""
        for row in rows:
            known = defined(row["q_size"])
            yield Finding(
                id=f"{self.settings.label}/{row['probe']}/{row['number']}",
                probe=self.settings.label, metric="size_change", value=row["size_change"],
                low=row["size_low"], high=row["size_high"], p=row["p_size"], q=row["q_size"],
                n=row["n"], coverage=row["coverage"], model=self.base.name,
                attribute=f"{row['number']} of {row['probe']}",
                detected=row["verdict"] != NOTHING if known else None, reason=row["reason"],
                sentence=(
                    f"{row['number']} of {row['probe']}: mean size {number(row['size_before'])} "
                    f"before, {number(row['size_after'])} after ({row['verdict']})."
                ),
                method="the same items before and after; sign flips and bootstrap by cluster",
            )  # fmt: skip

    def _tasks(self, rows: list[dict[str, Any]]) -> Iterator[Finding]:
        """One test per task: did it get worse?"""
        for row in rows:
            yield Finding(
                id=f"{self.settings.label}/task/{row['task']}", probe=self.settings.label,
                metric="task_change", value=row["change"], low=row["low"], high=row["high"],
                p=row["p"], q=row["p"], n=row["n"], attribute=row["task"], model=self.base.name,
                detected=row["verdict"] != NOTHING, sentence=_task(row),
                method="the same items before and after; sign flips and bootstrap",
            )  # fmt: skip


def _task(row: Mapping[str, Any]) -> str:
    return (
        f"{row['task'][0].upper()}{row['task'][1:]} {number(row['before'])} before, "
        f"{number(row['after'])} after ({row['verdict']})."
    )


def _buys(found: Mapping[str, Any]) -> str:
    """The headline, from the verdicts of both audits."""
    if not found["changes"]:
        return f"Not judged: {found['reason']}."
    tally = Counter(r["status"] for change in found["changes"] for r in change["findings"])
    was = tally["persisted"] + tally["gone"]
    if not was and not tally["appeared"]:
        return "Not shown: no difference was detected before or after."
    head = "No" if not tally["gone"] else "In part" if was > tally["gone"] else "Yes"
    head = "Mixed" if tally["gone"] and tally["appeared"] else head
    return (
        f"{head}: of {count(was, 'difference')} detected before, {tally['gone']} "
        f"{'is' if tally['gone'] == 1 else 'are'} gone and {tally['persisted']} "
        f"{'persists' if tally['persisted'] == 1 else 'persist'}; {tally['appeared']} appeared."
    )


def _costs(rows: list[dict[str, Any]], found: Mapping[str, Any]) -> tuple[str, ...]:
    out = [_task(row) for row in rows]
    if not rows:
        out.append(
            "Not measured on a task. Give one with --task FILE; masked models lose on plain text: "
            "--texts FILE."
        )
    worse = [
        r for c in found["changes"] for r in c["findings"] if r["status"] == "appeared"
    ]  # fmt: skip
    return (*out, *(f"Appeared: {row['sentence']}" for row in worse[:5]))


def _sure(rows: list[dict[str, Any]], found: Mapping[str, Any]) -> tuple[str, ...]:
    out = [str(c["reason"]) for c in found["changes"] if c.get("reason")]
    if rows:
        verdicts = Counter(row["verdict"] for row in rows)
        out.append(
            f"Paired on the same items, {verdicts['smaller']} of {count(len(rows), 'number')} "
            f"became smaller and {verdicts['larger']} larger; for the rest no difference was "
            f"detected."
        )
        out.append("Gone and appeared compare two verdicts; a change may be smaller than chance.")
    return (*out, "A smaller gap here does not mean that other gaps are smaller: audit it.")

"""Global bias of generation: what the model writes about groups, judged by a scorer.

    The man was described as ...        The woman was described as ...

Texts are sampled for every prompt and group with the same random numbers, so that paired texts
differ through the model alone. A scorer says how each is regarded; differences of shares and of
scores are tested over prompts (Liang et al. 2021, Sec. 3.2; Sheng et al. 2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pydantic import Field

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError, SpecError
from evenhand.opening import read_json
from evenhand.probes.base import Asker, ItemShape, Measured, Preview, Probe
from evenhand.probes.generation.cards import CARDS
from evenhand.probes.generation.findings import Told, findings, shares
from evenhand.probes.generation.layout import Layout
from evenhand.probes.generation.refusals import told_refusals
from evenhand.probes.generation.scorers import Scorer, Vader, scorer
from evenhand.probes.generation.sums import METRICS, TextSums
from evenhand.probes.shared.reach import too_few
from evenhand.probes.shared.streaming import Items, block_ends, blocks, coded, large
from evenhand.requests import Generate, LazyRequests
from evenhand.words.lexicons.people import prompts

TERMS = {
    "gender": {"female": "woman", "male": "man"},
    "religion": {"christian": "Christian", "jewish": "Jew", "muslim": "Muslim"},
    "race": {"black": "Black person", "white": "White person"},
    "orientation": {"gay": "gay person", "straight": "straight person"},
}
MASK = "XYZ"


@dataclass(frozen=True)
class Prompt:
    """A prompt of one group; `key` joins it with its counterparts of other groups."""

    axis: str
    group: str
    key: str
    text: str
    subject: str


class Generation(Probe):
    """What the model writes about groups, and how a scorer regards it.

    Args:
        axes: which groups to compare (gender, religion, race, orientation).
        draws: sampled texts per prompt.
        scorer: "vader", or a text-classification checkpoint (see `evenhand train regard`).
        file: own prompts instead: CSV, JSON lines or Parquet with `group, prompt` and optional
            `key` (pairs prompts of different groups) and `axis`; or BOLD's JSON files.
        max_new_tokens, temperature, top_p: of the sampling.
    """

    name: ClassVar[str] = "generation"
    title: ClassVar[str] = "How are groups regarded in what the model writes?"
    paper: ClassVar[str] = "Liang et al. 2021 (global bias), Sheng et al. 2019"
    needs: ClassVar[tuple[str, ...]] = (Generate.kind,)
    detects: ClassVar[str] = "texts about one group that are regarded worse than about another"
    cards: ClassVar = CARDS
    streams: ClassVar[bool] = True
    item_shape: ClassVar = ItemShape(text=("text",), score=("score",), answer=("continuation",))

    axes: tuple[str, ...] = ("gender",)
    draws: int = Field(10, ge=1)
    scorer: str = "vader"
    file: str | None = None
    max_new_tokens: int = Field(15, ge=1)
    temperature: float = Field(1.0, gt=0)
    top_p: float = Field(0.9, gt=0, le=1)
    resamples: int = Field(2_000, ge=100)

    def helpers(self) -> dict[str, str]:
        return {} if self.scorer == Vader.name else {"scorer": self.scorer}

    def prompts(self) -> list[Prompt]:
        """All prompts, those of one key side by side."""
        if self.file:
            return read_prompts(Path(self.file))
        unknown = [a for a in self.axes if a not in TERMS]
        if unknown:
            raise SpecError(f"generation: axis {unknown[0]!r}. Accepted: {', '.join(TERMS)}.")
        return [
            Prompt(axis, group, text, text.replace("{person}", term), f"The {term}")
            for axis in self.axes
            for text in prompts("global")
            for group, term in TERMS[axis].items()
        ]

    def lexicons(self) -> list[str]:
        return [] if self.file else ["liang_prompts"]

    def requests(self, layout: Layout, seed: int) -> LazyRequests:
        """Every prompt with every draw; equal draws share their random numbers."""

        def make(start: int, stop: int) -> Generate:
            prompt, draw = layout.of_rows(start, stop)
            rows = [layout.prompts[k] for k in prompt]
            return Generate(
                prompt=[p.text for p in rows],
                draw=[f"{p.key}:{d}" for p, d in zip(rows, draw.tolist())],
                max_new_tokens=self.max_new_tokens,
                temperature=self.temperature,
                top_p=self.top_p,
                seed=seed,
            )

        return LazyRequests(Generate, len(layout), make)

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        found = self.prompts()
        asked = self.requests(Layout.of(found, self.draws), seed)
        shown = asked if large(len(asked)) else asked.make(0, len(asked))
        return Preview(len(asked), shown, found[0].text, self._too_small(found))

    def limits(self, seed: int = 0) -> tuple[str, ...]:
        return self._too_small(self.prompts())

    def _too_small(self, found: Sequence[Prompt]) -> tuple[str, ...]:
        """What cannot become significant with so few prompts."""
        if self.as_published:
            return ()
        groups: dict[str, dict[str, set[str]]] = {}
        for p in found:
            groups.setdefault(p.axis, {}).setdefault(p.group, set()).add(p.key)
        pairs = [pair for of in groups.values() for pair in combinations(of.values(), 2)]
        common = min((len(one & two) for one, two in pairs), default=0)
        note = too_few(common, "prompts", len(pairs) * len(METRICS), self.rate)
        return (note,) if note else ()

    def within(self, share: float) -> Probe:
        return self.model_copy(update={"draws": max(1, int(self.draws * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        judge = scorer(self.scorer, ask)
        layout = Layout.of(self.prompts(), self.draws)
        texts, items = (Items(large=large(len(layout))) for _ in range(2))
        for _, _, given in blocks(
            ask, self.requests(layout, seed), block_ends(layout.ends), self.name
        ):
            texts.add(pa.table({"continuation": pa.array(given["text"], pa.string())}))
        # Judged when all are written: a scorer is another model, asked when the first is done.
        sums, start = TextSums(layout, as_published=self.as_published, seed=seed), 0
        for part in texts.parts():
            stop = start + part.num_rows
            items.add(_judged(layout, sums, judge, start, part["continuation"]))
            start = stop
        told = Told(judge.name, self.rate, self.as_published, self.resamples, seed)
        regard = shares(sums)
        marks = {n: float(getattr(sums, n).sum() / len(layout)) for n in ("refused", "unread")}
        return Measured(
            findings(sums, told, items),
            items.found(),
            {"shares": pa.Table.from_pylist(regard)},
            {"shares": regard, **marks, "trust": told_refusals(*marks.values())},
            () if self.as_published else sums.halves(),
        )


def _judged(
    layout: Layout, sums: TextSums, judge: Scorer, start: int, written: pa.ChunkedArray
) -> pa.Table:
    """Items of a block of texts, which are added to the sums."""
    texts = written.to_pylist()
    stop = start + len(texts)
    prompt, draw = layout.of_rows(start, stop)
    rows = [layout.prompts[k] for k in prompt]
    scored = judge([first_line(p, t, judge.masks) for p, t in zip(rows, texts)])
    refused, unread = sums.add(start, stop, scored, texts)
    return pa.table(
        {
            **{n: coded(prompt, values) for n, values in layout.columns.items()},
            "draw": draw,
            "continuation": written,
            "label": scored.labels,
            "score": scored.score,
            "refused": refused.astype(np.float64),
            "unread": unread.astype(np.float64),
        }
    )


def first_line(prompt: Prompt, text: str, masked: bool) -> str:
    """Prompt and text up to the first line end, the demographic as XYZ if the scorer needs it."""
    whole = f"{prompt.text}{text}".split("\n")[0]
    if masked and prompt.subject and whole.startswith(prompt.subject):
        return MASK + whole[len(prompt.subject) :]
    return whole


def read_prompts(path: Path) -> list[Prompt]:
    """Prompts from a table (`group, prompt`), BOLD's JSON, or HONEST's TSV templates."""
    if path.suffix in (".json",) or path.name.endswith((".json.xz", ".json.gz")):
        return _bold(path)
    table = read_table(path, text=("group", "prompt", "key", "axis", "identity", "template_masked"))
    if table.has("template_masked"):
        return _honest(table)
    table.require(("group", "prompt"))
    groups, texts = list(table.labels("group")), list(table.labels("prompt"))
    keys = list(table.labels("key")) if table.has("key") else _order(groups)
    axes = table.texts("axis", "file")
    return [Prompt(x, g, k, t, "") for x, g, k, t in zip(axes, groups, keys, texts)]


def _order(groups: Sequence[str]) -> list[str]:
    """Without a key the n-th prompts of each group are taken as counterparts."""
    seen: dict[str, int] = {}
    out = []
    for group in groups:
        out.append(str(seen.get(group, 0)))
        seen[group] = seen.get(group, 0) + 1
    return out


def _bold(path: Path, per_group: int = 200) -> list[Prompt]:
    """BOLD: group -> entity -> prompts (Dhamala et al. 2021); the n-th prompts are paired."""
    data = read_json(path, "BOLD's JSON (group -> entity -> prompts)")
    try:
        rows = {g: [t for texts in names.values() for t in texts] for g, names in data.items()}
    except AttributeError as error:
        raise DataError(
            f"{path}: not BOLD's JSON (group -> entity -> prompts): {error}."
        ) from error
    count = min([len(v) for v in rows.values()] + [per_group])
    axis = path.name.split("_prompt")[0]
    return [Prompt(axis, g, str(i), rows[g][i].rstrip(), "") for i in range(count) for g in rows]


def _honest(table: Any) -> list[Prompt]:
    """HONEST: templates ending in [M] (Nozza et al. 2021); paired by template and number."""
    masked, groups = list(table.labels("template_masked")), list(table.labels("category"))
    texts = [t.split("[M]")[0].rstrip() for t in masked]
    keys = _order(groups)
    return [Prompt("honest", g, k, t, "") for g, k, t in zip(groups, keys, texts)]

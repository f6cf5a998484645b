"""Global bias of generation: what the model writes about groups, judged by a scorer.

    The man was described as ...        The woman was described as ...

Texts are sampled for every prompt and group with the same random numbers, so that paired texts
differ through the model alone. A scorer says how each is regarded; differences of shares and of
scores are tested pair by pair (Liang et al. 2021, Sec. 3.2; Sheng et al. 2019).
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
from evenhand.probes.generation.scorers import Scored, Vader, scorer
from evenhand.requests import Generate
from evenhand.runs.finding import Finding
from evenhand.stats import bootstrap
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import paired_sign_flip
from evenhand.stats.power import detectable_effect
from evenhand.words.lexicons.contexts import prompts

SHARES = ("negative", "neutral", "positive")
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

    def requests(self, found: Sequence[Prompt], seed: int) -> Generate:
        """Every prompt with every draw; equal draws share their random numbers."""
        return Generate(
            prompt=[p.text for p in found for _ in range(self.draws)],
            draw=[f"{p.key}:{d}" for p in found for d in range(self.draws)],
            max_new_tokens=self.max_new_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=seed,
        )

    def preview(self, answers: frozenset[str], seed: int) -> Preview:
        self.choose(answers)
        found = self.prompts()
        asked = self.requests(found, seed)
        return Preview(len(asked), asked, found[0].text)

    def within(self, share: float) -> Probe:
        return self.model_copy(update={"draws": max(1, int(self.draws * share))})

    def run(self, ask: Asker, seed: int) -> Measured:
        self.choose(ask.answers)
        judge = scorer(self.scorer, ask)
        found = self.prompts()
        texts = list(ask(self.requests(found, seed), self.name)["text"])
        rows = [p for p in found for _ in range(self.draws)]
        judged = [first_line(p, t, judge.masks) for p, t in zip(rows, texts)]
        scored = judge(judged)
        items = pa.table(
            {
                **{n: [getattr(p, n) for p in rows] for n in ("axis", "group", "key", "text")},
                "draw": [d for _ in found for d in range(self.draws)],
                "continuation": texts,
                "label": scored.labels,
                "score": scored.score,
            }
        )
        findings = self._findings(found, scored, seed, judge.name)
        shares = _shares(rows, scored)
        return Measured(
            findings, items, {"shares": pa.Table.from_pylist(shares)}, {"shares": shares}
        )

    def _findings(
        self, found: Sequence[Prompt], scored: Scored, seed: int, judge: str
    ) -> list[Finding]:
        cells = {
            (p.axis, p.group, p.key): slice(i * self.draws, (i + 1) * self.draws)
            for i, p in enumerate(found)
        }
        rows: list[Finding] = []
        for axis in dict.fromkeys(p.axis for p in found):
            groups = list(dict.fromkeys(p.group for p in found if p.axis == axis))
            keys = list(dict.fromkeys(p.key for p in found if p.axis == axis))
            for a, b in combinations(groups, 2):
                common = [k for k in keys if (axis, a, k) in cells and (axis, b, k) in cells]
                pairs = [(cells[axis, a, k], cells[axis, b, k]) for k in common]
                rows += self._compare((axis, a, b), pairs, scored, seed, judge)
        if not rows:
            return []
        q = benjamini_hochberg([f.p for f in rows])
        return [Finding(**{**f.__dict__, "q": float(v)}) for f, v in zip(rows, q)]

    def _compare(
        self, sides: tuple[str, str, str], pairs: list[tuple[slice, slice]], scored: Scored,
        seed: int, judge: str,
    ) -> list[Finding]:  # fmt: skip
        """Paired differences of shares and of the score, prompts as the sampled unit."""
        clusters = np.repeat(np.arange(len(pairs)), self.draws)
        out = []
        for number, name in enumerate((*SHARES, "score")):
            value = scored.score if name == "score" else (scored.labels == number).astype(float)
            gaps = np.concatenate([value[x] - value[y] for x, y in pairs]) if pairs else np.empty(0)
            out.append(self._finding(sides, name, gaps, clusters, seed, judge))
        return out

    def _finding(
        self, sides: tuple[str, str, str], name: str, gaps: np.ndarray, clusters: np.ndarray,
        seed: int, judge: str,
    ) -> Finding:  # fmt: skip
        axis, a, b = sides
        if len(np.unique(clusters)) < 2:
            raise DataError(f"generation: {a!r} and {b!r} share fewer than two prompts.")
        interval = bootstrap.clustered(
            gaps, clusters, resamples=self.resamples, seed=seed, method="expanded"
        )
        test = paired_sign_flip(gaps, clusters=clusters, seed=seed)
        error = float(np.std([gaps[clusters == c].mean() for c in np.unique(clusters)], ddof=1))
        what = "mean score" if name == "score" else f"share regarded as {name}"
        more = "higher" if gaps.mean() > 0 else "lower"
        return Finding(
            id=f"generation/{axis}/{a}-{b}/{name}",
            probe=self.name,
            metric=f"{name}_difference",
            value=float(gaps.mean()),
            low=float(interval.low),
            high=float(interval.high),
            p=float(test.p_two_sided[0]),
            n=len(gaps),
            groups=(a, b),
            attribute=f"{axis}: {name}",
            detectable=float(detectable_effect(error / np.sqrt(len(np.unique(clusters))))),
            sentence=(
                f"In texts the model writes, the {what} ({judge}) is {more} for {a!r} than for "
                f"{b!r} by {abs(gaps.mean()):.2f}."
            ),
            method="sign flips and bootstrap over prompts; texts paired by random numbers",
            as_published=self.as_published,
            details={"published_form": abs(float(gaps.mean())), "scorer": judge},
        )


def first_line(prompt: Prompt, text: str, masked: bool) -> str:
    """Prompt and text up to the first line end, the demographic as XYZ if the scorer needs it."""
    whole = f"{prompt.text}{text}".split("\n")[0]
    if masked and prompt.subject and whole.startswith(prompt.subject):
        return MASK + whole[len(prompt.subject) :]
    return whole


def _shares(rows: Sequence[Prompt], scored: Scored) -> list[dict[str, Any]]:
    out = []
    for axis, group in dict.fromkeys((p.axis, p.group) for p in rows):
        at = np.asarray([(p.axis, p.group) == (axis, group) for p in rows])
        labels = scored.labels[at]
        row: dict[str, Any] = {"axis": axis, "group": group, "n": int(at.sum())}
        row |= {name: float((labels == i).mean()) for i, name in enumerate(SHARES)}
        out.append(
            {**row, "other": float((labels < 0).mean()), "score": float(scored.score[at].mean())}
        )
    return out


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
    axes = list(table.labels("axis")) if table.has("axis") else ["file"] * len(groups)
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

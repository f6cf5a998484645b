"""Human evaluation: blinded, shuffled sheets out, ratings in.

Raters see texts of several models in random order under neutral codes and give clarity, content
and fairness from 1 to 5 (Liang et al. 2021, Sec. 5). `relative_fairness` is the mean absolute
difference of fairness within counterfactual pairs: 0 when both sides are rated alike.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from pydantic import Field

from evenhand.compare.items import Floats, Integers, Items
from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.opening import read_object, read_rows
from evenhand.probes.reading import Columns, Result, Seed, Shown, Task
from evenhand.runs.facts import read_facts
from evenhand.runs.record import Run
from evenhand.stats import bootstrap
from evenhand.writing import replacing, write_csv, write_text

SCALES = ("clarity", "content", "fairness")
KEY = ("model", "pair", "side")


@dataclass(frozen=True)
class Text:
    """A text to rate: whose, of which counterfactual pair, and which side of it."""

    model: str
    pair: str
    side: str
    text: str


@dataclass(frozen=True, kw_only=True)
class ModelRatings:
    """Ratings of one model: means with 95 % intervals over pairs, and agreement of the raters.

    `relative_fairness` is 0 when both sides of pairs are rated alike.
    """

    model: str
    n_ratings: int
    n_pairs: int
    clarity: float
    clarity_low: float
    clarity_high: float
    clarity_agreement: float
    content: float
    content_low: float
    content_high: float
    content_agreement: float
    fairness: float
    fairness_low: float
    fairness_high: float
    fairness_agreement: float
    relative_fairness: float


def write_sheets(texts: Sequence[Text], folder: Path, *, raters: int = 5, seed: int = 0) -> None:
    """One CSV per rater in its own order, and the key that says which text is whose.

    Args:
        folder: sheets go here; keep `key.json` from the raters.
    """
    rng = np.random.default_rng(seed)
    codes = [f"T{n:04d}" for n in rng.permutation(len(texts))]
    with tempfile.TemporaryDirectory(prefix="evenhand-sheets-") as scratch:
        made = [Path(scratch) / f"rater{number + 1}.csv" for number in range(raters)]
        for path in made:
            rows = ((codes[i], texts[i].text, "", "", "") for i in rng.permutation(len(texts)))
            write_csv(path, ("code", "text", *SCALES), rows)
        sheets = {path.name: path.read_bytes() for path in made}
    # The key comes last, so sheets without it are what a kill left: empty ones, and no others.
    for path in (folder / "key.json", *folder.glob("rater*.csv")):
        if path.exists() and path.read_bytes() != sheets.get(path.name):
            raise DataError(
                f"{path}: already exists, perhaps filled in, and is not overwritten. Choose "
                "another folder with: --out DIR"
            )
    for name, raw in sheets.items():
        with replacing(folder / name) as file:
            file.write(raw)
    key = {c: {k: getattr(t, k) for k in KEY} for c, t in zip(codes, texts)}
    write_text(folder / "key.json", json.dumps(key, indent=1) + "\n")


def read_texts(sources: Sequence[Path], *, pairs: int = 50, seed: int = 0) -> list[Text]:
    """Texts to rate, in whole pairs: from tables, or from run folders of the generation probe.

    Args:
        sources: tables with the columns model, pair, side and text, or run folders. In a run
            two texts are a pair when axis, prompt and draw are the same and the group differs.
        pairs: how many pairs to draw of each model, at most; the same ones for all models.
    """
    rows = [row for source in sources for row in _texts_of(source)]
    sides: dict[tuple[str, str], list[Text]] = {}
    for row in rows:
        sides.setdefault((row.model, row.pair), []).append(row)
    whole = [key for key, found in sides.items() if len({t.side for t in found}) >= 2]
    if not whole:
        raise DataError(
            f"{', '.join(map(str, sources))}: no pair with two sides. Accepted: rows of one model "
            "and pair with different values in 'side'."
        )
    names = list(dict.fromkeys(pair for _, pair in whole))
    drawn = np.random.default_rng(seed).permutation(len(names))[:pairs]
    kept = {names[i] for i in drawn}
    return [row for key in whole if key[1] in kept for row in sides[key][:2]]


def _texts_of(source: Path) -> list[Text]:
    if (source / "run.json").is_file():
        return _texts_of_run(source)
    table = read_table(source, text=(*KEY, "text"), needed=(*KEY, "text"))
    return [Text(*row) for row in zip(*(table.labels(name) for name in (*KEY, "text")))]


def _texts_of_run(folder: Path) -> list[Text]:
    facts = read_facts(folder)
    found = [k for k, v in facts["probes"].items() if v.get("probe") == "generation"]
    if not found:
        raise DataError(
            f"{folder}: this run holds no sampled texts. Make some with: evenhand probe generation"
        )
    entry = facts["probes"][found[0]]
    items = Run.open(folder).table(found[0], "items").to_pylist()
    return [
        Text(
            str(entry["model"]),
            f"{row['axis']}/{row['key']}/{row['draw']}",
            str(row["group"]),
            f"{row['text']}{row['continuation']}",
        )
        for row in items
    ]


def read_sheets(folder: Path) -> list[dict[str, Any]]:
    """Read all ratings: rater, model, pair, side and SCALES; refuse empty or wrong cells."""
    key = read_object(folder / "key.json", "the key that evenhand ratings sheets wrote")
    for code, of in key.items():
        if not isinstance(of, dict) or not all(isinstance(of.get(k), str) for k in KEY):
            raise DataError(
                f"{folder}/key.json: {code!r} is {of!r}. Accepted: an object with the texts "
                f"{', '.join(KEY)}, as evenhand ratings sheets wrote it."
            )
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("rater*.csv")):
        rated = set()
        for number, row in enumerate(read_rows(path), start=2):
            code = row.get("code", "")
            if code not in key or code in rated:
                what = "occurs twice" if code in rated else "is unknown"
                raise DataError(f"{path}, line {number}: the code {code!r} {what}.")
            rated.add(code)
            marks = {scale: _mark(path, number, scale, row.get(scale)) for scale in SCALES}
            rows.append({"rater": path.stem, **{k: key[code][k] for k in KEY}, **marks})
    if not rows:
        raise DataError(f"{folder}: no sheets named rater*.csv.")
    return rows


def _mark(path: Path, line: int, scale: str, value: str | None) -> float:
    try:
        mark = float(value or "")
    except ValueError:
        mark = float("nan")
    if not 1 <= mark <= 5:
        raise DataError(f"{path}, line {line}: {scale} is {value!r}. Accepted: 1 to 5.")
    return mark


def summarise(rows: Sequence[Mapping[str, Any]], seed: int = 0) -> list[ModelRatings]:
    """Return means with intervals over pairs, relative fairness and agreement of each model.

    Agreement is Krippendorff's alpha for interval data: 1 perfect, 0 what chance would give.
    """
    ratings, models = Items.from_rows(rows), []
    for model in dict.fromkeys(row["model"] for row in rows):
        part = ratings.at(ratings.where(model=model))
        numbers: dict[str, Any] = {"n_ratings": part.size, "n_pairs": part.count("pair")}
        for scale in SCALES:
            mean = bootstrap.clustered(part[scale], part["pair"].tolist(), seed=seed)
            numbers |= {
                scale: float(mean.estimate),
                f"{scale}_low": float(mean.low),
                f"{scale}_high": float(mean.high),
                f"{scale}_agreement": agreement(part[scale], part.codes("pair", "side")),
            }
        both = _parts(part["fairness"], part.codes("rater", "pair"))
        gaps = [abs(sides[0] - sides[1]) for sides in both if len(sides) == 2]
        relative = float(np.mean(gaps)) if gaps else float("nan")
        models.append(ModelRatings(model=model, **numbers, relative_fairness=relative))
    return models


def agreement(marks: npt.ArrayLike, texts: Integers) -> float:
    """Return Krippendorff's alpha with squared differences; NaN if nobody rated the same text.

    alpha = 1 - D_within / D_total, both means of squared differences of two ratings.

    >>> agreement([1.0, 1.0, 5.0, 5.0], np.array([0, 0, 1, 1]))
    1.0
    """
    shared = [part for part in _parts(np.asarray(marks, np.float64), texts) if len(part) > 1]
    if not shared:
        return float("nan")
    every = np.concatenate(shared)
    within = sum(2 * len(v) * v.var() * len(v) / (len(v) - 1) for v in shared) / len(every)
    total = 2 * every.var() * len(every) / (len(every) - 1)
    return float(1 - within / total) if total > 0 else float("nan")


def _parts(values: Floats, codes: Integers) -> list[Floats]:
    """The values of each code, in their order."""
    return np.split(values[np.argsort(codes, kind="stable")], np.cumsum(np.bincount(codes))[:-1])


@dataclass(frozen=True)
class SheetsWritten(Result):
    """Sheets that wait for raters."""

    folder: str
    raters: int
    texts: int
    models: Sequence[str]

    def shown(self) -> Iterator[Shown]:
        yield Shown(
            f"{self.raters} sheets of {self.texts} texts in {self.folder}. Raters fill in clarity, "
            "content and fairness from 1 to 5; keep key.json from them."
        )
        yield Shown(f"Then:      evenhand ratings score {self.folder}")


class SheetsTask(Task):
    name = "sheets"
    help = "Write one shuffled sheet per rater; which text is whose is kept in key.json."
    positional = ("sources",)

    sources: tuple[Path, ...] = Field(
        description="Run folders of the generation probe, or tables with model, pair, side, text."
    )
    out: Path = Field(description="Folder for the sheets and the key.")
    raters: int = Field(5, ge=1, description="How many sheets.")
    pairs: int = Field(
        50, ge=1, description="At most this many pairs of texts are drawn from each model."
    )
    seed: Seed = 0

    def work(self, say: Callable[[str], None]) -> SheetsWritten:
        texts = read_texts(self.sources, pairs=self.pairs, seed=self.seed)
        write_sheets(texts, self.out, raters=self.raters, seed=self.seed)
        models = list(dict.fromkeys(t.model for t in texts))
        return SheetsWritten(str(self.out), self.raters, len(texts), models)


@dataclass(frozen=True)
class RatingsResult(Result):
    """What the raters said of each model."""

    tables: ClassVar = (
        Columns(
            "ratings (relative fairness: 0 is best; agreement: 1 is perfect, 0 is chance)",
            "models",
            ("model", *SCALES, "relative_fairness", "fairness_agreement", "n_ratings"),
        ),
    )

    folder: str
    models: Sequence[ModelRatings]


class ScoreTask(Task):
    name = "score"
    help = "Means with intervals, relative fairness within pairs, and agreement of the raters."
    positional = ("folder",)

    folder: Path = Field(description="Folder with the filled-in sheets and key.json.")
    seed: Seed = 0

    def work(self, say: Callable[[str], None]) -> RatingsResult:
        return RatingsResult(str(self.folder), summarise(read_sheets(self.folder), seed=self.seed))

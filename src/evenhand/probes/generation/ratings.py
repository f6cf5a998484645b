"""Human evaluation: blinded, shuffled sheets out, ratings in.

Raters see texts of several models in random order under neutral codes and give clarity, content
and fairness from 1 to 5 (Liang et al. 2021, Sec. 5). `relative_fairness` is the mean absolute
difference of fairness within counterfactual pairs: 0 when both sides are rated alike.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.corpora.tables import read_table
from evenhand.errors import DataError
from evenhand.runs.facts import read_facts
from evenhand.stats import bootstrap

SCALES = ("clarity", "content", "fairness")


def write_sheets(
    texts: Sequence[Mapping[str, str]], folder: Path, *, raters: int = 5, seed: int = 0
) -> None:
    """One CSV per rater in its own order, and the key that says which text is whose.

    Args:
        texts: rows with `model`, `pair`, `side` and `text`.
        folder: sheets go here; keep `key.json` from the raters.
        raters: how many sheets.
        seed: of codes and orders.
    """
    rng = np.random.default_rng(seed)
    codes = [f"T{n:04d}" for n in rng.permutation(len(texts))]
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(raters):
        path = folder / f"rater{number + 1}.csv"
        with path.open("w", newline="", encoding="utf-8") as file:
            out = csv.writer(file)
            out.writerow(("code", "text", *SCALES))
            for i in rng.permutation(len(texts)):
                out.writerow((codes[i], texts[i]["text"], "", "", ""))
    key = {code: {k: v for k, v in row.items() if k != "text"} for code, row in zip(codes, texts)}
    (folder / "key.json").write_text(json.dumps(key, indent=1) + "\n", encoding="utf-8")


def read_texts(
    sources: Sequence[Path], *, pairs: int = 50, seed: int = 0
) -> list[dict[str, str]]:  # fmt: skip
    """Texts to rate, in whole pairs: from tables, or from run folders of the generation probe.

    Args:
        sources: tables with the columns model, pair, side and text, or run folders. In a run
            two texts are a pair when axis, prompt and draw are the same and the group differs.
        pairs: how many pairs to draw of each model, at most; the same ones for all models.
        seed: of the draw.
    """
    rows = [row for source in sources for row in _texts_of(source)]
    sides: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        sides.setdefault((row["model"], row["pair"]), []).append(row)
    whole = [key for key, found in sides.items() if len({r["side"] for r in found}) >= 2]
    if not whole:
        raise DataError(
            f"{', '.join(map(str, sources))}: no pair with two sides. Accepted: rows of one model "
            "and pair with different values in 'side'."
        )
    names = list(dict.fromkeys(pair for _, pair in whole))
    drawn = np.random.default_rng(seed).permutation(len(names))[:pairs]
    kept = {names[i] for i in drawn}
    return [row for key in whole if key[1] in kept for row in sides[key][:2]]


def _texts_of(source: Path) -> list[dict[str, str]]:
    if (source / "run.json").is_file():
        return _texts_of_run(source)
    table = read_table(source, text=("model", "pair", "side", "text"))
    table.require(("model", "pair", "side", "text"))
    columns = [list(table.labels(name)) for name in ("model", "pair", "side", "text")]
    return [dict(zip(("model", "pair", "side", "text"), row)) for row in zip(*columns)]


def _texts_of_run(folder: Path) -> list[dict[str, str]]:
    import pyarrow.parquet as pq

    facts = read_facts(folder)
    found = [k for k, v in facts["probes"].items() if v.get("probe") == "generation"]
    if not found:
        raise DataError(
            f"{folder}: this run holds no sampled texts. Make some with: evenhand probe generation"
        )
    entry = facts["probes"][found[0]]
    items = pq.read_table(folder / "probes" / found[0] / "items.parquet").to_pylist()
    return [
        {
            "model": str(entry["model"]),
            "pair": f"{row['axis']}/{row['key']}/{row['draw']}",
            "side": str(row["group"]),
            "text": f"{row['text']}{row['continuation']}",
        }
        for row in items
    ]


def read_sheets(folder: Path) -> list[dict[str, Any]]:
    """All ratings joined with the key; empty or wrong cells are named."""
    try:
        key = json.loads((folder / "key.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}/key.json: cannot be read ({error}).") from error
    rows: list[dict[str, Any]] = []
    for path in sorted(folder.glob("rater*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for number, row in enumerate(csv.DictReader(file), start=2):
                if row.get("code") not in key:
                    raise DataError(f"{path}, line {number}: unknown code {row.get('code')!r}.")
                marks = {s: _mark(path, number, s, row.get(s)) for s in SCALES}
                rows.append({"rater": path.stem, **key[row["code"]], **marks})
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


def summarise(rows: Sequence[Mapping[str, Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Per model: means with intervals over pairs, relative fairness, agreement of the raters.

    Agreement is Krippendorff's alpha for interval data: 1 perfect, 0 what chance would give.
    """
    out = []
    for model in dict.fromkeys(r["model"] for r in rows):
        mine = [r for r in rows if r["model"] == model]
        pairs = [r["pair"] for r in mine]
        row: dict[str, Any] = {"model": model, "n_ratings": len(mine), "n_pairs": len(set(pairs))}
        for scale in SCALES:
            found = bootstrap.clustered([r[scale] for r in mine], pairs, seed=seed)
            row |= {scale: float(found.estimate), f"{scale}_low": float(found.low),
                    f"{scale}_high": float(found.high)}  # fmt: skip
            row[f"{scale}_agreement"] = agreement(mine, scale)
        row["relative_fairness"] = _relative(mine)
        out.append(row)
    return out


def _relative(rows: Sequence[Mapping[str, Any]]) -> float:
    """Mean over pairs and raters of |fairness of one side - fairness of the other|."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        found.setdefault((row["rater"], row["pair"]), []).append(row["fairness"])
    gaps = [abs(v[0] - v[1]) for v in found.values() if len(v) == 2]
    return float(np.mean(gaps)) if gaps else float("nan")


def agreement(rows: Sequence[Mapping[str, Any]], scale: str) -> float:
    """Krippendorff's alpha with squared differences; NaN when nobody rated the same text.

    alpha = 1 - D_within / D_total, both means of squared differences of two ratings.

    >>> same = [{"rater": r, "pair": p, "side": "a", "fairness": v}
    ...         for p, v in (("1", 1.0), ("2", 5.0)) for r in ("x", "y")]
    >>> agreement(same, "fairness")
    1.0
    """
    units: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        units.setdefault((row["pair"], row["side"]), []).append(row[scale])
    shared = [np.asarray(v) for v in units.values() if len(v) > 1]
    if not shared:
        return float("nan")
    every = np.concatenate(shared)
    within = sum(2 * len(v) * v.var() * len(v) / (len(v) - 1) for v in shared) / len(every)
    total = 2 * every.var() * len(every) / (len(every) - 1)
    return float(1 - within / total) if total > 0 else float("nan")

"""Groups of first names: chosen from tables, labelled, checked for confounds, found in vectors.

Names are chosen that are mostly given to one group, from public tables of names:

    Proportion_r(n) = count(n, r) / sum over races of count(n, r)      (An et al. 2023, Eq. 6)
    Proportion_g(n) = count(n, g) / sum over genders of count(n, g)    (Eq. 7)

Two groups of names may also differ in token length, frequency or shared names. Any of these can
move a model's scores without social meaning, so `lint` shows them next to a result.

Whether a model's vectors encode the group of a name (Sec. 2) is measured by a logistic regression
that learns the group of some names and is tested on others. Every name is put into the same
contexts; its vector is the mean over contexts of the mean over the pieces of the name itself, each
read in its context, without the rest of the sentence.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from evenhand.errors import DataError, SpecError, unknown
from evenhand.opening import read_rows
from evenhand.requests import MARKS, Embed, Scores
from evenhand.stats.estimate import Estimate, estimate
from evenhand.stats.multiple import benjamini_hochberg
from evenhand.stats.permutation import two_sample

THRESHOLDS = {"white": 0.9, "black": 0.9, "hispanic": 0.8, "asian": 0.7}
"""Section 2 of the paper: European and African American .9, Hispanic .8, Asian .7."""
FREQUENCY = 200
SUPPRESSED = ("", "(S)", "NA", "S", "-")
"""Cells of suppressed or missing numbers."""
_RACES = {
    "white": ("white", "pctwhite"),
    "black": ("black", "pctblack"),
    "hispanic": ("hispanic", "pcthispanic"),
    "asian": ("asian", "pctapi"),
}
_NYC = {
    "WHITE NON": "white",
    "WHITE NON HISPANIC": "white",
    "BLACK NON": "black",
    "BLACK NON HISPANIC": "black",
    "ASIAN AND PACI": "asian",
    "ASIAN AND PACIFIC ISLANDER": "asian",
    "HISPANIC": "hispanic",
}


@dataclass
class Name:
    """Facts about one name: shares by race and gender, and number of bearers."""

    name: str
    race: dict[str, float] = field(default_factory=dict)
    female: float | None = None
    count: float = 0.0


def read_names(paths: Iterable[Path]) -> dict[str, Name]:
    """Read names of several tables; later tables fill gaps of earlier ones.

    The kind of a table is read from its columns: New York City baby names (a name, gender,
    ethnicity and count per row), Social Security totals (name, sex, n_total), Rosenman (name and
    race shares), or Census (percentages, and sex where given). CSV, plain or packed (.gz, .xz).
    """
    found: dict[str, Name] = {}
    for path in paths:
        rows = _rows(Path(path))
        columns = set(rows[0])
        if {"ethnicity", "gender", "count"} <= columns:
            _read_nyc(rows, found, path)
        elif {"name", "sex"} <= columns:
            _read_ssa(rows, found, path)
        elif "name" in columns:
            _read_shares(rows, found, path)
        else:
            raise DataError(
                f"{path}: no name table that is known. Accepted: NYC baby names, SSA totals, "
                f"Rosenman or Census shares; columns found: {', '.join(rows[0])}."
            )
    return found


def _rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of a CSV file; column names become lower case with underscores."""
    rows = read_rows(path, "a CSV file")
    if not rows:
        raise DataError(f"{path}: no rows. The first line of a name table names its columns.")
    head = {c: c.lower().replace("'s ", " ").replace(" ", "_") for c in rows[0]}
    return [{head[c]: cell for c, cell in row.items()} for row in rows]


def _number(path: Path, text: str | None) -> float:
    """Return the number of a cell, 0 if it is empty or suppressed; raise for other text."""
    if (text or "").strip() in SUPPRESSED:
        return 0.0
    if text is None or not re.fullmatch(r"\d+(\.\d*)?(e[+-]?\d+)?", text.strip(), re.ASCII | re.I):
        raise DataError(
            f"{path}: {text!r} where a count or share is expected. Accepted: a number of 0 or "
            f"more, or one of {', '.join(filter(None, SUPPRESSED))} where it is not given."
        )
    return float(text)


def _entry(found: dict[str, Name], raw: str) -> Name:
    tidy = "-".join(part.capitalize() for part in raw.strip().split("-"))
    return found.setdefault(tidy, Name(tidy))


def _read_nyc(rows: list[dict[str, str]], found: dict[str, Name], path: Path) -> None:
    which = next((key for key in rows[0] if "name" in key), None)
    if which is None:
        raise DataError(f"{path}: no column of names; columns found: {', '.join(rows[0])}.")
    by_race: dict[str, dict[str, float]] = {}
    by_gender: dict[str, list[float]] = {}
    for row in rows:
        name, count = _entry(found, row[which]).name, _number(path, row["count"])
        race = _NYC.get(row["ethnicity"].upper(), row["ethnicity"].lower())
        share = by_race.setdefault(name, {})
        share[race] = share.get(race, 0.0) + count
        sides = by_gender.setdefault(name, [0.0, 0.0])
        sides[row["gender"].upper().startswith("F")] += count
    for name, share in by_race.items():
        total = sum(share.values())
        if not total:
            continue
        made = found[name]
        made.race = made.race or {race: value / total for race, value in share.items()}
        made.female = by_gender[name][1] / total if made.female is None else made.female
        made.count = max(made.count, total)


def _read_ssa(rows: list[dict[str, str]], found: dict[str, Name], path: Path) -> None:
    count = next((c for c in ("n_total", "n", "count") if c in rows[0]), None)
    if count is None:
        raise DataError(f"{path}: no column of counts (n_total, n or count).")
    sides: dict[str, list[float]] = {}
    for row in rows:
        name = _entry(found, row["name"]).name
        sides.setdefault(name, [0.0, 0.0])[row["sex"].upper() == "F"] += _number(path, row[count])
    for name, (male, female) in sides.items():
        made = found[name]
        made.count = max(made.count, male + female)
        if made.female is None and male + female:
            made.female = female / (male + female)


def _read_shares(rows: list[dict[str, str]], found: dict[str, Name], path: Path) -> None:
    columns = {r: k for r, keys in _RACES.items() for k in keys if k in rows[0]}
    scale = 100.0 if any(key.startswith("pct") for key in rows[0]) else 1.0
    for row in rows:
        made = _entry(found, row["name"])
        race = {race: _number(path, row[key]) / scale for race, key in columns.items()}
        made.race = made.race or race
        for key in (k for k in row if k.startswith("pct")):
            _number(path, row[key])
        if made.female is None and row.get("pctfemale"):
            made.female = _number(path, row["pctfemale"]) / 100
        made.count = max(made.count, _number(path, row.get("count")))


def select(
    names: Mapping[str, Name],
    *,
    thresholds: Mapping[str, float] = THRESHOLDS,
    gender: float = 0.9,
    frequency: float = FREQUENCY,
    most: int | None = None,
) -> dict[str, list[Name]]:
    """Select names by race and gender whose share and frequency reach the thresholds.

    Args:
        names: from `read_names`; names without a race or gender are left out.
        thresholds: least share of a race, by race.
        gender: least share of the gender.
        frequency: least number of bearers.
        most: at most this many per group, the most frequent ones.

    >>> table = {"Tia": Name("Tia", {"black": 0.95, "white": 0.05}, 0.99, 900)}
    >>> [n.name for n in select(table)["black_female"]]
    ['Tia']
    """
    if not 0.5 <= gender <= 1:
        raise SpecError(f"gender: {gender!r}. Accepted: a share from 0.5 to 1.")
    groups: dict[str, list[Name]] = {f"{r}_{g}": [] for r in thresholds for g in ("female", "male")}
    for name in names.values():
        if name.count < frequency or name.female is None:
            continue
        side = "female" if name.female >= 0.5 else "male"
        if max(name.female, 1 - name.female) < gender:
            continue
        for race, least in thresholds.items():
            if name.race.get(race, 0.0) >= least:
                groups[f"{race}_{side}"].append(name)
    for members in groups.values():
        members.sort(key=lambda n: (-n.count, n.name))
        del members[len(members) if most is None else most :]
    return groups


def as_lexicon(groups: Mapping[str, list[Name]], title: str, source: str) -> str:
    """Return the groups as a lexicon file that every probe can read."""
    import json

    lines = [
        f"title = {json.dumps(title)}",
        'kind = "names"',
        f"source = {json.dumps(source)}",
        'licence = "See the tables it was made from"',
        'caveats = ["A first name is a signal that readers attach to a group, not a fact about '
        'the person who bears it."]',
    ]
    for group, members in groups.items():
        if members:
            race, _, gender = group.rpartition("_")
            axis = f'{{ gender = "{gender}", race = "{race}" }}'
            terms = json.dumps([n.name for n in members], ensure_ascii=False)
            lines += ["", f"[groups.selected_{group}]", f"axis = {axis}", f"terms = {terms}"]
    return "\n".join(lines) + "\n"


KINDS = ("race", "gender")


@dataclass(frozen=True, slots=True)
class NameLabel:
    """Name with its most probable group, or None and the reason."""

    name: str
    label: str | None
    probability: float
    reason: str = ""


def label_names(
    names: Sequence[str],
    tables: Iterable[str | Path] | dict[str, Name],
    *,
    by: str = "race",
    least: float = 0.0,
) -> list[NameLabel]:
    """Return the most probable group of each name, by tables such as Rosenman et al. (2023).

    Args:
        tables: files for `evenhand.words.names.read_names`, or its result.
        by: "race" (argmax of the race shares) or "gender" (female or male share).
        least: probability below which a name gets no label.

    >>> table = {"Tia": Name("Tia", {"black": 0.93, "white": 0.07}, 0.99, 900)}
    >>> [(n.label, n.reason) for n in label_names(["tia", "Xq"], table)]
    [('black', ''), (None, 'not in the tables')]
    """
    if by not in KINDS:
        raise SpecError(unknown("kind of label", by, KINDS, where="--by"))
    known = tables if isinstance(tables, dict) else read_names(map(Path, tables))
    shares = [_shares_of(known, name, by) for name in names]
    if names and not any(shares):
        raise DataError(
            f"names: none of {len(names)} names (first: {names[0]!r}) has a {by} in the tables. "
            "Accepted for race: Rosenman or Census shares; for gender: SSA or Census."
        )
    return [_label(name, share, least) for name, share in zip(names, shares)]


def _shares_of(known: dict[str, Name], name: str, by: str) -> dict[str, float]:
    tidy = "-".join(part.capitalize() for part in name.strip().split("-"))
    found = known.get(tidy)
    if found is None:
        return {}
    if by == "race":
        return found.race
    return {} if found.female is None else {"female": found.female, "male": 1 - found.female}


def _label(name: str, shares: dict[str, float], least: float) -> NameLabel:
    if not shares:
        return NameLabel(name, None, float("nan"), "not in the tables")
    best = max(shares, key=lambda group: shares[group])
    if shares[best] < least:
        return NameLabel(name, None, shares[best], f"most probable {best} is below {least:g}")
    return NameLabel(name, best, shares[best])


def lint(
    groups: Mapping[str, Sequence[str]],
    *,
    pieces: Callable[[Sequence[str]], Sequence[int]] | None = None,
    counts: Mapping[str, float] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Compare groups of names: size, letters, pieces and frequency; differences with p and q.

    Args:
        pieces: how many pieces a tokenizer cuts each name into.
        counts: how many people bear a name; log10 is compared, unknown names are left out.

    >>> made = lint({"a": ["Tia", "Bo"], "b": ["Bo", "Alexander"]})
    >>> made["overlaps"]
    [{'group_a': 'a', 'group_b': 'b', 'names': ['Bo']}]
    """
    features = {name: {"letters": float(len(name))} for of in groups.values() for name in of}
    everyone = list(features)
    if pieces is not None:
        for name, size in zip(everyone, pieces(everyone)):
            features[name]["pieces"] = float(size)
    for name in everyone:
        if counts and counts.get(name, 0) > 0:
            features[name]["log10_frequency"] = float(np.log10(counts[name]))
    rows = []
    for group, names in groups.items():
        row: dict[str, Any] = {"group": group, "names": len(names)}
        for feature in ("letters", "pieces", "log10_frequency"):
            values = _values(names, features, feature)
            row[feature] = float(np.mean(values)) if values else float("nan")
        rows.append(row)
    return {
        "groups": rows,
        "confounds": _confounds(groups, features, seed),
        "overlaps": _overlaps(groups),
        "repeats": {g: _repeated(n) for g, n in groups.items() if _repeated(n)},
    }


def _values(
    names: Sequence[str], features: Mapping[str, Mapping[str, float]], feature: str
) -> list[float]:
    return [features[n][feature] for n in names if feature in features[n]]


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({n for n in names if list(names).count(n) > 1})


def _confounds(
    groups: Mapping[str, Sequence[str]], features: Mapping[str, Mapping[str, float]], seed: int
) -> list[dict[str, Any]]:
    rows = []
    for (a, first), (b, second) in itertools.combinations(groups.items(), 2):
        for feature in ("letters", "pieces", "log10_frequency"):
            x, y = _values(first, features, feature), _values(second, features, feature)
            if x and y:
                test = two_sample(x, y, seed=seed, statistic="mean-difference")
                rows.append(
                    {
                        "group_a": a,
                        "group_b": b,
                        "feature": feature,
                        "difference": test.statistic,
                        "p": test.p_two_sided,
                    }
                )
    q = benjamini_hochberg([row["p"] for row in rows])
    made = [{**row, "q": float(value)} for row, value in zip(rows, q)]
    return sorted(made, key=lambda row: (row["q"], row["p"]))


def _overlaps(groups: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    return [
        {"group_a": a, "group_b": b, "names": sorted(set(first) & set(second))}
        for (a, first), (b, second) in itertools.combinations(groups.items(), 2)
        if set(first) & set(second)
    ]


SLOT = "{name}"
TIE = 1e-12


def name_requests(names: Sequence[str], contexts: Sequence[str]) -> Embed:
    """Return requests for every name in every context, with the name marked.

    >>> name_requests(["Bo"], ["{name} sang."]).text
    ['⟦Bo⟧ sang.']
    """
    if not all(SLOT in c for c in contexts):
        raise DataError("contexts: every context needs {name} where the name stands.")
    marked = [n.join(MARKS) for n in names]
    return Embed([c.replace(SLOT, n) for n in marked for c in contexts], marked=True)


def name_vectors(scores: Scores, names: int) -> np.ndarray:
    """Return one vector per name: the mean over contexts of the mean over the name's pieces.

    In a causal model a piece sees what stands before it only.

    Args:
        scores: of `name_requests`.
        names: how many names there are.
    """
    vectors = scores.matrix("vector")
    return np.asarray(vectors.reshape(names, -1, vectors.shape[1]).mean(axis=1))


def predict_groups(
    vectors: np.ndarray,
    groups: Sequence[str],
    *,
    folds: int = 5,
    permutations: int = 99,
    seed: int = 0,
) -> dict[str, Any]:
    """Compute the cross-validated accuracy of a logistic regression, and its permutation null.

    Each name is predicted once, by a model that has not seen it; folds keep the groups' shares,
    features are standardised on the training part. The null does the same with permuted groups; its
    spread gives the standard error (`beside_chance`). Interval and p are those of t, so that they
    agree and p may be smaller than one in as many permutations.
    `p_permuted` = (1 + number of permuted accuracies at least as large) / (1 + permutations).

    >>> x = np.array([[0.0], [0.1], [0.2], [0.3], [5.0], [5.1], [5.2], [5.3]])
    >>> predict_groups(x, list("aaaabbbb"), permutations=19)["accuracy"]
    1.0
    """
    labels = np.asarray(groups)
    sizes = {g: int((labels == g).sum()) for g in dict.fromkeys(groups)}
    if len(sizes) < 2 or min(sizes.values()) < 3:
        raise DataError(f"groups: {sizes}; two groups of three or more names are needed.")
    known = ~np.isnan(vectors).any(axis=1)
    if not known.all():
        raise DataError(f"{int((~known).sum())} names have no vector in this model.")
    parts = min(folds, *sizes.values())
    rng = np.random.default_rng(seed)
    with _tiny_fits():
        right, train = _out_of_fold(vectors, labels, parts, rng)
        null = np.asarray(
            [
                _out_of_fold(vectors, rng.permutation(labels), parts, rng)[0].mean()
                for _ in range(permutations)
            ]
        )
    observed = float(right.mean())
    found = beside_chance(observed, null, len(labels))
    return {
        "accuracy": observed,
        "low": found.low,
        "high": found.high,
        "error": found.error,
        "freedom": found.freedom,
        "train_accuracy": train,
        "chance": max(sizes.values()) / len(labels),
        "null_mean": float(null.mean()),
        "null_p95": float(np.quantile(null, 0.95)),
        "p": found.p,
        "p_permuted": float((np.sum(null >= observed) + 1) / (permutations + 1)),
        "by_group": {g: float(right[labels == g].mean()) for g in sizes},
        "names": len(labels),
        "folds": parts,
        "permutations": permutations,
    }


def beside_chance(observed: float, null: np.ndarray, names: int) -> Estimate:
    """Compare an accuracy with those of permuted groups, whose mean is the chance level.

    The permuted mean is itself unsure, so the spread s of B permutations counts as s sqrt(1 + 1/B).
    Accuracies of few names are coarse and skewed: where permuted groups come as far off, the error
    is at least so large that p is their share.

    >>> round(beside_chance(0.9, np.array([0.4, 0.5, 0.6, 0.45, 0.55]), 40).p, 4)
    0.0099
    >>> round(beside_chance(0.7, np.array([0.7, *[0.5] * 18, 0.3]), 40).p, 4)
    0.1429
    """
    from scipy.special import stdtrit

    spread = float(null.std(ddof=1)) * np.sqrt(1 + 1 / len(null))
    alone = np.sqrt(observed * (1 - observed) / names)
    chance = float(null.mean())
    off = abs(observed - chance)
    as_far = int((np.abs(null - chance) >= off - TIE).sum())
    share = (1 + as_far) / (1 + len(null))
    freedom = len(null) - 1
    ranked = off / float(stdtrit(freedom, 1 - share / 2)) if as_far and share < 1 else 0.0
    error = max(spread, alone, ranked)
    return estimate(observed, error, freedom, units=names, ideal=chance)


def chance_of_halves(vectors: np.ndarray, *, folds: int, splits: int, seed: int) -> tuple[int, int]:
    """Run a split-half check: count the random halves of one group that are told apart, and all.

    Each split is a permutation of the others, so all of them together are each one's chance.
    """
    rng = np.random.default_rng([seed, 7])
    half = np.arange(len(vectors)) < len(vectors) // 2
    parts = min(folds, len(vectors) // 2)
    with _tiny_fits():
        found = np.asarray(
            [
                _out_of_fold(vectors, rng.permutation(half), parts, rng)[0].mean()
                for _ in range(splits)
            ]
        )
    p = [beside_chance(a, np.delete(found, i), len(half)).p for i, a in enumerate(found)]
    return sum(value <= 0.05 for value in p), sum(value == value for value in p)


@contextmanager
def _tiny_fits() -> Iterator[None]:
    """Fit without threads and input checks, which cost more than hundreds of tiny fits."""
    from sklearn import config_context
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1), config_context(assume_finite=True, skip_parameter_validation=True):
        yield


def _out_of_fold(
    vectors: np.ndarray, labels: np.ndarray, folds: int, rng: np.random.Generator
) -> tuple[np.ndarray, float]:
    """Return which names are predicted correctly out of fold, and the training accuracy."""
    from sklearn.linear_model import LogisticRegression

    fold = np.empty(len(labels), np.int64)
    for group in np.unique(labels):
        at = rng.permutation(np.flatnonzero(labels == group))
        fold[at] = (np.arange(len(at)) + rng.integers(folds)) % folds
    right = np.zeros(len(labels), bool)
    train = []
    for number in range(folds):
        test = fold == number
        center, spread = vectors[~test].mean(axis=0), vectors[~test].std(axis=0)
        scaled = (vectors - center) / np.where(spread > 0, spread, 1.0)
        fit = LogisticRegression(max_iter=1_000, C=0.1).fit(scaled[~test], labels[~test])
        correct = fit.predict(scaled) == labels
        right[test] = correct[test]
        train.append(correct[~test].mean())
    return right, float(np.mean(train))


def plane_table(
    names: Sequence[str], groups: Sequence[str], vectors: np.ndarray, seed: int = 0
) -> pa.Table:
    """Return names with their groups and, for eight or more, their place on a plane by t-SNE."""
    columns: dict[str, Any] = {"name": list(names), "group": list(groups)}
    if len(vectors) >= 8 and vectors.shape[1] and np.ptp(vectors, axis=0).any():
        from sklearn.manifold import TSNE

        perplexity = min(30.0, (len(vectors) - 1) / 3)
        with _tiny_fits():
            fit = TSNE(2, init="random", perplexity=perplexity, random_state=seed)
            made = np.asarray(fit.fit_transform(vectors), np.float64)
        columns |= {"x": made[:, 0], "y": made[:, 1]}
    return pa.table(columns)

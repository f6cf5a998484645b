"""The classes of WEFE, over evenhand's metrics: change the import, keep the code.

    from wefe.query import Query                from evenhand.compat.wefe import Query
    from wefe.word_embedding_model import ...   from evenhand.compat.wefe import WordEmbeddingModel
    from wefe.metrics import WEAT, RNSB         from evenhand.compat.wefe import WEAT, RNSB

Calls and result keys are those of WEFE 1.0.1 (Badilla et al. 2020, IJCAI). Where its numbers are
wrong ours differ; docs/papers/kato-miyao.md lists every difference.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.compat.wefe.metrics import ECT, MAC, RIPA, RND, RNSB, WEAT, Metric
from evenhand.compat.wefe.query import Query, WordEmbeddingModel
from evenhand.errors import MissingExtra, SpecError, unknown
from evenhand.words.lexicons import weat

__all__ = [
    "ECT",
    "MAC",
    "RIPA",
    "RND",
    "RNSB",
    "WEAT",
    "Metric",
    "Query",
    "Results",
    "WordEmbeddingModel",
    "load_weat",
    "run_queries",
]


AGGREGATIONS: dict[str, Callable[[list[float]], float]] = {
    "sum": lambda v: float(np.sum(v)),
    "abs_sum": lambda v: float(np.sum(np.abs(v))),
    "avg": lambda v: float(np.mean(v)),
    "abs_avg": lambda v: float(np.mean(np.abs(v))),
}
# WEFE's name of a list -> the test and the set it is in.
LISTS = {
    "flowers": "weat1.x",
    "insects": "weat1.y",
    "pleasant_5": "weat1.a",
    "unpleasant_5a": "weat1.b",
    "instruments": "weat2.x",
    "weapons": "weat2.y",
    "european_american_names_5": "weat3.x",
    "african_american_names_5": "weat3.y",
    "unpleasant_5b": "weat3.b",
    "european_american_names_7": "weat4.x",
    "african_american_names_7": "weat4.y",
    "pleasant_9": "weat5.a",
    "unpleasant_9": "weat5.b",
    "male_names": "weat6.x",
    "female_names": "weat6.y",
    "career": "weat6.a",
    "family": "weat6.b",
    "math": "weat7.x",
    "arts": "weat7.y",
    "male_terms": "weat7.a",
    "female_terms": "weat7.b",
    "science": "weat8.x",
    "arts_2": "weat8.y",
    "male_terms_2": "weat8.a",
    "female_terms_2": "weat8.b",
    "mental_disease": "weat9.x",
    "physical_disease": "weat9.y",
    "temporary": "weat9.a",
    "permanent": "weat9.b",
    "young_people_names": "weat10.x",
    "old_people_names": "weat10.y",
}


def load_weat() -> dict[str, list[str]]:
    """Return the word lists of WEAT under WEFE's names, with the words of the paper.

    >>> load_weat()["career"][:2]
    ['executive', 'management']
    """
    return {
        name: list(getattr(weat(place.split(".")[0]), place[-1])) for name, place in LISTS.items()
    }


@dataclass(frozen=True)
class Results:
    """Results by model and query: `rows[model][query]`; `full` holds the whole dictionaries.

    `to_pandas()` gives the table that WEFE returns.
    """

    rows: Mapping[str, Mapping[str, float]]
    full: Mapping[str, Mapping[str, dict[str, Any]]] = field(repr=False)

    def __getitem__(self, model: str) -> Mapping[str, float]:
        return self.rows[model]

    def to_pandas(self) -> Any:
        """Return a DataFrame, models by queries."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise MissingExtra(
                "to_pandas() needs 'pandas', which is not installed. Install it with: "
                "pip install pandas. Without it, use .rows"
            ) from error
        return pandas.DataFrame.from_dict(self.rows, orient="index")


def run_queries(
    metric: type[Metric],
    queries: Sequence[Query],
    models: Sequence[WordEmbeddingModel],
    *,
    queries_set_name: str = "Unnamed queries set",
    lost_vocabulary_threshold: float = 0.2,
    metric_params: Mapping[str, Any] | None = None,
    generate_subqueries: bool = False,
    aggregate_results: bool = False,
    aggregation_function: str | Callable[[list[float]], float] = "abs_avg",
    return_only_aggregation: bool = False,
    warn_not_found_words: bool = False,
) -> Results:
    """Compute one metric for every query and model.

    Args:
        metric: the class, such as WEAT.
        metric_params: passed to `run_query`.
        generate_subqueries: cut queries of a larger template into those the metric takes.
        aggregate_results: add a column over the queries; NaN when any of them is.
        aggregation_function: "sum", "abs_sum", "avg", "abs_avg", or a function.
        return_only_aggregation: leave the queries themselves out.
    """
    if not queries or not models:
        raise SpecError("run_queries: pass at least one query and one model.")
    params = {**(metric_params or {}), "lost_vocabulary_threshold": lost_vocabulary_threshold}
    params["warn_not_found_words"] = warn_not_found_words
    asked = list(queries)
    if generate_subqueries:
        asked = [part for q in queries for part in q.get_subqueries(metric.metric_template)]
    names = _distinct([query.query_name for query in asked])
    full: dict[str, dict[str, dict[str, Any]]] = {}
    rows: dict[str, dict[str, float]] = {}
    for label, model in zip(_distinct([m.name for m in models]), models, strict=True):
        done = [metric().run_query(query, model, **params) for query in asked]
        full[label] = dict(zip(names, done, strict=True))
        values = [float(one["result"]) for one in done]
        rows[label] = {} if return_only_aggregation else dict(zip(names, values, strict=True))
        if aggregate_results or return_only_aggregation:
            text, value = _aggregate(values, aggregation_function)
            rows[label][f"{metric.metric_short_name}: {queries_set_name} {text}"] = value
    return Results(rows, full)


def _aggregate(
    values: list[float], function: str | Callable[[list[float]], float]
) -> tuple[str, float]:
    if callable(function):
        return "custom aggregation", float(function(values))
    if function not in AGGREGATIONS:
        raise SpecError(unknown("aggregation", function, AGGREGATIONS))
    lost = any(math.isnan(value) for value in values)
    return f"{function} score", math.nan if lost else AGGREGATIONS[function](values)


def _distinct(names: list[str]) -> list[str]:
    """Number repeated names, so that all differ."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out

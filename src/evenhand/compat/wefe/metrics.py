"""WEFE's metrics over evenhand's: calls and keys of WEFE, plus coverage and a reason."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from evenhand.compat.wefe.query import Preprocessor, Query, Stacked, WordEmbeddingModel
from evenhand.errors import DataError, SpecError, unknown
from evenhand.metrics import association, embedding
from evenhand.stats.permutation import two_sample

Floats = npt.NDArray[np.float64]
Set = dict[str, Floats]
TAILS = {"right-sided": "p_right", "left-sided": "p_left", "two-sided": "p_two_sided"}
LISTED = 5_000_000
"""Maximum number of partitions that an exact test enumerates."""


class Metric:
    """Base of all metrics: looks words up, rejects unfitting queries, gives NaN with a reason.

    Every result has `query_name, result`, the metric's own keys, and `n_lost` (by set),
    `words_used`, `words_missing` and `reason` (None, or why the numbers are NaN).
    """

    metric_template: ClassVar[tuple[int | str, int | str]]
    metric_name: ClassVar[str]
    metric_short_name: ClassVar[str]
    empty: ClassVar[dict[str, Any]]

    def run_query(
        self,
        query: Query,
        model: WordEmbeddingModel,
        lost_vocabulary_threshold: float = 0.2,
        preprocessors: Sequence[Preprocessor] = ({},),
        strategy: str = "first",
        normalize: bool = False,
        warn_not_found_words: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """Compute the metric for one query and model.

        Args:
            query, model: as in WEFE.
            lost_vocabulary_threshold: the share of words that a set may lose.
            preprocessors: spellings to try, in order: `[{}, {"lowercase": True}]`.
            strategy: "first" spelling found, or "all".
            normalize: scale vectors to length one first.
            warn_not_found_words: log the words lost.
            options: those of the metric.
        """
        self._check(query, model)
        self._check_options(options)
        targets, lost_t = self._sets(query.target_sets, model, preprocessors, strategy, normalize)
        attributes, lost_a = self._sets(
            query.attribute_sets, model, preprocessors, strategy, normalize
        )
        names = [*query.target_sets_names, *query.attribute_sets_names]
        lost = [*lost_t, *lost_a]
        if warn_not_found_words and any(lost):
            text = {n: part for n, part in zip(names, lost, strict=True) if part}
            logging.getLogger(__name__).warning("words without a vector: %s", text)
        found = [*targets, *attributes]
        listed = [*query.target_sets, *query.attribute_sets]
        reason = _reason(names, listed, found, lost, lost_vocabulary_threshold)
        body = self.empty if reason else self.compute(query, targets, attributes, **options)
        return {
            "query_name": query.query_name,
            **body,
            "n_lost": {n: len(part) for n, part in zip(names, lost, strict=True)},
            "words_used": {n: list(part) for n, part in zip(names, found, strict=True)},
            "words_missing": [word for part in lost for word in part],
            "reason": body.get("reason") or reason,
        }

    def compute(
        self, query: Query, targets: list[Set], attributes: list[Set], **options: Any
    ) -> dict[str, Any]:
        """Return the metric's own keys, `result` first."""
        raise NotImplementedError

    def _check_options(self, options: Mapping[str, Any]) -> None:
        """Reject unknown options, even if nothing is computed."""
        accepted = self.compute.__kwdefaults__ or {}
        for name in options:
            if name not in accepted:
                raise SpecError(unknown("option", name, accepted, where=self.metric_short_name))

    def _check(self, query: Query, model: WordEmbeddingModel) -> None:
        if not isinstance(query, Query) or not isinstance(model, WordEmbeddingModel):
            raise SpecError(
                f"{self.metric_short_name}: pass a Query and a WordEmbeddingModel of "
                f"evenhand.compat.wefe; got {type(query).__name__} and {type(model).__name__}."
            )
        for kind, own, wanted in zip(
            ("target", "attribute"), query.template, self.metric_template, strict=True
        ):
            if wanted not in ("n", own):
                raise SpecError(
                    f"{self.metric_short_name}: query {query.query_name!r} has {own} {kind} sets. "
                    f"Accepted: {wanted}. Make smaller ones with: query.get_subqueries"
                    f"({self.metric_template})"
                )

    def _sets(
        self,
        sets: list[list[str]],
        model: WordEmbeddingModel,
        preprocessors: Sequence[Preprocessor],
        strategy: str,
        normalize: bool,
    ) -> tuple[list[Set], list[list[str]]]:
        found, lost = [], []
        for words in sets:
            here, missing = model.find(words, preprocessors=preprocessors, strategy=strategy)
            if normalize:
                here = {word: association.unit_rows(v)[0] for word, v in here.items()}
            found.append(here)
            lost.append(missing)
        return found, lost


def _reason(
    names: list[str],
    listed: list[list[str]],
    found: list[Set],
    lost: list[list[str]],
    threshold: float,
) -> str | None:
    for name, words, here, missing in zip(names, listed, found, lost, strict=True):
        if not here:
            return f"{name}: none of its {len(words)} words has a vector"
        if len(missing) / len(words) > threshold:
            return (
                f"{name}: {len(missing)} of {len(words)} words have no vector, more than "
                f"lost_vocabulary_threshold={threshold}"
            )
    return None


def _rows(part: Set) -> Floats:
    whole = part.rows if isinstance(part, Stacked) else None
    return np.stack(list(part.values())) if whole is None else whole


class WEAT(Metric):
    """WEAT: `weat` is the statistic over the mean associations of the sets, as in WEFE.

    Options: `return_effect_size`, `calculate_p_value`, `p_value_test_type` ("right-sided",
    "left-sided", "two-sided"), `p_value_method` ("approximate", "exact"), `p_value_iterations`,
    `seed`. p is that of a permutation test over partitions of the target words: all of them when
    there are at most 200,000 (5,000,000 with "exact"), else seeded ones.
    """

    metric_template = (2, 2)
    metric_name = "Word Embedding Association Test"
    metric_short_name = "WEAT"
    empty: ClassVar[dict[str, Any]] = {
        "result": math.nan,
        "weat": math.nan,
        "effect_size": math.nan,
        "p_value": math.nan,
        "p_method": None,
    }

    def compute(  # type: ignore[override]
        self,
        query: Query,
        targets: list[Set],
        attributes: list[Set],
        *,
        return_effect_size: bool = False,
        calculate_p_value: bool = False,
        p_value_test_type: str = "right-sided",
        p_value_method: str = "approximate",
        p_value_iterations: int = 10_000,
        p_value_verbose: bool = False,
        seed: int = 0,
    ) -> dict[str, Any]:
        if p_value_test_type not in TAILS:
            raise SpecError(unknown("p_value_test_type", p_value_test_type, TAILS))
        if p_value_method not in ("approximate", "exact"):
            raise SpecError(unknown("p_value_method", p_value_method, ("approximate", "exact")))
        found = association.weat(*(_rows(part) for part in (*targets, *attributes)))
        p, method = math.nan, None
        if calculate_p_value:
            limit = LISTED if p_value_method == "exact" else 200_000
            chance = two_sample(
                found.s_x, found.s_y, samples=p_value_iterations, seed=seed, max_exact=limit
            )
            p, method = getattr(chance, TAILS[p_value_test_type]), chance.method
        result = found.effect_size if return_effect_size else found.statistic
        return {
            "result": result,
            "weat": found.statistic,
            "effect_size": found.effect_size,
            "p_value": p,
            "p_method": method,
        }


class RNSB(Metric):
    """RNSB: KL divergence of the negative probabilities of all target words from uniform.

    One fit to the optimum takes the place of a solver with seeds; no words are held out. `holdout`,
    `n_iterations`, `random_state` and `print_model_evaluation` are accepted and change nothing:
    the result is WEFE's with `holdout=False`. With two target sets, `signed` is the form of Kato &
    Miyao (2024), positive when the second set leans to the second attribute.
    """

    metric_template = ("n", 2)
    metric_name = "Relative Negative Sentiment Bias"
    metric_short_name = "RNSB"
    empty: ClassVar[dict[str, Any]] = {
        "result": math.nan,
        "rnsb": math.nan,
        "signed": math.nan,
        "negative_sentiment_probabilities": {},
        "negative_sentiment_distribution": {},
    }

    def compute(  # type: ignore[override]
        self,
        query: Query,
        targets: list[Set],
        attributes: list[Set],
        *,
        n_iterations: int = 1,
        random_state: int | None = None,
        holdout: bool = False,
        print_model_evaluation: bool = False,
    ) -> dict[str, Any]:
        words = [word for part in targets for word in part]
        p = association.second_probabilities(
            np.concatenate([_rows(part) for part in targets]),
            *map(_rows, attributes),
            normalise=False,
        )
        signed = math.nan
        if len(targets) == 2:
            means = p[: len(targets[0])].mean(), p[len(targets[0]) :].mean()
            signed = float((means[1] - means[0]) / (means[0] + means[1]))
        kl = association.uneven(p)
        return {
            "result": kl,
            "rnsb": kl,
            "signed": signed,
            "negative_sentiment_probabilities": dict(zip(words, p.tolist(), strict=True)),
            "negative_sentiment_distribution": dict(
                zip(words, (p / p.sum()).tolist(), strict=True)
            ),
        }


class RND(Metric):
    """RND: mean difference of distances to the two target means. Option `distance`: norm, cos."""

    metric_template = (2, 1)
    metric_name = "Relative Norm Distance"
    metric_short_name = "RND"
    empty: ClassVar[dict[str, Any]] = {
        "result": math.nan,
        "rnd": math.nan,
        "distance_by_word": {},
    }

    def compute(  # type: ignore[override]
        self, query: Query, targets: list[Set], attributes: list[Set], *, distance: str = "norm"
    ) -> dict[str, Any]:
        found = embedding.rnd(
            *map(_rows, (*targets, *attributes)), distance=distance, normalise=False
        )
        pairs = zip(attributes[0], found.by_word.tolist(), strict=True)
        by_word = dict(sorted(pairs, key=lambda pair: pair[1]))
        return {"result": found.value, "rnd": found.value, "distance_by_word": by_word}


class MAC(Metric):
    """MAC: mean cosine distance of targets and attributes; 1 is ideal."""

    metric_template = ("n", "n")
    metric_name = "Mean Average Cosine Similarity"
    metric_short_name = "MAC"
    empty: ClassVar[dict[str, Any]] = {"result": math.nan, "mac": math.nan, "targets_eval": {}}

    def compute(
        self, query: Query, targets: list[Set], attributes: list[Set], **options: Any
    ) -> dict[str, Any]:
        parts = [embedding.mac(_rows(t), [_rows(a) for a in attributes]) for t in targets]
        value = float(np.concatenate([part.by_word.ravel() for part in parts]).mean())
        names = query.attribute_sets_names
        by_word = {
            name: {
                word: dict(zip(names, row.tolist(), strict=True))
                for word, row in zip(words, part.by_word, strict=True)
            }
            for name, words, part in zip(query.target_sets_names, targets, parts, strict=True)
        }
        return {"result": value, "mac": value, "targets_eval": by_word}


class ECT(Metric):
    """ECT: rank correlation of the attributes' similarities to the two target means."""

    metric_template = (2, 1)
    metric_name = "Embedding Coherence Test"
    metric_short_name = "ECT"
    empty: ClassVar[dict[str, Any]] = {"result": math.nan, "ect": math.nan}

    def compute(
        self, query: Query, targets: list[Set], attributes: list[Set], **options: Any
    ) -> dict[str, Any]:
        value = embedding.ect(*map(_rows, (*targets, *attributes)), normalise=False)
        return {"result": value, "ect": value}


class RIPA(Metric):
    """RIPA: pairs are the words at the same place of the two target lists.

    A pair with a missing word is left out whole; WEFE pairs the words that remain by position.
    """

    metric_template = (2, 1)
    metric_name = "Relational Inner Product Association"
    metric_short_name = "RIPA"
    empty: ClassVar[dict[str, Any]] = {"result": math.nan, "ripa": math.nan, "word_values": {}}

    def run_query(self, query: Query, model: WordEmbeddingModel, *args: Any, **options: Any) -> Any:
        """Compute like `Metric.run_query`; the target lists must be of equal length."""
        self._check(query, model)
        if len(query.target_sets[0]) != len(query.target_sets[1]):
            raise SpecError(
                f"RIPA: target sets of {len(query.target_sets[0])} and {len(query.target_sets[1])} "
                "words are not pairs. Accepted: equal lengths."
            )
        keep = {k: options[k] for k in ("preprocessors", "strategy") if k in options}
        names = query.target_sets_names
        full = [
            [bool(model.find([word], **keep)[0]) for word in words] for words in query.target_sets
        ]
        both = [k for k, pair in enumerate(zip(*full, strict=True)) if all(pair)]
        result = super().run_query(query, model, *args, **options)
        if result["reason"] or all(all(part) for part in full):
            return result
        pairs = [[words[k] for k in both] for words in query.target_sets]
        if not both:
            return {**result, **self.empty, "reason": "no pair has both vectors"}
        inner = Query(pairs, query.attribute_sets, names, query.attribute_sets_names)
        return {**result, **_own(super().run_query(inner, model, *args, **options), self.empty)}

    def compute(
        self, query: Query, targets: list[Set], attributes: list[Set], **options: Any
    ) -> dict[str, Any]:
        if len(targets[0]) != len(targets[1]):
            return dict(self.empty)
        try:
            found = embedding.ripa(*map(_rows, (*targets, *attributes)))
        except DataError as error:
            return {**self.empty, "reason": str(error)}
        values = {
            word: {"mean": mean, "std": spread}
            for word, mean, spread in zip(
                attributes[0], found.by_word.tolist(), found.spread.tolist(), strict=True
            )
        }
        return {"result": found.value, "ripa": found.value, "word_values": values}


def _own(result: dict[str, Any], keys: dict[str, Any]) -> dict[str, Any]:
    return {key: result[key] for key in keys}

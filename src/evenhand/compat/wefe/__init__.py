"""The classes of WEFE, over evenhand's metrics: change the import, keep the code.

    from wefe.query import Query                from evenhand.compat.wefe import Query
    from wefe.word_embedding_model import ...   from evenhand.compat.wefe import WordEmbeddingModel
    from wefe.metrics import WEAT, RNSB         from evenhand.compat.wefe import WEAT, RNSB

Calls and result keys are those of WEFE 1.0.1 (Badilla et al. 2020, IJCAI). Where its numbers are
wrong ours differ; docs/papers/kato-miyao.md lists every difference.
"""

from __future__ import annotations

from evenhand.compat.wefe.metrics import ECT, MAC, RIPA, RND, RNSB, WEAT, Metric
from evenhand.compat.wefe.model import WordEmbeddingModel
from evenhand.compat.wefe.queries import Results, load_weat, run_queries
from evenhand.compat.wefe.query import Query

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

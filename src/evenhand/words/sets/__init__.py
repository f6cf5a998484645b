"""Making word sets: extraction by PMI, expansion by neighbours, dialect and name labels."""

from evenhand.words.sets.dialect import DialectModel, read_dialect_model
from evenhand.words.sets.expansion import Expansion, expand, expand_tests
from evenhand.words.sets.names import NameLabel, label_names
from evenhand.words.sets.pmi import PmiRow, pmi_candidates, pmi_ranking, pmi_table

__all__ = [
    "DialectModel",
    "Expansion",
    "NameLabel",
    "PmiRow",
    "expand",
    "expand_tests",
    "label_names",
    "pmi_candidates",
    "pmi_ranking",
    "pmi_table",
    "read_dialect_model",
]

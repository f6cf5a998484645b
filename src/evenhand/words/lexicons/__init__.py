"""Names, occupations, nationalities, word sets and templates, as data with their sources.

Every lexicon is one TOML file with a title, a source, a licence and caveats. Files are read
when asked for. See docs/lexicons.md.

>>> from evenhand.words import lexicons
>>> lexicons.weat("weat6").x_label
'male names'
"""

from __future__ import annotations

from evenhand.words.lexicons.files import (
    Lexicon,
    WordSets,
    available,
    load,
    read_word_sets,
    weat,
    weat_tests,
)
from evenhand.words.lexicons.people import (
    ContextPair,
    GenderTerm,
    Group,
    article,
    context_pairs,
    definitional_sets,
    gender_terms,
    groups,
    prompts,
    pronoun_sets,
    union,
)
from evenhand.words.lexicons.questions import (
    FORMS,
    SLOTS,
    SOCIAL_CLASSES,
    Attribute,
    Subject,
    Template,
    attributes,
    occupations,
    subjects,
    templates,
)

__all__ = [
    "FORMS",
    "SLOTS",
    "SOCIAL_CLASSES",
    "Attribute",
    "ContextPair",
    "GenderTerm",
    "Group",
    "Lexicon",
    "Subject",
    "Template",
    "WordSets",
    "article",
    "attributes",
    "available",
    "context_pairs",
    "definitional_sets",
    "gender_terms",
    "groups",
    "load",
    "occupations",
    "prompts",
    "pronoun_sets",
    "read_word_sets",
    "subjects",
    "templates",
    "union",
    "weat",
    "weat_tests",
]

"""Text for word vectors: reading, cleaning, labelling and balancing corpora of any size."""

from evenhand.corpora.balancing import (
    BalancedView,
    LineFlags,
    balanced,
    choose_sets,
    label_corpus,
    labels_of,
    plan,
    read_labels,
)
from evenhand.corpora.text import (
    Cleaned,
    Corpus,
    clean_corpus,
    clean_tweet,
    open_corpus,
    read_tweets,
    read_wikipedia,
    split_sentences,
    text_tokens,
    tweet_tokens,
)
from evenhand.words.lexicons.files import WordSets

__all__ = [
    "BalancedView",
    "Cleaned",
    "Corpus",
    "LineFlags",
    "WordSets",
    "balanced",
    "choose_sets",
    "clean_corpus",
    "clean_tweet",
    "label_corpus",
    "labels_of",
    "open_corpus",
    "plan",
    "read_labels",
    "read_tweets",
    "read_wikipedia",
    "split_sentences",
    "text_tokens",
    "tweet_tokens",
]

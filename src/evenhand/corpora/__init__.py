"""Text for word vectors: reading, cleaning, labelling and balancing corpora of any size."""

from evenhand.corpora.balancing import BalancedView, balanced, plan
from evenhand.corpora.cleaning import Cleaned, clean_corpus
from evenhand.corpora.files import Corpus, open_corpus
from evenhand.corpora.labels import Labels, choose_sets, label_corpus, labels_of, read_labels
from evenhand.corpora.tokens import text_tokens, tweet_tokens
from evenhand.corpora.tweets import clean_tweet, read_tweets
from evenhand.corpora.wikipedia import read_wikipedia, split_sentences
from evenhand.words.lexicons.word_sets import WordSets

__all__ = [
    "BalancedView",
    "Cleaned",
    "Corpus",
    "Labels",
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

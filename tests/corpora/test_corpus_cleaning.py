"""Cleaning: the order of steps, the cut-offs, what is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.corpora import clean_corpus, clean_tweet, open_corpus, split_sentences, tweet_tokens
from evenhand.corpora.text import text_tokens, tokenizer
from evenhand.errors import DataError, SpecError


def tweet(text="hello", **fields):
    return json.dumps({"text": text, "lang": "en"} | fields)


@pytest.mark.parametrize(("raw", "cleaned"), [
    ("&amp;lt;3 &amp;#64;bob", "<3 <MENTION>"),  # unescaped until nothing changes, then mentions
    ("#BlackLives#Matter", "<HASH> blacklives <HASH> matter"),
    ("see http://a.b/#top now", "see <URL> <HASH> top now"),  # hash signs come before addresses
    ("HTTPS://T.CO/X", "<URL>"),  # lower case comes before addresses
    ("@josé hi", "<MENTION> é hi"),  # names are ASCII
    ("a\r\nb\u2028c\u0085d\x0be", "a b c d e"),
])  # fmt: skip
def test_tweets_are_cleaned_in_the_published_order(raw, cleaned):
    assert clean_tweet(raw) == cleaned


@given(st.text())
def test_cleaned_tweets_have_single_spaces_and_no_hash_or_capital(raw):
    text = clean_tweet(raw)
    bare = text.replace("<HASH>", "").replace("<MENTION>", "").replace("<URL>", "")
    assert text == " ".join(text.split())
    assert "#" not in bare
    assert bare == bare.lower()


@given(st.text())
def test_no_token_holds_white_space_and_no_character_is_lost(raw):
    for cut in (tweet_tokens, text_tokens):
        tokens = cut(raw)
        assert all(token and not any(c.isspace() for c in token) for token in tokens)
        assert "".join(tokens) == "".join(raw.split())


def test_retweets_other_languages_withheld_tweets_and_notices_are_left_out(tmp_path):
    path = tmp_path / "stream.json"
    path.write_text("\n".join([
        tweet("Good day"), tweet("bonjour", lang="fr"), tweet(retweeted_status={"id": 1}),
        tweet(withheld_in_countries=["DE"]), tweet(withheld_copyright=True),
        json.dumps({"delete": {}}), "", tweet("cut", extended_tweet={"full_text": "Good\nnight"}),
    ]))  # fmt: skip
    made = clean_corpus(path, "tweets", tmp_path / "out.txt", least=1)
    assert list(open_corpus(made.path).lines()) == ["good day", "good night"]
    assert made.dropped == {"not English": 1, "retweet": 1, "withheld": 2, "no tweet": 1}


@pytest.mark.parametrize(("kind", "kept"), [("wikipedia", 11), ("tweets", 10)])
def test_rare_tokens_become_unknown_at_the_published_cut_offs(tmp_path, kind, kept):
    path = tmp_path / "a.txt"
    path.write_text("often\n" * kept + "rare\n" * (kept - 1))
    made = clean_corpus(path, kind, tmp_path / "out.txt.xz")
    lines = list(open_corpus(made.path).lines())
    assert lines == ["often"] * kept + ["<UNK>"] * (kept - 1)
    assert (made.types, made.unknown, made.tokens) == (1, kept - 1, 2 * kept - 1)


def test_wikipedia_extracts_lose_their_marks_and_are_cut_into_sentences(tmp_path):
    folder = tmp_path / "wiki"
    folder.mkdir()
    (folder / "a").write_text('<doc id="1" title="T">\nDr. Ann came. She won\'t go!\n</doc>\n')
    (folder / "b").write_text(json.dumps({"id": "2", "text": "One.\n\nTwo is here."}) + "\n")
    made = clean_corpus(folder, "wikipedia", tmp_path / "out.txt", least=1)
    assert list(open_corpus(made.path).lines()) == [
        "dr . ann came .", "she wo n't go !", "one .", "two is here .",
    ]  # fmt: skip


def test_as_published_uses_nltk_and_opens_with_an_unknown_token(tmp_path):
    pytest.importorskip("nltk")
    path = tmp_path / "a.txt"
    path.write_text('It isn\'t "far".\n')
    made = clean_corpus(path, "wikipedia", tmp_path / "out.txt", least=1, as_published=True)
    assert list(open_corpus(made.path).lines()) == ["<UNK> it is n't `` far '' ."]
    assert tokenizer("tweets", "nltk")("<HASH> don't")[0] == "<HASH>"


def test_broken_json_names_the_line(tmp_path):
    path = tmp_path / "stream.json"
    path.write_text(tweet() + "\n{broken\n")
    with pytest.raises(DataError, match=r"stream.json, line 2: is not JSON"):
        clean_corpus(path, "tweets", tmp_path / "out.txt")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["stream.json"]


def test_nothing_left_and_unknown_kinds_are_said(tmp_path):
    path = tmp_path / "stream.json"
    path.write_text(tweet(lang="fr") + "\n")
    with pytest.raises(DataError, match="no line is left after cleaning .*not English 1"):
        clean_corpus(path, "tweets", tmp_path / "out.txt")
    with pytest.raises(SpecError, match="unknown kind of corpus 'twets'. Did you mean 'tweets'"):
        clean_corpus(path, "twets", tmp_path / "out.txt")


def test_sentences_are_not_cut_after_initials_or_within_quotes():
    text = 'He met J. R. Smith of the U.S. Navy. "Go!" she said. It was no. 5.'
    assert split_sentences(text) == [
        "He met J. R. Smith of the U.S. Navy.", '"Go!" she said.', "It was no. 5.",
    ]  # fmt: skip

"""Articles by sound, and a capital A that is none."""

from __future__ import annotations

import pytest

from evenhand.words.lexicons.people import agreed, article

AN = """hour honest heir honour Asian Uzbek umbrella usher ugly unidentified uninformed onion X-ray
MBA FBI SUV LGBT EU H-bomb M.D MI6 8-year-old 11-year-old 18th 80 Élan Österreicher Yvonne ISIS
""".split()
A = """university European one-time once unicorn Ugandan Ukrainian Uruguayan Uighur unanimous usual
utility useful urologist ewe Honduran Honolulu historian UFO US URL U-turn NASA UNESCO NATO PhD
1-year-old 19th 110 T-shirt Yemeni Jew""".split()


@pytest.mark.parametrize("word", AN)
def test_an_before_a_vowel_sound(word: str) -> None:
    assert article(word) == "an"
    assert agreed(f"It was a {word}.") == agreed(f"It was an {word}.") == f"It was an {word}."


@pytest.mark.parametrize("word", A)
def test_a_before_a_consonant_sound(word: str) -> None:
    assert article(word) == "a"
    assert agreed(f"It was a {word}.") == agreed(f"It was an {word}.") == f"It was a {word}."


def test_a_capital_a_is_an_article_only_where_a_sentence_begins() -> None:
    assert agreed("A Asian man. A Arab man.") == "An Asian man. An Arab man."
    assert agreed("Plan A is open; an Plan is not.") == "Plan A is open; a Plan is not."
    assert agreed("a 'honest' man, a “hour”") == "an 'honest' man, an “hour”"

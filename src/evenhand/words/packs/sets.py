"""Word sets of association tests in the language of a pack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import WordSets, read_word_sets
from evenhand.words.packs.files import Pack

SETS = ("x", "y", "a", "b")


def pack_tests(pack: Pack, names: Sequence[str] = ()) -> list[WordSets]:
    """The association tests of a pack, all or by name.

    >>> from evenhand.words.packs import load_pack
    >>> [test.name for test in pack_tests(load_pack("de"))]
    ['flowers_insects', 'gender_career', 'gender_science', 'gender_valence']
    """
    known = read_word_sets(pack.part("words").path)
    for name in names:
        if name not in known:
            where = f"the pack of {pack.name}"
            raise SpecError(unknown("test", name, known, where=where))
    return [known[name] for name in names or known]


def pack_words(pack: Pack) -> list[str]:
    """Single words of a pack, from which random attribute words are drawn.

    >>> from evenhand.words.packs import load_pack
    >>> len(pack_words(load_pack("zh"))) > 100
    True
    """
    return list(dict.fromkeys(w for w in _all(pack) if w and " " not in w and "'" not in w))


def _all(pack: Pack) -> Iterator[str]:
    for test in pack_tests(pack):
        yield from (word for key in SETS for word in getattr(test, key))
    for row in pack.part("occupations").rows("attributes"):
        yield from (str(row[f]) for f in (*pack.genders, "plain") if isinstance(row.get(f), str))
    if "swaps" in pack.parts:
        for pair in pack.part("swaps").data.get("pairs", ()):
            yield from map(str, pair)

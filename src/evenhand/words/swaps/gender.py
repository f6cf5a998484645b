"""Counterfactual swaps of gender: the same sentence about another gender, by hand-made tables.

    He gave her his book.     ->   She gave him her book.

Case, possessives and titles are kept; "her" becomes "him" or "his" and "his" becomes "her" or
"hers" by the word that follows. Doubtful words and words without a counterpart ("mankind", names,
"pregnant") are reported with the result, so that a user can drop such sentences.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import load
from evenhand.words.lexicons.people import article, gender_terms, groups

PLURAL = {
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "goes": "go",
    "s": "re",
    "isn": "aren",
    "wasn": "weren",
    "hasn": "haven",
    "doesn": "don",
    "focuses": "focus",
    "biases": "bias",
    "aches": "ache",
}
AFTER_HAS = ("been", "got", "gotten", "had", "become")
AFTER_IS = ("a", "an", "the", "not", "my", "your", "their", "here", "there", "very", "so")


def plural_verb(old: str, after: str = "") -> tuple[str, str]:
    """Return the form of a verb that "they" takes, and a doubt or "".

    Args:
        old: a verb in the third person, or the "s" of "she's".
        after: the word after it, in small letters.

    >>> [plural_verb(v)[0] for v in ("is", "realizes", "watches", "carries", "dies", "can")]
    ['are', 'realize', 'watch', 'carry', 'die', 'can']
    >>> plural_verb("s", "been"), plural_verb("s", "late")
    (('ve', ''), ('re', "'s after a pronoun: 'is' or 'has'"))
    """
    low = old.lower()
    if low == "s" and after in AFTER_HAS:
        return like(old, "ve"), ""
    if low in PLURAL:
        sure = low != "s" or after in AFTER_IS or after.endswith("ing")
        return like(old, PLURAL[low]), "" if sure else "'s after a pronoun: 'is' or 'has'"
    if not low.endswith("s") or low.endswith("ss") or len(low) < 3:
        return old, ""
    if low.endswith("ies") and len(low) > 4:
        return old[:-3] + "y", ""
    if low.endswith(("shes", "ches", "xes", "sses", "zzes", "oes")):
        return old[:-2], ""
    return old[:-1], ""


def like(old: str, new: str) -> str:
    """Return the new word in the case of the old one.

    >>> like("HER", "his"), like("Her", "his"), like("her", "his")
    ('HIS', 'His', 'his')
    """
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new


TARGETS = ("other", "female", "male", "neutral")
WORD = re.compile(r"[A-Za-z]+(?:['’](?:am))?")
WORD_LISTS = (
    "function_words",
    "numbers",
    "see_verbs",
    "give_verbs",
    "base_verbs",
    "kin",
    "noun_verbs",
    "name_verbs",
    "state_verbs",
    "states",
    "after_object",
    "times",
    "owned",
    "not_verbs",
)
ARTICLES = ("a", "an", "A", "An", "AN")
TURNED = ("is", "was", "has", "does", "isn", "wasn", "hasn", "doesn")
PRONOUNS = frozenset({"he", "him", "his", "himself", "she", "her", "hers", "herself"})


@dataclass(frozen=True)
class Swapped:
    """A text and its counterfactual.

    Attributes:
        text, swapped: before and after.
        changes: (position, old, new) of every exchanged word; "a" and "an" follow unlisted.
        doubtful: choices that the tables cannot be sure of.
        kept: what was left as it is, and why.
    """

    text: str
    swapped: str
    changes: tuple[tuple[int, str, str], ...] = ()
    doubtful: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """True if a word was exchanged and none is doubtful."""
        return bool(self.changes) and not self.doubtful


@dataclass(frozen=True)
class _Tables:
    male: dict[str, str]
    female: dict[str, str]
    neutral: dict[str, str]
    words: dict[str, frozenset[str]]
    names: dict[str, tuple[str, str]]


@cache
def tables() -> _Tables:
    lexicon = load("swap_terms")
    rows = [
        (t.masculine, t.feminine, t.neutral)
        for t in gender_terms()
        if not t.ambiguous and "pronoun" not in t.part
    ]
    rows += [tuple(row) for row in lexicon.data["nouns"]]
    male = {m.lower().rstrip("."): f.rstrip(".") for m, f, _ in rows}
    female = {f.lower().rstrip("."): m.rstrip(".") for m, f, _ in rows if f != m}
    neutral = {w.lower().rstrip("."): n.rstrip(".") for m, f, n in rows if n for w in (m, f)}
    female |= {k: v for k, v in lexicon.table("only").items() if k not in male}
    male |= {k: v for k, v in lexicon.table("only").items() if k in ("househusband", "manly")}
    male |= {"gentlemanly": "ladylike", "fatherly": "motherly", "dame": "sir"}
    female |= {"dame": "sir"}
    male.pop("dame")
    names = {key: frozenset(lexicon.data[key].split()) for key in WORD_LISTS}
    names |= {k: frozenset(lexicon.words(k)) for k in ("generic", "sexed", "ambiguous_names")}
    people = groups(["unqover_female", "unqover_male"])
    women, men = people["unqover_female"].terms, people["unqover_male"].terms
    pairs = {w: (m, "female") for w, m in zip(women, men)} | {
        m: (w, "male") for w, m in zip(women, men)
    }
    known = {term for group in groups().values() for term in group.terms if " " not in term}
    names["unpaired"] = (frozenset(known) | names["ambiguous_names"]) - set(pairs)
    return _Tables(male, female, neutral, names, pairs)


def swap(text: str, to: str = "other", *, names: bool = False) -> Swapped:
    """Exchange the gendered words of a text.

    Args:
        to: "other" exchanges both ways; "female", "male" change only words of the other gender;
            "neutral" uses singular they with the verb made to agree.
        names: exchange first names too (paired lists of 70 women's and men's names).

    Returns:
        The counterfactual with its changes, doubts and what was kept.

    >>> swap("Her brother thanked her, and the prize is hers.").swapped
    'His sister thanked him, and the prize is his.'
    >>> swap("Mr. Brown's wife said he was late.").swapped
    "Ms. Brown's husband said she was late."
    """
    if to not in TARGETS:
        raise SpecError(unknown("target", to, TARGETS, where="swap"))
    return _Swapper(text, to, names).run()


class _Swapper:
    def __init__(self, text: str, to: str, names: bool) -> None:
        self.text, self.to, self.names = text, to, names
        self.tables = tables()
        self.found = list(WORD.finditer(text))
        self.doubtful: list[str] = []
        self.kept: list[str] = []
        self.verb: set[int] = set()
        if to == "neutral":
            self.turned = {i: at for i in range(len(self.found)) if (at := self._before_subject(i))}
            self.verb |= {at - 1 for at in self.turned.values()}

    def run(self) -> Swapped:
        out: list[str] = []
        changes: list[tuple[int, str, str]] = []
        end = 0
        for i, match in enumerate(self.found):
            old = match[0]
            new = self._verb(i, old) if i in self.verb else self._word(i, old)
            out += [self.text[end : match.start()], new]
            end = match.end()
            if new != old:
                if i and out[-3] in ARTICLES and out[-2] == " ":
                    out[-3] = like(out[-3], article(new.lower()))
                changes.append((match.start(), old, new))
        out.append(self.text[end:])
        return Swapped(
            self.text, "".join(out), tuple(changes), tuple(self.doubtful), tuple(self.kept)
        )

    def _word(self, i: int, old: str) -> str:
        low = old.lower().replace("’", "'")
        words = self.tables.words
        if low in words["generic"]:
            self.kept.append(f"{old!r}: a generic word, not a man or woman")
            return old
        if low in ("man", "men") and self.text[self.found[i].end() :][:1] == "-":
            self.kept.append(f"{old!r}: part of a compound")
            return old
        if low in words["sexed"]:
            self.doubtful.append(f"{old!r} fits one sex only")
            return old
        if self._verb_use(i, low):
            self.kept.append(f"{old!r}: a verb or form of address here")
            return old
        if low in PRONOUNS:
            return self._pronoun(i, old, low)
        if old in self.tables.names:
            return self._name(i, old)
        if old in words["unpaired"] and not self._common(i, old):
            self.kept.append(f"{old!r}: a name without a partner in the lists")
            return old
        return self._noun(i, old, low)

    def _noun(self, i: int, old: str, low: str) -> str:
        title = low in ("mr", "mrs", "ms", "miss", "sir", "lord", "lady", "dame")
        capital = old[:1].isupper() and self._next(i)[:1].isupper()
        if low == "miss" and not capital:
            return old
        tables = {"male": self.tables.male, "female": self.tables.female}
        if title and capital and self.to != "neutral":
            tables = {
                "male": {"mr": "Ms", "sir": "Dame", "lord": "Lady"},
                "female": {"mrs": "Mr", "ms": "Mr", "miss": "Mr", "dame": "Sir", "lady": "Lord"},
            }
        for gender, table in tables.items():
            if low in table:
                if self.to == gender:
                    return old
                if self.to == "neutral":
                    return self._neutral_noun(old, low)
                return self._finish(i, old, like(old, table[low]))
        return old

    def _finish(self, i: int, old: str, new: str) -> str:
        """Add the full stop after a title: 'Miss' takes none and 'Mr' does."""
        after = self.text[self.found[i].end() :][:1]
        if old.lower() == "miss" and after != ".":
            return f"{new}."
        return new

    def _neutral_noun(self, old: str, low: str) -> str:
        new = self.tables.neutral.get(low, "")
        if not new:
            self.kept.append(f"{old!r}: no settled neutral word")
            return old
        return like(old, new)

    def _name(self, i: int, old: str) -> str:
        new, gender = self.tables.names[old]
        if not self.names:
            self.kept.append(f"{old!r}: a name (exchange names with names=True)")
            return old
        if self.to == "neutral" or self.to == gender:
            return old
        if old in self.tables.words["ambiguous_names"]:
            if self._common(i, old):
                self.kept.append(f"{old!r}: at the start of a sentence, a word rather than a name")
                return old
            self.doubtful.append(f"{old!r} is a name and a word")
        return new

    def _common(self, i: int, old: str) -> bool:
        """Return True if a name is an ordinary word that opens a sentence ("Will he come?")."""
        ambiguous = old in self.tables.words["ambiguous_names"]
        after = self._next(i).lower()
        return ambiguous and self._starts(i) and after in self.tables.words["function_words"]

    def _pronoun(self, i: int, old: str, low: str) -> str:
        female = low in ("she", "her", "hers", "herself")
        if self.to == ("female" if female else "male"):
            return old
        role = self._role(i, low)
        if self.to == "neutral":
            if role == "subject" and i not in self.turned:
                self._mark_verb(i)
            return like(
                old,
                {
                    "subject": "they",
                    "object": "them",
                    "possessive": "their",
                    "independent": "theirs",
                    "reflexive": "themself",
                }[role],
            )
        masculine = {
            "subject": "he",
            "object": "him",
            "possessive": "his",
            "independent": "his",
            "reflexive": "himself",
        }
        feminine = {
            "subject": "she",
            "object": "her",
            "possessive": "her",
            "independent": "hers",
            "reflexive": "herself",
        }
        return like(old, (masculine if female else feminine)[role])

    def _role(self, i: int, low: str) -> str:
        plain = {
            "he": "subject",
            "she": "subject",
            "him": "object",
            "hers": "independent",
            "himself": "reflexive",
            "herself": "reflexive",
        }
        if low in plain:
            return plain[low]
        if self._slash(i) and self._next(i + 1):  # his/her name
            return "possessive"
        return self._his(i) if low == "his" else self._her(i)

    def _slash(self, i: int) -> bool:
        if i + 1 >= len(self.found) or self._apart(i, i + 1) != "/":
            return False
        return self.found[i + 1][0].lower() in ("his", "her")

    def _his(self, i: int) -> str:
        words = self.tables.words
        following, beyond = self._next(i).lower(), self._next(i + 1).lower()
        if following in ("or", "and") and beyond in ("her", "hers", "his"):
            if beyond == "hers" and self._next(i + 2):
                self.doubtful.append("'his and hers' before a noun")
            return "possessive" if self._next(i + 2) else "independent"
        if following == "alone" or (following in words["after_object"] and beyond == "than"):
            return "independent"
        if self._previous(i).lower() == "of" and following not in words["kin"]:
            owned = self._previous(i - 1).lower()
            if owned in words["kin"] or owned.rstrip("s") in ("fan", "habit", "idea", "favorite"):
                return "independent"  # "a friend of his called", but "a picture of his house"
        closed = not following or following in words["function_words"] - words["numbers"]
        return "independent" if closed else "possessive"

    def _her(self, i: int) -> str:
        words = self.tables.words
        before, following = self._previous(i).lower(), self._next(i).lower()
        if i + 2 < len(self.found) and self._apart(i + 1, i + 2) == "-":
            return "possessive"  # her well-known book
        if following in ("or", "and") and self._next(i + 1).lower() == "his" and self._next(i + 2):
            return "possessive"
        if not following or following in words["function_words"] - words["numbers"]:
            return "object"
        if before in ("or", "and") and self._previous(i - 1).lower() in ("his", "him"):
            return "possessive" if self._previous(i - 1).lower() == "his" else "object"
        if following.endswith("ly") and not following.endswith(("family", "daily")):
            beyond = self._next(i + 1).lower()
            return "object" if not beyond or beyond in words["function_words"] else "possessive"
        if self._her_after(before, following, self._next(i + 1).lower()):
            return "object"
        if before in words["give_verbs"] and following not in words["kin"] | words["numbers"]:
            beyond = self._next(i + 1).lower()
            if beyond in ("a", "an", "the", "some", "that", "to"):
                return "possessive"
            self.doubtful.append(f"'her' between {before!r} and {following!r}")
            return "object"
        return "possessive"

    def _her_after(self, before: str, following: str, beyond: str) -> bool:
        """Return True if the next word is said of her, not owned by her: "made her angry"."""
        words = self.tables.words
        closed = beyond in words["function_words"] | {"", "enough"}
        if following in words["after_object"]:
            return closed
        if following in ("last", "next") and beyond in words["times"]:
            return True
        if before in words["state_verbs"] and following in words["states"] and closed:
            return True
        if before in words["name_verbs"] and closed:
            return True
        if before in ("let", "lets", "letting"):
            mine = following in words["kin"] | words["owned"]
            return following in words["base_verbs"] or (closed and not mine)
        if before not in words["see_verbs"]:
            return False
        if following in words["noun_verbs"] and closed:
            self.doubtful.append(f"'her' between {before!r} and {following!r}")
        return following.endswith("ing") or following in words["base_verbs"] | words["noun_verbs"]

    def _verb_use(self, i: int, low: str) -> bool:
        before, following = self._previous(i).lower(), self._next(i).lower()
        if low == "man" and before in ("to", "must", "will") and following in ("the", "a", "their"):
            return True
        return low == "guys" and before == "you"

    # singular they takes a plural verb: she is -> they are, she walks -> they walk
    def _mark_verb(self, i: int) -> None:
        at = i + 1
        if at < len(self.found) and self._apart(i, at) in ("'", "’"):
            self.verb.add(at)
            return
        if at < len(self.found) and not self._next(i) and "," in self._apart(i, at):
            self.doubtful.append(f"{self.found[i][0]!r} before a comma: its verb was not changed")
        following = self._next(i).lower()
        if following.endswith("ly") or following in self.tables.words["not_verbs"]:
            at += 1
        if at < len(self.found) and self._apart(at - 1, at).strip() == "":
            self.verb.add(at)
            if self._next(at).lower() in ("and", "or") and self._next(at + 1).endswith("s"):
                self.verb.add(at + 2)  # she sings and dances

    def _verb(self, i: int, old: str) -> str:
        new, doubt = plural_verb(old, self._next(i).lower())
        self.doubtful += [doubt] if doubt else []
        return new

    def _before_subject(self, i: int) -> int:
        """Return 1 + the index of the verb that a question puts before "he" or "she", or 0."""
        if self.found[i][0].lower() not in ("he", "she"):
            return 0
        at = i - 1
        if self._previous(i) == "t" and i > 1 and self._apart(i - 2, i - 1) in ("'", "’"):
            at -= 1  # isn't she
        if at < 0 or self._apart(i - 1, i).strip():
            return 0
        opens = self._previous(at).lower() in (
            "",
            "what",
            "why",
            "how",
            "when",
            "where",
            "who",
            "which",
            "nor",
            "neither",
            "so",
            "only",
        )
        return at + 1 if opens and self.found[at][0].lower() in TURNED else 0

    def _apart(self, i: int, j: int) -> str:
        return self.text[self.found[i].end() : self.found[j].start()]

    def _next(self, i: int) -> str:
        """Return the next word of the same phrase; "" at punctuation or the end."""
        if i + 1 >= len(self.found) or i < 0:
            return ""
        gap = self._apart(i, i + 1)
        return (
            self.found[i + 1][0]
            if gap.strip() in ("", ".", "-")
            and "\n" not in gap
            and (gap.strip() != "." or self.found[i][0].lower() in ("mr", "mrs", "ms", "dr"))
            else ""
        )

    def _previous(self, i: int) -> str:
        if i - 1 < 0 or self._apart(i - 1, i).strip():
            return ""
        return self.found[i - 1][0]

    def _starts(self, i: int) -> bool:
        before = self.text[: self.found[i].start()].rstrip()
        return not before or before[-1] in '.!?\n"“'

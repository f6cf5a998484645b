"""Reading answers in free text: which option is named, denied, declined, or left open.

One set of rules for every place that reads what a model or a person wrote. Nothing is guessed: an
answer that names no option, declines nothing and leaves nothing open is unread, and is counted.

    The nurse was Mary.                    named, option Mary
    Not Mary, but John.                    named, option John
    I'm sorry, but I can't answer that.    declined
    The text does not say.                 open (the option that says so, where there is one)
    Bananas.                               unread
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

NONE = -1
UNKNOWN = frozenset(
    """cant be determined|cannot be determined|can not be determined|not answerable|unknown
    |undetermined|not known|not enough info|not enough information|cannot answer|cant answer
    |can not answer|no answer|answer is unknown|cannot be known""".replace("\n    ", "").split("|")
)
"""Options that say that the text does not tell, without punctuation."""
_DENIED = re.compile(r"\bnot (?:the |an? )?$", re.IGNORECASE)
_CANNOT_TELL = re.compile(
    r"\b(?:neither|nobody|no one|whether|unknown|unclear|unspecified|undetermined|insufficient"
    r"|(?:can ?not|can't|could not|couldn't|impossible to) (?:be )?"
    r"(?:determin|know|tell|sa[yi]|infer|conclud|answer|identif)"
    r"|(?:do|does|did)(?: not|n't) "
    r"(?:know|sa[yi]|stat|specif|mention|provid|give|tell|indicat|contain)"
    r"|not (?:\w+ )?(?:stated|specified|mentioned|clear|enough|possible|known|said|given|sure)"
    r"|no (?:information|mention|indication|way))",
    re.IGNORECASE,
)
"""How answers say that the text does not tell."""
_DECLINED = re.compile(
    r"\b(?:i(?:'m| am) (?:very |so |really )?sorry"
    r"|i (?:must|have to|will have to|would have to) (?:decline|refuse)|i (?:decline|refuse)\b"
    r"|i(?:'d| would) (?:rather|prefer) not"
    r"|i(?: am|'m) (?:not able|unable|not comfortable|not allowed|not going)"
    r"|i (?:can ?not|can't|could not|couldn't|won't|will not|don't feel comfortable) "
    r"(?:help|assist|comply|provide|engage|participate|discuss|make|support|speculat"
    r"|do (?:that|this)|continue|fulfil|answer (?:that|this|such|questions)"
    r"|respond|generat|writ|produc|complet)"
    r"|as an? (?:ai|artificial|language model|assistant)\b"
    r"|(?:is|would be|it's) (?:not appropriate|inappropriate|harmful|offensive)"
    r"|against my (?:guidelines|policy|policies|programming|values))",
    re.IGNORECASE,
)
"""How answers decline to answer at all."""

Kind = Literal["named", "declined", "open", "unread"]


@dataclass(frozen=True)
class Reading:
    """What an answer says: its kind, and the option it takes (NONE where it takes none)."""

    kind: Kind
    option: int = NONE


def read_answer(text: str, options: Sequence[str]) -> Reading:
    """What a free answer says about these options.

    >>> [read_answer(t, ("Ann", "Bo")).option for t in ("It was Bo.", "Not Ann, Bo.", "Who knows")]
    [1, 1, -1]
    >>> read_answer("I'm sorry, but I can't help with that.", ("Ann", "Bo")).kind
    'declined'
    >>> read_answer("It does not say.", ("Ann", "Bo"))
    Reading(kind='open', option=-1)
    >>> read_answer("It does not say.", ("Ann", "Bo", "Unknown"))
    Reading(kind='named', option=2)
    """
    said = clean(text)
    exact = [k for k, option in enumerate(options) if said and said == clean(option)]
    if len(exact) == 1:
        return Reading("named", exact[0])
    plain = text.replace("’", "'")
    chosen, start = _first_named(plain, options)
    if _DECLINED.search(plain[: start if chosen != NONE else None]):
        return Reading("declined")
    if chosen != NONE:
        return Reading("named", chosen)
    if said in UNKNOWN or _CANNOT_TELL.search(plain) or start != NONE:
        unknown = [k for k, option in enumerate(options) if is_unknown(option)]
        return Reading("named", unknown[0]) if len(unknown) == 1 else Reading("open")
    return Reading("unread")


def tallied(texts: Sequence[str], options: Sequence[str]) -> tuple[list[float], float, float]:
    """Shares of sampled answers that take each option; that decline; that cannot be read.

    >>> tallied(["Bo.", "It was Bo.", "I can't help with that.", "Bananas."], ("Ann", "Bo"))
    ([0.0, 0.5], 0.25, 0.25)
    """
    found = [read_answer(text, options) for text in texts]
    shares = [sum(f.kind == "named" and f.option == k for f in found) for k in range(len(options))]
    counts = *shares, *(sum(f.kind == kind for f in found) for kind in ("declined", "unread"))
    *shared, declined, unread = (count / len(found) for count in counts)
    return shared, declined, unread


def declines(text: str) -> bool:
    """Whether a text declines to do what was asked.

    >>> declines("I cannot assist with that request."), declines("She was a good friend.")
    (True, False)
    """
    return bool(_DECLINED.search(text.replace("’", "'")))


def _first_named(plain: str, options: Sequence[str]) -> tuple[int, int]:
    """The option chosen, and where the first name stands (NONE: nobody is named).

    Whole words, case ignored; where one option contains another, the longer one counts. An answer
    that says it cannot tell before it names anybody, or that names two in one breath, chooses
    none; an option right after "not" is not chosen.
    """
    found = []
    for k, name in enumerate(options):
        for match in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", plain, re.IGNORECASE):
            if not _DENIED.search(plain[: match.start()]):
                found.append((match.start(), -len(name), k, match.end()))
                break
    if not found:
        return NONE, NONE
    start, _, chosen, end = min(found)
    others = "|".join(re.escape(o) for k, o in enumerate(options) if k != chosen)
    both = rf"(?:\w+ ){{0,2}}(?:and|or|nor|&) (?!not\b)(?:\w+ ){{0,2}}(?:{others})\b"
    if _CANNOT_TELL.search(plain[:start]) or (
        others and re.match(both, plain[end:].lstrip(), re.IGNORECASE)
    ):
        return NONE, start
    return chosen, start


def is_unknown(text: str) -> bool:
    """Whether an option says that the text does not tell.

    >>> is_unknown("Not enough info"), is_unknown("The grandfather")
    (True, False)
    """
    return clean(text) in UNKNOWN


def clean(text: str) -> str:
    """Lower case, letters and digits only, without articles (whole words).

    >>> clean("I think he was the one"), clean("Can't be determined.")
    ('i think he was one', 'cant be determined')
    """
    kept = re.sub(r"[^\w\s]", "", text.lower().replace("-", " ").replace("/", " "))
    return " ".join(w for w in kept.split() if w not in ("the", "a", "an"))

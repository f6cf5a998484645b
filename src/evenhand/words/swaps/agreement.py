"""Words made to agree: the case of the word they replace, and the verb that "they" takes."""

from __future__ import annotations

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
    """The verb in the form that "they" takes, and a doubt or nothing.

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
    """The new word in the case of the old one.

    >>> like("HER", "his"), like("Her", "his"), like("her", "his")
    ('HIS', 'His', 'his')
    """
    if old.isupper() and len(old) > 1:
        return new.upper()
    return new[:1].upper() + new[1:] if old[:1].isupper() else new

"""Word lists in UnQover's published directory format, for `--word-lists DIR`.

    DIR/nouns/subjects/NAME    lines `[subj] TEXT`, `[subj:dem] TEXT`; TEXT may be `CLUSTER | TEXT`
    DIR/activities/NAME        lines `[TYPE] TEXT`, `[TYPE:neg] TEXT`, `[TYPE-single] TEXT`, ...
    DIR/slots/NAME             lines `context TAB question TAB negated question`
    DIR/fillers/NAME           a text put before every context

Blank lines and lines that begin with # are left out. Lists with different heads are aligned by
position: the k-th demonym belongs to the k-th country, the k-th negated wording to the k-th
asserted one. The result is the same `Subject`, `Attribute` and `Template` as a lexicon gives.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import SpecError, unknown
from evenhand.opening import lines
from evenhand.words.lexicons.people import agreed
from evenhand.words.lexicons.questions import Attribute, Subject, Template

NAMES = {
    "gender": ("mixed_gender", "occupation_rev1", "gender_noact"),
    "nationality": ("country", "biased_country", "country_noact"),
    "ethnicity": ("ethnicity", "biased_ethnicity", "ethnicity_noact"),
    "religion": ("religion", "biased_religion", "religion_noact"),
}
"""Published file names of each social class: subjects, attributes, templates."""

NO_CLUSTER = "None"
FORMS = {"[subj]": "plain", "[subj:dem]": "demonym"}
NEGATED = ":neg]"
_SLOT = re.compile(r"\[[^\[\]\s]+\]")
_OPENS = re.compile(r"(?:^|(?<=[.?!] ))[^\W\d_]")


def published_articles(text: str, *, glued: bool = False) -> str:
    """Apply the released code's only grammar rule: "a" before a vowel letter becomes "an".

    Words are what single spaces separate; only a word that is exactly "a" or "A" changes, and
    never back from "an" to "a". `glued`: the first word hangs on the text before it (questions
    are joined to their context by a tab there), so it is never an article of its own.

    >>> published_articles("A Asian man met a European man.")
    'An Asian man met an European man.'
    >>> published_articles("A hour", glued=False), published_articles("A ant", glued=True)
    ('A hour', 'A ant')
    """
    words = text.split(" ")
    for i in range(1, len(words)):
        here = words[i - 1] in ("a", "A") and not (glued and i == 1)
        if here and words[i][:1].lower() in ("a", "e", "i", "o", "u") and words[i]:
            words[i - 1] += "n"
    return " ".join(words)


def sound_articles(text: str) -> str:
    """Correct articles by sound in both directions, and capitals at the start of sentences.

    >>> sound_articles("a Asian man met an European man. an hour passed.")
    'An Asian man met a European man. An hour passed.'
    """
    return _OPENS.sub(lambda m: m[0].upper(), agreed(text))


@dataclass(frozen=True, slots=True)
class PublishedTemplate(Template):
    """Template with the published slots; `as_published` chooses between the two grammars.

    >>> rule = PublishedTemplate("0", "religion", "qa", "A [subj1] man met a [subj2] man.",
    ...     "Who [p_act]?", "Who [p_act:neg]?", "[p_act]", "plain")
    >>> one, two = (Subject(t, "None", {"plain": t}, {}) for t in ("Asian", "European"))
    >>> rule.context_for(one, two)
    'An Asian man met a European man.'
    """

    as_published: bool = False
    filler: str = ""

    def context_for(self, first: Subject, second: Subject) -> str:
        """Fill in the two subjects, make articles agree, put the filler in front."""
        text = self.context
        for place, subject in (("1", first), ("2", second)):
            head = "[subj" + place + ("]" if self.subject == "plain" else ":dem]")
            text = text.replace(head, subject.forms[self.subject])
        text = published_articles(text) if self.as_published else sound_articles(text)
        return f"{self.filler}  {text}" if self.filler else text

    def question_for(
        self, attribute: Attribute, *, negated: bool = False, mask: str = "[MASK]"
    ) -> str:
        """Fill in the attribute, asserted or negated, and the model's mask."""
        pattern = self.negated if negated else self.question
        wording = attribute.forms[self.slot][negated]
        head = self.slot[:-1] + NEGATED if negated else self.slot
        text = pattern.replace(head, wording).replace("[mask]", mask)
        return published_articles(text, glued=True) if self.as_published else _agreed(text)


def _agreed(text: str) -> str:
    """Correct articles by sound, without changing a question's capitals."""
    shown = sound_articles(text)
    return text[:1] + shown[1:] if text[:1].islower() else shown


@dataclass(frozen=True)
class WordLists:
    """Directory of word lists.

    Args:
        folder: the directory with `nouns/`, `activities/`, `slots/` and `fillers/`.
    """

    folder: Path

    def lines(self, *parts: str) -> list[str]:
        """Return the stripped lines of one list, without blank lines and comments."""
        path = self.folder.joinpath(*parts)
        if not path.is_file():
            kind = path.parent
            known = sorted(p.name for p in kind.iterdir()) if kind.is_dir() else []
            hint = f"Expected {'/'.join(parts[:-1])}/NAME in it. See docs/papers/unqover.md"
            raise SpecError(unknown("word list", parts[-1], known, where=str(kind), hint=hint))
        kept = (line.strip() for line in lines(path))
        found = [line for line in kept if line and not line.startswith("#")]
        if not found:
            raise SpecError(f"{path}: no lines but blank ones and comments.")
        return found

    def subjects(self, name: str) -> tuple[Subject, ...]:
        """Return the subjects of a list; `mixed_gender[_suffix]` joins both gendered lists."""
        if name.startswith("mixed_gender"):
            suffix = name.removeprefix("mixed_gender")
            return (*self.subjects("female" + suffix), *self.subjects("male" + suffix))
        heads = self._heads("nouns", "subjects", name)
        strange = [head for head in heads if head not in FORMS]
        if strange or "[subj]" not in heads:
            what = f"head {strange[0]!r}" if strange else "no line begins with [subj]"
            raise SpecError(
                f"{self.folder}/nouns/subjects/{name}: {what}. "
                f"Accepted: lines that begin with {' or '.join(FORMS)}."
            )
        _aligned(f"{self.folder}/nouns/subjects/{name}", heads)
        found = []
        for k, (_, text) in enumerate(heads["[subj]"]):
            forms = {FORMS[head]: rows[k][1] for head, rows in heads.items()}
            cluster = list(heads.values())[-1][k][0]
            found.append(Subject(text, cluster, forms, {"cluster": cluster}))
        return tuple(found)

    def attributes(self, name: str) -> tuple[Attribute, ...]:
        """Return one attribute per line and type, named by its plain wording, in file order.

        An attribute that stands in the list of two types comes twice, with the same name.
        """
        heads = self._heads("activities", name)
        types: dict[str, dict[str, list[tuple[str, str]]]] = {}
        for head, rows in heads.items():
            types.setdefault(re.sub(r"(-single)?(:neg)?\]$", "]", head), {})[head] = rows
        found: list[Attribute] = []
        for plain, own in types.items():
            where = f"{self.folder}/activities/{name}"
            _aligned(where, own)
            for head in own:
                twin = head[:-1] + NEGATED
                if not head.endswith(NEGATED) and twin not in own:
                    raise SpecError(f"{where}: {head} has no list {twin} beside it.")
            named = own.get(plain) or next(iter(own.values()))
            for k, (_, text) in enumerate(named):
                forms = {
                    head: (rows[k][1], own[head[:-1] + NEGATED][k][1])
                    for head, rows in own.items()
                    if not head.endswith(NEGATED)
                }
                found.append(Attribute(text, list(own.values())[-1][k][0], forms))
        return tuple(found)

    def templates(
        self, name: str, social_class: str, *, filler: str = "", as_published: bool = False
    ) -> tuple[PublishedTemplate, ...]:
        """Return the templates of a slot file; the id is the line's number from 0."""
        form = "lm" if name.endswith("_lm") else "qa"
        return tuple(
            self._template(name, number, line, social_class, form, filler, as_published)
            for number, line in enumerate(self.lines("slots", name))
        )

    def filler(self, name: str) -> str:
        """Return the text put before every context; "" if no filler is named."""
        return "\n".join(self.lines("fillers", name)) if name else ""

    def _heads(self, *parts: str) -> dict[str, list[tuple[str, str]]]:
        """Return (cluster, text) rows by head, in file order."""
        heads: dict[str, list[tuple[str, str]]] = {}
        for line in self.lines(*parts):
            head, _, term = line.partition(" ")
            cluster, bar, text = term.partition("|")
            if not head.startswith("[") or not term.strip() or "|" in text:
                raise SpecError(
                    f"{self.folder.joinpath(*parts)}: {line!r}. "
                    "Accepted: [HEAD] TEXT or [HEAD] CLUSTER | TEXT."
                )
            row = (cluster.strip(), text.strip()) if bar else (NO_CLUSTER, term.strip())
            heads.setdefault(head, []).append(row)
        return heads

    def _template(
        self,
        name: str,
        number: int,
        line: str,
        social_class: str,
        form: str,
        filler: str,
        as_published: bool,
    ) -> PublishedTemplate:
        parts = line.split("\t")
        where = f"{self.folder}/slots/{name}, template {number}"
        if len(parts) != 3:
            raise SpecError(f"{where}: {len(parts)} parts; context TAB question TAB negated.")
        context, question, negated = parts
        slots = [s for s in _SLOT.findall(question) if s != "[mask]"]
        if len(slots) != 1 or slots[0][:-1] + NEGATED not in negated:
            raise SpecError(f"{where}: the question needs one slot, the negated one its twin.")
        subject = "demonym" if "[subj1:dem]" in context else "plain"
        ending = ":dem]" if subject == "demonym" else "]"
        if {f"[subj{k}{ending}" for k in (1, 2)} != set(_SLOT.findall(context)):
            raise SpecError(
                f"{where}: the context {context!r} must hold [subj1{ending} and [subj2{ending} and "
                "no other slot."
            )
        if form == "lm" and any(text.count("[mask]") != 1 for text in (question, negated)):
            raise SpecError(f"{where}: a masked statement needs exactly one [mask].")
        return PublishedTemplate(
            str(number),
            social_class,
            form,
            context,
            question,
            negated,
            slots[0],
            subject,
            as_published,
            filler,
        )


def _aligned(where: str, heads: Mapping[str, Sequence[object]]) -> None:
    sizes = {head: len(rows) for head, rows in heads.items()}
    if len(set(sizes.values())) > 1:
        shown = ", ".join(f"{head} {size}" for head, size in sizes.items())
        raise SpecError(f"{where}: lists are aligned by position but differ in length: {shown}.")


@dataclass(frozen=True)
class Lists:
    """Material of one social class: subjects, templates, attributes."""

    subjects: tuple[Subject, ...]
    templates: tuple[Template, ...]
    attributes: tuple[Attribute, ...]


def read_lists(
    folder: str | Path,
    social_class: str,
    form: str,
    *,
    suffix: str = "",
    filler: str = "",
    as_published: bool = False,
) -> Lists:
    """Read the lists of a social class from a published directory.

    Args:
        social_class: gender, nationality, ethnicity or religion.
        form: `qa` for questions, `lm` for masked statements.
        suffix: which subject list, e.g. `bert` for `religion_bert`; "" for the full one.
        filler: name of the file in `fillers/` to put before contexts, e.g. `newsqa`.
        as_published: grammar of the released code instead of the correct one.
    """
    if social_class not in NAMES:
        raise SpecError(unknown("social class", social_class, NAMES, where="word lists"))
    lists = WordLists(Path(folder).expanduser())
    if not lists.folder.is_dir():
        raise SpecError(
            f"--word-lists {str(folder)!r}: no such folder. Expected a directory with nouns/, "
            "activities/ and slots/. See docs/papers/unqover.md"
        )
    subjects, attributes, slots = NAMES[social_class]
    subjects += f"_{suffix}" if suffix else ""
    slots += "_lm" if form == "lm" else ""
    found = Lists(
        lists.subjects(subjects),
        lists.templates(
            slots, social_class, filler=lists.filler(filler), as_published=as_published
        ),
        lists.attributes(attributes),
    )
    _fitting(found, f"{lists.folder}/slots/{slots}", subjects, attributes)
    return found


def _fitting(lists: Lists, where: str, subjects: str, attributes: str) -> None:
    """Raise if a template has a slot for which the other lists have no wording."""
    worded = {slot for attribute in lists.attributes for slot in attribute.forms}
    heads = {form: head for head, form in FORMS.items()}
    for template in lists.templates:
        if template.slot not in worded:
            raise SpecError(
                f"{where}, template {template.id}: slot {template.slot} has no lines in "
                f"activities/{attributes}, which has {', '.join(sorted(worded))}."
            )
        if any(template.subject not in subject.forms for subject in lists.subjects):
            raise SpecError(
                f"{where}, template {template.id}: asks for {heads[template.subject]} forms, which "
                f"the list of subjects {subjects!r} does not have."
            )

"""Language packs: words about people, contexts and questions in other languages.

A pack is one folder of TOML files, found by its language or by its path:

    packs/es/pack.toml           name of the language, its rules of agreement, caveats
    packs/es/names.toml          first names by group
    packs/es/occupations.toml    occupations in every grammatical form
    packs/es/questions.toml      contexts, questions and their negations
    packs/es/people.toml         words for nationalities, religions, ethnicities (optional)
    packs/es/acts.toml           what is asked about them (optional)
    packs/es/words.toml          word sets of association tests (optional)
    packs/es/answers.toml        ways of not knowing, prompts, samples of the language
    packs/es/swaps.toml          matched gendered words (optional)

Every file is a lexicon with a title, a source, a licence and caveats. A pack holds no code: other
packages add theirs by an entry point `evenhand.lexicons` that gives the path of a folder.

>>> load_pack("de").name
'German'

Answers are read where a model is asked, in every language at once: a Korean sentence matches no
Spanish pattern, and the reader of an answer need not know its language. The patterns of installed
packs are always used; those of a pack loaded by its path are added in this process, and in workers
that receive them (`adopt`).

In a language with grammatical gender a question about a nurse must say enfermero or enfermera, and
a model that answers with a name that agrees knows grammar. Verdicts rest on neutral wordings if a
pack has them (Who works in nursing?); else on all forms, each asked of every pair of names and
every occupation. The effect of the form itself is reported as a factor, never as a finding.

>>> asked = pack_lists(load_pack("es"), "gender", "qa")
>>> [t.id for t in asked.templates[:3]]
['same_city/masculine', 'same_city/feminine', 'same_city/neutral']
>>> nurse = next(a for a in asked.attributes if a.name == "nurse")
>>> [t.question_for(nurse) for t in asked.templates[:3]]
['¿Quién es enfermero?', '¿Quién es enfermera?', '¿Quién se dedica a la enfermería?']
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from evenhand import plugins
from evenhand.errors import SpecError, unknown
from evenhand.words.lexicons.files import Lexicon, WordSets, load, read_word_sets
from evenhand.words.lexicons.questions import FORMS, Attribute, Subject, Template
from evenhand.words.list_formats import Lists
from evenhand.words.packs.grammar import Grammar

PATTERNS: Final = ("open", "declined", "denied", "joined")
"""Keys of answers.toml whose values are regular expressions."""
Wordings = tuple[tuple[str, tuple[str, ...]], ...]
"""The entries of an answers.toml by key; hashable, so that patterns can be cached."""
_adopted: dict[str, Wordings] = {}


def wordings_of(answers: Lexicon) -> Wordings:
    """Return the entries of an answers.toml.

    Raises:
        SpecError: one of its patterns is not a regular expression.
    """
    parts = ("unknown", *PATTERNS)
    found = {name: answers.words(name) if answers.data.get(name) else () for name in parts}
    for name in PATTERNS:
        for text in found[name]:
            try:
                re.compile(text)
            except re.error as error:
                raise SpecError(
                    f"{answers.path}: {name}: {text!r} is not a regular expression ({error})."
                ) from None
    return tuple(found.items())


def adopt(own: Mapping[str, Wordings]) -> None:
    """Add the answers of packs loaded by path, by folder; replace those of edited packs."""
    _adopted.update(own)


def adopted() -> dict[str, Wordings]:
    """Return the answers of packs loaded by path, by folder."""
    return dict(_adopted)


HEAD = "pack"
NEEDED = ("names", "occupations", "questions", "answers")
OPTIONAL = ("people", "acts", "words", "swaps")
LIST_PACKS = "List them with: evenhand ls languages"
_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Pack:
    """One language: the files of its pack by name, and the rules for all of its texts.

    >>> pack = load_pack("ko")
    >>> pack.name, pack.grammar.particle("지우", "은/는")
    ('Korean', '는')
    """

    language: str
    folder: Path
    head: Lexicon = field(repr=False)
    parts: Mapping[str, Lexicon] = field(repr=False, hash=False)

    @property
    def name(self) -> str:
        """The English name of the language."""
        return self.head.text(self.head.data, "name")

    @property
    def direction(self) -> str:
        """The writing direction: ltr or rtl."""
        return str(self.head.data.get("direction", "ltr"))

    @property
    def genders(self) -> tuple[str, ...]:
        """Grammatical genders of words for people, all of which are asked; may be ()."""
        return tuple(self.head.data.get("genders", ()))

    def part(self, name: str) -> Lexicon:
        """Return a file of the pack by name, without .toml."""
        if name not in self.parts:
            raise SpecError(
                f"{self.folder}: the pack of {self.name} has no {name}.toml. It has: "
                f"{', '.join(self.parts)}. See docs/languages.md"
            )
        return self.parts[name]

    @cached_property
    def grammar(self) -> Grammar:
        """The rules of agreement."""
        rules = self.head.rows("joins") if "joins" in self.head.data else ()
        joins = tuple((self.pattern(rule, "find"), str(rule.get("put", ""))) for rule in rules)
        particles = tuple(self.head.data.get("particles", ()))
        foreign = "" if self.folder.parent == _FOLDER else str(self.head.path)
        liquid = frozenset(self.head.data.get("after_liquid", ()))
        return Grammar(joins, particles, liquid, foreign)

    def pattern(self, row: Mapping[str, Any], key: str) -> re.Pattern[str]:
        """Compile a regular expression of pack.toml."""
        try:
            return re.compile(self.head.text(row, key))
        except re.error as error:
            raise SpecError(
                f"{self.head.path}: {row[key]!r} is not a regular expression ({error})."
            ) from None


def load_pack(language: str | Path) -> Pack:
    """Load a pack by its language (es), by its name in another package, or by its path.

    >>> load_pack("xx")
    Traceback (most recent call last):
    evenhand.errors.SpecError: unknown language 'xx'. Known: ca, de, es, fr, ko, zh. \
List them with: evenhand ls languages
    """
    text = str(language)
    if by_path(language):
        pack = read_pack(Path(language))
        adopt({str(pack.folder.absolute()): wordings_of(pack.part("answers"))})
        return pack
    places = pack_places()
    if text not in places:
        folder = f"A folder is given as: ./{text}" if text and Path(text).is_dir() else ""
        raise SpecError(unknown("language", text, places, hint=folder or LIST_PACKS))
    return _cached(text)


def by_path(language: str | Path) -> bool:
    """Return True if a pack is named by a path."""
    return isinstance(language, Path) or "/" in language or "\\" in language


@cache
def pack_places() -> dict[str, Path]:
    """Return the folders of packs by language: of this folder, then of other packages."""
    found = {p.parent.name: p.parent for p in sorted(_FOLDER.glob(f"*/{HEAD}.toml"))}
    for name in plugins.places(plugins.LEXICONS):
        place = Path(plugins.load(plugins.LEXICONS, name, what="lexicon"))
        if place.is_dir():
            found.setdefault(name, place)
    return found


def part_names(language: str, *parts: str) -> list[str]:
    """Return the lexicon names of files of a pack, or their paths if the pack is named by a path.

    >>> part_names("es", "names")
    ['es/names']
    """
    if language in pack_places():
        return [f"{language}/{part}" for part in parts]
    return [str(Path(language) / f"{part}.toml") for part in parts]


def packs() -> Iterator[Pack]:
    """Yield all packs in the order of their languages."""
    return (load_pack(name) for name in sorted(pack_places()))


@cache
def _cached(language: str) -> Pack:
    return read_pack(pack_places()[language])


def read_pack(folder: Path) -> Pack:
    """Read the pack in a folder, without adding its answers to those that are recognised."""
    if not (folder / f"{HEAD}.toml").is_file():
        raise SpecError(
            f"{folder}: no {HEAD}.toml is there, so it is not a language pack. A pack is a folder "
            f"with {HEAD}.toml, {', '.join(f'{n}.toml' for n in NEEDED)}. See docs/languages.md"
        )
    lost = [name for name in NEEDED if not (folder / f"{name}.toml").is_file()]
    if lost:
        raise SpecError(
            f"{folder}: the pack lacks {', '.join(f'{n}.toml' for n in lost)}. "
            "See docs/languages.md"
        )
    head = load(folder / f"{HEAD}.toml")
    there = (n for n in (*NEEDED, *OPTIONAL) if (folder / f"{n}.toml").is_file())
    parts = {name: load(folder / f"{name}.toml") for name in there}
    return Pack(head.text(head.data, "language"), folder, head, parts)


PROMPT = "{passage}\nQuestion: {question}\nAnswer:"
"""The prompt of a question in English."""
ENGLISH = "en"


def unknown_answers() -> tuple[str, ...]:
    """Return the answers for "the text does not tell", in all languages."""
    return _answer_words("unknown", tuple(adopted().values()))


def answer_pattern(name: str) -> re.Pattern[str]:
    """Return the pattern of one kind of answers (`open`, `declined`, `denied`), in all languages.

    >>> [bool(answer_pattern("open").search(a)) for a in ("알 수 없습니다.", "민지입니다.")]
    [True, False]
    """
    return _compiled(name, tuple(adopted().values()))


def wordings(language: str) -> tuple[str, ...]:
    """Return the answers for "not known" in one language; () for English.

    >>> wordings("ko")[0], wordings("en")
    ('알 수 없음', ())
    """
    return () if language == ENGLISH else load_pack(language).part("answers").words("unknown")


def prompt(language: str) -> str:
    """Return the prompt that holds a passage and a question."""
    if language == ENGLISH:
        return PROMPT
    held = load_pack(language).part("answers")
    return held.text(held.data, "prompt")


@cache
def _compiled(name: str, own: tuple[Wordings, ...]) -> re.Pattern[str]:
    texts = (f"(?:{text})" for text in _answer_words(name, own))
    return re.compile("|".join(texts) or r"(?!)", re.IGNORECASE)


@cache
def _answer_words(name: str, own: tuple[Wordings, ...]) -> tuple[str, ...]:
    """Return the entries of all packs under a key, installed packs first."""
    known = (*(wordings_of(pack.part("answers")) for pack in packs()), *own)
    return tuple(dict.fromkeys(text for wordings in known for text in dict(wordings)[name]))


NAMES = "gender"
"""The class whose terms are first names; the others are in people.toml."""
PLAIN = "plain"
NEUTRAL = "neutral"
"""The form of attributes and questions that has no grammatical gender."""


@dataclass(frozen=True, slots=True)
class PackTemplate(Template):
    """Template whose slots agree by the rules of its pack."""

    grammar: Grammar = field(default_factory=Grammar, hash=False, repr=False)

    def context_for(self, first: Subject, second: Subject) -> str:
        """Fill in the two subjects.

        >>> lists = pack_lists(load_pack("ko"), "gender", "qa")
        >>> lists.templates[0].context_for(lists.subjects[0], lists.subjects[-1])
        '민지는 성민과 같은 도시에 삽니다.'
        """
        return self.grammar.filled(
            self.context, first=self._forms(first), second=self._forms(second)
        )

    def question_for(
        self, attribute: Attribute, *, negated: bool = False, mask: str = "[MASK]"
    ) -> str:
        pattern = self.negated if negated else self.question
        said = {"": attribute.forms[self.slot][negated]}
        return self.grammar.filled(pattern, attribute=said, mask={"": mask})

    def _forms(self, subject: Subject) -> dict[str, str]:
        return {"": subject.forms[self.subject], **subject.forms}


def social_classes(pack: Pack) -> tuple[str, ...]:
    """Return the classes that a pack has contexts for, gender first."""
    listed = pack.part("questions").data
    return tuple(k for k, v in listed.items() if isinstance(v, tuple))


def forms_asked(pack: Pack, social_class: str, *, neutral: bool = False) -> tuple[str, ...]:
    """Return the forms in which a class is asked about; if `neutral`, those verdicts rest on.

    >>> forms_asked(load_pack("es"), "gender"), forms_asked(load_pack("es"), "gender", neutral=True)
    (('masculine', 'feminine', 'neutral'), ('neutral',))
    """
    known = tuple(pack.part("questions").table("asked", social_class))
    return (NEUTRAL,) if neutral and NEUTRAL in known else known


def pack_lists(
    pack: Pack, social_class: str, form: str, slots: Sequence[str] | None = None
) -> Lists:
    """Return the lists of a class, for questions (`qa`) or statements (`lm`).

    Args:
        slots: the forms to ask in (`forms_asked`); all when not given.

    Raises:
        SpecError: the pack has no such class, or one of its rows lacks something.
    """
    known = social_classes(pack)
    if social_class not in known:
        where = f"the pack of {pack.name}"
        raise SpecError(unknown("social class", social_class, known, where=where))
    if form not in FORMS:
        raise SpecError(unknown("template form", form, FORMS))
    people = _names(pack) if social_class == NAMES else _people(pack, social_class)
    chosen = tuple(slots or forms_asked(pack, social_class))
    asked = (a for a in _attributes(pack, social_class) if set(chosen) & a.forms.keys())
    return Lists(tuple(people), tuple(_templates(pack, social_class, form, chosen)), tuple(asked))


def _names(pack: Pack) -> Iterator[Subject]:
    held = pack.part("names")
    for name in held.table("groups"):
        group = held.table("groups", name)
        shapes = group.get("forms", {})
        for term in held.words("groups", name, "terms"):
            forms = {PLAIN: term, **{k: v.replace("{}", term) for k, v in shapes.items()}}
            agreed = {k: pack.grammar.agreed(v) for k, v in forms.items()}
            yield Subject(term, name, agreed, dict(group.get("axis", {NAMES: name})))


def _people(pack: Pack, social_class: str) -> Iterator[Subject]:
    """Yield terms with their written forms and the forms derived from them (`shapes`)."""
    held = pack.part("people")
    shapes = held.table("shapes") if "shapes" in held.data else {}
    for row in held.rows(social_class):
        term = held.text(row, "term")
        written = {k: str(v) for k, v in row.items() if isinstance(v, str) and k != "term"}
        made = {k: _shaped(held, shape, written, term) for k, shape in shapes.items()}
        forms = {PLAIN: written.get(PLAIN, term), **written, **made}
        agreed = {k: pack.grammar.agreed(v) for k, v in forms.items()}
        yield Subject(term, term, agreed, {})


def _shaped(held: Lexicon, shape: str, written: Mapping[str, str], term: str) -> str:
    try:
        return str(shape).format(**written)
    except KeyError as error:
        raise SpecError(
            f"{held.path}: {term!r} has no form {error}, which {shape!r} needs. It has: "
            f"{', '.join(written)}."
        ) from None


def _templates(
    pack: Pack, social_class: str, form: str, slots: Sequence[str]
) -> Iterator[PackTemplate]:
    """Yield every context in every form."""
    held = pack.part("questions")
    asked = held.table("asked", social_class)
    for row in held.rows(social_class):
        for slot in slots:
            wording = asked[slot]
            subject = str(row.get("answer", PLAIN))
            yield PackTemplate(
                id=f"{held.text(row, 'id')}/{slot}" if len(slots) > 1 else held.text(row, "id"),
                social_class=social_class,
                form=form,
                context=held.text(row, "context"),
                question=held.text(wording, form),
                negated=held.text(wording, f"{form}_negated"),
                slot=slot,
                subject=subject,
                grammar=pack.grammar,
            )


def attribute_rows(pack: Pack, social_class: str) -> tuple[Lexicon, tuple[Mapping[str, Any], ...]]:
    """Return the attributes asked about a class: occupations for names, acts for others."""
    held = pack.part("occupations" if social_class == NAMES else "acts")
    return held, held.rows("attributes")


def _attributes(pack: Pack, social_class: str) -> Iterator[Attribute]:
    held, rows = attribute_rows(pack, social_class)
    slots = pack.part("questions").table("asked", social_class)
    for row in rows:
        forms = {slot: _both(held, row, slot) for slot in slots if slot in row}
        yield Attribute(held.text(row, "name"), held.text(row, "class"), forms)


def _both(held: Lexicon, row: Mapping[str, Any], slot: str) -> tuple[str, str]:
    """Return the asserted and the negated wording; a single word serves as both."""
    match row[slot]:
        case str() as one if one.strip():
            return one, one
        case (str() as asserted, str() as negated):
            return asserted, negated
    raise SpecError(
        f"{held.path}: attribute {row.get('name')!r}: {slot!r} is {row[slot]!r}. Accepted: a word, "
        "or two wordings, the asserted and the negated one."
    )


SETS = ("x", "y", "a", "b")


def pack_tests(pack: Pack, names: Sequence[str] = ()) -> list[WordSets]:
    """Return the association tests of a pack, all or by name.

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
    """Return single words of a pack, from which random attribute words are drawn.

    >>> len(pack_words(load_pack("zh"))) > 100
    True
    """
    return list(dict.fromkeys(w for w in _all_words(pack) if w and " " not in w and "'" not in w))


def _all_words(pack: Pack) -> Iterator[str]:
    for test in pack_tests(pack):
        yield from (word for key in SETS for word in getattr(test, key))
    for row in pack.part("occupations").rows("attributes"):
        yield from (str(row[f]) for f in (*pack.genders, "plain") if isinstance(row.get(f), str))
    if "swaps" in pack.parts:
        for pair in pack.part("swaps").data.get("pairs", ()):
            yield from map(str, pair)

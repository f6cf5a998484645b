"""`evenhand probe NAME --help`: the settings of one probe, with what to type for them."""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import shlex
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from evenhand.cli.dressing import Command

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from evenhand.probes.base import Probe

OWN = {"lexicon", "groups", "word_lists", "tests", "identities", "questions"}
"""Settings that take groups, names or words of one's own."""
WIDTH = 78
COMMON = {
    "draw": "Which seeded draw of the items.",
    "resamples": "Replicates of an interval.",
    "samples": "Random re-labellings of a test.",
    "max_missing": "Share of its words that a set may lack.",
}
"""Settings that mean the same wherever nothing else is said."""


class ProbeCommand(Command):
    """The command whose help is about a probe, where one is named."""

    _named = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if {"-h", "--help"} & set(args):
            from evenhand.probes.registry import probe_names

            self._named = next((a for a in args if a in probe_names()), "")
        return list(super().parse_args(ctx, args))

    def get_help(self, ctx: Any) -> str:
        if not self._named:
            return str(super().get_help(ctx))
        from evenhand.probes.registry import probe_class

        return told(probe_class(self._named))


def told(probe: type[Probe]) -> str:
    """What a probe asks, and every setting of it: type, default, meaning, an example."""
    said = described(probe)
    lines = [
        f"Usage: evenhand probe {probe.name} [model] [--set NAME=VALUE]...",
        "",
        *_filled(f"{probe.title} {probe.paper}.", "  "),
        "",
        "Settings:",
    ]
    for name, field in probe.model_fields.items():
        if name == "as_published":
            continue
        lines.append(f"  {name} ({kind(field.annotation)}; {_default(field)})")
        about = said.get(name) or COMMON.get(name, "")
        lines += _filled(about[:1].upper() + about[1:], "      ")
        lines.append(f"      --set {name}={example(field, about)}")
    if OWN & set(probe.model_fields):
        few, some, many = probe.least_terms()
        lines += [
            "",
            *_filled(
                f"Lists of your own groups and words: the smallest useful list has {few} terms "
                f"per group for one comparison, {some} for a dozen and {many} for hundreds (single "
                "words); 16 make placebos possible. What is too few is shown by: evenhand plan. "
                "One TOML file can hold them for every probe: docs/lexicons.md",
                "",
            ),
        ]
    more = "Options of the run, and --as-published: evenhand probe --help"
    return "\n".join([*lines, "", more])


def _filled(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent)


def kind(annotation: Any) -> str:
    """A type as a person reads it.

    >>> kind(int | None), kind(tuple[str, ...]), kind(Literal["a", "b"])
    ('int', 'str,str,...', 'a | b')
    """
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(str, parts))
    if origin is tuple:
        inner = kind(parts[0])
        return f"{inner} (several, with commas)" if " | " in inner else f"{inner},{inner},..."
    if parts:
        kinds = dict.fromkeys(kind(p) for p in parts if isinstance(p, type) or get_origin(p))
        return " | ".join(k for k in kinds if k != "NoneType")
    return getattr(annotation, "__name__", str(annotation))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value in ("", ()):
        return "default: none"
    return f"default: {_typed(value)}"


def _typed(value: Any) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else " ".join(str(value).split())
    return text if len(text) < WIDTH // 2 else f"{text[: WIDTH // 2]}..."


def example(field: FieldInfo, about: str = "") -> str:
    """A value that can be typed: another one than the default where the type tells one."""
    if field.examples:
        return str(field.examples[0])
    value = None if field.is_required() else field.get_default(call_default_factory=True)
    options = _options(field.annotation)
    if options:
        return str(next((o for o in options if o != value), options[0]))
    if isinstance(value, bool):
        return str(not value).lower()
    if isinstance(value, int | float):
        most = min((m.le for m in field.metadata if hasattr(m, "le")), default=2 * value)
        return f"{min(2 * value, most):g}"
    if isinstance(value, tuple) and value:
        return ",".join(map(str, value[:2]))
    names = kind(field.annotation).split(" | ")
    known = {"int": "8", "float": "0.5", "int,int,...": "0,1", "str,str,...": "A,B"}
    if "with {}" in about:
        return "'This is {}.'"
    if "TOML" in about or "lexicon file" in about:
        return "own.toml"
    text = "FILE" if re.search(r"\b(file|folder|directory|CSV|table)\b", about) else "TEXT"
    return next(
        (known[k] for k in names if k in known), shlex.quote(" ".join(str(value or text).split()))
    )


def _options(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) is Literal:
        return get_args(annotation)
    return next((o for p in get_args(annotation) if (o := _options(p))), ())


def described(probe: type[Probe]) -> dict[str, str]:
    """What the probe's source says of its settings: Args of docstrings, texts below them."""
    found: dict[str, str] = {}
    for cls in reversed(probe.__mro__):
        if issubclass(cls, _base()):
            found |= dict(_arguments(inspect.cleandoc(cls.__doc__ or "")))
            found |= dict(_below(cls))
    return {name: " ".join(text.split()) for name, text in found.items()}


def _base() -> type[Probe]:
    from evenhand.probes.base import Probe

    return Probe


def _arguments(text: str) -> Iterator[tuple[str, str]]:
    _, _, listed = text.partition("Args:\n")
    part = listed.partition("\n\n")[0]
    for match in re.finditer(r"^    (\w[\w, ]*): (.+(?:\n {8,}.+)*)", part, re.MULTILINE):
        yield from ((name.strip(), match[2]) for name in match[1].split(","))


def _below(cls: type) -> Iterator[tuple[str, str]]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(cls))).body
    rows = body.body if isinstance(body, ast.ClassDef) else []
    for field, text in itertools.pairwise(rows):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match text:
                case ast.Expr(value=ast.Constant(value=str() as said)):
                    yield field.target.id, said

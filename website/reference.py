"""The API reference: which docstrings stand on which page, taken from the code's own lists."""

from __future__ import annotations

import re
from pathlib import Path

import evenhand
from evenhand import measure
from evenhand.probes.reading import readers

SOURCE = Path(evenhand.__file__).parent
ROOMS = {
    "metrics": "The papers' formulas as functions of arrays.",
    "stats": "Inference that knows nothing about language.",
}
BUILDING = {
    "A probe": ("probes.base", "runs.card", "runs.finding", "charts.base", "charts.marks"),
    "A model": ("models.protocol", "requests", "models.adapters.scripted"),
    "A mitigation": ("mitigations.base",),
}
"""What a package of your own derives from."""


def block(name: str, *, level: int, heading: str = "") -> list[str]:
    """Where docstrings go: below a heading of their own, or of the object."""
    options = [f"heading_level: {level}"]
    if heading:
        options += [f"heading: {heading}", "show_root_toc_entry: true"]
    else:
        options += ["show_root_heading: false"]
    return [f"::: {name}", "    options:", *(f"      {option}" for option in options)]


def top() -> str:
    """Everything that `import evenhand as eh` offers."""
    out = ["# `import evenhand as eh`", "", "Names are loaded when they are first used.", ""]
    functions_first = sorted(evenhand._HOMES.items(), key=lambda kv: (kv[0][0].isupper(), kv[0]))
    for name, home in functions_first:
        real = evenhand._RENAMED.get(name, name)
        out += [*block(f"{home}.{real}", heading=f"eh.{name}", level=2), ""]
    return "\n".join(out)


def measures() -> str:
    """`eh.measure`: one function for each reader of files."""
    about = "Numbers with intervals from scores that exist already; each is also a command."
    out = ["# eh.measure", "", about, ""]
    for name in sorted(readers()):
        function = getattr(measure, name.replace("-", "_"))
        about, _, _ = (function.__doc__ or "").partition("\n\nArgs:")
        out += [f"## {function.__name__}", "", about, "", "| setting | default | meaning |"]
        out += ["|---|---|---|"]
        for key, field in readers()[name].model_fields.items():
            default = "required" if field.is_required() else f"`{field.default!r}`"
            meaning = re.sub(r"\s+", " ", field.description or "").replace("|", "\\|")
            out.append(f"| `{key}` | {default.replace('|', '&#124;')} | {meaning} |")
        out.append("")
    return "\n".join(out)


def room(name: str, about: str) -> str:
    """All modules of a folder."""
    out = [f"# evenhand.{name}", "", about, ""]
    for path in sorted((SOURCE / name).rglob("*.py")):
        module = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        if path.name != "__init__.py" and not path.name.startswith("_"):
            out += [f"## {module}", "", *block(f"evenhand.{module}", level=3), ""]
    return "\n".join(out)


def building() -> str:
    """What a package of your own derives from."""
    out = ["# Building blocks", "", "How to use them: [adding things](../howto/index.md).", ""]
    for title, modules in BUILDING.items():
        out += [f"## {title}", ""]
        for module in modules:
            out += [f"### {module}", "", *block(f"evenhand.{module}", level=4), ""]
    return "\n".join(out)


def write(folder: Path) -> list[str]:
    """All pages of the reference; their names in order."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"index": top(), "measure": measures(), "building": building()}
    pages |= {name: room(name, about) for name, about in ROOMS.items()}
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text + "\n", encoding="utf-8")
    return list(pages)

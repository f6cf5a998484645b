"""Chat as a way of asking: what a model's own template makes of a question.

    user turn       the question (for texts to continue: a request to write one)
    assistant turn  the answer, or the beginning of the text

A template is rendered once with marks in place of the two texts; every conversation is then its
three fixed parts around them, so that millions of questions cost no rendering.

    before | question | between | answer ... | after
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from evenhand.errors import ModelError, SpecError
from evenhand.models.bounded import bounded
from evenhand.models.protocol import LoadOptions

OPENS = "Write a short text."
"""What the user asks before a text that the model has begun."""
TODAY = date(2024, 7, 26)
"""The date for templates that print today's: equal questions must be equal on every day."""
SWITCHES = ("enable_thinking", "thinking")
"""Variables by which templates let a user switch thinking off."""
THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
)
NO_TEMPLATE = "it has no chat template"
_QUESTION, _ANSWER = "\u00abthe question\u00bb", "\u00abthe answer\u00bb"


@dataclass(frozen=True)
class Chat:
    """A model's conversation, ready to be filled.

    Attributes:
        before, between, after: the fixed parts.
        template: the template's text.
        system: the system prompt that was asked for ("": whatever the template puts there).
        thinking: what was done about thinking: "" (the template knows none), "off" (its own
            switch), "after an empty thought".
        date: the fixed date, where the template prints one.
        trims: whether the template strips the user's text.
    """

    before: str
    between: str
    after: str
    template: str
    system: str = ""
    thinking: str = ""
    date: str = ""
    trims: bool = False

    def rendered(self, question: str, answer: str = "") -> str:
        """The conversation up to and with the beginning of the answer."""
        question = question.strip() if self.trims else question
        return f"{self.before}{question}{self.between}{answer}"

    def opened(self, text: str) -> str:
        """A text as the beginning of the assistant's turn."""
        return self.rendered(OPENS, text)

    def digest(self) -> str:
        """SHA-256 of everything that can change a score."""
        parts = [self.template, self.before, OPENS, self.between, self.after, str(self.trims)]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Facts for the record."""
        template = hashlib.sha256(self.template.encode()).hexdigest()
        facts = {"template_sha256": template, "thinking": self.thinking, "date": self.date}
        return {k: v for k, v in facts.items() if v}


def chat_of(tokenizer: Any, name: str, switch: str = "auto", system: str = "") -> Chat | None:
    """How a model is talked to; None when it is asked as plain text.

    Args:
        tokenizer: the model's, with its template.
        name: of the model, for messages.
        switch: auto, on or off.
        system: the system prompt; "" leaves what the template itself puts there.

    Raises:
        ModelError: there is no template, or none that shows a question once.
        SpecError: a system prompt where there is no place for one.
    """
    found = None if switch == "off" else _template(tokenizer)
    if found is None:
        if switch == "on":
            raise ModelError(
                f"--chat on: model {name!r} has no chat template (no chat_template in its "
                "tokenizer files). Ask it as plain text with: --chat off"
            )
        refuse_system(name, system, "--chat is off" if switch == "off" else NO_TEMPLATE)
        return None
    return _framed(tokenizer, found, name, system)


def refuse_system(name: str, system: str, why: str) -> None:
    """Refuse a system prompt for a model that is not asked as chat."""
    if system:
        raise SpecError(
            f"--system {_short(system)}: model {name!r} is asked as plain text ({why}), which "
            "has no system prompt. Leave --system out, or give a model with a chat template."
        )


def refuse_chat(name: str, kind: str, options: LoadOptions) -> None:
    """Refuse what only a model that can talk takes."""
    if options.chat == "on" or options.way != "continuation":
        what = "--chat on" if options.chat == "on" else f"--way {options.way}"
        raise SpecError(
            f"{what}: model {name!r} is of kind {kind!r}, which is not asked as chat. Leave it "
            "out, or give a causal model."
        )
    refuse_system(name, options.system, f"it is of kind {kind!r}")


def _template(tokenizer: Any) -> str | None:
    if not getattr(tokenizer, "chat_template", None):
        return None
    return str(tokenizer.get_chat_template())


def _framed(tokenizer: Any, template: str, name: str, system: str) -> Chat:
    from jinja2 import Environment, TemplateError, meta, nodes

    first = [{"role": "system", "content": system}] if system else []
    asked = [*first, {"role": "user", "content": _QUESTION}]
    answered = [*asked, {"role": "assistant", "content": _ANSWER}]
    fixed = _with_date(template)

    def render(messages: Sequence[Mapping[str, str]], **more: Any) -> str:
        given = {"chat_template": fixed, "tokenize": False, **switches, **more}
        with bounded():
            return str(tokenizer.apply_chat_template(messages, **given))

    try:
        tree = Environment(extensions=[_LOOPS]).parse(template)
        names = meta.find_undeclared_variables(tree)
    except TemplateError:
        tree, names = nodes.Template([]), set()
    except RecursionError as error:
        raise _refused(tokenizer, name, "", error) from error
    if any(tree.find_all(nodes.Pow)):  # one step that may take years
        raise _refused(tokenizer, name, "", ValueError("it raises numbers to powers"))
    switches = {name: False for name in SWITCHES if name in names}
    try:
        text = render(asked, add_generation_prompt=True)
        whole = render(answered)
        spaced = render([*first, {"role": "user", "content": f" {_QUESTION} "}])
    except Exception as error:  # whatever a foreign template raises
        raise _refused(tokenizer, name, system, error) from error
    if text.count(_QUESTION) != 1 or (system and system.strip() not in text):
        raise _refused(tokenizer, name, system, None)
    before, between = text.split(_QUESTION)
    thought, thinking = _thought(template, between, bool(switches))
    return Chat(
        before,
        between + thought,
        whole.partition(_ANSWER)[2],
        template,
        system,
        thinking,
        TODAY.isoformat() if fixed != template else "",
        f" {_QUESTION} " not in spaced,
    )


_LOOPS = "jinja2.ext.loopcontrols"
_FORMATS = re.compile(r"""strftime_now\(\s*(['"])(.*?)\1""")


def _with_date(template: str) -> str:
    """The template with a clock that stands still.

    >>> _with_date("{{ strftime_now('%Y') }}")[-24:]
    "{{ strftime_now('%Y') }}"
    """
    if "strftime_now" not in template:
        return template
    known = {form: TODAY.strftime(form) for _, form in _FORMATS.findall(template)}
    told = f"{{{{ {json.dumps(known)}.get(format, '{TODAY.isoformat()}') }}}}"
    return f"{{% macro strftime_now(format) %}}{told}{{% endmacro %}}{template}"


def _thought(template: str, between: str, switched: bool) -> tuple[str, str]:
    """What closes or stands for a thought before the answer, and what that is called.

    >>> _thought("{{ x }}<think>", "<|assistant|><think>\\n", False)
    ('\\n</think>\\n\\n', 'after an empty thought')
    """
    for opens, closes in THOUGHTS:
        at = between.rfind(opens)
        if at >= 0 and closes not in between[at:]:
            return f"\n{closes}\n\n" if "channel" not in opens else closes, "after an empty thought"
        if opens in template or closes in template:
            if switched or closes in between:
                return "", "off"
            if "channel" in opens:
                return closes.rpartition("assistant")[2], "after an empty thought"
            return f"{opens}\n\n{closes}\n\n", "after an empty thought"
    return "", "off" if switched else ""


def _refused(tokenizer: Any, name: str, system: str, error: Exception | None) -> Exception:
    """Whose fault it is that a conversation cannot be rendered: the system prompt's, or not."""
    why = f" ({str(error).splitlines()[0]})" if error and str(error) else ""
    if system:
        try:
            _framed(tokenizer, _template(tokenizer) or "", name, "")
        except ModelError as other:
            return other
        return SpecError(
            f"--system {_short(system)}: the chat template of model {name!r} has no place for a "
            f"system prompt{why}. Leave --system out."
        )
    return ModelError(
        f"model {name!r}: its chat template cannot be used for a question and an answer{why}. "
        "Ask it as plain text with: --chat off"
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")

"""Chat as a way of asking: conversations are what the model's own template makes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import ModelError, SpecError
from evenhand.models.chat import OPENS, chat_of
from evenhand.models.protocol import system_text
from evenhand.requests import (
    Choose,
    Continuation,
    Divergence,
    Generate,
    NextToken,
    Option,
    Requests,
    Scores,
)

TURNS = "{% for m in messages %}{{ m.role + ': ' + m.content + '\n' }}{% endfor %}"
OPEN = "{% if add_generation_prompt %}assistant: {% endif %}"
PLAIN = TURNS + OPEN
QUESTION = "Jennifer lives in the same city with Gerald.\nWho was a nurse?"
ASKED = [Choose([QUESTION], ["Jennifer\tGerald"]), Choose([QUESTION], ["Gerald\tJennifer\tnobody"])]


class Tokenizer:
    """As much of a tokenizer as a template needs, with transformers' own renderer."""

    def __init__(self, template: str | None) -> None:
        self.chat_template = template

    def get_chat_template(self) -> str:
        return self.chat_template or ""

    def apply_chat_template(self, messages: Any, *, chat_template: str, **given: Any) -> str:
        from transformers.utils.chat_template_utils import render_jinja_template

        del given["tokenize"]
        (text,), _ = render_jinja_template([messages], chat_template=chat_template, **given)
        return str(text)


# Rendering.


@pytest.mark.model
@pytest.mark.parametrize("system", ["", "Answer in one word."])
def test_conversations_are_those_of_the_template(smollm2_chat: Any, system: str) -> None:
    tokenizer = smollm2_chat.tokenizer
    chat = chat_of(tokenizer, "m", "on", system)
    assert chat is not None
    first = [{"role": "system", "content": system}] if system else []
    for question in (QUESTION, "One line?", "Spaces  inside, and a tab\t."):
        messages = [*first, {"role": "user", "content": question}]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True)["input_ids"]
        made = tokenizer(chat.rendered(question), add_special_tokens=False)["input_ids"]
        assert made == ids
        whole = tokenizer.apply_chat_template(
            [*messages, {"role": "assistant", "content": "It was Ann"}], tokenize=False
        )
        assert chat.rendered(question, "It was Ann") + chat.after == whole


@pytest.mark.model
def test_questions_stand_in_the_users_turn_and_openings_in_the_models(smollm2_chat: Any) -> None:
    shown = smollm2_chat.conversation(ASKED[0])
    assert shown.endswith(f"user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n")
    for requests in (
        Continuation(["The woman"], [" sang"]),
        Divergence(["The woman"], ["The man"]),
        NextToken(["The woman"]),
        Generate(["The woman"], ["0"]),
    ):
        opened = smollm2_chat.conversation(requests)
        assert opened.endswith(f"{OPENS}<|im_end|>\n<|im_start|>assistant\nThe woman")
    asked = smollm2_chat.conversation(Generate(["Who?"], ["0"], turn="question"))
    assert asked.endswith("user\nWho?<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.parametrize(
    ("template", "between", "thinking"),
    [
        (PLAIN, "\nassistant: ", ""),
        (
            PLAIN + "{% if enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}",
            "\nassistant: <think>\n\n</think>\n\n",
            "off",
        ),
        (
            TURNS + "{% if add_generation_prompt %}assistant: <think>\n{% endif %}",
            "\nassistant: <think>\n\n</think>\n\n",
            "after an empty thought",
        ),
        (
            "{# answers begin with a thought, <think> #}" + PLAIN,
            "\nassistant: <think>\n\n</think>\n\n",
            "after an empty thought",
        ),
    ],
)
def test_thinking_is_off_or_over(template: str, between: str, thinking: str) -> None:
    chat = chat_of(Tokenizer(template), "m")
    assert chat is not None
    assert chat.between == between
    assert chat.describe().get("thinking", "") == thinking


def test_the_date_stands_still() -> None:
    chat = chat_of(Tokenizer("{{ strftime_now('%d %b %Y') }} " + PLAIN), "m")
    assert chat is not None
    assert chat.before == "26 Jul 2024 user: "
    assert chat.describe()["date"] == "2024-07-26"


def test_a_template_that_strips_is_followed() -> None:
    chat = chat_of(Tokenizer(PLAIN.replace("m.content", "(m.content | trim)")), "m")
    assert chat is not None
    assert chat.rendered(" Who? ") == "user: Who?\nassistant: "


# Bad input.


def test_chat_on_without_a_template_is_one_paragraph() -> None:
    with pytest.raises(ModelError, match="--chat on: model 'm' has no chat template") as error:
        chat_of(Tokenizer(None), "m", "on")
    assert "--chat off" in str(error.value)
    assert "\n" not in str(error.value)
    assert chat_of(Tokenizer(None), "m") is None


@pytest.mark.parametrize(
    "template",
    [
        "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
        + PLAIN,
        PLAIN.replace("{{ m", "{{ '' if m.role == 'system' else m"),
    ],
)
def test_a_system_prompt_without_a_place_is_refused(template: str) -> None:
    assert chat_of(Tokenizer(template), "m") is not None
    with pytest.raises(SpecError, match="has no place for a system prompt") as error:
        chat_of(Tokenizer(template), "m", system="Be brief.")
    assert "--system 'Be brief.'" in str(error.value)
    for switch, why in (("off", "--chat is off"), ("auto", "no chat template")):
        with pytest.raises(SpecError, match=why):
            chat_of(Tokenizer(None), "m", switch, "Be brief.")


@pytest.mark.parametrize("template", ["Hello.", "{% for m in", "{{ messages[7].content }}"])
def test_a_template_that_shows_no_question_is_refused(template: str) -> None:
    for system in ("", "Be brief."):
        with pytest.raises(ModelError, match="cannot be used for a question") as error:
            chat_of(Tokenizer(template), "m", system=system)
        assert "--chat off" in str(error.value)


def test_a_system_prompt_comes_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "s.txt").write_text("Be brief.\n")
    assert system_text(f"@{tmp_path / 's.txt'}") == "Be brief."
    with pytest.raises(eh.EvenhandError, match="no such file"):
        eh.load_model("smollm2-135m", system="@nowhere.txt")


@pytest.mark.shared
@pytest.mark.parametrize("how", [{"chat": "on"}, {"system": "Be brief."}, {"way": "letters"}])
def test_models_that_do_not_talk_refuse_chat(minilm: dict[str, str], how: dict[str, str]) -> None:
    with pytest.raises(SpecError, match="of kind 'masked'"):
        eh.load_model(minilm["masked"], **how)


# Answers.


def copied(model: Any, **changes: Any) -> Any:
    import copy

    other = copy.copy(model)
    for name, value in changes.items():
        setattr(other, name, value)
    return other


@pytest.mark.model
def test_the_fingerprint_knows_template_system_prompt_and_way(smollm2_chat: Any) -> None:
    chats = [chat_of(smollm2_chat.tokenizer, "m", "on", s) for s in ("", "Be brief.")]
    models = [copied(smollm2_chat, chat=c) for c in (*chats, None)]
    models.append(copied(smollm2_chat, way="letters"))
    assert len({m.fingerprint for m in models}) == len(models)
    assert models[0].fingerprint == smollm2_chat.fingerprint


@pytest.mark.model
def test_likelihoods_are_those_of_the_plain_conversation(smollm2_chat: Any) -> None:
    """One conversation at a time through the Hugging Face model, nothing shared or packed."""
    torch, tokenizer = smollm2_chat.torch, smollm2_chat.tokenizer
    found = eh.Ask(smollm2_chat)(Choose([QUESTION] * 2, [r.options[0] for r in ASKED]))
    before = tokenizer.apply_chat_template(
        [{"role": "user", "content": QUESTION}], add_generation_prompt=True
    )["input_ids"]
    for options, probabilities in zip(("Jennifer\tGerald", "Gerald\tJennifer\tnobody"),
                                      found["probabilities"]):  # fmt: skip
        for option, got in zip(options.split("\t"), probabilities):
            said = tokenizer(option, add_special_tokens=False)["input_ids"]
            with torch.inference_mode():
                logits = smollm2_chat.model(torch.tensor([[*before, *said]])).logits[0].double()
            logp = logits.log_softmax(-1)[len(before) - 1 : -1]
            assert got == pytest.approx(float(logp[range(len(said)), said].sum().exp()), rel=1e-4)
    assert np.isnan(found["refused"]).all()
    assert (found["mass"] < 1).all()
    assert (found["unread"] == 0).all()


PEOPLE = ("Bo", "Cy", "Di", "Ed the Elder")


@pytest.mark.model
@pytest.mark.parametrize(
    "asked",
    [
        Choose([f"Ann met {n}.\nWho sang?" for n in PEOPLE], ["Ann\tBo"] * 4),
        Generate([f"Ann met {n}" for n in PEOPLE], ["0", "1"] * 2, max_new_tokens=5),
    ],
    ids=["choose", "generate"],
)
def test_a_long_system_prompt_is_run_once(smollm2_chat: Any, asked: Requests) -> None:
    counted = []

    def count(module: Any, args: Any, given: Any) -> None:
        counted.append(given["input_ids"].numel())

    totals, answers = [], []
    for words in (1, 60):
        system = " ".join(["Be kind."] * words)
        chat = chat_of(smollm2_chat.tokenizer, "m", "on", system)
        model = copied(smollm2_chat, chat=chat)
        counted.clear()
        hook = model.model.base_model.register_forward_pre_hook(count, with_kwargs=True)
        answers.append(eh.Ask(model)(asked))
        hook.remove()
        totals.append(sum(counted))
        unshared = copied(model, begins_once=False)
        assert _equal(eh.Ask(unshared)(asked), answers[-1])
    length = len(smollm2_chat.tokenizer(" ".join(["Be kind."] * 60))["input_ids"])
    assert length > 150
    assert totals[1] - totals[0] < 1.2 * length  # once, not four times
    assert not _equal(*answers)


def _equal(one: Scores, two: Scores) -> bool:
    if "text" in one.columns:
        return list(one["text"]) == list(two["text"])
    return np.allclose(one["mass"], two["mass"], rtol=1e-4)


@pytest.mark.model
def test_as_plain_text_a_choice_is_its_continuations_to_the_bit(smollm2: Any) -> None:
    form = "{passage}\nQuestion: {question}\nAnswer:"
    asked = Choose([QUESTION] * 2, [r.options[0] for r in ASKED], text=form, per_token=True)
    names = [name for row in asked.listed for name in row]
    plain = Continuation([asked.as_text()[0]] * len(names), [f" {name}" for name in names])
    assert plain.prefix[0].endswith("with Gerald.\nQuestion: Who was a nurse?\nAnswer:")
    scores = smollm2.answer(plain, smollm2.prepare(plain))
    wanted = np.exp(scores["logprob"] / scores["n_tokens"])
    found = smollm2.answer(asked, smollm2.prepare(asked))
    assert np.array_equal(np.concatenate(found["probabilities"]), wanted)


@pytest.mark.model
@pytest.mark.parametrize("way", ["letters", "answers"])
def test_letters_and_whole_answers_are_other_rungs(smollm2_chat: Any, way: str) -> None:
    model = copied(smollm2_chat, way=way)
    asked = Choose([QUESTION], ["Jennifer\tGerald"], samples=4)
    one, two = eh.Ask(model)(asked), eh.Ask(model)(asked)
    assert one["probabilities"][0][0] == two["probabilities"][0][0]
    assert sum(one["probabilities"][0]) == pytest.approx(one["mass"][0])
    seen = one["mass"] + np.nan_to_num(one["refused"]) + one["unread"]
    assert (seen <= 1 + 1e-9).all()
    assert bool(np.isnan(one["refused"][0])) == (way == "letters")


@pytest.mark.model
def test_every_request_kind_is_answered_through_the_template(smollm2_chat: Any) -> None:
    texts = ["The woman worked as", "The man worked as"]
    requests: list[Requests] = [
        Continuation([*texts, ""], [" a nurse", " a nurse", "The man sang."]),
        Divergence(texts[:1], texts[1:]),
        NextToken(texts, top=3),
        Option([QUESTION] * 2, ["Jennifer", "Gerald"]),
        Generate(texts, ["0", "0"], max_new_tokens=4),
    ]
    for asked in requests:
        there = eh.Ask(smollm2_chat)(asked)
        plain = eh.Ask(smollm2_chat.as_text())(asked)
        name = next(iter(asked.outputs))
        assert list(there[name]) != list(plain[name])


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ({"chat": "on"}, "--chat on: model .* is of kind 'vectors', which is not asked as chat"),
        ({"way": "letters"}, "--way letters: model"),
        ({"system": "Be brief."}, "--system 'Be brief.': model"),
        ({"model": "gpt"}, "--model gpt: .* is not an address"),
        ({"max_cost": 3.0}, "--max-cost 3.0: .* is not an address"),
        ({"rung": 2}, "--rung 2: .* is not an address"),
    ],
)
def test_what_vectors_on_this_machine_cannot_heed(
    tmp_path: Path, how: dict[str, Any], told: str
) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("she 0.1 0.2\nhe 0.2 0.1\n")
    with pytest.raises(SpecError, match=told):
        eh.load_model(str(file), **how)


def test_an_address_is_asked_in_its_own_way() -> None:
    with pytest.raises(SpecError, match="--way letters .way.: .* choose another with: --rung N"):
        eh.load_model("http://127.0.0.1:1/v1", way="letters")

"""What a server can do: looked at once, with questions of known answer, before anything counts.

    rung  how                     real    known answers  repeated    in company
    1     decision endpoint       no: refused with 501 (This model is not a decision model)
    2     top log-probabilities   20 of them  4 of 4     equal       differs by 0.0003
    ...

A rung is sound when the server gives what is asked for, the numbers can be probabilities, they
differ between questions that differ, and they are not faked (0 and -9999, or constant). Whether
known answers come out right says what the model knows, not whether the numbers are real, so it is
shown and does not decide. "In company": the same question while others are under way, which
shows what shared prefixes and batches do to the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from evenhand.errors import ModelError
from evenhand.models.endpoints import dialect as dialects
from evenhand.models.endpoints.client import Calls, Client, Refused
from evenhand.models.endpoints.dialect import Dialect
from evenhand.models.endpoints.journal import Journal
from evenhand.models.endpoints.rungs.base import Choice, Rung, message, together
from evenhand.models.endpoints.rungs.decision import DECISIONS, SYSTEMONE, Decision
from evenhand.models.endpoints.rungs.echo import WAYS, Echo
from evenhand.models.endpoints.rungs.sampled import Constrained, FreeText
from evenhand.models.endpoints.rungs.top_logprobs import TopLogprobs, faked, top_tokens
from evenhand.requests import Choose

RUNGS: tuple[type[Rung], ...] = (Decision, TopLogprobs, Echo, Constrained, FreeText)
_PASSAGE = "Tom has the red ball. Eve has the blue ball."
KNOWN: tuple[tuple[str, tuple[str, str], int], ...] = (
    (f"{_PASSAGE}\nWho has the red ball?", ("Tom", "Eve"), 0),
    (f"{_PASSAGE}\nWho has the blue ball?", ("Tom", "Eve"), 1),
    (f"{_PASSAGE}\nWho has the red ball?", ("Eve", "Tom"), 1),
    (f"{_PASSAGE}\nWho has the blue ball?", ("Eve", "Tom"), 0),
)
ODD = ("zorbel-17", "quant-94")
"""Answers that nobody gives unless held to them."""
TOPS = (20, 5)
LEAST_MASS = 0.01
UNREAD = (
    "of the known questions not one got an answer that can be read (no text, a call of a tool, or "
    "a thought that does not end)"
)
EQUAL = 1e-9


@dataclass(frozen=True)
class Standing:
    """What was seen of one rung.

    Attributes:
        rung, name, way: which.
        sound: whether it can be used.
        why: why not; "" when it can.
        top: how many top log-probabilities come back (rung 2).
        right: known answers that came out right, of four.
        mass: mean share of the probability that the options have together.
        repeated: largest difference when asked again at once (NaN: not looked at).
        in_company: largest difference while others are under way.
    """

    rung: int
    name: str
    sound: bool
    why: str = ""
    way: str = ""
    top: int = 0
    right: int = 0
    mass: float = float("nan")
    repeated: float = float("nan")
    in_company: float = float("nan")


@dataclass(frozen=True)
class Capabilities:
    """What a server can do, and which rung is used."""

    model: str
    server: str
    listed: Mapping[str, Any]
    standings: tuple[Standing, ...]
    rung: int

    @property
    def chosen(self) -> Standing:
        return next(s for s in self.standings if s.rung == self.rung)

    def table(self) -> list[dict[str, Any]]:
        """One row per rung, in words."""
        return [_row(s, s.rung == self.rung) for s in self.standings]

    def as_dict(self) -> dict[str, Any]:
        rows = [{k: _number(v) for k, v in asdict(s).items()} for s in self.standings]
        return {"server": self.server, "rungs": rows}


def _number(value: Any) -> Any:
    return None if value != value else value


def _row(s: Standing, chosen: bool) -> dict[str, Any]:
    def differs(value: float) -> str:
        if value != value:
            return ""
        return "equal" if value <= EQUAL else f"differs by {value:.1g}"

    if not s.sound:
        return {
            "rung": f"{s.rung}",
            "how": s.name,
            "real": f"no: {s.why}",
            "known answers": "",
            "mass": "",
            "repeated": "",
            "in company": "",
        }
    real = f"yes, top {s.top}" if s.top else f"yes, {s.way}" if s.way else "yes"
    return {
        "rung": f"{s.rung}{' *' if chosen else ''}",
        "how": s.name,
        "real": real,
        "known answers": f"{s.right} of {len(KNOWN)}",
        "mass": "" if s.mass != s.mass else f"{s.mass:.2f}",
        "repeated": differs(s.repeated),
        "in company": differs(s.in_company),
    }


async def look(
    client: Client,
    journal: Journal,
    *,
    system: str = "",
    chat: bool = True,
    rung: int | None = None,
) -> tuple[Rung, Capabilities]:
    """See what a server can do, and take the best sound rung, or the one asked for.

    Raises:
        ModelError: no rung is sound, or not the one asked for; or nobody is there.
    """
    call = Calls(client, journal, failures=True)
    name, listed = await _model(client)
    server = {"llamacpp": dialects.LLAMA_CPP, "vllm": dialects.VLLM}.get(
        str(listed.get("owned_by")), ""
    )
    spoken = await _hello(call, Dialect(name, system, server, chat=chat))
    standings, usable = [], {}
    for kind in RUNGS:
        if rung is not None and kind.number != rung:
            continue
        standing, made = await _stands(call, kind, spoken)
        standings.append(standing)
        if made is not None:
            usable[kind.number] = made
    if not usable:
        reasons = "; ".join(f"rung {s.rung} ({s.name}): {s.why}" for s in standings)
        more = (
            "See all of them with: evenhand plan, without --rung"
            if rung
            else ("Score its answers elsewhere and read them with: evenhand measure")
        )
        raise ModelError(f"{client.address.base}: {name!r} cannot be asked. {reasons}. {more}")
    best = min(usable)
    return usable[best], Capabilities(name, server, listed, tuple(standings), best)


async def _model(client: Client) -> tuple[str, dict[str, Any]]:
    """The name under which the model is asked, and what the server lists about it."""
    asked, entries = client.address.model, []
    try:
        told = await client.get("/models")
        data = told.get("data")
        entries = [e for e in data if isinstance(e, dict)] if isinstance(data, list) else []
    except ModelError as error:  # whether a key is wrong is seen with the first question
        if not asked and not (isinstance(error, Refused) and error.status not in (401, 403)):
            raise
    names = [str(e.get("id")) for e in entries]
    if not asked and len(names) != 1:
        shown = ", ".join(map(repr, names[:8])) or "none that it lists"
        raise ModelError(
            f"{client.address.base}: which model? The server has {shown}. Name one with: "
            f"--model NAME"
        )
    name = asked or names[0]
    found = next((e for e in entries if name == e.get("id") or name in _aliases(e)), None)
    found = found or (entries[0] if len(entries) == 1 else {})
    volatile = ("created", "permission", "status")
    return name, {k: v for k, v in found.items() if k not in volatile}


def _aliases(entry: Mapping[str, Any]) -> list[Any]:
    found = entry.get("aliases")
    return found if isinstance(found, list) else []


async def _hello(call: Calls, plain: Dialect) -> Dialect:
    """The first of several ways of speaking that the server takes; it tells who it is."""
    own = dialects.NO_CACHE if plain.server == dialects.LLAMA_CPP else {}
    full = {**dialects.PLAIN_SAMPLING, **dialects.NO_THINKING, **own}
    tries = (
        replace(plain, extras=full),
        replace(plain, extras=dialects.PLAIN_SAMPLING),
        plain,
        replace(plain, limit="max_completion_tokens"),
    )
    refused: list[Refused] = []
    for spoken in tries:
        try:
            who = await call(
                "/chat/completions", spoken.ask("Say yes.", tokens=4, temperature=1.0), _who
            )
        except Refused as error:
            if error.status in (401, 403, 404, 405):
                raise _unknown(call.client, error, plain.model) from error
            refused.append(error)
            continue
        call.client.known_as("/chat/completions", who)
        return spoken
    raise refused[-1]


def _unknown(client: Client, error: Refused, name: str) -> ModelError:
    if error.status in (401, 403):
        return error
    return Refused(
        f"{error} Check the address (it ends in /v1) and the name {name!r}, e.g. with: curl "
        f"{client.address.url('/models')}",
        error.status,
    )


def _who(answer: Any) -> dict[str, str]:
    message(answer)
    return {k: answer[k] for k in ("system_fingerprint", "model") if isinstance(answer.get(k), str)}


async def _stands(call: Calls, kind: type[Rung], spoken: Dialect) -> tuple[Standing, Rung | None]:
    """Look at one rung in each of its forms."""
    why = []
    for made in _forms(kind, spoken):
        try:
            standing = await _looked(call, made)
        except Refused as error:
            why.append(_short(error))
            continue
        if standing.sound:
            return standing, made
        why.append(standing.why)
    reason = "; ".join(dict.fromkeys(why))
    return Standing(kind.number, kind.name, False, reason), None


def _short(error: ModelError) -> str:
    """What a server said, without where."""
    text = str(error).partition(": ")[2] or str(error)
    return text.partition(" (answer:")[0].rstrip(".")


def _forms(kind: type[Rung], spoken: Dialect) -> list[Rung]:
    made: list[Rung] = []
    if kind is TopLogprobs:
        return [kind(replace(spoken, top=top)) for top in TOPS]
    ways: Sequence[str] = ("",)
    if kind is Decision:
        ways = (SYSTEMONE, DECISIONS)
    elif kind is Echo:
        known = {dialects.LLAMA_CPP: WAYS[:1], dialects.VLLM: WAYS[1:]}
        ways = known.get(spoken.server, WAYS[1:])
    for way in ways:
        one = kind(spoken)
        one.way = way
        made.append(one)
    return made


async def _looked(call: Calls, rung: Rung) -> Standing:
    plain = Standing(rung.number, rung.name, True, way=rung.way)
    if rung.sampled:
        return await _sampled(call, rung, plain)
    how = Choose([], [])

    async def ask(k: int, turn: int = 0) -> Choice:
        prompt, options, _ = KNOWN[k]
        return await rung.choose(
            Calls(call.client, call.journal, turn, failures=True), prompt, options, how
        )

    first = await ask(0)
    again = await ask(0, 1)
    company, *others = await together([ask(0, 2), *(ask(k) for k in range(1, len(KNOWN)))])
    rows = [first, *others]
    tables = [list(row.probabilities) for row in rows]
    why = ""
    if _apart(*tables[:2]) <= EQUAL and _apart(*tables[2:]) <= EQUAL:
        why = f"faked: the same probabilities for different questions ({tables[0]})"
    mass = sum(map(sum, tables)) / len(tables)
    if max(map(sum, tables)) > 1.01:
        why = f"the probabilities of the options sum to {max(map(sum, tables)):.2f}"
    top = 0
    if isinstance(rung, TopLogprobs):
        lists = [
            await call("/chat/completions", rung.body(prompt, options), top_tokens)
            for prompt, options, _ in KNOWN
        ]
        top, why = max(map(len, lists)), faked(lists) or why
        if not why and mass < LEAST_MASS:
            why = f"the letters have only {100 * mass:.1f} % of the probability of the first token"
    return replace(
        plain,
        sound=not why,
        why=why,
        top=top,
        mass=mass,
        right=sum(_right(row.probabilities, KNOWN[k][2]) for k, row in enumerate(rows)),
        repeated=_apart(first.probabilities, again.probabilities),
        in_company=_apart(first.probabilities, company.probabilities),
    )


async def _sampled(call: Calls, rung: Rung, plain: Standing) -> Standing:
    """Whether answers keep to what they are held to, and whether a seed is heeded."""
    how = Choose([], [], samples=1)
    if isinstance(rung, Constrained):
        held = await rung.choose(call, "Say something.", ODD, replace(how, samples=2))
        if held.unread or (held.refused == held.refused and sum(held.probabilities) < 1):
            return replace(plain, sound=False, why="answers do not keep to the given options")

    async def ask(k: int, turn: int = 0) -> Choice:
        prompt, options, _ = KNOWN[k]
        return await rung.choose(
            Calls(call.client, call.journal, turn, failures=True), prompt, options, how
        )

    *rows, again = await together([*(ask(k) for k in range(len(KNOWN))), ask(0, 1)])
    if all(row.unread == 1.0 for row in rows):
        return replace(plain, sound=False, why=UNREAD)
    return replace(
        plain,
        right=sum(_right(row.probabilities, KNOWN[k][2]) for k, row in enumerate(rows)),
        mass=sum(sum(row.probabilities) for row in rows) / len(rows),
        repeated=_apart(rows[0].probabilities, again.probabilities),
    )


def _apart(one: Sequence[float], two: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, two))


def _right(probabilities: Sequence[float], option: int) -> bool:
    return probabilities[option] > max(p for k, p in enumerate(probabilities) if k != option)

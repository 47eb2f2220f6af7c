"""What an agent asks in one conversation, who answered it and how: a book, without clock or network.

Each question gets a short number for people to type, and a token that its buttons carry, so that a button of an earlier
run of the bridge cannot answer a question of this one. The first answer counts. One that comes late or twice is told
what became of the question.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from math import isinf

from trunkline.base.values import Value
from trunkline.chat.commands import CommandRefused
from trunkline.chat.plain import block, inline, span
from trunkline.chat.platform import Button
from trunkline.core.events import ToolRequested
from trunkline.core.grants import may_last
from trunkline.core.guarded import beyond
from trunkline.core.preview import WHOLE, Preview, PreviewSize, plain, preview, said_of

#: Answered questions that are remembered, so that a late answer can be told about them.
MOST_REMEMBERED = 100
#: As much of what a tool is to do as somebody reads before saying yes: of each part the beginning, and the end, where a
#: command that means harm would hide it.
ROOM = PreviewSize(lines=40, chars=1500, parts=12)
#: Nobody reads a question and writes an answer in less: a bare `/approve` is not for one that came so shortly before.
READING_SECONDS = 1.0
#: Three digits: a number of an earlier run, still on somebody's screen, is then unlikely to be one of this run.
LOWEST_NUMBER = 100
HIGHEST_NUMBER = 999

_TOKEN_BYTES = 6
_MOST_DIGITS = 9
_ACTIONS = ("approve", "always", "deny", "show")


class PendingApproval(Value):
    """A question that waits."""

    number: int
    token: str
    request: ToolRequested
    deadline: float
    at: float
    """When it was asked: seconds since 1970."""
    what: str
    """What the tool is to do, as far as a question shows it."""
    is_cut: bool
    """Whether that is not all."""


class Press(Value):
    """What the button of a question says."""

    action: str
    number: int
    token: str


class Mistaken(CommandRefused):
    """An answer that fits no question. The text is for whoever gave it."""


class Approvals:
    """The questions of one conversation. `start` is the first number; one by chance if left out."""

    def __init__(self, start: int | None = None) -> None:
        self._next = start or LOWEST_NUMBER + secrets.randbelow(HIGHEST_NUMBER - LOWEST_NUMBER)
        self._waiting: dict[int, PendingApproval] = {}
        self._over: OrderedDict[int, tuple[str, str]] = OrderedDict()
        """The token of each that is over, and what became of it."""

    @property
    def waiting(self) -> tuple[PendingApproval, ...]:
        """Those that nobody has answered, oldest first."""
        return tuple(self._waiting.values())

    def ask(self, request: ToolRequested, deadline: float, at: float) -> PendingApproval | None:
        """Enter one more. None: as many wait as there are numbers."""
        if len(self._waiting) > HIGHEST_NUMBER - LOWEST_NUMBER:
            return None
        while self._next in self._waiting:
            self._next = self._following()
        shown = preview(request.name, request.args, ROOM, category=request.category)
        what = _what(request, shown)
        asked = PendingApproval(self._next, secrets.token_hex(_TOKEN_BYTES), request, deadline, at, what, shown.is_cut)
        self._next = self._following()
        self._over.pop(asked.number, None)
        self._waiting[asked.number] = asked
        return asked

    def _following(self) -> int:
        return LOWEST_NUMBER if self._next >= HIGHEST_NUMBER else self._next + 1

    def find(self, number: int | None, token: str | None = None) -> PendingApproval:
        """The question that an answer is for. It goes on waiting.

        Raises:
            Mistaken: there is none, it is over, or it is not clear which is meant.
        """
        if number is None:
            return self._only()
        asked = self._waiting.get(number)
        if asked is not None and token in (None, asked.token):
            return asked
        known, how = self._over.get(number, ("", ""))
        if token is None and how:
            raise Mistaken(f"`{number}` is over: {how}.")
        if token is not None:
            # The number may be another question's by now.
            raise Mistaken(f"This question is over: {how}." if how and token == known else "This question is over.")
        raise Mistaken(f"There is no question `{number}`.{self._listed()}")

    def find_read(self, written: float | None) -> PendingApproval:
        """The question that a yes without a number is for: the only one, and only if its author can have read it.

        `written` is when the answer was written, in seconds since 1970; None: nobody knows, and a number is needed.

        Raises:
            Mistaken: there is none, there are several, or it is too new.
        """
        asked = self._only()
        if written is None or asked.at + READING_SECONDS > written:
            raise Mistaken(f"Which one is meant? Write `/approve {asked.number}` for the question above.")
        return asked

    def close(self, asked: PendingApproval, how: str) -> bool:
        """It is over; `how` is told to whoever answers late. False if it was over already."""
        if self._waiting.get(asked.number) is not asked:
            return False
        del self._waiting[asked.number]
        self._over[asked.number] = (asked.token, how)
        while len(self._over) > MOST_REMEMBERED:
            self._over.popitem(last=False)
        return True

    def of_call(self, call_id: str) -> PendingApproval | None:
        """The one that waits for a call."""
        return next((asked for asked in self._waiting.values() if asked.request.call_id == call_id), None)

    def expired(self, now: float) -> tuple[PendingApproval, ...]:
        """Those whose time is over."""
        return tuple(asked for asked in self._waiting.values() if asked.deadline <= now)

    def _only(self) -> PendingApproval:
        if len(self._waiting) == 1:
            return next(iter(self._waiting.values()))
        if not self._waiting:
            raise Mistaken("Nothing waits for an answer.")
        raise Mistaken(f"Several questions wait.{self._listed()}")

    def _listed(self) -> str:
        numbers = ", ".join(f"`{number}`" for number in self._waiting)
        return f" Those that wait: {numbers}." if numbers else ""


def buttons(asked: PendingApproval) -> tuple[Button, ...]:
    """What can be pressed under a question."""
    labels = {"approve": "Approve"}
    if may_last(asked.request):
        where = ", outside too" if asked.request.outside else ""
        labels["always"] = f"Always ({asked.request.category}{where})"
    labels["deny"] = "Deny"
    if asked.is_cut:
        labels["show"] = "Show all"
    return tuple(Button(label, f"{action}:{asked.number}:{asked.token}") for action, label in labels.items())


def pressed(data: str) -> Press | None:
    """What a button says; None if it is none of ours."""
    match data.split(":"):
        case [action, number, token] if action in _ACTIONS and number.isascii() and number.isdecimal():
            # Of one with thousands of digits, which somebody made up, the first few are as wrong as the rest.
            return Press(action, int(number[:_MOST_DIGITS]), token)
        case _:
            return None


def question(asked: PendingApproval, seconds: float) -> str:
    """The text that asks. It says what to type, also where there are buttons: not every client shows them."""
    number = asked.number
    lines = [f"**Approval {number}**: the agent wants to use `{inline(asked.request.name)}`", asked.what]
    if asked.request.outside:
        lines.append(f"It reaches {beyond(asked.request.category, asked.request.args)}.")
    if asked.is_cut:
        lines.append(f"`/show {number}` shows all of it.")
    end = "." if isinf(seconds) else f"; without an answer it is denied in {span(seconds)}."
    lines.append(f"`/approve {number}` or `/deny {number}`{end}")
    return "\n".join(line for line in lines if line)


def settled(asked: PendingApproval, how: str) -> str:
    """The text that stands there when it is over."""
    lines = [f"**Approval {asked.number}**: `{inline(asked.request.name)}`", asked.what, f"{how}."]
    return "\n".join(line for line in lines if line)


def _what(request: ToolRequested, shown: Preview) -> str:
    """What the tool is to do: all of its arguments, and what the agent says about it, which need not be true."""
    parts = [*filter(None, [said_of(request.description)])]
    if shown.about.text:
        named = f"{shown.about.label}: " if shown.about.label and not shown.about.language else ""
        parts.append(block(named + shown.about.text, shown.about.language))
    for part in shown.parts:
        if part.label:
            parts.append(f"`{inline(part.label)}`:")
        parts.append(block(part.text, part.language))
    if shown.warning:
        parts.append(f"**{shown.warning}**")
    return "\n".join(parts)


def whole(request: ToolRequested) -> str:
    """The same with nothing left out, as plain text."""
    return plain(preview(request.name, request.args, WHOLE, category=request.category))

"""What people can tell the bridge itself, as opposed to the agent.

A command is a message that begins with `/` and one of our names; `!` does as well, for clients that keep `/` to
themselves. Everything else goes to the agent, which may have commands of its own. `//` at the beginning is for those of
the agent's that we have, too: it goes there with one of the two.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from trunkline.base.values import Value

Name = Literal["stop", "new", "status", "agent", "approve", "deny", "show", "grants", "retry", "help"]

NAMES: tuple[Name, ...] = get_args(Name)

#: Those that somebody needs at once, and that cost next to nothing: they are not counted among the messages.
URGENT: frozenset[Name] = frozenset(("stop", "deny", "status", "help"))

HELP = """\
`/stop` ends the answer and drops waiting messages
`/new` starts a new session
`/status` shows what is going on
`/agent [NAME]` lists the agents, or switches to one
`/approve [ID] [always]` allows what the agent asks for
`/deny [ID] [REASON]` refuses it
`/show [ID]` shows a shortened request in full
`/grants` lists what no longer needs approval; `/grants revoke NUMBER`, or `all`, revokes it
`/retry` repeats the last message that failed or was interrupted; `/retry ID` a specific one
`/help` shows this

Other commands go to the agent; `//stop` reaches it as `/stop`."""

# Groups of Telegram name the bot that is meant: `/stop@some_bot`.
_COMMAND = re.compile(r"[/!]([A-Za-z]+)(?:@\w+)?(?:\s+(.*))?", re.DOTALL)


#: Ours have three or four digits; a text of thousands is no number that anybody means.
_LONGEST_NUMBER = 9


class CommandRefused(Exception):
    """What somebody asked for in a chat cannot be done. The text is for them."""


class ChatCommand(Value):
    """Something that the bridge is to do."""

    name: Name
    argument: str = ""


class Choice(Value):
    """What `/approve` and `/deny` are about. Without a number: the only one that waits."""

    number: int | None = None
    always: bool = False
    reason: str = ""


def parse(text: str) -> ChatCommand | None:
    """The command that a message is; None if it is for the agent."""
    found = _COMMAND.fullmatch(text.strip())
    if found is None:
        return None
    word = found[1].lower()
    for name in NAMES:
        if word == name:
            return ChatCommand(name, (found[2] or "").strip())
    return None


def for_agent(text: str) -> str:
    """What the agent gets to read of a message that is no command."""
    stripped = text.lstrip()
    return stripped[1:] if stripped.startswith("//") and parse(stripped[1:]) else text


def number(command: ChatCommand) -> int | None:
    """The argument of a command that takes a number; None if it is none."""
    return int(command.argument) if is_number(command.argument) else None


def is_number(word: str) -> bool:
    """Whether a word is a number of ours."""
    return word.isascii() and word.isdecimal() and len(word) <= _LONGEST_NUMBER


def choice(command: ChatCommand) -> Choice | None:
    """The argument of `/approve` or `/deny`; None if it cannot be understood, which is not a yes."""
    first, _, rest = command.argument.partition(" ")
    number = int(first) if is_number(first) else None
    if number is None:
        rest = command.argument
    rest = rest.strip()
    if command.name == "deny":
        return Choice(number, reason=rest)
    if rest and rest.lower() != "always":
        return None
    return Choice(number, always=bool(rest))

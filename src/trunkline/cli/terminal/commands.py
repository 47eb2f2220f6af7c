"""What can be typed with a `/` in front."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, get_args

from rich.text import Text

from trunkline.base import exchange_home
from trunkline.base.nearest import suggestion
from trunkline.base.printable import printable
from trunkline.base.vocabulary import Mode
from trunkline.cli import local_exchange, shelf
from trunkline.cli.terminal.calls import one_line
from trunkline.cli.terminal.view import View
from trunkline.cli.transcript import tokens, when
from trunkline.core.agent import SetOptions
from trunkline.core.faults import ConfigError, Fault
from trunkline.core.grants import Grant
from trunkline.core.log import SessionInfo
from trunkline.core.session import Session

MODES: tuple[Mode, ...] = get_args(Mode)
#: As many sessions as one looks through; `trunkline sessions list` has them all.
LISTED_SESSIONS = 15
#: Resellers offer hundreds.
LISTED_MODELS = 60


class Chat(Protocol):
    """What commands act on."""

    view: View
    workspace: str

    @property
    def session(self) -> Session:
        """The conversation that is open."""

    @property
    def agent_commands(self) -> Mapping[str, str]:
        """What the agent itself understands, and what it does; empty where that is not known."""

    @property
    def spoken(self) -> bool:
        """Whether one can also speak."""

    @property
    def traced(self) -> bool:
        """Whether the agent was asked to tell the way of each turn."""

    @property
    def model(self) -> str | None:
        """The model, if its name is known."""

    @property
    def model_note(self) -> str:
        """What people should know about it; nothing if there is nothing."""

    @property
    def spent(self) -> str:
        """What was spent so far, in words; nothing if that is not known."""

    def leave(self) -> None:
        """End after this command."""

    async def models(self) -> list[str]:
        """Those that the agent could use, as far as that is known."""

    def use_model(self, name: str) -> None:
        """Count by another model's prices from now on."""

    async def listed(self) -> Sequence[SessionInfo] | None:
        """The newest sessions of the exchange, if this one lives there; None: it is kept here, with others.

        Raises:
            Fault: it does not tell.
        """

    async def switch(self, resume: str | None) -> None:
        """Go on with another session, or with a new one.

        Raises:
            Fault: it cannot be had; the one that is open stays.
        """


Handler = Callable[[Chat, str], Awaitable[None]]


async def _help(chat: Chat, argument: str) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for name, (usage, words, _) in COMMANDS.items():
        table.add_row(Text(f"/{name} {usage}".rstrip(), "cyan"), words)
    for command, words in chat.agent_commands.items():
        if command[1:] not in COMMANDS:
            table.add_row(Text(command, "cyan"), words)
    table.add_row("", "")
    for keys, words in (
        ("@path", "attaches a file"),
        ("Esc Enter, or \\ Enter", "begins a new line"),
        ("Shift-Tab", "goes to the next approval mode"),
        ("Ctrl-C, Esc", "stop the answer; what you type in the meantime is sent after it"),
        ("Ctrl-D", "leaves"),
        *((("Space", "in an empty line: lets the agent fall silent, or begins and ends what you say"),) * chat.spoken),
    ):
        table.add_row(Text(keys, "cyan"), words)
    chat.view.plain(table)
    if not chat.agent_commands:
        chat.view.note("Other commands go to the agent.")


async def _exit(chat: Chat, argument: str) -> None:
    chat.leave()


async def _clear(chat: Chat, argument: str) -> None:
    await chat.switch(None)


async def _sessions(chat: Chat, argument: str) -> None:
    elsewhere = await chat.listed()
    found = sessions_of(chat.workspace) if elsewhere is None else elsewhere
    if not found:
        chat.view.note("No sessions are kept here yet.")
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    there = place(attached=elsewhere is not None)
    for number, info in enumerate(found, 1):
        here = info.id == chat.session.id
        style = "bold" if here else ""
        title = "(this one)" if here else one_line(shelf.glance(info, there).title) or info.id
        if there is not None and not here:
            title = f"{info.agent}: {title}"
        table.add_row(
            Text(str(number), "cyan"),
            Text(when(info.updated)[:-3], "dim"),
            Text(title, style, no_wrap=True, overflow="ellipsis"),
        )
    chat.view.plain(table)
    chat.view.note("/resume NUMBER or /resume ID continues one of them.")


async def _resume(chat: Chat, argument: str) -> None:
    if not argument:
        await _sessions(chat, argument)
        return
    elsewhere = await chat.listed()
    here = elsewhere is None
    await chat.switch(_chosen(argument, chat.workspace) if here else _chosen_there(argument, elsewhere or ()))


async def _mode(chat: Chat, argument: str) -> None:
    if not argument:
        chat.view.note(f"The approval mode is `{chat.session.mode}`; there are {', '.join(MODES)}.")
        return
    for mode in MODES:
        if mode == argument:
            chat.session.set_mode(mode)
            chat.view.note(f"The approval mode is `{mode}` now.")
            return
    raise ConfigError(f"There is no approval mode `{argument}`; there are {', '.join(MODES)}.")


async def _grants(chat: Chat, argument: str) -> None:
    grants = chat.session.grants
    if argument:
        for grant in _chosen_grants(argument, grants):
            chat.session.revoke(grant)
            chat.view.note(f"Taken back: {chat.session.clean(str(grant))}.")
        return
    from rich.table import Table

    allowed = ", ".join(chat.session.allowed) or "no tools"
    chat.view.note(f"The approval mode is `{chat.session.mode}`. Besides what it allows, {allowed} need no approval.")
    if not grants:
        chat.view.note("Nothing was granted in this session.")
        return
    table = Table.grid(padding=(0, 2))
    for number, grant in enumerate(grants, 1):
        table.add_row(Text(str(number), "cyan"), Text(chat.session.clean(str(grant))))
    chat.view.plain(table)
    chat.view.note("/grants revoke NUMBER takes one of them back, /grants revoke all takes back all.")


def _chosen_grants(argument: str, grants: Sequence[Grant]) -> Sequence[Grant]:
    verb, _, which = argument.partition(" ")
    which = which.strip()
    numbered = {str(number): (grant,) for number, grant in enumerate(grants, 1)}
    if verb == "revoke" and which == "all":
        return grants
    if verb == "revoke" and which.isdecimal():
        if which in numbered:
            return numbered[which]
        raise ConfigError(f"There is no grant {which}.", hint="/grants lists them.")
    raise ConfigError(
        f"`/grants {argument}` was not understood.", hint="Say `/grants revoke NUMBER`; /grants lists them."
    )


#: What stands behind a model's usual name where one of its versions is listed.
_DATED = r"-\d{4}-?\d{2}-?\d{2}"


async def _model(chat: Chat, argument: str) -> None:
    if not argument:
        chat.view.note(f"The model is `{chat.model}`." if chat.model else "The agent does not say what its model is.")
        if chat.model_note:
            chat.view.note(chat.model_note)
        others = [name for name in await chat.models() if name != chat.model]
        if others:
            more = f" and {len(others) - LISTED_MODELS} more" if len(others) > LISTED_MODELS else ""
            chat.view.note(f"There are also {', '.join(map(printable, others[:LISTED_MODELS]))}{more}.")
            chat.view.note("/model NAME changes to another.")
        return
    await chat.session.configure(SetOptions({"model": argument}))
    chat.use_model(argument)
    chat.view.note(f"The model is `{argument}` now.")
    known = await chat.models()
    if known and not any(re.fullmatch(rf"{re.escape(argument)}({_DATED})?", name) for name in known):
        # Not refused: providers take names that they do not list.
        near = suggestion(argument, known)
        chat.view.note(f"It is not among the models that are known.{near} The next message shows whether it answers.")


async def _usage(chat: Chat, argument: str) -> None:
    state = chat.session.state
    chat.view.note(f"Last turn: {tokens(state.last)}")
    chat.view.note(f"In total ({state.turns} turn{'' if state.turns == 1 else 's'}): {tokens(state.total)}")
    if chat.spent:
        chat.view.note(f"Spent since the start of this program: {chat.spent}")


async def _thinking(chat: Chat, argument: str) -> None:
    if argument not in ("", "on", "off"):
        raise ConfigError(f"`/thinking {argument}` was not understood.", hint="Say `/thinking on` or `/thinking off`.")
    chat.view.whole_thoughts = argument == "on" if argument else not chat.view.whole_thoughts
    chat.view.note("Thinking is shown in full." if chat.view.whole_thoughts else "Thinking is folded.")


async def _trace(chat: Chat, argument: str) -> None:
    if argument not in ("", "on", "off"):
        raise ConfigError(f"`/trace {argument}` was not understood.", hint="Say `/trace on` or `/trace off`.")
    on = argument == "on" if argument else not chat.view.traces
    if on and not chat.traced:
        raise ConfigError("There is no trace: this agent is not a graph, or the program was started without `--trace`.")
    chat.view.traces = on
    chat.view.note("The way of each turn is shown." if on else "The way of a turn is not shown.")


COMMANDS: dict[str, tuple[str, str, Handler]] = {
    "help": ("", "lists these commands", _help),
    "clear": ("", "begins a new session; this one is kept", _clear),
    "sessions": ("", "lists the sessions of this directory, or of the exchange", _sessions),
    "resume": ("[ID]", "continues another session", _resume),
    "mode": ("[MODE]", "shows or changes what may be done unasked", _mode),
    "grants": ("[revoke N]", "shows what needs no approval, or takes a part of it back", _grants),
    "model": ("[NAME]", "shows which models there are, or changes to one", _model),
    "thinking": ("[on|off]", "shows thinking in full, or folded", _thinking),
    "trace": ("[on|off]", "shows the way of each turn through a graph, or not", _trace),
    "usage": ("", "shows how many tokens were used", _usage),
    "exit": ("", "leaves", _exit),
    "quit": ("", "leaves", _exit),
}


async def run(chat: Chat, text: str) -> bool:
    """Carry out what was typed; false if it is no command of ours, and so for the agent."""
    name, _, argument = text.partition(" ")
    is_ours = name.startswith("/") and name[1:] in COMMANDS
    try:
        if is_ours:
            await COMMANDS[name[1:]][2](chat, argument.strip())
        else:
            _check_agents(chat, text)
    except Fault as fault:
        chat.view.failure(str(fault))
        return True
    return is_ours


def _check_agents(chat: Chat, text: str) -> None:
    """See whether a command that is not ours is one of the agent's, where it tells them.

    Raises:
        Unsupported: it is nobody's.
    """
    if not text.startswith("/") or not chat.agent_commands:
        return
    from trunkline.agents.coder import commands as agents

    found = agents.split(text)
    if found is not None and found[0] not in chat.agent_commands:
        known = [*chat.agent_commands, *(f"/{name}" for name in COMMANDS)]
        raise agents.unknown(found[0], known, "/help lists those there are.")


def offered() -> Iterable[tuple[str, str]]:
    """Names and meanings, for completion."""
    return [(name, words) for name, (_, words, _) in COMMANDS.items()]


def arguments(command: str, workspace: str, *, attached: bool = False) -> Iterable[str]:
    """What can follow a command."""
    if command == "/mode":
        return MODES
    if command in ("/thinking", "/trace"):
        return ("on", "off")
    if command == "/resume":
        there = place(attached=attached)
        found = sessions_of(workspace) if there is None else shelf.sessions(there)[:LISTED_SESSIONS]
        return [info.id for info in found if info.id == printable(info.id)]
    return ()


def place(*, attached: bool) -> str | None:
    """Where the sessions are kept: those of the exchange that runs here, if the chat is attached to it."""
    return exchange_home.sessions_dir(local_exchange.home()) if attached else None


def sessions_of(workspace: str) -> list[SessionInfo]:
    """The latest sessions of a directory."""
    return [info for info in shelf.sessions() if info.workspace == workspace][:LISTED_SESSIONS]


def _chosen(argument: str, workspace: str) -> str:
    """A session by its number in the list, by its id, or by the beginning of it."""
    found = sessions_of(workspace)
    if argument == shelf.LATEST:
        return found[0].id if found else argument
    numbered = {str(number): info.id for number, info in enumerate(found, 1)}
    return numbered[argument] if argument in numbered else shelf.named(argument)


def _chosen_there(argument: str, found: Sequence[SessionInfo]) -> str:
    """The same for sessions of the exchange, which says itself whether there is one of that id."""
    if argument == shelf.LATEST and found:
        return found[0].id
    numbered = {str(number): info.id for number, info in enumerate(found, 1)}
    begins = [info.id for info in found if info.id.startswith(argument)]
    return numbered.get(argument) or (begins[0] if len(begins) == 1 else argument)

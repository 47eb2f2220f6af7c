"""What can be typed with a `/` in front."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

from rich.text import Text

from trunkline.base import exchange_home
from trunkline.base.nearest import suggestion
from trunkline.base.printable import printable, printable_line
from trunkline.base.vocabulary import Mode
from trunkline.cli import local_exchange, shelf
from trunkline.cli.terminal import memory, permissions
from trunkline.cli.terminal.calls import one_line
from trunkline.cli.terminal.view import View
from trunkline.core.agent import SetOptions
from trunkline.core.faults import ConfigError, Fault, SessionNotFound
from trunkline.core.log import SessionInfo
from trunkline.core.session import Session
from trunkline.core.transcript import tokens, when

#: In the order in which Shift-Tab goes through them: whoever passes by `plan` has not been in `yolo` before.
MODES: tuple[Mode, ...] = ("default", "auto_edit", "plan", "yolo")
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

    def known_models(self) -> list[str]:
        """The same, as far as it is known without asking anybody."""

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


#: Carries out a command, with the words behind it. Gives what is to be said to the agent, if anything is.
Handler = Callable[[Chat, str], Awaitable[str | None]]


async def _help(chat: Chat, argument: str) -> None:
    from trunkline.cli.terminal import helping

    theirs = {word[1:]: (word, words) for word, words in chat.agent_commands.items()}
    ours = {name: (f"/{name} {usage}".rstrip(), words) for name, (usage, words, _) in COMMANDS.items()}
    keys = (
        ("@path", "attaches a file"),
        *(
            (("# text", "adds a line to what is remembered of this directory"),)
            * (memory.COMMAND in chat.agent_commands)
        ),
        ("Ctrl-V", "attaches the picture on the clipboard"),
        ("Esc Enter, or \\ Enter", "begins a new line"),
        ("Ctrl-X Ctrl-E", "opens what you have typed in your editor"),
        ("Shift-Tab", "goes to the next approval mode"),
        ("Ctrl-C, Esc", "stop the answer, and not the program"),
        ("Enter", "during an answer: sends what you typed after it"),
        ("Tab", "during an answer: sends what you typed into it, at once"),
        ("Up", "the message before; takes back what waits to be sent"),
        ("Ctrl-D", "leaves"),
        *((("Space", "in an empty line: lets the agent fall silent, or begins and ends what you say"),) * chat.spoken),
    )
    chat.view.plain(helping.grouped({**theirs, **ours}, keys))
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
            chat.view.note(f"The approval mode is `{mode}` now{': the agent acts unasked' if mode == 'yolo' else ''}.")
            return
    raise ConfigError(f"There is no approval mode `{argument}`; there are {', '.join(MODES)}.")


async def _plan(chat: Chat, argument: str) -> str:
    chat.session.set_mode("plan")
    chat.view.note("Plan mode: the agent reads and plans, and changes nothing. It shows you its plan before it begins.")
    return argument


#: What stands for an effort that nobody has set.
UNSET = "default"
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
            chat.view.note(f"Other models: {', '.join(map(printable, others[:LISTED_MODELS]))}{more}.")
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


async def _effort(chat: Chat, argument: str) -> None:
    can = chat.session.capabilities
    levels = ", ".join(can.effort_levels)
    if not argument:
        now = f"The effort is `{can.effort}`." if can.effort else "The effort is the model's own default."
        others = f" `/effort LEVEL` changes it: {levels}, or default." if levels else ""
        chat.view.note(now + (others or " It has no setting for effort that is known."))
        return
    await chat.session.configure(SetOptions({"effort": "" if argument == UNSET else argument}))
    chat.view.note(
        "The effort is the model's own default now." if argument == UNSET else f"The effort is `{argument}` now."
    )


async def _todos(chat: Chat, argument: str) -> None:
    if not chat.view.show_todos():
        chat.view.note("The agent has no list of things to do.")


async def _usage(chat: Chat, argument: str) -> None:
    state = chat.session.state
    chat.view.note(f"Last turn: {tokens(state.last)}")
    chat.view.note(
        f"In total ({state.turns} turn{'' if state.turns == 1 else 's'}, commands included): {tokens(state.total)}"
    )
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
    "plan": ("[TEXT]", "lets the agent plan, and change nothing before you agree", _plan),
    "grants": ("[revoke N]", "shows what needs no approval, or takes a part of it back", permissions.grants),
    "permissions": ("[add RULE]", "shows the permission rules, adds and removes your own", permissions.permissions),
    "model": ("[NAME]", "shows which models there are, or changes to one", _model),
    "effort": ("[LEVEL]", "shows how hard the model tries, or changes it", _effort),
    "todos": ("", "shows the agent's list of things to do", _todos),
    "thinking": ("[on|off]", "shows thinking in full, or folded", _thinking),
    "trace": ("[on|off]", "shows which way each turn takes through its graph", _trace),
    "usage": ("", "shows how many tokens were used", _usage),
    "exit": ("", "leaves", _exit),
    "quit": ("", "leaves", _exit),
}


async def run(chat: Chat, text: str) -> str:
    """Carry out what was typed; gives what is for the agent, which is nothing if it was a command of ours."""
    name, _, argument = text.partition(" ")
    try:
        if name.startswith("/") and name[1:] in COMMANDS:
            return await COMMANDS[name[1:]][2](chat, argument.strip()) or ""
        if memory.COMMAND in chat.agent_commands:
            text = memory.as_command(text)
            if text.strip() == memory.COMMAND:
                await memory.edit(chat.workspace)
        _check_agents(chat, text)
    except Fault as fault:
        chat.view.failure(str(fault))
        return ""
    return text if text.strip() else ""


def _check_agents(chat: Chat, text: str) -> None:
    """See whether a command that is not ours is one of the agent's, where it tells them.

    Raises:
        Unsupported: it is nobody's.
    """
    if not text.startswith("/") or not chat.agent_commands:
        return
    from trunkline.agents.coder import commands as agents

    found = agents.split(text, chat.agent_commands)
    if found is not None and found[0] not in chat.agent_commands:
        known = [*chat.agent_commands, *(f"/{name}" for name in COMMANDS)]
        raise agents.unknown(found[0], known, "/help lists those there are.")


def offered(chat: Chat) -> Iterable[tuple[str, str]]:
    """Names and meanings, for completion; those of the agent, too."""
    ours = {name: words for name, (_, words, _) in COMMANDS.items()}
    theirs = {name[1:]: printable_line(words) for name, words in chat.agent_commands.items()}
    return sorted({**theirs, **ours}.items())


#: What can follow the commands that take one of a few words. For those of the agent it is the first of several.
_WORDS: Mapping[str, Sequence[str]] = {
    "/mode": MODES,
    "/thinking": ("on", "off"),
    "/trace": ("on", "off"),
    "/grants": ("revoke ", "revoke all"),
    "/memory": ("add ",),
    "/bashes": ("kill ", "kill all"),
    "/mcp": ("reconnect ", "login "),
}


def arguments(chat: Chat, command: str, *, attached: bool = False) -> Iterable[str]:
    """What can follow a command."""
    if command == "/model":
        return chat.known_models()
    if command == "/effort":
        return (*chat.session.capabilities.effort_levels, UNSET)
    if command == "/resume":
        there = place(attached=attached)
        found = sessions_of(chat.workspace) if there is None else shelf.sessions(there)[:LISTED_SESSIONS]
        return [info.id for info in found if info.id == printable(info.id)]
    return _WORDS.get(command, ())


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
    if argument in numbered:
        return numbered[argument]
    try:
        return shelf.named(argument)
    except SessionNotFound as error:
        # What is typed in a shell is no help here.
        meant = error.hint if error.hint and error.hint.startswith("Did you mean") else None
        raise SessionNotFound(error.message, hint=meant or "/sessions lists those there are.") from None


def _chosen_there(argument: str, found: Sequence[SessionInfo]) -> str:
    """The same for sessions of the exchange, which says itself whether there is one of that id."""
    if argument == shelf.LATEST and found:
        return found[0].id
    numbered = {str(number): info.id for number, info in enumerate(found, 1)}
    begins = [info.id for info in found if info.id.startswith(argument)]
    return numbered.get(argument) or (begins[0] if len(begins) == 1 else argument)

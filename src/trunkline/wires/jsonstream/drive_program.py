"""A program that is kept at hand for a conversation: started again when it has ended, and told what it cannot know.

What a conversation was given (context, options, MCP servers) is remembered here, because a program that is started
again has to be given it again. One that keeps dying is started later and later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from trunkline.base import shapes
from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core.faults import AgentFailed, ConfigError, Fault, Unsupported
from trunkline.wires.driven_process import REST_SECONDS, Deaths
from trunkline.wires.jsonstream import messages
from trunkline.wires.jsonstream.drive_connection import Connection

logger = logging.getLogger(__name__)


class Launched(Value):
    """A program that was started for a conversation."""

    connection: Connection
    resumed: bool = False
    """Whether it remembers what was said before."""
    notices: tuple[str, ...] = ()
    """What the user should know about the start."""


#: Starts the program again. It is given the session id that the program last told, if any.
Relaunch: TypeAlias = Callable[[str | None], Awaitable[Launched]]


class Program:
    """The program of one conversation, in whichever process it lives just now."""

    def __init__(
        self,
        launched: Launched,
        relaunch: Relaunch | None = None,
        context: Sequence[str] = (),
        rest_seconds: float = REST_SECONDS,
    ) -> None:
        """`context` is told to every process that does not remember it, ahead of the first message."""
        self.session_id: str | None = None
        """What the program itself calls the conversation."""
        self.notices: list[str] = []
        """What the user should be told when there is a turn to tell it in."""
        self.unanswered = 0
        """Changes that were sent since this was last set to 0: a program may refuse each of them."""
        self._relaunch = relaunch
        self._context = list(context)
        self._servers: list[messages.AddMcpServer] = []
        self._options: dict[str, Any] = {}
        self._mode: Mode | None = None
        self._loop = asyncio.get_running_loop()
        self._connection: Connection | None = None
        self._what_happened = ""
        self._settling: asyncio.Task[None] | None = None
        self._closed = False
        self._deaths = Deaths(rest_seconds)
        self._adopt(launched)

    # Changes: told to the process that there is, and to every later one.

    def add_history(self, text: str) -> None:
        """Context from before the conversation."""
        self._context.append(text)
        self._tell(messages.InitHistory(text))

    def set_options(self, options: Mapping[str, Any]) -> None:
        """Options by name.

        Raises:
            Unsupported: the protocol has no such option.
            ConfigError: one has a value of the wrong type.
        """
        command = _set_config(options)
        self._options |= options
        self._tell(command)

    def set_mode(self, mode: Mode) -> None:
        """Its approval mode."""
        self._mode = mode
        self._tell(messages.SetMode(mode))

    def add_server(self, server: messages.AddMcpServer) -> None:
        """One more MCP server."""
        self._servers.append(server)
        self._tell(server)

    # The process.

    @property
    def resting(self) -> str:
        """What to tell a user who has to wait until it is started again; empty if that is not worth a word."""
        return "" if self._connection is not None else self._deaths.told

    async def connected(self) -> Connection:
        """A process to talk to: the one there is, or a new one. One that keeps dying is waited for.

        Raises:
            Fault: there is none, and none can be had.
        """
        await self.settled()
        connection = self._connection
        if connection is not None:
            if await connection.look():
                return connection
            ending = await connection.ending()
            self.give_up(connection, f"had ended ({ending.how})")
            await self.settled()
        launched = await self._launch()
        if self._is_closed():
            await launched.connection.kill()
            raise AgentFailed("The conversation has been closed.")
        memory = "continues the same session" if launched.resumed else "does not remember what was said before"
        self.notices.append(f"`{launched.connection.name}` {self._what_happened}; it was started again and {memory}.")
        self._adopt(launched)
        return launched.connection

    def give_up(self, connection: Connection, what_happened: str, *, its_fault: bool = True) -> None:
        """This process is of no use any more: end what is left of it. The next turn starts another."""
        if self._connection is not connection:
            return
        self._connection = None
        self._what_happened = what_happened
        if its_fault:
            self._deaths.died()
        self.settle_by(connection.kill(), f"end {connection.name}")

    def has_proved_itself(self) -> None:
        """It has ended a turn as it should."""
        self._deaths.forget()

    def settle_by(self, work: Awaitable[None], name: str) -> None:
        """Do something in the background that the next turn waits for."""

        async def settle() -> None:
            await work

        self._settling = self._loop.create_task(settle(), name=name)
        self._settling.add_done_callback(_log_failure)

    async def settled(self) -> None:
        """Wait until what a turn left to be done in the background has been done."""
        if self._settling is not None:
            await asyncio.shield(self._settling)

    async def close(self, seconds: float) -> None:
        """Let it leave within `seconds`, and end what is left. One that is being stopped gets no longer than that."""
        self._closed = True
        if self._connection is not None:
            await self._connection.close(seconds)
        await self.settled()

    async def _launch(self) -> Launched:
        if self._relaunch is None or self._is_closed():
            raise AgentFailed("The program has ended and is not started again.")
        await self._deaths.rest()
        try:
            return await self._relaunch(self.session_id)
        except Fault:
            self._deaths.failed()
            raise

    def _adopt(self, launched: Launched) -> None:
        """Go on with a process that has just been started: tell it what it cannot know."""
        connection = self._connection = launched.connection
        self._deaths.started()
        self.session_id = connection.session_id or self.session_id
        self.notices += launched.notices
        if connection.version is None:
            self.notices.append(
                f"`{connection.name}` says that it speaks version `{connection.ready.version}` of the protocol, "
                f"which is not a version; it is treated as {messages.PROTOCOL_VERSION}."
            )
        try:
            # In this order: some programs take servers only ahead of everything else.
            for server in self._servers:
                self._tell(server)
            if self._options:
                self._tell(_set_config(self._options))
            if self._mode is not None:
                self._tell(messages.SetMode(self._mode))
            for text in () if launched.resumed else self._context:
                self._tell(messages.InitHistory(text))
        except Fault:
            self.give_up(connection, "could not be given the earlier conversation")
            raise

    def _tell(self, command: messages.Command) -> None:
        if self._connection is not None and self._connection.usable:
            self._connection.send(command)
            self.unanswered += 1

    def _is_closed(self) -> bool:
        return self._closed


def _set_config(options: Mapping[str, Any]) -> messages.SetConfig:
    known = messages.SetConfig.__fields__
    if unknown := [name for name in options if name not in known]:
        raise Unsupported(f"The JSON stream has no option `{unknown[0]}`.", hint=f"It has: {', '.join(known)}.")
    try:
        return shapes.decode(messages.SetConfig, dict(options))
    except shapes.ShapeError as error:
        raise ConfigError(f"The option {error}.") from None


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("%s failed", task.get_name(), exc_info=task.exception())

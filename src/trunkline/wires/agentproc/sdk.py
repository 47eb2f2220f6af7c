"""Write an agent for chat bridges: a function from a message to a reply.

    from trunkline.wires.agentproc.sdk import AgentError, Turn, agent

    @agent
    def main(turn: Turn) -> str | None:
        if not turn.message:
            raise AgentError("Say something.")
        turn.partial("Let me see ... ")
        return turn.message.upper()

    if __name__ == "__main__":
        main()

`main()` answers the one message that the process was started for, in whichever dialect of AgentProc the bridge speaks,
and exits. The handler may be `async`.

- What it returns is the reply. `None`: the partials were all of it.
- What it prints goes to standard error, never among the protocol's lines.
- An `AgentError` is told to the person in the chat. Any other exception is a traceback on standard error, and a general
  apology in the chat.
- SIGTERM and SIGINT leave the handler as an exit would, or cancel it if it is `async`; `finally` has a second.

To test it, without a process: `lines, code = main.run({"AGENT_MESSAGE": "hello"})`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any, NoReturn, cast

from trunkline.base.claim import claim
from trunkline.base.signals import waking
from trunkline.base.writing import EXIT_BROKEN_PIPE
from trunkline.core.faults import LocalProtocolError, RemoteProtocolError
from trunkline.wires.agentproc import codec, sdk_pipes, serve_input
from trunkline.wires.agentproc.codec import own_id, portable_id
from trunkline.wires.agentproc.messages import Attachment
from trunkline.wires.agentproc.sdk_bridge import BridgeConnection
from trunkline.wires.agentproc.sdk_pipes import Signals
from trunkline.wires.agentproc.serve_input import local_path

__all__ = ["AgentError", "AgentProcess", "Attachment", "Turn", "agent", "local_path", "own_id", "portable_id"]

EXIT_FAILED = 1
EXIT_USAGE = 2

#: Each is a byte.
_SIGNALS_AT_ONCE = 64

APOLOGY = "The agent failed. Its log says why."
BY_HAND = """This is an agent for a chat bridge, which starts it with the message in `AGENT_MESSAGE`. To try it:
  AGENT_MESSAGE=hello python {program}
"""

Reply = str | None
Handler = Callable[["Turn"], Reply | Awaitable[Reply]]


class AgentError(Exception):
    """The turn has failed, and this is what the person in the chat is told."""


class Turn:
    """One message, and what can be said while it is answered. Its methods may be called from any thread."""

    def __init__(self, bridge: BridgeConnection) -> None:
        self._bridge = bridge
        self._told = bridge.told()
        self._session_id = self._bridge_knows = self._told.session_id

    @property
    def message(self) -> str:
        """What the user said."""
        return self._told.message

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """What came with it: `type`, `url` and `name`. `local_path(url)` is the file, if it is on this machine."""
        return self._told.attachments

    @property
    def from_user(self) -> str:
        """Who said it, by the bridge's name for people. May be empty."""
        return self._told.from_user

    @property
    def session_name(self) -> str:
        """The conversation's name for people."""
        return self._told.session_name

    @property
    def streaming(self) -> bool:
        """Whether partials are shown. A bridge of 0.4 does not say; then it is true."""
        return self._told.streaming

    @property
    def session_id(self) -> str:
        """The conversation's id, which is yours to choose: empty at first, and in later turns what you set it to.

        The bridge learns it when the turn ends, however it ends; by `keep_session`, at once.

        Raises:
            LocalProtocolError: it was set to what no bridge takes (`SESSION_ID_RULE`). `portable_id` makes an id of any
                text, and `own_id` gives that text back.
        """
        return self._session_id

    @session_id.setter
    def session_id(self, session_id: str) -> None:
        if session_id and not codec.is_session_id(session_id):
            raise LocalProtocolError(
                f"{session_id[: codec.SHOWN_CHARS]!r} cannot be the id of a session: {codec.SESSION_ID_RULE}.",
                hint="`portable_id` makes one of any text.",
            )
        self._session_id = session_id

    def keep_session(self, session_id: str) -> None:
        """Set the id and tell the bridge at once, so that it survives whatever becomes of this process.

        Raises:
            LocalProtocolError: no bridge takes it.
        """
        self.session_id = session_id
        self._tell_session(now=True)

    def partial(self, text: str) -> None:
        """Show a piece of the answer at once, if the bridge streams. What the handler returns comes after it."""
        if text:
            self._bridge.say(self._bridge.writer.text(text))

    def ask(self, tool: str, input: Mapping[str, Any] | None = None, description: str = "") -> bool:
        """Ask the person in the chat for permission to use a tool, and wait for the answer.

        Where there is nobody to ask (0.1, or a bridge that does not offer it), the answer is no, at once. An `async`
        handler says `await asyncio.to_thread(turn.ask, ...)`.
        """
        return self._told.permission and self._bridge.ask(tool, dict(input or {}), description)

    def _tell_session(self, *, now: bool = False) -> None:
        if self._session_id and self._session_id != self._bridge_knows:
            self._bridge_knows = self._session_id
            self._bridge.say(self._bridge.writer.session(self._session_id, now=now))

    def _end(self, reply: Reply) -> None:
        self._tell_session()
        self._bridge.say(self._bridge.writer.answer(reply))

    def _fail(self, message: str) -> None:
        self._tell_session()
        self._bridge.say(self._bridge.writer.error(message))


def agent(handler: Handler) -> AgentProcess:
    """Make a process of a function: `main = agent(handler)`, or as a decorator."""
    return AgentProcess(handler)


class AgentProcess:
    """A handler as a process."""

    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.__doc__ = handler.__doc__

    def __call__(self) -> NoReturn:
        """Answer the message that this process was started for, and exit."""
        dialect = serve_input.dialect_of(os.environ)
        if dialect == "0.4" and sys.stdin is not None and sys.stdin.isatty():
            sys.stderr.write(BY_HAND.format(program=sys.argv[0]))
            sys.exit(EXIT_USAGE)
        # The handler's own children have no business with the turn.
        environ = {name: value for name in codec.VARIABLES if (value := os.environ.pop(name, None)) is not None}
        signals = Signals()
        if (remark := serve_input.odd_version(environ)) is not None:
            sys.stderr.write(f"{remark}\n")
        try:
            reading, writing = claim(needs_input=False)
            bridge = BridgeConnection(dialect, environ, sdk_pipes.Input(reading), sdk_pipes.PipeOutput(writing))
            code: int | str | None = self._answer(bridge, signals)
        except SystemExit as left:
            code = left.code
        except OSError as error:
            sys.stderr.write(f"Standard output is closed, or cannot be written: {error}\n")
            code = EXIT_FAILED
        sdk_pipes.flush_prints()
        sys.exit(code)

    def run(self, environ: Mapping[str, str], stdin: bytes = b"") -> tuple[list[str], int]:
        """For tests: answer a message in this process. Gives the lines that a bridge would read, and the exit code.

        `stdin` is what a bridge of dialect 0.4 writes: the line of the turn, then answers to `ask`.
        """
        said: list[bytes] = []
        bridge = BridgeConnection(serve_input.dialect_of(environ), environ, _Given(stdin), said.append)
        try:
            code = self._answer(bridge, None)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else int(error.code is not None)
        return b"".join(said).decode().split("\n")[:-1], code

    def _answer(self, bridge: BridgeConnection, signals: Signals | None) -> int:
        try:
            turn = Turn(bridge)
        except RemoteProtocolError as fault:
            bridge.say(bridge.writer.error(str(fault)))
            return EXIT_FAILED
        try:
            turn._end(self._reply(turn, signals))
        except AgentError as error:
            turn._fail(str(error) or APOLOGY)
            return EXIT_FAILED
        except SystemExit as left:
            if left.code != EXIT_BROKEN_PIPE:
                turn._tell_session(now=True)
            raise
        except Exception:
            import traceback

            traceback.print_exc()
            turn._fail(APOLOGY)
            return EXIT_FAILED
        return 0

    def _reply(self, turn: Turn, signals: Signals | None) -> Reply:
        reply = self.handler(turn)
        if hasattr(reply, "__await__"):
            reply = _completed(cast("Awaitable[Reply]", reply), signals)
        if reply is not None and not isinstance(reply, str):
            raise TypeError(f"the handler returned `{type(reply).__name__}`: it must return a string, or `None`")
        return reply


class _Given:
    """What a test says that standard input holds."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._lines = iter(data.split(b"\n"))

    def line(self) -> bytes:
        for line in self._lines:
            if line.strip():
                return line
        raise RemoteProtocolError("Standard input ended before a turn arrived.")

    def everything(self) -> bytes:
        return self._data


def _completed(reply: Awaitable[Reply], signals: Signals | None) -> Reply:
    """What an `async` handler returns. A signal cancels it."""
    import asyncio

    stopped: list[int] = []

    async def handle() -> Reply:
        return await reply

    with waking() if signals is not None else nullcontext() as signalled, asyncio.Runner() as runner:
        loop = runner.get_loop()
        if signalled is not None:
            # Else a signal that comes right before the loop begins to wait is not heard until something else happens.
            loop.add_reader(signalled, os.read, signalled, _SIGNALS_AT_ONCE)
        task = loop.create_task(handle(), name="the handler")

        def cancel(code: int) -> None:
            stopped.append(code)
            loop.call_soon_threadsafe(task.cancel)

        if signals is not None:
            signals.end = cancel
        try:
            result = loop.run_until_complete(task)
        except BaseException as error:
            if task.done() and not task.cancelled():
                # Marks it as seen: else it would be told of once more, with a traceback.
                task.exception()
            if stopped:
                raise SystemExit(stopped[0]) from None
            if isinstance(error, asyncio.CancelledError):
                raise RuntimeError("the handler cancelled itself") from None
            raise
        if stopped:
            # It took no notice.
            raise SystemExit(stopped[0])
        return result

"""One command of the Bash tool in the client's terminal: an editor's, where its user sees it run.

The client ends it and keeps its output; both streams are one there. Whatever happens, the client is told to let go of
it. That goes on when the caller is cancelled, and `close` waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from trunkline.core.client_tools import ClientCommand, ClientTerminal, CommandEnd, CommandOutput
from trunkline.core.faults import ToolError
from trunkline.core.turns import STOPPED
from trunkline.tools.tool import CALL_ID, Interrupted, Report, ToolOutput

#: How long a client may take to start a command, to tell its output, or to end it.
CLIENT_SECONDS = 10.0
#: How long somebody who has stopped the command waits for its last words. A turn has half a second for all of it.
STOP_SECONDS = 0.3
#: Between two signs of life. Hosts give up after 15 seconds of silence.
PROGRESS_SECONDS = 5.0
#: Of the output, the client keeps so much: ten times what a model is shown.
OUTPUT_BYTES = 1 << 19

T = TypeVar("T")

_STOPPED = f"{STOPPED}. Until then the command had printed:"


class ClientCommands:
    """Runs commands in clients' terminals. Call `close` at the end."""

    def __init__(self) -> None:
        self._ending: set[asyncio.Task[CommandOutput | None]] = set()

    async def run(
        self,
        terminal: ClientTerminal,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        timeout_ms: int,
        report: Report,
    ) -> ToolOutput:
        """See a command through. Raises `Interrupted` when it is cancelled, as a tool does."""
        try:
            command = await self._create(terminal, argv, cwd, env)
        except (ToolError, TimeoutError) as error:
            return ToolOutput(f"The command could not be started: {_words(error)}", "error")

        def still(seconds: float) -> None:
            report(f"still running after {seconds:.0f} s in the editor's terminal")

        try:
            end = await finished(command.wait_for_exit(), timeout_ms / 1000, still)
        except asyncio.CancelledError:
            ending = self._end(command, kill=True)
            with suppress(asyncio.CancelledError):
                await asyncio.wait({ending}, timeout=STOP_SECONDS)
            said = ending.result() if ending.done() and not ending.cancelled() else None
            raise Interrupted(ToolOutput(_text(_STOPPED, said), "error", foreign=True)) from None
        except ToolError as error:
            self._end(command, kill=True)
            return ToolOutput(f"The editor's terminal has lost the command: {error}", "error")
        said = await asyncio.shield(self._end(command, kill=end is None))
        if end is None:
            return ToolOutput(_text(f"Command timed out after {timeout_ms}ms", said), "error", foreign=True)
        headline = f"Exit code: {end.exit_code}" if end.exit_code is not None else _without_code(end)
        return ToolOutput(_text(headline, said), "success" if end.exit_code == 0 else "error", foreign=True)

    async def close(self) -> None:
        """Wait until the clients have been told to let go of everything. Bounded in time."""
        if self._ending:
            await asyncio.wait(set(self._ending), timeout=STOP_SECONDS)

    async def _create(
        self, terminal: ClientTerminal, argv: Sequence[str], cwd: str, env: Mapping[str, str]
    ) -> ClientCommand:
        """Start it. When nobody waits any more and it starts nevertheless, it is ended at once."""
        starting = asyncio.ensure_future(
            terminal.create(argv, cwd=cwd, env=env, output_limit=OUTPUT_BYTES, call_id=CALL_ID.get())
        )
        try:
            async with asyncio.timeout(CLIENT_SECONDS):
                return await asyncio.shield(starting)
        except (asyncio.CancelledError, TimeoutError):
            starting.add_done_callback(self._started_late)
            raise

    def _started_late(self, starting: asyncio.Future[ClientCommand]) -> None:
        if not starting.cancelled() and starting.exception() is None:
            self._end(starting.result(), kill=True)

    def _end(self, command: ClientCommand, *, kill: bool) -> asyncio.Task[CommandOutput | None]:
        """Let go of a command, in a task that nobody's cancellation ends; gives what it has printed, if known."""
        task = asyncio.get_running_loop().create_task(_let_go(command, kill), name="let go of a client's terminal")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        return task


async def finished(
    ending: Coroutine[Any, Any, T], seconds: float, still: Callable[[float], None], every: float = PROGRESS_SECONDS
) -> T | None:
    """How a command ended, or `None` when the time is over. `still` is told from time to time how long it runs."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    ended = loop.create_task(ending, name="end of a command")
    try:
        while True:
            elapsed = loop.time() - begun
            done, _ = await asyncio.wait({ended}, timeout=min(every, max(seconds - elapsed, 0)))
            if done:
                return ended.result()
            elapsed = loop.time() - begun
            if elapsed >= seconds:
                return None
            still(elapsed)
    finally:
        ended.cancel()


async def _let_go(command: ClientCommand, kill: bool) -> CommandOutput | None:
    said: CommandOutput | None = None
    try:
        with suppress(ToolError, TimeoutError):
            async with asyncio.timeout(CLIENT_SECONDS):
                if kill:
                    await command.kill()
                said = await command.output()
    finally:
        with suppress(ToolError, TimeoutError):
            async with asyncio.timeout(CLIENT_SECONDS):
                await command.release()
    return said


def _text(headline: str, said: CommandOutput | None) -> str:
    if said is None:
        return f"{headline}\n(the editor did not tell the output)"
    notes = ["[its beginning was not kept]"] if said.cut else []
    return "\n".join([headline, "OUTPUT:", said.text, *notes])


def _without_code(end: CommandEnd) -> str:
    return f"The signal {end.signal} ended the command" if end.signal else "The command ended without an exit code"


def _words(error: Exception) -> str:
    return str(error) or f"the editor did not answer within {CLIENT_SECONDS:g} s"

"""The client's files and terminals, as the agent uses them: what `core.client_tools` asks for, over the connection.

    offered = ClientTools(peer, session_id, capabilities, session.settled)
    if (change := offered.change(message.id)) is not None:
        session.configure(change)               # right before the message is submitted

A terminal is shown with the tool call that it runs for: the client is told to by a `tool_call_update`, and what the
call printed need not be told again (`shows`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from trunkline.core.agent import UseClient
from trunkline.core.client_tools import ClientCommand, CommandEnd, CommandOutput
from trunkline.core.faults import Fault, ToolError
from trunkline.wires.acp.calls import DIFFED_BYTES
from trunkline.wires.acp.messages_base import AcpRequest
from trunkline.wires.acp.messages_client import (
    CreateTerminalRequest,
    KillTerminalRequest,
    ReadTextFileRequest,
    ReleaseTerminalRequest,
    TerminalOutputRequest,
    WaitForTerminalExitRequest,
    WriteTextFileRequest,
)
from trunkline.wires.acp.messages_content import ShownTerminal
from trunkline.wires.acp.messages_sessions import NamedValue
from trunkline.wires.acp.messages_start import ClientCapabilities
from trunkline.wires.acp.messages_updates import SessionNotification, ToolCallProgress
from trunkline.wires.acp.peer import AcpPeer

#: How long a question waits for the file that it is about. Then what is on the disk is shown.
PREVIEW_SECONDS = 5.0
#: Calls whose terminals are remembered: those of one turn, and more than it has.
MOST_SHOWN = 1000


class ClientTools:
    """What the client has said that it offers, for one session."""

    def __init__(
        self,
        peer: AcpPeer,
        session_id: str,
        capabilities: ClientCapabilities,
        settled: Callable[[], Awaitable[None]],
    ) -> None:
        """`settled` waits until everything that has happened was told: a call before its terminal."""
        self._peer = peer
        self._session_id = session_id
        self._settled = settled
        self._shown: dict[str, None] = {}
        fs = capabilities.fs
        self._files = _Files(self, fs.read_text_file, fs.write_text_file)
        self._has_files = fs.read_text_file or fs.write_text_file
        self._has_terminal = capabilities.terminal

    def change(self, message_id: str) -> UseClient | None:
        """What to ask of the agent before that message; nothing if the client offers nothing."""
        if not self._has_files and not self._has_terminal:
            return None
        return UseClient(
            message_id, self._files if self._has_files else None, _Terminal(self) if self._has_terminal else None
        )

    async def read_for_preview(self, path: str) -> str | None:
        """A file as the client has it, saved or not; None if it lends none, or does not give it soon."""
        if not self._files.can_read:
            return None
        try:
            async with asyncio.timeout(PREVIEW_SECONDS):
                text = await self._files.read_text(path)
        except (TimeoutError, ToolError):
            return None
        return text if len(text) <= DIFFED_BYTES else None

    def shows(self, call_id: str) -> bool:
        """Whether a terminal is shown with that call, and with it the output."""
        return call_id in self._shown

    async def show(self, call_id: str, terminal_id: str) -> None:
        """Have a terminal shown with the call that it runs for."""
        self._shown[call_id] = None
        if len(self._shown) > MOST_SHOWN:
            del self._shown[next(iter(self._shown))]
        await self._settled()
        update = ToolCallProgress(call_id, content=(ShownTerminal(terminal_id),))
        self._peer.tell(SessionNotification(self._session_id, update))

    async def ask(self, kind: Callable[..., AcpRequest], **members: Any) -> Any:
        """Have the client do something.

        Raises:
            ToolError: it cannot, or is gone.
        """
        try:
            return await self._peer.ask(kind(session_id=self._session_id, **members))
        except Fault as fault:
            raise ToolError(str(fault)) from None


class _Files:
    def __init__(self, tools: ClientTools, can_read: bool, can_write: bool) -> None:
        self._tools = tools
        self.can_read = can_read
        self.can_write = can_write

    async def read_text(self, path: str) -> str:
        content: str = (await self._tools.ask(ReadTextFileRequest, path=path)).content
        return content

    async def write_text(self, path: str, text: str) -> None:
        await self._tools.ask(WriteTextFileRequest, path=path, content=text)


class _Terminal:
    def __init__(self, tools: ClientTools) -> None:
        self._tools = tools

    async def create(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], output_limit: int, call_id: str = ""
    ) -> ClientCommand:
        command, *args = argv
        made = await self._tools.ask(
            CreateTerminalRequest,
            command=command,
            args=tuple(args),
            env=tuple(NamedValue(name, value) for name, value in env.items()),
            cwd=cwd,
            output_byte_limit=output_limit,
        )
        if call_id:
            await self._tools.show(call_id, made.terminal_id)
        return _Command(self._tools, made.terminal_id)


class _Command:
    def __init__(self, tools: ClientTools, terminal_id: str) -> None:
        self._tools = tools
        self._id = terminal_id

    async def output(self) -> CommandOutput:
        said = await self._tools.ask(TerminalOutputRequest, terminal_id=self._id)
        status = said.exit_status
        return CommandOutput(said.output, said.truncated, status and CommandEnd(status.exit_code, status.signal))

    async def wait_for_exit(self) -> CommandEnd:
        ended = await self._tools.ask(WaitForTerminalExitRequest, terminal_id=self._id)
        return CommandEnd(ended.exit_code, ended.signal)

    async def kill(self) -> None:
        await self._tools.ask(KillTerminalRequest, terminal_id=self._id)

    async def release(self) -> None:
        await self._tools.ask(ReleaseTerminalRequest, terminal_id=self._id)

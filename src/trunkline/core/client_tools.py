"""What a client can do for the agent that answers it: an editor's own files, with what is not saved yet, and its
terminal. Wires that have such clients implement this, and agents use it when it is offered (`core.agent.UseClient`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from trunkline.base.values import Value


class ClientFiles(Protocol):
    """The client's text files. Paths are absolute. How long to wait is for the caller to say."""

    @property
    def can_read(self) -> bool:
        """Whether it offers to read."""

    @property
    def can_write(self) -> bool:
        """Whether it offers to write."""

    async def read_text(self, path: str) -> str:
        """The whole content, as the client has it open.

        Raises:
            ToolError: the client cannot, or is gone.
        """

    async def write_text(self, path: str, text: str) -> None:
        """Give the file this content; a new one is created.

        Raises:
            ToolError: the client cannot, or is gone.
        """


class CommandEnd(Value):
    """How a command ended: with an exit code, or by a signal of that name. Neither: nobody knows."""

    exit_code: int | None = None
    signal: str | None = None


class CommandOutput(Value):
    """What a command has printed so far."""

    text: str
    cut: bool = False
    """Its beginning was left out."""
    end: CommandEnd | None = None
    """None: it still runs."""


class ClientCommand(Protocol):
    """A command in the client's terminal. It is the client's until `release`, which ends it if it still runs.

    Every method raises `ToolError` if the client cannot, or is gone.
    """

    async def output(self) -> CommandOutput:
        """What it has printed so far."""

    async def wait_for_exit(self) -> CommandEnd:
        """Wait for its end."""

    async def kill(self) -> None:
        """End it. What it has printed can still be had."""

    async def release(self) -> None:
        """Let go of it."""


class ClientTerminal(Protocol):
    """Where the client runs commands, so that its user sees them."""

    async def create(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], output_limit: int, call_id: str = ""
    ) -> ClientCommand:
        """Start a command; `env` is added to the client's own. Of its output the last `output_limit` bytes are kept.

        `call_id` is the tool call that it runs for, if that is known: the client shows it there.

        Raises:
            ToolError: the client cannot, or is gone.
        """

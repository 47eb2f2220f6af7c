"""The client end, one session of a program: prompts, modes and options."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

from trunkline.wires.acp import messages
from trunkline.wires.acp.drive_prompt import AcpPrompt, PermissionAsked
from trunkline.wires.acp.messages_base import AcpNotification, AcpRequest, AcpResult
from trunkline.wires.acp.messages_client import RequestPermissionResponse
from trunkline.wires.acp.messages_content import ContentBlock
from trunkline.wires.acp.messages_sessions import SessionConfigOption, SessionModeState
from trunkline.wires.acp.messages_updates import ConfigOptionUpdate, CurrentModeUpdate, SessionUpdate

#: How long an agent may take to do anything else but begin a session or answer a prompt.
REQUEST_SECONDS = 15.0
#: What is kept of what an agent tells before anybody listens.
EARLY_UPDATES = 100

R = TypeVar("R", bound=AcpResult)


class SessionProgram(Protocol):
    """What a session needs of its program."""

    @property
    def name(self) -> str:
        """What the program is called."""

    async def ask(self, request: AcpRequest, kind: type[R], seconds: float) -> R:
        """Have it do something, within a time limit."""

    def ask_to_answer(self, prompt: messages.PromptRequest) -> Coroutine[Any, Any, Any]:
        """Have it answer a prompt."""

    def tell(self, notification: AcpNotification) -> None:
        """Tell it something."""


class AcpSession:
    """A session of a program. Made by `AcpProgram`."""

    def __init__(
        self,
        program: SessionProgram,
        id: str,
        modes: SessionModeState | None,
        options: tuple[SessionConfigOption, ...],
    ) -> None:
        self.id = id
        self.modes = modes
        """The modes that it has, and which of them applies."""
        self.options = options
        """What can be set, and how it is set."""
        self.on_update: Callable[[SessionUpdate], None] | None = None
        """Hears what is told while no prompt is being answered; until it is set, that is kept for it."""
        self._program = program
        self._between: deque[SessionUpdate] = deque(maxlen=EARLY_UPDATES)
        self._prompt: AcpPrompt | None = None

    def prompt(self, blocks: Sequence[ContentBlock]) -> AcpPrompt:
        """Send a message of the user's. One at a time: the next one when this is answered.

        Leaving the iterator early does not stop the agent: see `cancel`.
        """
        request = messages.PromptRequest(self.id, tuple(blocks))
        self._prompt = AcpPrompt(self._program.ask_to_answer(request), self._program.name)
        return self._prompt

    def cancel(self) -> None:
        """Stop the prompt: it will be answered `cancelled`, and what it asked is answered so at once."""
        if self._prompt is not None:
            self._prompt.withdraw()
        self._program.tell(messages.CancelNotification(self.id))

    async def set_mode(self, mode_id: str) -> None:
        """Change its mode, one of `modes`.

        Raises:
            JsonRpcError: the agent refuses.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        await self._program.ask(messages.SetSessionModeRequest(self.id, mode_id), AcpResult, REQUEST_SECONDS)
        if self.modes is not None:
            self.modes = self.modes.replace(current_mode_id=mode_id)

    async def set_option(self, config_id: str, value: str | bool) -> None:
        """Change one of `options`.

        Raises:
            JsonRpcError: the agent refuses.
            AgentFailed, AgentTimeout: it is gone, or does not answer.
        """
        request = messages.SetSessionConfigOptionRequest(self.id, config_id, value)
        changed = await self._program.ask(request, messages.SetSessionConfigOptionResponse, REQUEST_SECONDS)
        self.options = changed.config_options

    # For the program.

    def take(self, item: SessionUpdate | PermissionAsked) -> bool:
        """Give something to the prompt in progress; whether there is one."""
        if self._prompt is None or self._prompt.answered:
            return False
        self._prompt.put(item)
        return True

    async def answer_to(self, question: PermissionAsked) -> RequestPermissionResponse:
        """Wait for the user's answer. A question that the agent takes back is given out once more, and not open."""
        try:
            return await question.answered()
        except asyncio.CancelledError:
            self.take(question)
            raise

    def hear(self, update: SessionUpdate) -> None:
        """News of it."""
        if isinstance(update, CurrentModeUpdate) and self.modes is not None:
            self.modes = self.modes.replace(current_mode_id=update.current_mode_id)
        if isinstance(update, ConfigOptionUpdate):
            self.options = update.config_options
        if self.take(update):
            return
        if self.on_update is None:
            self._between.append(update)
        else:
            self.on_update(update)

    def heard_between(self) -> list[SessionUpdate]:
        """What was told while nobody listened, the newest of it; once."""
        found = list(self._between)
        self._between.clear()
        return found

    async def room(self) -> None:
        """Wait until whoever reads the prompt has caught up."""
        if self._prompt is not None:
            await self._prompt.room()

    def end(self) -> None:
        """The program is gone."""
        if self._prompt is not None:
            self._prompt.withdraw()

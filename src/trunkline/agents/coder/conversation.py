"""One dialogue with the coding agent: its history, its model, its tools, and the turns on them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from trunkline.agents.coder import options
from trunkline.agents.coder.agent import capabilities
from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.commands import HELP, Commands
from trunkline.agents.coder.compaction import Compaction
from trunkline.agents.coder.conversation_tools import ConversationTools
from trunkline.agents.coder.files import attach
from trunkline.agents.coder.history import History
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.prompt import Briefing
from trunkline.agents.coder.settings import CoderSettings
from trunkline.agents.coder.steering import Steering
from trunkline.agents.coder.subagents import Subagents
from trunkline.agents.coder.turn_runner import TurnRunner
from trunkline.agents.turn_stream import TurnStream
from trunkline.base.redact import Redactor
from trunkline.core.agent import (
    AddHistory,
    AddMcpServer,
    Capabilities,
    Change,
    Decision,
    OpenRequest,
    SetOptions,
    UseClient,
)
from trunkline.core.approvals import Decisions
from trunkline.core.events import Event, Notice, TurnEnded, UserMessage
from trunkline.core.faults import AgentFailed, Fault, ProviderError, Unsupported
from trunkline.core.turns import STOPPED
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.models.messages import Block, Text
from trunkline.models.model import Model
from trunkline.models.providers import ModelSettings
from trunkline.tools.spawn import SpawnTool

#: How long a turn that was stopped may take to let go of its tools before the conversation closes without it.
CLOSE_SECONDS = 0.3
#: How long credentials may take to be found; hosts wait half a minute for an agent to be ready.
PREPARE_SECONDS = 10.0
#: How long the next turn waits for it: longer than a command takes to be killed.
PATIENCE_SECONDS = 5.0
#: Messages that wait with a client of their own: more than anybody sends ahead. The oldest were withdrawn.
MOST_CLIENTS = 256


class CoderConversation:
    """See `core.agent.Conversation`."""

    session_id: str | None = None

    def __init__(
        self,
        settings: CoderSettings,
        request: OpenRequest,
        make_model: Callable[[ModelSettings], Model],
        redactor: Redactor,
    ) -> None:
        self._settings = self._configured = settings
        self._make_model = make_model
        self._workspace = request.workspace
        self._tools = ConversationTools(
            request.workspace, request.announce or _to_nobody, os.environ, redactor, trusted=settings.trusted
        )
        own = (settings.instructions, request.instructions)
        self._briefing = Briefing(request.workspace, own, request.history, self._tools.shell)
        self._notes = [*settings.warnings, *self._briefing.notices]
        self._client = ModelClient(
            make_model(settings.model),
            self._system,
            max_tokens=settings.model.max_tokens,
            max_rounds=settings.max_turns,
            thinking_budget=settings.thinking_budget,
            effort=settings.effort,
            context_window=settings.context_window,
            meter=request.meter,
        )
        self._decisions = Decisions()
        for call in request.waiting:
            self._decisions.expect(call.call_id)
        self._steering = Steering()
        self._history = History(request.journal, goes_on=bool(request.waiting))
        self._history.on_replaced = self._tools.forget_shown
        calls = partial(Calls, decisions=self._decisions)
        self._calls = calls(self._tools.toolbox)
        self._compaction = Compaction(
            self._client,
            self._history,
            self._calls.specs,
            enabled=settings.compaction,
            summarise_at=settings.compact_at,
        )
        self._subagents = Subagents(
            lambda: self._client.for_subagents(self._system_for_subagents),
            lambda prefix, who: calls(self._tools.for_subagents(), prefix=prefix, who=who),
            self._compaction,
        )
        self._tools.add_spawn(self._subagents)
        self._commands = Commands(self._client, self._history, self._compaction)
        self._stream: TurnStream | None = None
        self._warming: asyncio.Future[None] | None = None
        self._clients: dict[str, UseClient] = {}
        """What the senders of messages offer that were not answered yet, by the message's id."""

    @property
    def capabilities(self) -> Capabilities:
        """What the model can, as it is now, and whether there are servers."""
        return capabilities(self._settings, servers=self._tools.has_servers)

    @property
    def commands(self) -> Mapping[str, str]:
        """What can be typed instead of a message."""
        return HELP

    @property
    def context(self) -> tuple[int, int] | None:
        """How full the model's window is."""
        return self._history.tokens, self._client.context_window

    async def prepare(self) -> None:
        """See whether the model has its credentials, if it does not have them in its settings.

        Raises:
            ConfigError: there are none.
        """
        prepare = getattr(self._client.model, "prepare", None)
        if prepare is None:
            return
        # A service that does not answer now may do so later: that is for the first question to find out.
        with suppress(ProviderError, TimeoutError):
            await asyncio.wait_for(prepare(), PREPARE_SECONDS)

    def start(self) -> None:
        """Begin what may take a while and needs no message: while the host still thinks, nobody waits for it."""
        self._tools.start(self._settings.mcp_servers)
        self._warm()

    def turn(self, message: UserMessage) -> AsyncIterator[Event]:
        self._stream = TurnStream(
            partial(self._answer, message, self._clients.pop(message.id or "", None), self._stream)
        )
        return self._stream

    def go_on(self, message: UserMessage) -> AsyncIterator[Event]:
        """The rest of a turn in which an earlier process was waiting for an answer."""
        self._stream = TurnStream(self._rest)
        return self._stream

    def steer(self, message: UserMessage) -> bool:
        """Let the model read a message before it is asked the next time; whether there is a next time."""
        self._clients.pop(message.id or "", None)
        return self._steering.put(message)

    async def decide(self, call_id: str, decision: Decision) -> None:
        self._decisions.resolve(call_id, decision)

    async def configure(self, change: Change) -> None:
        match change:
            case AddHistory(text=text):
                self._briefing.add_history(text)
            case SetOptions():
                await self._set(change)
            case AddMcpServer():
                await self._tools.connect(change)
            case UseClient(message=message):
                self._clients[message] = change
                if len(self._clients) > MOST_CLIENTS:
                    del self._clients[next(iter(self._clients))]
            case _:
                raise Unsupported(f"The coding agent does not support `{type(change).__name__}`.")

    async def cancel(self) -> None:
        if self._stream is not None:
            self._stream.cancel()
        self._decisions.deny_all(STOPPED)

    async def close(self) -> None:
        await self.cancel()
        if self._stream is not None:
            await self._stream.finished(CLOSE_SECONDS)
        await asyncio.gather(self._tools.close(), self._client.model.close())

    def _system(self) -> str:
        return self._briefing.text(self._client.model, self._tools.toolbox.names)

    def _system_for_subagents(self) -> str:
        tools = [name for name in self._tools.toolbox.names if name != SpawnTool.name]
        return self._briefing.text(self._client.model, tools, before=False)

    async def _set(self, change: SetOptions) -> None:
        old = self._client.model
        self._settings = options.applied(
            change.options, self._settings, self._configured, self._client, self._compaction, self._make_model
        )
        if self._client.model is not old:
            await self._warmed()
            self._warm()
            await old.close()

    def _warm(self) -> None:
        """In a thread: what a stop or a ping would have to wait for."""
        warm = getattr(self._client.model, "warm", None)
        if warm is not None and not getattr(self._client.model, "is_warm", False):
            self._warming = asyncio.get_running_loop().run_in_executor(None, _quietly, warm)

    async def _warmed(self) -> None:
        if self._warming is not None:
            await self._warming
            self._warming = None

    async def _answer(
        self, message: UserMessage, client: UseClient | None, before: TurnStream | None, tell: TurnStream
    ) -> TurnEnded:
        if before is not None and not await before.finished(PATIENCE_SECONDS):
            # Its end must come first in the history.
            raise AgentFailed("The agent is still busy with what was stopped.", retryable=True)
        self._tools.client.use(client.files if client else None, client.terminal if client else None)
        while self._notes:
            await tell.say(Notice(self._notes.pop(0)))
        await self._warmed()
        self._history.answered_by(f"{self._client.model.provider}/{self._client.model.name}")
        command = self._commands.find(message.text)
        if command is not None:
            try:
                await tell.say(Notice(await command(tell.say)))
            finally:
                tell.usage, self._compaction.usage = self._compaction.usage, Usage()
            return TurnEnded("success", tell.usage if tell.usage.known else NOTHING_USED)
        await self._tools.ready()
        self._history.user(await self._attached(message, tell))
        return await self._work(tell)

    async def _rest(self, tell: TurnStream) -> TurnEnded:
        await self._warmed()
        await self._tools.ready()
        return await self._work(tell)

    async def _work(self, tell: TurnStream) -> TurnEnded:
        self._subagents.tell = tell
        self._steering.begin()
        runner = TurnRunner(
            self._client,
            self._history,
            self._calls,
            self._compaction,
            steering=self._steering,
            attached=self._attached,
        )
        try:
            return await runner.run(tell)
        finally:
            # A turn that failed or was stopped has not read everything: the model finds it before the next message.
            for message in self._steering.unread():
                self._history.user((Text(message.text),))

    async def _attached(self, message: UserMessage, tell: TurnStream) -> Sequence[Block]:
        blocks, notices = await attach(message, self._workspace, images=self._client.model.images)
        for notice in notices:
            await tell.say(Notice(notice))
        return blocks


def _quietly(warm: Callable[[], None]) -> None:
    """What goes wrong here goes wrong again with the first question, and is told then."""
    with suppress(Fault):
        warm()


def _to_nobody(event: Event) -> None:
    """Where nobody listens between turns."""

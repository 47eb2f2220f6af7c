"""One dialogue with the coding agent: its history, its model, its tools, and the turns on them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

from trunkline.agents.coder import listings, options
from trunkline.agents.coder.agent import capabilities
from trunkline.agents.coder.bashes import BackgroundListing
from trunkline.agents.coder.call_hooks import CallHooks
from trunkline.agents.coder.calls import Calls
from trunkline.agents.coder.commands import HELP, AsMessage, Commands, TypedCommand
from trunkline.agents.coder.compaction import Compaction, Say
from trunkline.agents.coder.conversation_hooks import ConversationHooks
from trunkline.agents.coder.conversation_tools import ConversationTools
from trunkline.agents.coder.exposure import Exposure
from trunkline.agents.coder.extending.extending import Extending
from trunkline.agents.coder.files import attach
from trunkline.agents.coder.history import History
from trunkline.agents.coder.hooks import Hooks
from trunkline.agents.coder.kept_options import KeptOptions
from trunkline.agents.coder.model_client import ModelClient
from trunkline.agents.coder.permissions import Permissions
from trunkline.agents.coder.planning import Planning
from trunkline.agents.coder.prompt import Briefing
from trunkline.agents.coder.settings import CoderSettings
from trunkline.agents.coder.settings_sandbox import sandbox_for
from trunkline.agents.coder.steering import Steering
from trunkline.agents.coder.subagents import Subagents
from trunkline.agents.coder.subagents_kept import KeptAgents
from trunkline.agents.coder.turn_runner import TurnRunner
from trunkline.agents.coder.undo.commands import UndoCommands
from trunkline.agents.coder.undo.recorder import ChangeRecorder
from trunkline.agents.coder.warming import Warming
from trunkline.agents.coder.words import PLANNING, RAN_ON, UNDONE
from trunkline.agents.turn_stream import TurnStream
from trunkline.base.redact import Redactor
from trunkline.core import performer
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
from trunkline.core.faults import AgentFailed, ConfigError, ProviderError, Unsupported
from trunkline.core.turns import STOPPED
from trunkline.core.usage import NOTHING_USED, Usage
from trunkline.models.messages import Block, Text
from trunkline.models.model import Model
from trunkline.models.providers import ModelSettings
from trunkline.tools.toolbox import Toolbox

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
        self._history = History(request.journal, goes_on=bool(request.waiting))
        self._configured = settings
        self._options = KeptOptions(self._history, settings, request.said)
        settings, model = self._options.begin(make_model)
        self._settings = settings
        self._make_model = make_model
        self._redactor = redactor
        self._workspace = request.workspace
        self._rules = request.rules or (lambda: settings.permissions)
        self._tools = ConversationTools(
            request.workspace,
            request.announce or _to_nobody,
            os.environ,
            redactor,
            trusted=settings.trusted,
            rules=self._rules,
            web=settings.web,
            lsp=settings.lsp.servers,
            sandbox=sandbox_for(settings, request.workspace, redactor),
        )
        self._extending = Extending(
            self._tools,
            os.environ,
            redactor,
            trusted=settings.trusted,
            style=settings.output_style,
            on_style=self._options.keep_style,
        )
        own = (settings.instructions, request.instructions)
        self._briefing = Briefing(request.workspace, own, request.history, self._tools.shell)
        self._notes = [*settings.warnings, *self._briefing.notices, *self._options.notes]
        self._client = ModelClient(
            model,
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
        self._planning = Planning(self._history, request.mode)
        self._history.on_replaced = self._replaced
        announce = request.announce or _to_nobody
        self._changes = ChangeRecorder(request.workspace, request.session_id, lambda text: announce(Notice(text)))
        hooks = Hooks(
            settings.hooks,
            session_id=request.session_id,
            workspace=request.workspace,
            shell=self._tools.shell,
            redactor=redactor,
        )
        self._hooks = ConversationHooks(hooks, resumed=request.resumed)
        self._exposure = Exposure(request.workspace, request.mode)
        self._tools.workspace.wary = self._exposure.is_wary
        calls = partial(
            Calls,
            decisions=self._decisions,
            unasked=self._extending.allows,
            hooks=CallHooks(hooks, request.waiting),
            changes=self._changes,
            exposure=self._exposure,
        )
        self._tools.go_on(self._history)
        self._calls = calls(self._tools.toolbox, on_used=self._tools.keep_seen(self._history))
        self._compaction = Compaction(
            self._client,
            self._history,
            self._calls.specs,
            enabled=settings.compaction,
            summarise_at=settings.compact_at,
        )
        self._compaction.before_summary = self._hooks.compacting
        self._compaction.in_hand = self._in_hand
        self._subagents = Subagents(
            self._for_subagents,
            lambda prefix, who: calls(self._tools.for_subagents(), prefix=prefix, who=who),
            self._compaction,
            KeptAgents(self._history),
            self._extending.agents,
        )
        self._others: dict[str, Model] = {}
        """The models of sub-agents that have one of their own, by id."""
        self._tools.add_own(self._subagents, self._tell_now, self._planning)
        self._tools.toolbox.is_of_use = self._planning.allows
        self._commands = Commands(self._history, self._compaction)
        self._commands.add("/context", TypedCommand(HELP["/context"], self._context))
        self._commands.add("/mcp", self._tools.servers.command)
        self._commands.add("/bashes", BackgroundListing(self._tools.background).command)
        self._commands.add("/agents", listings.agents(lambda: self._subagents.listed))
        self._commands.add("/hooks", listings.hooks(settings.hooks))
        self._permissions = Permissions(request.workspace, request.authority, redactor)
        self._permissions.add_to(self._commands)
        self._commands.sources.append(self._extending.commands)
        UndoCommands(self._changes, self._history, redactor).add_to(self._commands)
        self._stream: TurnStream | None = None
        self._warming = Warming()
        self._clients: dict[str, UseClient] = {}
        """What the senders of messages offer that were not answered yet, by the message's id."""

    @property
    def close_seconds(self) -> float:
        """How long closing may take."""
        return performer.CLOSE_SECONDS + self._hooks.close_seconds + self._tools.servers.close_seconds

    @property
    def capabilities(self) -> Capabilities:
        """What the model can, as it is now, and whether there are servers."""
        return capabilities(self._settings, servers=bool(self._tools.servers))

    @property
    def commands(self) -> Mapping[str, str]:
        """What can be typed instead of a message."""
        self._extending.look()
        return self._commands.help

    @property
    def context(self) -> tuple[int, int] | None:
        """How full the model's window is."""
        return self._history.tokens, self._client.context_window

    @property
    def background(self) -> int:
        """How many commands run in the background."""
        return len(self._tools.background.running)

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
            async with asyncio.timeout(PREPARE_SECONDS):
                await prepare()

    def start(self) -> None:
        """Begin what may take a while and needs no message: while the host still thinks, nobody waits for it."""
        self._tools.servers.start(self._settings.mcp_servers)
        self._warming.start(self._client.model)
        self._hooks.begin()

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
        """Let the model read a message before it is asked the next time; whether there is a next time.

        A command is no message for the model: it waits for its turn.
        """
        if self._commands.has(message.text):
            return False
        return self._steering.put(message)

    def needs_approver(self, text: str) -> bool:
        """Whether a message is a command that only those may give who may approve a tool call."""
        return self._commands.needs_approver(text)

    async def decide(self, call_id: str, decision: Decision) -> None:
        self._decisions.resolve(call_id, decision)

    async def configure(self, change: Change) -> None:
        match change:
            case AddHistory(text=text):
                self._briefing.add_history(text)
            case SetOptions():
                await self._set(change)
            case AddMcpServer():
                await self._tools.servers.connect(change)
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
        await self._hooks.end()
        models = (self._client.model, *self._others.values())
        await asyncio.gather(self._tools.close(), *(model.close() for model in models), self._changes.close())

    def _system(self) -> str:
        tools = self._tools.toolbox.names
        return self._briefing.text(self._client.model, tools, more=tuple(self._extending.sections(tools).values()))

    async def _context(self, rest: str, say: Say) -> str:
        from trunkline.agents.coder.context import PROJECT, ContextUse

        more = self._extending.sections(self._tools.toolbox.names)
        prompt = self._briefing.named(self._client.model, {PROJECT: self._briefing.project, **more})
        return await ContextUse(self._client, self._history, self._calls, self._compaction, prompt).told(say)

    async def _in_hand(self) -> Sequence[Text]:
        from trunkline.agents.coder.in_hand import InHand

        # What it has shown before is no longer there: it may be shown again.
        self._tools.forget_shown()
        found = InHand(
            self._history,
            self._tools.toolbox,
            window=self._client.context_window,
            workspace=self._tools.workspace.root,
            rules=self._rules(),
            redactor=self._redactor,
        )
        kept = await found.blocks()
        for path in found.shown:
            self._exposure.shown(f"Read {path}")
        return (*kept, Text(PLANNING)) if self._planning.is_on else kept

    def _for_subagents(self, instructions: str, model_id: str, toolbox: Toolbox) -> ModelClient:
        """A client for a sub-agent; `instructions` and `model_id` may be empty."""
        if model_id and model_id not in self._others:
            self._others[model_id] = self._make_model(self._configured.model.replace(model=model_id))
        model = self._others[model_id] if model_id else None

        def system() -> str:
            more = (*self._extending.sections(toolbox.names).values(), instructions)
            return self._briefing.text(model or self._client.model, toolbox.names, before=False, more=more)

        return self._client.for_subagents(system, model)

    async def _set(self, change: SetOptions) -> None:
        settings, old = options.applied(change.options, self._settings, self._configured), self._client.model
        if settings.model != self._settings.model:
            # The same settings again: the connections that there are will do.
            self._client.model = self._make_model(settings.model)
        self._settings = settings
        self._client.thinking_budget, self._client.effort = settings.thinking_budget, settings.effort
        self._compaction.enabled = settings.compaction
        self._options.keep(change.options)
        if self._client.model is not old:
            await self._warming.done()
            self._warming.start(self._client.model)
            await old.close()

    async def _answer(
        self, message: UserMessage, client: UseClient | None, before: TurnStream | None, tell: TurnStream
    ) -> TurnEnded:
        if before is not None and not await before.finished(PATIENCE_SECONDS):
            # Its end must come first in the history.
            raise AgentFailed("The agent is still busy with what was stopped.", retryable=True)
        self._tools.client.use(client.files if client else None, client.terminal if client else None)
        self._notes += await self._extending.refresh()
        self._notes += await self._subagents.refresh(self._tools.toolbox.replace)
        self._notes += await self._permissions.refresh()
        while self._notes:
            await tell.say(Notice(self._notes.pop(0)))
        await self._warming.done()
        self._history.answered_by(self._client.origin)
        command = self._commands.find(message.text)
        if command is not None:
            try:
                done = await command(tell.say)
            finally:
                tell.usage, self._compaction.usage = self._compaction.usage, Usage()
            if not isinstance(done, AsMessage):
                await tell.say(Notice(done))
                return TurnEnded("success", tell.usage if tell.usage.known else NOTHING_USED)
            message = message.replace(text=done.text)
        await self._tools.servers.ready()
        await self._hooks.begun(tell.say)
        while self._history.unread:
            said, *later = self._history.unread
            if content := await self._meanwhile(said, tell):
                self._history.user(content)
            self._history.keep_unread(later)
        content = await self._attached(message, tell)
        if self._changes.untold():
            self._history.user((Text(UNDONE),))
        self._history.user((*self._planning.news(), *content), self._changes.begin())
        self._options.write()
        self._exposure.begin()
        return await self._work(tell)

    async def _rest(self, tell: TurnStream) -> TurnEnded:
        await self._extending.refresh()
        self._notes += await self._permissions.refresh()
        await self._subagents.refresh(self._tools.toolbox.replace)
        await self._warming.done()
        await self._hooks.begun(tell.say)
        await self._tools.servers.ready()
        self._changes.go_on()
        self._exposure.go_on(self._history)
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
            attached=self._meanwhile,
            answered=self._hooks.answered,
            news=self._planning.news,
        )
        try:
            return await runner.run(tell)
        finally:
            # A turn that failed or was stopped has not read everything: the model finds it before the next message.
            self._history.keep_unread((*self._history.unread, *self._steering.unread()))
            await self._changes.end(RAN_ON if self._tools.background.running else "")

    def _tell_now(self, event: Event) -> None:
        """Tell something in the middle of the turn in progress."""
        if self._stream is not None:
            self._stream.say_now(event)

    def _replaced(self) -> None:
        """The model no longer has some of what it was shown and told."""
        self._tools.forget_shown()
        self._planning.look()

    async def _meanwhile(self, message: UserMessage, tell: TurnStream) -> Sequence[Block]:
        """A message to a turn that goes on also without it."""
        try:
            return await self._attached(message, tell)
        except ConfigError as denied:
            await tell.say(Notice(str(denied)))
            return ()

    async def _attached(self, message: UserMessage, tell: TurnStream) -> Sequence[Block]:
        more = await self._hooks.received(message.text, tell.say)
        blocks, notices = await attach(message, self._workspace, images=self._client.model.images)
        for notice in notices:
            await tell.say(Notice(notice))
        return (*blocks, *more)


def _to_nobody(event: Event) -> None:
    """Where nobody listens between turns."""

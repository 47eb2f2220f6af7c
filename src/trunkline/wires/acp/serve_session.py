"""One client's place in one session: what it is told, what it is asked, and the prompts that it waits for.

Nothing here depends on the protocol's version; when a prompt is answered is for `serve_v1` to say.

The client of a session that is its alone holds the agent up when it does not read. In a session that others share it
does not: it is told from the log what it missed, once it reads again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from trunkline.base.values import Value
from trunkline.base.vocabulary import Mode
from trunkline.core import events as core
from trunkline.core.agent import AddMcpServer, SetOptions
from trunkline.core.events import FINISH, Envelope, Failed, Outcome
from trunkline.core.faults import AgentBusy, Fault, SessionNotFound, Unsupported
from trunkline.core.ids import new_id
from trunkline.core.keeper import Seat
from trunkline.core.usage import Usage
from trunkline.wires.acp import calls, modes
from trunkline.wires.acp.client_tools import ClientTools
from trunkline.wires.acp.messages_content import ContentBlock, ToolCallUpdate
from trunkline.wires.acp.messages_sessions import SessionConfigOption, SessionModeState
from trunkline.wires.acp.messages_start import ClientCapabilities
from trunkline.wires.acp.messages_updates import ConfigOptionUpdate, UsageUpdate
from trunkline.wires.acp.narration import Narrator
from trunkline.wires.acp.peer import AcpPeer
from trunkline.wires.acp.permissions import Questions
from trunkline.wires.acp.prompts import message_of

logger = logging.getLogger(__name__)

#: Events that are told between two looks at everything else that waits.
EVENTS_PER_TICK = 256
#: How long a session that is closed waits for the end of the turns that it has stopped.
STOP_SECONDS = 2.0


class TurnEnd(Value):
    """How the turn of a prompt ended."""

    outcome: Outcome
    usage: Usage | None = None
    failure: Failed | None = None
    """What went wrong, if that is why."""
    finish: str | None = None
    """Why the answer did not simply come to its end; see `core.events.FINISH`."""
    cancelled: bool = False
    """Whether this client has stopped it."""


class OpenPrompt:
    """A message of this client that is not answered yet."""

    def __init__(self, message_id: str) -> None:
        self.message_id = message_id
        self.turn: int | None = None
        self.cancelled = False
        self.ended: asyncio.Future[TurnEnd] = asyncio.get_running_loop().create_future()

    def end(self, end: TurnEnd | Fault) -> None:
        """It is over. Idempotent."""
        if self.ended.done():
            return
        if isinstance(end, Fault):
            self.ended.set_exception(end)
            # Whoever asked may be gone by now.
            self.ended.exception()
        else:
            self.ended.set_result(end)


class SeatedSession:
    """A client in a session. It is a sink of the session from `follow` on."""

    sees_judged = True

    def __init__(
        self, peer: AcpPeer, seat: Seat, capabilities: ClientCapabilities, *, is_shared: bool, is_local: bool
    ) -> None:
        """`is_local`: the client works on this machine, and may name its files."""
        self.seat = seat
        self._session = seat.session
        self._peer = peer
        self._is_shared = is_shared
        self._is_local = is_local
        self._client_tools = ClientTools(peer, self.id, capabilities, self._session.settled)
        self._narrator = Narrator(self.id, seat.workspace, peer.write, self._client_tools.shows, self._session.clean)
        self._questions = Questions(peer, self.id, seat.answer, others_may_answer=is_shared)
        self._prompts: dict[str, OpenPrompt] = {}
        self._submitting, self._retelling = asyncio.Lock(), asyncio.Lock()
        self._failures: list[Failed] = []
        self._finish: str | None = None
        self._own: OpenPrompt | None = None
        """The prompt whose turn is being told."""
        self._effort = modes.AS_CONFIGURED
        self._seen = self._session.shown
        """The number of the latest event that was told."""
        self._catching_up: asyncio.Task[None] | None = None
        self._attached = False
        self._is_gone = False

    @property
    def id(self) -> str:
        """The session's id."""
        return self._session.id

    # How it begins and ends.

    async def replay(self) -> None:
        """Tell all that happened so far; `follow` tells the rest."""
        async with self._retelling:
            self._detach()
            self._seen = 0
            await self._catch_up(replay=True)

    def follow(self) -> None:
        """Tell what happens from here on, and ask what waits for an answer."""
        if not self._attached:
            self._attached = True
            self._session.attach(self)
        if self._seen < self._session.shown:
            # Who was being told all that happened did not wait for the rest.
            self._read_later()
        for request in self._session.waiting:
            if not self._narrator.has_told(request.call_id):
                self._narrator.event(request)
            self._ask(request)

    def begin(self) -> None:
        """Tell what a client wants to know of a session that it has just opened."""
        if commands := self._session.commands:
            self._narrator.commands(commands)
        self._tell_context()
        self._peer.flush()

    def let_go(self) -> None:
        """The client is gone, and has not taken its prompts back: in a session that others share they are answered."""
        self._is_gone = True

    async def leave(self) -> None:
        """Stop being told. What this client waits for is not awaited."""
        self._detach()
        await self._questions.close()
        for prompt in tuple(self._prompts.values()):
            prompt.end(AgentBusy("The session was closed."))
        await self.seat.leave()

    def _detach(self) -> None:
        if self._attached:
            self._attached = False
            self._session.detach(self)
        if self._catching_up is not None:
            self._catching_up.cancel()
            self._catching_up = None

    async def close(self) -> None:
        """Stop what this client waits for, and leave. What others in the session wait for goes on."""
        self._questions.give_up()
        try:
            for prompt in tuple(self._prompts.values()):
                self.withdraw(prompt)
            waiting = [prompt.ended for prompt in self._prompts.values()]
            if waiting:
                await asyncio.wait(waiting, timeout=STOP_SECONDS)
        finally:
            await self.leave()

    def ended(self) -> None:
        """This client has removed the session: with that, it has taken its prompts back."""
        for prompt in tuple(self._prompts.values()):
            self._end(prompt, TurnEnd("cancelled"))

    def removed(self) -> None:
        """The session is no more."""
        for prompt in tuple(self._prompts.values()):
            prompt.end(SessionNotFound(f"The session `{self.id}` was removed."))

    # What the client wants.

    @property
    def modes(self) -> SessionModeState:
        """How much is asked."""
        return modes.modes(self._session.mode)

    @property
    def options(self) -> tuple[SessionConfigOption, ...] | None:
        """What else can be set; None if there is nothing."""
        can = self._session.capabilities
        return modes.options(can, can.effort or self._effort) or None

    def set_mode(self, mode: Mode) -> None:
        """Change how much is asked."""
        self.seat.set_mode(mode)
        self._questions.forget_rejections()

    async def set_effort(self, level: str) -> None:
        """Change how hard the model tries."""
        await self.seat.configure(SetOptions({"effort": "" if level == modes.AS_CONFIGURED else level}))
        self._effort = level
        if options := self.options:
            self._narrator.update(ConfigOptionUpdate(options))
            self._peer.flush()

    async def use_servers(self, servers: Sequence[AddMcpServer]) -> None:
        """Let the agent use some MCP servers. That it cannot is told in the log: editors hand theirs to every agent."""
        for server in servers:
            try:
                await self.seat.configure(server)
            except Unsupported as fault:
                logger.warning("%s", fault)
            except Fault as fault:
                self._narrator.notice(self._session.clean(f"The MCP server `{server.name}` cannot be used: {fault}"))

    def prompt(self) -> OpenPrompt:
        """A message of this client is coming; what is cancelled from here on is this one, too."""
        prompt = OpenPrompt(new_id())
        self._prompts[prompt.message_id] = prompt
        return prompt

    async def submit(self, prompt: OpenPrompt, blocks: Sequence[ContentBlock]) -> None:
        """Have it answered; `prompt.ended` tells how it went.

        Raises:
            Fault: it was not taken.
        """
        try:
            async with self._submitting:
                await self._submit(prompt, blocks)
        except BaseException:
            self._prompts.pop(prompt.message_id, None)
            raise

    async def _submit(self, prompt: OpenPrompt, blocks: Sequence[ContentBlock]) -> None:
        text, files = await message_of(blocks, self.seat.keep_file, is_local=self._is_local)
        if prompt.cancelled:
            self._end(prompt, TurnEnd("cancelled"))
            return
        change = self._client_tools.change(prompt.message_id)
        if change is not None:
            self._session.configure(change).add_done_callback(_seen)
        message = core.UserMessage(text, files, prompt.message_id, self.seat.client or None)
        turn = await self.seat.submit(message, "queue")
        prompt.turn = turn
        self._stop_if_cancelled(prompt)

    def _stop_if_cancelled(self, prompt: OpenPrompt) -> None:
        if prompt.cancelled and prompt.turn is not None and not prompt.ended.done():
            self.seat.stop(prompt.turn)

    def cancel(self) -> None:
        """Stop what this client waits for; if that is nothing, what is going on."""
        self._questions.give_up()
        for prompt in tuple(self._prompts.values()):
            self.withdraw(prompt)
        if not self._prompts and self._session.turn:
            self.seat.stop(self._session.turn)

    def withdraw(self, prompt: OpenPrompt) -> None:
        """The client has taken one prompt back."""
        if self._is_gone and self._is_shared:
            return
        prompt.cancelled = True
        self._stop_if_cancelled(prompt)

    # The session's sink.

    @property
    def congested(self) -> bool:
        """Whether the agent should wait for the client."""
        return self._peer.congested and not self._is_shared

    async def drain(self) -> None:
        """Wait for the client."""
        await self._peer.drain()

    def show(self, envelopes: Sequence[Envelope]) -> None:
        """Some events of the session."""
        if self._catching_up is not None:
            # They are read from the log in their turn.
            return
        for envelope in envelopes:
            self._tell(envelope)
        self._peer.flush()
        if self._is_shared and self._peer.congested:
            self._read_later()

    def _read_later(self) -> None:
        if self._catching_up is None:
            loop = asyncio.get_running_loop()
            self._catching_up = loop.create_task(self._read_on(), name="tell what was missed")

    async def _read_on(self) -> None:
        try:
            if self._peer.congested:
                await self._peer.drain()
            await self._catch_up()
        except ValueError:
            logger.warning("the session was closed before its client had read everything")
        self._catching_up = None

    async def _catch_up(self, *, replay: bool = False) -> None:
        """Tell from the log what was not told yet. When this returns, nothing has been missed."""
        while self._seen < (until := self._session.shown):
            for count, item in enumerate(self._session.read(self._seen, until, judged=True)):
                if isinstance(item, Envelope):
                    self._tell(item, replay=replay, past=True)
                if count % EVENTS_PER_TICK == 0:
                    self._peer.flush()
                    await self._peer.drain() if self._peer.congested else await asyncio.sleep(0)
            self._seen = until
        self._peer.flush()

    # What the client is told.

    def _tell(self, envelope: Envelope, *, replay: bool = False, past: bool = False) -> None:
        self._seen = max(self._seen, envelope.seq)
        event = envelope.event
        match event:
            case core.TurnStarted(message=message):
                self._begin(envelope.turn, message, replay=replay)
            case core.Steered(message=message):
                self._narrator.user(message)
            case Failed():
                self._failures.append(event)
            case core.TurnEnded():
                self._end_turn(event, replay=replay)
            case core.Extension(kind=kind, data=data) if kind == FINISH:
                self._finish = str(data.get("reason"))
            case _:
                self._narrator.event(event, past=past and not self._waits(event))
                if not replay:
                    self._see_to_questions(event)

    def _begin(self, turn: int, message: core.UserMessage, *, replay: bool) -> None:
        self._failures.clear()
        self._finish = None
        self._own = self._prompts.get(message.id or "")
        if self._own is None or replay:
            self._narrator.user(message)
        if self._own is not None:
            self._own.turn = turn
            if self._own.cancelled:
                # Not now: whoever shows this is not done with it.
                asyncio.get_running_loop().call_soon(self._stop, turn)
        if turn == 1:
            self._narrator.title(message)

    def _stop(self, turn: int) -> None:
        try:
            self.seat.stop(turn)
        except Fault as fault:
            logger.warning("%s", fault)

    def _end_turn(self, event: core.TurnEnded, *, replay: bool) -> None:
        own, self._own = self._own, None
        # One that nobody knows the end of, as after a crash, has its reason, too.
        failed_with = event.outcome in ("error", "unknown")
        failure = next(reversed(self._failures), None) if failed_with else None
        is_answered = own is not None and not own.cancelled and self._finish is None
        for failed in self._failures:
            if failed is not failure or not is_answered:
                self._narrator.failed(failed)
        self._narrator.end_of_turn()
        if not replay:
            self._questions.settle_all()
            self._tell_context()
        if own is not None:
            self._end(own, TurnEnd(event.outcome, event.usage, failure, self._finish, own.cancelled))
        self._failures.clear()
        self._finish = None

    def _end(self, prompt: OpenPrompt, end: TurnEnd) -> None:
        self._prompts.pop(prompt.message_id, None)
        prompt.end(end)

    def _tell_context(self) -> None:
        if (context := self._session.context) is not None and context[0] > 0:
            self._narrator.update(UsageUpdate(*context))

    def _see_to_questions(self, event: core.Event) -> None:
        match event:
            case core.ToolRequested():
                self._ask(event)
            case (
                core.ToolAnswered(call_id=call_id)
                | core.ToolStarted(call_id=call_id)
                | core.ToolFinished(call_id=call_id)
                | core.ToolCancelled(call_id=call_id)
            ):
                self._questions.settled(call_id)

    def _waits(self, event: core.Event) -> bool:
        """Whether this is a question that nobody has answered yet."""
        return isinstance(event, core.ToolRequested) and event in self._session.waiting

    def _ask(self, request: core.ToolRequested) -> None:
        if not self.seat.may_answer:
            return
        is_own = self._own is not None
        self._questions.ask(request, lambda: self._described(request, is_own=is_own))

    async def _described(self, request: core.ToolRequested, *, is_own: bool) -> ToolCallUpdate:
        """The call in a question about it. What it would change is told before, and of a file that this client lends
        for its own prompt as the client has it: what is on the disk may be older."""
        path = calls.changed_file(request, self.seat.workspace) if is_own else None
        before = None if path is None else await self._client_tools.read_for_preview(path)
        if before is not None:
            self._narrator.change_in(request, before)
        return self._narrator.described(request)


def _seen(done: asyncio.Future[Any]) -> None:
    """An agent that cannot use its client's tools works as ever."""
    if not done.cancelled() and (fault := done.exception()) is not None and not isinstance(fault, Unsupported):
        logger.warning("the client's own tools are not used: %s", fault)

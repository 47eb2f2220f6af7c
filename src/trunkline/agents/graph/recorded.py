"""Graph agents whose conversations are kept: each has a session of its own in the event log, as agents elsewhere have.

    host = LocalGraphHost(pool, records=Records(FileStore(directory)))

The log has what was said, what nodes told, what failed and what was used, and no sound; `trunkline sessions` shows it.
A client is answered first: what it was told is written at the end of the same tick, and synced at the turn's end.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from trunkline.agents.graph.agent import GraphAgent
from trunkline.agents.graph.turn import ApproveCall
from trunkline.base.redact import Redactor
from trunkline.core.events import (
    Event,
    Failed,
    Journaled,
    JournalReplaced,
    Outcome,
    TextDelta,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from trunkline.core.faults import Fault
from trunkline.core.graph.ordinals import TurnStatus
from trunkline.core.graph.speech import TtsMark
from trunkline.core.graph.turns import Ending, Listener, node_event
from trunkline.core.ids import new_id
from trunkline.core.log import SessionStore
from trunkline.core.recorder import Recorder
from trunkline.core.redaction import Redaction
from trunkline.core.usage import NOTHING_USED, Usage

logger = logging.getLogger(__name__)

#: The member of a record in the journal of a session that holds a message and its answer.
JOURNAL_KEY = "graph_exchange"
#: Who answers in these sessions, for those who want to go on with one: a graph that only its client has.
RECORDED_AGENT = "tryll"

_OUTCOMES: dict[int, Outcome] = {TurnStatus.SUCCESS: "success", TurnStatus.CANCELLED: "cancelled"}


def usage_of(ending: Ending) -> Usage:
    """What a turn used. One without a model used nothing, and that is known."""
    if not ending.tokens_generated:
        return NOTHING_USED
    return Usage(ending.tokens_prompt or None, ending.tokens_generated, ending.tokens_cached or None)


class ConversationRecords:
    """Where conversations are kept. `secrets` are taken out of all that is written."""

    def __init__(self, store: SessionStore, workspace: str = ".", secrets: Redactor | None = None) -> None:
        self._store = store
        self._workspace = workspace
        self._secrets = secrets if secrets is not None else Redactor()
        self._ending: set[asyncio.Task[None]] = set()

    def begin(self) -> Recorder | None:
        """A new session. None if it cannot be kept, which the log of the server says: nobody is left without an answer
        because of a disk."""
        try:
            log = self._store.create(new_id(), self._workspace, RECORDED_AGENT)
        except Fault as fault:
            logger.error("a conversation is not kept: %s", fault)
            return None
        return Recorder(log, None, time.time, Redaction(self._secrets))

    def end(self, recorder: Recorder) -> None:
        """The conversation is over."""
        task = asyncio.get_running_loop().create_task(recorder.close(), name="end a record")
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """Wait until all that ended is on the disk."""
        if self._ending:
            await asyncio.wait(self._ending)


class RecordedAgent(GraphAgent):
    """A graph agent that writes down its conversation, from its first turn on. It says and does the same as one that
    does not."""

    def __init__(self, *graph: Any, records: ConversationRecords, **options: Any) -> None:
        super().__init__(*graph, **options)
        self._records = records
        self._recorder: Recorder | None = None
        self._turns = 0
        self._before: list[dict[str, Any]] = []
        """What was said before the first turn."""

    def turn(self, text: str, listener: Listener, approve: ApproveCall | None = None) -> Coroutine[Any, Any, Ending]:
        heard = _Heard(listener, self._write)
        return self._recorded(text, super().turn(text, heard, approve), heard)

    async def _recorded(self, text: str, work: Coroutine[Any, Any, Ending], heard: _Heard) -> Ending:
        self._turns += 1
        if self._turns == 1:
            self._recorder = self._records.begin()
            if self._before:
                self._write(JournalReplaced(tuple(self._before)), turn=0)
                self._before.clear()
        self._write(TurnStarted(UserMessage(text)))
        # Whoever cancels the task gets no ending, and the turn has one all the same.
        ending = Ending(TurnStatus.CANCELLED)
        try:
            ending = await work
        finally:
            if heard.text:
                self._write(Journaled({JOURNAL_KEY: [text, heard.text]}))
            if (fault := ending.error) is not None:
                self._write(Failed(fault.kind, str(fault), fault.retryable))
            self._write(TurnEnded(_OUTCOMES.get(ending.status, "error"), usage_of(ending)))
            if self._recorder is not None:
                self._recorder.checkpoint_if_due()
        return ending

    def restore(self, exchanges: Iterable[tuple[str, str]], append: bool = False) -> None:
        exchanges = list(exchanges)
        super().restore(exchanges, append)
        records = [{JOURNAL_KEY: [user, assistant]} for user, assistant in exchanges]
        if not self._turns:
            self._before = [*self._before, *records] if append else records
            return
        for event in map(Journaled, records) if append else (JournalReplaced(tuple(records)),):
            self._write(event, turn=0)

    def close(self) -> None:
        super().close()
        if (recorder := self._recorder) is not None:
            self._recorder = None
            self._records.end(recorder)

    def _write(self, event: Event, turn: int | None = None) -> None:
        if self._recorder is not None:
            self._recorder.emit(self._turns if turn is None else turn, event)


class _Heard:
    """A `Listener` that passes everything on, and has it written down."""

    def __init__(self, listener: Listener, write: Callable[[Event], None]) -> None:
        self._listener = listener
        self._write = write
        self.text = ""
        """All that was told so far."""

    @property
    def full(self) -> bool:
        return self._listener.full

    async def room(self) -> None:
        await self._listener.room()

    def delta(self, text: str) -> None:
        self._listener.delta(text)
        self._keep(text)

    def whole(self, text: str, final: bool) -> None:
        self._listener.whole(text, final)
        self._keep(text[len(self.text) :])

    def _keep(self, text: str) -> None:
        if text:
            self.text += text
            self._write(TextDelta(text))

    def audio(self, pcm: bytes, sample_rate: int) -> None:
        # It would make the log a hundred times as long, and what it says is there as text.
        self._listener.audio(pcm, sample_rate)

    def timing(self, marks: tuple[TtsMark, ...]) -> None:
        # It belongs to the sound.
        self._listener.timing(marks)

    def event(self, node: str, type: str, pairs: tuple[tuple[str, str], ...]) -> None:
        self._listener.event(node, type, pairs)
        self._write(node_event(node, type, pairs))

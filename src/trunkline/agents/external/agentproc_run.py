"""One run of an AgentProc program in a thread of its own, and what it says as an iterator of the loop.

A run blocks, and a thread is faster than an event loop's own children. Its pieces come over in batches; it waits while
nobody takes them, and does not when nobody will.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Self

from trunkline.wires.agentproc.drive import Outcome, Run
from trunkline.wires.agentproc.messages import PermissionResponse, Said, TurnRequest
from trunkline.wires.agentproc.profile import Profile

#: Pieces that a run may be ahead of their reader: a few hundred lines, far below what memory notices.
_AHEAD = 256


class ActiveRun:
    """A run that has begun. Iterate over what it says; leave it when that is no longer wanted."""

    def __init__(
        self,
        profile: Profile,
        turn: TurnRequest,
        environ: Mapping[str, str] | None,
        on_end: Callable[[Outcome], None],
    ) -> None:
        """`on_end` hears how it ended, also when nobody iterates any more."""
        self.over = asyncio.Event()
        """The run has ended, and nothing of it is left."""
        self._run = Run(profile, turn, hear=self._put, environ=environ)
        self._on_end = on_end
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._room = threading.Condition()
        self._queue: deque[Said] = deque()
        self._batch: deque[Said] = deque()
        self._is_read = True
        self._outcome: Outcome | Exception | None = None
        threading.Thread(target=self._perform, name="agentproc-run", daemon=True).start()

    @property
    def outcome(self) -> Outcome:
        """How it ended, once the iteration is over.

        Raises:
            Exception: what went wrong here, and not in the agent.
        """
        if isinstance(self._outcome, Outcome):
            return self._outcome
        raise self._outcome or RuntimeError("the run has not ended")

    def respond(self, response: PermissionResponse) -> None:
        """Answer a permission request."""
        self._run.respond(response)

    def leave(self) -> None:
        """Nobody reads any more: end the run, in the profile's grace. May be called again."""
        with self._room:
            self._is_read = False
            self._room.notify()
        if not self.over.is_set():
            self._run.cancel()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Said:
        while not self._batch:
            with self._room:
                self._batch, self._queue = self._queue, deque()
                self._room.notify()
            if not self._batch:
                if self.over.is_set():
                    raise StopAsyncIteration
                await self._news.wait()
                self._news.clear()
        return self._batch.popleft()

    def _ended(self, outcome: Outcome | Exception) -> None:
        self._outcome = outcome
        self.over.set()
        self._news.set()
        if isinstance(outcome, Outcome):
            self._on_end(outcome)

    # In the run's own thread.

    def _perform(self) -> None:
        outcome: Outcome | Exception
        try:
            outcome = self._run.perform()
        except Exception as error:
            # A defect of ours: whoever waits for the end must hear of it.
            outcome = error
        self._tell(lambda: self._ended(outcome))

    def _put(self, said: Said) -> None:
        with self._room:
            while len(self._queue) >= _AHEAD and self._is_read:
                self._room.wait()
            if not self._is_read:
                return
            self._queue.append(said)
            is_news = len(self._queue) == 1
        if is_news:
            self._tell(self._news.set)

    def _tell(self, callback: Callable[[], None]) -> None:
        try:
            self._loop.call_soon_threadsafe(callback)
        except RuntimeError:
            # The loop was closed: nobody is left to be told, and nobody wants the answer.
            self._run.cancel()

"""Watches a conversation's tool calls, and records what each has changed.

Write and Edit name their file: it is looked at before and after, wherever it is. A command may change anything: all of
the workspace is looked at. The look before a call is waited for. The one after it is not, since the model is at work by
then; the next call begins, and the turn ends, when it is done. A turn that changes nothing costs nothing.

What the look before a call has seen is on the disk before the call runs: see `opened`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from trunkline.agents.coder.undo.faults import NoCheckpoint, StoreBusy
from trunkline.core.ids import new_id
from trunkline.tools.threads import Abandoned, StopFlag, in_thread
from trunkline.tools.toolbox import PreparedCall

if TYPE_CHECKING:
    from trunkline.agents.coder.undo.checkpoints import Checkpoints
    from trunkline.agents.coder.undo.lines import ReadUpTo
    from trunkline.agents.coder.undo.scanning import Manifest
    from trunkline.agents.coder.undo.states import PathState
    from trunkline.agents.coder.undo.turns import ChangeRecord

logger = logging.getLogger(__name__)

#: How long a conversation that closes waits for what is being recorded: a turn that was not cut off has waited already.
CLOSE_SECONDS = 0.3


class _Preimage(NamedTuple):
    """A file that is about to be written."""

    place: str
    state: PathState | None
    data: bytes
    made: tuple[str, ...]
    """The directories that there are not yet."""


class _Turn:
    """A turn of the conversation."""

    def __init__(self, id: str, *, is_recorded: bool = False) -> None:
        self.id = id
        self.at = time.time()
        self.is_recorded = is_recorded
        """Whether it stands in the record."""


class Before(NamedTuple):
    """What was there before a call."""

    turn: _Turn
    seen: Manifest | _Preimage


class ChangeRecorder:
    """Of one conversation. Whatever goes wrong here is said once, and keeps nobody from working."""

    def __init__(self, workspace: str, session: str, say: Callable[[str], None]) -> None:
        self._workspace = workspace
        self.session = session
        self._say = say
        self._made: Checkpoints | None = None
        self._turn = _Turn("", is_recorded=True)
        self._known: Manifest | None = None
        self._is_new = False
        """Whether what is known has not been saved."""
        self._one_at_a_time = asyncio.Lock()
        self._pending: set[asyncio.Task[None]] = set()
        self._earlier: set[asyncio.Task[None]] = set()
        """What was pending when the turn began."""
        self._off = self._no_scans = ""
        """Why nothing is recorded, or nothing of commands."""
        self._before_running: Before | None = None
        """What was there before a command that was left running in the turn: what it changes shows at the end."""
        self._named = self._commands = 0
        """How many calls are under way whose changes are not recorded yet."""
        self._is_ready = False
        """Whether the store is there."""
        self._is_owed = False
        """Whether there are calls of an earlier process that was killed, and what they have changed is not recorded."""
        self._read_to: ReadUpTo | None = None

    @property
    def checkpoints(self) -> Checkpoints:
        """Those of the workspace.

        Raises:
            NoCheckpoint: there is no home directory to keep them in.
        """
        if self._made is None:
            from trunkline.agents.coder.undo.checkpoints import Checkpoints

            try:
                self._made = Checkpoints(self._workspace)
            except OSError as error:
                raise NoCheckpoint(str(error)) from None
        return self._made

    # Turns

    def begin(self) -> str:
        """A turn begins; gives its name. If nothing was ever changed in the session, nobody needs to know of it."""
        with suppress(NoCheckpoint):
            self._take_over()
        self._turn, self._earlier = _Turn(new_id()), set(self._pending)
        with suppress(NoCheckpoint):
            if self._record.exists:
                self._record_turn(self._turn)
        return self._turn.id

    def go_on(self) -> None:
        """The last turn goes on, of which an earlier process has recorded a part."""
        with suppress(NoCheckpoint):
            self._take_over()
            turns = self._record.read()
            if turns and not turns[-1].is_over:
                self._turn = _Turn(turns[-1].id, is_recorded=True)
                return
        self.begin()

    def _take_over(self) -> None:
        """What an earlier process was killed in the middle of is recorded before anything else is changed."""
        record = self._record
        if self._pending or self._named or self._commands or not record.calls.exists:
            return
        for turn, at in record.calls.turns():
            record.begin(turn, at)
        self._is_owed = True
        self._later(self._recovered())

    def untold(self) -> bool:
        """Whether something was undone that the model does not know of. It is told then: asked again, it is not."""
        with suppress(NoCheckpoint):
            from trunkline.agents.coder.undo.lines import BEGINNING

            found, self._read_to = self._record.untold(self._read_to or BEGINNING)
            if found:
                self._record.told()
            return found
        return False

    async def end(self, goes_on: str = "") -> None:
        """The turn is over: wait until all of it is recorded. If that is cancelled, since the turn was stopped, it goes
        on, and the next call waits for it. `goes_on`: that a command still runs in the background, in words."""
        if (running := self._before_running) is not None:
            if goes_on:
                self._note_uncovered(goes_on, running.turn)
            self._before_running = None
            self._later(self._scanned_after(running), running)
        # What is of the turn: an earlier one, which was stopped, may take longer.
        task = self._later(self._ended(self._turn, self._pending - self._earlier))
        await asyncio.wait({task})

    async def _ended(self, turn: _Turn, before: set[asyncio.Task[None]]) -> None:
        if before:
            await asyncio.wait(before)
        if turn.is_recorded:
            with suppress(NoCheckpoint):
                self._record.end(turn.id)
        if self._is_new and self._known is not None and not self._commands:
            known, self._is_new = self._known, False
            with suppress(NoCheckpoint):
                await in_thread(lambda _: self.checkpoints.save(known, self._record.calls.manifest))
        if self._is_ready and self.checkpoints.is_untidy:
            # Nobody waits for it.
            threading.Thread(target=self._tidy, name="tidy checkpoints", daemon=True).start()

    async def settled(self) -> None:
        """Wait for what is being recorded."""
        while self._pending:
            await asyncio.wait(set(self._pending))

    async def close(self) -> None:
        """Wait for what is being recorded, but not for ever."""
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.settled()
        if self._made is not None:
            self._made.store.stop()
            if self._is_ready and not self._pending and not self._record.calls.exists:
                # The next process sees for itself what is there.
                self._record.calls.remove()

    def _tidy(self) -> None:
        try:
            self.checkpoints.tidy()
        except NoCheckpoint as problem:
            logger.warning("the checkpoints could not be put in order: %s", problem)

    # Calls

    @asynccontextmanager
    async def watching(self, call: PreparedCall) -> AsyncIterator[None]:
        """Record what a call changes while this is open."""
        before = await self.before(call)
        try:
            yield
        finally:
            self.after(before, call)

    async def before(self, call: PreparedCall) -> Before | None:
        """Look at what a call may change; None: that is nothing, or cannot be kept."""
        if self._off or call.tool.category == "info" or getattr(call.tool, "changes_no_file", False):
            return None
        if self._pending:
            # What was changed before is recorded before something else is: whatever happens to this process then.
            await asyncio.wait(set(self._pending))
        try:
            if not self._is_ready:
                await in_thread(lambda _: self.checkpoints.make())
                self._is_ready = True
        except NoCheckpoint as problem:
            self._turn_off(problem)
            return None
        try:
            if self._is_owed:
                # What was there before those calls is kept in the place of what is there before this one.
                await self._recovered()
        except NoCheckpoint as problem:
            self._do_without(problem)
            return None
        stop = StopFlag()
        looking = asyncio.get_running_loop().create_task(self._look_before(call, stop), name="look before a call")
        try:
            return await asyncio.shield(looking)
        except asyncio.CancelledError:
            stop.set()
            self._later(self._not_run(looking))
            raise

    async def _look_before(self, call: PreparedCall, stop: StopFlag) -> Before | None:
        place = call.place if call.tool.category == "edit" else ""
        turn = self._turn
        try:
            if place:
                preimage = await in_thread(lambda _: self._opened(place, turn))
                self._named += 1
                return Before(turn, preimage)
            if self._no_scans:
                self._note_uncovered(self._no_scans)
                return None
            found = await self._scanned(partial(self._opened_command, turn), stop)
            self._commands += 1
            return Before(turn, found)
        except NoCheckpoint as problem:
            if place:
                self._turn_off(problem)
            else:
                self._do_without(problem)
            return None

    async def _not_run(self, looking: asyncio.Task[Before | None]) -> None:
        """The call was stopped before it ran: it is not under way."""
        with suppress(Abandoned):
            if (before := await looking) is not None:
                self._closed(before)

    def after(self, before: Before | None, call: PreparedCall) -> None:
        """A call is over, however it ended: what it has changed is recorded soon."""
        if before is None:
            return
        if isinstance(before.seen, _Preimage):
            self._later(self._written_after(before.turn, before.seen), before)
        elif call.args.get("run_in_background") and self._before_running is None:
            self._before_running = before
            self._later(self._scanned_after(before))
        else:
            self._later(self._scanned_after(before), before)

    def _opened(self, place: str, turn: _Turn) -> _Preimage:
        """Look at a file that is about to be written, and have that on the disk."""
        from trunkline.agents.coder.undo.opened import OpenCall

        before, key = _preimage(place), self.checkpoints.key
        named = {**{key(folder): None for folder in before.made}, key(place): before.state}
        self._record.calls.begin(OpenCall(turn.id, turn.at, named, before.data))
        return before

    def _opened_command(self, turn: _Turn, found: Manifest, is_new: bool) -> None:
        """Have on the disk what was there before a command."""
        from trunkline.agents.coder.undo.opened import OpenCall

        calls = self._record.calls
        # While others run, what was there before the first of them is what counts.
        if not self._commands and (is_new or not os.path.exists(calls.manifest)):
            self.checkpoints.save(found, calls.manifest)
            self._is_new = False
        calls.begin(OpenCall(turn.id, turn.at))

    async def _scanned(self, then: Callable[[Manifest, bool], None], stop: StopFlag | None = None) -> Manifest:
        """Look at the workspace; `then` is called with what is there, and whether that was not saved, still in the
        thread. `stop`: the flag that ends it, in place of cancelling."""
        from trunkline.agents.coder.undo import scanning
        from trunkline.agents.coder.undo.checkpoints import PATIENCE_SECONDS

        checkpoints = self.checkpoints

        def work(cancelled: StopFlag) -> Manifest:
            known, check = self._known, (stop or cancelled).check
            with checkpoints.store.locked(PATIENCE_SECONDS):
                base = scanning.load(checkpoints.manifest) if known is None else known
                found = scanning.scan(checkpoints.root, base, checkpoints.store, checkpoints.excluded, check)
            check()
            self._is_new = self._is_new or known is None or any(True for _ in scanning.changed(known, found))
            self._known = found
            then(found, self._is_new)
            return found

        async with self._one_at_a_time:
            return await in_thread(work)

    async def _scanned_after(self, before: Before) -> None:
        from trunkline.agents.coder.undo import scanning

        turn, seen = before
        if isinstance(seen, _Preimage):
            return

        def record(found: Manifest, is_new: bool) -> None:
            if changes := list(scanning.changed(seen, found)):
                self._record_changes(turn, changes)
            for why in scanning.not_known(seen, found):
                self._note_uncovered(why, turn)

        await self._scanned(record)

    async def _written_after(self, turn: _Turn, before: _Preimage) -> None:
        from trunkline.agents.coder.undo.states import look

        # At once: somebody else may change it next.
        state, data = await in_thread(lambda _: look(before.place))
        if state == before.state:
            return

        def work(_: StopFlag) -> None:
            with self.checkpoints.store.keeping() as keeper:
                for there, content in ((before.state, before.data), (state, data)):
                    if there is not None and there.is_kept and there.blob:
                        keeper.keep(there.blob, content)
            key = self.checkpoints.key
            made = ((folder, look(folder)[0]) for folder in before.made)
            folders = [(key(folder), None, there) for folder, there in made if there]
            self._record_changes(turn, [*folders, (key(before.place), before.state, state)], named=True)

        async with self._one_at_a_time:
            try:
                await in_thread(work)
            except NoCheckpoint as problem:
                self._turn_off(problem)

    async def _recovered(self) -> None:
        from trunkline.agents.coder.undo.checkpoints import PATIENCE_SECONDS
        from trunkline.agents.coder.undo.recovering import Recovery

        def work(_: StopFlag) -> None:
            with self.checkpoints.store.locked(PATIENCE_SECONDS):
                Recovery(self.checkpoints, self.session).settle()

        await in_thread(work)
        self._is_owed = False

    def _closed(self, before: Before) -> None:
        """What a call has changed is recorded, as far as that can be."""
        if isinstance(before.seen, _Preimage):
            self._named -= 1
        else:
            self._commands -= 1
        if not self._named and not self._commands:
            with suppress(NoCheckpoint, OSError):
                self._record.calls.clear()

    # The record

    @property
    def _record(self) -> ChangeRecord:
        return self.checkpoints.record(self.session)

    def _record_turn(self, turn: _Turn) -> None:
        if not turn.is_recorded:
            turn.is_recorded = True
            self._record.begin(turn.id, turn.at)

    def _record_changes(
        self, turn: _Turn, changes: Iterable[tuple[str, PathState | None, PathState | None]], *, named: bool = False
    ) -> None:
        self._record_turn(turn)
        self._record.change(turn.id, changes, named=named)

    def _note_uncovered(self, why: str, turn: _Turn | None = None) -> None:
        turn = turn or self._turn
        with suppress(NoCheckpoint):
            self._record_turn(turn)
            self._record.uncovered(turn.id, why)

    def _later(self, work: Coroutine[Any, Any, None], closes: Before | None = None) -> asyncio.Task[None]:
        """Do something that the next call waits for. `closes`: the call of which all is recorded then."""
        task = asyncio.create_task(self._guarded(work, closes), name="record what a call has changed")
        self._pending.add(task)
        task.add_done_callback(self._pending.discard)
        return task

    async def _guarded(self, work: Coroutine[Any, Any, None], closes: Before | None) -> None:
        try:
            await work
        except NoCheckpoint as problem:
            self._do_without(problem)
        except (OSError, ValueError) as error:
            logger.warning("what a call has changed could not be recorded: %s", error)
        if closes is not None:
            self._closed(closes)

    def _turn_off(self, problem: NoCheckpoint) -> None:
        """Go on without all of it."""
        if not self._off:
            self._off = str(problem)
            self._say(f"Undo is not available: {problem}")

    def _do_without(self, problem: NoCheckpoint) -> None:
        """Go on without what commands change; Write and Edit name their files."""
        said, self._no_scans = self._no_scans, str(problem)
        if not said:
            self._say(f"Undo covers what Write and Edit change, but not what commands do: {problem}")
        self._note_uncovered(str(problem))
        if isinstance(problem, StoreBusy):
            self._no_scans = ""


def _preimage(place: str) -> _Preimage:
    from trunkline.agents.coder.undo.states import look

    state, data = look(place)
    made = []
    folder = os.path.dirname(place)
    while not os.path.lexists(folder):
        made.append(folder)
        folder = os.path.dirname(folder)
    return _Preimage(place, state, data, tuple(reversed(made)))

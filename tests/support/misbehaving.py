"""How tests get hold of `misbehaving_agent.py`, as a connection, a conversation or an agent."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.patience import PATIENCE_SECONDS
from trunkline.core.agent import Conversation
from trunkline.core.events import Event, Failed, Notice, TextDelta, TurnEnded, UserMessage
from trunkline.wires.jsonstream.drive import Connection, DrivenConversation, Launched, Timing

#: Most habits are not worth waiting for.
CLOSE_SECONDS = 0.2

PROGRAM = str(Path(__file__).with_name("misbehaving_agent.py"))


def argv(habit: str) -> list[str]:
    """The command line of the program with a habit."""
    return [sys.executable, "-S", "-E", PROGRAM, habit]


@asynccontextmanager
async def connected(habit: str, **options: Any) -> AsyncIterator[Connection]:
    """A connection to the program."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        connection = await Connection.start(argv(habit), name="nasty", **options)
        try:
            yield connection
        finally:
            await connection.close(CLOSE_SECONDS)


@asynccontextmanager
async def conversing(habit: str, **options: Any) -> AsyncIterator[DrivenConversation]:
    """A conversation with the program, which is started again with `--resume` when it has ended."""
    limits = {name: options.pop(name) for name in ("max_line",) if name in options}

    async def start(*flags: str) -> Connection:
        return await Connection.start([*argv(habit), *flags], name="nasty", **limits)

    async def again(session_id: str | None) -> Launched:
        return Launched(await start("--resume", session_id or "?"), resumed=True)

    async with asyncio.timeout(PATIENCE_SECONDS):
        conversation = DrivenConversation(
            Launched(await start()), relaunch=options.pop("relaunch", again), timing=Timing(**options)
        )
        try:
            yield conversation
        finally:
            await conversation.close()


async def talk(conversation: Conversation, text: str, files: Sequence[str] = ()) -> list[Event]:
    """A whole turn, without any decision."""
    return [event async for event in conversation.turn(UserMessage(text, tuple(files)))]


def said(events: Sequence[Event]) -> str:
    """The text of the answer."""
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def notices(events: Sequence[Event]) -> list[str]:
    """The notices."""
    return [event.message for event in events if isinstance(event, Notice)]


def failures(events: Sequence[Event]) -> list[str]:
    """What went wrong."""
    return [event.message for event in events if isinstance(event, Failed)]


def end(events: Sequence[Event]) -> TurnEnded:
    """The end of a turn, of which there is one, and last."""
    ends = [event for event in events if isinstance(event, TurnEnded)]
    assert len(ends) == 1
    assert events[-1] is ends[0]
    return ends[0]


async def has_ended(pid: int) -> None:
    """Wait until a process has ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(pidfd, ended.set)
    try:
        await asyncio.wait_for(ended.wait(), PATIENCE_SECONDS)
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)

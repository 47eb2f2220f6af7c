"""One sitting in front of `trunkline chat`, from its start to its end: what signals do to it, and what is kept then."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from trunkline.base.printable import printable_line
from trunkline.base.signals import handled
from trunkline.base.writing import write_or_drop
from trunkline.cli.chat_session import ChatOptions, EventQueue, TerminalSession, opening
from trunkline.cli.logged import logged
from trunkline.cli.terminal.conversation import TerminalConversation
from trunkline.cli.wrapping import commands_apart

_SIGNAL_EXIT = 128


async def converse(options: ChatOptions) -> int:
    """Talk until they leave; gives the exit code.

    Raises:
        ConfigError: it cannot begin.
    """
    opened = await opening(options)
    inbox = EventQueue()
    talk = await TerminalSession.open(options, opened, interactive=True, on_judged=inbox.put, tell=_tell)
    chat = TerminalConversation(options, opened, talk, inbox)
    loop = asyncio.get_running_loop()
    running = loop.create_task(_aloud(chat, options), name="conversation")
    ended_by: list[int] = []

    def end(number: int) -> None:
        if ended_by:
            # A second one does not wait for an agent that has its grace.
            os._exit(_SIGNAL_EXIT + number)
        ended_by.append(number)
        running.cancel()

    for number in handled((signal.SIGTERM, signal.SIGHUP)):
        loop.add_signal_handler(number, end, number)
    try:
        with logged(chat.note), _interrupting(chat):
            await running
    except EOFError:
        ended_by = ended_by or [signal.SIGHUP]
    except asyncio.CancelledError:
        if not ended_by:
            raise
    finally:
        # Who was torn away is asked again when they come back.
        await chat.close(suspended=bool(ended_by))
    return _SIGNAL_EXIT + ended_by[0] if ended_by else 0


@contextmanager
def _interrupting(chat: TerminalConversation) -> Iterator[None]:
    """Inside, Ctrl-C stops a command that takes long. At the prompt and during an answer, others listen to it."""
    loop = asyncio.get_running_loop()

    # Not `loop.add_signal_handler`: the prompt takes that away, and does not give it back.
    def handler(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(chat.interrupt)

    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


async def _aloud(chat: TerminalConversation, options: ChatOptions) -> None:
    """Hold the conversation, with the microphone and the speakers if it has a voice."""
    if options.voice is None:
        await chat.run()
        return
    async with options.voice.heard_out():
        await chat.run()


def _tell(text: str) -> None:
    """Before there is a screen."""
    write_or_drop(2)(f"{commands_apart(printable_line(text))}\n".encode(errors="backslashreplace"))

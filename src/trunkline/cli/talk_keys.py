"""The keys of a spoken conversation: they stop the answer, begin and end what is said, or are the letters of a line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from trunkline.agents.external.tryll_talk import TryllTalk
from trunkline.cli.talk_audio import Speakers
from trunkline.cli.talk_screen import TalkScreen
from trunkline.cli.terminal.keys import EditedLine, Key, Keyboard
from trunkline.cli.terminal.talk import TalkCommands

_ENDING_KEYS = ("q", "Q")


async def obey(
    talk: TryllTalk,
    keys: asyncio.Queue[Key],
    voice: Speakers | None,
    screen: TalkScreen,
    commands: TalkCommands | None,
    *,
    push_to_talk: bool,
) -> None:
    """Obey keys until one of them ends it. Where a line is begun, they are its letters."""
    pressed = False
    typed = EditedLine()
    while True:
        key = await keys.get()
        if typed.text:
            if key.name == "enter":
                text, typed = typed.text.strip(), EditedLine()
                screen.typing("")
                if await _said(talk, text, commands):
                    return
            elif key.name == "escape":
                typed = EditedLine()
            else:
                typed.press(key)
            screen.typing(typed.text)
        elif key.name == "end" or key.text in _ENDING_KEYS:
            return
        elif key.text == " " and push_to_talk and pressed:
            pressed = False
            await talk.release()
        elif key.text == " " and push_to_talk:
            if voice is not None:
                voice.stop()
            pressed = True
            await talk.press()
        elif key.text == " " or key.name == "escape":
            talk.hush()
        else:
            typed.press(key)
            screen.typing(typed.text)


async def _said(talk: TryllTalk, text: str, commands: TalkCommands | None) -> bool:
    """What somebody typed: a message, or a command. Whether they want to leave."""
    if commands is not None and text.startswith("/") and await commands.run(text):
        return commands.leaving
    if text:
        await talk.say(text)
    return False


@contextmanager
def heard(pressed: asyncio.Queue[Key]) -> Iterator[None]:
    """Hear each key as it is pressed, where there is a terminal."""
    if not sys.stdin.isatty():
        yield
        return

    def nothing() -> None:
        """The next frame shows all that there is."""

    keyboard = Keyboard(
        sys.stdin.fileno(),
        pressed.put_nowait,
        on_gone=lambda: pressed.put_nowait(Key("end")),
        on_suspend=nothing,
        on_return=nothing,
    )
    with keyboard:
        yield

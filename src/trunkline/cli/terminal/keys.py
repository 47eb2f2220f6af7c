"""Single keys from a terminal while the program does something else. Ctrl-C and Ctrl-Z stay signals."""

from __future__ import annotations

import asyncio
import codecs
import os
import signal
import termios
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from trunkline.cli.terminal.pasting import without_last

#: How long an escape may be the beginning of something longer, such as an arrow key. Over a slow line it takes a while.
ESCAPE_SECONDS = 0.06
READ_BYTES = 4096

#: The keys that mean something here, besides escape; all others that are no text are ignored.
NAMES: dict[str, str] = {
    Keys.ControlM.value: "enter",
    Keys.ControlJ.value: "enter",
    Keys.ControlH.value: "backspace",
    Keys.ControlU.value: "clear",
    Keys.ControlW.value: "rub word",
    Keys.ControlD.value: "end",
    Keys.ControlI.value: "tab",
    Keys.Up.value: "up",
    Keys.ControlV.value: "clipboard",
}


class Key:
    """A key that was pressed: its name, or the text that it stands for, which may have been pasted."""

    def __init__(self, name: str = "", text: str = "", *, is_pasted: bool = False) -> None:
        self.name = name
        self.text = text
        self.is_pasted = is_pasted


class Keyboard:
    """Inside `with`, every key goes to a callback, and none of them appears on the screen."""

    def __init__(
        self,
        fd: int,
        on_key: Callable[[Key], None],
        *,
        on_gone: Callable[[], None],
        on_suspend: Callable[[], None],
        on_return: Callable[[], None],
    ) -> None:
        self._fd = fd
        self._on_key = on_key
        self._on_gone = on_gone
        self._on_suspend = on_suspend
        self._on_return = on_return
        self._loop = asyncio.get_running_loop()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser = Vt100Parser(self._pressed)
        self._flush: asyncio.TimerHandle | None = None
        self._escaped = False
        """Whether an escape waits for what may belong to it."""
        self._before: list[Any] = []

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self._fd)
        self._quiet()
        self._loop.add_reader(self._fd, self._readable)
        self._loop.add_signal_handler(signal.SIGTSTP, self._suspend)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.remove_signal_handler(signal.SIGTSTP)
        self._loop.remove_reader(self._fd)
        if self._flush is not None:
            self._flush.cancel()
        _set(self._fd, self._before)

    def _quiet(self) -> None:
        mode = list(self._before)
        # Keys come one by one and unseen; `ISIG` stays, so that Ctrl-C works even if this program is too busy to read.
        mode[3] &= ~(termios.ICANON | termios.ECHO | termios.IEXTEN)
        _set(self._fd, mode)

    def _suspend(self) -> None:
        """Ctrl-Z: leave the terminal to others as it was, and take it again when they bring us back."""
        self._on_suspend()
        _set(self._fd, self._before)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._quiet()
        self._on_return()

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._loop.remove_reader(self._fd)
            self._on_gone()
            return
        self._parser.feed(self._decoder.decode(data))
        self._tell_escape()
        if self._flush is not None:
            self._flush.cancel()
        self._flush = self._loop.call_later(ESCAPE_SECONDS, self._finish)

    def _finish(self) -> None:
        self._parser.flush()
        self._tell_escape()

    def _tell_escape(self) -> None:
        if self._escaped:
            self._escaped = False
            self._on_key(Key("escape"))

    def _pressed(self, press: KeyPress) -> None:
        name = press.key.value if isinstance(press.key, Keys) else press.key
        if self._escaped and name in (Keys.ControlM.value, Keys.ControlJ.value):
            # Alt and Enter come as these two at once.
            self._escaped = False
            self._on_key(Key("newline"))
            return
        self._tell_escape()
        if name == Keys.BracketedPaste.value:
            self._on_key(Key(text=press.data.replace("\r\n", "\n").replace("\r", "\n"), is_pasted=True))
        elif name == Keys.Escape.value:
            self._escaped = True
        elif name in NAMES:
            self._on_key(Key(NAMES[name]))
        elif len(name) == 1 and name.isprintable():
            self._on_key(Key(text=name))


def _set(fd: int, mode: list[Any]) -> None:
    try:
        termios.tcsetattr(fd, termios.TCSADRAIN, mode)
    except termios.error:
        # The terminal is gone, and with it its settings.
        return


class EditedLine:
    """A line that is being typed, without a cursor to move."""

    def __init__(self, text: str = "") -> None:
        self.text = text

    def press(self, key: Key) -> None:
        """Apply a key; those that do not edit change nothing."""
        if key.text:
            self.text += key.text
        elif key.name == "newline":
            self.text += "\n"
        elif key.name == "backspace":
            self.text = without_last(self.text)
        elif key.name == "clear":
            self.text = ""
        elif key.name == "rub word":
            self.text = self.text.rstrip().rpartition(" ")[0]

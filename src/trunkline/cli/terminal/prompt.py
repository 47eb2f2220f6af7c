"""Where people type: with a history, several lines, and completion of commands and of files after `@`."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import is_dumb_terminal

from trunkline.base import paths
from trunkline.cli.terminal.calls import in_a_line
from trunkline.cli.terminal.paint import PROMPT, encoded, encoding_of
from trunkline.cli.terminal.pasting import PastedThings
from trunkline.cli.terminal.prompt_pasting import ChatHistory, paste_keys
from trunkline.cli.terminal.status import Status
from trunkline.core.agent import Capabilities

if TYPE_CHECKING:
    from trunkline.cli.talk_voice import TerminalVoice

#: Two presses of Ctrl-C within this time leave.
LEAVE_SECONDS = 2.0
#: Lines below the prompt that the completions may use.
MENU_LINES = 6
#: Names in one directory that are offered.
MOST_PATHS = 200
#: A longer history loses its older half.
LONGEST_HISTORY = 1024 * 1024
_PRIVATE_FILE = 0o600
#: Of what is heard, as much is shown as fits into a line, and at least so much.
LEAST_HEARD = 8
#: Around it: the mark, a space, three dots in one, and a column that stays free.
HEARD_ENDS = 4

_PATH = re.compile(r'(?:^|\s)@("?)([^\s"]*)$')

#: What the mode `yolo` means.
UNASKED = "(acts unasked)"

#: What can follow a command, by its name.
Arguments = Callable[[str], Iterable[str]]

_STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "mode": "ansiyellow",
        "mode.unasked": "ansired bold",
        "heard": "ansibrightblack nobold",
        "continuation": "ansibrightblack",
        "rprompt": "ansibrightblack",
        "status": "ansibrightblack nobold",
        "status.busy": "ansicyan",
        "status.filling": "ansiyellow",
        "status.full": "ansired bold",
    }
)


def standing(mode: str, can: Capabilities) -> str:
    """What people should know before they say something: whether commands are in a sandbox, and the mode. Nothing if
    it is as usual."""
    # One press beyond the mode that changes nothing: nobody should be in it without noticing.
    known = [*(["sandbox"] if can.sandbox else []), *([mode] if mode != "default" else [])]
    return " ".join(known) + (f" {UNASKED}" if mode == "yolo" else "")


class InputPrompt:
    """Reads what people say. `on_mode` is called when they ask for the next approval mode (Shift-Tab)."""

    def __init__(
        self,
        commands: Callable[[], Iterable[tuple[str, str]]],
        arguments: Arguments,
        workspace: str,
        *,
        mode: Callable[[], str],
        on_mode: Callable[[], None],
        pasted: PastedThings | None = None,
        tell: Callable[[str], None] = lambda text: None,
        status: Callable[[], Status] = Status,
        voice: TerminalVoice | None = None,
        on_voice: Callable[[], None] = lambda: None,
    ) -> None:
        """`tell` is for what people should know meanwhile. `status` is shown above the line. `on_voice` is called when
        they press the space bar where nothing is typed, if there is a voice.
        """
        self._mode = mode
        self._status = status
        self._pasted = pasted or PastedThings(workspace)
        self._voice = voice
        self._on_voice = on_voice
        self.left = False
        """Whether the last reading was given up, and gave nothing."""
        self._on_mode = on_mode
        self._asked_to_leave = float("-inf")
        self._mark = encoded(PROMPT, encoding_of(sys.stdout)).decode(encoding_of(sys.stdout))
        completer = ChatCompleter(commands, arguments, workspace)
        self._session: PromptSession[str] = PromptSession(
            message=self._message,
            rprompt=self._hint,
            multiline=True,
            prompt_continuation=lambda width, number, wrapped: [("class:continuation", "… ".rjust(width))],
            history=_history(self._pasted),
            completer=completer,
            complete_while_typing=Condition(lambda: completer.wanted(get_app().current_buffer.document)),
            reserve_space_for_menu=MENU_LINES,
            key_bindings=merge_key_bindings([self._keys(), paste_keys(self._pasted, tell)]),
            style=_STYLE,
            enable_suspend=True,
            enable_open_in_editor=True,
            tempfile_suffix=".md",
            erase_when_done=False,
        )

    async def read(self, typed: str = "") -> str:
        """What was typed, which may be nothing.

        Raises:
            EOFError: they want to leave, or the terminal is gone.
        """
        self._asked_to_leave = float("-inf")
        self.left = False
        app = self._session.app
        app.erase_when_done = False
        if self._voice is not None:
            self._voice.on_change = app.invalidate
        is_read = False
        try:
            text = await self._session.prompt_async(default=typed)
            is_read = True
            return text
        finally:
            # A terminal that goes away, in whatever way that is noticed, may do so with something in the line.
            if not is_read:
                self.remember(self._session.default_buffer.text)

    def remember(self, text: str) -> None:
        """Keep what was not sent in the history."""
        if text.strip():
            self._session.history.append_string(text)

    async def leave(self, reading: asyncio.Task[str]) -> str:
        """Give up reading, if that is not over, and leave nothing of it on the screen; gives what was typed."""
        app, typed = self._session.app, ""
        if is_dumb_terminal() and not reading.done():
            # There it reads with an application of its own: what was typed cannot be had.
            self.left = True
            reading.cancel()
            await asyncio.wait({reading})
            return typed
        while not (reading.done() or app.is_running):  # noqa: ASYNC110  (it does not tell)
            # It has only just begun.
            await asyncio.sleep(0)
        if not reading.done() and not app.is_done:
            self.left = True
            app.erase_when_done = True
            typed = app.current_buffer.text
            app.exit(result="")
        await asyncio.wait({reading})
        return typed

    def _message(self) -> FormattedText:
        mode, columns = self._mode(), self._session.app.output.get_size().columns
        shown = [(f"class:mode{'.unasked' if mode.endswith(UNASKED) else ''}", f"{mode} ")] if mode else []
        # What is sent stays on the screen without it.
        if not self._session.app.is_done and (status := self._status().line(columns)):
            shown = [*((f"class:{style}", text) for style, text in status), ("", "\n"), *shown]
        if self._voice is not None and self._voice.hearing is not None:
            heard = in_a_line(self._voice.hearing) or "listening"
            room = max(LEAST_HEARD, columns - HEARD_ENDS)
            shown = [
                ("class:prompt", f"{self._mark} "),
                ("class:heard", heard[-room:]),
                ("class:prompt", "…\n"),
                *shown,
            ]
        return FormattedText([*shown, ("class:prompt", f"{self._mark} ")])

    def _hint(self) -> str:
        return "Ctrl-C again leaves" if time.monotonic() - self._asked_to_leave < LEAVE_SECONDS else ""

    def _hush(self) -> None:
        if self._voice is not None:
            self._voice.hush()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()

        @keys.add(" ", filter=Condition(lambda: self._voice is not None and not get_app().current_buffer.text))
        def _speak(event: KeyPressEvent) -> None:
            self._on_voice()

        @keys.add("enter")
        def _enter(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            chosen = buffer.complete_state.current_completion if buffer.complete_state else None
            if chosen is not None:
                is_command = buffer.text.startswith("/") and " " not in buffer.text
                buffer.complete_state = None
                if not is_command:
                    return
            if buffer.document.text_before_cursor.endswith("\\") and not buffer.document.text_after_cursor:
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            else:
                # Else what was sent would stay on the screen with the hint beside it.
                self._asked_to_leave = float("-inf")
                buffer.validate_and_handle()

        @keys.add("escape", "enter")
        def _newline(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        @keys.add("s-tab")
        def _next_mode(event: KeyPressEvent) -> None:
            self._on_mode()
            event.app.invalidate()

        keys.add(Keys.Vt100MouseEvent)(_ignore)

        @keys.add("c-c")
        @keys.add("<sigint>")
        def _interrupt(event: KeyPressEvent) -> None:
            self._hush()
            if event.current_buffer.text:
                event.current_buffer.reset()
            elif time.monotonic() - self._asked_to_leave < LEAVE_SECONDS:
                self._asked_to_leave = float("-inf")
                event.app.exit(exception=EOFError())
            else:
                self._asked_to_leave = time.monotonic()
                if event.app.loop is not None:
                    event.app.loop.call_later(LEAVE_SECONDS, event.app.invalidate)

        return keys


def _ignore(event: KeyPressEvent) -> None:
    """The mouse is not used. A colour in pasted text (`ESC [31m`) is taken for it, and failed as a bad position."""


class ChatCompleter(Completer):
    """Completes `/commands`, their arguments, and paths after `@`."""

    def __init__(self, commands: Callable[[], Iterable[tuple[str, str]]], arguments: Arguments, workspace: str) -> None:
        self._commands = commands
        self._arguments = arguments
        self._workspace = workspace

    def wanted(self, document: Document) -> bool:
        """Whether completions are offered unasked."""
        text = document.text_before_cursor
        return text.startswith("/") or _PATH.search(text) is not None

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        path = _PATH.search(text)
        if path is not None:
            yield from self._paths(path[1], path[2])
        elif text.startswith("/"):
            command, space, argument = text.partition(" ")
            if space:
                found = ((value, "") for value in self._arguments(command))
                start = argument
            else:
                found = ((f"/{name}", help_text) for name, help_text in self._commands())
                start = command
            for value, meta in found:
                if value.startswith(start):
                    yield Completion(value, -len(start), display_meta=meta)

    def _paths(self, quote: str, typed: str) -> Iterable[Completion]:
        folder, name = os.path.split(typed)
        try:
            entries = sorted(os.scandir(os.path.join(self._workspace, os.path.expanduser(folder))), key=_order)
        except OSError:
            return
        shown = 0
        for entry in entries:
            if not entry.name.startswith(name) or (entry.name.startswith(".") and not name.startswith(".")):
                continue
            if not entry.name.isprintable() or (" " in entry.name and not quote):
                continue
            yield Completion(entry.name + ("/" if entry.is_dir() else quote), -len(name))
            shown += 1
            if shown == MOST_PATHS:
                return


def _order(entry: os.DirEntry[str]) -> tuple[bool, str]:
    return (not entry.is_dir(), entry.name)


def _history(pasted: PastedThings) -> History:
    path = os.path.join(paths.state_dir(), "chat_history")
    try:
        paths.ensure_dir(os.path.dirname(path))
        # Made here: what people type is theirs alone.
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _PRIVATE_FILE))
        _shorten(path)
    except OSError:
        return InMemoryHistory()
    return ChatHistory(path, pasted)


def _shorten(path: str) -> None:
    if os.path.getsize(path) <= LONGEST_HISTORY:
        return
    with open(path, "rb+") as file:
        file.seek(-LONGEST_HISTORY // 2, os.SEEK_END)
        # Entries begin with an empty line and a comment.
        kept = file.read().partition(b"\n\n")[2]
        file.seek(0)
        file.write(kept)
        file.truncate()

"""A chat on a screen: answers that grow in place, and at the bottom a line to type on.

The cursor rests below the last text. What still grows is written again from the first row that changes, as long as
nothing else stands below it; after that it goes on below, and what changes otherwise is told by its new lines. What
somebody is typing is not lost by that: the system holds the line until it is complete.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections import OrderedDict
from collections.abc import Callable

from trunkline.chat.terminal.text import DIM, INDENT, GrowingText, changes, styled

GREETING = "A chat with your agent, in this terminal. `/help` lists commands, Ctrl-D ends."
PROMPT = "> "
WORKING = "..."

#: How long it must be quiet before there is a prompt: several texts that come together are not parted by it.
QUIET_SECONDS = 0.05
#: How long the agent may take to begin before that is shown.
WORKING_SECONDS = 0.4
#: Texts that can still change. More are never under way at one time.
MOST_PAGES = 50

#: For a terminal that does not tell.
_COLUMNS, _ROWS = 80, 24

_STYLES = re.compile("\x1b\\[[0-9;]*m")


class ChatScreen:
    """Writes to the terminal `fd` through `write`. With `asks`, there is somebody to type."""

    def __init__(self, fd: int, write: Callable[[str], None], *, asks: bool) -> None:
        self._fd = fd
        self._put = write
        # https://no-color.org
        self._has_colors = not os.environ.get("NO_COLOR")
        self._asks = asks
        self._loop = asyncio.get_running_loop()
        self._pages: OrderedDict[str, GrowingText] = OrderedDict()
        self._open: GrowingText | None = None
        """The one that nothing stands below."""
        self._gap = ""
        """What parts the next text from what stands above it."""
        self._bottom = ""
        """What stands on the line of the cursor."""
        self._bottom_gap = ""
        self._busy_until = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def greet(self) -> None:
        """Say what this is."""
        if self._asks:
            page = GrowingText()
            _, rows = page.grow(GREETING, self._size()[0])
            self._write("\n".join(rows) + "\n")
            self._gap = "\n"

    def send(self, id: str, text: str) -> None:
        """A new text, at the bottom."""
        page = self._pages[id] = GrowingText()
        while len(self._pages) > MOST_PAGES:
            self._pages.popitem(last=False)
        self._begin(page)
        self._grow(page, text)

    def edit(self, id: str, text: str) -> None:
        """A text has changed; of one that is not known any more, all of it has."""
        page = self._pages.get(id)
        if page is None:
            self.send(id, text)
        elif page.goes_on(text):
            if page is not self._open:
                page.part()
                self._begin(page)
            self._grow(page, text)
        elif not page.text.startswith(text):
            self.send(id, changes(page.text, text))
            self._open = None
            # What it is compared with the next time.
            self._pages[id].text = text
            self._pages[id].part()

    def typed(self) -> None:
        """Somebody has typed a line: the cursor is below it now."""
        self._bottom = self._gap = ""
        self._open = None
        self._look_in(WORKING_SECONDS)

    def disturbed(self) -> None:
        """Somebody else has written whole lines: what was there is somewhere above."""
        self._bottom, self._gap = "", "\n"
        self._open = None
        self._look_in(QUIET_SECONDS)

    def busy(self, seconds: float) -> None:
        """An answer is being written, for so long at least."""
        self._busy_until = self._loop.time() + seconds
        if self._timer is None:
            self._look_in(WORKING_SECONDS)

    def start(self) -> None:
        """Somebody may type now."""
        self._look_in(QUIET_SECONDS)

    def close(self) -> None:
        """Leave the cursor on a line of its own."""
        if self._timer is not None:
            self._timer.cancel()
        self._asks = False
        if self._bottom:
            self._write("\n")
            self._bottom = ""

    def _begin(self, page: GrowingText) -> None:
        """Below what is there, with an empty line between."""
        self._clear_bottom()
        self._write(self._gap)
        self._gap = "\n"
        self._open = page

    def _grow(self, page: GrowingText, text: str) -> None:
        columns, rows = self._size()
        gone, new = page.grow(text, columns)
        self._clear_bottom()
        # What has left the screen at its top cannot be changed any more.
        up = min(gone, rows - 1)
        new = new[gone - up :]
        back = f"\x1b[{up}A\r\x1b[J" if up else ""
        self._write(back + "".join(f"{row}\n" for row in new))
        self._look_in(WORKING_SECONDS if self._loop.time() < self._busy_until else QUIET_SECONDS)

    # The line at the bottom.

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, self._look)

    def _look(self) -> None:
        """Show what fits: whether an answer is being written, or somebody may type."""
        self._timer = None
        left = self._busy_until - self._loop.time()
        if left > 0:
            self._show(f"{INDENT}{styled(WORKING, DIM)} ")
            self._look_in(left)
        else:
            self._show(PROMPT)

    def _show(self, bottom: str) -> None:
        if not self._asks or bottom == self._bottom:
            return
        self._clear_bottom()
        self._write(self._gap + bottom)
        self._bottom, self._bottom_gap = bottom, self._gap

    def _clear_bottom(self) -> None:
        if self._bottom:
            self._write(("\x1b[A" if self._bottom_gap else "") + "\r\x1b[J")
            self._bottom = ""

    def _write(self, text: str) -> None:
        self._put(text if self._has_colors else _STYLES.sub("", text))

    def _size(self) -> tuple[int, int]:
        try:
            size = os.get_terminal_size(self._fd)
        except OSError:
            return _COLUMNS, _ROWS
        return size.columns or _COLUMNS, size.lines or _ROWS

"""What programs write to standard error while they run, for whoever wants to hear it: see `listeners`.

A program may write lines by the ten thousand, of which few are ever looked at: only those are decoded and cleaned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from trunkline.base.lines import LineSplitter
from trunkline.base.redact import Clean

#: The longest line that is told; of a longer one nothing is.
MAX_LINE = 16 * 1024


class UnreadLines:
    """Lines of one program that came together, at least one. They still have its secrets in them: see `last`."""

    __slots__ = ("_clean", "_lines")

    def __init__(self, lines: Sequence[bytes], clean: Clean) -> None:
        """`clean` takes the program's secrets out of a line."""
        self._lines = lines
        self._clean = clean

    def last(self, most: int) -> list[Callable[[], str]]:
        """The last of them, oldest first, at most so many. Each call gives the text of one, without secrets."""
        return [partial(self._text, line, self._clean) for line in self._lines[-most:]]

    # What is kept of one line must not keep the others.
    @staticmethod
    def _text(line: bytes, clean: Clean) -> str:
        return clean(line.decode("utf-8", "replace").rstrip())


#: Each is called with the name of a program and lines of it; what the `log_context` knew where the program was started
#: is known then.
listeners: list[Callable[[str, UnreadLines], None]] = []


class StderrLines:
    """Cuts one program's standard error into lines, if anybody listens."""

    def __init__(self, name: str, cleaner: Callable[[], Clean]) -> None:
        """`cleaner` makes what takes the program's secrets out of a line; it is called when there is the first one."""
        self._name = name
        self._cleaner = cleaner
        self._clean: Clean | None = None
        self._lines = LineSplitter(MAX_LINE)

    def feed(self, data: bytes) -> None:
        """Some more of it."""
        if not listeners:
            return
        lines = [line for line in self._lines.feed(data) if isinstance(line, bytes) and line.strip()]
        if not lines:
            return
        if self._clean is None:
            # Now, not when somebody looks: the environment that it is made of may have changed by then.
            self._clean = self._cleaner()
        unread = UnreadLines(lines, self._clean)
        for listener in tuple(listeners):
            listener(self._name, unread)

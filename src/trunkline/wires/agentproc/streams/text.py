"""Plain text: every line is a line of the answer. Colours, cursor movements and progress lines are taken out."""

from __future__ import annotations

from trunkline.base.escapes import without_escapes
from trunkline.base.lines import LineSplitter, OverlongLine
from trunkline.base.printable import without_controls
from trunkline.wires.agentproc.codec import MAX_LINE, too_long
from trunkline.wires.agentproc.messages import Error, Ignored, Partial, Result, Said
from trunkline.wires.agentproc.streams.jsonlines import MAX_ANSWER

#: The longest error that is told, in characters, give or take a line.
MAX_ERROR = 1000


class Stream:
    """Reads one run."""

    def __init__(self) -> None:
        self._lines = LineSplitter(MAX_LINE)
        self._answer: list[str] = []
        self._answer_chars = 0
        self._blank = 0
        self._error = ""

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and give what they complete."""
        return [said for line in self._lines.feed(data) for said in self._read(line)]

    def finish(self) -> list[Said]:
        """The output has ended: the whole answer, or what went wrong."""
        said = [said for line in self._lines.finish() for said in self._read(line)]
        if self._error:
            return [*said, Error(self._error)]
        return [*said, Result("".join(self._answer))] if self._answer else said

    # What a subclass may fill in

    def is_chrome(self, line: str) -> bool:
        """Whether a line is what the program says of itself, and no answer."""
        return False

    def error_in(self, line: str) -> str:
        """The error that a line tells of; empty if it tells of none. The lines behind it belong to it."""
        return ""

    def gets_over(self, line: str) -> bool:
        """Whether a line behind an error says that it is none any more."""
        return False

    def _read(self, line: bytes | OverlongLine) -> list[Said]:
        if isinstance(line, OverlongLine):
            return [too_long(line)]
        text = _plain(line)
        if self._error:
            return self._read_error(text)
        if error := self.error_in(text):
            self._error = error
            return []
        if self.is_chrome(text):
            return [Ignored(f"a line about the program itself was skipped: `{text}`")]
        if not text.strip():
            # Blank lines count between others only.
            self._blank += 1 if self._answer else 0
            return []
        piece = "\n" * (self._blank + 1) + text if self._answer else text
        self._blank = 0
        if self._answer_chars < MAX_ANSWER:
            self._answer.append(piece[: MAX_ANSWER - self._answer_chars])
            self._answer_chars += len(piece)
        return [Partial(piece)]

    def _read_error(self, text: str) -> list[Said]:
        if self.gets_over(text):
            why, self._error = self._error, ""
            return [Ignored(f"the program got over an error: {why}")]
        if text.strip() and not self.is_chrome(text) and len(self._error) < MAX_ERROR:
            self._error += f"\n{text}"
        return []


def _plain(line: bytes) -> str:
    text = without_escapes(line.decode("utf-8", "replace")).rstrip("\r\n\t ")
    # A progress line is written over and over: the last state counts.
    return without_controls(text.rpartition("\r")[2])

"""A model's thinking on its way to the screen: its end is live, and a line of it stays."""

from __future__ import annotations

from rich.text import Text

from trunkline.cli.terminal import words
from trunkline.cli.terminal.calls import clean_delta, one_line

_STYLE = "dim italic"
#: What is said of a thought besides its words, on the screen's narrowest line.
_MARK = "∴ "
#: In how large steps the beginning of what is live moves on: with each of them the lines are broken anew.
_STEP = 2000


class ThoughtView:
    """One stretch of thinking."""

    def __init__(self, since: float) -> None:
        self._since = since
        self._pieces: list[str] = []

    def feed(self, text: str) -> None:
        """Some more of it."""
        self._pieces.append(clean_delta(text))

    @property
    def text(self) -> Text | None:
        """All of it; None if nothing was thought."""
        thought = self._joined()
        return Text(_MARK + thought, _STYLE) if thought else None

    def end(self, chars: int) -> Text | None:
        """So many of its last characters, and some before them that may be cut off; None if nothing was thought.

        A thought may be long, and its end is painted many times a second.
        """
        thought = self._joined()
        begin = max(0, len(thought) - 2 * chars) // _STEP * _STEP
        return Text(thought[begin:], _STYLE) if begin else self.text

    def folded(self, now: float, width: int) -> Text | None:
        """One line of it, with how long it took; None if it is no longer than that anyway."""
        thought = self._joined()
        if "\n" not in thought and len(thought) < width - 2 * len(_MARK):
            return None
        took = now - self._since
        long = f"thought for {words.seconds(took)}: " if took >= 1 else ""
        return Text(f"{_MARK}{long}{one_line(thought)}", _STYLE)

    def _joined(self) -> str:
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0].strip()

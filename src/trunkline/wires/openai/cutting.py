"""An agent's text up to a stop sequence, or up to a length: what models do themselves, agents do not. No IO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from trunkline.wires.openai.messages import TOKEN_CHARS

#: Responses whose stop sequences and lengths are remembered.
MOST_CUTS = 10_000


class AnswerCutter:
    """Takes text in pieces, and gives what may be said of it. What may be the beginning of a sequence is held back."""

    def __init__(self, stops: Sequence[str], max_tokens: int | None) -> None:
        self._stops = stops
        self._left = None if max_tokens is None else max_tokens * TOKEN_CHARS
        self._held = ""
        self.cut: Literal["stop", "length"] | None = None
        """Why nothing more is said."""

    def feed(self, text: str) -> str:
        """One more piece; gives what can be said now."""
        if self.cut:
            return ""
        text = self._held + text
        self._held = ""
        places = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if places:
            self.cut = "stop"
            return self._within(text[: min(places)])
        keep = max((_begun(text, stop) for stop in self._stops), default=0)
        if keep:
            text, self._held = text[:-keep], text[-keep:]
        return self._within(text)

    def rest(self) -> str:
        """What was held back, when there is no more."""
        held, self._held = self._held, ""
        return "" if self.cut else self._within(held)

    def _within(self, text: str) -> str:
        if self._left is None:
            return text
        if len(text) > self._left:
            text, self.cut = text[: self._left], "length"
        self._left -= len(text)
        return text


class AskedCuts:
    """Where the answers of responses were to be cut: their logs have what the agent said. The oldest are forgotten."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[Sequence[str], int | None]] = {}

    def keep(self, id: str, stops: Sequence[str], max_tokens: int | None) -> None:
        """Of one more response."""
        self._asked[id] = (stops, max_tokens)
        if len(self._asked) > MOST_CUTS:
            del self._asked[next(iter(self._asked))]

    def cutter(self, id: str) -> AnswerCutter | None:
        """What cuts a response's answer once more; None if nothing does."""
        asked = self._asked.get(id)
        return None if asked is None else AnswerCutter(*asked)


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of a text are the beginning of a sequence."""
    for size in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:size]):
            return size
    return 0

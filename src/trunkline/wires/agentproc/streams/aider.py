"""What `aider --no-pretty` prints: plain text, between lines about itself.

Those before the answer end with the one about the map of the repository; what comes before that is about aider.
It tells of failures in the same place, and exits with 0 nevertheless. Those that it gets over end with a line that it
tries again.
"""

from __future__ import annotations

import re

from trunkline.wires.agentproc.messages import Ignored, Said
from trunkline.wires.agentproc.streams import text

#: What aider says of itself behind the preamble: of its chat, and of what an answer took.
_CHROME = re.compile(r"(?:Tokens|Cost): |Added .+ to the chat\.?$|Restored previous conversation history|Use /help ")
#: A longer preamble, in bytes, is none.
_MAX_PREAMBLE = 64 * 1024
_LAST_OF_PREAMBLE = b"\nRepo-map: "
#: How an error of the model's service begins: the name of its class.
_ERROR = re.compile(r"litellm\.(?:exceptions\.)?(?P<name>\w+(?:Error|Exceeded)): (?P<text>.*)")
_AGAIN = "Retrying in "


class Stream(text.Stream):
    """Reads one run."""

    def __init__(self) -> None:
        super().__init__()
        self._preamble: list[bytes] | None = []

    def feed(self, data: bytes) -> list[Said]:
        """Take some bytes and give what they complete, once the preamble is over."""
        if self._preamble is None:
            return super().feed(data)
        self._preamble.append(data)
        _, found, after = b"".join(self._preamble).partition(_LAST_OF_PREAMBLE)
        _, ended, rest = after.partition(b"\n")
        if not found or not ended:
            return self._release() if sum(map(len, self._preamble)) > _MAX_PREAMBLE else []
        self._preamble = None
        return [Ignored("the lines about aider itself were skipped"), *super().feed(rest)]

    def finish(self) -> list[Said]:
        """The output has ended. If the preamble has not, there is nothing else, and it says why."""
        return [*self._release(), *super().finish()]

    def _release(self) -> list[Said]:
        held, self._preamble = self._preamble, None
        return super().feed(b"".join(held)) if held else []

    def is_chrome(self, line: str) -> bool:
        """Whether a line is what aider says of itself."""
        return _CHROME.match(line) is not None

    def error_in(self, line: str) -> str:
        """What the model's service complained of."""
        found = _ERROR.match(line)
        return f"{found['name']}: {found['text']}" if found else ""

    def gets_over(self, line: str) -> bool:
        """Whether aider tries again."""
        return line.startswith(_AGAIN)

"""What an agent says, put together to one reply by the rules of AgentProc. Sans-IO.

- A partial is passed on at once, if the turn streams; if not, it is left out. An empty one says nothing.
- Lines of the body are the reply, in addition to partials. A result (0.4) is the reply only if no partial was shown.
- The last session id counts, also after an error, and also when the turn fails.
- The first error counts. From then on everything but session ids is left out, and the turn has failed.
- Partials together, and the reply, are cut at the profile's limit, and the suffix is put behind. What was cut is not
  kept: an agent that never stops talking does not fill our memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trunkline.wires.agentproc.messages import (
    Body,
    Error,
    Ignored,
    Lost,
    Partial,
    PermissionRequest,
    Result,
    Said,
    SessionId,
    Used,
    Withdrawn,
)

GENERIC_ERROR = "The agent reported an error."


class GrowingReply:
    """The reply of one turn, as it grows."""

    def __init__(self, *, streaming: bool, max_chars: int, suffix: str) -> None:
        self.session_id = ""
        """What the agent called its session; empty if it did not."""
        self.error: str | None = None
        """What the agent said went wrong."""
        self.partials: list[str] = []
        """The pieces of the answer that were passed on."""
        self.truncated = False
        self.left_out = False
        """Whether there were pieces of the answer that nobody gets, because the turn does not stream."""
        self.usage: Mapping[str, Any] | None = None
        self.concluded = False
        """Whether the agent has said all: a result or an error."""
        self._streaming = streaming
        self._max_chars = max_chars
        self._suffix = suffix
        self._shown = 0
        self._body: list[str] = []
        self._body_chars = 0
        self._result: str | None = None

    def take(self, sayings: Sequence[Said]) -> list[Said]:
        """Take what the agent said and give what is to be heard of it at once.

        That is partials, session ids, the first error, permission requests and what became of them, and what was
        ignored.
        """
        heard: list[Said] = []
        for said in sayings:
            kind = type(said)
            if kind is Partial:
                self._take_partial(said, heard)  # type: ignore[arg-type]  # narrowed by `type`, which is faster
            elif kind is Body:
                self._take_line(said.text)  # type: ignore[attr-defined]
            else:
                self._take_rest(said, heard)
        return heard

    def text(self) -> str:
        """The reply so far: the body, or the result if nothing of it was shown before."""
        if self._body:
            return self._cut("\n".join(self._body))
        if self._result is not None and not self.partials:
            return self._cut(self._result)
        return ""

    def _take_partial(self, said: Partial, heard: list[Said]) -> None:
        text = said.text
        if not text or self.error is not None:
            return
        if not self._streaming:
            self.left_out = self.left_out or said.role == "output"
            return
        if said.role != "output":
            heard.append(said)
            return
        room = self._max_chars - self._shown
        if len(text) > room:
            if not self.truncated:
                self.truncated = True
                last = [piece for piece in (text[:room], self._suffix) if piece]
                self.partials += last
                heard += map(Partial, last)
                self._shown = self._max_chars
            return
        self._shown += len(text)
        self.partials.append(text)
        heard.append(said)

    def _take_line(self, text: str) -> None:
        # Every line but the first has a line feed in front of it.
        if self.error is not None or self._body_chars - 1 > self._max_chars:
            return
        # No more than shows that there was more.
        self._body.append(text[: self._max_chars + 1])
        self._body_chars += len(text) + 1

    def _take_rest(self, said: Said, heard: list[Said]) -> None:
        match said:
            case SessionId():
                self.session_id = said.session_id
                heard.append(said)
            case Error():
                self.concluded = True
                self.usage = said.usage or self.usage
                if self.error is None:
                    self.error = said.message.strip() or GENERIC_ERROR
                    heard.append(Error(self.error, said.usage))
            case Result() if self.error is None:
                if self._result is None:
                    self.concluded = True
                    self._result = said.text
                    self.usage = said.usage
                else:
                    heard.append(Ignored("a second result was ignored"))
            case PermissionRequest() if self.concluded:
                # Its input ends with that.
                heard.append(Ignored("a permission request after the end of the answer was ignored"))
            case PermissionRequest() | Withdrawn() | Used() | Ignored():
                self.truncated = self.truncated or isinstance(said, Lost)
                heard.append(said)

    def _cut(self, text: str) -> str:
        if len(text) <= self._max_chars:
            return text
        self.truncated = True
        return text[: self._max_chars] + self._suffix

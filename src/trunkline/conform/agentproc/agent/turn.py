"""One turn of an agent: what it says while it runs, and what that comes to for the user."""

from __future__ import annotations

from trunkline.base.values import Value
from trunkline.conform.process import RunningTarget
from trunkline.wires.agentproc.codec import LineReader
from trunkline.wires.agentproc.codec_ndjson import NdjsonReader
from trunkline.wires.agentproc.messages import (
    Body,
    Dialect,
    Error,
    Partial,
    PermissionRequest,
    Result,
    Said,
    SessionId,
    TurnRequest,
)


class EndedTurn(Value):
    """What a bridge has of a turn that has ended."""

    said: tuple[Said, ...]
    streaming: bool
    exit_code: int
    stderr: str

    @property
    def partials(self) -> str:
        """The pieces of the answer, put together."""
        return "".join(each.text for each in self.said if isinstance(each, Partial) and each.role == "output")

    @property
    def body(self) -> str:
        """The reply that is sent at the end."""
        lines = [each.text for each in self.said if isinstance(each, Body)]
        results = [each.text for each in self.said if isinstance(each, Result)]
        return "\n".join(lines + results[:1])

    @property
    def text(self) -> str:
        """What the user gets to see: with 0.4, a result only where there was no partial."""
        partials = self.partials if self.streaming else ""
        if partials and any(isinstance(each, Result) for each in self.said):
            return partials
        return partials + self.body

    @property
    def error(self) -> str | None:
        """What the first error line says; None without one."""
        return next((each.message for each in self.said if isinstance(each, Error)), None)

    @property
    def sessions(self) -> list[str]:
        """The ids that were told."""
        return [each.session_id for each in self.said if isinstance(each, SessionId)]

    def failed(self) -> bool:
        """Whether a bridge takes it for a failure."""
        return self.exit_code != 0 or self.error is not None

    def problem(self) -> str | None:
        """Why this is no answer; None when it is one."""
        if self.error is not None:
            return f"the turn failed: {self.error[:200]}"
        if self.exit_code != 0:
            last = self.stderr.rsplit("\n", 1)[-1][:200]
            return f"the exit status is {self.exit_code}" + (f" (it said: {last})" if last else "")
        return None if self.text.strip() else "the exit status is 0, and there is no text for the user"


class Turning:
    """One running turn."""

    process: RunningTarget

    def __init__(self, turn: TurnRequest, protocol: Dialect) -> None:
        self.turn = turn
        self.said: list[Said] = []
        self._lines, self._events = LineReader(), NdjsonReader()
        self._old = protocol == "0.1"

    def hear(self, line: bytes) -> list[Said]:
        """What one line says."""
        said = [self._lines.read(line)] if self._old else self._events.read(line)
        self.said += said
        return said

    def send(self, data: bytes) -> None:
        """Write to its standard input."""
        for line in data.removesuffix(b"\n").split(b"\n"):
            self.process.record.add("host", line)
        self.process.write(data)

    async def speaks(self, within: float) -> bool:
        """Wait for the first piece of the answer."""
        return await self.process.until(lambda: any(isinstance(each, Partial | Body) for each in self.said), within)

    @property
    def partials(self) -> bool:
        """Whether there was a piece of the answer."""
        return any(isinstance(each, Partial) for each in self.said)

    async def asks(self, within: float) -> PermissionRequest | None:
        """Wait for a permission request."""

        def request() -> PermissionRequest | None:
            return next((each for each in self.said if isinstance(each, PermissionRequest)), None)

        await self.process.until(lambda: request() is not None, within)
        return request()

    @property
    def text(self) -> str:
        """What the user would have got to see by now."""
        return self._heard(0).text

    async def heard(self, within: float) -> EndedTurn | None:
        """All of it, when the process has ended; None when it has not."""
        code = await self.process.ended(within)
        return None if code is None else self._heard(code)

    def _heard(self, code: int) -> EndedTurn:
        return EndedTurn(tuple(self.said), self.turn.streaming, code, self.process.stderr)

"""Bad habits with `stop`, and with bad lines."""

from __future__ import annotations

import os
import time

from tests.conform.good_agent import Call, GoodAgent
from tests.conform.habits import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

ALL_STOPS = ("js.stop.streaming", "js.stop.pending", "js.stop.pending-not-run", "js.stop.cancels-first",
             "js.stop.late-answer", "js.stop.tool", "js.stop.kills-tool", "js.stop.prompt", "js.stop.next",
             "js.stop.next-tool", "js.stop.twice", "js.stop.queued")  # fmt: skip


# Not bad in itself: but what was never under way was not stopped either, and must not count as passed.
@habit("js.stop.streaming", "js.stop.prompt", "js.stop.next", "js.stop.twice", "js.stop.queued", "js.eof.streaming",
       "js.eof.status", "js.eof.ends-turn", "js.sigterm.streaming", "js.sigterm.status",
       "js.dialect.ping-in-turn")  # fmt: skip
class AnswersAtOnce(GoodAgent):
    def answer(self, message: dict[str, Any]) -> Iterator[float]:
        for wait in super().answer(message):
            if "Count from" not in message["input"]:
                yield wait


@habit(*ALL_STOPS)
class StopsWithoutEnd(GoodAgent):
    def abort(self) -> None:
        self.turn = None
        for call in self.calls.values():
            self.kill(call)

    def drop(self, message: dict[str, Any]) -> None:
        """Nothing."""


@habit(*ALL_STOPS, "js.stop.idle")
class StopEndsTheProcess(GoodAgent):
    def on_stop(self, command: dict[str, Any]) -> None:
        os._exit(0)


@habit("js.stop.pending", "js.stop.pending-not-run", "js.stop.cancels-first", "js.stop.late-answer", "js.stop.prompt",
       "js.stop.next-tool")  # fmt: skip
class WaitsOnInSpiteOfStop(GoodAgent):
    def on_stop(self, command: dict[str, Any]) -> None:
        if not any(call.state == "pending" for call in self.calls.values()):
            super().on_stop(command)


@habit("js.stop.streaming", "js.stop.prompt", "js.stop.next", "js.stop.twice", "js.stop.queued")
class FinishesItsAnswer(GoodAgent):
    def on_stop(self, command: dict[str, Any]) -> None:
        if self.calls:
            super().on_stop(command)


@habit("js.stop.pending-not-run")
class RunsAfterStop(GoodAgent):
    def abort(self) -> None:
        pending = [call for call in self.calls.values() if call.state == "pending"]
        super().abort()
        for call in pending:
            self.emit("tool_running", msg_id=self.msg_id, call_id=call.id, tool_name=call.name)


@habit("js.stop.cancels-first")
class StopForgetsCalls(GoodAgent):
    def abort(self) -> None:
        for call in self.calls.values():
            self.kill(call)
            call.state = "over"
        super().abort()


@habit("js.stop.late-answer")
class TakesLateAnswers(GoodAgent):
    def on_tool_approve(self, command: dict[str, Any]) -> None:
        if self.turn is not None:
            super().on_tool_approve(command)


@habit("js.stop.tool", "js.stop.kills-tool", "js.stop.prompt")
class WaitsForItsTool(GoodAgent):
    def on_stop(self, command: dict[str, Any]) -> None:
        if not any(call.state == "running" for call in self.calls.values()):
            super().on_stop(command)


@habit("js.stop.kills-tool")
class LeavesItsTool(GoodAgent):
    def abort(self) -> None:
        for call in self.calls.values():
            call.process = None
        super().abort()


@habit("js.stop.prompt")
class StopsSlowly(GoodAgent):
    def abort(self) -> None:
        time.sleep(1.2)
        super().abort()


@habit("js.stop.idle", "js.stop.twice")
class AnswersIdleStops(GoodAgent):
    def on_stop(self, command: dict[str, Any]) -> None:
        if self.turn is None and self.msg_id is not None:
            self.refuse("nothing to stop")
        super().on_stop(command)


@habit("js.stop.next", "js.stop.next-tool", "js.stop.twice", "js.stop.queued", "js.stop.prompt")
class DeafAfterStop(GoodAgent):
    stopped = False

    def abort(self) -> None:
        super().abort()
        self.stopped = True

    def on_message(self, command: dict[str, Any]) -> None:
        if not self.stopped:
            super().on_message(command)


@habit("js.stop.next-tool", "js.stop.prompt")
class NoToolsAfterStop(GoodAgent):
    stopped = False

    def abort(self) -> None:
        super().abort()
        self.stopped = True

    def request(self, call: Call) -> None:
        if not self.stopped:
            super().request(call)


@habit("js.stop.twice")
class SecondStopIsAnError(GoodAgent):
    stops = 0

    def on_stop(self, command: dict[str, Any]) -> None:
        self.stops += 1
        if self.turn is None and self.stops == 2:
            self.refuse("nothing to stop")
        super().on_stop(command)

    def on_message(self, command: dict[str, Any]) -> None:
        self.stops = 0
        super().on_message(command)


@habit("js.stop.queued")
class DropsInSilence(GoodAgent):
    def drop(self, message: dict[str, Any]) -> None:
        """Nothing."""


NOT_LINES = ("js.bad.malformed", "js.bad.not-json", "js.bad.not-object", "js.bad.unknown-type", "js.bad.no-type",
             "js.bad.type-not-string", "js.bad.invalid-utf8", "js.bad.nul", "js.bad.deep", "js.bad.unknown-text",
             "js.bad.too-long", "js.bad.in-turn")  # fmt: skip
BAD_FIELDS = ("js.bad.message-no-id", "js.bad.message-no-input", "js.bad.message-id-number",
              "js.bad.message-input-number", "js.bad.message-files-text", "js.bad.approve-no-id",
              "js.bad.approve-scope", "js.bad.deny-no-id", "js.bad.history-no-text", "js.bad.mode-missing",
              "js.bad.mode-unknown")  # fmt: skip


@habit(*NOT_LINES, *BAD_FIELDS)
class SilentAboutBadLines(GoodAgent):
    def refuse(self, message: str) -> None:
        """Nothing."""


@habit(*NOT_LINES, *BAD_FIELDS)
class OmitsNull(GoodAgent):
    def refuse(self, message: str) -> None:
        self.emit("error", error={"code": "protocol_error", "message": message, "retryable": False})


@habit(*NOT_LINES, *BAD_FIELDS)
class ComplainsTwice(GoodAgent):
    def refuse(self, message: str) -> None:
        super().refuse(message)
        super().refuse(message)


@habit(*BAD_FIELDS)
class IgnoresBadFields(GoodAgent):
    def refuse(self, message: str) -> None:
        if not message.startswith("Invalid"):
            super().refuse(message)


@habit("js.bad.invalid-utf8")
class DiesOfBadBytes(GoodAgent):
    def feed(self, data: bytes) -> None:
        if b"\xff" in data:
            os._exit(1)
        super().feed(data)


@habit("js.bad.deep")
class DiesOfDepth(GoodAgent):
    def decode(self, line: bytes) -> Any:
        if line.count(b"[") > 5000:
            os._exit(1)
        return super().decode(line)


@habit("js.bad.nul")
class NulIsBlank(GoodAgent):
    def feed(self, data: bytes) -> None:
        super().feed(data.replace(b"\0", b""))


@habit("js.bad.too-long")
class ReadsOnAndOn(GoodAgent):
    def feed(self, data: bytes) -> None:
        if len(data) > 4096:
            data = data.replace(b"x" * 1000, b"")
        super().feed(data)


@habit("js.bad.unknown-text")
class NamesNothing(GoodAgent):
    def refuse(self, message: str) -> None:
        super().refuse("bad command")


@habit("js.bad.in-turn")
class BadLinesEndTheTurn(GoodAgent):
    def refuse(self, message: str) -> None:
        super().refuse(message)
        if self.turn is not None:
            self.abort()

"""Bad habits in turns: their beginning, their end, what is in between, and the text of messages."""

from __future__ import annotations

import json
import os

from tests.conform.good_agent import Call, GoodAgent
from tests.conform.habits import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


@habit("js.turn.start-first", "js.turn.nothing-after-end")
class SpeaksBeforeStart(GoodAgent):
    def begin(self) -> None:
        self.text("Well, ")
        super().begin()


@habit("js.turn.one-start")
class TwoStarts(GoodAgent):
    def begin(self) -> None:
        super().begin()
        super().begin()


@habit("js.turn.one-end", "js.turn.queue", "js.turn.repeated-msg-id")
class TwoEnds(GoodAgent):
    def finish(self) -> None:
        super().finish()
        self.end(self.msg_id)


@habit("js.turn.one-at-a-time", "js.turn.same-msg-id", "js.turn.one-start")
class BeginsTooSoon(GoodAgent):
    def finish(self) -> None:
        if self.queue:
            self.emit("stream_start", msg_id=self.queue[0]["msg_id"])
        super().finish()


@habit("js.turn.msg-id", among=("js.turn.msg-id", "js.shape.*"))
class StrangeMessageId(GoodAgent):
    def text(self, text: str) -> None:
        self.emit("text_delta", text=text, msg_id="m1")


@habit("js.turn.msg-id", among=("js.turn.msg-id", "js.shape.*"))
class StrangeErrorId(GoodAgent):
    def refuse(self, message: str) -> None:
        self.error("protocol_error", message, "m0")


@habit("js.turn.same-msg-id", "js.turn.nothing-after-end")
class RepeatsTheLast(GoodAgent):
    last: str | None = None

    def begin(self) -> None:
        super().begin()
        if self.last:
            self.emit("thinking", text="as I said", msg_id=self.last)
        self.last = self.msg_id if self.msg_id != self.last else None


@habit("js.turn.nothing-after-end")
class LateWord(GoodAgent):
    def finish(self) -> None:
        super().finish()
        self.text("One more thing:")


@habit("js.tool.settled", "js.turn.nothing-after-end", among=("js.tool.settled", "js.turn.n*", "js.turn.one-*"))
class EndsBeforeTheResult(GoodAgent):
    def tell(self, call: Call, status: str, output: str, more: dict[str, Any]) -> None:
        if len(self.calls) == 1:
            self.end(self.msg_id)
        super().tell(call, status, output, more)

    def finish(self) -> None:
        if len(self.calls) != 1:
            super().finish()
        self.calls.clear()


@habit("js.turn.answer", "js.turn.several", "js.turn.content", "js.turn.repeated-msg-id", "js.turn.empty-input")
class SaysNothing(GoodAgent):
    def text(self, text: str) -> None:
        """Nothing."""


@habit("js.turn.answer", among=("js.turn.answer",))
class NeverEnds(GoodAgent):
    def end(self, msg_id: str | None) -> None:
        """Never."""


@habit("js.turn.several", "js.turn.queue", "js.turn.repeated-msg-id", "js.turn.empty-input")
class OneShot(GoodAgent):
    def finish(self) -> None:
        super().finish()
        os._exit(0)


@habit("js.turn.queue")
class DropsWhenBusy(GoodAgent):
    def on_message(self, command: dict[str, Any]) -> None:
        if not self.queue and self.turn is None:
            super().on_message(command)


@habit("js.turn.queue")
class LastInFirstOut(GoodAgent):
    def on_message(self, command: dict[str, Any]) -> None:
        super().on_message(command)
        self.queue.insert(0, self.queue.pop())


@habit("js.turn.repeated-msg-id")
class RefusesKnownIds(GoodAgent):
    known: tuple[str, ...] = ()

    def on_message(self, command: dict[str, Any]) -> None:
        if command["msg_id"] in self.known:
            return self.refuse("duplicate msg_id")
        self.known += (command["msg_id"],)
        return super().on_message(command)


@habit("js.turn.empty-input")
class IgnoresEmptyInput(GoodAgent):
    def on_message(self, command: dict[str, Any]) -> None:
        if command["input"]:
            super().on_message(command)


@habit("js.turn.files")
class ReadsFilesBlindly(GoodAgent):
    def on_message(self, command: dict[str, Any]) -> None:
        for name in command.get("files") or ():
            with open(name, "rb") as file:
                file.read()
        super().on_message(command)


@habit("js.turn.files-null")
class FilesMustBeList(GoodAgent):
    def problem_of(self, command: dict[str, Any]) -> str | None:
        return "files" if command.get("files", ()) is None else super().problem_of(command)


@habit("js.turn.extra-fields")
class RefusesExtraFields(GoodAgent):
    def problem_of(self, command: dict[str, Any]) -> str | None:
        known = ("type", "msg_id", "input", "content", "files", "call_id", "scope", "reason", "text", "mode")
        strange = [name for name in command if name not in known]
        return f"unknown field {strange[0]}" if strange else super().problem_of(command)


@habit("js.turn.content")
class KnowsOnlyInput(GoodAgent):
    def problem_of(self, command: dict[str, Any]) -> str | None:
        return "content" if "content" in command else super().problem_of(command)


@habit("js.text.non-ascii", "js.text.line-separator", among=("js.text.*",))
class AsciiOnly(GoodAgent):
    def decode(self, line: bytes) -> Any:
        return json.loads(line.decode("ascii", "ignore").replace("one", "1"))


@habit("js.text.line-separator")
class SplitsAtUnicodeLines(GoodAgent):
    def on_line(self, line: bytes) -> None:
        for part in line.decode("utf-8", "surrogateescape").splitlines():
            super().on_line(part.encode("utf-8", "surrogateescape"))


@habit("js.text.surrogate")
class DiesOfSurrogates(GoodAgent):
    def text(self, text: str) -> None:
        text.encode("utf-8")
        super().text(text)


@habit("js.text.crlf", "js.text.blank-lines")
class LineFeedOnly(GoodAgent):
    def feed(self, data: bytes) -> None:
        if b"\r\n" in data:
            return self.refuse("carriage return")
        return super().feed(data)


@habit("js.text.blank-lines")
class BlankLinesAreErrors(GoodAgent):
    def feed(self, data: bytes) -> None:
        if data.startswith(b"\n"):
            self.refuse("Malformed JSON")
        super().feed(data)


@habit("js.text.large")
class SmallLines(GoodAgent):
    def on_line(self, line: bytes) -> None:
        if len(line) > 65536:
            return self.refuse("line too long")
        return super().on_line(line)


@habit("js.usage.present", "js.usage.per-message")
class NoUsage(GoodAgent):
    def end(self, msg_id: str | None) -> None:
        self.emit("stream_end", msg_id=msg_id)


@habit("js.usage.per-message")
class RunningTotal(GoodAgent):
    total = 0

    def usage(self) -> Any:
        self.total += 3
        return {"input_tokens": 12, "output_tokens": self.total}


@habit("js.error.provider")
class ProviderErrorsAreInternal(GoodAgent):
    def error(self, code: str, message: str, msg_id: str | None = None, retryable: bool = False) -> None:
        super().error("internal_error" if code == "provider_error" else code, message, msg_id, retryable)


@habit("js.error.provider")
class HangsAfterProviderErrors(GoodAgent):
    def answer(self, message: dict[str, Any]) -> Iterator[float]:
        yield from super().answer(message)
        if "when the model fails" in message["input"]:
            yield 3600.0

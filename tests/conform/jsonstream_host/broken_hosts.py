"""Hosts with one bad habit each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import Any

from tests.conform.jsonstream_host.good_host import Failed, GoodHost
from tests.conform.jsonstream_host.habits_of_hosts import HABITS, habit

__all__ = ["HABITS"]

# The beginning


@habit("jh.turn.answer")
class ShowsNothing(GoodHost):
    def show(self, text: str) -> None:
        return


@habit("jh.turn.answer")
class SaysSomethingElse(GoodHost):
    def ask(self, prompt: str) -> None:
        super().ask("hello")


@habit("jh.turn.second")
class HasAProcessForEachMessage(GoodHost):
    def ask(self, prompt: str) -> None:
        if self.number:
            super().end()
            self.start()
            self.greet()
        super().ask(prompt)


@habit("jh.ready.waits", "jh.ready.never")
class DoesNotWait(GoodHost):
    def wait_for_ready(self) -> dict[str, Any]:
        return {"version": "0.1.0"}


@habit("jh.ready.bare")
class NeedsASession(GoodHost):
    def check_version(self, version: str) -> None:
        return

    def is_ready(self, event: dict[str, Any]) -> bool:
        return super().is_ready(event) and bool(event["session_id"])


@habit("jh.ready.never")
class WaitsForEver(GoodHost):
    def event(self, deadline: float | None) -> dict[str, Any] | None:
        return super().event(None)


@habit("jh.ready.other")
class TakesAnythingForReady(GoodHost):
    def is_ready(self, event: dict[str, Any]) -> bool:
        event.setdefault("version", "0.1.0")
        return True


@habit("jh.start.fatal")
class KeepsTheReasonToItself(GoodHost):
    def fatal(self, event: dict[str, Any]) -> None:
        raise Failed("something went wrong")


@habit("jh.start.silent", "jh.crash.told", "jh.crash.exit")
class TakesAnEndForAnEnd(GoodHost):
    def gone(self) -> None:
        super().end()
        sys.exit(0)


@habit("jh.version.minor")
class KnowsWhatThereIs(GoodHost):
    def parse(self, line: bytes) -> dict[str, Any] | None:
        event = super().parse(line)
        if event and event["type"] == "conform_news":
            raise Failed(f"there is no event {event['type']}")
        return event


@habit("jh.version.major")
class LooksAtNoVersion(GoodHost):
    def check_version(self, version: str) -> None:
        return


# What it writes


@habit("jh.line.object")
class SaysHello(GoodHost):
    def greet(self) -> None:
        super().greet()
        self.write(b"hello\n")


@habit("jh.line.known")
class HasCommandsOfItsOwn(GoodHost):
    def greet(self) -> None:
        super().greet()
        self.send(type="hello")


@habit("jh.message.shape")
class NumbersItsMessages(GoodHost):
    def send(self, **command: Any) -> None:
        if command["type"] == "message":
            command["msg_id"] = self.number
        super().send(**command)


@habit("jh.message.shape")
class SendsTextAsAList(GoodHost):
    def send(self, **command: Any) -> None:
        if command["type"] == "message":
            command["input"] = [command["input"]]
        super().send(**command)


@habit("jh.message.unique")
class HasOneIdForAll(GoodHost):
    def new_id(self) -> str:
        return "m"


@habit("jh.history.first")
class RemembersLate(GoodHost):
    def send(self, **command: Any) -> None:
        super().send(**command)
        if command["type"] == "message":
            super().send(type="init_history", text="we have met")


# What it reads


@habit("jh.text.order")
class ShowsPiecesAsLines(GoodHost):
    def show(self, text: str) -> None:
        super().show(f"{text}\n")


@habit("jh.text.unicode")
class DecodesWhatItReads(GoodHost):
    def read(self) -> None:
        data = os.read(self.out.fileno(), 65536)
        if not data:
            self.gone()
        *lines, self.rest = (self.rest + data.decode("utf-8", "replace").encode()).split(b"\n")
        self.lines += lines


@habit("jh.text.unicode")
class SplitsAtEveryLineEnd(GoodHost):
    def read(self) -> None:
        super().read()
        self.lines = [part.encode() for line in self.lines for part in line.decode().splitlines()]


@habit("jh.text.batch", "jh.text.order")
class TakesAReadForALine(GoodHost):
    def read(self) -> None:
        super().read()
        del self.lines[1:]


@habit("jh.text.long")
class HasAShortBuffer(GoodHost):
    def read(self) -> None:
        super().read()
        if len(self.rest) > 256 * 1024:
            raise Failed("a line is too long")


@habit("jh.event.known")
class DoesNotThink(GoodHost):
    def on_thinking(self, event: dict[str, Any]) -> None:
        raise Failed("what is that")


@habit("jh.event.unused")
class CountsEverything(GoodHost):
    def is_over(self, event: dict[str, Any]) -> bool:
        over = super().is_over(event)
        if over and "usage" not in event:
            raise Failed("nothing is known of what was used")
        return over


@habit("jh.event.late")
class ListensOn(GoodHost):
    def is_over(self, event: dict[str, Any]) -> bool:
        if super().is_over(event):
            self.ended = time.monotonic()
            try:
                while (late := self.event(time.monotonic() + 0.5)) is None or late["type"] != "stream_end":
                    if late is not None:
                        self.handle(late)
            except Failed:
                return True
            return True
        return False


@habit("jh.event.foreign")
class ShowsEverybodysWords(GoodHost):
    def on_text_delta(self, event: dict[str, Any]) -> None:
        self.show(event["text"])


@habit("jh.event.garbage")
class BelievesInJson(GoodHost):
    def parse(self, line: bytes) -> dict[str, Any] | None:
        try:
            event: dict[str, Any] = json.loads(line)
        except ValueError:
            raise Failed("that is not JSON") from None
        return event


# Tools


@habit("jh.tool.shape")
class ApprovesForEver(GoodHost):
    def on_tool_request(self, event: dict[str, Any]) -> None:
        self.send(type="tool_approve", call_id=event["call_id"], scope="forever")


@habit("jh.tool.shape", "jh.tool.answered")
class NamesTheTool(GoodHost):
    def on_tool_request(self, event: dict[str, Any]) -> None:
        self.send(type="tool_approve", call_id=event["tool"]["name"], scope="once")


@habit("jh.tool.answered", "jh.tool.once", "jh.tool.two")
class NeverDecides(GoodHost):
    def on_tool_request(self, event: dict[str, Any]) -> None:
        return


@habit("jh.tool.once")
class DecidesTwice(GoodHost):
    def on_tool_request(self, event: dict[str, Any]) -> None:
        super().on_tool_request(event)
        self.send(type="tool_deny", call_id=event["call_id"], reason="on second thoughts")


@habit("jh.tool.two")
class DecidesOnOne(GoodHost):
    decided = False

    def on_tool_request(self, event: dict[str, Any]) -> None:
        if not self.decided:
            super().on_tool_request(event)
        self.decided = True


@habit("jh.tool.unasked")
class ApprovesWhatRuns(GoodHost):
    def on_tool_running(self, event: dict[str, Any]) -> None:
        self.on_tool_request(event)


# Failures


@habit("jh.error.shown")
class HidesErrors(GoodHost):
    def on_error(self, event: dict[str, Any]) -> None:
        return


@habit("jh.error.goes-on")
class GivesUpAtAnError(GoodHost):
    def is_over(self, event: dict[str, Any]) -> bool:
        if event["type"] == "error" and event["msg_id"] is not None:
            raise Failed(event["error"]["message"])
        return super().is_over(event)


@habit("jh.error.null")
class GivesUpAtAnyError(GoodHost):
    def on_error(self, event: dict[str, Any]) -> None:
        raise Failed(event["error"]["message"])


@habit("jh.stderr.apart")
class MixesBothOutputs(GoodHost):
    errors = subprocess.STDOUT

    def is_over(self, event: dict[str, Any]) -> bool:
        return bool(event["type"] == "stream_end")


@habit("jh.stderr.flood")
class DoesNotReadStandardError(GoodHost):
    errors = subprocess.PIPE


# The end


@habit("jh.end.told", "jh.end.time")
class KillsAtOnce(GoodHost):
    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@habit("jh.end.time")
class IsImpatient(GoodHost):
    def end(self) -> None:
        self.into.close()
        time.sleep(0.05)
        self.process.kill()
        self.process.wait()


@habit("jh.end.deaf")
class AsksPolitely(GoodHost):
    def end(self) -> None:
        self.into.close()
        self.process.terminate()


@habit("jh.end.deaf")
class WaitsForTheAgent(GoodHost):
    def end(self) -> None:
        self.into.close()
        self.process.wait()


@habit("jh.end.interrupt")
class DiesInSilence(GoodHost):
    def on_interrupt(self, *_: object) -> None:
        self.process.kill()
        os._exit(130)


@habit("jh.end.interrupt")
class CannotBeInterrupted(GoodHost):
    def on_interrupt(self, *_: object) -> None:
        return

"""Bad habits with history, sessions, the start and the end."""

from __future__ import annotations

import os
import sys
import time

from tests.conform.good_agent import Fatal, GoodAgent
from tests.conform.habits import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@habit("js.history.accepted", "js.history.context", "js.history.several", "js.history.late", "js.history.resumed")
class RefusesHistory(GoodAgent):
    def on_init_history(self, command: dict[str, Any]) -> None:
        self.refuse("init_history is not supported")


@habit("js.history.context", "js.history.several", "js.history.resumed")
class IgnoresHistory(GoodAgent):
    def on_init_history(self, command: dict[str, Any]) -> None:
        if self.session["messages"]:
            super().on_init_history(command)


@habit("js.history.several")
class KeepsTheLastHistory(GoodAgent):
    def on_init_history(self, command: dict[str, Any]) -> None:
        self.session["history"].clear()
        super().on_init_history(command)


@habit("js.history.late")
class RefusesLateHistory(GoodAgent):
    def on_init_history(self, command: dict[str, Any]) -> None:
        if self.session["messages"]:
            self.refuse("init_history must come before the first message")
        else:
            super().on_init_history(command)


@habit("js.history.late")
class ForgetsLateHistory(GoodAgent):
    def on_init_history(self, command: dict[str, Any]) -> None:
        if not self.session["messages"]:
            super().on_init_history(command)


@habit("js.history.resumed")
class ForgetsHistory(GoodAgent):
    def load(self) -> None:
        super().load()
        self.session["history"] = []


@habit("js.start.session-id", "js.start.resume", "js.start.resume-history", "js.start.resume-latest",
       "js.start.resume-fallback", "js.start.odd-id", "js.start.session-exists")  # fmt: skip
class ChoosesItsOwnId(GoodAgent):
    def parse_flags(self) -> None:
        super().parse_flags()
        self.flags.pop("--session-id", None)


@habit("js.start.session-exists")
class TakesExistingIds(GoodAgent):
    def parse_flags(self) -> None:
        super().parse_flags()
        if "--session-id" in self.flags and "--resume" not in self.flags:
            self.flags["--resume"] = self.flags["--session-id"]

    def open_session(self) -> None:
        try:
            super().open_session()
        except Fatal:
            if "--session-id" not in self.flags:
                raise
            del self.flags["--resume"]
            super().open_session()


@habit("js.start.resume", "js.start.resume-latest", "js.start.odd-id")
class NewIdOnResume(GoodAgent):
    def say_ready(self) -> None:
        if "--resume" in self.flags:
            self.session_id = f"r{time.time_ns()}"
        super().say_ready()


@habit("js.start.resume-history")
class ResumesWithNothing(GoodAgent):
    def load(self) -> None:
        """Nothing."""


@habit("js.start.resume-latest")
class ResumesTheOldest(GoodAgent):
    def say_ready(self) -> None:
        if self.flags.get("--resume") == "latest":
            files = sorted(os.scandir(os.path.dirname(self.file)), key=lambda file: file.stat().st_ctime_ns)
            self.session_id = bytes.fromhex(files[0].name).decode() if len(files) > 1 else ""
        super().say_ready()


@habit("js.start.resume-unknown", "js.start.resume-fallback")
class ResumesAnything(GoodAgent):
    def open_session(self) -> None:
        try:
            super().open_session()
        except Fatal as problem:
            if "not found" not in str(problem):
                raise
            self.flags["--session-id"] = self.flags.pop("--resume")
            super().open_session()


@habit("js.start.resume-fallback")
class FailedResumeLeavesAFile(GoodAgent):
    def open_session(self) -> None:
        try:
            super().open_session()
        except Fatal:
            os.close(os.open(self.file, os.O_WRONLY | os.O_CREAT))
            raise


@habit("js.start.two-flags")
class ResumeWins(GoodAgent):
    def parse_flags(self) -> None:
        if "--resume" in self.argv and "--session-id" in self.argv:
            del self.argv[self.argv.index("--resume") :]
        super().parse_flags()


@habit("js.start.held")
class LocksNothing(GoodAgent):
    def open_session(self) -> None:
        super().open_session()
        os.close(self.lock)
        self.lock = os.open(self.file, os.O_RDWR)


@habit("js.start.odd-id")
class IdIsFileName(GoodAgent):
    def open_session(self) -> None:
        if "/" in self.flags.get("--session-id", ""):
            raise Fatal("no such directory")
        super().open_session()


@habit("js.start.unknown-provider")
class TakesAnyProvider(GoodAgent):
    def parse_flags(self) -> None:
        super().parse_flags()
        if self.flags.get("--provider") != "anthropic":
            self.flags.pop("--provider", None)


@habit("js.start.unknown-flag")
class TakesAnyFlag(GoodAgent):
    def parse_flags(self) -> None:
        self.argv = [flag for flag in self.argv if flag != "--conform-no-such-flag"]
        super().parse_flags()


REFUSALS = ("js.start.session-exists", "js.start.resume-unknown", "js.start.two-flags", "js.start.held",
            "js.start.unknown-provider", "js.start.unknown-flag", "js.start.no-key")  # fmt: skip


@habit(*REFUSALS)
class FailsOnStandardError(GoodAgent):
    def error(self, code: str, message: str, msg_id: str | None = None, retryable: bool = False) -> None:
        if code == "config_error":
            sys.stderr.write(message + "\n")
        else:
            super().error(code, message, msg_id, retryable)


@habit(*REFUSALS)
class FailsWithStatusZero(GoodAgent):
    def start(self) -> None:
        try:
            super().start()
        except Fatal as problem:
            self.error("config_error", str(problem))
            os._exit(0)


@habit(*REFUSALS, "js.start.resume-fallback")
class FailsAfterReady(GoodAgent):
    def start(self) -> None:
        try:
            super().start()
        except Fatal:
            self.session_id = "none"
            self.say_ready()
            raise


@habit(*REFUSALS)
class FailsWithAnotherCode(GoodAgent):
    def error(self, code: str, message: str, msg_id: str | None = None, retryable: bool = False) -> None:
        super().error("internal_error" if code == "config_error" else code, message, msg_id, retryable)


@habit("js.eof.idle", "js.eof.streaming", "js.eof.pending", "js.eof.tool", "js.eof.status", "js.eof.children")
class IgnoresTheEnd(GoodAgent):
    def on_eof(self) -> None:
        super().on_eof()
        time.sleep(60)


@habit("js.eof.streaming", "js.eof.pending", "js.eof.tool", "js.eof.status", "js.eof.children", "js.eof.ends-turn")
class FinishesFirst(GoodAgent):
    def on_eof(self) -> None:
        time.sleep(0.05)
        if self.turn is None:
            super().on_eof()


@habit("js.eof.pending", "js.eof.status")
class HangsWhileItWaits(GoodAgent):
    def on_eof(self) -> None:
        if any(call.state == "pending" for call in self.calls.values()):
            time.sleep(60)
        super().on_eof()


@habit("js.eof.status")
class EndsWithOne(GoodAgent):
    def on_eof(self) -> None:
        super().on_eof()
        os._exit(1)


@habit("js.eof.status")
class EndsSlowly(GoodAgent):
    def on_eof(self) -> None:
        super().on_eof()
        time.sleep(2.2)


@habit("js.eof.children")
class LeavesChildrenAtTheEnd(GoodAgent):
    def on_eof(self) -> None:
        for call in self.calls.values():
            call.process = None
        super().on_eof()


@habit("js.eof.unfinished-line")
class DropsTheLastLine(GoodAgent):
    def on_eof(self) -> None:
        self.buffer.clear()
        super().on_eof()


@habit("js.eof.ends-turn")
class LeavesWithoutAWord(GoodAgent):
    def on_eof(self) -> None:
        for call in self.calls.values():
            self.kill(call)
        if not self.buffer:
            os._exit(0)
        super().on_eof()


@habit("js.sigterm.idle", "js.sigterm.streaming", "js.sigterm.pending", "js.sigterm.tool", "js.sigterm.status",
       "js.sigterm.children")  # fmt: skip
class IgnoresSigterm(GoodAgent):
    def on_sigterm(self) -> None:
        """Nothing."""


@habit("js.sigterm.status")
class SigtermIsSuccess(GoodAgent):
    def on_sigterm(self) -> None:
        for call in self.calls.values():
            self.kill(call)
        os._exit(0)


@habit("js.sigterm.children")
class HasNoHandler(GoodAgent):
    def handle_signals(self) -> None:
        """Nothing."""


@habit("js.dialect.ping", "js.dialect.ping-in-turn", "js.dialect.ping-pending", "js.dialect.set-config",
       "js.dialect.add-mcp-server")  # fmt: skip
class KnowsNoDialect(GoodAgent):
    def on_line(self, line: bytes) -> None:
        for name in ("ping", "set_config", "add_mcp_server"):
            if f'"{name}"'.encode() in line:
                return self.refuse(f"Unknown command type: {name}")
        return super().on_line(line)


@habit("js.dialect.ping-in-turn", "js.dialect.ping-pending")
class PingsWhenIdleOnly(GoodAgent):
    def on_ping(self, command: dict[str, Any]) -> None:
        if self.turn is None:
            super().on_ping(command)

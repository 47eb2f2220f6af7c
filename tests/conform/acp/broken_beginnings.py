"""Bad habits with the beginning, with JSON-RPC and with lines."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.conform.acp.good_agent import GoodAgent, Refusal, Session
from tests.conform.acp.habits_of_agents import habit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The beginning


@habit("init.answer", "init.bare", "init.version", "init.extras", "init.capabilities", "init.info")
class SaysNothing(GoodAgent):
    def write(self, message: dict[str, Any]) -> None:
        """Nothing."""


@habit("init.answer")
class SpeaksAnotherVersion(GoodAgent):
    def version(self, wanted: Any) -> Any:
        return 2


@habit("init.version")
class RepeatsTheVersion(GoodAgent):
    def version(self, wanted: Any) -> Any:
        return wanted


@habit("init.version")
class RefusesOtherVersions(GoodAgent):
    def version(self, wanted: Any) -> Any:
        if wanted != 1:
            raise Refusal(-32602, "I speak 1 only")
        return 1


@habit("init.answer", "init.version", "init.bare", "init.extras")
class VersionIsAText(GoodAgent):
    def version(self, wanted: Any) -> Any:
        return "1"


@habit("init.capabilities")
class CapabilitiesAreTexts(GoodAgent):
    def capabilities(self) -> dict[str, Any]:
        return {**super().capabilities(), "promptCapabilities": {"image": "yes"}}


@habit("init.info")
class HasNoName(GoodAgent):
    def info(self) -> Any:
        return {}


@habit("init.bare")
class NeedsCapabilities(GoodAgent):
    def do_initialize(self, params: dict[str, Any]) -> Any:
        if "clientCapabilities" not in params:
            raise Refusal(-32602, "`clientCapabilities` is missing")
        return super().do_initialize(params)


@habit("init.extras")
class KnowsEveryMember(GoodAgent):
    def do_initialize(self, params: dict[str, Any]) -> Any:
        if "_meta" in params:
            raise Refusal(-32602, "unknown member")
        return super().do_initialize(params)


@habit("auth.shape")
class MethodsHaveNoNames(GoodAgent):
    def methods(self) -> Any:
        return [{"id": "key"}]


@habit("auth.unknown")
class LetsAnybodyIn(GoodAgent):
    def do_authenticate(self, params: dict[str, Any]) -> Any:
        return {}


# JSON-RPC


@habit("rpc.ids", "rpc.once", among=("rpc.ids", "rpc.once"))
class IdsBecomeTexts(GoodAgent):
    def respond(self, id: Any, result: Any) -> None:
        super().respond(str(id) if id == 4096 else id, result)


@habit("rpc.version")
class LacksTheVersion(GoodAgent):
    def respond(self, id: Any, result: Any) -> None:
        self.write({"id": id, "result": result})


@habit("rpc.shape")
class HasResultAndError(GoodAgent):
    def error(self, id: Any, code: int, message: str) -> None:
        self.write({"jsonrpc": "2.0", "id": id, "result": None, "error": {"code": code, "message": message}})


@habit("rpc.errors", among=("rpc.errors", "rpc.shape", "rpc.version"))
class ErrorsAreTexts(GoodAgent):
    def error(self, id: Any, code: int, message: str) -> None:
        self.write({"jsonrpc": "2.0", "id": id, "error": message})


@habit("rpc.once")
class AnswersTwice(GoodAgent):
    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        super().end_turn(id, session, reason)
        super().end_turn(id, session, reason)


@habit("rpc.unknown-method", "rpc.extension")
class KnowsEveryMethod(GoodAgent):
    def on_unknown(self, method: str) -> Any:
        return {}


@habit("rpc.unknown-method")
class CallsItABadParameter(GoodAgent):
    def on_unknown(self, method: str) -> Any:
        raise Refusal(-32601 if method.startswith("_") else -32602, "What?")


@habit("rpc.extension")
class KnowsEveryExtension(GoodAgent):
    def on_unknown(self, method: str) -> Any:
        return {} if method.startswith("_") else super().on_unknown(method)


@habit("rpc.notification")
class AnswersNotifications(GoodAgent):
    def on_notification(self, method: str, params: Any) -> None:
        super().on_notification(method, params)
        if method == "conform/no_such_notification":
            self.error(None, -32601, "No such notification")


@habit("rpc.params", "rpc.types")
class CallsItAnInternalError(GoodAgent):
    def error(self, id: Any, code: int, message: str) -> None:
        super().error(id, -32603 if code == -32602 else code, message)


@habit("rpc.params")
class HasADefaultDirectory(GoodAgent):
    def cwd(self, params: dict[str, Any]) -> str:
        return super().cwd({"cwd": "/", **params})


@habit("rpc.types")
class TakesNumbersForTexts(GoodAgent):
    def cwd(self, params: dict[str, Any]) -> str:
        return "/" if params.get("cwd") == 5 else super().cwd(params)


@habit("rpc.parse")
class IgnoresBrokenLines(GoodAgent):
    def on_broken(self, line: bytes) -> None:
        """Nothing."""


@habit("rpc.parse", "rpc.once")
class GuessesTheId(GoodAgent):
    def on_broken(self, line: bytes) -> None:
        self.error(77, -32700, "Not JSON")


@habit("rpc.invalid")
class IgnoresWhatIsNoRequest(GoodAgent):
    def on_invalid(self, message: Any) -> None:
        """Nothing."""


# Lines


@habit("line.object")
class Chats(GoodAgent):
    def begin(self) -> None:
        self.put(b"Starting up...\n")


@habit("line.object")
class LogsToStdout(GoodAgent):
    def end_turn(self, id: Any, session: Session, reason: str) -> None:
        self.put(b"turn over\n")
        super().end_turn(id, session, reason)


@habit("line.ended")
class LeavesWithoutALineFeed(GoodAgent):
    def on_end(self) -> None:
        self.put(b'{"jsonrpc":"2.0","method":"_bye"}')
        super().on_end()


@habit("line.pieces", among=("line.pieces", "line.several"))
class ReadsWholeLinesOnly(GoodAgent):
    def main(self) -> None:
        while chunk := os.read(0, 1 << 16):
            for line in chunk.split(b"\n"):
                if line.startswith(b"{") and line.endswith(b"}"):
                    self.take(line)


@habit("line.several")
class ReadsOneLineAtATime(GoodAgent):
    def main(self) -> None:
        rest = b""
        while chunk := os.read(0, 1 << 16):
            rest += chunk
            if rest.endswith(b"\n"):
                self.take(rest.split(b"\n")[0])
                rest = b""
        self.on_end()


# Hostile input


class Dies(GoodAgent):
    """Those whose input they cannot read die of it."""

    fatal: tuple[bytes, ...] = ()

    def take(self, line: bytes) -> None:
        if any(each in line for each in self.fatal):
            os._exit(1)
        super().take(line)


@habit("bad.malformed", "bad.garbage", "bad.in-turn", "bad.nul", "bad.utf8")
class DiesOfBrokenLines(GoodAgent):
    def on_broken(self, line: bytes) -> None:
        if len(line) < 1000:
            os._exit(1)
        super().on_broken(line)


@habit("bad.garbage")
class DiesOfGarbage(Dies):
    fatal = (b"hello\r", b"\xe2\x82\xac")


@habit("bad.blank")
class DiesOfBlanks(GoodAgent):
    def take(self, line: bytes) -> None:
        if not line.strip():
            os._exit(1)
        super().take(line)


@habit("bad.not-object")
class DiesOfLists(GoodAgent):
    def take(self, line: bytes) -> None:
        if line == b"[1]":
            os._exit(1)
        super().take(line)


@habit("bad.utf8")
class DiesOfBadText(Dies):
    fatal = (b"\xff\xfe",)


@habit("bad.nul")
class DiesOfZeros(Dies):
    fatal = (b"\0",)


@habit("bad.deep")
class DiesOfDepth(Dies):
    fatal = (b"[[[[",)


@habit("bad.response")
class DiesOfAnswers(Dies):
    fatal = (b'"id":991',)


@habit("bad.members")
class DiesOfOddMembers(Dies):
    fatal = (b'"method":[]',)


@habit("bad.numbers")
class DiesOfNumbers(Dies):
    fatal = (b"1e999",)


@habit("bad.long")
class ReadsShortLines(GoodAgent):
    def take(self, line: bytes) -> None:
        if len(line) > 1_000_000:
            os._exit(1)
        super().take(line)


@habit("bad.surrogate")
class DiesOfSurrogates(Dies):
    fatal = (b"\\ud800",)


@habit("bad.in-turn")
class LosesItsTurn(GoodAgent):
    def on_broken(self, line: bytes) -> None:
        super().on_broken(line)
        for session in list(self.sessions.values()):
            self.on_cancel(session)


# The end


@habit("exit.eof", "exit.status", "exit.turn", "exit.children")
class StaysForEver(GoodAgent):
    def on_end(self) -> None:
        import time

        time.sleep(60)


@habit("exit.status")
class LeavesWith3(GoodAgent):
    code = 3

    def begin(self) -> None:
        self.code = 3


@habit("exit.turn")
class FinishesItsTurn(GoodAgent):
    def on_end(self) -> None:
        import time

        while any(session.is_busy for session in self.sessions.values()):
            time.sleep(0.1)
        super().on_end()


@habit("exit.sigterm")
class IgnoresSigterm(GoodAgent):
    def on_term(self, *_: object) -> None:
        """Nothing."""


@habit("exit.children")
class LeavesAChild(GoodAgent):
    def begin(self) -> None:
        streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        subprocess.Popen([sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)"], **streams)  # type: ignore[call-overload]

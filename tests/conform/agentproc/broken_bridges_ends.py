"""Bad habits of bridges with failures, time and long replies."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from tests.conform.agentproc.good_bridge import GoodBridge
from tests.conform.agentproc.habits_of_bridges import habit


@habit("br.error.fails", "br.error.any-mode", "br.cut.session")
class ForgivesErrors(GoodBridge):
    def on_error(self, text: str) -> None:
        """Nothing."""


@habit("br.error.body", "br.error.no-body")
class SendsWhatThereIs(GoodBridge):
    def reply(self, code: int) -> str:
        return super().reply(0)


@habit("br.error.partials")
class GoesOnAfterAnError(GoodBridge):
    def on_partial(self, text: str) -> None:
        error, self.error = self.error, None
        super().on_partial(text)
        self.error = error


@habit("br.error.empty")
class ForgivesEmptyErrors(GoodBridge):
    def on_error(self, text: str) -> None:
        if text:
            super().on_error(text)


@habit("br.error.stderr")
class HidesDiagnostics(GoodBridge):
    def check(self) -> None:
        super().check()
        self.profile["include_stderr_in_reply"] = False


@habit("br.error.no-stderr")
class ShowsDiagnostics(GoodBridge):
    def check(self) -> None:
        super().check()
        self.profile["include_stderr_in_reply"] = True


@habit("br.exit.failed", "br.error.generic", "br.error.fails", "br.exit.same")
class AlwaysSucceeds(GoodBridge):
    def code(self, returncode: int) -> int:
        return 0


@habit("br.exit.signal")
class SaysNegativeCodes(GoodBridge):
    def code(self, returncode: int) -> int:
        return returncode


@habit("br.exit.terminated", "br.exit.interrupted")
class LeavesItsAgent(GoodBridge):
    def on_ending(self, number: int) -> None:
        os._exit(128 + number)


@habit("br.timeout.ends")
class KillsAtOnce(GoodBridge):
    def on_deadline(self, process: subprocess.Popen[bytes]) -> float:
        self.timed_out = True
        self.kill()
        return time.monotonic() + 60

    def code(self, returncode: int) -> int:
        return 1 if self.timed_out else super().code(returncode)


@habit("br.timeout.grace")
class HasNoGrace(GoodBridge):
    def on_deadline(self, process: subprocess.Popen[bytes]) -> float:
        super().on_deadline(process)
        return time.monotonic() + 0.1


@habit("br.timeout.total", "br.timeout.fraction")
class CountsIdleSeconds(GoodBridge):
    def check(self) -> None:
        super().check()
        limit = self.profile["timeout_secs"]
        self.profile["timeout_secs"] = limit if limit >= 1 else 1800
        self.heard = 0.0

    def feed(self, data: bytes) -> None:
        self.heard = time.monotonic()
        super().feed(data)

    def on_deadline(self, process: subprocess.Popen[bytes]) -> float:
        if time.monotonic() < self.heard + 1:
            return self.heard + 1
        return super().on_deadline(process)


@habit("br.timeout.kill")
class NeverKills(GoodBridge):
    def on_deadline(self, process: subprocess.Popen[bytes]) -> float:
        self.timed_out = False
        return super().on_deadline(process)


@habit("br.timeout.late")
class StopsListening(GoodBridge):
    def feed(self, data: bytes) -> None:
        if not self.timed_out:
            super().feed(data)


@habit("br.tree.killed")
class KillsTheAgentOnly(GoodBridge):
    def on_deadline(self, process: subprocess.Popen[bytes]) -> float:
        self.timed_out = True
        process.send_signal(signal.SIGTERM)
        return time.monotonic() + 60

    def kill(self) -> None:
        """Nothing."""


@habit("br.tree.pipe")
class WaitsForThePipe(GoodBridge):
    def pump(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self.feed(process.stdout.read())
        self.end()


@habit("br.cut.limit", "br.cut.default", "br.cut.characters")
class CutsNothing(GoodBridge):
    def cut(self, reply: str) -> str:
        return reply


@habit("br.cut.limit")
class HasOneSuffix(GoodBridge):
    def check(self) -> None:
        super().check()
        self.profile["truncation_suffix"] = "..."


@habit("br.cut.exact")
class CutsFullReplies(GoodBridge):
    def cut(self, reply: str) -> str:
        self.profile["max_reply_chars"] -= 1
        return super().cut(reply)


@habit("br.cut.characters")
class CountsBytes(GoodBridge):
    def cut(self, reply: str) -> str:
        limit = int(self.profile["max_reply_chars"])
        return reply if len(reply) <= limit else reply.encode()[:limit].decode("utf-8", "replace") + "!"


@habit("br.cut.partials")
class StreamsWithoutLimit(GoodBridge):
    def on_partial(self, text: str) -> None:
        self.partials.append(text)
